"""What is tried, in which order: python twice, dynvm, without traces, without this loop's, without that part, pass, operation, kernel.

Inputs: a Program, a Judge. Outputs: a Verdict. Invariants: each culprit that is named has been left out in a run whose result was right, and nothing else was.
Tests: tests/bisect/test_bisect.py, tests/bisect/test_search.py.
"""

import os

from dynvm.bisect.search import grown, minimal

# Not a way out by themselves: any switch does without the cache, and native runs are looked at without traces.
_NO_PARTS = ("cache", "native", "again")
# The kinds from the widest to the narrowest, with what is said of them.
KINDS = (("trace", "the loop at"), ("opt", "the part"), ("pass", "the pass"), ("record", "the operation"), ("op", "the operation"), ("kernel", "the kernel"))
# More operations or kernels than this say less than the pass does, and each takes log2 n runs: no set of them is named then.
MOST = 3
RIGHT, WRONG, UNSTEADY = "right", "wrong", "unsteady"


class Culprit:
    """kind: one of KINDS, or "interpreter"; names: those of it that have to be left out together."""

    def __init__(self, kind, names):
        self.kind, self.names = kind, names

    @property
    def switches(self):
        return [f"{self.kind}:{name}" for name in self.names]

    def text(self):
        names = [f"{os.path.basename(file)}:{line}" for file, _, line in (name.rpartition(":") for name in self.names)] if self.kind == "trace" else self.names
        return f"{dict(KINDS).get(self.kind, 'the')} {', '.join(names)}"


class Verdict:
    """kind: RIGHT, WRONG or UNSTEADY; wrong: what differs; culprits: from the widest to the narrowest; text: all of it in a sentence; safe: --safe is right."""

    def __init__(self, kind, text, wrong="", culprits=(), option="", safe=None):
        self.kind, self.text, self.wrong, self.culprits, self.option, self.safe = kind, text, wrong, list(culprits), option, safe


class Investigation:
    def __init__(self, program, judge, tables, tell):
        """tables: what `dynvm_switches` gives; tell: called with a line of what is going on."""
        self.program, self.judge, self.tables, self.tell = program, judge, tables, tell

    def opinion(self, switches=(), options=()):
        """What is wrong with such a run, "" where it is right."""
        before = self.program.count
        wrong = self.judge.opinion(self.program.dynvm(switches, options))
        if self.program.count != before:
            words = [*options, *([f"--disable={','.join(switches)}"] if switches else [])]
            self.tell(f"{' '.join(words) or 'dynvm'}: {'wrong: ' + wrong.splitlines()[0] if wrong else 'right'}")
        return wrong

    def run(self):
        if self.judge.by_python():
            self.judge.expected = self.program.python()
            again = self.judge.opinion(self.program.python())
            self.tell(f"python: {self.judge.expected.ending()}")
            if again:
                return Verdict(UNSTEADY, f"python's own two runs differ, so there is nothing to compare with (--check or --expect may help): {again}", again)
        wrong = self.opinion()
        if not wrong:
            return Verdict(RIGHT, "dynvm's result is right")
        if self.opinion(options=("--jit=off",)):
            return self.interpreter(wrong)
        return self.traces(wrong)

    def interpreter(self, wrong):
        """It is wrong without traces too."""
        if not self.opinion(("opt:native",), ("--jit=off",)):
            return Verdict(WRONG, "native runs of the interpreter; --native=off avoids it", wrong, [Culprit("opt", ["native"])], "--native=off")
        if not self.opinion(options=("--vm=off",)):
            return Verdict(WRONG, "dynvm's interpreter; --vm=off avoids it", wrong, [Culprit("interpreter", ["interpreter"])], "--vm=off")
        return Verdict(WRONG, "it is wrong on CPython's own interpreter too (--vm=off): not what dynvm executes, but how it is started", wrong)

    def traces(self, wrong):
        usual = self.program.dynvm()
        culprits = []
        for kind, _ in KINDS:
            names = self.leave_out(kind, usual, culprits[0].names if culprits and culprits[0].kind == "trace" else None)
            if names:
                culprits.append(Culprit(kind, names))
        safe = not self.opinion(options=("--safe",))
        if not culprits:
            return Verdict(WRONG, "traces, but no loop, pass, operation or kernel by itself; --jit=off avoids it" + (", and so does --safe" if safe else ""), wrong, (), "--jit=off", safe)
        narrowest = culprits[-1]
        loop = culprits[0] if culprits[0].kind == "trace" else None
        where = f" in {loop.text()}" if loop is not None and narrowest is not loop else ""
        others = [each.text() for each in culprits[:-1] if each is not loop]
        also = f" (right as well without {'; '.join(others)})" if others else ""
        option = f"--disable={','.join(narrowest.switches)}"
        text = f"{narrowest.text()}{where}{also}; {option} avoids it" + (", and so does --safe" if safe else "")
        return Verdict(WRONG, text, wrong, culprits, option, safe)

    def leave_out(self, kind, usual, places):
        """The smallest set of switches of that kind that makes the result right, [] where none does. places: the loops that it is about, None: any."""
        def right(names):
            return not self.opinion([f"{kind}:{name}" for name in names])

        def more(names):
            switches = [f"{kind}:{name}" for name in names]
            return self.candidates(kind, self.program.dynvm(switches), places, switches)

        candidates = self.candidates(kind, usual, places)
        names = grown(candidates, right, more)
        if names:
            return minimal(names, right, None if kind == "trace" else MOST) or []
        # Without all of them something else may be wrong; passes are few enough to be left out one by one.
        return next(([name] for name in candidates if right([name])), []) if kind == "pass" else []

    def candidates(self, kind, outcome, places, switches=()):
        """Names of that kind that play a part in a run."""
        if kind == "opt":
            return [name for name in self.tables["parts"] if name not in _NO_PARTS]
        if kind == "pass":
            return list(self.tables["passes"])
        if kind == "trace":
            return self.program.places(outcome, switches)
        key = "kernel_names" if kind == "kernel" else "operations"
        traces = outcome.report.get("traces", [])
        chosen = [trace for trace in traces if places is None or f"{trace['file']}:{trace['line']}" in places] or traces
        return list(dict.fromkeys(name for trace in chosen for name in trace[key] if name.startswith("aten::") or kind == "kernel"))
