"""Runs of the script under python and under dynvm, and whether what they show is right.

Inputs: the script's command line, dynvm's options and switches. Outputs: an Outcome, and a Judge's opinion of it.
Invariants: each run is a process of its own, in the present folder and environment, with no input; no traces are kept on disk. A run with the same switches is made once.
Tests: tests/bisect/test_bisect.py.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from dynvm import _library
from dynvm.bisect import tolerant

# A run that has had its time on the clock, and has not used it, is looked at so often in as much time again, up to so many times that; one that uses less of its time stands still.
LOOKS, PATIENCE, STILL = 4, 12, 0.01
_RECORDING = re.compile(r"^(?:.*\] )?recording (.+):(\d+)(?: \(side trace\))?$", re.M)


class Outcome:
    """What a run showed. report: dynvm's, {} where there is none; late: it was ended at the time limit."""

    def __init__(self, status, stdout, stderr, report, seconds, late=False):
        self.status, self.stdout, self.stderr, self.report, self.seconds, self.late = status, stdout, stderr, report, seconds, late

    def ending(self):
        """How it ended, in words; for one that failed with the last line of its standard error."""
        if self.late:
            return f"it was ended after {self.seconds:.0f} s"
        if self.status < 0:
            return f"it was ended by {signal.Signals(-self.status).name}"
        last = (self.stderr.strip().splitlines() or [""])[-1]
        return f"exit status {self.status}" + (f": {last}" if self.status and last else "")


class Judge:
    """Says of an Outcome what is wrong with it ("" where nothing is). expected: python's Outcome, or None.

    expect: a text that standard output has to be instead; check: a command of the shell that has to end with status 0, given the files of what was shown in
    DYNVM_BISECT_STDOUT, DYNVM_BISECT_STDERR and DYNVM_BISECT_STATUS.
    """

    def __init__(self, tolerance, expect=None, check=None, stderr=False):
        self.tolerance, self.expect, self.check, self.stderr, self.expected = tolerance, expect, check, stderr, None

    def by_python(self):
        return self.expect is None and self.check is None

    def opinion(self, outcome):
        if outcome.late:
            return outcome.ending()
        if self.check is not None:
            return self._checked(outcome)
        status, stdout = (0, self.expect) if self.expect is not None else (self.expected.status, self.expected.stdout)
        if outcome.status != status:
            return f"{outcome.ending()} (expected {status})"
        wrong = tolerant.difference(stdout, outcome.stdout, relative=self.tolerance)
        if wrong:
            return f"standard output: {wrong}"
        if self.expect is None and (self.stderr or status != 0):
            texts = [each.stderr if self.stderr else (each.stderr.strip().splitlines() or [""])[-1] for each in (self.expected, outcome)]
            wrong = tolerant.difference(*map(no_addresses, texts), relative=self.tolerance)
        return f"standard error: {wrong}" if wrong else ""

    def is_elsewhere(self, wrong, other):
        """Has `other`, which is wrong too, all right that is wrong in `wrong`? Told by the lines of standard output."""
        if self.check is not None or wrong.late or other.late:
            return False
        status, stdout = (0, self.expect) if self.expect is not None else (self.expected.status, self.expected.stdout)
        lines, first, second = (text.splitlines() for text in (stdout, wrong.stdout, other.stdout))
        if {wrong.status, other.status} != {status} or not len(lines) == len(first) == len(second):
            return False
        differ = [{k for k, line in enumerate(lines) if not tolerant.lines_agree(line, got[k], self.tolerance)} for got in (first, second)]
        return bool(differ[0]) and differ[0].isdisjoint(differ[1])

    def _checked(self, outcome):
        with tempfile.TemporaryDirectory(prefix="dynvm-bisect-") as folder:
            variables = {}
            for name, text in (("STDOUT", outcome.stdout), ("STDERR", outcome.stderr)):
                variables[f"DYNVM_BISECT_{name}"] = os.path.join(folder, name.lower())
                with open(variables[f"DYNVM_BISECT_{name}"], "w", encoding="utf-8", errors="surrogateescape") as file:
                    file.write(text)
            variables["DYNVM_BISECT_STATUS"] = str(outcome.status)
            done = subprocess.run(self.check, shell=True, env={**os.environ, **variables}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return f"the check ends with status {done.returncode}" if done.returncode else ""


def no_addresses(text):
    """Addresses of objects differ from run to run."""
    return re.sub(r"\b0x[0-9a-f]{6,}", "0x...", text)


class Program:
    """A script that is run again and again. words: its command line, with Python's options; options: dynvm's, for each run."""

    def __init__(self, words, options=(), timeout=600, folder=None):
        self.words, self.options, self.timeout, self.folder = list(words), list(options), timeout, folder
        self.count, self._known = 0, {}

    def python(self):
        return self._run([sys.executable, *self.words], None)

    def dynvm(self, switches=(), options=(), kept=True):
        """kept: what such a run has shown before will do."""
        key = (frozenset(switches), tuple(options))
        if key not in self._known or not kept:
            disable = [f"--disable={','.join(switches)}"] if switches else []
            with tempfile.TemporaryDirectory(prefix="dynvm-bisect-") as folder:
                report = os.path.join(folder, "report.json")
                command = [_library.launcher(), *self.options, *options, *disable, "--cache=off", f"--report={report}", *self.words]
                self._known[key] = self._run(command, report)
        return self._known[key]

    def places(self, outcome, switches=()):
        """FILE:LINE of the loops and functions that have had traces in a run; where it ended without a report, of those that it began to record, by another run."""
        if outcome.report:
            return list(dict.fromkeys(f"{loop['file']}:{loop['line']}" for loop in outcome.report["loops"]))
        logged = self.dynvm(switches, ("--log=trace",))
        return list(dict.fromkeys(f"{file}:{line}" for file, line in _RECORDING.findall(logged.stderr)))

    def _run(self, command, report):
        self.count += 1
        start = time.monotonic()
        process = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        late = False
        try:
            out, err = self._wait(process)
            if out is None:
                late = True
                out, err = self._end(process)
        except BaseException:  # Ctrl-C: no run goes on behind
            self._end(process)
            raise
        seconds = time.monotonic() - start
        text = [part.decode(errors="surrogateescape") for part in (out, err)]
        return Outcome(process.returncode, *text, _read(report), seconds, late)

    def _wait(self, process):
        """What the run wrote; (None, None) where its time is over: on the clock and of the processor, for how busy the machine is must not decide what is right, or when it stands still."""
        used, wait = [0.0] * LOOKS, self.timeout
        for _ in range(PATIENCE * LOOKS):
            try:
                return process.communicate(timeout=wait)
            except subprocess.TimeoutExpired:
                now = processor_seconds(process.pid)
                if now >= self.timeout or now - used[-LOOKS] < STILL * self.timeout:
                    break
                used.append(now)
                wait = self.timeout / LOOKS
        return None, None

    @staticmethod
    def _end(process):
        """The run with all processes that it has started."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        return process.communicate()


def processor_seconds(pid):
    """Those that a process and its children that have ended have used."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0


def _read(report):
    try:
        with open(report, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, TypeError, ValueError):
        return {}
