"""How two descriptions of what an iteration has left differ.

Purpose: of two lists of entries that describe.py makes, one of a trace's run and one of an interpreted run of the same
  iteration, the entries that are not the same.
Inputs:  differences(interpreted, traced). Outputs: a list of (path, what the trace's run has, what the interpreter's
  has), the nearest first.
Invariants: the rules of RULES alone decide. Exact is all that is not a number with a fraction: types, shapes, strides,
  version counters, integers, graphs, random states. Numbers with a fraction may differ by rounding: of a tensor by so
  much of its greatest element (TOLERANCE), since what an operation gives is as exact as the numbers that it adds up; of
  Python's numbers by so much of the number. Where the trace computes in a coarser type, as under autocast, its tolerance
  holds for all. Text is compared likewise where numbers stand in it, and without addresses.
Tests:   tests/check/test_describe.py.
"""

import functools
import itertools
import math
import re
import sys

# Of a tensor's greatest element, and what is as good as 0 whatever it is: a sum of what cancels.
TOLERANCE = {
    "float64": (1e-7, 1e-12),
    "complex128": (1e-7, 1e-12),
    "float32": (2e-4, 1e-6),
    "complex64": (2e-4, 1e-6),
    "float16": (2e-2, 1e-3),
    "bfloat16": (1e-1, 1e-2),
}
GRAPH = ".grad_fn and what is behind it"  # ends the path of a tensor's graph (describe.py)
NUMBER = 1e-3  # of a number of Python's, which may be of a tensor of any type
SMALLEST = 1e-6  # such a number that is as good as 0
NUMBERS = re.compile(r"[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\binf\b|\bnan\b)")
ADDRESSES = re.compile(r"\b0x[0-9a-f]+\b|\bat \d{9,}\b")


def exact(a, b):
    return a == b


def close(a, b, tolerance=NUMBER):
    if a == b or (a != a and b != b):
        return True
    if math.isinf(a) or math.isinf(b) or a != a or b != b:
        return False
    return abs(a - b) <= max(tolerance * max(abs(a), abs(b)), SMALLEST)


def close_complex(a, b):
    return close(a.real, b.real) and close(a.imag, b.imag)


def close_text(a, b):
    if a == b:
        return True
    a, b = ADDRESSES.sub("0x", a), ADDRESSES.sub("0x", b)
    if NUMBERS.sub("#", a) != NUMBERS.sub("#", b):
        return False
    return all(close(float(x), float(y), 1e-2) for x, y in zip(NUMBERS.findall(a), NUMBERS.findall(b)))


def close_values(a, b, coarsest=None):
    """Elements of tensors: (type's name, how many, bytes)."""
    if a == b:
        return True
    if a[:2] != b[:2] or len(a[2]) != len(b[2]) or a[0] not in TOLERANCE:
        return False
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
        x, y = (torch.frombuffer(bytearray(each[2]), dtype=getattr(torch, a[0])) for each in (a, b))
        wide = torch.complex128 if x.is_complex() else torch.float64
        x, y = x.to(wide), y.to(wide)
        if x.is_complex():
            x, y = torch.view_as_real(x), torch.view_as_real(y)
        return _close(torch, x, y, max(TOLERANCE[a[0]], TOLERANCE.get(coarsest, (0, 0))))


def _close(library, x, y, tolerance):
    """Of double precision."""
    relative, absolute = tolerance
    finite = library.isfinite(x)
    if not bool((finite == library.isfinite(y)).all()):
        return False
    odd_x, odd_y = x[~finite], y[~finite]
    if not bool(((odd_x == odd_y) | (library.isnan(odd_x) & library.isnan(odd_y))).all()):
        return False
    x, y = x[finite], y[finite]
    if len(x) == 0:
        return True
    return float(abs(x - y).max()) <= max(relative * float(abs(x).max()), absolute)


def close_array(a, b):
    """Elements of NumPy's: (type's name, bytes)."""
    if a == b:
        return True
    numpy = sys.modules["numpy"]
    if a[0] != b[0] or len(a[1]) != len(b[1]) or a[0] not in TOLERANCE:
        return False
    x, y = (numpy.frombuffer(each[1], dtype=each[0]) for each in (a, b))
    if x.dtype.kind == "c":
        x, y = x.view("f8" if a[0] == "complex128" else "f4"), y.view("f8" if a[0] == "complex128" else "f4")
    return _close(numpy, x.astype("f8"), y.astype("f8"), TOLERANCE[a[0]])


def same_graph(a, b):
    """Nodes and what they lead to, a line each. What a trace hands out has nodes of its own behind the first
    (runtime/torch/graph_nodes.h): it is judged by its gradients."""
    if not any(" TraceBackward0(" in line for line in (*a, *b)):
        return a == b
    return a[0].split("(")[0] == b[0].split("(")[0]


