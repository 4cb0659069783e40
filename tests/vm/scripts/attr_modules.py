"""Module attributes, __getattr__ of modules, module subclasses, changing modules."""
import sys, types, math
def pi(): return math.pi, math.sqrt(4)
for i in range(6): pi()
print(pi())
m = types.ModuleType("m"); m.a = 1; m.f = lambda: "f"
def ma(): return m.a, m.f()
for i in range(20):
    if i == 8: m.b = 2
    if i == 12: m.a = 10
    if i == 15: m.f = lambda: "f2"
    if i == 18: del m.b
    print(ma(), end=" ")
print()
try: m.zz
except AttributeError as e: print(e)
m.__getattr__ = lambda n: "dyn " + n
for i in range(4): print(m.zz, m.qq.upper())
class Sub(types.ModuleType):
    def __getattr__(self, n): return "sub " + n
    @property
    def prop(self): return "prop"
s = Sub("s"); s.x = 1
for i in range(4): print(s.x, s.y, s.prop)
g = globals()
counter = 0
def bump():
    global counter
    counter += 1
    return counter
for i in range(20): bump()
print(counter, g["counter"])
def lookup(): return len([1]), special()
def special(): return "one"
for i in range(12):
    if i == 5: len = lambda x: "fake len"
    if i == 8: del len
    if i == 10:
        def special(): return "two"
    print(lookup(), end=" ")
print()
import builtins
builtins.injected = "inj"
def inj(): return injected
print([inj() for _ in range(4)]); builtins.injected = "inj2"; print(inj()); del builtins.injected
try: inj()
except NameError as e: print(e)
exec("def h(): return undefined_thing", d := {"__builtins__": {"undefined_thing": "from dict"}}); print(d["h"]())
