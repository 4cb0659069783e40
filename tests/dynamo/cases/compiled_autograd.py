# Compiled autograd: backward() is captured.
import torch

torch.manual_seed(0)
graphs = []


def backend(graph):
    graphs.append(1)
    return graph


model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for i in range(40):
    x = torch.randn(8, 4)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    if i % 2:
        with torch._dynamo.compiled_autograd._enable(backend):
            loss.backward()
    else:
        loss.backward()
    optimizer.step()
print(round(loss.item(), 5), len(graphs) > 0, [p.grad.shape for p in model.parameters()])
