#!/usr/bin/env python3
"""Runs random programs under CPython's evaluator and dynvm's: all that they show must be the same.

Usage:   run.py [--count N] [--first SEED] [--minutes M] [--kind KIND] [--mode MODE] [--no-shrink] [SEED ...]
Inputs:  generate.py's programs, from --first on; of the kind "codes" their code objects are changed first (mutate.py); "assembled" programs
         are made of instructions instead (assemble.py), "hot" ones of functions for native runs (hot.py). Modes are vm_case.py's; DYNVM_VM_MODULE and DYNVM_TEST_PYTHON: what is tested.
         Without arguments: the seeds that seeds.def keeps and COUNT programs of each kind, one mode after the other.
Outputs: for each failure its seed and what differs, and the first one made smaller; last line "N passed, N failed, N skipped". Skipped are
         programs that CPython itself does not bring to an end in time.
Method:  programs run in groups, each group in one process (worker.py); when a process dies, its programs run again one by one.
"""

import argparse
import json
import os
import re
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in (os.path.join(HERE, "..", "vm"), os.path.join(HERE, "..", "lib"), HERE):
    sys.path.insert(0, folder)
import mutate  # noqa: E402
import vm_case  # noqa: E402
from compare import FULL, PATIENCE  # noqa: E402
from generate import generate  # noqa: E402
from shrink import shrink  # noqa: E402
from worker import END, MARK  # noqa: E402

COUNT, GROUP = (6000 if FULL else 120), 40
MODES = ("vm", *vm_case.STRESS)
KINDS = ("program", "codes", "assembled", "hot")
SECONDS = 3  # of processor time for a program under CPython; dynvm gets more
OUT_OF_TIME = -26  # SIGVTALRM


class Program:
    """One program: its text and what is done to its code. kind: see KINDS."""

    def __init__(self, kind, seed, text=None, changes=None):
        self.kind, self.seed, self.changes = kind, seed, changes
        if text is None:
            if kind == "assembled":
                import assemble
                text = assemble.generate(seed)
            elif kind == "hot":
                import hot
                text = hot.generate(seed)
            else:
                text = generate(seed)
        self.text = text

    def entry(self, name):
        return [name, self.text, self.seed if self.kind == "codes" else None, self.changes]


