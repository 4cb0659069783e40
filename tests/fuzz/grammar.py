"""Expands the grammar's tables (*.def) into Python text.

Purpose: random programs from tables, one row a production; generate.py puts the parts together. Inputs: the tables, a random.Random.
Outputs: text. Invariants: the same tables and seed give the same text on every version that has the same rows.

Tables: `[name]` starts a section of one-line rows, `[[name]]` one of rows separated by empty lines; `#` starts a comment line. Before a row
may stand `3*`, its weight, and `@3.12`, the first version that has it. In rows
    {name}        an expansion of the section; now and then, of another kind of value
    {$name}       a variable of this kind that is in scope; a row that finds none is not taken
    {=name}       a variable of the own scope that gets this kind from here on
    {block}       statements, on a line of its own, as deep as it stands
    {loop}        {block} in which break and continue may stand; {plain}: one that nothing leaves (of except*)
    {body ...}    the body of a function, with the parameters' names and kinds: `{body x:int rest:tuple}`; `{body* ...}` of a generator,
                  `{body~ ...}` of a coroutine, `{body^ ...}` of an asynchronous generator
    {members}     the body of a class
"""

import os
import re
import sys

HOLE = re.compile(r"\{([=$]?)([a-z]+)([*~^]?)((?: \w+:\w+)*)\}")
# Kinds of values that may stand where another is asked for. None and functions are not among them: their hashes and texts have addresses.
CONFUSABLE = ("int", "float", "str", "bytes", "bool", "list", "tuple", "dict", "obj")
MAX_DEPTH = 3
ASSIGNED = re.compile(r" *[LD]0 (\W|//)?=")


class Row:
    def __init__(self, text, weight):
        self.text, self.weight = text, weight
        self.leaf = not any(m[1] != "$" and m[2] not in ("lit", "small", "attr") for m in HOLE.finditer(text))


def load(folder, version=sys.version_info[:2]):
    """section -> rows."""
    sections = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".def") and name != "seeds.def":
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                _load(file.read(), sections, version)
    return sections


def _load(text, sections, version):
    rows, long, current = None, False, []

    def finish():
        if not current:
            return
        text = "\n".join(current)
        current.clear()
        prefix = re.match(r"(?:(\d+)\* ?)?(?:@(\d)\.(\d+) )?", text)
        if not prefix[2] or (int(prefix[2]), int(prefix[3])) <= version:
            rows.append(Row(text[prefix.end():], int(prefix[1] or 1)))

    for line in text.splitlines():
        if line.startswith("#"):
            continue
        header = re.fullmatch(r"(\[?)\[(\w+)\]\]?", line)
        if header:
            finish()
            rows, long = sections.setdefault(header[2], []), bool(header[1])
        elif not line.strip():
            finish()
        else:
            current.append(line)
            if not long:
                finish()
    finish()


FORMS = {"*": "generator", "~": "coroutine", "^": "asyncgen"}


class Scope:
    """A function, class or module body. leave: what may stand in it that leaves blocks."""

    def __init__(self, kind, parent=None, variables=(), form="", leave=()):
        self.kind, self.parent, self.form, self.leave = kind, parent, form, leave
        self.variables = dict(variables)


class NoRow(Exception):
    """A hole of a row cannot be filled."""


