# Sizes that are symbols in kernels that cannot be made: positions over two open dimensions. The operations are the library's then, and the trace stays.
# expect: compiled>=0.6, open_sizes>=1
import torch

torch.manual_seed(0)
shapes = [(6, 8)] * 12 + [(3 + i % 5, 4 + i % 7) for i in range(40)]
found = []
with torch.no_grad():
    for x in [torch.randn(rows, columns) for rows, columns in shapes]:
        y = torch.tanh(x) * 2 + 1
        mean = (y * y).mean()
        found.append((int(y.t().argmax()), int((y.t() * 3).argmin()), y.argmax(1).tolist(), round(float(mean), 2), round(float(y.sum(0).max()), 2)))
print(found)
