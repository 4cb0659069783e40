"""Runs several programs one after the other in one process; session.py's driver or python runs a file made by batch_text.

Inputs: programs' paths. Outputs: on standard output a line MARK + path before each program, then what it prints, its
  traceback with it, and a line END when it came to its end.
Invariants: each program has its own globals with __name__ "__main__" and starts with the same random state; an exception ends only its program. What programs
  leave behind (modules, default dtype) they share: generate.py changes no such state.
Tests: run.py.
"""

MARK, END = "=== program ", "=== end"

# With noise, the results of inexact operations get a relative error of about one rounding step: eager with other rounding.
_NOISE = '''
import torch
from torch.utils._python_dispatch import TorchDispatchMode
EXACT = {"abs", "neg", "relu", "relu_", "clamp", "clamp_min", "clamp_max", "where", "maximum", "minimum", "clone", "hardtanh", "masked_fill",
         "_to_copy", "copy", "fill", "zero", "leaky_relu", "threshold_backward", "lift_fresh", "ones_like", "zeros_like"}
SUMS = {"mm", "bmm", "addmm", "sum", "mean", "_softmax", "_log_softmax", "native_layer_norm", "var", "std", "linalg_vector_norm", "cumsum",
        "logsumexp", "norm", "_softmax_backward_data", "_log_softmax_backward_data", "native_layer_norm_backward"}
class Noise(TorchDispatchMode):
    generator = torch.Generator().manual_seed(1)
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        base = name.rstrip("_")
        if base not in EXACT and (torch.Tag.pointwise in func.tags or base in SUMS):
            for t in out if isinstance(out, (tuple, list)) else (out,):
                if isinstance(t, torch.Tensor) and t.dtype in (torch.float32, torch.float64):
                    eps = 1e-7 if t.dtype == torch.float32 else 2e-16
                    t.mul_(1 + eps * torch.randn(t.shape, generator=self.generator, dtype=torch.float64).to(t.dtype))
        return out
context = Noise()
'''
_PLAIN = "import contextlib\ncontext = contextlib.nullcontext()\n"
_LOOP = '''
import sys, traceback
import torch
def run_one(path):
    with open(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    torch.manual_seed(0)
    try:
        with context:
            exec(code, {"__name__": "__main__", "__file__": path})
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != path:
            trace = trace.tb_next
        traceback.print_exception(type(error), error, trace, file=sys.stdout)
for path in PATHS:
    print("%s" + path, flush=True)
    run_one(path)
    print("%s", flush=True)
''' % (MARK, END)


def batch_text(paths, noise=False):
    """The text of a script that runs the programs."""
    return (_NOISE if noise else _PLAIN) + f"PATHS = {list(paths)!r}\n" + _LOOP


def split_output(text):
    """path -> (what the program printed, whether it came to its end)."""
    results = {}
    for part in ("\n" + text).split("\n" + MARK)[1:]:
        path, _, output = part.partition("\n")
        ended = output.rstrip("\n").endswith(END)
        results[path] = (output.rstrip("\n")[:-len(END)] if ended else output, ended)
    return results
