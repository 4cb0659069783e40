"""Runs a package's tests with pytest in this process and writes an event for each test.

Usage: worker.py EVENTS PACKAGE JSON; JSON: {"arguments": [pytest's], "only": [test ids] or null, "without": [test ids],
  "limit": seconds}. Started by tests/lib/process.py in a copy of the package's source, under python and under dynvm alike.
Inputs: the environment's pytest. Outputs: the events of tests/lib/events.py. A test's id is pytest's node id; one of several
  reports (set-up, call, teardown, subtests) fails when one of them does; one that fails as expected counts as skipped. What
  cannot be collected is a test of its own ("... (collect)").
Tests: tests/popular/test_runner.py.
"""

import faulthandler
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIB = os.path.join(os.path.dirname(HERE), "lib")
sys.path.insert(0, LIB)
from events import DETAIL, Events, leave_path, watch_tracing  # noqa: E402

leave_path(HERE, LIB)
import pytest  # noqa: E402

OUTCOMES = {"passed": "ok", "skipped": "skip", "failed": "fail"}  # pytest's, of a report
NOT_RUN = (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)


class Recorder:
    """A plugin that turns pytest's reports into events and leaves out tests."""

    def __init__(self, events, only, without):
        self.events, self.without = events, set(without)
        self.only = None if only is None else set(only)
        self.name, self.outcome, self.details, self.began = None, "skip", [], 0.0

    def wanted(self, name):
        """Names in the lists may be numbered, as tests that share a name are, or be a file or a class of tests."""
        def among(words):
            return any(name == word.split("#")[0] or name.startswith((word + "::", word + "[")) for word in words)
        return (self.only is None or name in self.only or among(self.only)) and name not in self.without and not among(self.without)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        left = [item for item in items if self.wanted(item.nodeid)]
        config.hook.pytest_deselected(items=[item for item in items if not self.wanted(item.nodeid)])
        items[:] = left

    def pytest_collectreport(self, report):
        if not report.passed:
            name = self.events.unique(f"{report.nodeid} (collect)")
            self.events.add(id=name, outcome="skip" if report.skipped else "error", seconds=0, detail=report.longreprtext[-DETAIL:])

    def pytest_runtest_logstart(self, nodeid):
        self.name, self.outcome, self.details, self.began = self.events.unique(nodeid), "ok", [], time.perf_counter()
        self.events.add(start=self.name)

    def pytest_runtest_logreport(self, report):
        if self.outcome == "ok" or report.failed:
            self.outcome = OUTCOMES[report.outcome]
        if not report.passed:
            self.details.append(report.longreprtext or str(report.longrepr))

    def pytest_runtest_logfinish(self, nodeid):
        self.events.add(id=self.name, outcome=self.outcome, seconds=round(time.perf_counter() - self.began, 3),
                        detail="\n".join(self.details)[-DETAIL:])


def main():
    events = Events(os.path.abspath(sys.argv[1]))
    options = json.loads(sys.argv[3])
    sys.argv[1:] = options["arguments"]
    faulthandler.dump_traceback_later(options["limit"], exit=True, file=os.fdopen(os.dup(2), "w"))  # pytest has the other one
    watch_tracing(events)
    status = pytest.main(["-p", "no:cacheprovider", "-p", "no:faulthandler", "--tb=short", "-q", *options["arguments"]],
                         plugins=[Recorder(events, options["only"], options["without"])])
    faulthandler.cancel_dump_traceback_later()
    if status in NOT_RUN:
        sys.exit(int(status))
    events.add(end=True)


if __name__ == "__main__":
    main()
