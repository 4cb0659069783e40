# A trace owns what it compares with. What the script has let go, so that only traces refer to it, is gone when the collector has been asked for a full collection or has made one by itself:
# models and optimizers, classes, closures and objects that each call makes anew. A loop that asks for it keeps its traces, and what its calls have taught is kept too.
# expect: compiled>=0.85
import gc
import weakref

import torch

torch.manual_seed(0)
torch.set_num_threads(1)


class Thing:
    def __init__(self, scale):
        self.scale = scale


def train(steps, width=8):
    model = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Linear(width, 3))
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(16, 4), torch.randint(0, 3, (16,))
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    return [weakref.ref(each) for each in (model, optimizer, model[0], model[0].weight)], loss.item()


def with_class(steps):
    class Scaled(torch.nn.Module):
        by = 0.5

        def forward(self, x):
            return x * self.by

    layer, x = Scaled(), torch.ones(4)
    for _ in range(steps):
        x = layer(x) + 1
    return [weakref.ref(Scaled), weakref.ref(layer)], x.sum().item()


def with_closure(steps):
    thing, x = Thing(0.5), torch.ones(4)
    half = lambda value: value * thing.scale  # noqa: E731
    for _ in range(steps):
        x = half(x) + 1
    return [weakref.ref(thing), weakref.ref(half)], x.sum().item()


def with_cycle(steps):
    thing, x = Thing(0.5), torch.ones(4)
    thing.itself = thing
    for _ in range(steps):
        x = x * thing.scale + 1
    return [weakref.ref(thing)], x.sum().item()


def alive(references):
    return [int(reference() is not None) for reference in references]


# Not in a loop, which would have a trace itself: what is called in one goes at its end.
def calls(function):
    first, value = function(60)
    gc.collect()
    print(function.__name__, round(value, 3), alive(first))
    second, value = function(60)
    gc.collect(2)
    print(function.__name__, round(value, 3), alive(second))
    third, value = function(60)
    gc.collect(generation=2)
    print(function.__name__, round(value, 3), alive(third))


callbacks = len(gc.callbacks)
calls(train)
calls(with_class)
calls(with_closure)
calls(with_cycle)
print(len(gc.callbacks) == callbacks)
for arguments in (("all",), (3,), (2**70,), (1, 2)):
    try:
        gc.collect(*arguments)
    except (TypeError, ValueError, OverflowError) as error:
        print(type(error).__name__, error)

# What is alive stays, with its traces: in the loop that asks, and in others.
model, x, total = torch.nn.Linear(4, 4), torch.ones(2, 4), 0.0
kept = weakref.ref(model)
for i in range(120):
    total += model(x * i).sum().item()
    if i % 20 == 19:
        gc.collect()
print(round(total, 1), alive([kept]))


# Python begins one by itself: it is noticed where a loop goes on.
def later():
    references = train(60)[0]
    many = [[] for _ in range(1_000_000)]
    for i in range(200):
        many[0].append(torch.ones(2).sum().item())
    return alive(references)


print(later())