class Expander:
    def __init__(self, sections, rng):
        self.sections, self.rng = sections, rng
        self.scope = Scope("module")
        self.names = 0
        self.depth = 0
        self.nesting = 0  # of blocks and bodies

    # ---- names

    def fresh(self, prefix="v"):
        self.names += 1
        return f"{prefix}{self.names}"

    def visible(self, kind):
        """Variables of a kind that can be read here, the nearest scope's first."""
        found, scope = [], self.scope
        while scope is not None:
            if scope is self.scope or scope.kind != "class":
                found += [name for name, own in scope.variables.items() if own == kind and name not in found]
            scope = scope.parent
        return found

    def read(self, kind):
        names = self.visible(kind)
        if not names:
            raise NoRow
        # Own variables, the last of all scopes, and now and then any.
        return self.rng.choice(names[:6] if self.rng.random() < 0.7 else names)

    def name_to_bind(self, bound):
        own = [name for name in self.scope.variables if name not in bound and not name[0].isupper()]
        return self.rng.choice(own) if own and self.rng.random() < 0.4 else self.fresh()

    # ---- expansion

    def choose(self, section, leaf=False):
        rows = self.sections[section]
        if leaf:
            rows = [row for row in rows if row.leaf] or rows
        return self.rng.choices(rows, [row.weight for row in rows])[0]

    def expand(self, section):
        """Text of a section's row."""
        for _ in range(20):
            row = self.choose(section, leaf=self.depth > MAX_DEPTH)
            try:
                return self.fill(row.text)
            except NoRow:
                continue
        raise NoRow

    def value(self, kind):
        """Text of an expression."""
        if kind in CONFUSABLE and self.rng.random() < 0.02:
            kind = self.rng.choice(CONFUSABLE)
        if hasattr(self, "make_" + kind):
            return getattr(self, "make_" + kind)()
        if self.rng.random() < (0.8 if self.depth > MAX_DEPTH else 0.35):
            names = self.visible(kind)
            if names:
                return self.read(kind)
        self.depth += 1
        try:
            return self.expand(kind)
        finally:
            self.depth -= 1

    def fill(self, template):
        """A row with its holes filled, in the order of the text; names are bound at the end of their line."""
        pieces, position, bound = [], 0, {}
        for match in HOLE.finditer(template):
            pieces.append(template[position:match.start()])
            if "\n" in pieces[-1] or ":=" in pieces[-1]:
                self.scope.variables.update(bound)
            position = match.end()
            sort, name, form, words = match.groups()
            if sort == "$":
                piece = self.read(name)
            elif sort == "=":
                piece = self.name_to_bind(bound)
                bound[piece] = name
            elif name in ("block", "loop", "plain", "body", "members"):
                before = "".join(pieces)
                margin = " " * (len(before) - before.rfind("\n") - 1)
                parameters = [word.split(":") for word in words.split()]
                lines = getattr(self, name)(*((form, parameters) if name == "body" else ()))
                piece = ("\n" + margin).join(lines)
            else:
                piece = self.value(name)
            pieces.append(piece)
        pieces.append(template[position:])
        self.scope.variables.update(bound)
        return "".join(pieces)

    # ---- blocks

    def statements(self, section, count):
        lines = []
        for _ in range(count):
            before = dict(self.scope.variables)
            try:
                lines += self.expand(section).split("\n")
            except NoRow:
                self.scope.variables = before
        return lines

    def section_of_statements(self):
        chance, scope = self.rng.random(), self.scope
        if chance < 0.12 and scope.leave:
            return self.rng.choice(scope.leave)
        if chance < 0.35 and scope.form:
            return {"asyncgen": "coroutine"}.get(scope.form, scope.form)
        return "simple" if self.nesting > 3 or self.rng.random() < 0.5 else "compound"

    def block(self, leave=None):
        outer = self.scope.leave
        if leave is not None:
            self.scope.leave = leave
        self.nesting += 1
        try:
            lines = []
            for _ in range(self.rng.randint(1, 3)):
                lines += self.statements(self.section_of_statements(), 1)
            return lines or ["pass"]
        finally:
            self.nesting -= 1
            self.scope.leave = outer

    def loop(self):
        return self.block(["returning", "leaving"] if "returning" in self.scope.leave else ["leaving"])

    def plain(self):
        return self.block([])

    def body(self, form, parameters):
        outer, depth = self.scope, self.depth
        form = FORMS.get(form, "")
        self.scope = Scope("function", outer, parameters, form, ["returning"] if form != "asyncgen" else [])
        self.depth = 0
        self.nesting += 1
        try:
            lines = ["T()", *self.declarations()]
            for _ in range(self.rng.randint(1, 4 if self.nesting < 3 else 2)):
                lines += self.statements(self.section_of_statements(), 1)
            if form in ("generator", "coroutine"):
                lines += self.statements(form, 1)
            if form == "generator" and not any("yield" in line for line in lines):
                lines.append("yield 0")
            if form != "asyncgen" and self.rng.random() < 0.9:
                lines += self.statements("ending", 1)
            if any(ASSIGNED.match(line) for line in lines):
                lines.insert(0, "global L0, D0")
            return lines
        finally:
            self.scope, self.depth = outer, depth
            self.nesting -= 1

    def declarations(self):
        """nonlocal or global, now and then."""
        outer, chance = self.scope.parent, self.rng.random()
        names = [name for name, kind in outer.variables.items() if outer.kind == "function" and name[0] == "v"]
        if names and chance < 0.4:
            name = self.rng.choice(names)
            self.scope.variables[name] = outer.variables[name]
            return [f"nonlocal {name}"]
        if chance > 0.85:
            name = self.rng.choice(["G0", "G1", "G2"])
            self.scope.variables[name] = "int"
            return [f"global {name}"]
        return []

    def members(self):
        outer, depth = self.scope, self.depth
        self.scope, self.depth = Scope("class", outer), 0
        self.nesting += 1
        try:
            return self.statements("member", self.rng.randint(2, 7)) or ["pass"]
        finally:
            self.scope, self.depth = outer, depth
            self.nesting -= 1
