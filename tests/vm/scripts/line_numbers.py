"""f_lineno and tb_lineno at every stage of a frame's life."""
import sys
def implicit(x):
    x()
    if TRUE:
        pass
TRUE = True
frame = None
def save():
    global frame
    frame = sys._getframe(1)
implicit(save); print(frame.f_lineno - implicit.__code__.co_firstlineno)
def explicit():
    save()
    y = 1
    return (
        y)
explicit(); print(frame.f_lineno - explicit.__code__.co_firstlineno)
def gen():
    save()
    yield 1
    yield (
        2)
for v in gen(): print(v, frame.f_lineno - gen.__code__.co_firstlineno)
print(frame.f_lineno - gen.__code__.co_firstlineno)
def raising():
    a = 1
    b = (a +
         None)
try: raising()
except TypeError as e: print(e.__traceback__.tb_next.tb_lineno - raising.__code__.co_firstlineno, e.__traceback__.tb_next.tb_lasti > 0)
class P:
    @property
    def line(self):
        return sys._getframe(1).f_lineno - base
    def __getattr__(self, n): return sys._getframe(1).f_lineno - base
    def __add__(self, o): return sys._getframe(1).f_lineno - base
    def __call__(self): return sys._getframe(1).f_lineno - base
def lines():
    p = P()
    return [
        p.line,
        p.other,
        p + 1,
        p(),
        (p
         .line),
    ]
base = lines.__code__.co_firstlineno
for i in range(4): r = lines()
print(r)
def reraised():
    try:
        1 / 0
    except ZeroDivisionError:
        x = 1
        raise
try: reraised()
except ZeroDivisionError as e: print(e.__traceback__.tb_next.tb_lineno - reraised.__code__.co_firstlineno)
def fin():
    try:
        {}["k"]
    finally:
        y = 2
        z = 3
try: fin()
except KeyError as e: print(e.__traceback__.tb_next.tb_lineno - fin.__code__.co_firstlineno, e.__traceback__.tb_next.tb_frame.f_lineno - fin.__code__.co_firstlineno)
print([p for p in raising.__code__.co_positions()][-1], len(list(raising.__code__.co_lines())))
