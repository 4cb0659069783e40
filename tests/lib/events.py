"""What workers tell of their tests: one JSON line for each event, appended to a file, and what every worker does besides.

Purpose: tests/cpython/worker.py and tests/popular/worker.py write these events, process.py reads them:
  {"start": id}                                         a test begins
  {"id": id, "outcome": o, "seconds": s, "detail": t}   it ended: o is ok, fail, error or skip
  {"traced": true}                                      tracing or profiling was switched on for the first time
  {"end": true}                                         all tests have run; what comes now is the interpreter's end
Invariants: the file is opened for each event, so that tests which count or close descriptors are not disturbed; forked children
  write none. Tests that share a name are numbered in their order, and names hold no addresses.
Tests: tests/cpython/test_runner.py, tests/popular/test_runner.py.
"""

import json
import os
import re
import sys

DETAIL = 4000  # characters of a failure that are kept
TRACING = ("sys.settrace", "sys.setprofile", "sys.monitoring.register_callback")  # audit events


class Events:
    def __init__(self, path, open_=os.open, write=os.write, close=os.close, getpid=os.getpid):
        self.path, self.pid, self.names = path, os.getpid(), {}
        self.system = open_, write, close, getpid  # tests replace functions of os

    def add(self, **event):
        open_, write, close, getpid = self.system
        if getpid() == self.pid:
            file = open_(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            write(file, json.dumps(event).encode("utf-8", "backslashreplace") + b"\n")
            close(file)

    def unique(self, name):
        name = re.sub(r"\b0x[0-9a-f]{6,}", "0x...", name)
        count = self.names[name] = self.names.get(name, 0) + 1
        return name if count == 1 else f"{name}#{count}"


def watch_tracing(events):
    state = {"seen": False}

    def hook(name, arguments):
        if name in TRACING and not state["seen"]:
            state["seen"] = True
            events.add(traced=True)

    sys.addaudithook(hook)


def leave_path(*folders):
    """Takes the workers' folders out of sys.path, where tests would find their modules."""
    folders = {os.path.abspath(folder) for folder in folders}
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) not in folders]
