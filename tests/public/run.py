#!/usr/bin/env python3
"""Runs programs after well-known public ones under python and under dynvm in default settings: all that can be seen must be the same.

Usage:   run.py [--packages] [--check] [--folder DIR] [--report FILE.json] [-v] [NAME ...]     (a NAME is a part of programs' names)
Inputs:  programs/*.py; with --packages those of packaged/, which use packages from the index that pip is configured for (packages.toml). DYNVM and
         DYNVM_TEST_PYTHON: what is tested. Without names and DYNVM_TEST_FULL=1 only QUICK. --folder: where environments are kept (default: build/public-X.Y).
Outputs: a line for each program: the share of its tensor operations that ran compiled, its time and python's, the most frequent reasons why recordings were
         given up; each failure with what differs; last line "N passed, N failed, N skipped"; exit status 1 when one failed, 77 when no package could be fetched.
         --check      what traces leave is compared with what the interpreter does (DYNVM_STRESS=check)
         --report     the lines as JSON
Rule:    exit status, standard output and standard error are equal. Floats in them may differ as tests/training/judge.py says: by rounding of the largest
         of a line, by half of the last printed digit, or by 40 times what python's own results differ by when each operation's rounding is another one (noisy.py); where
         such noise changes the text, the program decides by rounding from there on. Times and shares are shown and not judged.
Tests:   test_public.py.
"""

import argparse
import glob
import json
import os
import re
import sys
import tempfile
import time
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, *(os.path.join(os.path.dirname(HERE), name) for name in ("lib", "programs", "training"))]
from cases import CHECK, Checks, judge_checks, values_of  # noqa: E402
import gaps  # noqa: E402
from compare import DYNVM, FULL, PYTHON, not_built, run  # noqa: E402
from judge import Judge  # noqa: E402
from packages import Environment, NotFetched, folder_for  # noqa: E402
from session import THREADS, Run, defects, read_report  # noqa: E402

# What ./check runs: of each kind of program one, of those that take least.
QUICK = {"kmeans_and_regression", "ppo", "speech_ctc", "wgan_gp", "word2vec", "word_language_model"}
SECONDS = {"python": 300, "noise": 900, "dynvm": 600, "check": 3600}
NO_PROGRAMS = {"synthetic"}  # modules that programs import


def without_names(text, folder):
    """The text without the names of the run's folder and of what tempfile has made in it, which are other ones in each run."""
    return re.sub(r"\bFOLDER/tmp[a-z0-9_]{8}\b", "FOLDER/TEMPORARY", text.replace(folder, "FOLDER"))


class Program:
    """A script, with the environment that it runs in (None: the tested Python's own)."""

    def __init__(self, path, environment=None):
        self.path, self.environment = path, environment
        self.name = os.path.basename(path)[:-3]
        with open(path, encoding="utf-8") as file:
            self.text = file.read()

    def variables(self):
        return {**THREADS, "PYTHONHASHSEED": "0", **(self.environment.variables() if self.environment else {})}

    def start(self, command, kind, more=None):
        """(its Run, seconds). Each run has a folder of its own to work in, and one for temporary files."""
        with tempfile.TemporaryDirectory(prefix="dynvm-public-") as folder:
            begun = time.monotonic()
            outcome = run(command, [self.path], env={**self.variables(), "TMPDIR": folder, **(more or {})}, cwd=folder, timeout=SECONDS[kind])
            return Run(outcome.status, without_names(outcome.stdout, folder), without_names(outcome.stderr, folder)), time.monotonic() - begun

    def python(self):
        return self.environment.python if self.environment else PYTHON

    def under_python(self):
        return self.start([self.python()], "python")

    def under_noise(self, seed):
        return self.start([self.python(), os.path.join(HERE, "noisy.py"), str(seed)], "noise")[0]

    def under_dynvm(self, check):
        with tempfile.TemporaryDirectory(prefix="dynvm-report-") as folder:
            path = os.path.join(folder, "report.json")
            result, seconds = self.start([DYNVM, "--report", path], "check" if check else "dynvm", CHECK if check else None)
            result.report = read_report(path)
            return result, seconds


class Noise:
    """Outputs of a program under noise, each of which is computed once, when it is asked for."""

    def __init__(self, program):
        self.program, self.runs = program, {}

    def of(self, part):
        return lambda seed: getattr(self.run(seed), part)

    def run(self, seed):
        if seed not in self.runs:
            self.runs[seed] = self.program.under_noise(seed)
        return self.runs[seed]


def compare(text, expected, got, noise):
    """(complaints, whether something was accepted because of noise). noise(part): a function that gives that part of a run under noise of a number."""
    complaints, by_noise = [], False
    if expected.status != got.status:
        complaints.append(f"exit status {got.status}, python gives {expected.status}")
    for part in ("stdout", "stderr"):
        judge = Judge(getattr(expected, part), text, noise(part))
        difference = judge.difference(getattr(got, part))
        by_noise |= judge.by_noise
        if difference:
            complaints.append(f"{part}: {difference}")
    if complaints and expected.stderr != got.stderr and "stderr" not in complaints[-1]:
        complaints.append(f"dynvm's stderr ends: {got.stderr[-800:]}")
    return complaints, by_noise


