"""What every program finds defined: run in its globals before it, from code objects of its own.

Purpose: classes to inherit from, descriptors, keys with a life of their own, context managers, awaitables. Inputs: log, fuel.
Invariants: each call pays T(), so that no program runs for ever: when the fuel is gone, T raises IndexError until the next step.
"""
import builtins
import contextlib
import functools
import gc
import itertools
import math
import operator
import sys
import weakref

MASK = (1 << 80) - 1
T = fuel.pop
steps_left = []


class Base:
    k0, k1 = 5, 'k1'

    def __init__(self, a=1, b=2, *rest):
        self.a = a
        self.b = b
        self.c = 1.5
        self.d = []

    def m0(self, x=0): return self.a

    def m1(self, x=0, *rest): T(); return self.m0(x)

    def m2(self, *rest, **more): return rest, more

    @staticmethod
    def s0(x=0): return x

    @classmethod
    def s1(cls, x=0): T(); return cls.k0

    @property
    def p0(self): return self.b

    @property
    def p1(self): T(); return self.p0

    def __hash__(self): return len(type(self).__name__)

    def __repr__(self): return type(self).__name__

    def __add__(self, other): return self.a + other if type(other) is int else NotImplemented

    def __radd__(self, other): T(); return other

    def __neg__(self): T(); return -1

    def __getitem__(self, key): T(); return self.b

    def __call__(self, *rest): T(); return self.m0(*rest)

    def __iter__(self): T(); return iter((1, 2, self.a))

    def __lt__(self, other): T(); return self is not other

    def __enter__(self): T(); return self

    def __exit__(self, kind, error, trace): T(); return kind is KeyError


class Slots:
    __slots__ = ('a', 'b', 'c', 'd', '__weakref__')
    k0 = 6

    def __init__(self, a=3, b=4, *rest):
        self.a, self.b, self.d = a, b, []

    m0, m1, __hash__, __repr__, s1 = Base.m0, Base.m1, Base.__hash__, Base.__repr__, Base.__dict__['s1']
    p0 = Base.p0


class Meta(type):
    def __call__(cls, *rest, **more):
        T()
        return super().__call__(*rest, **more)

    def __getattr__(cls, name):
        T()
        if name == 'zz': return 1
        raise AttributeError(name)

    @property
    def k1(cls): return 'meta'

    def __instancecheck__(cls, value): T(); return type.__instancecheck__(cls, value)

    def __contains__(cls, key): return key == 1


class Data:
    def __init__(self, value): self.value = value

    def __get__(self, instance, owner=None): T(); return self.value if instance is not None else self

    def __set__(self, instance, value):
        T()
        self.value = value

    def __repr__(self): return 'Data'


class NonData:
    def __init__(self, value): self.value = value

    def __get__(self, instance, owner=None): T(); return self.value

    def __repr__(self): return 'NonData'


class K:
    """A key whose comparison may run something else, once."""
    armed = None

    def __init__(self, n): self.n = n

    def __hash__(self): return hash(self.n)

    def __eq__(self, other):
        T()
        armed, K.armed = K.armed, None
        if armed is not None: armed()
        return self.n == (other.n if type(other) is K else other)

    def __repr__(self): return f'K({self.n})'


class E0(Exception):
    def __init__(self, *rest, k=0):
        super().__init__(*rest)
        self.k = k


class manager:
    def __init__(self, value): self.value = value

    def __enter__(self): T(); return self.value

    def __exit__(self, kind, error, trace):
        log('exit', kind)
        return self.value == 1


class amanager:
    def __init__(self, value): self.value = value

    async def __aenter__(self): T(); return await Later(self.value)

    async def __aexit__(self, kind, error, trace):
        await Later(kind)
        return self.value == 1


class Later:
    def __init__(self, value): self.value = value

    def __await__(self):
        T()
        sent = yield self.value
        return self.value if sent is None else sent


def run_coroutine(coroutine, error=None):
    """Sends numbers until it returns, and throws once when asked to."""
    sent = None
    for i in range(30):
        try:
            if error is not None and i == 2:
                value, error = coroutine.throw(error), None
            else:
                value = coroutine.send(sent)
        except StopIteration as stop:
            return stop.value
        log(value)
        sent = None if i % 2 else i
    coroutine.close()
    return 'unfinished'


def identity(value, *rest, **more): return value


def memo(function):
    results = {}

    @functools.wraps(function)
    def wrapper(*rest, **more):
        try: return results[rest]
        except (KeyError, TypeError): pass
        value = results[rest[:1]] = function(*rest, **more)
        return value
    return wrapper


def budget():
    if steps_left:
        steps_left.pop()
        return True
    return False


def tracer(frame, event, argument):
    if frame.f_code.co_filename != '<program>': return None
    log(event, frame.f_code.co_name, frame.f_lineno)
    return tracer


def attempt(step):
    fuel[:] = [None] * 700
    steps_left[:] = [None] * 40
    try:
        step()
    except BaseException as error:
        log('step', error)
