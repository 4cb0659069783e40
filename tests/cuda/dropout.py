"""native_dropout by itself and in training: prints a digest of results, masks and the generator's state for each case. Run by test_dropout.py.

Each case's loop has a file name of its own, so that reports say whether it was compiled and by how many kernels. Exit status 77 without a GPU.
"""

import hashlib
import json
import sys

import torch

D = "cuda"
STEPS = 10
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64}
SIZES = (8, 1001, 100002, 1000004, 3000008)
LAYOUTS = {
    "matrix": lambda dtype: values(96 * 40, dtype).view(96, 40),
    "transposed": lambda dtype: values(96 * 40, dtype).view(40, 96).t(),
    "channels last": lambda dtype: values(4 * 16 * 9 * 8, dtype).view(4, 16, 9, 8).contiguous(memory_format=torch.channels_last),
    "permuted, of an odd number": lambda dtype: values(3 * 5 * 7, dtype).view(3, 5, 7).permute(2, 0, 1),
    "gaps": lambda dtype: values(64 * 80, dtype).view(64, 80)[:, ::2],
    "rows of a wider one": lambda dtype: values(64 * 80, dtype).view(64, 80)[:, :48],
    "expanded": lambda dtype: values(64, dtype).expand(32, 64),
    "a half": lambda dtype: values(8192, dtype)[4096:],
    "four further": lambda dtype: values(4100, dtype)[4:],
    "one further": lambda dtype: values(4097, dtype)[1:],
    "a number": lambda dtype: values(1, dtype).view(()),
}
CALL = "torch.native_dropout(x, 0.3, True)"


def values(n, dtype):
    return torch.linspace(-3, 3, n, device=D).to(dtype)


def offset():
    """Of the generator: how many numbers it has given."""
    return int.from_bytes(bytes(torch.cuda.get_rng_state()[8:16].tolist()), "little")


def digest(tensors):
    out = hashlib.sha256()
    for tensor in tensors:
        out.update(tensor.contiguous().flatten().view(torch.uint8).cpu().numpy().tobytes() if tensor.dim() else bytes(str(tensor.item()), "ascii"))
    return out.hexdigest()


def case(name, x, body=f"y, m = {CALL}", seed=1234, **more):
    torch.manual_seed(seed)
    torch.randn(5, device=D)  # the offset is not 0
    given = []
    lines = "\n    ".join(["for _ in range(steps):", *body.split("; "), "given.append(y)", "given.append(m)"])
    exec(compile(lines, f"dropout {name}", "exec"), {"torch": torch, "x": x, "given": given, "steps": STEPS, **more})
    print(json.dumps([name, digest(given), offset(), [str(t.stride()) for t in given[-2:]]]), flush=True)


def between(x):
    y, m = torch.native_dropout(torch.relu(x) + 1, 0.5, True)
    return y * 2 + x, m


def main():
    if not torch.cuda.is_available():
        return 77
    for label, dtype in DTYPES.items():
        for size in SIZES:
            case(f"{label} {size}", values(size, dtype))
        for layout, make in LAYOUTS.items():
            case(f"{label} {layout}", make(dtype))
    x = values(96 * 40, torch.float32).view(96, 40)
    case("default training", x, "y, m = torch.native_dropout(x, 0.3, None)")
    case("of what the loop computes", x, "y, m = between(x)", between=between)
    case("between random calls", x, "r = torch.rand_like(x); y, m = torch.native_dropout(r, 0.5, True); r = torch.randn_like(x); y = y + r")
    case("twice", x, "h, m = torch.native_dropout(x, 0.1, True); y, m = torch.native_dropout(h, 0.9, True)")
    case("of views of what the loop computes", x, "h = torch.neg(x); y, m = torch.native_dropout(h.t()[8:, 4:], 0.5, True)")
    case("with sums", x, "h, m = torch.native_dropout(x, 0.5, True); y = torch.where(h > 0, 1, 0).sum(1)")
    case("a seed of 64 bits", x, seed=-5)
    case("infinities", torch.where(x > 2, torch.inf, x))
    # cuDNN draws a new state for its dropout where a generator's numbers are set: drawing for a kernel is no such thing.
    lstm = torch.nn.LSTM(40, 40, 2, dropout=0.5).to(D).requires_grad_(False)
    case("beside a recurrent layer's dropout", x.view(12, 8, 40), "r, state = lstm(x); y, m = torch.native_dropout(r, 0.5, True)", lstm=lstm)
    print(json.dumps(["devices", torch.cuda.device_count()]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
