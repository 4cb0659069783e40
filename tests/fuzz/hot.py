"""Makes programs for native runs: small functions that become hot and then meet other types, objects and classes.

Purpose: guards that fail in the middle of expressions and loops, values that live in registers there, objects that die under a run and
  change what it relies on. Inputs: a seed. Outputs: the text of a program, for worker.py. Invariants: same seed, same text; products of
  two growing numbers do not stand in loops, so that programs end soon; each function keeps to its own lists and objects.
Tests: run.py.
"""

import random
import re

# In templates: {n} number or what has taken its place, {m} the same without growing, {q} what loops may multiply with, {c} condition, {v} local,
# {sum} a sum of few locals, which numbers of two digits take past 64 bits, {k} index, {l} list, {s} sequence, {d} dict, {e} key, {o} object, {a} attribute,
# {t} string, {f} literal; {b} block, {w} block of a loop.
NUMBER = """
8* {v}
4* {f}
4* i
({n} + {m})
2* ({n} + {m})
2* ({n} - {n})
3* ({n} * {q})
4* ({sum})
({n} / {n})
({n} / {f})
({n} // {n})
({n} % {n})
({n} % 7)
({n} & {n})
({n} & 1023)
({n} | {n})
({n} ^ {n})
({n} << ({n} & 15))
({n} << 3)
({n} >> ({n} & 31))
({n} >> 2)
({f} ** (i % 4))
-{v}
-({n} - {n})
~{v}
+{v}
4* {o}.{a}
3* {l}[{k}]
2* {s}[{k}]
2* {d}[{e}]
2* len({l})
len({s})
({n} if {c} else {n})
({v} := {n})
({n} and {n})
({n} or {n})
({c})
2* {o}.m({n})
{o}.n
h({n})
g0
g1
cell
"""
LEAF = """
6* {v}
4* {f}
4* i
2* {o}.{a}
2* {l}[{k}]
{d}[{e}]
g0
cell
"""
SMALL = """
{f}
i
({n} % 5)
({n} & 15)
"""
INDEX = """
i
3* 0
2* 1
2* -1
2* (i & 3)
4* i % 5
-(i % 5)
{v}
len({l}) - 1
{n}
i // 2
"""
CONDITION = """
3* {n} < {n}
{n} <= {f}
2* {n} == {n}
{n} != {n}
{n} > {n}
{n} >= {n}
{n} < {n} <= {n}
{n} == {n} != {n}
{v} is {v}
{v} is not {v}
{n} is None
{v} is None
{v} is not None
not {c}
{c} and {c}
{c} or {c}
2* {t} == {t}
{t} != {t}
{v}
{n}
{l}
{v} in {s}
{o} is {o}
i % 3 == 1
{t} in d
{t} not in d
2* {t} in {'k', 'kk', 2, None}
{t} in 'kskk'
{t} in ('k', 'w', 1)
{t}[{k}] == 'k'
{t}[{k}] in 'sk'
"""
STRING = """
2* 'k'
'kk'
2* w
t
w[{k}]
'kwk'[{k}]
{v}
{d}['t']
"""
STATEMENT = """
8* {v} = {n}
2* {v} += {n}
2* {v} -= {n}
{product}
{v} /= {n}
{v} //= {n}
{v} %= {n}
{v} &= {n}
{v} |= {n}
{v} ^= {n}
{v} <<= 1
{v} >>= 1
2* {v} = {v} = {n}
{v} = {v} = {v} = {n}
2* {v}, {v} = {v}, {v}
{v}, {v} = {n}, {n}
{v}, {v}, {v} = {n}, {v}, {n}
{v}, {v}, {v}, {v} = {n}, {v}, {v}, {n}
5* {targets} = s
{v}, ({targets}) = {n}, s
{v}, {v}, {v} = l
4* {o}.{a} = {n}
3* {o}.{a} += {n}
{o}.{a} = {o}.{a} = {n}
{o}.{a}, {o}.{a} = {o}.{a}, {o}.{a}
{o}.{a} = {l}[{k}] = {v} = {n}
keep.append(({o}.{a} is {v}, {l}[0] is {v}, {o}.{a} is {o}.{a}))
2* {o}.q = {n}
{v} = {o}.q
del {o}.q
del {o}.{a}
{v} = {l}[{k}] + {l}[{k}] - {l}[{k}] - ({n} - {n})
{v} = ({n} + {q}) - ({n} + {q}) - (({n} - {q}) + ({n} - {q}))
{v} = h({n}) - {n} + o.m({n})
3* {l}[{k}] = {n}
4* {l}[{k}] += {n}
{l}[{k}] = {l}[{k}] = {n}
3* {l}[{k}], {l}[{k}] = {l}[{k}], {l}[{k}]
{d}[{e}] = {n}
{d}[{e}] += {n}
3* {append}
2* keep.append({v})
keep.append(({v} is {v}, {v}))
del {v}
3* {v} = x
2* {v} = {f}
{v} = None
{v} = Dying({f})
{v} = Dying({n})
{o}.{a} = Dying(i)
{l}[{k}] = Dying(i)
cell = {n}
cell += {n}
g0 = {n}
t = {t}
{v} = {o}.m({n})
{o}.m({n})
{o}.n = {n}
vars({o})
s = ({n}, {n})
s = [{n}, {n}, {n}]
4* if {c}:
    {b}
3* if {c}:
    {b}
else:
    {b}
try:
    {b}
except Exception as error:
    note(error)
"""
LOOP = """
4* for i in range({count}):
    {w}
2* for i in range({count}, -5, -3):
    {w}
for i in range({count}):
    {w}
    if {c}: break
else:
    {b}
2* for {v} in l:
    {w}
    if l[60:]: break
2* for {v} in s:
    {w}
for {v} in l:
    if l[30:]: break
    {w}
    l.append({v})
for {v} in l:
    for {v} in s:
        {w}
    if l[60:]: break
i = 0
while i < {count}:
    i += 1
    {w}
i = {count}
while i > 0 and ({c}):
    i -= 1
    {w}
for i in range({count}):
    for {v} in range(4):
        {w}
for i in range({count}):
    try:
        {w}
    except (TypeError, IndexError, KeyError, AttributeError, NameError, ValueError, ArithmeticError) as error:
        if i % 8 == 0: note(error)
"""
# What happens once in a loop.
TURN = """
6* {v} = {value}
2* {v} = 1.5
{v} = {n}
2* {o}.{a} = {value}
2* {l}[{k}] = {value}
{l}[2:5] = [{value}, {value}]
{d}['k'] = {value}
{d}[3] = 1
g0 = {value}
cell = {value}
x = y = u = {value}
s = ({value}, {value})
s = [{value}, {value}, {value}]
del {v}
del o.{a}
del d['k']
vars(o)
o.__class__ = {cls}
{cls}.m = lambda self, x: x
{cls}.n = 7
o.zz = 3
globals()['zz' + str(i)] = 1
keep[:] = l
t = {v}
l = {l} + [{value}]
l = s
o, p = p, o
"""
# What happens between two calls.
CHANGE = """
{cls}.m = lambda self, x: x
{cls}.m = other
{cls}.{a} = 7
{cls}.n = 8
{cls}.n = property(lambda self: 9)
{cls}.{a} = property(lambda self: 2.5)
del {cls}.m
del {cls}.{a}
{cls}.m = base_m
{cls}.__add__ = lambda self, other: 5
o.zz = 1
o.m = lambda x: x
del o.{a}
del o.m
vars(o)
vars(o)[{at}] = 3.5
vars(o).clear()
o.{a} = {value}
o.{a} = {value}
o = {cls}(1)
o = {cls}(2.5)
o.__class__ = {cls}
p = o
g0 = {value}
g1 = {value}
del globals()['g1']
globals()['len'] = lambda x: 3
globals().pop('len', None)
builtins.len = lambda x: 4
restore_builtins()
globals()['fresh' + str(n)] = n
globals()['h'] = lambda x: x
l[:] = [{value}, {value}, {value}, {value}, {value}, {value}]
l[:] = []
l = tuple(l)
l = Items(l)
l = list(l)
l = l + [{value}] * 30
d[5] = {value}
d['k'] = {value}
d.clear()
d = Missing(k=1)
s = ({value}, {value})
s = [{value}, {value}]
s = ({value}, {value}, {value})
s = [{value}, {value}, {value}, {value}]
s = ({value}, {value}, {value}, {value}, {value}, {value})
s = 'xyz'
s = {value}
w = 'kk'[:1] * 2
w = {value}
"""
VALUES = {
    "int": ("0", "1", "3", "-1", "-5", "-6", "7", "255", "256", "257", "1000", "-1000"),
    "wide": ("(1 << 30) - 1", "1 << 30", "-(1 << 30)", "(1 << 60) - 1", "1 << 60", "-(1 << 60)", "(1 << 62) + 5", "(1 << 63) - 1", "1 << 63",
             "-(1 << 63)", "-(1 << 63) - 1", "1 << 31", "(1 << 31) - 1", "1 << 53", "(1 << 53) + 1", "1 << 70"),
    "double": ("(1 << 60) - 1", "(1 << 60) - 9", "7 << 57", "1 - (1 << 60)", "-(7 << 57)"),
    "float": ("0.0", "1.5", "-2.25", "3.0", "1e10", "0.1", "-0.0"),
    "odd": ("float('inf')", "float('nan')", "-float('inf')", "1e308", "5e-324"),
    "bool": ("True", "False"),
    "none": ("None",),
    "sub": ("Whole(3)", "Whole(300)", "Real(1.5)", "Whole(1 << 40)"),
    "object": ("Num(2)", "Num(1.5)", "Num", "Dying", "Dying(3)"),
    "str": ("'k'", "'abc'", "''", "'kk'"),
}
LITERALS = ("0", "1", "2", "3", "-1", "7", "255", "256", "257", "1000", "1 << 29", "(1 << 30) - 1", "1 << 31", "1 << 32", "1 << 61", "0.5", "1.5", "-2.0", "1e300", "0.0")
ATTRIBUTES = ("a", "b", "c")
LOCALS = ("x", "y", "z", "u", "r")
CLASSES = ("P0", "P1", "P2", "P3", "P4")
# What takes the place of a list's items does not die in turn: an item that is being stored when the old one dies is held by CPython until
# after that, or not, as it has specialised the store.
DEATHS = """
log('died', self.a)
log('line', sys._getframe(1).f_lineno)
frame = sys._getframe(1); log('locals', frame.f_code.co_name, sorted(frame.f_locals))
log('locals', [cut(value) for value in sys._getframe(1).f_locals.values() if type(value) in (int, float, str)])
3* sys._getframe(1).f_locals['x'] = {value}
3* sys._getframe(1).f_locals[{local}] = {value}
lists[0].append(self.a)
del lists[0][2:]
lists[0][:] = [7, 1.5, 1 << 53]
objects[0].a = {value}
{cls}.m = lambda self, x: x
{cls}.{a} = {value}
objects[0].zz = 1
del objects[0].b
vars(objects[0])
objects[0].__class__ = P1
globals()['g0'] = {value}
globals()['len'] = lambda x: 6
1 / 0
dicts[0]['k'] = {value}
dicts[0][3] = {value}
setters[0]({value})
"""
HEAD = """
class Whole(int): pass
class Real(float): pass
class Items(list): pass
class Missing(dict):
    def __missing__(self, key): return 11
class Num:
    def __init__(self, a=1): self.a = a; self.b = 2
    def __add__(self, other): return self.a + 1
    def __radd__(self, other): return Num(self.a)
    def __sub__(self, other): return self.a
    def __mul__(self, other): return 3.5
    def __rmul__(self, other): return 4
    def __iadd__(self, other): return self
    def __lt__(self, other): return True
    def __eq__(self, other): return other is None
    def __hash__(self): return 3
    def __bool__(self): return self.a != 2
    def __getitem__(self, key): return 4
    def __setitem__(self, key, value): self.a = 6
    def __index__(self): return 1
    def __iter__(self): return iter((1, 2.5))
    def __neg__(self): return Num(1)
    def __len__(self): return 2
    def m(self, x): return x
class Dying(Num):
    armed = 40
    def __del__(self):
        if Dying.armed > 0:
            Dying.armed -= 1
            deaths[Dying.armed % len(deaths)](self)
def cut(value):
    if isinstance(value, int) and value.bit_length() > 3000: return value % ((1 << 61) - 1)
    return value
def note(*values): log(*[cut(value) for value in values])
length = len
def plan(*phases): return [values[k % length(values)] for count, values in phases for k in range(count)]
def fresh(value): return value() if value is Num or value is Dying else value
def fresh_of(n, each, *classes):
    made = classes[n // each % length(classes)](n)
    if n % 7 == 3: made.a = 2.5
    if n % 11 > 6 and type(made) is not P4: made.q = 1
    if n > 60 and n % 5 == 0 and type(made) is not P4: vars(made)
    return made
def other(self, x): return x * 2 if type(x) in (int, float) else 1
def base_m(self, x): self.c = x; return self.a
def h(x): return x
def is_long(value):
    if isinstance(value, int): return value.bit_length() > 200
    return isinstance(value, str) and len(value) > 40
def tame(o, p, l, d):
    global g0
    if isinstance(l, list):
        for k, value in enumerate(l):
            if is_long(value): l[k] = 3
        del l[40:]
    for key in list(d):
        if is_long(d[key]): d[key] = 4
    for each in o, p:
        for name in ('a', 'b', 'c', 'n', 'q'):
            if is_long(getattr(each, name, 0)): setattr(each, name, 5)
    if is_long(g0): g0 = 6
    del keep[200:]
class P0:
    def __init__(self, v): self.a = v; self.b = v; self.c = v
    def m(self, x): self.a = x; return self.b
    n = 3
class P1:
    a = 4
    def __init__(self, v): self.c = v; self.b = v
    def m(self, x): return self.c
    n = 4
class P2:
    __slots__ = ('a', 'b', 'n', '__dict__')
    def __init__(self, v): self.b = v; self.a = v; self.c = v; self.n = 5
    def m(self, x): return self.a
class P3(P0):
    @property
    def n(self): return self.a
    def __getattr__(self, name): return 12
class P4:
    __slots__ = ('c', 'b', 'a', '__weakref__')
    def __init__(self, v): self.a = v; self.b = 1; self.c = 2.5
    def m(self, x): self.b = x; return x
    n = 6
keep, g0, g1 = [], 1, 2.5
"""


