"""Runs one module of CPython's test package as `python -m test` does and writes an event for each test.

Usage: worker.py EVENTS MODULE JSON; JSON: {"resources": [...], "only": [test ids] or null, "without": [test ids], "limit": seconds,
  "children": program or null}. Started by process.py, under python and under dynvm alike.
Inputs: the running Python's `test` package. Outputs: the events of tests/lib/events.py.
Invariants: a test with subtests is one test; it fails when one of them does. What could not be set up or
  imported is a test of its own ("setUpClass (...)", "(import)").
Tests: tests/cpython/test_runner.py.
"""

import faulthandler
import functools
import importlib
import json
import os
import sys
import time
import traceback
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
LIB = os.path.join(os.path.dirname(HERE), "lib")
sys.path.insert(0, LIB)
from events import DETAIL, Events, leave_path, watch_tracing  # noqa: E402

DEPTH = 12  # frames that `python -m test` has below a test more than this worker: some tests expect a deep stack


class Result(unittest.TestResult):
    """Turns unittest's calls into events."""

    def __init__(self, events):
        super().__init__()
        self.buffer = True
        self.events = events
        self.name, self.outcome, self.details, self.began = None, "ok", [], 0.0

    def unique(self, test):
        try:
            name = str(test.id())
        except Exception:  # not a TestCase
            name = str(test)
        return self.events.unique(name.removeprefix("test."))

    def startTest(self, test):
        self.name, self.outcome, self.details, self.began = self.unique(test), "ok", [], time.perf_counter()
        self.events.add(start=self.name)
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        self.end(self.name)
        self.name = None

    def end(self, name):
        self.events.add(id=name, outcome=self.outcome, seconds=round(time.perf_counter() - self.began, 3),
                        detail="\n".join(self.details)[-DETAIL:])

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
    """Leaves only tests whose names are wanted."""
    left = []
    for test in suite._tests:
        if isinstance(test, unittest.TestSuite):
            keep(test, wanted)
            left.append(test)
        elif wanted(test.id().removeprefix("test.")):
            left.append(test)
    suite._tests = left


def among(words):
    """Whether a name is one of words or below one; a numbered word stands for all that share its name."""
    words = {word.split("#")[0] for word in words}
    return lambda name: name in words or any(name.startswith(word + ".") for word in words)


def silence(module, path):
    """What is left out need not be a test: a method that tests call to check something does nothing then."""
    *owners, name = path.split(".")
    if not name.startswith("test"):
        setattr(functools.reduce(getattr, owners, module), name, lambda *arguments, **named: None)


def prepare(options):
    """What `python -m test` prepares in its worker processes."""
    from test import support
    sys.argv = sys.argv[:1]
    leave_path(HERE, LIB)
    try:
        from test.libregrtest.setup import setup_process
        setup_process()
    except ImportError:  # before 3.11.5
        faulthandler.enable()
    support.verbose = 0
    support.use_resources = options["resources"]
    if options["children"]:
        sys.executable = options["children"]
    if options["limit"]:
        faulthandler.dump_traceback_later(options["limit"], exit=True)


def run_module(module, options, result):
    """Imports module and runs its tests; a module that cannot be imported or is skipped as a whole is one test."""
    start = time.perf_counter()
    outcome, detail = "ok", ""
    try:
        imported = importlib.import_module("test." + module)
    except unittest.SkipTest as skip:
        outcome, detail = "skip", str(skip)
    except BaseException:
        outcome, detail = "error", traceback.format_exc()[-DETAIL:]
    result.events.add(id=f"{module} (import)", outcome=outcome, seconds=round(time.perf_counter() - start, 3), detail=detail)
    if outcome != "ok":
        return
    for name in options["without"]:
        if name.startswith(module + "."):  # the list is that of all modules
            silence(imported, name.removeprefix(module + "."))
    loader = unittest.TestLoader()
    tests = loader.loadTestsFromModule(imported)
    for number, error in enumerate(loader.errors):
        result.events.add(id=f"{module} (load {number})", outcome="error", seconds=0, detail=str(error)[-DETAIL:])
    if options["only"] is not None:
        keep(tests, among(options["only"]))
    keep(tests, lambda name: name not in options["without"])
    deep(DEPTH, lambda: tests(result))


def deep(depth, function):
    return function() if depth == 0 else deep(depth - 1, function)


def main():
    events = Events(os.path.abspath(sys.argv[1]))
    module, options = sys.argv[2], json.loads(sys.argv[3])
    prepare(options)
    watch_tracing(events)
    run_module(module, options, Result(events))
    faulthandler.cancel_dump_traceback_later()
    events.add(end=True)


if __name__ == "__main__":
    main()
