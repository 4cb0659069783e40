#!/usr/bin/env python3
"""Tools that look at running programs, coverage.py and debugpy: under dynvm they must tell what they tell under python.

Usage:   observers.py [-v]
Inputs:  DYNVM and DYNVM_TEST_PYTHON; coverage and debugpy, fetched into build/observers-X.Y on first use.
Outputs: a line for each difference; last line "N passed, N failed, N skipped"; exit status 1 when one failed, 77 when the packages cannot be fetched.
Method:  coverage.py runs a script with each of its cores and its report is compared. debugpy is driven by a client of the debug adapter protocol: it
         stops at a conditional breakpoint, is asked for the stack and for values, steps, and lets the script end.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))
from compare import DYNVM, PYTHON, ROOT  # noqa: E402

PACKAGES = ("coverage", "debugpy")
PATIENCE_S = 60
SCRIPT = """\
import sys

def work(n):
    total = 0
    for i in range(n):
        if i % 3 == 0:
            total += i
        elif i % 7 == 0:
            total -= 1
        else:
            total ^= i
    return total

class Kind:
    def used(self):
        return [x for x in range(5)]

    def unused(self):
        return 1

print(work(5000), Kind().used(), len(sys.argv))
"""
LINE = 6  # of the first branch


def packages_folder():
    version = subprocess.run([PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True, check=True).stdout.strip()
    folder = os.path.join(ROOT, "build", "observers-" + version)
    done = os.path.join(folder, ".complete")
    if not os.path.exists(done):
        shutil.rmtree(folder, ignore_errors=True)
        if subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", folder, *PACKAGES]).returncode != 0:
            return None
        open(done, "w").close()
    return folder


class Adapter:
    """A client of the debug adapter that a script under debugpy listens with."""

    def __init__(self, program, script, environment):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.process = subprocess.Popen([program, "-m", "debugpy", "--listen", f"127.0.0.1:{port}", "--wait-for-client", script],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        for _ in range(PATIENCE_S * 10):
            try:
                self.connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
                break
            except OSError:
                time.sleep(0.1)
        self.file = self.connection.makefile("rwb")
        self.number = 0

    def send(self, command, **arguments):
        self.number += 1
        body = json.dumps({"seq": self.number, "type": "request", "command": command, "arguments": arguments}).encode()
        self.file.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.file.flush()
        return self.number

    def receive(self, wanted):
        """The first message that `wanted` accepts."""
        while True:
            length = 0
            while line := self.file.readline().strip():
                if line.lower().startswith(b"content-length"):
                    length = int(line.split(b":")[1])
            message = json.loads(self.file.read(length))
            if wanted(message):
                return message

    def ask(self, command, **arguments):
        number = self.send(command, **arguments)
        return self.receive(lambda m: m.get("request_seq") == number)["body"]

    def stopped(self):
        """(reason, function, line, values) where the script stands now."""
        event = self.receive(lambda m: m.get("event") == "stopped")["body"]
        frame = self.ask("stackTrace", threadId=event["threadId"])["stackFrames"][0]
        self.thread = event["threadId"]
        return event["reason"], frame["name"], frame["line"], self.ask("evaluate", expression="(i, total, n)", frameId=frame["id"])["result"]


def debugged(program, script, environment):
    adapter = Adapter(program, script, environment)
    try:
        adapter.send("initialize", adapterID="test", linesStartAt1=True, pathFormat="path")
        adapter.send("attach", justMyCode=False)
        adapter.receive(lambda m: m.get("event") == "initialized")
        adapter.send("setBreakpoints", source={"path": script}, breakpoints=[{"line": LINE, "condition": "i == 42"}])
        adapter.send("configurationDone")
        seen = [adapter.stopped()]
        for command in ("next", "next", "stepIn"):
            adapter.send(command, threadId=adapter.thread)
            seen.append(adapter.stopped())
        adapter.send("setBreakpoints", source={"path": script}, breakpoints=[])
        adapter.send("disconnect", terminateDebuggee=False)
        output = adapter.process.communicate(timeout=PATIENCE_S)[0]
        return seen, output.strip().splitlines()[-1:], adapter.process.returncode
    finally:
        adapter.process.kill()


def covered(program, script, environment, options):
    folder = tempfile.mkdtemp(prefix="dynvm-coverage-")
    try:
        environment = {**environment, "COVERAGE_FILE": os.path.join(folder, "data")}
        outcomes = [subprocess.run([program, "-m", "coverage", *words], capture_output=True, text=True, env=environment, cwd=folder, timeout=PATIENCE_S)
                    for words in (["run", *options, script], ["report", "-m"])]
        return [(outcome.returncode, re.sub(r"\S*/", "", outcome.stdout)) for outcome in outcomes]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    packages = packages_folder()
    if packages is None:
        print("the packages cannot be fetched", file=sys.stderr)
        return 77
    folder = tempfile.mkdtemp(prefix="dynvm-observers-")
    script = os.path.join(folder, "seen.py")
    with open(script, "w") as file:
        file.write(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": packages}
    checks = {"debugpy": lambda program: debugged(program, script, environment)}
    for core in ("ctrace", "pytrace", "sysmon"):
        for options in ([], ["--branch"]):
            name = " ".join(["coverage", core, *options])
            checks[name] = lambda program, core=core, options=options: covered(program, script, {**environment, "COVERAGE_CORE": core}, options)
    failed = 0
    try:
        for name, check in checks.items():
            expected, got = check(PYTHON), check(DYNVM)
            if "-v" in sys.argv:
                print(name, got)
            if expected != got:
                failed += 1
                print(f"FAILED {name}\n  python: {expected}\n  dynvm:  {got}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(checks) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