def rows(text):
    """[(weight, template)]: a row goes on in lines that are indented or continue it."""
    found = []
    for line in text.strip("\n").split("\n"):
        weight, rest = re.fullmatch(r"(?:(\d+)\* )?(.*)", line).groups()
        goes_on = found and (line[:1] == " " or re.match(r"(else|except|while i)\b", line))
        if goes_on:
            found[-1][1] += "\n" + line
        else:
            found.append([int(weight or 1), rest])
    return [(weight, template) for weight, template in found]


TABLES = {"n": rows(NUMBER), "m": rows(LEAF), "q": rows(SMALL), "k": rows(INDEX), "c": rows(CONDITION), "t": rows(STRING)}
STATEMENTS, LOOPS, CHANGES, TURNS, DEATH_ROWS = rows(STATEMENT), rows(LOOP), rows(CHANGE), rows(TURN), rows(DEATHS)
LEAVES = {"n": rows(LEAF), "m": rows("{v}\n{f}\ni"), "q": rows("{f}\ni"), "k": rows("i\n0\n1\n-1"), "c": rows("{v} < {v}\n{v}\ni < 5"), "t": rows("'k'\nw")}


class Maker:
    def __init__(self, rng):
        self.rng, self.depth, self.nesting, self.loops = rng, 0, 0, 0
        self.flavour = "int"  # of most values
        self.deep = rng.choice((1, 2, 3, 4))
        self.count, self.length = 10, 2
        self.yields = False

    def choose(self, table):
        return self.rng.choices([template for _, template in table], [weight for weight, _ in table])[0]

    def fill(self, template):
        def piece(match):
            before = template[:match.start()]
            margin = " " * (len(before) - before.rfind("\n") - 1)
            return self.make(match[1]).replace("\n", "\n" + margin)
        return re.sub(r"\{(\w+)\}", piece, template)

    def make(self, hole):
        rng = self.rng
        if hole in TABLES:
            self.depth += 1
            try:
                while True:
                    template = self.choose((LEAVES if self.depth > self.deep else TABLES)[hole])
                    if self.fits(template):
                        return self.fill(template)
            finally:
                self.depth -= 1
        if hole == "product":
            name = self.make("v")
            return f"{name} *= {self.make('q')}" + (f"; {name} %= 1000003" if self.loops else "")
        if hole == "sum":
            names = rng.choices(LOCALS, k=rng.choice((1, 1, 2)))
            sign = rng.choice((" + ", " + ", " - "))
            return sign.join(rng.choice(names) for _ in range(rng.randint(3, 16)))
        if hole == "append":
            return self.fill("l.append({n})" if not self.loops else "if not l[60:]: l.append({n})")
        if hole in ("b", "w"):
            return self.block(hole == "w")
        if hole == "e":
            return rng.choice(("'k'", "'k'", "'kk'", "w", "w", "t", "t")) if rng.random() < 0.95 else rng.choice(("'t'", "5", "i", "'none'", self.make("v")))
        if hole == "items":
            return ", ".join([self.make("value") for _ in range(self.length)]) + ","
        if hole == "targets":
            count = self.length if rng.random() < 0.9 else rng.randint(1, 6)
            return ", ".join([rng.choice(LOCALS) for _ in range(count)]) + ","
        if hole == "v":
            return rng.choice(LOCALS)
        if hole == "f":
            if self.flavour == "str" and rng.random() < 0.8:
                return rng.choice(VALUES["str"])
            if self.flavour == "float" and rng.random() < 0.7:
                return rng.choice(("0.5", "1.5", "(-2.0)", "1e300", "0.0"))
            return f"({rng.choice(LITERALS)})" if rng.random() < 0.6 else str(rng.randint(-9, 300))
        if hole == "value":
            value = rng.choice(VALUES[self.kind(0.8)])
            return f"{value}(1)" if value in ("Num", "Dying") else value
        return {"l": lambda: "l", "s": lambda: rng.choice(("s", "s", "l")), "d": lambda: "d", "o": lambda: rng.choice(("o", "o", "p")),
                "a": lambda: rng.choice(ATTRIBUTES), "cls": lambda: rng.choice(CLASSES), "at": lambda: repr(rng.choice(ATTRIBUTES)),
                "local": lambda: repr(rng.choice((*LOCALS, "i", "l", "o"))), "count": lambda: str(self.count)}[hole]()

    def fits(self, template):
        """Whether a row is of use for the values of the function."""
        if self.flavour == "str":  # never multiplied: they would grow too long
            return "*" not in template and template != "{product}" and (self.rng.random() < 0.1 or not re.search(r"[-/&|^~]|<<|>>|\+\{", template))
        return self.flavour != "float" or self.rng.random() < 0.03 or not re.search(r"[&|^~]|<<|>>", template)

    def kind(self, usual):
        """A kind of VALUES, mostly that of the function's values."""
        if self.rng.random() < usual:
            return {"int": self.rng.choice(("int", "int", "int", "int", "wide", "double", "bool"))}.get(self.flavour, self.flavour)
        return self.rng.choice([kind for kind in VALUES if kind != "str" or self.flavour == "str"])

    def statement(self):
        while True:
            template = self.choose(STATEMENTS)
            if self.fits(template) and ("\n" not in template or self.nesting < 4):
                return self.fill(template)

    def careful(self, text):
        return text if self.rng.random() < 0.6 else f"try:\n{indent(text)}\nexcept Exception as error:\n    note(error)"

    def block(self, loop=False):
        self.nesting += 1
        self.loops += loop
        lines = [self.statement() for _ in range(self.rng.randint(1, 4 if loop else 2))]
        if loop and self.rng.random() < 0.4:  # another type from here on, or once
            lines.insert(self.rng.randrange(len(lines) + 1), self.fill(f"if i == {self.rng.randrange(self.count)}: " + self.choose(TURNS)))
        if loop and self.rng.random() < 0.15:
            lines.append(self.fill("if {c}: " + self.rng.choice(("continue", "continue", "break"))))
        if self.yields and self.rng.random() < 0.4:
            lines.append(self.fill("{v} = yield {n}"))
        self.loops -= loop
        self.nesting -= 1
        return "\n".join(lines)

    def body(self, loops):
        """Statements of a function."""
        lines = [self.careful(self.statement()) for _ in range(self.rng.randint(2, 10 if not loops else 4))]
        for _ in range(loops):
            self.loops += 1
            lines.append(self.careful(self.fill(self.choose(LOOPS))))
            self.loops -= 1
            lines.append(self.careful(self.statement()))
        return "\n".join(lines)

    def phases(self, few):
        """Values of one argument for all calls: of one kind, then of others for a while."""
        rng = self.rng
        usual = self.kind(0.9)
        found = [(rng.randint(3, 7) if few else rng.randint(20, 120), usual)]
        for _ in range(rng.randint(1, 5)):
            found.append((rng.choice((1, 1, 2, 5, 20)) if not few else 1, self.kind(0.2)))
            found.append((rng.choice((3, 10, 30)) if not few else 1, usual if rng.random() < 0.7 else self.kind(0.5)))
        texts = []
        for count, kind in found:
            values = [rng.choice(VALUES[kind]) for _ in range(rng.randint(1, 4))]
            texts.append(f"({count}, [{', '.join(values)}])")
        return f"plan({', '.join(texts)})"

    def function(self, number):
        """A function, what it works on, and the loop that calls it."""
        rng = self.rng
        self.flavour = rng.choices(("int", "float", "object", "str"), (10, 7, 2, 2))[0]
        kind = rng.choice(("plain", "plain", "plain", "closure", "method", "generator"))
        loops = rng.choice((0, 0, 1, 1, 2))
        self.count = rng.choice((4, 6, 20)) if loops else 4
        few = loops and rng.random() < 0.4
        if few:
            self.count = rng.choice((40, 100, 300)) // loops
        self.yields = kind == "generator"
        self.deep = rng.choice((1, 1, 1, 2, 2, 3, 4))
        self.length = rng.choice((1, 2, 2, 3, 3, 4, 5, 6))
        body = self.body(loops)
        start = "i, z, u, r, t = 1, x, y, 0, 'k'"
        names = "note(*[value for name, value in locals().items() if name in 'xyzur'])"
        guarded = rng.random() < 0.5
        inner = f"{start}\n{body}\n{names}" if not guarded else f"{start}\ntry:\n{indent(body)}\nexcept Exception as error:\n    note(error)\n{names}"
        parameters, globals_ = "x, y, o, p, l, s, d, w", "global g0"
        if kind == "closure":
            inner = f"{start}\ncell = y\ndef inside(k):\n{indent(f'nonlocal cell, x, y, z, u, r, t{chr(10)}global g0{chr(10)}i = k{chr(10)}{body}')}\n"
            inner += f"setters[:] = [lambda value: setter(value)]\ndef setter(value):\n    nonlocal cell, x\n    cell = x = value\n"
            inner += f"for k in range({2 if few else 6}):\n    try: inside(k)\n    except Exception as error: note(error)\n{names}"
            text = f"def f{number}({parameters}):\n{indent(inner)}"
        elif kind == "method":
            text = f"def f{number}(o, {parameters.replace('o, ', '')}):\n{indent(globals_)}\n    cell = y\n{indent(inner)}\nfor cls in P0, P1, P2, P3, P4: cls.f{number} = f{number}"
        else:
            text = f"def f{number}({parameters}):\n{indent(globals_)}\n    cell = y\n{indent(inner)}"
            if kind == "generator":
                text += "\n    yield 1"
        call = {"method": f"o.f{number}(fresh(x), fresh(y), p, l, s, d, w)"}.get(kind, f"f{number}(fresh(x), fresh(y), o, p, l, s, d, w)")
        if kind == "generator":
            call = f"list({call})" if rng.random() < 0.7 else f"[value for _, value in zip(range(9), {call})]"
        calls = 12 if few else rng.choice((100, 160, 160, 400))
        lines = ["global g0, g1", "restore_builtins()", "globals().pop('len', None)", "g0, g1, setters[:] = 1, 2.5, [cut]",
                 f"o, p = {self.make('cls')}({self.make('f')}), {self.make('cls')}({self.make('f')})",
                 self.fill("l, d, w = [{value}, {value}, 3, 4, 5, 6, 7, 8], {{'k': {value}, 'kk': {f}, 't': 'k'}}, 'k'").replace("{{", "{").replace("}}", "}"),
                 self.fill("s = " + rng.choice(("({items})", "[{items}]"))),
                 f"for n, (x, y) in enumerate(zip({self.phases(few)}, {self.phases(few)})):", f"    if n > {calls}: break",
                 "    lists[:], objects[:], dicts[:] = [l], [o], [d]", "    try:"]
        way = rng.random()
        if way < 0.3:  # other objects each time, of one class or several
            classes = ", ".join(rng.choices(CLASSES, k=rng.choice((1, 1, 2, 3))))
            lines.append(f"        o = fresh_of(n, {rng.choice((1, 1, 2, 40))}, {classes})")
        if way > 0.8:
            lines.append(self.fill("        p = {cls}({f})"))
        for at in sorted(rng.sample(range(5, calls), min(rng.randint(0, 6), calls - 5))):
            lines.append(f"        if n == {at}: {self.fill(self.choose(CHANGES))}")
        if rng.random() < 0.05:
            at = rng.randrange(calls)
            # CPython's evaluator takes over code that it has never specialised: what dies in the middle of a store does so later than in code that
            # it has. The dead do nothing from then on.
            lines += [f"        if n == {at}: Dying.armed = 0; sys.settrace(tracer)", f"        if n == {at + 1}: break"]
        lines += [f"        note(n, {call})" if kind == "generator" else f"        {call}",
                  "    except Exception as error:", "        note(n, error)", "    tame(o, p, l, d)"]
        # A frame that was traced stays CPython's, and holds the arguments of what it calls afterwards: nothing then.
        lines += ["note(l, d, keep[-8:], s, g0)", "sys.settrace(None)"]
        return f"{text}\ndef drive{number}():\n{indent(chr(10).join(lines))}\nattempt(drive{number})"


def indent(text):
    return "\n".join("    " + line if line else line for line in text.split("\n"))


def generate(seed):
    """The text of program number `seed`."""
    rng = random.Random(f"hot {seed}")
    maker = Maker(rng)
    deaths = ", ".join(f"death{k}" for k in range(3))
    parts = [HEAD.strip("\n"), "lists, objects, dicts, setters = [], [], [], []"]
    for k in range(3):
        parts.append(f"def death{k}(self):\n    {maker.fill(maker.choose(DEATH_ROWS))}")
    parts.append(f"deaths = [{deaths}]")
    for number in range(rng.randint(2, 4)):
        parts.append(maker.function(number))
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    import sys
    print(generate(int(sys.argv[1])))
