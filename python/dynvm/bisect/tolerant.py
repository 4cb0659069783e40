"""Compares two texts exactly but for floating-point numbers, which may differ by rounding.

Inputs: texts that two runs printed. Outputs: None when they agree, else a message with the first differing lines.
Invariants: a float is a number with a point, an exponent, or nan/inf; integers and all other text must be equal. Two floats
  agree within `relative` (1e-4), `absolute` (1e-6), or one unit of the last digit that was printed: `0.1235` and `0.1234`
  may be one number rounded twice. Runs of blanks count as one, because tensors are printed in columns as wide as their
  widest number. Used by `dynvm bisect`, and by tests/programs and tests/traces.
Tests: tests/programs/test_tolerant.py.
"""

import math
import re

# A sign belongs to the number only where no name or number stands before it: `a-1.5` is printed by nobody here, but
# `1e-05` and `[-1.5` are.
_FLOAT = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|nan\b|inf\b)")
_BLANKS = re.compile(r"[ \t]+")


def _split(line):
    """(the text around the floats, the floats as they were printed)."""
    line = _BLANKS.sub(" ", line.strip()).replace("[ ", "[").replace("( ", "(")
    return _FLOAT.split(line), _FLOAT.findall(line)


def _last_digit(text):
    """The value of one unit in the last printed digit: 0.01 for "1.25", 1e-7 for "1.5e-06"."""
    mantissa, _, exponent = text.lower().partition("e")
    places = len(mantissa.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - places)


def floats_agree(first, second, relative=1e-4, absolute=1e-6):
    """Whether two printed floats may be the same number."""
    a, b = float(first), float(second)
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    if math.isinf(a) or math.isinf(b):
        return a == b
    # "1." is how tensors print whole numbers: the digit before the point is no rounding error.
    units = [_last_digit(text) for text in (first, second) if not text.endswith(".")]
    allowed = max([relative * max(abs(a), abs(b)), absolute] + [1.01 * unit for unit in units if unit <= 0.01])
    return abs(a - b) <= allowed


def lines_agree(first, second, relative=1e-4, absolute=1e-6):
    if first == second:
        return True
    texts, floats = _split(first)
    other_texts, other_floats = _split(second)
    return (texts == other_texts and len(floats) == len(other_floats)
            and all(floats_agree(a, b, relative, absolute) for a, b in zip(floats, other_floats)))


def difference(expected, got, relative=1e-4, absolute=1e-6, context=3):
    """None, or a message: the first line that differs with some lines before it, in both texts."""
    first, second = expected.splitlines(), got.splitlines()
    for i in range(max(len(first), len(second))):
        a = first[i] if i < len(first) else None
        b = second[i] if i < len(second) else None
        if a is None or b is None or not lines_agree(a, b, relative, absolute):
            before = "".join(f"    {line}\n" for line in first[max(0, i - context):i])
            show = [line if line is not None else "(the text ends here)" for line in (a, b)]
            return f"line {i + 1} differs:\n{before}  - {show[0]}\n  + {show[1]}"
    return None
