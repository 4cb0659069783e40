"""Frames that are kept when they have returned show what their locals were, and where they returned."""
import sys

kept = []
def keeps(value):
    other = [value]
    kept.append(sys._getframe())
    return value
def keeps_other(value):
    other = [value]
    kept.append(sys._getframe())

    return other
class Dies:
    def __del__(self): kept.append(sys._getframe(1))
def last(value):
    held = Dies()
    return value
for i in range(6): keeps(i); keeps_other(i); last(i)
for frame in kept: print(frame.f_code.co_name, frame.f_lineno - frame.f_code.co_firstlineno, {k: v for k, v in frame.f_locals.items() if k in ("value", "other")})
