"""What is tried, in which order: python twice, dynvm, without traces, without this loop's, without that part, pass, operation, kernel.

Inputs: a Program, a Judge. Outputs: a Verdict. Invariants: each culprit that is named has been left out in a run whose result was right, and nothing else was; where it is no loop, the loop had
  traces in that run: what only keeps it from being traced says nothing more than the loop does. A culprit with `other`: the run was right where the usual one is wrong, and wrong elsewhere.
Tests: tests/bisect/test_bisect.py, tests/bisect/test_search.py.
"""

import os

from dynvm.bisect.search import grown, minimal, smallest

# Not a way out by themselves: any switch does without the cache, and native runs are looked at without traces.
_NO_PARTS = ("cache", "native", "again")
# The kinds from the widest to the narrowest, with what is said of them.
KINDS = (("trace", "the loop at"), ("opt", "the part"), ("pass", "the pass"), ("record", "the operation"), ("op", "the operation"), ("kernel", "the kernel"))
# More operations or kernels than this say less than the pass does, and each takes log2 n runs: no set of them is named then.
MOST = 3
# The pass that makes kernels: where the result is right without one of them, it is to be so without this pass, whichever other pass has been found.
KERNELS = "fuse"
RIGHT, WRONG, UNSTEADY = "right", "wrong", "unsteady"


class Culprit:
    """kind: one of KINDS, or "interpreter"; names: those of it that have to be left out together; other: what is wrong then instead, "" where nothing is."""

    def __init__(self, kind, names, other=""):
        self.kind, self.names, self.other = kind, names, other

    @property
    def switches(self):
        return [f"{self.kind}:{name}" for name in self.names]

    def text(self):
        names = [f"{os.path.basename(file)}:{line}" for file, _, line in (name.rpartition(":") for name in self.names)] if self.kind == "trace" else self.names
        return f"{dict(KINDS).get(self.kind, 'the')} {', '.join(names)}"


class Verdict:
    """kind: RIGHT, WRONG or UNSTEADY; wrong: what differs; culprits: from the widest to the narrowest; text: all of it in a sentence; safe: --safe is right.

    untraced: Culprits without which the loop has no traces, so that the result is right whatever is wrong in them.
    """

    def __init__(self, kind, text, wrong="", culprits=(), option="", safe=None, untraced=()):
        self.kind, self.text, self.wrong, self.culprits, self.option, self.safe, self.untraced = kind, text, wrong, list(culprits), option, safe, list(untraced)


class Investigation:
    def __init__(self, program, judge, tables, tell):
        """tables: what `dynvm_switches` gives; tell: called with a line of what is going on."""
        self.program, self.judge, self.tables, self.tell = program, judge, tables, tell
        self._opinions = {}

    def opinion(self, switches=(), options=()):
        """What is wrong with such a run, "" where it is right. Judged once, right behind the run: the next one writes files over that a check looks at."""
        key = (frozenset(switches), tuple(options))
        if key not in self._opinions:
            wrong = self._opinions[key] = self.judge.opinion(self.program.dynvm(switches, options))
            words = [*options, *([f"--disable={','.join(switches)}"] if switches else [])]
            self.tell(f"{' '.join(words) or 'dynvm'}: {'wrong: ' + wrong.splitlines()[0] if wrong else 'right'}")
        return self._opinions[key]

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
        culprits, untraced = [], []
        for kind, _ in KINDS:
            places = culprits[0].names if culprits and culprits[0].kind == "trace" else None
            found, without_traces = self.leave_out(kind, usual, places, any(each.kind != "trace" for each in culprits))
            if found and kind == "kernel" and not any(KERNELS in each.names for each in culprits if each.kind == "pass") and not self.opinion([f"pass:{KERNELS}"]):
                culprits.append(Culprit("pass", [KERNELS]))
            culprits += [found] if found else []
            untraced += [without_traces] if without_traces else []
        safe = not self.opinion(options=("--safe",))
        if not culprits:
            text = "traces, but no loop, pass, operation or kernel by itself; --jit=off avoids it" + (", and so does --safe" if safe else "")
            return Verdict(WRONG, text, wrong, (), "--jit=off", safe, untraced)
        narrowest = culprits[-1]
        loop = culprits[0] if culprits[0].kind == "trace" else None
        where = f" in {loop.text()}" if loop is not None and narrowest is not loop else ""
        others = [each.text() for each in culprits[:-1] if each is not loop]
        also = f" (right as well without {'; '.join(others)})" if others else ""
        if narrowest is loop and untraced:
            also = f" (no part of it by itself: without {' or without '.join(each.text() for each in untraced)} it has no traces)"
        mends = next((each for each in reversed(culprits) if not each.other), None)  # without it the whole result is right
        option = f"--disable={','.join(mends.switches)}" if mends is not None else "--jit=off"
        if narrowest.other:
            also += f", without which something else is wrong: {narrowest.other.splitlines()[0].rstrip(':')}"
        text = f"{narrowest.text()}{where}{also}; {option} avoids {'both' if narrowest.other else 'it'}" + (", and so does --safe" if safe else "")
        return Verdict(WRONG, text, wrong, culprits, option, safe, untraced)

    def leave_out(self, kind, usual, places, found):
        """(Culprit or None, Culprit or None): the smallest set of switches of that kind that makes the result right while the loop has traces; one without which it has none.

        places: the loops that it is about, None: any; found: something narrower than a loop is known already.
        """
        def outcome(names):
            return self.program.dynvm([f"{kind}:{name}" for name in names])

        def right(names):
            return not self.opinion([f"{kind}:{name}" for name in names])

        def more(names):
            switches = [f"{kind}:{name}" for name in names]
            return self.candidates(kind, outcome(names), places, switches)

        candidates = self.candidates(kind, usual, places)
        names = grown(candidates, right, more)
        if kind == "trace":
            return (Culprit(kind, minimal(names, right)) if names else None), None
        untraced, rest = None, names or []
        # Whatever keeps the loop from being traced makes it right, so the search may end at that instead. Each time it does costs log2 n runs more.
        for _ in range(1 if found else MOST):
            if not rest or not right(rest):
                break
            names = smallest(rest, right, MOST)
            if not names:
                break
            if has_traces(outcome(names), places):
                return Culprit(kind, names), None
            untraced = untraced or Culprit(kind, names)
            rest = [name for name in rest if name not in names]
        # Without all of them something else may be wrong; passes are few enough to be left out one by one.
        if kind == "pass":
            ways = [name for name in candidates if right([name]) and has_traces(outcome([name]), places)]
            if ways:
                return Culprit(kind, ways[:1]), None
            # What was wrong may be right without one of them, and something else be wrong, which is another fault.
            for name in candidates:
                if has_traces(outcome([name]), places) and self.judge.is_elsewhere(usual, outcome([name])):
                    return Culprit(kind, [name], self.opinion([f"{kind}:{name}"])), None
        return None, untraced

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


def has_traces(outcome, places):
    """Had one of the loops (None: any) a trace in that run? True where it left no report."""
    return not outcome.report or any(places is None or f"{trace['file']}:{trace['line']}" in places for trace in outcome.report["traces"])
