"""Suggestions: AttributeErrors know the object and the name, however they came to be."""
class A:
    blech = 1
    @property
    def prop(self): return self.missing_in_prop
class B(A):
    def __getattr__(self, n): raise AttributeError()
class C(A):
    def __getattribute__(self, n): raise AttributeError("custom")
class D(A):
    def __getattr__(self, n): raise AttributeError("named", name="given", obj=5)
class E(A):
    def __getattr__(self, n): return object.__getattribute__(self, "deeper")
def load(o): return o.bluch
def method(o): return o.bluch()
def prop(o): return o.prop
def propm(o): return o.prop()
import sys
# From 3.12 on, CPython's specialised forms of __getattribute__ leave the name out: its first answer counts there.
first_only = sys.version_info >= (3, 12)
for o in (A(), B(), C(), D(), E(), A, 5):
    for f in (load, method, prop, propm):
        for i in range(4):
            try: r = f(o)
            except TypeError as e: r = str(e)
            except AttributeError as e: r = (type(o).__name__, f.__name__, e.name, e.obj is o, str(e)[:60])
            if first_only and type(o) is C and f in (load, method): break
        print(r)
