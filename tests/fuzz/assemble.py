"""Programs of hand-made functions: random instructions in orders that the compiler never produces.

Purpose: stack shuffling between operands, jumps into what could be a fused pair, handlers that begin in the middle of an expression, deleted
  and unbound locals. Inputs: a seed; in a program, rows of instructions. Outputs: the text of a program that calls function(rows);
  functions. Invariants: depths agree on all paths (codes.Body checks it when the function is made: a program with rows left out raises),
  jumps back are counted, NULL is only where CPython wants it.
Tests: run.py.
"""

import random
import types

import codes
from codes import Inst
from mutate import SINCE_312, SINCE_313, comparison

LOCALS = ("a", "b", "c", "d", "i", "f", "o", "l")
CONSTANTS = (0, 1, 2, -1, 3.5, "x", "yz", (1, 2), 1 << 59, None, True, 0.5)
NAMES = ("G0", "O0", "a", "m0", "len", "zz", "abs", "append")
BINARY = (0, 1, 2, 6, 7, 10, 11, 12, 13, 14, 15, 19, 20, 23, 25)
ENTERS = {"CALL", "PRECALL", "LOAD_ATTR", "BINARY_SUBSCR", "LOAD_METHOD"}
UNARY = ("UNARY_NEGATIVE", "UNARY_NOT", "UNARY_INVERT")


