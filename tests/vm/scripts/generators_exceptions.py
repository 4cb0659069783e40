"""Exceptions through generators: tracebacks, contexts, handled state."""
import sys, traceback
def g():
    try: yield 1; yield 2
    except KeyError: 
        print("handling", sys.exc_info()[0].__name__)
        yield sys.exc_info()[0].__name__
    print(sys.exc_info())
    yield "end"
def use():
    try: raise ValueError("outer")
    except ValueError:
        it = g()
        for v in it:
            print(v, sys.exc_info()[0].__name__)
            if v == 1: print(it.throw(KeyError("k")), sys.exc_info()[0].__name__)
use()
def bad(n):
    yield n
    yield 1 // n
def consumer(n):
    for x in bad(n): pass
for n in (1, 0):
    try: consumer(n)
    except ZeroDivisionError: print(traceback.format_exc().replace(__file__, "FILE"))
def nested():
    yield from bad(0)
try: list(nested())
except ZeroDivisionError: print(traceback.format_exc().replace(__file__, "FILE"))
def ctx():
    try: yield
    finally: raise TypeError("in finally")
c = ctx(); next(c)
try: c.throw(ValueError("first"))
except TypeError as e: print(repr(e.__context__))
def reraise():
    try: yield 1
    except Exception: raise
r = reraise(); next(r)
try: r.throw(OSError("o"))
except OSError as e: print(len(traceback.extract_tb(e.__traceback__)))
def gexit():
    try: yield 1
    except GeneratorExit: print("exit"); raise
def ignore():
    try: yield 1
    except GeneratorExit: yield 2
i = ignore(); next(i)
try: i.close()
except RuntimeError as e: print(e)
for _ in gexit(): break
import gc; gc.collect()
