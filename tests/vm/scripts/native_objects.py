# Attributes, items and finalizers in hot code: what stands in registers while something dies or changes.
import sys

log = []


class Dies:
    def __init__(self, name, act=None): self.name, self.act = name, act
    def __del__(self):
        log.append(self.name)
        if self.act: self.act(sys._getframe(1))


class A:
    k = 100
    def __init__(self): self.x, self.y = 1, 2.5
    def get(self): return self.x
    def step(self, d):
        self.x = self.x + d
        self.y = self.y * 1.5
        return self.x


class B(A):
    def __init__(self): self.y, self.x, self.z = 9.5, 7, None
    def get(self): return -self.x


class S:
    __slots__ = ("x", "y")
    k = 5
    def __init__(self): self.x, self.y = 3, 1.25
    def get(self): return self.x * 2
    step = A.step


def use(o, n):
    r = []
    for i in range(n):
        o.x = o.x + 1
        o.y = o.y + 0.5
        r.append((o.get(), o.step(2), o.k, o.x - i, len(r)))
    return r[-1], o.x, o.y


for kind in (A, B, S, A):
    print(use(kind(), 40))
a = A()
print(use(a, 30))
a.__dict__["k"] = 1
print(use(a, 30), vars(a))
a.x = "s"
try:
    use(a, 5)
except TypeError as e:
    print(e)
del a.y
a.x = 1
try:
    use(a, 5)
except AttributeError as e:
    print(e)
A.get = lambda self: "new"
print(use(A(), 20))
A.k = property(lambda self: self.x)
print(use(A(), 20))


def items(l, t, d, n):
    s = 0
    for i in range(n):
        l[i % 5] = l[(i + 1) % 5] + t[i % 3]
        l[-1] = l[-2]
        l[0], l[1] = l[1], l[0]
        s += l[i % len(l)] + d["a"]
        l.append(i)
        if len(l) > 20:
            l.pop()
    return s, l


print(items([1, 2, 3, 4, 5], (1, 2, 3), {"a": 1}, 50))
print(items([1.5, 2.5, 3.5, 4.5, 5.5], (1, 2.5, 3), {"a": 0.25}, 50))
for bad in (([1, 2], (1, 2, 3), {"a": 1}), ([1, 2, 3, 4, 5], (1,), {"a": 1}), ([1, 2, 3, 4, 5], (1, 2, 3), {"b": 1}), ((1, 2, 3, 4, 5), (1, 2, 3), {"a": 1})):
    try:
        print(items(*bad, 10))
    except (IndexError, KeyError, TypeError, AttributeError) as e:
        print(type(e).__name__, e, e.__traceback__.tb_next.tb_lineno)


def overwrites(n):
    keep = []
    x = y = None
    total = 0
    for i in range(n):
        x = Dies(("x", i)) if i % 5 == 0 else i
        y = total + (i * 2)
        keep = [Dies(("k", i), lambda f: log.append((f.f_code.co_name, f.f_lineno, f.f_locals.get("i"))))] if i % 9 == 0 else keep
        keep = keep
        total = total + i
    return total, y


print(overwrites(40))
print(log)
log.clear()


def unpacks(rows):
    s = 0
    for a, b, c in rows:
        a, b = b, a
        (d, e), f, g, h = (a, b), b, c, a
        s += a - b + c + d - e + f - g + h
    return s


print(unpacks([(1, 2, 3)] * 40), unpacks([[1.5, 2, 3]] * 40), unpacks([(i, i, i) for i in range(40)]), unpacks([(1, 2, 3), [4, 5, 6]] * 40))
for bad in ((1, 2), (1, 2, 3, 4), [1, 2], [], 5, "abc"):
    try:
        print(unpacks([(1, 2, 3), [3, 2, 1]] * 20 + [bad]))
    except (ValueError, TypeError) as e:
        print(e)


def cells(n):
    count, last = 0, 1.5
    def bump(d):
        nonlocal count, last
        count = count + d
        last = last * 1.125
        return count
    for i in range(n):
        bump(i)
    return count, last, bump(0)


print(cells(50))


def strings(words):
    n = 0
    for w in words:
        if w == "a": n += 1
        elif w != "b": n += 10
    return n


print(strings(["a", "b", "c"] * 20), strings(["a", 1, None] * 5))


def walk(node):
    n = 0
    while node is not None:
        node, value = node
        if value: n += 1
        if not value: n += 100
    return n


chain = None
for i in range(60):
    chain = (chain, [0, 1, "", "s", [], [0], None, 0.0][i % 8])
print(walk(chain))


def replaced(n):
    out = []
    for i in range(n):
        if i == 30: globals()["len"] = lambda v: 42
        out.append(len("abc"))
    del globals()["len"]
    return out


print(replaced(40)[25:35])


class Ordered:
    def __init__(self, kind):
        if kind == 0:
            self.a = kind
            self.b = kind + 0.5
            self.c = "c"
        elif kind == 1:
            self.c = 1.5 * kind
            self.a = None
            self.b = kind * 3
        else:
            self.b = self
            self.c = kind + 1
            del self.b
            self.b = 2.5
            self.a = kind


for i in range(60):
    seen = [{name: value for name, value in vars(Ordered(kind)).items()} for kind in range(3)]
print(seen, [sys.getrefcount(Ordered(0).c) >= 2, list(Ordered(2).__dict__)])


class Liar:
    @property
    def __class__(self): return int


class Asked:
    def __getattribute__(self, name):
        print("asked for", name)
        return object.__getattribute__(self, name)


class Meta(type):
    def __instancecheck__(cls, instance): return isinstance(instance, float)


class Checks(metaclass=Meta):
    pass


class Plain(Ordered):
    pass


def sorts(objects, cls):
    counts = [0, 0]
    for each in objects:
        if isinstance(each, cls):
            counts[1] += 1
        else:
            counts[0] += 1
        if not isinstance(each, (int, str)):
            counts[0] += 10
    return counts


objects = [1, True, 2.5, "a", None, Ordered(0), Plain(1), int, Ordered, [], Liar()]
for cls in (int, str, (int, float), (str, (int, list)), Ordered, object, type, Checks, Liar, (), type(None)):
    for _ in range(4):
        counts = sorts(objects * 12, cls)
    print(cls if isinstance(cls, tuple) else cls.__name__, counts)
print(sorts([Asked()], int))
for bad in (5, "a", (int, 5), None):
    try:
        print(sorts([1.5] * 40, bad))
    except TypeError as e:
        print(e)
