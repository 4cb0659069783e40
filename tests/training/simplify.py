"""Makes a failing training program smaller: statements, then parts of expressions.

Inputs: a program's text; a function that tells whether a text still fails. Outputs: a smaller text.
Method: runs of neighbouring statements are removed, halves first, then quarters, down to single ones (tests/lib/shrink.py takes them out), blocks are
  replaced by their bodies; then elements of calls, lists and dicts go, keyword arguments, numbers of steps, and calls are replaced by one of their
  arguments. What works is kept at once, so that a program of 80 statements needs some 200 runs. Each change makes the text shorter, so it terminates.
Tests: test_training.py.
"""

import ast
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from shrink import _removable as removable, without  # noqa: E402

HEADER = ("show", "show_random")
RUNS = 150  # for parts of expressions, each time


def fewer_statements(text, fails):
    """The text without the statements that do not matter."""
    size = max(1, len(removable(ast.parse(text), HEADER)) // 2)
    while size:
        position, changed = 0, False
        while position < (count := len(removable(ast.parse(text), HEADER))):
            removed = tuple(range(position, min(position + size, count)))
            new = without(text, HEADER, removed)
            if len(new) < len(text) and fails(new):
                text, changed = new, True
            else:
                position += size
        if not changed or size > 1:
            size //= 2
    return text


def fewer_blocks(text, fails):
    """The text with blocks replaced by their bodies where that still fails."""
    position = 0
    while position < len(statements := removable(ast.parse(text), HEADER)):
        if isinstance(statements[position], (ast.If, ast.Try, ast.For, ast.While, ast.With)):
            new = without(text, HEADER, (), (position,))
            if len(new) < len(text) and fails(new):
                text = new
                continue
        position += 1
    return text


def changes(text, header):
    """Texts with one part of an expression gone or replaced, the largest savings first."""
    found = []
    tree = ast.parse(text)
    kept = {id(inner) for node in ast.walk(tree) if getattr(node, "name", None) in header for inner in ast.walk(node)}
    nodes = [node for node in ast.walk(tree) if id(node) not in kept]

    def note():
        new = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
        if len(new) < len(text):
            found.append(new)

    for node in nodes:
        for field in ("args", "elts", "keywords", "values", "targets"):
            items = getattr(node, field, None)
            if isinstance(node, (ast.Call, ast.List, ast.Tuple, ast.BoolOp)) and isinstance(items, list):
                for k in range(len(items)):
                    if isinstance(node, ast.BoolOp) and len(items) < 3:
                        continue
                    setattr(node, field, items[:k] + items[k + 1:])
                    note()
                    setattr(node, field, items)
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                for smaller in replacements(value):
                    setattr(node, field, smaller)
                    note()
                setattr(node, field, value)
            elif isinstance(value, list):
                for k, item in enumerate(value):
                    if isinstance(item, ast.expr):
                        for smaller in replacements(item):
                            value[k] = smaller
                            note()
                        value[k] = item
    return sorted(set(found), key=len)


def replacements(value):
    """Smaller expressions for an expression."""
    if isinstance(value, ast.Call):
        yield from (argument for argument in value.args if isinstance(argument, (ast.Name, ast.Call, ast.Attribute)))
        if isinstance(value.func, ast.Attribute) and isinstance(value.func.value, (ast.Name, ast.Call)):
            yield value.func.value
    elif isinstance(value, ast.BinOp):
        yield value.left
        yield value.right
    elif isinstance(value, ast.UnaryOp):
        yield value.operand
    elif isinstance(value, ast.IfExp):
        yield value.body
        yield value.orelse
    elif isinstance(value, ast.Subscript):
        yield value.value
    elif isinstance(value, ast.Constant) and isinstance(value.value, int) and not isinstance(value.value, bool) and value.value > 9:
        yield ast.Constant(value.value // 2)
        yield ast.Constant(9)


def simpler_expressions(text, fails, runs=RUNS):
    """The text with parts of expressions gone, one after the other."""
    tried = set()
    while True:
        for new in changes(text, HEADER):
            if new not in tried and len(tried) < runs:
                tried.add(new)
                if fails(new):
                    text = new
                    break
        else:
            return text


def without_unused(text, fails):
    """The text without definitions of the header and imports that nothing names."""
    for kinds in ((ast.FunctionDef,), (ast.Import, ast.ImportFrom)):
        tree = ast.parse(text)
        names = {node.id for part in tree.body for node in ast.walk(part) if isinstance(node, ast.Name) and getattr(part, "name", None) != node.id}
        kept = [node for node in tree.body if not isinstance(node, kinds)
                or any((alias.asname or alias.name).split(".")[0] in names for alias in getattr(node, "names", [])) or getattr(node, "name", None) in names]
        new = ast.unparse(ast.Module(kept, [])) + "\n"
        if len(kept) < len(tree.body) and fails(new):
            text = new
    return text


def simplify(text, fails):
    """The smallest text found. fails: whether a text fails as the first one did."""
    text = ast.unparse(ast.parse(text)) + "\n"
    before = None
    while text != before:
        before = text
        text = fewer_statements(text, fails)
        text = fewer_blocks(text, fails)
        text = simpler_expressions(text, fails)
    return without_unused(text, fails)
