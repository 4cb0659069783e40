"""A descriptor's class gains __get__ and __set__ after the access has been cached."""
class D: pass
class C:
    d = D()
    def __init__(self): self.d = "own"
def get(o): return o.d
def put(o): o.d = "stored"
c = C()
for i in range(30): get(c); put(c)
print(get(c))
D.__get__ = lambda s, o, t: "got"
print(get(c))
D.__set__ = lambda s, o, v: print("set", v)
print(get(c)); put(c); put(c)
del D.__set__
print(get(c))
del D.__get__
print(get(c))
class M(type):
    attr = D()
class K(metaclass=M): attr = "class"
def kget(): return K.attr
for i in range(20): kget()
D.__get__ = lambda s, o, t: "meta"; D.__set__ = lambda s, o, v: None
print(kget())
