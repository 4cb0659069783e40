"""Times of kernels by CUDA events, for comparison with a profile's: one JSON object {name: microseconds a launch}. Exit status 77 without a GPU."""

import json
import sys
import time

import torch
import torch.nn.functional as F

RUNS = 300


def launches(function, n):
    for _ in range(n):
        result = function()  # noqa: F841: kept, so that it is computed each time


def microseconds(function):
    """Of one of many launches behind each other, so that the device has no gaps that count."""
    for _ in range(3):
        launches(function, RUNS)
        torch.cuda.synchronize()
        time.sleep(0.5)  # for kernels that are compiled meanwhile
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    launches(function, RUNS)
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / RUNS * 1e3


def main():
    if not torch.cuda.is_available():
        sys.exit(77)
    x, w, b = (torch.randn(64 << 20, device="cuda") for _ in range(3))
    half = torch.randn(16384, 4096, device="cuda", dtype=torch.bfloat16)
    norm = torch.nn.LayerNorm(4096, device="cuda", dtype=torch.bfloat16)
    functions = {"mul": lambda: F.gelu(x * w + b) * torch.sigmoid(x) - torch.tanh(x), "layer_norm": lambda: F.gelu(norm(half + 1)), "gemm": lambda: half @ half[:4096].t()}
    with torch.no_grad():
        print(json.dumps(dict(zip(functions, map(microseconds, functions.values())))))


if __name__ == "__main__":
    main()
