"""Runs a script again and again in one process and prints what is allocated in between.

Usage: python repeat.py SCRIPT COUNT. Outputs: a JSON line, a list of [blocks, bytes, references] after each of the shares CHECKPOINTS of all
  repetitions: Python's small blocks, malloc's bytes in use (those of decoded code are among them), and the sum of reference counts where this
  Python has it. Invariants: each repetition compiles the script anew and has globals of its own; what it prints is lost; garbage is collected and
  the modules that it imported and its types' caches are dropped before looking.
Tests: run.py.
"""

import ctypes
import gc
import io
import json
import sys
import types
import warnings

CHECKPOINTS = (0.4, 0.7, 1.0)


class Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks",
                                                     "keepcost")]


def malloc_bytes():
    """Bytes that the C library has given out; 0 where it does not say (sanitizers, old ones)."""
    try:
        function = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return 0
    function.restype = Mallinfo2
    info = function()
    return info.uordblks + info.hblkhd


def once(text, path):
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    try:
        exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)
    except (Exception, SystemExit, KeyboardInterrupt):
        pass
    finally:
        sys.settrace(None)
        sys.setprofile(None)
        sys.stdout, sys.stderr = out, err


def main():
    path, count = sys.argv[1], int(sys.argv[2])
    with open(path, encoding="utf-8") as file:
        text = file.read()
    warnings.simplefilter("ignore")
    sys.argv[:] = [path]
    ends = {max(1, int(count * share)) for share in CHECKPOINTS}
    rows = []
    malloc_bytes()
    for number in range(1, count + 1):
        once(text, path)
        if number in ends or number == 1:
            sys.modules["__main__"] = types.ModuleType("__main__")
            gc.collect()
            gc.collect()
            sys._clear_type_cache()
            row = [sys.getallocatedblocks(), malloc_bytes(), sys.gettotalrefcount() if hasattr(sys, "gettotalrefcount") else 0]
            if number in ends:
                rows.append(row)
    print("\n" + json.dumps(rows))


main()
