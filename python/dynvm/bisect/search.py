"""The search for culprits: which of many switches are needed for a right result?

Inputs: names, and a function that says whether the script is right with some of them left out. Outputs: a part of them.
Invariants: the part makes it right; where more left out is never worse, none of it can be spared. At most k * (log2 n + 2) questions for k culprits of n.
Tests: tests/bisect/test_search.py.
"""


def minimal(names, right, most=None):
    """A part of `names` (a list) that makes right(part) true. right(names) has to be true; [] where right([]) is. most: None where the part would have more."""
    needed, rest = [], list(names)
    while rest and not right(needed):
        if len(needed) == most:
            return None
        # The shortest beginning of the rest that makes it right together with what is needed: its last one is needed too.
        low, high = 0, len(rest)
        while high - low > 1:
            middle = (low + high) // 2
            if right(needed + rest[:middle]):
                high = middle
            else:
                low = middle
        needed.append(rest[high - 1])
        rest = rest[:high - 1]
    for name in needed[:-1]:  # the last one has been needed with all others there
        without = [other for other in needed if other != name]
        if right(without):
            needed = without
    return needed


def smallest(names, right, most=None):
    """minimal(), but a single name where it has several, or too many, and the search from the other end comes to one: several that come first may do what one behind them does."""
    found = minimal(names, right, most)
    if found is not None and len(found) < 2:
        return found
    return minimal(names[::-1], right, 1) or found


def grown(names, right, more):
    """`names`, with what more(names) adds to them until right(names): a list, or None where nothing helps.

    What is left out may bring others to life: without the traces of a loop those inside it get some.
    """
    names = list(names)
    while names:
        if right(names):
            return names
        new = [name for name in more(names) if name not in names]
        if not new:
            return None
        names += new
    return None
