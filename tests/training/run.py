#!/usr/bin/env python3
"""Runs random training programs under python and under dynvm: all that they show must be the same.

Usage:   run.py [--seeds A-B | SEED ...] [--mode MODE,...] [--seconds N] [--shrink] [--out FOLDER] [--show]
Inputs:  program.py's programs; without seeds COUNT of them from FIRST on (more with DYNVM_TEST_FULL), or with --seconds as many as there is time for.
         Modes: plain, hot (--hot=2), exit (with DYNVM_STRESS=exit), check (with DYNVM_STRESS=check); "all": the first three. DYNVM, DYNVM_TEST_PYTHON: what is tested.
Outputs: for each failure the seed, the mode, what differs and, with --shrink, a smaller program; --out: a file for each in FOLDER. The share of tensor
         operations that ran compiled; last line "N passed, N failed, N skipped"; exit status 1 when one failed. Skipped are programs that
         python itself does not bring to an end.
Method:  programs run one after the other in workers (side.py), one for each mode; judge.py compares. What differs runs again in a process of its own.
"""

import argparse
import os
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from judge import Difference, Judge  # noqa: E402
from side import DYNVM, MODES, PYTHON, Side  # noqa: E402
from compare import FULL  # noqa: E402
from verdicts import end_with_children  # noqa: E402

FIRST, COUNT = 0, 1500 if FULL else 90
USUAL = ("plain", "hot", "exit")
SHARE = 0.15   # of tensor operations that must run compiled over the usual programs


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


class Session:
    def __init__(self, modes, python=None, sides=None):
        self.python = python or Side("python")
        self.sides = sides or {mode: Side(mode) for mode in modes}
        self.programs = self.passed = self.failed = self.skipped = self.by_noise = self.raised = 0
        self.findings = []

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
            self.failed += 1
            found.append(Finding(seed, mode, text, again or difference, again is not None, shown.before))
        self.findings += found
        return found

    def smaller(self, finding):
        """The finding's program made smaller, as long as it differs in the same way."""
        from simplify import simplify
        kind = finding.difference.kind
        allowed = ended_by(self.python.run(finding.text).output)

        def fails(text):
            expected = self.python.run(text)
            if expected.end is not None or ended_by(expected.output) not in (None, allowed):
                return False
            difference = judged(self.judge(text, expected.output), self.sides[finding.mode].run(text, alone=True))
            return difference is not None and difference.kind == kind

        text = simplify(finding.text, fails)
        expected = self.python.run(text)
        finding.text = text
        finding.difference = judged(self.judge(text, expected.output), self.sides[finding.mode].run(text, alone=True)) or finding.difference
        return finding

    def close(self):
        self.python.close()
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


def script_of(finding):
    """The program as a file of its own."""
    head = [f"seed {finding.seed}, mode {finding.mode}" + ("" if finding.alone else ", only behind other programs of its worker"), *str(finding.difference).splitlines()]
    return "".join(f"# {line}\n" for line in head) + finding.text


def seeds_of(arguments):
    if arguments.given:
        return arguments.given
    if arguments.seeds:
        first, _, last = arguments.seeds.partition("-")
        return range(int(first), int(last or first) + 1)
    return range(FIRST, sys.maxsize) if arguments.seconds else range(FIRST, FIRST + COUNT)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("given", nargs="*", type=int)
    parser.add_argument("--seeds")
    parser.add_argument("--mode", default="all")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--show", action="store_true", help="prints the programs that fail")
    arguments = parser.parse_args()
    modes = USUAL if arguments.mode == "all" else tuple(arguments.mode.split(","))
    if not set(modes) <= set(MODES):
        parser.error(f"modes are {', '.join(MODES)}")
    for program in (PYTHON, DYNVM):
        if not os.access(program, os.X_OK):
            print(f"{program} is not there: build first\n0 passed, 1 failed, 0 skipped")
            return 1
    end_with_children()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from program import generate
    session, begun, last = Session(modes), time.monotonic(), time.monotonic()
    for seed in seeds_of(arguments):
        if arguments.seconds and time.monotonic() - begun > arguments.seconds:
            break
        for finding in session.check(seed, generate(seed)):
            print(f"FAILED seed {seed} mode {finding.mode}{'' if finding.alone else ' (only behind others)'}: {finding.difference}", flush=True)
            if arguments.shrink and finding.alone:
                session.smaller(finding)
                print(f"--- made smaller: {finding.difference}\n{finding.text}", flush=True)
            elif arguments.show:
                print(finding.text, flush=True)
            if arguments.out:
                os.makedirs(arguments.out, exist_ok=True)
                with open(os.path.join(arguments.out, f"{seed}_{finding.mode}.py"), "w", encoding="utf-8") as file:
                    file.write(script_of(finding))
        if time.monotonic() - last > 60:
            last = time.monotonic()
            print(f"up to seed {seed}, {last - begun:.0f} s: {session.counts()}", flush=True)
    session.close()
    compiled, total = session.compiled()
    share = compiled / total if total else 0.0
    print(f"{session.programs} programs in {', '.join(modes)}; {session.raised} end with an exception under python; {session.by_noise} differences are rounding's")
    print(f"{compiled} of {total} tensor operations ({100 * share:.1f} %) ran compiled")
    if not arguments.given and not arguments.seeds and share < SHARE:
        session.failed += 1
        print(f"FAILED suite: only {share:.3f} ran compiled, not {SHARE}")
    print(session.counts())
    return 1 if session.failed else 0


if __name__ == "__main__":
    sys.exit(main())
