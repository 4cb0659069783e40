# Dropout as one operation, as it is on GPUs: gradients flow through it where an exit builds the graph again, with the mask that it has drawn.
# expect: compiled>=0.4, traces>=1
import torch

torch.manual_seed(0)
first, second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.05)
x = torch.randn(16, 8)


def run(steps):
    total = 0.0
    for k in range(steps):
        hidden = torch.native_dropout(torch.tanh(first(x)), 0.3, True)[0]
        loss = second(hidden).pow(2).mean()
        if k % 7 == 5 or loss.item() > 10:  # the rare way leaves between forward and backward
            loss = loss * 0.5
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() + first.weight.grad.abs().sum().item()
    return total


print(f"{run(60):.4f}", f"{first.weight.grad.abs().sum().item():.4f}", torch.rand(2).tolist())
