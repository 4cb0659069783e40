"""Runs the same program under `python` and under `dynvm` and compares all that can be seen.

Purpose: every whole-run suite uses this. Standard output, standard error (tracebacks with it) and the exit status must be
  equal; what differs between any two runs (addresses, process ids) is the caller's to leave out with `clean`.
Inputs: DYNVM (the launcher to test) and DYNVM_TEST_PYTHON (the interpreter), which the build sets; without them, those of
  .venv. DYNVM_TEST_PATIENCE: a factor for time limits, which the build sets where programs run slower than usual.

    from compare import CompareCase
    class Mine(CompareCase):
        def test_x(self):
            self.same(["-c", "print(1)"])                    # any arguments
            self.same_script("print(__name__)", args=["a"])  # a script file of this text
            report = self.report_of("...")                   # runs under dynvm with --report
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = os.environ.get("DYNVM_TEST_PYTHON", os.path.join(ROOT, ".venv", "bin", "python"))
DYNVM = os.environ.get("DYNVM", os.path.join(ROOT, ".venv", "bin", "dynvm"))
FULL = os.environ.get("DYNVM_TEST_FULL") == "1"
PATIENCE = float(os.environ.get("DYNVM_TEST_PATIENCE", "1"))
# Variables that would make runs differ from a user's.
_LEFT_OUT = {"DYNVM", "DYNVM_TEST_PYTHON", "DYNVM_TEST_FULL", "DYNVM_TEST_PATIENCE", "DYNVM_TEST_SHARED", "DYNVM_OPTIONS", "DYNVM_HEURISTICS", "PYTHONPATH"}


def row_names(table):
    """The names in a table of runtime/base, whose rows are X(kName, "name", ...)."""
    with open(os.path.join(ROOT, "runtime", "base", table), encoding="utf-8") as file:
        return re.findall(r'^X\(k\w+, "(\w+)"', file.read(), re.M)


def not_built(programs=(PYTHON, DYNVM)):
    """Whether a program that is compared is missing; says so."""
    for program in programs:
        if not os.access(program, os.X_OK):
            print(f"{program} is not there: build first\n0 passed, 1 failed, 0 skipped")
            return True
    return False


def environment(extra=None):
    """The environment that tested programs get; `extra` adds variables, None as a value removes one. No traces are kept for later runs."""
    variables = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
    variables["DYNVM_CACHE"] = "off"
    for name, value in (extra or {}).items():
        if value is None:
            variables.pop(name, None)
        else:
            variables[name] = value
    return variables


class Outcome:
    """What one run showed."""

    def __init__(self, status, stdout, stderr):
        self.status, self.stdout, self.stderr = status, stdout, stderr

    def __repr__(self):
        return f"status {self.status}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"


def run(program, args, *, stdin=b"", env=None, cwd=None, timeout=120, interrupt_after=None):
    """Runs program (a list or one word) with args. interrupt_after: text on standard output after which SIGINT is sent."""
    command = ([program] if isinstance(program, str) else list(program)) + list(args)
    if isinstance(stdin, str):
        stdin = stdin.encode()
    # The child must not inherit an ignored SIGINT, as background jobs of a shell do.
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=environment(env), cwd=cwd,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    try:
        before = b""
        if interrupt_after is not None:
            while interrupt_after.encode() not in before:
                piece = process.stdout.read1(4096)
                if not piece:
                    break
                before += piece
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(stdin, timeout=timeout * PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        err += b"\n(killed: time limit)\n"
    return Outcome(process.returncode, (before + out).decode(errors="backslashreplace"), err.decode(errors="backslashreplace"))


def no_addresses(text):
    """Addresses of objects differ from run to run."""
    return re.sub(r"\b0x[0-9a-f]{6,}", "0x...", text)


class CompareCase(unittest.TestCase):
    """A test case that compares runs; each test has a folder of its own, self.folder."""

    maxDiff = 4000

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="dynvm-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def script(self, text, name="script.py"):
        """Writes a script file (indented text is dedented) and gives its path."""
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        return path

    def same(self, args, *, options=(), clean=no_addresses, **how):
        """Both runs must show the same; options are dynvm's own. Gives python's outcome for further assertions."""
        expected = run(PYTHON, args, **how)
        got = run(DYNVM, list(options) + list(args), **how)
        for part in ("stdout", "stderr"):
            self.assertEqual(clean(getattr(expected, part)), clean(getattr(got, part)), f"{part} differs\npython: {expected}\ndynvm: {got}")
        self.assertEqual(expected.status, got.status, f"exit status differs\npython: {expected}\ndynvm: {got}")
        return expected

    def same_script(self, text, args=(), python_options=(), **how):
        """same() for a script of this text."""
        return self.same([*python_options, self.script(text), *args], **how)

    def report_of(self, text, args=(), options=(), **how):
        """Runs a script of this text under dynvm, which must succeed; gives its report."""
        file = os.path.join(self.folder, "report.json")
        outcome = run(DYNVM, ["--report", file, *options, self.script(text), *args], **how)
        self.assertEqual(outcome.status, 0, outcome)
        with open(file, encoding="utf-8") as content:
            return json.load(content)


if __name__ == "__main__":
    # compare.py SCRIPT [ARGS]: for use by hand.
    first, second = run(PYTHON, sys.argv[1:]), run(DYNVM, sys.argv[1:])
    equal = repr(first) == repr(second)
    print("same" if equal else f"python: {first}\n\ndynvm: {second}")
    sys.exit(not equal)
