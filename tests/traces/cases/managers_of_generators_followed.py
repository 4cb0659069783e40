# Generators of context managers, and others with handlers, are followed: their code is part of the trace, also between a forward and its backward.
# expect: compiled>=0.8
import contextlib

import torch

torch.manual_seed(0)
lin = torch.nn.Linear(6, 6)
log = []


@contextlib.contextmanager
def timed(times, key, i=0):
    before = times.get("all", 0)
    if i % 50 == 49:
        before += 1000  # an exit on the way in
    try:
        yield before
    finally:
        times["all"] = times.get("all", 0) + 1
        if i % 70 == 69:
            times[key] = i  # and on the way out


@contextlib.contextmanager
def frozen(module, x):
    saved = [p.requires_grad for p in module.parameters()]
    for p in module.parameters():
        p.requires_grad_(False)
    yield x * 2
    for p, was in zip(module.parameters(), saved):
        p.requires_grad_(was)


class Scope:
    depth = 0

    @contextlib.contextmanager
    def entered(self, by=1):
        self.depth += by
        try:
            with torch.no_grad():
                yield self
        except ValueError as error:
            log.append(str(error))
        else:
            self.depth += 1
        finally:
            self.depth -= by


@contextlib.contextmanager
def twice():
    yield 1
    yield 2


@contextlib.contextmanager
def never(flag):
    if flag:
        yield


def show(name, *values):
    print(name, *[f"{v.item():.4f}" if isinstance(v, torch.Tensor) else v for v in values])


# Around forward and backward, with changing arguments; `as`; nested.
times, scope = {}, Scope()
for i in range(200):
    x = torch.full((3, 6), 0.01 * i)
    with timed(times, "forward", i) as before:
        y = lin(x).relu()
    with timed(times, "loss"), scope.entered() as s:
        seen = y.sum() + s.depth
    loss = (y * 2).mean() + before * 0.0
    with timed(times, "backward", i + 20):
        loss.backward()
    with torch.no_grad():
        for p in lin.parameters():
            p -= 0.01 * p.grad
            p.grad = None
    if i % 60 == 59:
        show(i, loss, seen, sorted(times.items()), scope.depth)

# What is trained is frozen inside; the yielded tensor is used.
for i in range(120):
    with frozen(lin, torch.ones(2, 6) * i) as z:
        out = lin(z)
    assert not out.requires_grad and lin.weight.requires_grad
    if i % 50 == 49:
        show("frozen", out.mean())

# A manager that a variable holds into the next iteration.
kept = None
for i in range(120):
    kept = timed(times, "kept", i + 20)
    with kept:
        loss = lin(x).square().mean()
        loss.backward()
    if i % 50 == 49:
        show("kept", loss, lin.weight.grad.sum(), times["all"], kept.gen.gi_frame)

# As a decorator, in an ExitStack, entered by hand and left by hand, or dropped before it has ended.
deco = {}


@timed(deco, "call")
def decorated(x):
    return torch.tanh(x + 1)


a = torch.zeros(4)
for i in range(150):
    a = decorated(a)
    with contextlib.ExitStack() as stack:
        stack.enter_context(timed(times, "stack", i))
        stack.enter_context(scope.entered(2))
        a = a * 1.01
    by_hand = timed(times, "hand")
    by_hand.__enter__()
    a = a + 0.5
    by_hand.__exit__(None, None, None)
    dropped = timed(times, "dropped")
    dropped.__enter__()
    dropped = None
    a = a.sin()
    if i % 50 == 49:
        show("used", a.sum(), deco, times["all"], scope.depth)

# Exceptions out of the body, out of the generator; one that does not stop; one that does not begin; left by break, continue and return.
def leaves(x, i):
    with timed(times, "returned"):
        if i % 3 == 0:
            return x + 1
    return x - 1


errors = []
for i in range(160):
    try:
        with scope.entered():
            a = a * 0.99
            if i % 40 == 39:
                raise ValueError(f"at {i}")
            if i % 55 == 54:
                raise KeyError(i)
    except KeyError as error:
        errors.append(repr(error))
    for k in range(3):
        with timed(times, "loop"):
            if k == 1:
                continue
            a = a + k * 0.1
            if i % 2 == 1:
                break
    a = leaves(a, i)
    if i in (80, 81):
        try:
            with twice():
                a = a + 1
        except RuntimeError as error:
            errors.append(str(error))
    try:
        with never(i % 30 != 29):
            a = a * 0.5
    except RuntimeError as error:
        errors.append(f"{error} {error.__cause__} {error.__context__!r}")
show("left", a.sum(), scope.depth, times["all"], log, errors)


# Generators with handlers in loops, exhausted and left early; next() by hand, with and without an end.
def batches(n, i):
    try:
        for k in range(n):
            with torch.no_grad():
                yield torch.full((2,), float(k + i))
    finally:
        log.append(("closed", n, i % 3))


log.clear()
total = torch.zeros(2)
for i in range(120):
    for batch in batches(3, i):
        total = total * 0.9 + batch
        if i % 30 == 29:
            break
    once = batches(2, i)
    total = total + next(once)
    total = total - next(once)
    try:
        next(once)
    except StopIteration as end:
        assert end.value is None
    del once
show("batches", total.sum(), len(log), log[-4:])


def gives():
    yield 1.5
    return "given"


ends = []
for i in range(100):
    g = gives()
    total = total * next(g)
    try:
        next(g)
    except StopIteration as end:
        if i % 50 == 49:
            ends.append(end.value)
    try:
        next(g)
    except StopIteration:
        total = total * 0.6
show("given", total.sum(), ends)
