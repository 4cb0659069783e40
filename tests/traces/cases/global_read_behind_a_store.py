# A module's variable that holds a graph is stored late. Functions that read it in between, behind a look into a dict made by the loop, find what was stored.
# expect: compiled>=0.2
import torch

w = torch.ones(4, requires_grad=True)
for kind in ("a", "b"):
    for it in range(700):
        d = w * it
        loss = {"a": lambda: d.sum(), "b": lambda: -d.mean()}[kind]()
        w.grad = None
        loss.backward()
        if it in (0, 1, 699):
            print(kind, it, loss.item(), w.grad.tolist())
