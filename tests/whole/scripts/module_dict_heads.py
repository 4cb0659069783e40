# A ModuleDict of task heads chosen by each batch's task name, trained together with weights for each task.
# expect: compiled>=0.8, traces>=1
import torch
from torch import nn

torch.manual_seed(6)


class MultiTask(nn.Module):
    weights = {"age": 0.1, "kind": 1.0, "flag": 0.5}

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 8), nn.ReLU())
        self.heads = nn.ModuleDict({"age": nn.Linear(8, 1), "kind": nn.Linear(8, 3), "flag": nn.Linear(8, 1)})
        self.losses = {"age": nn.MSELoss(), "kind": nn.CrossEntropyLoss(), "flag": nn.BCEWithLogitsLoss()}

    def forward(self, x, task):
        out = self.heads[task](self.body(x))
        return out if out.size(-1) > 1 else out.squeeze(-1)

    def loss(self, batch):
        return self.weights[batch["task"]] * self.losses[batch["task"]](self(batch["x"], batch["task"]), batch["y"])


x = torch.randn(10, 5)
batches = [{"task": "age", "x": x, "y": x.sum(1)}, {"task": "kind", "x": x, "y": x[:, :3].argmax(1)},
           {"task": "flag", "x": x, "y": (x[:, 0] > 0).float()}]
model = MultiTask()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
last = {}
for step in range(90):
    batch = batches[step % len(batches)]
    optimizer.zero_grad(set_to_none=True)
    loss = model.loss(batch)
    loss.backward()
    optimizer.step()
    last[batch["task"]] = loss.item()
print({task: f"{value:.4f}" for task, value in last.items()}, list(model.heads.keys()), "age" in model.heads)
