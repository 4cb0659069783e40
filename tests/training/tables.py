"""Reads the tables of training programs (*.def) and draws texts from their rows.

Inputs: the tables beside this file; a random.Random. Outputs: Row objects, and texts.
Tables: lines `A :: B :: C` (rows of one line), or in steps.def sections of rows of several lines; `#` starts a comment. In texts
  {a|b} stands for one of the texts between the bars, which may have braces themselves: rows have no other braces.
Tests: test_tables.py.
"""

import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))


class Row:
    """One row of a table: its columns, and where it stands."""

    def __init__(self, table, number, columns):
        self.table, self.number, self.columns = table, number, columns
        self.names = columns[0].split()

    def __getitem__(self, index):
        return self.columns[index] if index < len(self.columns) else ""

    def __repr__(self):
        return f"{self.table}:{self.number}: {' :: '.join(self.columns)}"


def load(table):
    """(rows, {name left out: why}) of a table of one-line rows."""
    rows, without = [], {}
    with open(os.path.join(HERE, table), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if not line.strip() or line.startswith("#"):
                continue
            columns = [column.strip() for column in re.split(r" ::(?= |$)", line)]
            if line.startswith("!"):
                without[columns[0][1:]] = columns[1]
            else:
                rows.append(Row(table, number, columns))
    return rows, without


class Block:
    """A row of several lines. before: lines for in front of the loop."""

    def __init__(self, lines):
        self.weight, self.needs, self.before, self.lines = 1, [], [], []
        for line in lines:
            word, _, rest = line.partition(": ")
            if word == "weight":
                self.weight = int(rest)
            elif word == "needs":
                self.needs = rest.split()
            elif word == "before":
                self.before.append(rest)
            else:
                self.lines.append(line)
        self.text = "\n".join(self.lines)

    def fits(self, words):
        return all((need[3:] not in words) if need.startswith("no-") else (need in words) for need in self.needs)


def load_blocks(table):
    """section -> Blocks."""
    sections, current, blocks = {}, [], None
    with open(os.path.join(HERE, table), encoding="utf-8") as file:
        for line in [*file.read().splitlines(), ""]:
            if line.startswith("#"):
                continue
            header = re.fullmatch(r"\[(\w+)\]", line)
            if header:
                blocks = sections.setdefault(header[1], [])
            elif line.strip():
                current.append(line)
            elif current:
                blocks.append(Block(current))
                current = []
    return sections


def draw(text, rng):
    """The text with one alternative taken of each {a|b}."""
    pieces, position = [], 0
    while True:
        start = text.find("{", position)
        if start < 0:
            pieces.append(text[position:])
            return "".join(pieces)
        pieces.append(text[position:start])
        depth, alternatives, begun = 0, [], start + 1
        for end in range(start, len(text)):
            character = text[end]
            if character == "{":
                depth += 1
            elif character == "}":
                depth -= 1
                if not depth:
                    break
            elif character == "|" and depth == 1:
                alternatives.append(text[begun:end])
                begun = end + 1
        else:
            raise ValueError(f"a brace is not closed: {text}")
        alternatives.append(text[begun:end])
        pieces.append(draw(rng.choice(alternatives), rng))
        position = end + 1


def closing(text, start):
    """The position of the parenthesis that closes the one at `start`."""
    depth = 0
    for position in range(start, len(text)):
        if text[position] in "([":
            depth += 1
        elif text[position] in ")]":
            depth -= 1
            if not depth:
                return position
    raise ValueError(f"a parenthesis is not closed: {text}")
