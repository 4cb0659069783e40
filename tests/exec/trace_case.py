"""Base of the tests of compiled traces: compiling IR text, running it, looking for leaks.

The extension module is in $DYNVM_EXEC_TEST (CMakeLists.txt).
"""

import gc
import os
import re
import sys
import unittest

sys.path.insert(0, os.environ.get("DYNVM_EXEC_TEST", "."))
import _dynvm_exec as native  # noqa: E402

NULL, UNCHANGED = native.NULL, native.UNCHANGED
CELL_CONTENT = 16  # offset of a cell's content, and of an object's first __slots__ member


class TraceCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        gc.freeze()  # torch's modules make each collection slow

    def compile(self, body, namespace=None, storages=None, **options):
        if storages is not None:
            options.setdefault("log", [])
            options.setdefault("state", [True])
            options["storages"] = storages
        count = len(storages) if storages else 1 + max(map(int, re.findall(r"[})] s(\d+)", body)), default=-1)
        return native.compile(f'trace 1 "test" storages {count}\n{body}\n', dict(namespace or {}), **options)

    def leave_with(self, lines, result, slots=1, namespace=None, **options):
        """A trace that runs `lines` and leaves with `result` in its one slot; snap0 is the entry state."""
        entry = ", ".join("=" for _ in range(slots))
        names = "\n".join(f"%s{k}:o = slot #{k}" for k in range(slots))
        return self.compile(f"{names}\n{lines}\nleave !snap1\nsnap0: root unit 0 [{entry}]\nsnap1: root unit 9 [{result}]\n", namespace, **options)

    def apply(self, line, *slots, namespace=None, imm=None, **options):
        """The value of `%r = line` for these slots; an exception that it raises is raised. Checks for leaks."""
        trace = self.leave_with(line, "%r", len(slots), namespace, **options)
        outcome = self.result_of(trace, slots)
        self.check_leaks(lambda: self.result_of(trace, slots, raising=False))
        return outcome

    def result_of(self, trace, slots, raising=True):
        kind, _, frames, error = trace.run(list(slots))
        if error is not None:
            self.assertEqual(kind, "error")
            if raising:
                raise error.with_traceback(None)
            return None
        if kind == "guard":
            return "guard"
        self.assertEqual(kind, "leave")
        return frames[0][4][0]

    def check_leaks(self, function, times=200):
        growth = []
        for _ in range(4):  # the first rounds fill free lists and caches
            gc.collect()
            before = sys.getallocatedblocks()
            for _ in range(times):
                function()
            gc.collect()
            growth.append(sys.getallocatedblocks() - before)
        self.assertLess(min(growth), times // 4, "memory grows with each run")

    def check_counts(self, function, *objects, times=50):
        """The reference counts of the objects are the same after many runs."""
        before = [sys.getrefcount(o) for o in objects]
        for _ in range(times):
            function()
        self.assertEqual([sys.getrefcount(o) for o in objects], before)
