"""code.InteractiveInterpreter and doctest drive the evaluator in single mode."""
import code, doctest, sys, types
i = code.InteractiveInterpreter({"__name__": "x"})
for src in ("1 + 1", "a = 5", "a", "for k in range(2): k\n", "def f():\n  return 3\n", "f()", "None"):
    print(repr(src), i.runsource(src))
m = types.ModuleType("m")
m.__doc__ = """
>>> 1 + 1
2
>>> [i for i in range(3)]
[0, 1, 2]
>>> 1 / 0
Traceback (most recent call last):
ZeroDivisionError: division by zero
>>> print("x")
x
"""
print(doctest.testmod(m))
