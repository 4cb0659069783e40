"""An attribute's form becomes another one while a run still has the first: the run passes the attribute without having missed there."""
class Q:
    def __init__(self): self.a = 1
class Own:
    def __init__(self): self.k = 5
class Shared:
    k = 7.5
def f(q, o):
    x = 1
    x = x + 1
    y = x + 2
    q.new = x  # of an object without it: the interpreter goes on alone
    return o.k + y
def calls(cls, count, filled, has_dict):
    for i in range(count):
        q, o = Q(), cls()
        if has_dict: vars(o)
        if filled: q.new = 2
        result = f(q, o)
    print(result)
calls(Own, 200, True, True)
calls(Shared, 600, False, False)
for cls, has_dict in ((Own, True), (Shared, False)) * 2:
    calls(cls, 3, True, has_dict)
    calls(cls, 1000, True, has_dict)
    calls(cls, 600, False, has_dict)
