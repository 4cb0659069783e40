"""A copy of a dict shares its key version: cached positions must read the copy."""
source = "def f():\n    return value, helper(3)\n"
base = {"value": 1, "helper": lambda v: v + 1}
code = compile(source, "<copied>", "exec")
exec(code, base)
for i in range(20): base["f"]()
import types
copies = []
for i in range(5):
    copy = dict(base); copy["value"] = 10 + i
    copy["f"] = types.FunctionType(base["f"].__code__, copy)
    copies.append(copy)
for i in range(3): print([c["f"]()[0] for c in copies], base["f"]())
base.clear()
import gc; gc.collect()
junk = [dict.fromkeys("abcdefgh", i) for i in range(1000)]
print([c["f"]() for c in copies])
m = types.ModuleType("m"); m.a = 1; m.b = lambda: "b"
def read(o): return o.a, o.b()
for i in range(10): read(m)
n = types.ModuleType("n"); n.__dict__.update(m.__dict__); n.a = 2
print(read(n), read(m))
