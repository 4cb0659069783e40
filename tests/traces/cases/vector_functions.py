# Functions without an expansion of dynvm's own give what eager gives, to the last bit, also in what is left behind the last whole vector.
# expect: compiled>=0.8
import torch
import torch.nn.functional as F

torch.manual_seed(0)
BETWEEN, ABOVE = [torch.sin, torch.cos, torch.tan, torch.asin, torch.acos, torch.atan, torch.sinh, torch.cosh, torch.tanh, torch.asinh, torch.atanh, torch.exp2, torch.expm1, torch.erf, torch.erfc], [torch.acosh, torch.lgamma, torch.log2, torch.log10]


def bits(x):
    return hex(hash(tuple(x.double().view(torch.int64).tolist())) & 0xFFFFFFFFFFFF)


LOOP = "for i in range(30):\n    z = f(*args)\n"
kept = []


def run(f, *args):
    names = {"f": f, "args": args}
    kept.append(compile(LOOP, "loop", "exec"))  # each function has a loop, and traces, of its own
    exec(kept[-1], names)
    return bits(names["z"])


for n in (64, 61, 1003):
    x = torch.rand(n, dtype=torch.float64) * 1.98 - 0.99
    for f in BETWEEN:
        print(n, f.__name__, run(f, x))
    for f in ABOVE:
        print(n, f.__name__, run(f, x + 2))
    for f in (torch.pow, torch.atan2, torch.hypot):
        print(n, f.__name__, run(f, x + 1.5, x * 3))
    single = x.float()
    for f in (torch.tan, torch.asin, torch.atan, torch.sinh, torch.cosh):
        print(n, f.__name__, "f32", run(f, single))
    print(n, "elu", run(F.elu, x), "mixed", run(lambda a, b: torch.atan(a) * torch.sinh(b).float(), single, x))
