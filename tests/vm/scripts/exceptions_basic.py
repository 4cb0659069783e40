"""try, except, else, finally in all combinations; raise forms; contexts and causes."""
def t(kind):
    out = []
    try:
        out.append("try")
        if kind == 1: raise ValueError("v")
        if kind == 2: raise KeyError("k")
        if kind == 3: return out
        if kind == 4: 1 // 0
    except ValueError as e: out.append(repr(e))
    except (KeyError, IndexError) as e: out.append(repr(e)); raise TypeError("from") from e
    else: out.append("else")
    finally: out.append("finally")
    out.append("end")
    return out
for k in range(5):
    for i in range(3):
        try: r = t(k)
        except Exception as e: r = (type(e).__name__, str(e), repr(e.__cause__), repr(e.__context__))
    print(r)
def fin():
    for i in range(3):
        try:
            if i == 1: continue
            if i == 2: break
        finally: print("f", i)
    try: return "try"
    finally: print("cleanup")
print(fin())
def override():
    try: raise ValueError
    finally: return "swallowed"
print(override())
def ctx():
    try: raise ValueError("a")
    except ValueError:
        try: raise KeyError("b")
        except KeyError as e: return repr(e.__context__), e.__suppress_context__
print(ctx())
for src in ("raise", "raise 5", "raise ValueError", "raise ValueError('x')", "raise ValueError from None", "raise ValueError from KeyError", "raise ValueError from 5", "raise int", "raise ValueError('a') from OSError('b')"):
    try: exec(src)
    except BaseException as e: print(src, type(e).__name__, e, repr(e.__cause__), e.__suppress_context__)
try:
    try: raise ValueError
    except 5: pass
except TypeError as e: print(e, repr(e.__context__))
try:
    try: raise ValueError
    except (KeyError, int): pass
except TypeError as e: print(e)
def unbind():
    try: raise ValueError("x")
    except ValueError as e: pass
    try: e
    except UnboundLocalError as u: print(u)
unbind()
class E(Exception):
    def __init__(self, a): self.a = a
class New(Exception):
    def __new__(cls, *a): return 5
try: raise E(1)
except E as e: print(e.a, e.args)
try: raise E
except TypeError as e: print(e)
try: raise New
except TypeError as e: print(e)
import sys
def info():
    try: 1 / 0
    except ZeroDivisionError:
        def inner(): return sys.exc_info()[0].__name__
        try: raise KeyError
        except KeyError: a = inner()
        return a, inner()
print(info(), sys.exc_info())
