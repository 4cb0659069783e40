# Numbers of an index that are alike by chance (`x[2:4, 4:8]`, `x[1, 1]`) are told apart by where they stand: no trace is made for their values.
# expect: compiled>=0.75
import torch

x = torch.arange(900.0).reshape(30, 30)
y, image = torch.zeros(30, 30), torch.zeros(3, 28, 28)
total = torch.zeros(())
for k in range(400):
    top, left, row = k % 9, (k * 3) % 7, (k * 5) % 11
    window = x[top : top + 4, left : left + 4]
    total = total + window.sum() * 0.001 + x[row, left] + x[top, 2:9].mean() + x[-1 - left, row]
    y[row, left] = total * 0.5
    y[top, left : left + 4] = window[0]
    image[:, top : top + 5, left : left + 3] += 0.25
    image[..., row, None, top : top + 2] *= 0.5
    if k % 80 == 0:
        print(k, f"{total.item():.3f} {y.sum().item():.3f} {image.sum().item():.4f}")
print(f"{total.item():.3f} {y.sum().item():.3f} {image.sum().item():.4f}")

ragged = 0.0
for k in range(300):  # of changing sizes
    first, last = k % 7, k % 7 + 2 + k % 4
    part = x[first:last, last : last + 3]
    ragged += part.sum().item() + x[:last].shape[0]
    y[first:last] += 1
print(f"{ragged:.1f} {y.sum().item():.3f}")