class Maker:
    """Rows of one function: [label or "", name, argument, label of the target or "", handler or None]."""

    def __init__(self, rng):
        self.rng, self.rows, self.depth, self.labels = rng, [], 0, 0
        self.values = 1000  # how deep the stack has nothing but values: a call's NULL stands above
        self.handlers = [None]  # [label, depth, lasti], innermost last

    def emit(self, name, arg=0, target="", change=None):
        # An exception goes to the innermost handler whose values stay on the stack.
        left = min(self.depth - codes.pops(Inst(name, arg)), self.values)
        handler = next((handler for handler in reversed(self.handlers) if handler is None or handler[1] <= left), None)
        self.rows.append(["", name, arg, target, handler])
        self.depth += codes.effect(Inst(name, arg), False) if change is None else change

    def label(self):
        self.labels += 1
        return f"L{self.labels}"

    def here(self, label):
        """The next row has this label."""
        self.emit("NOP")
        self.rows[-1][0] = label

    # ---- values

    def load(self):
        chance = self.rng.random()
        if chance < 0.6:
            self.emit("LOAD_FAST_CHECK" if SINCE_312 else "LOAD_FAST", self.rng.randrange(len(LOCALS)))
        elif chance < 0.85:
            self.emit("LOAD_CONST", self.rng.randrange(len(CONSTANTS)))
        else:
            self.emit("LOAD_GLOBAL", self.rng.choice((0, 1)) << 1)

    def need(self, count):
        while self.depth < count:
            self.load()

    def step(self):
        self.rng.choice((self.load, self.load, self.load, self.operate, self.operate, self.store, self.shuffle, self.shuffle, self.compare,
                         self.build, self.unpack, self.attribute, self.call, self.branch, self.loop, self.guarded, self.delete))()

    def steps(self, low=1, high=4):
        for _ in range(self.rng.randint(low, high)):
            if len(self.rows) < 120:
                self.step()

    def operate(self):
        self.need(2)
        if self.rng.random() < 0.2:
            self.emit(self.rng.choice(UNARY)) if not SINCE_313 else self.emit("UNARY_NEGATIVE")
        else:
            self.emit("BINARY_OP", self.rng.choice(BINARY))

    def compare(self):
        self.need(2)
        way = self.rng.random()
        self.emit("COMPARE_OP", comparison(self.rng.randrange(6))) if way < 0.6 else self.emit("IS_OP", self.rng.randrange(2)) if way < 0.8 else \
            self.emit("CONTAINS_OP", self.rng.randrange(2))

    def store(self):
        self.need(1)
        self.emit("STORE_FAST", self.rng.choice((0, 1, 2, 3)))

    def delete(self):
        local = self.rng.choice((1, 2, 3))
        self.emit("DELETE_FAST", local)

    def shuffle(self):
        self.need(2)
        depth = self.rng.randint(1, self.depth)
        self.emit(*self.rng.choice((("SWAP", depth), ("COPY", depth), ("COPY", 1), ("SWAP", 2), ("POP_TOP",), ("NOP",))))

    def build(self):
        count = self.rng.randint(0, 3)
        self.need(count)
        self.emit(self.rng.choice(("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING", "BUILD_TUPLE")), count)

    def unpack(self):
        self.need(2)
        self.emit("BUILD_TUPLE", 2)
        if self.rng.random() < 0.3:
            self.emit("COPY", 1)
        self.emit("UNPACK_SEQUENCE", 2)

    def attribute(self):
        self.need(2)
        way = self.rng.randrange(4)
        if way == 0:
            self.emit("LOAD_ATTR", NAMES.index("a") << 1 if SINCE_312 else NAMES.index("a"))
        elif way == 1:
            self.emit("STORE_ATTR", NAMES.index("a"))
        else:
            self.emit("BINARY_SUBSCR")

    def call(self):
        """Of a local, a method or a builtin, with what is on the stack as an argument."""
        count = self.rng.randrange(3)
        way = self.rng.randrange(3)
        self.values = self.depth
        if way == 0:
            self.emit("LOAD_GLOBAL", NAMES.index(self.rng.choice(("len", "abs"))) << 1 | 1)
        elif way == 1:
            self.emit("LOAD_FAST_CHECK" if SINCE_312 else "LOAD_FAST", LOCALS.index("o"))
            self.emit("LOAD_ATTR", NAMES.index("m0") << 1 | 1) if SINCE_312 else self.emit("LOAD_METHOD", NAMES.index("m0"))
        else:
            if not SINCE_313:
                self.emit("PUSH_NULL")
            self.emit("LOAD_FAST_CHECK" if SINCE_312 else "LOAD_FAST", LOCALS.index("f"))
            if SINCE_313:
                self.emit("PUSH_NULL")
        for _ in range(count):
            self.load()
        if not SINCE_312:
            self.emit("PRECALL", count)
        self.emit("CALL", count)
        self.values = 1000

    # ---- control

    def condition(self):
        """A conditional jump on the top of the stack; its label is returned, the depth is that behind it."""
        if self.rng.random() < 0.5:
            self.compare()
        self.need(1)
        if SINCE_313:
            self.emit("TO_BOOL")
        label = self.label()
        name = self.rng.choice(("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE"))
        self.emit(name if SINCE_312 else name.replace("_IF", "_FORWARD_IF"), 0, label, -1)
        return label

    def level(self, depth):
        """Brings the stack to a depth."""
        self.need(depth)
        while self.depth > depth:
            if self.depth > depth + 1 and self.rng.random() < 0.4:
                self.emit("SWAP", 2)
            self.emit("POP_TOP")

    def branch(self):
        label = self.condition()
        depth = self.depth
        self.steps()
        if self.rng.random() < 0.5:
            self.level(depth)
            if self.rng.random() < 0.4:
                self.load()
                self.emit("POP_TOP")
            self.here(label)
            return
        end = self.label()
        after = self.depth
        self.emit("JUMP_FORWARD", 0, end)
        self.here(label)
        self.depth = depth
        self.steps()
        self.level(after)
        self.here(end)

    def loop(self):
        """Runs until local i is used up; the loop may be entered in its middle."""
        if sum(row[1] == "JUMP_BACKWARD" for row in self.rows) > 1:
            return self.load()
        top, end, inside = self.label(), self.label(), self.label()
        depth = self.depth
        enter = self.rng.random() < 0.4
        if enter:
            self.emit("JUMP_FORWARD", 0, inside)
        self.here(top)
        self.steps()
        self.level(depth)
        if enter:
            self.here(inside)
        self.emit("LOAD_GLOBAL", NAMES.index("zz") << 1)  # a list that gets shorter
        self.emit("LOAD_ATTR", NAMES.index("append") << 1) if SINCE_312 else self.emit("LOAD_ATTR", NAMES.index("append"))
        if SINCE_313:
            self.emit("TO_BOOL")
        name = "POP_JUMP_IF_FALSE" if SINCE_312 else "POP_JUMP_FORWARD_IF_FALSE"
        self.emit(name, 0, end, -1)
        self.emit("JUMP_BACKWARD", 0, top)
        self.here(end)

    def guarded(self):
        """Steps whose exceptions are handled here, with values below on the stack."""
        handler, end = self.label(), self.label()
        outer = self.handlers[-1]
        kept = self.rng.randint(0, self.depth)
        base, start = self.depth, len(self.rows)
        entry = [handler, kept, False]
        self.handlers.append(entry)
        for _ in range(self.rng.randint(1, 3)):
            self.step()
        self.handlers.pop()
        # Of what may enter a Python frame, CPython pushes the instruction or the end of its cache, as it was entered; of a pair of loads that it has
        # specialised (3.11), the first one, whichever raised.
        no_position = (*ENTERS, "LOAD_FAST")
        lasti = entry[2] = self.rng.random() < 0.5 and not any(row[1] in no_position for row in self.rows[start:])
        self.level(base)
        self.emit("JUMP_FORWARD", 0, end)
        self.here(handler)
        self.depth = kept + lasti + 1
        self.handlers.append(outer)
        way = self.rng.randrange(4)
        self.emit("PUSH_EXC_INFO")  # ..., (lasti), previous, exception
        if way == 0:
            self.emit("POP_TOP")
        elif way == 1:
            self.emit("STORE_FAST", 3)
        elif way == 2:
            self.emit("LOAD_CONST", 1)
            self.emit("SWAP", 2)
            self.emit("STORE_FAST", 2)
            self.emit("POP_TOP")
        else:
            self.emit("COPY", 1)
            self.emit("STORE_FAST", 3)
            self.emit("SWAP", 2)
            self.emit("POP_EXCEPT")
        if way != 3:
            self.emit("POP_EXCEPT")
        self.handlers.pop()
        if self.rng.random() < 0.2:
            self.emit("LOAD_FAST_CHECK" if SINCE_312 else "LOAD_FAST", 3)
            self.emit("RAISE_VARARGS", 1)
        self.level(base)
        self.here(end)


