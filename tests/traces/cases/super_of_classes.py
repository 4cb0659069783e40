# Class methods that call super(): what is found, and which class it is bound to, depends on the class that the method was called with, also where that is no constant of the trace.
# expect: compiled>=0.5, traces>=1
import torch


class Base:
    scale = 1.0

    @classmethod
    def apply(cls, x):
        return torch.tanh(x * cls.scale)

    @classmethod
    def name(cls):
        return cls.__name__


class Left(Base):
    scale = 0.5

    @classmethod
    def apply(cls, x):
        return super().apply(x) + 1

    @classmethod
    def name(cls):
        return "left " + super().name()


class Lefter(Left):
    scale = 0.25


class Leftest(Lefter):
    scale = 0.125

    @classmethod
    def apply(cls, x):
        return super().apply(x) - 0.5


kinds = [Left, Left, Left, Lefter, Leftest, Left]
x = torch.linspace(-1, 1, 8)
total = torch.zeros(8)
names = []
for step in range(90):
    kind = kinds[step // 3 % 6]
    total = total + kind.apply(x) + super(Left, kind).apply(x)
    names.append(kind.name())
    if step % 30 == 29:
        print(step, f"{total.sum().item():.4f}", names[-1], len(set(names)))


def through(holder, x):
    return holder["kind"].apply(x).sum()


holder = {}
value = 0.0
for step in range(120):
    holder["kind"] = kinds[step * 7 % 6]
    value += through(holder, x + step).item()
print(f"{value:.4f}")


class Seen(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs)


class Special(Seen):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs)


a, b = x.as_subclass(Seen), (x * 2).as_subclass(Special)
for step in range(150):
    c = (a + step, b * step)[step % 2].exp().sum()
    d = (b + a).sum()
    if step % 50 > 47:
        print(type(c).__name__, f"{c.item():.4e}", type(d).__name__, f"{d.item():.4f}")
