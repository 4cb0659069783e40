"""What a program shows: values as text, without addresses, and a checksum over all of it.

Purpose: worker.py runs this file with builtins of its own, because programs change the real ones. Invariants: looking at a value changes
  nothing about it (an instance's dict is not made).
"""

import itertools
import re
import sys
import types
import zlib

SHOWN = 20000  # values as text
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
SIMPLE = (int, float, complex, str, bytes, bytearray, bool, type(None), type(Ellipsis), range, slice, type(NotImplemented))


class Log:
    """What one program has shown."""

    def __init__(self):
        self.lines, self.checksum, self.count = [], 0, 0

    def __call__(self, *values):
        text = " ".join([show(value) for value in values])
        self.checksum = zlib.crc32(text.encode("utf-8", "backslashreplace"), self.checksum)
        self.count += 1
        if self.count <= SHOWN:
            self.lines.append(text)


def show(value, depth=0):
    kind = type(value)
    if kind in SIMPLE:
        return ADDRESS.sub("0x", repr(value)[:200])
    if depth > 3:
        return kind.__name__
    if kind is list or kind is tuple:
        return f"{kind.__name__}{len(value)}[" + ", ".join([show(item, depth + 1) for item in value[:8]]) + "]"
    if kind is dict:
        return f"dict{len(value)}" + "{" + ", ".join([show(k, depth + 1) + ": " + show(v, depth + 1) for k, v in list(value.items())[:8]]) + "}"
    if kind is set or kind is frozenset:
        return f"{kind.__name__}{len(value)}" + "{" + ", ".join(sorted([show(item, depth + 1) for item in value])[:8]) + "}"
    if issubclass(kind, BaseException):
        return show_exception(value, depth)
    if issubclass(kind, type) or kind is types.FunctionType or kind is types.BuiltinFunctionType:
        return f"<{kind.__name__} {value.__name__}>"
    if kind is types.MethodType:
        return f"<method {show(value.__func__, depth + 1)} of {type(value.__self__).__name__}>"
    fields = []
    for name in "ab":
        try:
            fields.append(show(object.__getattribute__(value, name), depth + 1))
        except BaseException as error:
            fields.append(type(error).__name__)
    return kind.__name__ + "(" + ", ".join(fields) + ")"


def show_exception(error, depth):
    trace, places = error.__traceback__, []
    while trace is not None:
        places.append(trace)
        trace = trace.tb_next
    parts = [type(error).__name__, show(error.args, depth + 1), str(len(places))]
    if type(error) is UnboundLocalError and sys.version_info < (3, 12):
        del places[-1:]  # a joined STORE_FAST and LOAD_FAST of CPython's says that it is where the first stands
    parts += [f"{trace.tb_frame.f_code.co_name}:{trace.tb_lineno}" for trace in places[-6:]]
    for trace in places[-2:]:
        # Not tb_lasti itself: of a call, CPython shows the instruction or the end of its cache, as it was entered.
        parts.append(str(next(itertools.islice(trace.tb_frame.f_code.co_positions(), trace.tb_lasti // 2, None), None)))
    if isinstance(error, BaseExceptionGroup):
        parts += [show(inner, depth + 1) for inner in error.exceptions]
    if depth < 2:
        for name in ("__cause__", "__context__"):
            other = getattr(error, name)
            if other is not None:
                parts.append(f"{name} {show(other, depth + 1)}")
    return "<" + " ".join(parts) + ">"
