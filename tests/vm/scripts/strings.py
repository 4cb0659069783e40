"""Strings: building in place, f-strings, formatting."""
def build(n):
    s = ""
    for i in range(n):
        s += str(i)
        t = s
    return s, t is s
print(build(20))
def keep(n):
    s = "a"; keepers = []
    for i in range(n):
        keepers.append(s)
        s = s + "b"
    return keepers, s
print(keep(5))
class F:
    def __format__(self, spec): return "<%s>" % spec
    def __repr__(self): return "repr"
    def __str__(self): return "str"
x = F(); w = 10
print(f"{x} {x!r} {x!s} {x!a} {x:abc} {x!r:>{w}} {3.14159:.2f} {1+1} {{}} {'q'}")
try: f"{object():x}"
except TypeError as e: print(e)
print("%s %d %r" % ("a", 1, x), "{} {a}".format(1, a=2), "abc"[1], "abc"[::-1], "a" * 3, "-".join(["x", "y"]))
def cat(a, b): return a + b
for p in [("a", "b"), ("a", 1), (1, "a")] * 3:
    try: print(cat(*p))
    except TypeError as e: print(e)
