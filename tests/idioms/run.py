#!/usr/bin/env python3
"""Short programs, one for each way in which people write things with torch: what they print, what of them is compiled, and how fast they are.

Usage:   run.py [-v] [--stress | --table] [NAME ...]   NAME: a program, or a part of a theme's or program's name
Inputs:  programs/*.py, a theme each. A theme is cut at lines `# %% NAME`; what stands before the first is put in front of each of its programs, and PRELUDE in front of that. A program
         has `for epoch in range(EPOCHS)` around its hot loop, with `mark()` at the end of an epoch: a time is taken there. DYNVM and DYNVM_TEST_PYTHON: what is tested.
Outputs: for each program that prints something else than under python, what. -v: a line for each, the worst first. --table: writes TABLE.md, its times from runs in turn, one program at a time and without a report. Last line
         "N passed, N failed, N skipped"; exit status 1 when one failed. Skipped are programs that python itself does not bring to an end (a package or a part of torch is not there).
Method:  programs run in children of a process that has torch (tests/programs/session.py), with one thread. Floats may differ as tests/programs/tolerant.py says. The share is of the
         tensor operations of the whole run, its start included; the time is the least of an epoch's among the last half.
"""

import argparse
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "programs"))
from session import DYNVM, PYTHON, defects, run_shared  # noqa: E402
from tolerant import difference  # noqa: E402
from compare import not_built  # noqa: E402

TABLE = os.path.join(HERE, "TABLE.md")
ENOUGH = 0.90      # of a program's tensor operations are to be compiled
AS_FAST = 1.02     # of python's time is what a program may take
WANTED = 0.95      # of the programs are to have ENOUGH
TIMES = "DYNVM_IDIOM_TIMES"
BACKEND = "DYNVM_IDIOM_BACKEND"  # of torch.compile
SECONDS = 60
EPOCHS, STEPS = 10, 50
PRELUDE = f"""\
import json as _json, os as _os, time as _time
import torch
import torch.nn as nn
import torch.nn.functional as F
EPOCHS, STEPS = {EPOCHS}, {STEPS}
_times = [_time.perf_counter()]


def mark():
    _times.append(_time.perf_counter())
    if len(_times) == EPOCHS + 1 and _os.environ.get("{TIMES}"):
        with open(_os.path.join(_os.environ["{TIMES}"], _os.path.basename(__file__) + ".json"), "w") as file:
            _json.dump(_times, file)


torch.manual_seed(0)
"""


class Program:
    def __init__(self, theme, name, text):
        self.name, self.text = f"{theme}/{name}", text
        self.difference = None      # why it failed
        self.skipped = False
        self.share = 0.0
        self.aborts = ""
        self.forget_times()

    def forget_times(self):
        self.times = {"python": [], "dynvm": []}   # milliseconds of a step
        self.wholes = {"python": [], "dynvm": []}  # milliseconds of all epochs

    def ratio(self, times=None):
        python, dynvm = (min((times or self.times)[mode], default=0.0) for mode in ("python", "dynvm"))
        return dynvm / python if python > 0 and dynvm > 0 else float("nan")


def read_programs():
    found = []
    folder = os.path.join(HERE, "programs")
    for file in sorted(os.listdir(folder)):
        if not file.endswith(".py"):
            continue
        with open(os.path.join(folder, file), encoding="utf-8") as opened:
            common, *cells = opened.read().split("\n# %% ")
        for cell in cells:
            name, _, text = cell.partition("\n")
            found.append(Program(file[:-3], name.strip(), f"{PRELUDE}{common}\n{text}"))
    return found


