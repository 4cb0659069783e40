"""profile.json read, and the tables that are derived from it.

Input: what the process wrote (docs/profile.md). Output: a Profile. All times are milliseconds.

Time of Python lines is estimated: the interpreter's time, which is exact, is divided among lines as its samples are. Time in traces is exact for
each instruction that calls something (kernels, the library, residual calls); the rest of a trace, guards and numbers, is divided evenly among
its other instructions. A line's `total` counts what it has called too, traces as their samples say who called them; of what it imports, the
modules' own lines count nothing.
Tests: tests/profile/test_model.py.
"""

import ast
import collections
import json
import os
import tokenize

from . import machine

PARTS = ("start", "imports", "interpreter", "recording", "compiling", "cache", "traces", "gc", "profile", "finish")

# What an exit is about, where it has no name in the script.
NAMELESS = {"sizes": "a tensor", "branch": "a condition", "value": "a number", "number": "a number", "type": "a value", "object": "an object", "state": "something",
            "end": "the loop", "error": "an operation"}


def what_of(exit):
    return exit["what"] or NAMELESS[exit["reason"]]


def values_of(exit):
    """What was seen there, the usual ones first."""
    return [] if exit["reason"] == "end" else sorted(exit["values"], key=lambda value: -exit["values"][value])


class Line:
    """One line of the source: times as `self` (the line's own instructions) and `total` (with what they called)."""

    def __init__(self, file, line):
        self.file, self.line = file, line
        self.python = self.python_total = 0.0
        self.imports = 0.0                 # what it imported, in all
        self.trace = self.trace_total = 0.0
        self.recording = 0.0
        self.exits = 0
        self.traces = set()
        self.recorded = False

    @property
    def self_ms(self):
        return self.python + self.trace + self.recording

    @property
    def total_ms(self):
        return self.python_total + self.trace_total + self.imports

    @property
    def state(self):
        if self.traces:
            return "compiled"
        if self.recorded or self.recording:
            return "recorded"
        return "interpreted" if self.python_total or self.python or self.imports else "none"

    def as_json(self):
        return {"file": self.file, "line": self.line, "state": self.state, "self_ms": self.self_ms, "total_ms": self.total_ms, "python_ms": self.python,
                "imports_ms": self.imports,
                "trace_ms": self.trace, "recording_ms": self.recording, "exits": self.exits, "traces": sorted(self.traces)}


