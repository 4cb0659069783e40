"""C functions and methods of every calling convention, hot and with wrong arguments."""
def hot():
    l = []
    for i in range(20):
        l.append(i); len(l); isinstance(i, int); type(i); ord("a"); abs(-i); max(i, 3); "a,b".split(","); "x".upper(); "abc".startswith("a"); {}.get(1, 2); l.index(i); min(1, 2, key=lambda q: q); sorted(l, reverse=True); str(i); int("5"); l.copy(); divmod(7, 2); getattr(i, "real"); hasattr(i, "zz"); round(1.5); dict(a=1); "{}".format(i); [].extend(l); print(end="")
    return l
print(hot()[-1])
for bad in ("len()", "len(1, 2)", "len(5)", "ord('ab')", "[].append()", "[].append(1, 2)", "'a'.split(1)", "isinstance(1)", "isinstance(1, 2)", "abs()", "'x'.upper(1)", "{}.get()", "int('z')", "str.upper(1)", "list.append({}, 1)", "type()", "getattr(1)", "[].sort(5)", "print(sep=1)", "iter(5)"):
    def f(): return eval(bad)
    for i in range(3):
        try: r = f()
        except Exception as e: r = (type(e).__name__, str(e))
    print(bad, r)
def viaself(l, x): l.append(x); return len(l)
class Sub(list): pass
print(viaself([], 1), viaself(Sub(), 1), viaself([1], 2), viaself(bytearray(), 3))
class A:
    @classmethod
    def __instancecheck__(c, o): return True
class M(type):
    def __instancecheck__(c, o): return o == 5
class B(metaclass=M): pass
print([isinstance(x, B) for x in (5, 6, B())], isinstance(True, (int, str)), isinstance("a", int | str))
