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
from units import Result, among, keep  # noqa: E402

DEPTH = 12  # frames that `python -m test` has below a test more than this worker: some tests expect a deep stack


def name_of(test):
    return str(test.id()).removeprefix("test.")


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
        wanted = among(options["only"])
        keep(tests, lambda test: wanted(name_of(test)))
    keep(tests, lambda test: name_of(test) not in options["without"])
    deep(DEPTH, lambda: tests(result))


def deep(depth, function):
    return function() if depth == 0 else deep(depth - 1, function)


def main():
    events = Events(os.path.abspath(sys.argv[1]))
    module, options = sys.argv[2], json.loads(sys.argv[3])
    prepare(options)
    watch_tracing(events)
    run_module(module, options, Result(events, name_of))
    faulthandler.cancel_dump_traceback_later()
    events.add(end=True)


if __name__ == "__main__":
    main()
