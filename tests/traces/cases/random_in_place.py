# Random operations in place on tensors of a graph, looked at by exits between forward and backward: the graph goes on through those that read what they write.
# expect: traces>=1
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(6, 4)

MODELS = {
    "rrelu_in_place": lambda: nn.Sequential(nn.Linear(4, 5), nn.RReLU(inplace=True), nn.Linear(5, 2)),
    "rrelu": lambda: nn.Sequential(nn.Linear(4, 5), nn.RReLU(), nn.Linear(5, 2)),
    "dropout_in_place": lambda: nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.3, inplace=True), nn.Linear(5, 2)),
    "alpha_dropout_in_place": lambda: nn.Sequential(nn.Linear(4, 5), nn.AlphaDropout(0.3, inplace=True), nn.Linear(5, 2)),
    "feature_dropout_in_place": lambda: nn.Sequential(nn.Unflatten(1, (2, 2)), nn.Conv1d(2, 2, 1), nn.Dropout1d(0.5, inplace=True), nn.Flatten(), nn.Linear(4, 2)),
}


def filled(y, how):
    """Overwritten: nothing goes back to what was there, or zeros."""
    z = y * 1
    return getattr(z, how)(*(() if how != "bernoulli_" else (0.5,))) + y


def run(name, model, then):
    params = list(model.parameters())
    for i in range(18):
        for p in params:
            p.grad = None
        y = then(model(x))
        if i % 4 == 3:
            print(name, i, f"{y.sum().item():.5f}")
        loss = y.square().mean()
        if i in (9, 14):
            print(name, "loss", f"{loss.item():.5f}")
        loss.backward()
        if i > 7:
            print(name, [f"{p.grad.sum().item():.5f}" if p.grad is not None else None for p in params])


for name, make in MODELS.items():
    run(name, make(), lambda y: y)
for how in ("normal_", "uniform_", "bernoulli_", "exponential_"):
    run(how, nn.Linear(4, 3), lambda y: filled(y, how))
run("rrelu_function", nn.Linear(4, 3), lambda y: F.rrelu_(y * 1, training=True))
