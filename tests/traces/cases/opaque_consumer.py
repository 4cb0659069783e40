# tuple(), list(), sum() and all() over generators whose bodies have effects: recorded again with these calls as they are.
# expect: compiled>=0.8, traces>=1
import torch


class Log(dict):
    def __getitem__(self, key):
        seen.append(key)
        return super().__getitem__(key)


seen = []


def main():
    torch.manual_seed(0)
    x = torch.randn(16)
    total = 0.0
    for i in range(80):
        y = torch.relu(x * 0.5)
        log = Log(a=y, b=y + 1, c=i)
        parts = tuple(log[key] for key in log.keys())
        names = list(seen.append(key) or key.upper() for key in log)
        whole = all(log[key] is not None for key in log)
        total += (parts[0] + parts[1]).sum().item() + sum(seen.append("n") or n for n in (1, 2)) + len(names) + whole
    print(f"{total:.2f}", len(seen), seen[:12], names)


main()