class Profile:
    def __init__(self, data):
        self.data = data
        self.wall = data["wall_ms"]
        self.parts = data["parts"]
        self.files = data["files"]
        self.codes = data["codes"]
        self.traces = data["traces"]
        self.machine = data.get("machine")
        self.advice = data.get("advice", [])
        self.by_id = {trace["id"]: trace for trace in self.traces}
        self._begins = {recording["trace"]: recording["place"] for recording in data["recordings"] if recording["side"] and recording["trace"]}
        self._sources = None
        self._interpreted, self._extents = {}, {}  # of loops, by place; by file
        self.imports = collections.Counter()  # of the interpreter's and the garbage collector's time: what imports took
        self.lines = self._lines()
        self.kernels = self._calls("kernel")
        self.calls_of_kernel = collections.defaultdict(list)  # by trace and number
        for call in self.kernels:
            self.calls_of_kernel[call["trace"], call["kernel"]].append(call)
        self.library = self._calls("library")
        self.residuals = self._calls("residual")
        self.exits = self._exits()
        self.gpu = data.get("gpu") or {"device": "", "missing": "", "works": [], "events": []}
        self._share_gpu_time()

    # --- names

    def file_of(self, place):
        return self.codes[place[0]]["file"] if place[0] >= 0 else -1

    def where(self, place):
        """"train.py:41"."""
        file = self.file_of(place)
        return f"{os.path.basename(self.files[file])}:{place[2]}" if file >= 0 else "?"

    def is_own(self, file):
        """Is it the script's, and not a library's?"""
        path = self.files[file]
        return not (path.startswith("<") or "site-packages" in path or "dist-packages" in path or "/lib/python3" in path)

    def begin_of(self, trace):
        """Where it begins: a side trace at the exit that it was recorded from, where that is known."""
        return self._begins.get(trace["id"], trace["place"])

    def callers(self, trace, place):
        """The place and those of the calls that led there, innermost first."""
        while place >= 0:
            yield trace["places"][place]
            place = trace["places"][place][3]

    def own_place(self, trace, place):
        """The innermost place in the script's own files; else the innermost one."""
        chain = list(self.callers(trace, place))
        return next((at for at in chain if self.is_own(self.file_of(at))), chain[0] if chain else trace["place"])

    # --- loops

    def importing(self, sample):
        """The depth at which a sample's frames are those of an import, or None."""
        return next((depth for depth, frame in enumerate(sample["frames"]) if "importlib._bootstrap" in self.files[self.file_of(frame)]), None)

    def extent(self, place):
        """The lines (first, last) of the loop or function that begins there, as the source has it; the line alone, where there is none."""
        file, line = self.file_of(place), place[2]
        if file not in self._extents:
            try:
                nodes = ast.walk(ast.parse("\n".join(self.sources().get(file, []))))
            except (SyntaxError, ValueError):
                nodes = []
            self._extents[file] = {}
            for node in nodes:
                if isinstance(node, (ast.For, ast.While, ast.AsyncFor, ast.FunctionDef, ast.AsyncFunctionDef)):
                    first = min([node.lineno] + [each.lineno for each in getattr(node, "decorator_list", [])])
                    self._extents[file].setdefault(first, (first, node.end_lineno))
        return self._extents[file].get(line, (line, line))

    def interpreted_in(self, place):
        """Time in which the loop, with what it calls but not imports, ran in the interpreter or was recorded; estimated from samples."""
        key = tuple(place[:3])
        if key not in self._interpreted:
            (first, last), ms = self.extent(place), 0.0
            for part in ("interpreter", "recording"):
                samples = [sample for sample in self.data["samples"] if sample["part"] == part]
                inside = sum(sample["count"] for sample in samples if any(frame[0] == key[0] and first <= frame[2] <= last for frame in sample["frames"]) and self.importing(sample) is None)
                ms += self.parts[part] * inside / sum(sample["count"] for sample in samples) if inside else 0
            self._interpreted[key] = ms
        return self._interpreted[key]

    # --- tables

    def _lines(self):
        lines = {}

        def line_at(place):
            key = (self.file_of(place), place[2])
            if key not in lines:
                lines[key] = Line(*key)
            return lines[key]

        def each_once(places):
            return {(self.file_of(place), place[2]): place for place in places if self.file_of(place) >= 0}.values()

        counts = collections.Counter()
        for sample in self.data["samples"]:
            counts[sample["part"]] += sample["count"]
            if sample["part"] == "trace":
                counts[sample["trace"]] += sample["count"]
        for sample in self.data["samples"]:
            part = sample["part"]
            if part == "trace" and sample["trace"] in self.by_id:
                # The innermost frame is the trace's own; its time is divided below.
                for place in each_once(sample["frames"][:-1]):
                    line_at(place).trace_total += self.by_id[sample["trace"]]["ms"] * sample["count"] / counts[sample["trace"]]
            if part == "trace" or not sample["frames"]:
                continue
            ms = self.parts[part] * sample["count"] / counts[part]
            importing = self.importing(sample)
            if importing is not None and part in ("interpreter", "gc"):
                self.imports[part] += ms
                for place in each_once(sample["frames"][:importing]):
                    line_at(place).imports += ms
                continue
            innermost = line_at(sample["frames"][-1])
            if part == "recording":
                innermost.recording += ms
            elif part == "interpreter":
                innermost.python += ms
            if part in ("interpreter", "recording"):
                for place in each_once(sample["frames"]):
                    line_at(place).python_total += ms
        for recording in self.data["recordings"]:
            line_at(recording["place"]).recorded = True
        for trace in self.traces:
            runs = trace["iterations"] + trace["entries"] > 0
            rest = [inst for inst in trace["insts"] if "ms" not in inst and inst["place"] >= 0 and inst["kind"] in ("guard", "inline")]
            share = trace["guards_ms"] / len(rest) if rest else 0
            lost = trace["ms"] - sum(inst.get("ms", 0) for inst in trace["insts"] if inst["place"] >= 0) - share * len(rest)
            spent = [(inst["place"], inst["ms"]) for inst in trace["insts"] if "ms" in inst and inst["place"] >= 0]
            for place, ms in spent + [(inst["place"], share) for inst in rest]:
                chain = list(self.callers(trace, place))
                innermost = line_at(chain[0])
                innermost.trace += ms
                for at in each_once(chain):
                    line_at(at).trace_total += ms
            header = line_at(trace["place"])
            header.trace += lost
            header.trace_total += lost
            if runs:
                for place in trace["places"]:
                    if self.file_of(place) >= 0:
                        line_at(place).traces.add(trace["id"])
            for exit in trace["exits"]:
                line_at(exit["place"]).exits += exit["count"]
        return lines

    def _calls(self, kind):
        """Instructions of that kind that ran, the costly ones first."""
        calls = []
        for trace in self.traces:
            for number, inst in enumerate(trace["insts"]):
                if inst["kind"] == kind and inst.get("runs"):
                    calls.append(dict(inst, trace=trace["id"], inst=number, at=self.own_place(trace, inst["place"])))
        return sorted(calls, key=lambda call: -call["ms"])

    def _share_gpu_time(self):
        """`gpu_ms` and `gpu_runs` of the traces' kernels. CUPTI tells functions, and equal kernels, of one name, are one: they share its time as their
        launches and bytes are."""
        works = {work["name"]: work for work in self.gpu["works"]}
        same = collections.defaultdict(list)
        for call in self.kernels:
            kernel = self.by_id[call["trace"]]["kernels"][call["kernel"]]
            if "function" in kernel:
                same[kernel["function"]].append((call, call["runs"] * (kernel["bytes_read"] + kernel["bytes_written"] + 1)))
        for name, calls in same.items():
            work = works.get(name)
            if work is None:
                continue
            weight, runs = sum(each for _, each in calls), sum(call["runs"] for call, _ in calls)
            for call, each in calls:
                call["gpu_ms"] = work["ms"] * each / weight
                call["gpu_runs"] = work["runs"] * call["runs"] / runs
            work["traces"] = sorted({call["trace"] for call, _ in calls})
            work["at"] = calls[0][0]["at"]

    def kernel_cost(self, kernel, calls):
        """(milliseconds, runs, share of the roofline or None) of a kernel's calls. On a GPU those of the kernel, not of its launches: 0 where they are not known."""
        on_gpu = kernel["device"] != "cpu"
        prefix = "gpu_" if on_gpu else ""
        ms, runs = (sum(call.get(prefix + key, 0) for call in calls) for key in ("ms", "runs"))
        moved = kernel["bytes_read"] + kernel["bytes_written"]
        return ms, runs, machine.fraction(self.gpu if on_gpu else self.machine, ms / runs, moved, kernel["flops"]) if runs else None

    def by_name(self, calls):
        """[(name, ms, runs, calls)], the costly ones first."""
        names = collections.defaultdict(list)
        for call in calls:
            names[call["name"]].append(call)
        return sorted(((name, sum(c["ms"] for c in same), sum(c["runs"] for c in same), same) for name, same in names.items()), key=lambda row: -row[1])

    def _exits(self):
        exits = []
        for trace in self.traces:
            left = sum(exit["count"] - exit["at_entry"] for exit in trace["exits"])
            begun = trace["iterations"] + left  # iterations that were begun: each one that is not complete was left
            for exit in trace["exits"]:
                inst = trace["insts"][exit["inst"]]
                own = self.own_place(trace, inst["place"])
                tried = trace["entries"] if exit["at_entry"] == exit["count"] else begun
                exits.append(dict(exit, trace=trace["id"], at=own, share=exit["count"] / tried if tried else 0.0,
                                  linked=sum(count for _, count in exit["to"])))
        return sorted(exits, key=lambda exit: -exit["count"])

    def sources(self):
        """Lines of each file that can be read, by the file's number."""
        if self._sources is None:
            self._sources = {}
            for number, path in enumerate(self.files):
                try:
                    with tokenize.open(path) as file:
                        self._sources[number] = file.read().splitlines()
                except (OSError, SyntaxError, UnicodeDecodeError):
                    continue
        return self._sources

    @property
    def work(self):
        """The time without what any script takes: beginning, imports, end."""
        parts = self.parts_with_imports()
        return sum(parts[name] for name in ("interpreter", "recording", "compiling", "traces", "gc"))

    def parts_with_imports(self):
        """In the order of a run."""
        parts = {name: ms - self.imports[name] for name, ms in self.parts.items()}
        parts["imports"] = self.imports.total()
        return {name: parts[name] for name in PARTS}

    def write(self, folder):
        data = dict(self.data, machine=self.machine, advice=self.advice, imports_ms=self.imports.total())
        data["lines"] = [line.as_json() for line in sorted(self.lines.values(), key=lambda line: -line.self_ms) if line.file >= 0]
        with open(os.path.join(folder, "profile.json"), "w", encoding="utf-8") as file:
            json.dump(data, file, separators=(",", ":"))


def read(folder):
    with open(os.path.join(folder, "profile.json"), encoding="utf-8") as file:
        data = json.load(file)
    if data.get("version") != 1:
        raise ValueError(f"profile.json has version {data.get('version')}, this dynvm reads 1")
    return Profile(data)
