"""sys.exit with a number from inside nested frames runs finally blocks and atexit."""
import sys, atexit
atexit.register(lambda: print("atexit"))
class C:
    def __enter__(self): return self
    def __exit__(self, *a): print("exit", a[0].__name__)
def g():
    try: yield sys.exit(3)
    finally: print("gen finally")
with C():
    for x in g(): pass
