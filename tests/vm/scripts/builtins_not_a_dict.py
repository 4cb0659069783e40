# __builtins__ may be any mapping; whether `import` finds __import__ there is the version's affair.
import types


class Missing(dict):
    def __missing__(self, key):
        if key.startswith("__"):
            raise KeyError(key)
        return key * 2


SOURCES = ["import foo.bar", "from foo import bar", "x = len", "class C: pass", "x = unknown", "print(1)"]
FOUND = {"__import__": lambda *arguments: types.SimpleNamespace(bar=len(arguments)), "len": 5}
for kind in dict, Missing, types.MappingProxyType:
    for builtins in {}, FOUND:
        for source in SOURCES:
            space = {"__builtins__": kind(builtins)}
            try:
                exec(source, space)
            except BaseException as error:
                print(kind.__name__, source, type(error).__name__, str(error).partition(": ")[2] or error)
            else:
                print(kind.__name__, source, {k: str(v) for k, v in space.items() if k != "__builtins__"})
