"""A loop whose kernels have all forms, for test_autotune.py: prints what its last iteration gave. `--deterministic`: under torch's deterministic algorithms; `--cpu`: there."""

import json
import os
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch


def main(words):
    device = "cpu" if "--cpu" in words else "cuda"
    if device == "cuda" and not torch.cuda.is_available():
        return 77
    torch.use_deterministic_algorithms("--deterministic" in words)
    torch.manual_seed(0)
    rows, images = 64 if device == "cpu" else 2048, torch.randn(4, 8, 30, 30, device=device)
    x, weight, bias = torch.randn(rows, 768, device=device), torch.ones(768, device=device), torch.zeros(768, device=device)
    half = x.bfloat16()
    parameters = [torch.randn(n, device=device, requires_grad=True) for n in (5000, 64, 12345, 64)]
    optimizer = torch.optim.Adam(parameters, lr=1e-2, foreach=True)
    for _ in range(12):
        y = torch.nn.functional.gelu(x * 1.5 + 0.25) * torch.sigmoid(x)
        y = torch.nn.functional.layer_norm(y + x, (768,), weight, bias)
        p = torch.softmax(y, 1)
        columns, everything = p.sum(0), (y * y).sum()
        h = torch.nn.functional.silu(half) * half
        pooled = torch.nn.functional.max_pool2d(images * 2, 3, 2, 1)
        picked = x[torch.arange(rows - 1, -1, -1, device=device)] + 1
        loss = sum((each * each).sum() for each in parameters)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(json.dumps([float(each.double().sum()) for each in (y.abs(), p * y, columns * columns, everything, h, pooled, picked, loss, *parameters)]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