def run_group(programs, mode, folder):
    """[(what it showed, exit status or None when it came to its end)]"""
    path = os.path.join(folder, f"{mode}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump([program.entry(str(number)) for number, program in enumerate(programs)], file)
    os.environ["DYNVM_FUZZ_SECONDS"] = str(SECONDS * (1 if mode == "stock" else 10) * PATIENCE)
    status, out, err = vm_case.run([os.path.join(HERE, "worker.py"), path], mode, timeout=3600)
    shown = [("", None)] * len(programs)
    for part in ("\n" + out).split("\n" + MARK)[1:]:
        name, _, text = part.partition("\n")
        text = text.rstrip("\n")
        ended = text.endswith(END)
        shown[int(name)] = (text, None) if ended else (f"{text}\nended with status {status}\n{err[-3000:]}", status)
    started = [k for k, (text, _) in enumerate(shown) if text]
    if not started:
        raise RuntimeError(f"worker.py did not start: {err}")
    if started[-1] + 1 < len(programs):  # it died in one program: the others have not run
        shown[started[-1] + 1:] = run_group(programs[started[-1] + 1:], mode, folder)
    return shown


def difference(expected, got):
    """The first lines that differ, or None."""
    if expected == got:
        return None
    expected, got = expected.split("\n"), got.split("\n")
    for number, (left, right) in enumerate(zip(expected, got)):
        if left != right:
            break
    else:
        number, left, right = min(len(expected), len(got)), "(ended)", "(went on)"
    tail = "\n".join(line for line in got[-25:] if "runtime error" in line or "ERROR" in line or "dynvm" in line)
    return f"line {number}: python {left[:700]}\n{' ' * 12}dynvm {right[:700]}\n{tail}"


def differences(programs, mode, folder, group=GROUP):
    """For each program None, "skipped" or what differs."""
    results = []
    for start in range(0, len(programs), group):
        part = programs[start:start + group]
        for program, (expected, status), (got, _) in zip(part, run_group(part, "stock", folder), run_group(part, mode, folder)):
            found = "skipped" if status is not None else difference(expected, got)
            results.append("skipped" if found and (varies(program, folder) or depends_on_limit(program, mode, expected, got, folder)) else found)
    return results


def varies(program, folder):
    """Whether CPython does not always do the same with it: an address may decide how a set is ordered."""
    return len({run_group([program], "stock", folder)[0][0] for _ in range(8)}) > 1


def depends_on_limit(program, mode, expected, got, folder):
    """Whether a program runs into the limit of recursion, or another limit changes it: 3.11 and 3.13 count a call, or do not,
    by how CPython has specialised it."""
    if sys.version_info[:2] == (3, 12):
        return False
    if "RecursionError" in expected or "RecursionError" in got:
        return True
    try:
        for limit in ("159", "161", "2000"):
            os.environ["DYNVM_FUZZ_LIMIT"] = limit
            if run_group([program], "stock", folder)[0][0] != expected or run_group([program], mode, folder)[0][0] != got:
                return True
    finally:
        del os.environ["DYNVM_FUZZ_LIMIT"]
    return False


def make_smaller(program, mode, folder):
    """The same failure with fewer changes of code and fewer statements."""
    def failing(candidates):
        return [result not in (None, "skipped") for result in differences(candidates, mode, folder)]

    if program.kind == "codes":
        changes = mutate.planned(program.text, program.seed)
        size = len(changes) // 2
        while size:
            parts = [changes[:start] + changes[start + size:] for start in range(0, len(changes), size)]
            works = [part for part, fails in zip(parts, failing([Program("codes", program.seed, program.text, part) for part in parts])) if fails]
            if works:
                changes = works[0]
            size = min(size, len(changes)) // (1 if works and len(changes) >= size else 2)
        program = Program("codes", program.seed, program.text, changes)
    text = shrink(program.text, lambda texts: failing([Program(program.kind, program.seed, text, program.changes) for text in texts]))
    return Program(program.kind, program.seed, text, program.changes)


class Session:
    def __init__(self, folder, smaller):
        self.folder, self.smaller = folder, smaller
        self.passed = self.failed = self.skipped = 0

    def check(self, programs, mode):
        for program, result in zip(programs, differences(programs, mode, self.folder)):
            if result == "skipped":
                self.skipped += 1
            elif result is None:
                self.passed += 1
            else:
                self.fail(program, mode, result)

    def fail(self, program, mode, result):
        self.failed += 1
        alone = differences([program], mode, self.folder)[0]
        print(f"FAILED {program.kind} {program.seed} mode {mode}{'' if alone else ' (only behind others of its group)'}: {result}", flush=True)
        if alone and self.smaller and self.failed <= 3:
            program = make_smaller(program, mode, self.folder)
            print(f"--- made smaller, changes {program.changes}: {differences([program], mode, self.folder)[0]}\n{program.text}", flush=True)

    def counts(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def kept_seeds():
    """[(kind, mode, seed)] of seeds.def."""
    with open(os.path.join(HERE, "seeds.def"), encoding="utf-8") as file:
        return [(kind, mode, int(seed)) for kind, mode, seed in re.findall(r"^SEED\((\w+), (\w+), (\d+),", file.read(), re.M)]


def as_tested_python():
    """Programs made of instructions are those of the Python that makes them: it has to be the one that runs them."""
    if os.path.exists(vm_case.PYTHON) and os.path.realpath(vm_case.PYTHON) != os.path.realpath(sys.executable):
        os.execv(vm_case.PYTHON, [vm_case.PYTHON, *sys.argv])


def main():
    as_tested_python()
    parser = argparse.ArgumentParser()
    parser.add_argument("seeds", nargs="*", type=int)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--mode", choices=MODES)
    parser.add_argument("--no-shrink", action="store_true")
    arguments = parser.parse_args()
    if not vm_case.available():
        print("the test module of the evaluator is not built\n0 passed, 0 failed, 1 skipped")
        return 77
    kinds = [arguments.kind] if arguments.kind else KINDS
    modes = [arguments.mode] if arguments.mode else MODES
    with tempfile.TemporaryDirectory(prefix="dynvm-fuzz-") as folder:
        session = Session(folder, not arguments.no_shrink)
        if arguments.seeds:
            for kind in kinds:
                for mode in modes:
                    session.check([Program(kind, seed) for seed in arguments.seeds], mode)
        elif arguments.minutes:
            end, first = time.monotonic() + 60 * arguments.minutes, arguments.first
            while time.monotonic() < end:
                for kind in kinds:
                    # Modes that record are slower and find less.
                    mode = modes[0] if first // GROUP % 4 or len(modes) == 1 else modes[1 + first // GROUP // 4 % (len(modes) - 1)]
                    session.check([Program(kind, seed) for seed in range(first, first + GROUP)], mode)
                first += GROUP
                print(f"up to {first}: {session.counts()}", flush=True)
        else:
            for kind, mode, seed in kept_seeds():
                session.check([Program(kind, seed)], mode)
            for kind in kinds:
                seeds = range(arguments.first, arguments.first + arguments.count)
                for number, mode in enumerate(modes):
                    session.check([Program(kind, seed) for seed in seeds[number::len(modes)]], mode)
        print(session.counts())
    return 1 if session.failed else 0


if __name__ == "__main__":
    sys.exit(main())
