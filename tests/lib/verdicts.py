"""Compares what became of each test under python and under dynvm.

Inputs: two Runs of a module or package (process.py), the exclusions. Outputs: a Verdict for each test; judge() runs both sides and
  gives a result for reports, show() prints it.
Rule: a test that passes under python must pass under dynvm, and show the same text (the detail of one that passes), within the rounding of
  tests/programs/tolerant.py; one that python skips or cannot set up must not fail under dynvm either; one that fails under python, or
  shows other texts in python's two runs, says nothing. Two tests are added to each module: "(exit)", that the process came to its
  end with status 0, and "(hand-overs)", that dynvm's evaluator gave frames away only where something was traced.
Method: what failed runs once more, under dynvm and, if it fails again, under python: tests that depend on timing are no
  differences. A difference that only the first run showed is `unsteady`.
Tests: tests/cpython/test_runner.py.
"""

import dataclasses
import os
import signal
import sys

import process

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))
from tolerant import difference  # noqa: E402

WHOLE_AGAIN_S = 90  # modules up to this time run again as a whole, others only what failed


@dataclasses.dataclass
class Verdict:
    module: str
    test: str
    kind: str        # passed, failed, skipped
    text: str = ""   # why it failed or was skipped


def outcomes(run, module):
    """id -> (outcome, detail), with "(exit)"."""
    found = {name: (test[0], test[2]) for name, test in run.tests.items()}
    found[f"{module} (exit)"] = ("ok", "") if run.ended else ("unfinished", run.why)
    return found


def verdict(name, stock, own, run):
    """(kind, text) of one test; stock and own are (outcome, detail) or None."""
    if stock is not None and stock[0] in ("fail", "error", "unfinished"):
        return "skipped", "does not pass under python"
    if own is None:
        if stock[0] == "skip":
            return "skipped", stock[1]
        return "failed", "did not run: " + (run.why if not run.ended else "the module ran other tests than under python")
    outcome, detail = own
    if outcome == "unfinished":
        return "failed", run.why or detail
    if outcome in ("fail", "error"):
        return "failed", detail
    if outcome == "skip":
        if stock is not None and stock[0] == "ok":
            return "failed", "skipped: " + detail
        return "skipped", detail
    other = stock is not None and stock[0] == "ok" and difference(stock[1], detail)
    return ("failed", "shows another text: " + other) if other else ("passed", "")


def compare(module, stock, own, exclusions):
    """The verdicts of a module, in the order in which tests ran."""
    left, right = outcomes(stock, module), outcomes(own, module)
    verdicts = [Verdict(module, name, "skipped", "excluded: " + reason) for name, reason in exclusions.of(module)]
    # Where python itself did not come to the end, tests that only dynvm reached still must not fail.
    for name in [*left, *(name for name in right if name not in left)]:
        if name in exclusions.reasons:
            continue
        kind, text = verdict(name, left.get(name), right.get(name), own)
        verdicts.append(Verdict(module, name, kind, text))
    if own.handovers is not None:
        wrong = own.handovers > 0 and not own.traced
        verdicts.append(Verdict(module, f"{module} (hand-overs)", "failed" if wrong else "passed",
                                f"{own.handovers} frames handed over, and nothing was traced" if wrong else ""))
    return verdicts


def undetermined(first, second):
    """Names of tests that pass in two runs of one program and show another text in each."""
    later = second.tests
    return {name for name, test in first.tests.items() if name in later and test[0] == later[name][0] == "ok" and difference(test[2], later[name][2])}


def again(first, second):
    """Verdicts after a second run: what passes once passes; gives also (name, why it failed at first) of tests that changed."""
    later = {v.test: v for v in second}
    merged, changed = [], []
    for v in first:
        w = later.get(v.test)
        if v.kind == "failed" and w is not None and w.kind != "failed":
            merged.append(w)
            changed.append((v.test, v.text))
        else:
            merged.append(v)
    return merged, changed


def judge(module, stock, own, exclusions, only=None):
    """The result of one module, for show() and reports: stock is a Kept, own a Side; only: its tests to run."""
    first = stock.run(module)
    if only is not None:
        first.tests = {name: test for name, test in first.tests.items()
                       if any(name == word or name.startswith((word + ".", word + "#", word + "::", word + "[")) for word in only)}
    # Where python does not come to an end, dynvm need not.
    without = tuple(name for name, test in first.tests.items() if test[0] == "unfinished")
    run = own.run(module, only, without)
    found = compare(module, first, run, exclusions)
    unsteady = []
    failed = [v.test for v in found if v.kind == "failed"]
    if failed:
        part = only if run.seconds <= WHOLE_AGAIN_S or not run.ended else [name for name in failed if not name.endswith(")")]
        found, unsteady = again(found, compare(module, first, own.run(module, part, without), exclusions))
    if any(v.kind == "failed" for v in found):
        second = stock.side.run(module, only, without)
        unlike = undetermined(first, second)
        for name in unlike:
            second.tests[name] = ["fail", 0, ""]
        found, more = again(found, compare(module, second, run, exclusions))
        more = [(name, text) for name, text in more if name not in unlike]
        unsteady += more
    return {"module": module, "python_s": first.seconds, "dynvm_s": run.seconds, "traced": run.traced, "handovers": run.handovers,
            "compiled": run.compiled, "operations": run.operations,
            "passed": sum(v.kind == "passed" for v in found), "failed": sum(v.kind == "failed" for v in found),
            "skipped": sum(v.kind == "skipped" for v in found), "unsteady": unsteady,
            "failures": [(v.test, v.text) for v in found if v.kind == "failed"],
            "left_out": [(v.test, v.text) for v in found if v.kind == "skipped"]}


def show(result, verbose):
    handed = f", {result['handovers']} hand-overs" if result["handovers"] else ""
    print(f"{result['module']:<40} {result['passed']:5} passed {result['failed']:4} failed {result['skipped']:4} skipped "
          f"{result['dynvm_s']:7.1f} s (python {result['python_s']:.1f} s){handed}")
    for kind in ("unsteady", "failures"):
        for name, text in result[kind]:
            print(f"  {'FAILED' if kind == 'failures' else kind}: {name}")
            for line in text.rstrip().splitlines():
                print(f"    | {line}")
    if verbose:
        for name, text in result["left_out"]:
            print(f"  skipped: {name}: {text.splitlines()[0] if text else ''}")
    sys.stdout.flush()


def end_with_children():
    """A signal that ends this process ends what it runs, too."""
    def stop(number, frame):
        for one in list(process.live):
            process.end_group(one)
        os._exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
