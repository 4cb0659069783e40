"""Makes a failing program smaller: removes statements as long as it still fails.

Inputs: the program's text; a function that tells which of several candidate texts still fail; names of functions that stay as they
  are. Outputs: a smaller text.
Method: a round tries each statement's removal by itself (and each block's replacement by its body), in one batch, then
  several of those that work together, and goes on from the smallest text that fails. It ends when no removal works. Each
  round makes the text shorter, so it terminates.
Tests: tests/programs/test_shrink.py.
"""

import ast

def _bodies(tree):
    """All lists of statements, in a fixed order."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                yield body


def _removable(tree, header):
    """The statements that may go, in a fixed order."""
    kept = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)) or getattr(node, "name", None) in header:
            kept.update(id(inner) for inner in ast.walk(node))
    return [s for body in _bodies(tree) for s in body if id(s) not in kept and not isinstance(s, ast.Pass)]


def without(text, header, removed, hoisted=()):
    """The program without the statements of these positions, blocks of the hoisted positions replaced by their bodies."""
    tree = ast.parse(text)
    statements = _removable(tree, header)
    gone = {id(statements[position]) for position in removed}
    replaced = {id(statements[position]) for position in hoisted}
    for body in list(_bodies(tree)):
        new = []
        for statement in body:
            if id(statement) in replaced:
                new += statement.body
            elif id(statement) not in gone:
                new.append(statement)
        body[:] = new or [ast.Pass()]
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _rounds_candidates(text, header):
    """[(removed positions, hoisted positions)] of one change each."""
    statements = _removable(ast.parse(text), header)
    changes = [((k,), ()) for k in range(len(statements))]
    changes += [((), (k,)) for k, s in enumerate(statements) if isinstance(s, (ast.If, ast.Try, ast.For, ast.While, ast.With))]
    return changes


def shrink(text, failing, header=(), rounds=20):
    """The smallest text found. failing(texts) -> list of bool: whether each still fails as the first one did."""
    text = ast.unparse(ast.parse(text)) + "\n"
    for _ in range(rounds):
        changes = _rounds_candidates(text, header)
        texts = [without(text, header, *change) for change in changes]
        works = [k for k, fails in enumerate(failing(texts)) if fails and len(texts[k]) < len(text)]
        if not works:
            return text
        best = min((texts[k] for k in works), key=len)
        removals = [changes[k][0][0] for k in works if changes[k][0]]
        together, size = [], len(removals)
        while size > 1:
            together += [without(text, header, removals[start:start + size]) for start in range(0, len(removals), size)]
            size //= 2
        best = min([best] + [t for t, fails in zip(together, failing(together) if together else []) if fails], key=len)
        text = best
    return text
