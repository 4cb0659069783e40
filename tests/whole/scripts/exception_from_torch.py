# A torch call that raises for wrong shapes is caught, and the batch is cut and tried again.
# expect: compiled>=0.7, traces>=1
import torch

torch.manual_seed(34)
weight = torch.randn(6, 4)


def forward(x):
    return torch.sigmoid(x @ weight)


batches = [torch.randn(5, 6) for _ in range(12)]
batches[7] = torch.randn(5, 9)
batches[10] = torch.randn(5, 3)
total, messages = torch.zeros(4), []
for step in range(60):
    x = batches[step % 12]
    try:
        y = forward(x)
    except RuntimeError as error:
        if step < 12:
            messages.append(str(error).splitlines()[0])
        if x.size(1) < 6:
            continue
        y = forward(x[:, :6])
    total += y.mean(0)
print(*messages, sep="\n")
print([f"{v:.4f}" for v in total.tolist()])
