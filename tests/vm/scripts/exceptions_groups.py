"""except* and exception groups."""
def run(make):
    out = []
    try:
        try: make()
        except* ValueError as eg: out.append(("V", eg.exceptions))
        except* (TypeError, KeyError) as eg: out.append(("TK", eg.exceptions)); 
        else: out.append("else")
        finally: out.append("fin")
    except BaseException as e: out.append(("left", repr(e)))
    return out
def raiser(e):
    def f(): raise e
    return f
for e in (ValueError(1), ExceptionGroup("g", [ValueError(1), TypeError(2), OSError(3)]), ExceptionGroup("g", [ValueError(1), ExceptionGroup("h", [KeyError(4), ValueError(5)])]), OSError(9), BaseExceptionGroup("b", [KeyboardInterrupt()])):
    for i in range(2): r = run(raiser(e))
    print(r)
print(run(lambda: None))
def inside():
    try:
        try: raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
        except* ValueError: raise RuntimeError("new")
    except BaseException as e: return repr(e), repr(e.__context__)
print(inside())
def reraise():
    try:
        try: raise ExceptionGroup("g", [ValueError(1), TypeError(2), OSError(3)])
        except* ValueError: raise
        except* TypeError: raise
    except BaseException as e: return repr(e)
print(reraise())
try:
    try: raise ValueError
    except* ExceptionGroup: pass
except TypeError as e: print(e)
try:
    try: raise ValueError
    except* 5: pass
except TypeError as e: print(e)
def naked():
    try: raise ValueError("n")
    except* ValueError as e: return_value = type(e).__name__, e.exceptions
    return return_value
print(naked())
