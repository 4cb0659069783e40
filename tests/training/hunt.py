"""Runs programs under python and in dynvm's modes, compares, and makes smaller what differs.

Inputs: seeds with their programs' texts. Outputs: Findings; counts in the Session.
Method: one worker for python and one for each mode (side.py); judge.py compares; what differs runs again in a process of its own. Differences that
  open.def names are counted apart.
Tests: test_training.py, test_judge.py.
"""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tables  # noqa: E402
from judge import Difference, Judge  # noqa: E402
from side import Side  # noqa: E402


class Finding:
    """A program that differs. alone: whether it does so in a process of its own too; before: what ran before it otherwise."""

    def __init__(self, seed, mode, text, difference, alone, before):
        self.seed, self.mode, self.text, self.difference, self.alone, self.before = seed, mode, text, difference, alone, before


def judged(judge, shown):
    """The Difference between what python and what a side showed, or None."""
    if shown.end is not None:
        kind = shown.end.partition(":")[0]
        return Difference(kind, 0, "(came to its end)", shown.end)
    return judge.difference(shown.output)


def known(text, difference):
    """The row of open.def that says what this is, or None."""
    for row in tables.load("open.def")[0]:
        if row[0] == difference.kind and re.search(row[1], text) and re.search(row[2], f"{difference.expected}\n{difference.got}"):
            return row
    return None


class Session:
    """modes: of MODES; all: what open.def names is reported too."""

    def __init__(self, modes, python=None, sides=None, all=False):
        self.all = all
        self.python, self.perturbed = python or Side("python"), Side("perturbed")
        self.sides = sides or {mode: Side(mode) for mode in modes}
        self.programs = self.passed = self.failed = self.skipped = self.by_noise = self.raised = 0
        self.findings, self.open = [], {}  # open: what -> how often

    def judge(self, text, expected):
        return Judge(expected, text, lambda k: self.python.run(text, noise=k).output)

    def check(self, seed, text):
        """Runs one program in all modes; gives the Findings."""
        self.programs += 1
        expected = self.python.run(text)
        if expected.end is not None:
            self.skipped += 1
            return []
        self.raised += "ended by" in expected.output
        judge, found = self.judge(text, expected.output), []
        for mode, side in self.sides.items():
            judge.by_noise = False
            shown = side.run(text)
            difference = judged(judge, shown)
            self.by_noise += judge.by_noise
            if difference is None:
                self.passed += 1
                continue
            again = judged(judge, side.run(text, alone=True))
            if self.perturbed.run(text).output != expected.output:  # it shows memory that nothing has written
                self.skipped += 1
                continue
            row = known(text, difference) or (known(text, again) if again else None)  # what a worker says as it ends, it says of the first
            if row is not None and not self.all:
                self.skipped += 1
                self.open[row[3]] = self.open.get(row[3], 0) + 1
                continue
            self.failed += 1
            found.append(Finding(seed, mode, text, again or difference, again is not None, shown.before))
        self.findings += found
        return found

    def smaller(self, finding):
        """The finding's program made smaller, as long as it differs in the same way and reads no memory that it has not written."""
        from simplify import simplify
        kind = finding.difference.kind
        allowed = ended_by(self.python.run(finding.text).output)

        def fails(text):
            expected = self.python.run(text)
            if expected.end is not None or ended_by(expected.output) not in (None, allowed):
                return False
            difference = judged(self.judge(text, expected.output), self.sides[finding.mode].run(text, alone=True))
            return difference is not None and difference.kind == kind and self.perturbed.run(text).output == expected.output

        text = simplify(finding.text, fails)
        expected = self.python.run(text)
        finding.text = text
        finding.difference = judged(self.judge(text, expected.output), self.sides[finding.mode].run(text, alone=True)) or finding.difference
        return finding

    def close(self):
        self.python.close()
        self.perturbed.close()
        for side in self.sides.values():
            side.close()

    def counts(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"

    def compiled(self):
        """(tensor operations that ran compiled, all) over the workers' reports."""
        reports = [report for side in self.sides.values() for report in side.reports]
        return sum(r["tensor_ops_compiled"] for r in reports), sum(r["tensor_ops_total"] for r in reports)


def ended_by(output):
    """The type of the exception that ended a program, or None."""
    match = re.search(r"^ended by (\w+)", output, re.M)
    return match and match[1]
