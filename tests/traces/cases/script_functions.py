# Functions compiled by torch.jit.script are followed through their Python source, as one call: one with a tensor made of a size, one that gives its
# argument back, one that decides by sizes; one that asks whether it is compiled, one that changes a list and one with a graph stay calls.
# expect: compiled>=0.6, traces>=1
import torch


@torch.jit.script
def scaled(x: torch.Tensor, factor: int):
    return x / torch.sqrt(torch.tensor(x.size(-1), dtype=torch.float) * factor)


@torch.jit.script
def as_it_is(x: torch.Tensor, y: torch.Tensor, least: int = 2):
    if x.size(0) < least:
        return y + 1
    return x


@torch.jit.script
def asks(x: torch.Tensor):
    if torch.jit.is_scripting():
        return x * 2
    return x * 3


@torch.jit.script
def appends(x: torch.Tensor, kept: list[torch.Tensor]):
    kept.append(x)
    return x + len(kept)


def main():
    torch.manual_seed(0)
    x, w = torch.randn(4, 16), torch.randn(16, 16, requires_grad=True)
    total, same = 0.0, 0
    for i in range(60):
        with torch.no_grad():
            y = torch.tanh(x @ w * 0.1 + 0.01)
            z = scaled(y, 3) + scaled(y, factor=5)
            same += as_it_is(z, y) is z
            z = asks(z)
            kept = [z]
            z = appends(z, kept)
            total += z.sum().item() + len(kept)
        v = scaled(x @ w, 2)
        total += float(v.requires_grad)
        total += v.abs().max().item()
        x = y * 0.5 + x * 0.5
    print(f"{total:.1f} {same}")


main()
