# Iterating containers of C's, and subclasses without an __iter__ of their own, runs no code: what a trace knows of objects and graphs stays known. One with its own is followed.
# expect: compiled>=0.8
import collections, torch
from collections import OrderedDict, defaultdict, deque
torch.manual_seed(0)
class Out(OrderedDict):
    def __post(self): pass
    def to_tuple(self):
        return tuple(self[k] for k in self.keys())
class Bag(defaultdict):
    def __iter__(self):
        log.append(1)
        return super().__iter__()
class Plain(dict):
    pass
log = []
fixed = frozenset([4])
lin = torch.nn.Linear(4, 4)
x = torch.randn(3, 4)


def train(steps):
    tot = 0.0
    for i in range(steps):
        d = defaultdict(list)
        n = 0
        for k in d: n += 1
        y = lin(x)
        for k in d: n += len(k)
        e = OrderedDict()
        e["x"] = y; e["z"] = y * 2
        for k in e: n += len(k)
        b = Bag(int)
        for k in b: n += 1
        p = Plain(); p["u"] = y.sum(); p["v"] = 2
        for k in p: n += len(k)
        q = deque([1, 2, 3])
        for k in q: n += k
        for k in fixed: n += k
        o = Out(); o["l"] = y.mean(); o["m"] = y
        l, m = o.to_tuple()
        (l + p["u"]).backward()
        with torch.no_grad():
            for w in lin.parameters(): w -= 0.01 * w.grad; w.grad = None
        tot += l.item() + n
    print(f"{tot:.4f}", len(log), list(d), list(e))


train(100)
