"""Makes random programs from the grammar's tables.

Purpose: plain Python programs that use the whole language in loops that run often enough for specialised and fused code, and that
  change classes, functions, globals and builtins in the middle of them. Inputs: a seed. Outputs: the text of a program, which prelude.py and
  worker.py give the names it uses.
Invariants: same seed and Python version, same text. Programs end, show nothing that depends on addresses or time, and read only what
  they define or what prelude.py defines.
Tests: run.py.
"""

import os
import random
import warnings

from grammar import Expander, NoRow, load

FOLDER = os.path.dirname(os.path.abspath(__file__))
SECTIONS = load(FOLDER)
CLASSES, FUNCTIONS, GENERATORS, COROUTINES, ASYNC_GENERATORS, OBJECTS = 4, 4, 2, 2, 1, 4


class Generator(Expander):
    """The expander with the holes that name a program's parts."""

    def __init__(self, rng):
        super().__init__(SECTIONS, rng)
        self.classes = ["Base"]
        self.current = ""  # function that is being made
        self.scope.variables = {"L0": "list", "D0": "dict", **{f"O{i}": "obj" for i in range(OBJECTS)}}

    def make_cls(self):
        own = self.visible("cls")
        return self.rng.choice(own if own and self.rng.random() < 0.2 else self.classes)

    def make_obj(self):
        chance = self.rng.random()
        own = [name for name in self.visible("obj") if name[0] != "O"]
        if own and chance < 0.5:
            return self.rng.choice(own)
        if chance < 0.9:
            return f"O{self.rng.randrange(OBJECTS)}"
        return f"{self.make_cls()}({self.value('int') if self.depth < 3 else 1})"

    def make_fname(self):
        return self.current

    def part(self, letter, count):
        return f"{letter}{self.rng.randrange(count)}"

    def make_ggen(self):
        return self.part("A", GENERATORS)

    def make_gco(self):
        return self.part("B", COROUTINES)

    def make_gag(self):
        return self.part("X", ASYNC_GENERATORS)

    def make_call(self):
        return f"{self.part('F', FUNCTIONS)}({self.value('arguments')})"

    def make_gencall(self):
        return f"{self.make_ggen()}({self.value('int')})"

    def make_cocall(self):
        return f"{self.make_gco()}({self.value('int')})"

    def make_agencall(self):
        return f"{self.make_gag()}({self.value('int')})"


def piece(expander, section):
    """Text of one part that compiles, or None."""
    for _ in range(8):
        variables = dict(expander.scope.variables)
        try:
            text = expander.fill(expander.choose(section).text)
            compile(text, "piece", "exec", dont_inherit=True)
            return text
        except (NoRow, SyntaxError):
            pass
        finally:
            expander.scope.variables = variables
    return None


def indent(text):
    return "\n".join("    " + line if line else line for line in text.split("\n"))


def generate(seed):
    """The text of program number `seed`."""
    warnings.simplefilter("ignore", SyntaxWarning)
    rng = random.Random(f"program {seed}")
    made = Generator(rng)
    parts = ["G0, G1, G2, L0, D0 = 1, 2, 3, [1, 2, 3, 4], {'a': 1, 'k': 2}"]
    for number in range(CLASSES):
        base = made.fill(made.choose("base").text)
        text = f"class C{number}({base}):\n" + indent("\n".join(made.members()))
        made.classes.append(f"C{number}")
        try:
            compile(text, "piece", "exec", dont_inherit=True)
        except SyntaxError:
            text = f"class C{number}(Base): pass"
        # A class that cannot be made is replaced by one that can.
        parts.append(f"try:\n{indent(text)}\nexcept Exception as error:\n    log(error)\n    class C{number}(Base): pass")
    parts.append("O0, O1, O2, O3 = make(C0), make(C1), make(C2), make(C3)")
    for letter, section, count in (("F", "function", FUNCTIONS), ("A", "gfunction", GENERATORS), ("B", "cofunction", COROUTINES),
                                   ("X", "agfunction", ASYNC_GENERATORS)):
        for number in range(count):
            made.current = f"{letter}{number}"
            parts.append(piece(made, section) or f"def {made.current}(*rest): return rest")
    for number in range(rng.randint(3, 7)):
        text = piece(made, "step")
        if text is not None:
            changed = "\n    global " + ", ".join(["G0", "G1", "G2", "L0", "D0", "O0", "O1", "O2", "O3", *(f"F{i}" for i in range(FUNCTIONS))])
            step = f"def step{number}():{changed}\n{indent(text)}"
            try:
                compile(step, "piece", "exec", dont_inherit=True)
            except SyntaxError:
                continue
            parts.append(f"{step}\nattempt(step{number})")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    import sys
    print(generate(int(sys.argv[1])))