def function(rows, names):
    """The function of rows, with names as its globals. It takes its locals as arguments."""
    def template(a, b, c, d, i, f, o, l):
        return None
    code = template.__code__.replace(co_consts=CONSTANTS, co_names=NAMES, co_name="made", co_qualname="made", co_firstlineno=1)
    body = codes.Body(code)
    start = next(inst for inst in body.insts if inst.name == "RESUME")
    insts = [Inst(name, arg, position=(number + 2, number + 2, 0, 5)) for number, (_, name, arg, _, _) in enumerate(rows)]
    labels = {row[0]: inst for row, inst in zip(rows, insts) if row[0]}
    for (_, _, _, target, handler), inst in zip(rows, insts):
        if target:
            inst.target = labels[target]
        if handler:
            inst.handler = (labels[handler[0]], handler[1], bool(handler[2]))
    for inst, after in zip(insts, insts[1:]):
        if after.name == "CALL" and inst.name == "PRECALL":  # either may be the one that makes the call
            after.position = inst.position
    body.insts[:] = [start, *insts]
    depth = max(body.depths().values())
    return types.FunctionType(body.build(co_stacksize=depth + 1), names)


def generate(seed):
    """The text of program number `seed`."""
    rng = random.Random(f"assembled {seed}")
    lines = ["class Countdown:", "    left = 0", "    @property", "    def append(self):", "        self.left -= 1", "        return self.left > 0",
             "zz, G0, O0 = Countdown(), 7, Base(3)"]
    for number in range(rng.randint(3, 6)):
        maker = Maker(rng)
        maker.need(rng.randint(0, 3))
        while len(maker.rows) < rng.choice((10, 20, 40, 60)):
            maker.steps()
        maker.need(1)
        maker.emit("BUILD_TUPLE", maker.depth)
        maker.emit("RETURN_VALUE")
        lines.append(f"rows = []")
        lines += [f"rows.append({row!r})" for row in maker.rows]
        lines += [f"f{number} = assembled(rows, globals())"]
    lines += ["values = [1, 2, 3.5, 'x', [1, 2], O0, 1 << 61, (4, 5), None, -7]",
              "def run(f, g):",
              "    for n in range(24):",
              "        zz.left = 4",
              "        k = n // 8",
              "        try: log(f(values[n % 3 + k], values[n % 2 + k], values[(n + k) % 10], values[k], n, g, O0, [1]))",
              "        except Exception as error: log(error)"]
    lines += [f"run(f{k}, {g})" for k in range(number + 1) for g in ("len", "lambda *x: x")]
    return "\n".join(lines) + "\n"
