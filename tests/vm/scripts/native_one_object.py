"""What is computed once and stored twice is one object."""
class C: pass
def names(x):
    a = b = x * 1.5
    c = d = e = a * 1000.0
    return a is b, c is d, d is e
def ints(x):
    a = b = x * 1000
    b = (c := a + 5000)
    return a is b, b is c, a
def elsewhere(x, o, l):
    o.a = l[0] = a = x * 2.5
    l[1] = o.b = x + 70000.0
    return o.a is l[0], a is o.a, l[1] is o.b, (z := x * 9.5) is z
def compared(x):
    return 1.0 < x * 2.0 < 30.0, 5 < int(x) * 3 < 900
for k in range(30): r = names(k + 0.5), ints(k), elsewhere(k + 0.5, C(), [0, 0]), compared(k + 0.5)
print(r)
