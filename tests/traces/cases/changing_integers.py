# Integers that change from run to run, given to operations as factors, bounds, exponents and fill values: among them one that raises.
# expect: compiled>=0.3, traces>=10
import torch
from torch.nn import functional as F

FUNCTIONS = [
    torch.remainder, torch.fmod, torch.floor_divide, torch.bitwise_left_shift,
    lambda x, n: x.remainder_(n), lambda x, n: torch.pow(x, n), lambda x, n: torch.div(x, n, rounding_mode="floor"),
    lambda x, n: x.float().renorm(2, 0, n), lambda x, n: F.threshold(x, n, 7), lambda x, n: F.leaky_relu(x.float() - 3, n),
    lambda x, n: x.masked_fill(x > 2, n), lambda x, n: torch.full_like(x, n), lambda x, n: x.index_fill(0, torch.tensor([0, 2]), n),
    lambda x, n: torch.cumsum(x, 0).add_(x, alpha=n), lambda x, n: x.float().norm(n), lambda x, n: torch.lerp(x.float(), x.float() * 2, n),
    lambda x, n: torch.addcmul(x, x, x, value=n), lambda x, n: F.hardtanh(x, -n, n), lambda x, n: x.new_full((2,), n),
    lambda x, n: torch.where(x > 2, x, n), lambda x, n: x.clamp(min=n), lambda x, n: x == n,
]


def run(function, x):
    total = 0
    for n in [3] * 15 + [2] * 10 + [0]:
        y = function(x.clone(), n)
        total += round(y.float().nan_to_num(0).sum().item(), 3)
    return y, total


def main():
    for function in FUNCTIONS:
        try:
            print(*run(function, torch.arange(6)))
        except (RuntimeError, ZeroDivisionError) as error:
            print(type(error).__name__, str(error)[:60])


main()
