"""Keys whose comparison changes the class or the dict in the middle of an attribute access."""
class Key(str):
    def __hash__(self): return hash("x")
    def __eq__(self, other):
        if other == "x" and self.armed:
            self.armed = False
            if "x" in C.__dict__: del C.x
        return str.__eq__(self, other)
    armed = True
class C:
    x = 5
    def m(self): return 1
def get(o): return o.x
for i in range(6):
    C.x = lambda self: 5
    c = C(); k = Key("y"); c.__dict__[k] = 1
    k.armed = True
    try: r = get(c)
    except AttributeError as e: r = str(e)
    print(type(r).__name__, hasattr(C, "x"))
d = {Key("z"): 1}; print("x" in d, d.get("x"), "z" in d)
e = {1: 2}; print("x" in e, [e.get(k) for k in ("x", 1)])
class I:
    def __init__(self): self.__dict__[3] = 4; self.a = 1
i = I()
for _ in range(5): print(i.a, i.__dict__[3], end=" ")
print()
