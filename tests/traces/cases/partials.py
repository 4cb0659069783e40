# functools.partial: keywords that the call overrides, partials of partials, one whose keywords change, one that is replaced, one made each time.
# expect: compiled>=0.6, traces>=2
import torch
from functools import partial
def f(x, a, *more, scale=1.0, **rest):
    return x * scale + a + sum(more) + sum(rest.values()) + len(rest) * (list(rest) == sorted(rest))
act = partial(torch.nn.functional.gelu, approximate="tanh")
g = partial(f, a=1.0, scale=2.0); h = partial(partial(f, torch.ones(3)), 0.5, z=3.0, b=1.0)
changing = partial(f, scale=3.0)
class M(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.act = partial(torch.clamp, min=-2.0)
    def forward(self, x): return self.act(x, max=3.0)
def main():
    m = M(); x = torch.linspace(-1, 1, 3); t = torch.zeros(3)
    for i in range(60):
        t = t * 0.5 + act(x) + g(x) + g(x, scale=0.5, q=i * 0.1) + h() + h(z=1.0, y=2.0) + m(t)
        if i == 30: changing.keywords["scale"] = 4.0
        if i == 45: m.act = partial(torch.clamp, min=-1.0)
        t = t + changing(x, 1.0) + partial(f, scale=i * 0.01)(x, 2.0)
    print(t.tolist())
main()
