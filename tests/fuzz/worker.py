"""Runs programs one after the other in one process and prints what each shows.

Usage: python worker.py FILE. Inputs: a JSON list of [name, text, seed of changes or null, those to make or null] (mutate.py).
Outputs: for each a line MARK + name, a line for each value that it shows (all values in the checksum, the first ones as text), a line END.
Invariants: each program has globals, prelude.py's code objects and builtins of its own; the collector runs only where a program asks.
  What is shown has no addresses, and looking at a value changes nothing about it.
Tests: run.py.
"""

import builtins
import gc
import json
import marshal
import math
import os
import resource
import signal
import sys
import warnings

MARK, END = "=== program ", "=== end"
FOLDER = os.path.dirname(os.path.abspath(__file__))
SECONDS = float(os.environ.get("DYNVM_FUZZ_SECONDS", "3"))  # of processor time for a program; a signal ends the process then

_BUILTINS, _MATH = dict(vars(builtins)), dict(vars(math))


def restore_builtins():
    for module, names in ((builtins, _BUILTINS), (math, _MATH)):
        for name in [name for name in vars(module) if name not in names]:
            delattr(module, name)
        for name, value in names.items():
            if getattr(module, name) is not value:
                setattr(module, name, value)


def code_of(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return compile(file.read(), f"<{name[:-3]}>", "exec", dont_inherit=True)


PRELUDE = marshal.dumps(code_of("prelude.py"))
SHOWN = {"__builtins__": dict(_BUILTINS), "__name__": "shown"}
exec(code_of("shown.py"), SHOWN)


def run_one(text, seed, changes):
    log = SHOWN["Log"]()
    code = compile(text, "<program>", "exec", dont_inherit=True)
    if seed is not None:
        import mutate
        code = mutate.mutate(code, seed, changes)
    names = {"__name__": "__main__", "log": log, "fuel": [None] * 700, "restore_builtins": restore_builtins}

    def make(cls):
        try:
            return cls(1)
        except Exception as error:
            log("make", error)
            return names["Base"](2)
    names["make"] = make
    if "assembled" in text:
        import assemble
        names["assembled"] = assemble.function
    sys.unraisablehook = lambda entry: log("unraisable", entry.exc_value)
    try:
        exec(marshal.loads(PRELUDE), names)
        if "__del__" not in text and "weakref" not in text and "GeneratorExit" not in text and "finally" not in text:
            gc.set_threshold(5)  # when the collector runs is nobody's business but that of finalizers
            gc.enable()
        exec(code, names)
    except BaseException as error:
        log("end", error)
    sys.settrace(None)
    sys.setprofile(None)
    gc.disable()
    gc.set_threshold(700, 10, 10)
    restore_builtins()
    names.clear()
    gc.collect()
    return log


def main():
    gc.disable()
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(int(os.environ.get("DYNVM_FUZZ_LIMIT", "160")))
    with open(sys.argv[1], encoding="utf-8") as file:
        programs = json.load(file)
    if "LD_PRELOAD" not in os.environ:  # sanitizers map more
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    for name, text, seed, changes in programs:
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        print(MARK + name, flush=True)
        log = run_one(text, seed, changes)
        print("\n".join(log.lines))
        print(f"{log.count} values, checksum {log.checksum:08x}")
        print(END, flush=True)


if __name__ == "__main__":
    main()
