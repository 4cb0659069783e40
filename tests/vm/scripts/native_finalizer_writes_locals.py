"""A dying object writes to the local that it was in (since 3.13 it can)."""
import sys
class Writer:
    def __del__(self): sys._getframe(1).f_locals['x'] = 'written'
def f(x, y):
    y + 1.0
    x = y
    return x + 1.0
def g(x, y):
    x = z = y * 2.0
    return x, z is x
for k in range(40): r = f(1.5, k + 0.5), g(1.5, k + 0.5)
print(r)
for k in range(5):
    for function in f, g:
        try: print(function(Writer(), 2.5))
        except TypeError as error: print(error)
