"""Compares what became of each test under python and under dynvm.

Inputs: two Runs of a module (process.py), the exclusions. Outputs: a Verdict for each test.
Rule: a test that passes under python must pass under dynvm; one that python skips or cannot set up must not fail under dynvm
  either; one that fails under python says nothing. Two tests are added to each module: "(exit)", that the process came to its
  end with status 0, and "(hand-overs)", that dynvm's evaluator gave frames away only where something was traced.
Tests: tests/cpython/test_runner.py.
"""

import dataclasses

PASSED = ("ok",)


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
    return "passed", ""


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
