# Functions of torch that write memory of their own on the way: they are the operations that they run, or stay calls, and nothing of the loop is lost. Seeds that are set in the loop.
# expect: compiled>=0.6
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import rnn

torch.manual_seed(0)
model, scores = nn.Linear(8, 5), []
weight = torch.tensor([1.0, 2.0, 0.5, 1.0, 3.0])
inputs, labels = torch.randn(40, 6, 8), torch.randint(0, 5, (40, 6))
for i in range(400):
    loss = F.cross_entropy(model(inputs[i % 40]), labels[i % 40], weight, label_smoothing=0.1)
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
            p.grad = None
    scores.append(loss.item())
print(f"{sum(scores):.3f} {scores[-1]:.4f} {model.weight.sum().item():.4f}")

lstm, sequences = nn.LSTM(3, 4, batch_first=True), [torch.randn(n, 3) for n in (7, 5, 2)]
for i in range(12):
    packed = rnn.pack_padded_sequence(rnn.pad_sequence(sequences, batch_first=True), [7, 5, 2], batch_first=True)
    out, (h, c) = lstm(packed)
    out, sizes = rnn.pad_packed_sequence(out, batch_first=True)
    (out.pow(2).sum() + c.mean()).backward()
    with torch.no_grad():
        for p in lstm.parameters():
            p -= 0.01 * p.grad
            p.grad = None
print(f"{out.sum().item():.4f} {h.sum().item():.4f}", sizes.tolist())

total, x = 0.0, torch.ones(3, 3)
for i in range(200):
    torch.manual_seed(i % 7)
    x = torch.tanh(x @ torch.randn(3, 3)) + 0.1
    total += x.sum().item()
print(f"{total:.3f} {torch.rand(1).item():.5f}")
