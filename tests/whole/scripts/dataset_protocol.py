# A map-style data set class with __getitem__, __len__ and slices, iterated by Python's old sequence protocol.
# expect: compiled>=0.85, traces>=1
import torch


class Windows:
    def __init__(self, series, width):
        self.series, self.width = series, width

    def __len__(self):
        return len(self.series) - self.width

    def __getitem__(self, index):
        if isinstance(index, slice):
            rows = [self[k] for k in range(*index.indices(len(self)))]
            return torch.stack([x for x, _ in rows]), torch.stack([y for _, y in rows])
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        index %= len(self)
        return self.series[index:index + self.width], self.series[index + self.width]


windows = Windows(torch.sin(torch.arange(64.0) * 0.4), 4)
w = torch.zeros(4)
errors = []
for x, y in windows:
    prediction = x @ w
    error = prediction - y
    w = w - 0.1 * error * x
    errors.append(error.abs().item())
x, y = windows[-10:]
final = (x @ w - y).abs().mean().item()
print(len(errors), f"{sum(errors[:20]):.4f} {sum(errors[-20:]):.4f} {final:.4f}", tuple(x.shape), windows[-1][1].item() == y[-1].item())
