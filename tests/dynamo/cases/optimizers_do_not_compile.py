# What torch itself marks as not to be compiled (zero_grad, state_dict hooks, checkpoints) sets no callback: such training loops are compiled as ever.
# expect: compiled>=0.8, traces>=1
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.Adam(model.parameters())
for step in range(200):
    loss = model(torch.ones(2, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(round(loss.item(), 5))
