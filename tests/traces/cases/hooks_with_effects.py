# Functions that backward() calls have effects (an update, a counter, a list) before what they look at next: a global, a closure's dict, a number.
# expect: compiled>=0.5
import torch

torch.manual_seed(3)
a = torch.randn(4, requires_grad=True)
b = torch.randn(4, requires_grad=True)
x = torch.randn(6, 4)
rate = 0.1
calls = {"updates": 0, "seen": []}


def make(scales):
    def update(p):
        with torch.no_grad():
            p.sub_(p.grad * scales["rate"], alpha=rate)
        calls["updates"] += 1
        calls["seen"].append(p.grad.shape[0])
        p.grad = None
    return update


a.register_post_accumulate_grad_hook(make({"rate": 1.0}))
b.register_post_accumulate_grad_hook(make({"rate": 0.5}))
b.register_hook(lambda g: g * 2)


def main():
    for i in range(60):
        ((x * a).tanh() + b).square().mean().backward()
        if i == 40:
            globals()["rate"] = 0.05


main()
print(calls["updates"], len(calls["seen"]), [f"{v:.6f}" for v in [*a.tolist(), *b.tolist()]], a.grad, b.grad)
