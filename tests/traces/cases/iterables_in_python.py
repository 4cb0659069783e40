# enumerate, list and tuple of objects whose __iter__ is in Python, as that of nn.ModuleList: it is followed, and raises as it would. What changes a dict while an iterator made so is over it is told. An object that is
# its own iterator is none of these.
# expect: compiled>=0.4
import torch
class Box:
    def __init__(self, n): self.items = list(range(n))
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
class Bad:
    def __iter__(self): return 3
class Raises:
    def __init__(self): self.n = 0
    def __iter__(self):
        self.n += 1
        if self.n == 25: raise ValueError("at 25")
        return iter([1, 2])
def train():
    ml = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))
    box, r, bad = Box(3), Raises(), Bad()
    x = torch.randn(2, 4)
    tot = 0.0
    for i in range(40):
        h = x
        for k, layer in enumerate(ml):
            h = torch.tanh(layer(h)) + k
        for k, layer in enumerate(list(ml)): h = h + layer.bias * k
        for k, b in enumerate(box): tot += b * k
        try:
            for k, v in enumerate(r): tot += v
        except ValueError as e:
            tot += 100
        try:
            if i % 7 == 0: tuple(bad)
        except TypeError as e:
            tot += len(str(e))
        loss = h.pow(2).mean()
        loss.backward()
        with torch.no_grad():
            for p in ml.parameters(): p -= 0.01 * p.grad; p.grad = None
        tot += loss.item()
        if i == 20: box.items.append(7)
    return tot
torch.manual_seed(0)
print(f"{train():.3f}")
class Both:
    def __init__(self): self.n = 0
    def __iter__(self): return self
    def __next__(self):
        self.n += 1
        if self.n % 4 == 0: raise StopIteration
        return self.n
def both():
    x = torch.ones(2); b = Both(); n = 0
    for i in range(40):
        for k, v in enumerate(b): x = x * 0.9 + v * 0.01
        n += len(list(b))
    return x, n
print(both())


class Names:
    def __init__(self): self.d = {"a": 1, "b": 2, "c": 3}
    def __iter__(self): return iter(self.d)
def changed():
    bag = Names()
    x = torch.ones(3)
    n = 0
    for i in range(60):
        try:
            for k, name in enumerate(bag):
                x = x * 0.9 + bag.d[name] * k
                if i == 30 and k == 1: bag.d["z"] = 5
                if i % 10 == 9 and k == 0: bag.d.pop("c"); 
        except RuntimeError as e:
            n += len(str(e))
            bag.d.setdefault("c", 4)
        for k, name in enumerate(bag): n += k
    return x, n, list(enumerate(bag))
print(*changed())
