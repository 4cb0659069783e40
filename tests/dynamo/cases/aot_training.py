# AOTAutograd's forward and backward, compiled module and loss in different functions.
import torch

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(6, 6), torch.nn.Linear(6, 3)
        self.norm = torch.nn.LayerNorm(6)

    def forward(self, x):
        return self.b(torch.tanh(self.norm(self.a(x))))


model = torch.compile(Net(), backend="aot_eager")


@torch.compile(backend="aot_eager")
def criterion(out, target):
    return torch.nn.functional.cross_entropy(out, target)


optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(50):
    x = torch.randn(10, 6)
    loss = criterion(model(x), x.argmax(1) % 3)
    optimizer.zero_grad(set_to_none=step % 2 == 0)
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(step, round(loss.item(), 4))
