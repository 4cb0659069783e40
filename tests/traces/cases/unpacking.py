# Tensors and generators are unpacked, with and without a star, also into too few names.
# expect: compiled>=0.5, traces>=1
import torch
def main():
    x = torch.arange(12.0).view(3, 4); w = torch.eye(4); out = []
    t = torch.zeros(4)
    for i in range(40):
        a, b, c = x
        p, q = (m @ w for m in (a, b))
        first, *rest = (m * 2 for m in (a, b, c))
        t = t + p * q - c + first + rest[0] + (i % 3)
        x = x * 1.01
        try:
            u, v = (m + 1 for m in (a, b, c))
        except ValueError as e:
            t = t + 1
    print(t.tolist())
main()
