# Operations that autocast does not handle, whose own kernels call some that it does: they compute in its dtype in a trace as well, and in graphs that exits rebuild.
# expect: traces>=1
import torch
import torch.nn.functional as F

torch.manual_seed(0)
x, other = torch.randn(6, 4), torch.randn(6, 4)
weight = torch.randn(5, 4, 4, requires_grad=True)


def of_the_kernel(i, dtype, enabled):
    with torch.autocast("cpu", dtype=dtype, enabled=enabled):
        y = F.bilinear(x, other.tanh(), weight)
        if i % 5 == 4:  # left with autocast on
            print("inside", y.dtype, f"{y.sum().item():.2f}")
        z = y * 2
    if i % 7 == 6:  # and off
        print("outside", f"{z.abs().max().item():.3f}")
    weight.grad = None
    z.square().sum().backward()
    # bfloat16 has eight bits: what was computed in it is nothing else
    return y.dtype, torch.equal(y.detach(), y.detach().bfloat16().float()), f"{weight.grad.sum().item():.1f}"


for dtype, enabled in ((torch.bfloat16, True), (torch.bfloat16, False)):
    for i in range(16):
        shown = of_the_kernel(i, dtype, enabled)
        if i > 11:
            print(dtype, enabled, *shown)
