# Specialised forms of calls, class attributes, slices and C slots, and what makes each of them wrong in the middle.
import array
import decimal


def hot(function, *arguments, times=80):
    result = None
    for _ in range(times):
        result = function(*arguments)
    return result


def attempt(function, *arguments):
    try:
        return function(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


# -- keywords and defaults
def target(a, b=2, *, c=3, d=4):
    return a, b, c, d


def by_keyword(a):
    return target(a, d=5), target(b=1, a=a), target(a, c=7)


print(hot(by_keyword, 1))
target.__defaults__ = (20,)
target.__kwdefaults__ = {"c": 30}
print(attempt(by_keyword, 1))
target.__kwdefaults__ = {"c": 30, "d": 40}
print(hot(by_keyword, 1))
target.__defaults__ = None
print(attempt(by_keyword, 1))


def positional(a, b=1, /, c=2):
    return a, b, c


def call_positional():
    return positional(0, c=5)


print(hot(call_positional))
positional.__code__ = (lambda a, b=1, c=2: (c, b, a)).__code__
print(hot(call_positional))


class Bound:
    def __init__(self, x, y=5):
        self.x, self.y = x, y

    def method(self, a, b=3):
        return self.x, self.y, a, b


def call_bound(method):
    return method(1), method(1, 2)


def make(cls):
    return cls(7).method(1), cls(7, 8).y


print(hot(call_bound, Bound(1).method), hot(call_bound, Bound(2, 3).method))
print(attempt(call_bound, Bound.method))
print(hot(make, Bound))


def other_init(self, *rest):
    self.x = self.y = rest


init = Bound.__init__
Bound.__init__ = other_init
print(hot(make, Bound))
Bound.__init__ = lambda self, x, y=1: 5
print(attempt(make, Bound))
Bound.__init__ = init
Bound.__new__ = lambda cls, *rest: Other()


class Other:
    x = y = 0
    method = Bound.method


print(hot(make, Bound))


class Meta(type):
    def __call__(cls, *arguments):
        return "called", super().__call__(*arguments).y


class Late(Bound):
    __new__ = object.__new__

    def __new__(cls, *rest):
        return object.__new__(cls)


def construct(cls):
    return cls(1)


class Plain:
    def __init__(self, x):
        self.y = x


print(hot(construct, Plain).y)


class Called(metaclass=Meta):
    def __init__(self, x):
        self.y = x


print(hot(construct, Called), attempt(construct, Plain).y)


# -- class attributes
class Base:
    value = 1

    @classmethod
    def of_class(cls):
        return cls.value

    @staticmethod
    def static():
        return "static"


class Derived(Base):
    pass


def ask(cls):
    bound = cls.of_class
    return cls.value, cls.of_class(), cls.static(), bound()


print(hot(ask, Derived))
Derived.value = 2
print(hot(ask, Derived))
Base.static = staticmethod(lambda: "changed")
print(hot(ask, Derived))
Base.of_class = classmethod(len)
print(attempt(ask, Derived))


class Sticky:
    def __set__(self, instance, value):
        print("stored", value)


class HasSticky:
    sticky = Sticky()


def through_sticky(instance):
    instance.sticky = 1
    return type(instance.sticky).__name__


one = HasSticky()
for _ in range(2):
    print(through_sticky(one))
one.__dict__["sticky"] = 5
print(through_sticky(one))
Sticky.__get__ = lambda self, instance, owner: "got"
print(through_sticky(one))


# -- attributes over several types
class A:
    def __init__(self):
        self.first, self.second = 1, 2

    def name(self):
        return "A", self.second


class B:
    def __init__(self):
        self.second, self.first = 3, 4

    def name(self):
        return "B", self.second


def several(things):
    found = []
    for thing in things:
        thing.second += 1
        found.append((thing.first, thing.second, thing.name()))
    return found


things = [A(), B(), A(), B()]
print(hot(several, things, times=200))
things[1].name = lambda: "own"
things[2].__dict__
print(hot(several, things))
del B.name
print(attempt(several, things))


# -- slices
def slices(sequence, i, j):
    return sequence[i:j], sequence[:j], sequence[i:], sequence[:]


def store(sequence, i, j, value):
    sequence[i:j] = value
    return sequence


numbers = list(range(10))
print(hot(slices, numbers, 2, -3), slices(numbers, 8, 2), slices(numbers, -100, 1 << 70), slices(numbers, None, None))
print(attempt(slices, numbers, "a", 1), slices("string", 1, 3), slices((1, 2, 3), 1, 2), slices(numbers, True, 4))
for value in ([1, 2], (3,), "ab", (c for c in "xyz"), {5: 6}):
    print(store(list(range(6)), 4, 1, value), store(list(range(6)), -2, None, value))
itself = [1, 2, 3]
print(store(itself, 1, 2, itself), attempt(store, [1], 0, 1, 5))


class Index:
    def __index__(self):
        return 1


print(slices(numbers, Index(), 3))


# -- C slots
def operate(a, b):
    return a + b, a * b, a - b, a / b


for a, b in ((1, 2.5), (2.5, 1), (3, 4), (decimal.Decimal(3), decimal.Decimal(4)), (1 << 70, 0.5), (True, 2.0), (2, decimal.Decimal(4))):
    print(hot(operate, a, b))
print(attempt(operate, 1.5, 0), attempt(operate, 1, 0), attempt(operate, 1.5, "a"))


def join(a, b):
    a += b
    return a + b


class Joining(list):
    def __radd__(self, other):
        return "radd"

    def __add__(self, other):
        return "add"


print(hot(join, [1], [2], times=3), join((1,), (2,)), join(b"a", b"b"), join([1], Joining([2])), join(Joining([1]), [2]))


def bits(a, b):
    return a | b, a ^ b, a & b, a << b, a >> b


print(hot(bits, 12, 5), hot(bits, (1 << 40) + 3, 70), bits(-12, 5), attempt(bits, 1, -1), bits(True, 3), hot(bits, 1 << 29, 31), attempt(bits, {1}, {2}))


def item(container, key):
    container[key] = container[key]
    return key in container, container[key]


for container, key in ((array.array("d", [1, 2]), 1), (bytearray(b"ab"), 1), ({1: 2}, 1), ([5, 6], -2)):
    print(hot(item, container, key))
print(attempt(item, array.array("d"), 0), attempt(item, bytearray(b"a"), 5))


def convert(x):
    return str(x), int(x)


print(hot(convert, 5), convert(2.5), attempt(convert, "a"), attempt(convert, None), convert("12"))


def truths(*values):
    return ["yes" if value else "no" for value in values], ["no" if not value else "yes" for value in values]


print(hot(truths, 0, 1, "", "a", [], [1], {}, {1: 1}, None, (), 0.0, object, set(), {1}, 1 << 70))
