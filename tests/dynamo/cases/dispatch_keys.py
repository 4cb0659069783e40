# Scripts can ask for the thread's dispatch keys: those of the recorder and the counter are not among them.
import torch


class Mode(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        seen.add(repr(torch._C._dispatch_tls_local_include_set()))
        return function(*args, **(kwargs or {}))


seen = set()
total = torch.zeros(2)
for i in range(60):
    total = total + torch.ones(2)
    seen.add(repr(torch._C._dispatch_tls_local_include_set()))
    seen.add(repr(torch._C._dispatch_tls_local_exclude_set()))
    seen.add(torch._C._dispatch_tls_is_dispatch_key_included(torch._C.DispatchKey.Python))
    if i > 40:
        with Mode():
            total = total + 1
print(total, sorted(map(str, seen)))
