# Corners of autograd.Function and of hooks on results: what a trace cannot hold is as in python too.
import torch


class Mul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y
    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x

class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x
    @staticmethod
    def backward(ctx, g):
        return g * 2

class Noisy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        print("f", end=" ")
        return x + 1
    @staticmethod
    def backward(ctx, g):
        print("b", end=" ")
        return g

class Keeps(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * 3
        ctx.y = y
        ctx.fn = lambda g: g * 3
        ctx.log = []
        return y
    @staticmethod
    def backward(ctx, g):
        ctx.log.append(1)
        assert ctx.y.shape == g.shape
        return ctx.fn(g)

class ViewOut(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.view(-1)
    @staticmethod
    def backward(ctx, g):
        return g.view(ctx.shape)

class Raises(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bad):
        ctx.bad = bad
        return x * 1
    @staticmethod
    def backward(ctx, g):
        if ctx.bad:
            raise ValueError("bad")
        return g, None

class Undefined(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3
    @staticmethod
    def backward(ctx, a, b):
        return a * 2 + b * 3

def loop(step, n=40, seed=0):
    torch.manual_seed(seed)
    w = torch.randn(4, 3, requires_grad=True)
    x = torch.randn(5, 4)
    for i in range(n):
        out = step(i, x, w)
        with torch.no_grad():
            if w.grad is not None:
                w -= 0.01 * w.grad
        if i % 13 == 7:
            print(i, out, f"{w.grad.sum().item():.4f}")
        w.grad = None
    print(f"{w.sum().item():.5f}")

def s1(i, x, w):
    l = Mul.apply(x @ w, (x @ w).tanh()).sum(); l.backward(); return f"{l.item():.4f}"
def s2(i, x, w):
    h = x @ w; h = InPlace.apply(h * 1); l = h.pow(2).mean(); l.backward(); return f"{l.item():.4f}"
def s3(i, x, w):
    l = Noisy.apply(x @ w).pow(2).mean(); l.backward(); return f"{l.item():.4f}"
def s4(i, x, w):
    l = Keeps.apply(x @ w).pow(2).mean(); l.backward(); return f"{l.item():.4f}"
def s5(i, x, w):
    l = ViewOut.apply(x @ w).pow(2).mean(); l.backward(); return f"{l.item():.4f}"
def s6(i, x, w):
    l = Raises.apply(x @ w, i % 10 == 9).pow(2).mean()
    try:
        l.backward()
    except ValueError as e:
        w.grad = torch.zeros_like(w)
        return repr(e)
    return f"{l.item():.4f}"
def s7(i, x, w):
    a, b = Undefined.apply(x @ w); l = b.pow(2).mean(); l.backward(); return f"{l.item():.4f}"
def s8(i, x, w):
    h = Mul.apply(x @ w, x @ w); l = h.sum()
    l.backward(retain_graph=True); l.backward(); return f"{l.item():.4f}"
def s9(i, x, w):
    h = x @ w
    handle = h.register_hook(lambda g: g * 2)
    if i % 3 == 0: handle.remove()
    l = h.pow(2).mean(); l.backward(); return f"{l.item():.4f}"
def s10(i, x, w):
    h = x @ w
    z = h * 2
    h.register_hook(lambda g: g * 2)
    l = z.pow(2).mean(); l.backward(); return f"{l.item():.4f}"
def s11(i, x, w):
    h = x @ w
    k = i % 5 * 0.1
    h.register_hook(lambda g: g * k)
    k = i % 5 * 0.2
    l = h.pow(2).mean() * k; l.backward(); return f"{l.item():.4f}"
def s12(i, x, w):
    h = x @ w
    h.retain_grad()
    l = Mul.apply(h, h).mean(); l.backward(); return f"{h.grad.sum().item():.4f}"
kept = []
def s13(i, x, w):
    y = Mul.apply(x @ w, x @ w)
    kept.append(y.detach())
    l = y.mean(); l.backward()
    return type(y.grad_fn).__name__, len(kept)
def s14(i, x, w):
    g, = torch.autograd.grad(Mul.apply(x @ w, x @ w).mean(), w, create_graph=True)
    l = g.pow(2).sum() * 0.01; l.backward(); return f"{l.item():.4f}"
def s15(i, x, w):
    with torch.no_grad():
        y = Mul.apply(x @ w, x @ w)
    l = (x @ w).mean() + y.mean(); l.backward(); return y.requires_grad, f"{l.item():.4f}"
def s16(i, x, w):
    y = Mul.apply(x @ w, x @ w)
    y.register_hook(lambda g: None)
    y.register_hook(lambda g: g + i)
    l = y.relu().mean(); l.backward(); return f"{l.item():.4f}"
def s17(i, x, w):
    y = Mul.apply(x @ w, x @ w)
    y.add_(1)
    y.register_hook(lambda g: g * 0.5)
    l = y.mean()
    if i % 5 == 3: print("x", end=" ")
    l.backward(); return f"{l.item():.4f}"
for k in range(1, 18):
    print('==', k)
    try:
        loop(globals()[f"s{k}"])
    except Exception as e:
        print(type(e).__name__, str(e)[:100])
