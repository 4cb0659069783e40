"""Runs one file of torch's own tests, or one of parts/, and writes an event for each test.

Usage: worker.py EVENTS MODULE JSON; JSON: {"roots": [folders], "times": n, "only": [test ids] or null, "without":
  [test ids], "limit": seconds}. Started by tests/lib/process.py, under python and under dynvm alike.
Inputs: MODULE with dots is a file below one of the roots. Outputs: the events of tests/lib/events.py. A test's id is
  MODULE.CLASS.METHOD.
Method: with times > 1 a test's method is called that often in a loop, between one set-up and one teardown: what a
  test does becomes the body of a hot loop, and a test that cannot be repeated fails under python, too.
Tests: tests/torch_own/test_runner.py.
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


def find(module, roots):
    """(root, file) of a module."""
    for root in roots:
        file = os.path.join(root, module.replace(".", os.sep) + ".py")
        if os.path.exists(file):
            return root, file
    raise ImportError(f"no file of {module}")


def repeated(method, times):
    @functools.wraps(method)
    def body():
        for _ in range(times):
            method()
    return body


def each(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each(test)
        else:
            yield test


def import_as_script(module, roots):
    """Imports a file as it would be when it is started: its own folder comes first in sys.path, then the root."""
    root, file = find(module, roots)
    sys.path[:0] = list(dict.fromkeys([os.path.dirname(file), root]))
    sys.argv[:] = [file]
    return importlib.import_module(os.path.basename(file)[:-3])


def run_module(module, options, events):
    def name_of(test):
        if isinstance(test, unittest.TestCase):
            return f"{module}.{type(test).__qualname__}.{test._testMethodName}"
        return str(test)

    start = time.perf_counter()
    outcome, detail = "ok", ""
    try:
        imported = import_as_script(module, options["roots"])
    except unittest.SkipTest as skip:
        outcome, detail = "skip", str(skip)
    except BaseException:
        outcome, detail = "error", traceback.format_exc()[-DETAIL:]
    events.add(id=f"{module} (import)", outcome=outcome, seconds=round(time.perf_counter() - start, 3), detail=detail)
    if outcome != "ok":
        return
    tests = unittest.TestSuite(unittest.TestLoader().loadTestsFromModule(imported))
    if options["only"] is not None:
        wanted = among(options["only"])
        keep(tests, lambda test: wanted(name_of(test)))
    unwanted = among(options["without"])
    keep(tests, lambda test: not unwanted(name_of(test)))
    if options["times"] > 1:
        for test in each(tests):
            if isinstance(test, unittest.TestCase):
                setattr(test, test._testMethodName, repeated(getattr(test, test._testMethodName), options["times"]))
    tests(Result(events, name_of))


def main():
    events = Events(os.path.abspath(sys.argv[1]))
    module, options = sys.argv[2], json.loads(sys.argv[3])
    leave_path(HERE, LIB)
    faulthandler.enable()
    if options["limit"]:
        faulthandler.dump_traceback_later(options["limit"], exit=True)
    watch_tracing(events)
    run_module(module, options, events)
    faulthandler.cancel_dump_traceback_later()
    events.add(end=True)


if __name__ == "__main__":
    main()
