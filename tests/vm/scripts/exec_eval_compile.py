"""exec and eval with all kinds of namespaces; compile; interactive mode; huge functions."""
import sys
g = {}; exec("a = 1\ndef f(): return a", g); print(g["f"]())
class Map(dict):
    def __missing__(self, k): return k.upper()
class L:
    def __init__(self): self.d = {}
    def __getitem__(self, k):
        if k in self.d: return self.d[k]
        raise KeyError(k)
    def __setitem__(self, k, v): print("set", k); self.d[k] = v
    def __delitem__(self, k): del self.d[k]
exec("b = a\nc = len\ndel b", {"a": 5}, L())
print(eval("x + y", {}, Map()))
try: exec("zz", {}, L())
except NameError as e: print(e)
try: exec("del zz", {}, {})
except NameError as e: print(e)
exec(compile("1 + 1", "<i>", "single")); exec(compile("5 * 5", "<i>", "single"))
old = sys.displayhook; sys.displayhook = lambda v: print("hook", v); exec(compile("3", "<i>", "single")); sys.displayhook = old
src = "def big(n):\n" + "".join(f"  v{i} = n + {i}\n" for i in range(400)) + "  if n:\n" + "".join(f"    v{i} = v{i} * 2\n" for i in range(400)) + "  return " + "+".join(f"v{i}" for i in range(400)) + "\n"
ns = {}; exec(src, ns); print(ns["big"](1), ns["big"](0))
src = "def loop(n):\n  t = 0\n  for i in range(n):\n" + "".join(f"    t += i * {i}\n" for i in range(300)) + "  return t\n"
exec(src, ns); print(ns["loop"](5))
src = "x = [" + ",".join(map(str, range(1000))) + "]\ny = {" + ",".join(f"'k{i}': {i}" for i in range(300)) + "}\nz = f(" + ",".join(map(str, range(300))) + ")\nw = f(" + ",".join(f"k{i}={i}" for i in range(300)) + ")"
ns = {"f": lambda *a, **k: (len(a), len(k))}; exec(src, ns); print(len(ns["x"]), len(ns["y"]), ns["z"], ns["w"])
for bad in ("1 +", "def f(:", "return 1", "x = yield", "break"):
    try: compile(bad, "<s>", "exec")
    except SyntaxError as e: print(e.msg)
code = compile("a + b", "<e>", "eval"); print(eval(code, {"a": 1, "b": 2}), eval(code, {"a": "x", "b": "y"}), [eval(code, {"a": i, "b": 1.5}) for i in range(4)])
f = eval("lambda a, b=2: a * b"); print(f(3))
import types
h = types.FunctionType(f.__code__, {}, "h", (5,)); print(h(2), h.__name__)
def host():
    q = 10
    return eval("q + 1"), eval("q", globals(), locals())
print(host())
