# Batches as dicts that take turns: passed as keyword arguments, read by name, gone through; later one with other keys, and one in another order.
# expect: compiled>=0.8, traces>=1
import torch


def model(inputs, mask=None, scale=1.0, **rest):
    y = inputs * scale
    if mask is not None:
        y = y + mask
    for name, value in rest.items():
        y = y - value if name == "less" else y * value
    return torch.relu(y)


def main():
    torch.manual_seed(0)
    batches = [{"inputs": torch.randn(8), "mask": torch.randn(8), "less": torch.randn(8), "times": torch.randn(8)} for _ in range(3)]
    total = 0.0
    for i in range(120):
        batch = batches[i % 3]
        if i == 90:
            batches[1] = {"inputs": torch.ones(8), "times": torch.full((8,), 2.0), "less": torch.ones(8)}
        total += model(**batch).sum().item()
        for value in batch.values():
            total += value.mean().item()
        total += torch.dot(batch["inputs"], batch["less"]).item()
    print(f"{total:.3f}")


main()