def run_all(programs, mode, folder, options=(), env=None, **how):
    """The Runs of programs; their times are noted."""
    paths = [os.path.join(folder, program.name.replace("/", "__") + ".py") for program in programs]
    for program, path in zip(programs, paths):
        with open(path, "w", encoding="utf-8") as file:
            file.write(program.text)
    runs = run_shared(mode, paths, options=options, env={TIMES: folder, BACKEND: "eager" if mode == "python" else "inductor", **(env or {})}, seconds=SECONDS, **how)
    for program, path in zip(programs, paths):
        try:
            with open(path + ".json", encoding="utf-8") as file:
                marks = json.load(file)
            os.unlink(path + ".json")
        except OSError:
            continue
        epochs = [after - before for before, after in zip(marks, marks[1:])]
        whose = "python" if mode == "python" else "dynvm"
        program.times[whose].append(1e3 * min(epochs[len(epochs) // 2:]) / STEPS)
        program.wholes[whose].append(1e3 * sum(epochs))
    return runs


def compare(programs, expected, got):
    for program, python, dynvm in zip(programs, expected, got):
        if python.status != 0:
            program.skipped = True
            program.difference = (python.stderr.strip().splitlines() or [str(python.status)])[-1]
            continue
        if dynvm.status != 0:
            program.difference = f"ended with status {dynvm.status}\n{dynvm.stderr[-1500:]}"
        else:
            program.difference = difference(python.stdout, dynvm.stdout)
        if dynvm.report is None:
            continue
        total, compiled = dynvm.report["tensor_ops_total"], dynvm.report["tensor_ops_compiled"]
        program.share = compiled / total if total else 1.0
        program.aborts = ", ".join(f"{name} {count}" for name, count in sorted(dynvm.report["aborts"].items(), key=lambda item: -item[1])[:3])
        if complaints := defects(dynvm.report["aborts"]):
            program.difference = program.difference or "; ".join(complaints)


def worst_first(programs):
    return sorted((each for each in programs if not each.skipped), key=lambda each: (each.share, each.name))


def summary(programs):
    ran = [each for each in programs if not each.skipped]
    enough = sum(each.share >= ENOUGH for each in ran)
    slower = sum(each.ratio() > AS_FAST for each in ran)
    return f"{enough} of {len(ran)} programs have {ENOUGH:.0%} of their tensor operations compiled (wanted: {WANTED:.0%}); {slower} take longer than {AS_FAST} of python's time (wanted: none)"


def write_table(programs):
    lines = ["# How the idioms fare", "", "Generated by `tests/idioms/run.py --table`: compiled tensor operations, milliseconds of a step with one thread, how long the whole run takes beside python's, and what aborted recordings; the least compiled first.",
             "", summary(programs) + ".", "", "| program | compiled | python, ms | dynvm, ms | ratio | whole run | aborts |", "|---|---:|---:|---:|---:|---:|---|"]
    for each in worst_first(programs):
        python, dynvm = (min(each.times[mode], default=float("nan")) for mode in ("python", "dynvm"))
        lines.append(f"| {each.name} | {each.share:.0%} | {python:.3f} | {dynvm:.3f} | {each.ratio():.2f} | {each.ratio(each.wholes):.2f} | {each.aborts} |")
    with open(TABLE, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("-v", "--verbose", action="store_true")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--stress", action="store_true", help="each guard of each trace fails once")
    how.add_argument("--table", action="store_true", help="writes TABLE.md")
    arguments = parser.parse_args()
    if not_built((PYTHON, DYNVM)):
        return 1
    programs = read_programs()
    if arguments.names:
        programs = [each for each in programs if any(name in each.name for name in arguments.names)]
    options, env = (("--hot=2",), {"DYNVM_STRESS": "exit"}) if arguments.stress else ((), {})
    with tempfile.TemporaryDirectory(prefix="dynvm-idioms-") as folder:
        expected = run_all(programs, "python", folder)
        compare(programs, expected, run_all(programs, "dynvm", folder, options, env))
        if arguments.table:
            for each in programs:
                each.forget_times()
            for mode in ("python", "timed", "python", "timed"):
                run_all(programs, mode, folder, jobs=1)
    failed = [each for each in programs if each.difference and not each.skipped]
    for each in programs:
        if each.skipped:
            print(f"skipped {each.name}: {each.difference}")
    for each in failed:
        print(f"FAILED {each.name}: {each.difference}")
    if arguments.verbose:
        for each in worst_first(programs):
            print(f"{each.name:44} {each.share:5.0%}  {min(each.times['python'], default=0):8.3f} {min(each.times['dynvm'], default=0):8.3f} ms  {each.ratio():5.2f}  {each.ratio(each.wholes):5.2f}  {each.aborts}")
    if arguments.table:
        write_table(programs)
    print(summary(programs))
    skipped = sum(each.skipped for each in programs)
    print(f"{len(programs) - len(failed) - skipped} passed, {len(failed)} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
