# A compiled module in training: parameters, gradients and the optimizer's state.
import torch

torch.manual_seed(0)
model = torch.compile(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)), backend="eager")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(60):
    x = torch.randn(16, 8)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(step, round(loss.item(), 4))
print(sorted(model.state_dict()), round(sum(p.double().sum().item() for p in model.parameters()), 4))
