"""What workers that run unittest's tests in their process share: results become events, and tests are picked by name.

Inputs: a file of events (events.py); a function that names a test.
Outputs: an event for each test. A test may leave text in its attribute `shown`: it stands in the event of one that
  passes, and is compared (verdicts.py).
Invariants: a test with subtests is one test; it fails when one of them does. What could not be set up is a test of
  its own ("setUpClass (...)").
Tests: tests/cpython/test_runner.py, tests/torch_own/test_runner.py.
"""

import time
import unittest

from events import DETAIL


class Result(unittest.TestResult):
    """Turns unittest's calls into events."""

    def __init__(self, events, name_of):
        super().__init__()
        self.buffer = True
        self.events, self.name_of = events, name_of
        self.name, self.outcome, self.details, self.began = None, "ok", [], 0.0

    def unique(self, test):
        try:
            name = str(self.name_of(test))
        except Exception:  # not a TestCase
            name = str(test)
        return self.events.unique(name)

    def startTest(self, test):
        self.name, self.outcome, self.details, self.began = self.unique(test), "ok", [], time.perf_counter()
        self.events.add(start=self.name)
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        self.end(self.name, str(getattr(test, "shown", "")) if self.outcome == "ok" else None)
        self.name = None

    def end(self, name, shown=None):
        self.events.add(id=name, outcome=self.outcome, seconds=round(time.perf_counter() - self.began, 3),
                        detail="\n".join(self.details)[-DETAIL:] if shown is None else shown)

    def note(self, test, outcome, detail):
        if self.name is None:  # a fixture of a class or module
            self.outcome, self.details, self.began = outcome, [detail], time.perf_counter()
            self.end(self.unique(test))
        else:
            if self.outcome in ("ok", "skip"):
                self.outcome = outcome
            self.details.append(detail)

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "error", self.errors[-1][1])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "fail", self.failures[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            kind = "fail" if issubclass(err[0], test.failureException) else "error"
            self.note(test, kind, f"{subtest}\n" + (self.failures if kind == "fail" else self.errors)[-1][1])

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        if self.outcome == "ok" or self.name is None:
            self.note(test, "skip", str(reason))

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note(test, "fail", "unexpected success")


def keep(suite, wanted):
    """Leaves only tests that are wanted."""
    left = []
    for test in suite._tests:
        if isinstance(test, unittest.TestSuite):
            keep(test, wanted)
            left.append(test)
        elif wanted(test):
            left.append(test)
    suite._tests = left


def among(words):
    """Whether a name is one of words or below one; a numbered word stands for all that share its name."""
    words = {word.split("#")[0] for word in words}
    return lambda name: name in words or any(name.startswith(word + ".") for word in words)
