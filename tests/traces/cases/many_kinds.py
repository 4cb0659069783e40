# One loop over more kinds of tensors than it may have traces, one kind after the other, and then back to the first: old traces give way.
# expect: compiled>=0.75, traces>=9
# expect-abort: none
import torch


def main():
    torch.manual_seed(0)
    dtypes = [torch.float32, torch.float64, torch.int32, torch.int64, torch.bfloat16]
    kinds = [(torch.rand(*(3,) * dim) * 9).to(dtype) for dtype in dtypes for dim in (1, 2)]
    total = torch.zeros((), dtype=torch.float64)
    for i in range(11 * 300):
        x = kinds[i // 300 % len(kinds)]
        y = (x + x * 2).sum() - x.amax()
        total = total + y
    print(f"{total.item():.3f}")


main()
