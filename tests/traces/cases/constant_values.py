# Arithmetic on shapes and other constants of immutable types; a tuple class with operators in Python is none of them.
# expect: compiled>=0.9, traces>=1
import torch


asked = []


class Counted(tuple):
    def __getitem__(self, index):
        asked.append(index)
        return tuple.__getitem__(self, index)

    def __add__(self, other):
        asked.append("+")
        return tuple(self) + tuple(other)

    def __eq__(self, other):
        asked.append("==")
        return tuple(self) == tuple(other)


PARTS = Counted((3, 5))


def main():
    torch.manual_seed(0)
    x = torch.randn(4, 6, 8)
    total = 0.0
    for i in range(100):
        y = x.view(x.shape[0] * x.shape[1], -1)
        y = y.reshape(*x.shape[:-1], x.shape[-1] // 2, 2)
        total += y[..., : y.shape[-2] // 2, :].sum().item()
        if x.shape == y.shape[:2] + (8,) and x.dtype == torch.float32:
            total += len("a" + "b")
        total += PARTS[1] + len(PARTS + (1,)) + (PARTS == (3, 5))
    print(f"{total:.2f}", len(asked), asked[-3:])


main()
