# Loops that call functions which are other objects each time: one trace for all that were made from one code, several for several codes, a call for too many.
# expect: compiled>=0.4, traces>=8
import functools
import types

import torch

x = torch.linspace(-1, 2, 16, dtype=torch.float64)


def run(f, n):
    out = 0.0
    for i in range(n):
        out = out + f(i)
    return float(out)


def show(name, values):
    print(name, " ".join(f"{v:.4f}" for v in values))


def scaled(k, shift=0.5):
    def apply(i, bias=k * 2.0):
        return (torch.tanh(x * k + bias + i) * shift).sum()
    return apply


show("closures", [run(scaled(k * 0.1), 12) for k in range(30)])
show("lambdas", [run(lambda i, k=k: (x * i).cos().sum() + k, 12) for k in range(30)])


def branching(k):
    def apply(i):
        y = x * (i + 1)
        if i % 3 == k % 3:
            return y.sum() * k
        inner = scaled(0.1 * k)
        return inner(i) - y.mean()
    return apply


show("branches", [run(branching(k), 20) for k in range(30)])


def keyword(k):
    def apply(i, *, factor=k + 1.0):
        return (x + i).sum() * factor
    return apply


show("keyword defaults", [run(keyword(k), 12) for k in range(20)])


class Model:
    def __init__(self, k):
        self.k = k

    def step(self, i):
        return (x * self.k + i).sin().sum()


show("bound", [run(Model(k).step, 12) for k in range(20)])
show("partial", [run(functools.partial(Model.step, Model(k)), 12) for k in range(20)])

# The same code with other global variables.
source = compile("def outer():\n  def f(i): return (x * scale + i).sum()\n  return f", "made", "exec").co_consts[0].co_consts[1]
show("globals", [run(types.FunctionType(source, {"x": x, "scale": k % 4}), 12) for k in range(20)])
show("globals of a function by itself", [float(sum(map(types.FunctionType(source, {"x": x, "scale": k % 4}), range(12)))) for k in range(12)])


def scaled_loop(n):
    out = 0.0
    for i in range(n):
        out = out + (x * scale + i).sum()
    return float(out)


show("globals of a loop", [types.FunctionType(scaled_loop.__code__, {"x": x, "scale": k % 4, "range": range, "float": float})(12) for k in range(12)])


def replaced(k):
    def f(i):
        return (x + i + k).sum()
    return f


def other(i):
    return (x - i).sum() * 2


class Meddler:
    """Changes what is called in the middle of the loop."""

    def __init__(self, f, at):
        self.f, self.at = f, at

    def __radd__(self, value):
        if self.at == 0:
            self.f.__code__ = other.__code__
        self.at -= 1
        return value


def meddled(f, at, n):
    out, meddler = 0.0, Meddler(f, at)
    for i in range(n):
        out = out + f(i) * 1.0
        out = out + meddler
    return float(out)


def plain(i):
    return (x + i).sum()


show("replaced code", [meddled(types.FunctionType(plain.__code__, globals()), at, 14) for at in (3, 7, 11, 13, 20, 5, 9, 1, 12)])


def changed_defaults(n):
    def f(i, k=1.0):
        return (x * i).sum() + k
    out = 0.0
    for i in range(n):
        out = out + f(i)
        if i % 10 == 9:
            f.__defaults__ = (float(i),)
    return float(out)


show("replaced defaults", [changed_defaults(60)])


def generator(k):
    def values(n):
        for i in range(n):
            yield (x * i + k).sum()
    return values


def drain(make, n):
    total = 0.0
    for i in range(n):
        for value in make(2):
            total = total + value * 0.5
    return float(total)


show("generators", [drain(generator(k), 12) for k in range(20)])

# As many codes as places to call have traces for, and more.
space = {"x": x, "torch": torch}
functions = []
for k in range(40):
    exec(f"def f(i): return (x * {k} + i).sum() * {k % 5}", space)
    functions.append(space["f"])
show("many codes", [run(f, 9) for f in functions for _ in range(2)])


def turns(n):
    out = 0.0
    for i in range(n):
        out = out + functions[i % 25](i)
    return float(out)


show("codes in turn", [turns(200), turns(200)])


def countdown(k):
    def go(i):
        return (x + k).sum() if i <= 0 else go(i - 2) + 1.0
    return go


show("recursion", [run(countdown(k), 8) for k in range(20)])


def failing(k):
    def f(i):
        if i == 7:
            raise ValueError(k)
        return (x * i).sum()
    return f


caught = []
for k in range(20):
    try:
        run(failing(k), 10)
    except ValueError as error:
        frames, trace = [], error.__traceback__
        while trace is not None:
            frames.append(f"{trace.tb_frame.f_code.co_name}:{trace.tb_lineno}")
            trace = trace.tb_next
        caught.append(f"{error} {' '.join(frames)}")
print(caught[0], caught[-1], len(caught))