RULES = {
    "is": exact,
    "int": exact,
    "bytes": exact,
    "same": exact,
    "lines": same_graph,
    "float": close,
    "complex": close_complex,
    "text": close_text,
    "values": close_values,
    "array": close_array,
}
NOTHING = ("nothing", None)


def rules(coarsest):
    """RULES where the coarsest type of a number that the trace computes is this one: its name, or None."""
    if coarsest not in ("float16", "bfloat16"):
        return RULES
    return {
        **RULES,
        "values": functools.partial(close_values, coarsest=coarsest),
        "float": functools.partial(close, tolerance=TOLERANCE[coarsest][0]),
    }


def shown(kind, value):
    """An entry's value in few words."""
    if kind == "nothing":
        return "nothing"
    if kind == "same":
        return f"the same object as {value}"
    if kind == "values":
        return _shown_values(value)
    if kind == "array":
        return f"{value[0]} elements"
    if kind == "bytes":
        return f"{len(value)} bytes"
    text = value if kind in ("is", "lines") else repr(value)
    text = "; ".join(text) if isinstance(text, tuple) else text
    return text if len(text) <= 200 else text[:197] + "..."


def _shown_values(value):
    name, count, data = value
    torch = sys.modules["torch"]
    if not data:
        return f"no elements of {name}"
    elements = torch.frombuffer(bytearray(data), dtype=getattr(torch, name))
    return f"{count} x {name} {elements[:6].tolist()}"


def differing_element(a, b):
    """Where two tensors' elements differ most, as text."""
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
        x, y = (torch.frombuffer(bytearray(each[2]), dtype=getattr(torch, a[0])) for each in (a, b))
        apart = (x.double() - y.double()).abs() if not x.is_complex() else (x - y).abs()
        apart = torch.where(apart.isnan(), torch.full_like(apart, math.inf), apart)
        if not x.is_complex():
            apart[x.isnan() & y.isnan() | (x == y)] = 0
        at = int(apart.argmax())
        return (
            f"element {at} of {a[1]}: {x[at].item()!r}",
            f"{y[at].item()!r}; {int((apart > 0).sum())} elements are not the same",
        )


def without_unknown(entries, other):
    """The entries by path, without those of graphs that one of the two sides has not looked at."""
    unknown = {path.removesuffix(GRAPH) for path, kind, _ in (*entries, *other) if kind == "unknown"}

    def is_of(path):
        of = path.removeprefix("gradient of ").split(" by ")[0] if path.startswith("gradient of ") else None
        return (path.removesuffix(GRAPH) if of is None and path.endswith(GRAPH) else of) in unknown

    return {path: (kind, value) for path, kind, value in entries if not unknown or not is_of(path)}


def differences(interpreted, traced, coarsest=None):
    same = rules(coarsest)
    theirs = without_unknown(interpreted, traced)
    mine = without_unknown(traced, interpreted)
    found = []
    for path, (kind, value) in mine.items():
        other_kind, other = theirs.get(path, NOTHING)
        if kind == other_kind and same[kind](other, value):
            continue
        if kind == other_kind == "values" and value[0] == other[0] and len(value[2]) == len(other[2]):
            found.append((path, *differing_element(value, other)))
        elif kind == other_kind == "lines":
            alike = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(value, other)))
            found.append((path, shown(kind, value[alike:]), shown(kind, other[alike:])))
        else:
            found.append((path, shown(kind, value), shown(other_kind, other)))
    found += [(path, "nothing", shown(kind, value)) for path, (kind, value) in theirs.items() if path not in mine]
    return found


def report(interpreted, traced, again, coarsest=None, most=12):
    """The differences as lines of text, the nearest first; None where there is none. `again`: a second interpreted
    run's description, or None; where that differs from the first, the iteration does not determine what is there, or
    not beyond rounding (describe.disturb). With the first path, and how many of all that was undetermined."""
    found = differences(interpreted, traced, coarsest)
    loose = 0
    if again is not None and found:
        undetermined = [path for path, _, _ in differences(interpreted, again, coarsest)]
        certain = [each for each in found if not any(each[0].startswith(path) for path in undetermined)]
        loose, found = len(found) - len(certain), certain
    if not found:
        return None, "", loose
    lines = [
        f"  {path}: {mine} in the trace's run, {theirs} in the interpreter's" for path, mine, theirs in found[:most]
    ]
    if len(found) > most:
        lines.append(f"  and {len(found) - most} more")
    return "\n".join(lines), found[0][0], loose


def count(interpreted, traced, coarsest=None):
    return len(differences(interpreted, traced, coarsest))