def judge_report(name, report, said, known):
    """Complaints about what dynvm tells of itself, and `said` of traces (gaps.split); what is a known gap goes to `known` (a Counter)."""
    if report is None:
        return ["no report was written"]
    complaints = defects(report["aborts"])
    if report["handovers"]:
        complaints.append(f"{report['handovers']} frames were handed to CPython's evaluator")
    if report["failures"]["own"]:
        complaints.append(f"errors of dynvm's own: {report['failures']['own']}")
    if report["checks"]["different"]:
        complaints += judge_checks(name, report["checks"]["different"], said, known)
    return complaints


def run_program(program, check, known):
    """A row: name, complaints, and what the run showed. known: a Counter for what is wrong and known."""
    expected, python_s = program.under_python()
    got, dynvm_s = program.under_dynvm(check)
    said = []
    if check:
        got.stderr, said = gaps.split(got.stderr)
    complaints = judge_report(program.name, got.report, said, known)
    if expected.status != 0:
        complaints.insert(0, f"the program ends with status {expected.status} under python: {expected.stderr[-800:]}")
    differences, by_noise = compare(program.text, expected, got, Noise(program).of)
    row = {"name": program.name, "complaints": complaints + differences, "by_noise": by_noise, "python_s": python_s, "dynvm_s": dynvm_s, "aborts": {}, "compiled": 0, "total": 0}
    if got.report:
        row |= {"compiled": got.report["tensor_ops_compiled"], "total": got.report["tensor_ops_total"], "aborts": got.report["aborts"],
                "checks": got.report["checks"], "values": values_of(got.report)}
    return row


def show(row, verbose):
    share = row["compiled"] / row["total"] if row["total"] else 0.0
    aborts = sorted(row["aborts"].items(), key=lambda item: -item[1])
    shown = ", ".join(f"{name} {count}" for name, count in (aborts if verbose else aborts[:3]))
    noise = ", differs by rounding" if row["by_noise"] else ""
    print(f"{row['name']:<28} {100 * share:5.1f} % compiled  {row['dynvm_s']:6.1f} s / python {row['python_s']:5.1f} s = {row['dynvm_s'] / row['python_s']:4.2f}{noise}; {shown}", flush=True)
    for text in row["complaints"]:
        print(f"FAILED {row['name']}\n  " + text.rstrip().replace("\n", "\n  "), flush=True)


def scripts(folder):
    return [path for path in sorted(glob.glob(os.path.join(HERE, folder, "*.py"))) if os.path.basename(path)[:-3] not in NO_PROGRAMS]


def plain_programs(names):
    programs = [Program(path) for path in scripts("programs")]
    if names:
        return [program for program in programs if any(name in program.name for name in names)]
    return [program for program in programs if FULL or program.name in QUICK]


def packaged_programs(names, folder):
    """Programs of packages.toml, with their environments made; those that cannot be had are told of and counted: (programs, skipped)."""
    with open(os.path.join(HERE, "packages.toml"), "rb") as file:
        table = tomllib.load(file)
    programs, skipped = [], 0
    for name, row in table.items():
        if names and not any(part in name for part in names):
            continue
        place = Environment(os.path.join(folder, name), row["requirements"], sees_own=True)
        try:
            place.make()
            place.check_dynvm()
            programs.append(Program(os.path.join(HERE, "packaged", name + ".py"), place))
        except NotFetched as error:
            skipped += 1
            print(f"{name:<28} skipped: {error}", flush=True)
    return programs, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--packages", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--folder")
    parser.add_argument("--report")
    parser.add_argument("-v", "--verbose", action="store_true")
    arguments = parser.parse_args()
    if not_built():
        return 1
    skipped = 0
    if arguments.packages:
        programs, skipped = packaged_programs(arguments.names, os.path.abspath(arguments.folder or folder_for("public")))
    else:
        programs = plain_programs(arguments.names)
    rows, checks = [], Checks()
    for program in programs:
        rows.append(run_program(program, arguments.check, checks.known))
        show(rows[-1], arguments.verbose)
        if "checks" in rows[-1]:
            checks.add(rows[-1]["checks"])
    if arguments.check:
        print(checks, *checks.gaps(), sep="\n")
    failed = sum(bool(row["complaints"]) for row in rows)
    passed = len(rows) - failed
    compiled, total = (sum(row[key] for row in rows) for key in ("compiled", "total"))
    if rows and not compiled:
        failed += 1
        print("FAILED suite: nothing was compiled")
    if arguments.check and rows and not checks.made:
        failed += 1
        print("FAILED suite: nothing was checked")
    if arguments.report:
        with open(arguments.report, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    print(f"{compiled} of {total} tensor operations ran compiled")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 77 if skipped and not rows else 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
