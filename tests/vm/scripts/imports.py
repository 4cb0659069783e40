"""Imports: forms, errors, star, circular, __import__ replaced."""
import os.path as p, sys, json
from os import path as q, sep
from collections import (OrderedDict, deque)
import importlib, types, builtins, tempfile, os
print(p is q, sep, OrderedDict.__name__, json.loads("[1]"))
for src in ("import no_such_module_x", "from os import no_such_name", "from no_such_pkg import x", "from . import y", "import os.no_such", "from json import *", "from sys import path, nope"):
    ns = {"__name__": "t"}
    try: exec(src, ns); print(src, sorted(k for k in ns if k != "__builtins__")[:3])
    except ImportError as e: print(src, type(e).__name__, e, e.name)
d = tempfile.mkdtemp(); sys.path.insert(0, d)
def write(n, t):
    with open(os.path.join(d, n), "w") as f: f.write(t)
write("star_all.py", "__all__ = ['a', '_b']\na = 1; _b = 2; c = 3\n")
write("star_plain.py", "a = 1; _b = 2; c = 3\n")
write("star_bad.py", "__all__ = ['nope']\n")
write("star_bad2.py", "__all__ = [1]\n")
write("circ_a.py", "import circ_b\nx = 1\n")
write("circ_b.py", "from circ_a import x\n")
write("boom.py", "def f():\n    raise ValueError('import time')\nf()\n")
for src in ("from star_all import *", "from star_plain import *", "from star_bad import *", "from star_bad2 import *", "import circ_a", "import boom"):
    ns = {"__name__": "t"}
    try: exec(src, ns); print(src, sorted(k for k in ns if not k.startswith("__")))
    except Exception as e: print(src, type(e).__name__, str(e).replace(d, "DIR"))
class M(types.ModuleType):
    def __getattr__(self, n):
        if n.startswith("__"): raise AttributeError(n)
        return "dyn " + n
sys.modules["dynmod"] = M("dynmod")
from dynmod import anything; print(anything)
sys.modules["pkgx"] = types.ModuleType("pkgx"); sys.modules["pkgx.sub"] = "the sub"
from pkgx import sub; print(sub)
real = builtins.__import__
def fake(name, *a): 
    if name == "fakemod": return "fake " + str(a[2:])
    return real(name, *a)
builtins.__import__ = fake
import fakemod; print(fakemod)
builtins.__import__ = real
def lazy():
    import math
    from math import pi as P
    return math.floor(P)
print([lazy() for _ in range(3)])
