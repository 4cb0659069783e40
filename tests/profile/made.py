"""Profiles for tests: made up, so that every number in them is known; and of scripts, run under `dynvm profile`."""

import copy
import json
import os
import sys
import tempfile

from compare import DYNVM, ROOT, run

sys.path.insert(0, os.path.join(ROOT, "python"))

from dynvm.profile import advice, model  # noqa: E402

SCRIPT = "import torch\n\ndef train(n):\n    for i in range(9):\n        x = step(i)\n        y = x * 2\n        if n == 3:\n            save(x)\n\ntrain(3)\n"
MACHINE = {"processor": "made up", "threads": 1, "bytes_per_s": 1e9, "flops_per_s": 1e9}


def script_file(case):
    """SCRIPT in a file, which is there until the test is over."""
    folder = tempfile.TemporaryDirectory()
    case.addCleanup(folder.cleanup)
    path = os.path.join(folder.name, "script.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(SCRIPT)
    return path


def trace(number, line=4, kind="loop", **changes):
    """100 iterations, 10 ms: 4 in a kernel, 3 in the library, 1 in a residual call, 1 in guards, 1 in and out."""
    insts = [
        {"op": "slot", "kind": "inline", "text": "%0:o = slot #0", "place": -1},
        {"op": "guard_type", "kind": "guard", "text": "guard_type %0", "place": 0},
        {"op": "kernel", "kind": "kernel", "text": "kernel k0 (%0)", "place": 1, "name": "mul_add", "kernel": 0, "runs": 100, "ms": 4.0},
        {"op": "aten", "kind": "library", "text": "aten \"aten::mm\"", "place": 1, "name": "aten::mm", "runs": 100, "ms": 3.0, "bytes": 1000, "flops": 2000},
        {"op": "call", "kind": "residual", "text": "call save", "place": 2, "name": "call save", "runs": 50, "ms": 1.0},
        {"op": "guard_true", "kind": "guard", "text": "guard_true %3", "place": 0},
        {"op": "loop", "kind": "end", "text": "loop", "place": 0},
    ]
    text = "".join(inst["text"] + "\n" for inst in insts)
    places = [inst["place"] for inst in insts]
    stage = {"text": text, "places": places, "insts": list(range(len(insts)))}
    assembly = {"name": "assembly", "text": "push rbx\n" + "mov rax, 1\n" * len(insts), "places": [-1] + places, "insts": [-1] + list(range(len(insts)))}
    kernel = {"name": "mul_add", "device": "cpu", "places": [1], "points": 100, "bytes_read": 8000, "bytes_written": 4000, "flops": 200, "reads": ["s0"], "writes": ["s1"],
              "nodes": [{"op": "load s0", "args": []}, {"op": "2", "args": []}, {"op": "mul", "args": [0, 1]}, {"op": "store s1", "args": [2]}], "text": "kernel text", "code": "c3"}
    made = {"id": number, "number": number, "kind": kind, "function": "train", "place": [0, 10, line], "from_cache": False, "for_sizes": False, "entries": 5, "iterations": 100,
            "tensor_ops": 3, "record_ms": 0.5, "compile_ms": 1.5, "ms": 10.0, "guards_ms": 1.0, "entry_ms": 0.25, "exit_ms": 0.75,
            "places": [[0, 10, line, -1], [0, 20, line + 1, -1], [1, 4, 2, 1]], "insts": insts, "kernels": [kernel], "exits": [],
            "stages": [dict(stage, name="recorded"), dict(stage, name="fuse"), assembly]}
    made.update(changes)
    return made


def leave(count, inst=5, reason="branch", **changes):
    made = {"inst": inst, "place": [0, 10, 4], "reason": reason, "sentence": "does not hold this time", "what": "n == 3", "count": count, "at_entry": 0, "values": {"5": count}, "to": []}
    made.update(changes)
    return made


def data(traces=None, script="script.py", **changes):
    """1 s: 500 ms interpreter, the rest in round numbers. Line 5 calls line 2 of another file."""
    traces = [trace(1)] if traces is None else traces
    parts = {"start": 10.0, "interpreter": 500.0, "recording": 20.0, "compiling": 20.0, "cache": 0.0, "gc": 10.0, "profile": 5.0, "finish": 15.0}
    parts["traces"] = sum(each["ms"] for each in traces)
    made = {"version": 1, "program": {"command": script, "python": "3"}, "wall_ms": sum(parts.values()), "other_threads_ms": 0.0, "parts": parts, "collections": 7,
            "files": [script, "/lib/python3/site-packages/lib.py", "<frozen importlib._bootstrap>"],
            "codes": [{"file": 0, "name": "train", "line": 3, "bytecode": [[10, 4, "ForIter"], [20, 5, "Call 1"]]}, {"file": 1, "name": "save", "line": 1, "bytecode": [[4, 2, "LoadFast x"]]},
                      {"file": 2, "name": "_find", "line": 1, "bytecode": []}],
            "traces": traces, "recordings": [{"place": [0, 10, 4], "side": False, "trace": traces[0]["id"] if traces else 0, "result": "kept", "sentence": "", "detail": "", "start_ms": 20.0, "ms": 20.0}],
            "events": [{"kind": "record", "name": "script.py:4", "trace": 0, "start_ms": 20.0, "ms": 20.0, "count": 1}]
            + [{"kind": "run", "name": "", "trace": each["id"], "start_ms": 50.0, "ms": each["ms"], "count": each["entries"]} for each in traces],
            "sample_ms": 1.0, "samples_lost": 0,
            "samples": [{"part": "interpreter", "frames": [[0, 0, 10], [0, 0, 5]], "count": 30}, {"part": "interpreter", "frames": [[0, 0, 10], [0, 0, 5], [1, 0, 2]], "count": 50},
                        {"part": "interpreter", "frames": [[0, 0, 1], [2, 0, 7]], "count": 20}] + [{"part": "trace", "trace": each["id"], "frames": [[0, 0, 10], [0, 0, 4]], "count": 10} for each in traces[:1]]}
    made.update(changes)
    return copy.deepcopy(made)


def profile(made=None, **changes):
    """A Profile of it, with advice."""
    result = model.Profile(made if made is not None else data(**changes))
    result.machine = MACHINE
    result.advice = advice.findings(result)
    return result


class Run:
    """`dynvm profile` of a script's text: outcome, and the profile as a Profile."""

    def __init__(self, text, *options, env=None):
        self.folder = tempfile.TemporaryDirectory()
        self.script = os.path.join(self.folder.name, "script.py")
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(text)
        self.out = os.path.join(self.folder.name, "out")
        self.begin(*options, env=env)

    def begin(self, *options, env=None):
        one = {"DYNVM_HEURISTICS": "unroll_rounds=1"}  # what is asserted is of one iteration
        self.outcome = run(DYNVM, ["profile", "-o", self.out, *options, self.script], env={"PYTHONPATH": os.path.join(ROOT, "python"), **one, **(env or {})}, cwd=self.folder.name)
        self.profile = model.read(self.out) if os.path.exists(self.file("profile.json")) else None

    def file(self, name):
        return os.path.join(self.out, name)

    def json(self, name):
        with open(self.file(name), encoding="utf-8") as file:
            return json.load(file)

    def close(self):
        self.folder.cleanup()
