# Methods of tensors that are looked up before they are called, with starred arguments, kept in a variable, or taken in a list: the tensors keep their graph
# inside of the trace.
# expect: compiled>=0.8, traces>=1
import torch

torch.manual_seed(0)
weight = torch.randn(8, 8, requires_grad=True)
data = torch.randn(4, 6, 8)
shape = (4, 6, 2, 4)


def main():
    losses = []
    for step in range(60):
        h = data @ weight
        h = h.view(*shape).transpose(*(1, 2))
        scale = h.mul
        h = scale(*[0.5]) + h.add(*(), **{"other": 1.0})
        steps = [h.sum, h.mean]
        loss = sum(f() for f in steps) * 0.01
        if step == 40:
            kept = loss.item
        loss.backward()
        with torch.no_grad():
            weight.sub_(*(weight.grad,), alpha=0.05)
            weight.grad = None
        losses.append(loss.item())
    print([f"{v:.5f}" for v in losses[::6]], f"{kept():.5f}", kept.__self__ is loss, h.view.__name__)


main()
