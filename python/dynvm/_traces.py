"""dynvm.traces(): the traces that there are."""

import json

from dynvm import _library


class Kernel:
    """A fused kernel of a trace: name and text (str), its operations as in --dump=ir."""

    def __init__(self, row):
        self.name, self.text = row["name"], row["text"]

    def __repr__(self):
        return f"<kernel {self.name}>"


class Exit:
    """A guard that a trace was left by: count (int), guard (str: its operation), reason (str: what that operation demands), instruction (str: its line in
    the IR), file (str) and line (int) where the interpreter goes on, trace (int or None: the id of a side trace that begins there)."""

    def __init__(self, row):
        self.count, self.guard, self.reason, self.instruction = row["count"], row["guard"], row["reason"], row["instruction"]
        self.file, self.line, self.trace = row["file"], row["line"], row["trace"]

    def __repr__(self):
        return f"<exit by {self.guard} to {self.file}:{self.line}, {self.count} times>"


class Trace:
    """A trace. Its numbers are those of the moment at which they are asked for, and stay as they were last when it has been dropped.

    id (int); file, function (str), first_line, last_line (int): where it begins, and the lines of that function which it runs through; kind (str): "loop",
    "function" or "side"; state (str): "compiled", "compiling" (kernels for GPUs are on their way) or "dropped"; cut (bool): it ends before an instruction
    that a trace cannot hold, or before an inner loop with traces of its own; iterations, runs, exits (int): iterations of the loop that came to their end,
    times that the trace was entered, and left by a guard; rounds (int): iterations of the loop that one of the trace goes through; ir_insts, tensor_ops (int):
    of one iteration of the trace; parent (int or None): the id of the trace that a side trace continues; sizes (str): "recorded", "other" or "all", the sizes
    of tensors that it is for.
    """

    def __init__(self, row):
        self._row = row

    def _now(self):
        text = _library.running().dynvm_trace(self.id, b"numbers")
        self._row = json.loads(text) if text is not None else {**self._row, "state": "dropped"}
        return self._row

    def _ask(self, what, otherwise):
        text = _library.running().dynvm_trace(self.id, what.encode())
        return otherwise if text is None else text.decode(errors="backslashreplace")

    @property
    def id(self):
        return self._row["id"]

    def __getattr__(self, name):
        if name.startswith("_") or name not in self._row or name == "kernels":
            raise AttributeError(f"a trace has no attribute {name!r}")
        return self._now()[name]

    def __dir__(self):
        return [*super().__dir__(), *self._row]

    @property
    def ir(self):
        """The IR after the passes (str); "" when it has been dropped."""
        return self._ask("ir", "")

    @property
    def recorded_ir(self):
        """The IR as it was recorded (str); "" where it was compiled before dynvm was imported, was read from disk, or has been dropped."""
        return self._ask("recorded", "")

    @property
    def functions(self):
        """The functions that it runs through, outermost first ([dict]: function, file (str), first_line, last_line (int))."""
        return json.loads(self._ask("functions", "[]"))

    @property
    def kernels(self):
        """Its fused kernels ([Kernel]); [] when it has been dropped."""
        return [Kernel(row) for row in json.loads(self._ask("kernels", "[]"))]

    @property
    def exit_list(self):
        """The guards that it was left by ([Exit]), the most frequent first."""
        return [Exit(row) for row in json.loads(self._ask("exits", "[]"))]

    @property
    def residuals(self):
        """Operations that an iteration runs as Python does ({name: int}), such as "call print"."""
        return json.loads(self._ask("residuals", "{}"))

    @property
    def library_calls(self):
        """The library's operations that an iteration runs ({name: int}), such as "aten::mm"."""
        return json.loads(self._ask("library", "{}"))

    def __repr__(self):
        row = self._row
        return f"<trace {row['id']} {row['kind']} {row['file']}:{row['first_line']}-{row['last_line']} {row['function']}>"


def traces():
    """All traces that there are, by id: a list of Trace. [] under plain Python."""
    library = _library.running()
    return [Trace(row) for row in json.loads(library.dynvm_traces())] if library is not None else []
