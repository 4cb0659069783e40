"""Makes a failing program smaller: removes statements as long as it still fails.

Inputs: the program's text; a function that tells which of several candidate texts still fail. Outputs: a smaller text.
Method: each round tries all programs with one statement less (largest statements first), together in one batch, and goes on
  from the smallest that fails; it ends when none does. Each round removes a statement, so it terminates.
Tests: test_shrink.py.
"""

import ast

HEADER = ("show", "digits")  # functions of generate.py's header


def _bodies(tree):
    """All lists of statements, but those of the header's functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in HEADER:
            continue
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                yield body


def candidates(text):
    """Texts with one statement less, or a block replaced by its body; smallest first."""
    count = sum(len(body) for body in _bodies(ast.parse(text)))
    texts = set()
    for position in range(count):
        for hoist in (False, True):
            tree = ast.parse(text)
            places = [(body, k) for body in _bodies(tree) for k in range(len(body))]
            body, k = places[position]
            statement = body[k]
            if isinstance(statement, (ast.Import, ast.ImportFrom)) or getattr(statement, "name", "") in HEADER:
                continue
            if hoist:
                if not isinstance(statement, (ast.If, ast.Try)):
                    continue
                body[k:k + 1] = statement.body
            else:
                del body[k]
                if not body:
                    body.append(ast.Pass())
            new = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
            if len(new) < len(text):
                texts.add(new)
    return sorted(texts, key=lambda t: (len(t), t))


def shrink(text, failing, rounds=40):
    """The smallest text found. failing(texts) -> list of bool: whether each still fails as the first one did."""
    text = ast.unparse(ast.parse(text)) + "\n"
    for _ in range(rounds):
        found = None
        tried = candidates(text)
        for start in range(0, len(tried), 30):
            part = tried[start:start + 30]
            found = next((t for t, fails in zip(part, failing(part)) if fails), None)
            if found is not None:
                break
        if found is None:
            return text
        text = found
    return text
