"""`import torch._dynamo`, which takes a second, waits until something of it is needed.

Purpose:  torch itself imports it for scripts that compile nothing: each optimizer's step calls graph_break(), and what stands behind torch._disable_dynamo calls disable(). Both
  do nothing as long as no frame is compiled.
Inputs:   the module torch, imported. Outputs: sys.modules["torch._dynamo"] and torch._dynamo, which know these two functions; anything else that is asked of them loads the module,
  which takes their place.
Invariants: a script sees no difference but the time. What disable() has given by then gives way to the module's own. Tracebacks and warnings name the lines that they would.
Tests:    tests/dynamo/test_lazy.py.
"""

import importlib
import importlib.util
import os
import sys
import types
import weakref

NAME = "torch._dynamo"
CLASS = "class DisableContext(_TorchDynamoContext):"  # in eval_frame.py: its function calls what is disabled
CALL = "return fn(*args, **kwargs)"


def caller(path):
    """fn -> what calls it, where the function of eval_frame.py, at this path, does; None: that is not known."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    begin = lines.index(CLASS) if CLASS in lines else len(lines)
    end = next((number for number in range(begin, len(lines)) if lines[number].strip() == "finally:"), begin)
    call = max((number for number in range(begin, end) if lines[number].strip() == CALL), default=0)
    if call < 2:
        return None
    space = {"__name__": NAME + ".eval_frame", "__file__": path}
    text = ["def disabled(fn):", "  def _fn(*args, **kwargs):", lines[call], "  return _fn"]
    exec(compile("\n" * (call - 2) + "\n".join(text), path, "exec"), space)
    return space["disabled"]


def install(torch):
    modules = sys.modules
    spec = importlib.util.find_spec(NAME) if NAME not in modules else None
    if spec is None or not spec.origin:
        return
    path = os.path.join(os.path.dirname(spec.origin), "eval_frame.py")
    disabled = caller(path) if os.path.exists(path) else None
    given = weakref.WeakKeyDictionary()  # function: whether what it calls is disabled too
    if disabled is None:
        return

    def load():
        if modules.get(NAME) is lazy:
            del modules[NAME]
            try:
                own = importlib.import_module(NAME)
            except BaseException:
                modules[NAME] = lazy
                raise
            for fn, recursive in list(given.items()):
                fn.__dynamo_disable = own.disable(fn, recursive, wrapping=False)
            given.clear()
        return importlib.import_module(NAME)

    class LazyModule(types.ModuleType):
        def __getattr__(self, name):
            return getattr(load(), name)

        def __setattr__(self, name, value):
            setattr(load(), name, value)

        def __delattr__(self, name):
            delattr(load(), name)

        def __dir__(self):
            return dir(load())

    def graph_break(msg=""):
        return None

    def disable(*args, **options):
        if options == {"wrapping": False} and len(args) == 2 and type(args[0]) is types.FunctionType:  # torch._disable_dynamo
            given[args[0]] = args[1]
            return disabled(args[0])
        return load().disable(*args, **options)

    lazy = LazyModule(NAME)
    lazy.__dict__.update(__spec__=spec, __loader__=spec.loader, __package__=NAME, __file__=spec.origin, graph_break=graph_break, disable=disable)
    modules[NAME] = torch._dynamo = lazy
