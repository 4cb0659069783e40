#!/usr/bin/env python3
"""Finds each seeded defect by the generators and the oracle alone, and has `dynvm bisect` name it.

Usage:   defects.py [--seconds N] [--first SEED] [--no-bisect] [--out FOLDER] [DEFECT ...]
Inputs:  runtime/base/defects.def; programs of program.py, of tests/fuzz/hot.py for defects of the interpreter. DYNVM, DYNVM_TEST_PYTHON: what is tested.
Outputs: for each defect a line: the seconds of processor time until a program differed that does not without the defect, its seed and mode, and what bisect says;
         last line "N passed, N failed, N skipped"; exit status 1 when one failed. --out: the programs and bisect's folders.
Rule:    found within SECONDS of processor time, programs and python's part with it, and bisect's verdict has the loop and the switch of the defect's row.
Method:  seeds from FIRST on in the mode that traces most, the later ones in one of the others as well, in turn (hunt.py's sides, with DYNVM_DEFECT). What differs has to
         differ in a process of its own, and not without the defect; bisect gets the mode's options, and judges as it does for a user: a program whose difference is too
         small for it is passed over. What python shows of a seed is kept for the next defect, and its seconds counted there too.
Tests:   test_defect_hunt.py.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from hunt import judged  # noqa: E402
from judge import Judge  # noqa: E402
from side import DYNVM, MODES, PATIENCE, PYTHON, Side  # noqa: E402
from compare import ROOT, environment, not_built  # noqa: E402
from process import end_group, live  # noqa: E402
from verdicts import end_with_children  # noqa: E402

SECONDS = 600              # of processor time until a defect is found
WAITS = 4                  # times as many seconds on the clock
BISECT_SECONDS = 1800      # of the clock
FIRST = 0
USUAL, OTHERS = "hot", ("check", "exit", "plain")
ALONE = 60                 # programs that run in the first mode only: each mode costs some seconds at its start
FUZZ = os.path.join(HERE, "..", "fuzz")
GROUP = 20                 # programs of tests/fuzz that run in one process
NATIVE = ("--heuristics=native_calls=5,native_loops=6,native_misses=3",)


class Defect:
    def __init__(self, name, stage, bisect, text):
        self.name, self.stage, self.bisect, self.text = name, stage, bisect, text


def rows():
    with open(os.path.join(ROOT, "runtime", "base", "defects.def"), encoding="utf-8") as file:
        return [Defect(*row) for row in re.findall(r'^X\(k\w+,\s*"(\w+)",\s*"(\w+)",\s*"([^"]*)",\s*"(.*)"\)$', file.read(), re.M)]


class Found:
    """A program that differs with a defect only. words: of the command line behind the program dynvm; variables: of the environment."""

    def __init__(self, seed, mode, text, difference, options, variables, words=(), files=()):
        self.seed, self.mode, self.text, self.difference, self.options, self.variables = seed, mode, text, difference, options, variables
        self.words, self.files = words, files


class Programs:
    """Training programs with what python shows of them: seed -> (text, what it showed, seconds of processor time)."""

    def __init__(self):
        from program import namespace
        namespace()  # torch is imported once, in front of the forks
        self.python, self.known = Side("python"), {}
        self.right = {}  # mode -> Side without a defect

    def get(self, seed):
        if seed not in self.known:
            from program import generate_apart
            before = self.seconds()
            text = generate_apart(seed)
            shown = self.python.run(text) if text is not None else None
            self.known[seed] = (text, shown, self.seconds() - before)
        return self.known[seed]

    def seconds(self):
        """Of processor time: this process, its children that have ended, and python's worker."""
        return used() + sum(side.processor_time() for side in (self.python, *self.right.values()) if side.process is not None)

    def without_defect(self, mode, text):
        """What the program shows in that mode."""
        return self.right.setdefault(mode, Side(mode)).run(text, alone=True)

    def judge(self, text, shown):
        return Judge(shown.output, text, lambda k: self.python.run(text, noise=k).output)

    def close(self):
        for side in (self.python, *self.right.values()):
            side.close(kill=True)


def used():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class TrainingHunt:
    """Looks for a defect among training programs."""

    def __init__(self, defect, programs, modes):
        self.programs = programs
        variables = {"DYNVM_DEFECT": defect.name}
        self.modes = modes
        self.sides = {mode: Side(mode, variables=variables) for mode in modes}
        self.count, self.passed_over = 0, []  # programs; seeds that differ without the defect too, or only behind others

    def seconds(self):
        return self.programs.seconds() + sum(side.processor_time() for side in self.sides.values() if side.process is not None)

    def find(self, seeds, limit):
        """(Found or None, seconds of processor time). seeds: an iterator, which goes on where it was."""
        begun, earlier, clock = self.seconds(), 0.0, time.monotonic()
        while True:
            spent = self.seconds() - begun + earlier
            if spent > limit or time.monotonic() - clock > WAITS * limit * PATIENCE:
                return None, spent
            seed = next(seeds)
            known = seed in self.programs.known
            text, expected, seconds = self.programs.get(seed)
            if known:
                earlier += seconds
            if text is None or expected.end is not None:
                continue
            self.count += 1
            others = self.modes[1:]
            for mode in self.modes[:1] + ([others[self.count % len(others)]] if others and self.count > ALONE else []):
                found = self.differs(seed, mode, text, expected)
                if found is not None:
                    return found, self.seconds() - begun + earlier

    def differs(self, seed, mode, text, expected):
        judge, side = self.programs.judge(text, expected), self.sides[mode]
        if judged(judge, side.run(text)) is None:
            return None
        difference = judged(judge, side.run(text, alone=True))
        if difference is None or judged(judge, self.programs.without_defect(mode, text)) is not None:
            self.passed_over.append(seed)
            return None
        options, variables = MODES[mode]
        if difference.kind == "warning":
            options = ("--stderr", *options)  # where a script's warnings are
        return Found(seed, mode, text, difference, options, variables)

    def close(self):
        for side in self.sides.values():
            side.close(kill=True)


class FuzzHunt:
    """Looks for a defect among tests/fuzz's functions for native runs: what shows all that it has computed, one process for GROUP of them."""

    def __init__(self, defect):
        self.defect, self.passed_over = defect, []

    def find(self, seeds, limit):
        begun, clock = used(), time.monotonic()
        sys.path.insert(0, FUZZ)
        import hot
        while used() - begun < limit and time.monotonic() - clock < WAITS * limit * PATIENCE:
            part = [(seed, hot.generate(seed)) for _, seed in zip(range(GROUP), seeds)]
            if not self.wrong(part):
                continue
            for seed, text in part:
                difference = self.wrong([(seed, text)])
                if difference and not self.wrong([(seed, text)], defect=False):
                    entry = json.dumps([[str(seed), text, None, None]])
                    return Found(seed, "native", text, difference, NATIVE, {}, (os.path.join(FUZZ, "worker.py"), "program.json"), (("program.json", entry),)), used() - begun
                if difference:
                    self.passed_over.append(seed)
        return None, used() - begun

    def wrong(self, part, defect=True):
        """What differs between python and dynvm, "" where nothing does."""
        with tempfile.TemporaryDirectory(prefix="dynvm-defects-") as folder:
            path = os.path.join(folder, "program.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump([[str(seed), text, None, None] for seed, text in part], file)
            worker = os.path.join(FUZZ, "worker.py")
            extra = {"PYTHONHASHSEED": "0", "DYNVM_FUZZ_SECONDS": str(20 * PATIENCE)}
            runs = [subprocess.run([*command, worker, path], capture_output=True, env=environment({**extra, **more}), stdin=subprocess.DEVNULL, check=False)
                    for command, more in (([PYTHON], {}), ([DYNVM, *NATIVE], {"DYNVM_DEFECT": self.defect.name} if defect else {}))]
        texts = [re.sub(rb"\b0x[0-9a-f]{6,}", b"0x...", each.stdout).decode(errors="backslashreplace").splitlines() for each in runs]
        if runs[0].returncode == 0 and (texts[0], 0) != (texts[1], runs[1].returncode):
            number = next((k for k, (a, b) in enumerate(zip(*texts)) if a != b), min(map(len, texts)))
            return f"line {number + 1}: python {''.join(texts[0][number:number + 1])[:200]}, dynvm {''.join(texts[1][number:number + 1])[:200]}"
        return ""

    def close(self):
        pass


def bisect(defect, found, folder):
    """(verdict, culprits) of `dynvm bisect` on the program; verdict "" where it says that nothing is wrong."""
    os.makedirs(folder, exist_ok=True)
    files, words = list(found.files), list(found.words)
    if not words:
        files, words = [("program.py", found.text)], ["program.py"]
    for name, text in files:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    variables = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONHASHSEED": "0", **found.variables, "DYNVM_DEFECT": defect.name}
    process = subprocess.Popen([DYNVM, "bisect", "-o", "found", "--timeout", str(int(60 * PATIENCE)), *found.options, *words], cwd=folder, env=environment(variables),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="backslashreplace", start_new_session=True)
    live.add(process)
    try:
        out = process.communicate(timeout=BISECT_SECONDS * PATIENCE)[0]
    except subprocess.TimeoutExpired:
        return "bisect did not come to its end", []
    finally:
        end_group(process)
        live.discard(process)
    with open(os.path.join(folder, "bisect.txt"), "w", encoding="utf-8") as file:
        file.write(out)
    if process.returncode == 0:
        return "", []
    if process.returncode != 1:
        return f"bisect ended with status {process.returncode}: {out[-600:]}", []
    with open(os.path.join(folder, "found", "bisect.json"), encoding="utf-8") as file:
        about = json.load(file)
    return about["verdict"], about["culprits"]


def names(defect, culprits):
    """Does bisect name what it should: the loop, where it is in a trace, and what the row says?"""
    loop = defect.stage == "vm" or any(each.startswith("trace:") for each in culprits)
    return loop and any(re.fullmatch(defect.bisect, each) for each in culprits)


def hunt(defect, programs, arguments):
    """A line of results, and whether it is as it should be."""
    modes = arguments.mode.split(",") if arguments.mode else [USUAL, *OTHERS]
    finder = FuzzHunt(defect) if defect.stage == "vm" else TrainingHunt(defect, programs, modes)
    seeds, spent = iter(range(arguments.first, sys.maxsize)), 0.0
    unseen = 0  # programs that differ too little for bisect
    try:
        while True:
            found, seconds = finder.find(seeds, arguments.seconds - spent)
            spent += seconds
            if found is None:
                return f"not found in {spent:.0f} s ({unseen} differ too little for bisect; passed over: {finder.passed_over[:10]})", False
            where = f"found in {spent:.0f} s, seed {found.seed}, mode {found.mode}"
            print(f"{defect.name}: {where}: {found.difference}", flush=True)
            if arguments.no_bisect:
                return where, True
            with tempfile.TemporaryDirectory(prefix="dynvm-defects-") as folder:
                if arguments.out:
                    folder = os.path.join(os.path.abspath(arguments.out), f"{defect.name}-{found.seed}-{found.mode}")
                verdict, culprits = bisect(defect, found, folder)
            if not verdict:
                unseen += 1
                continue
            right = names(defect, culprits)
            return f"{where}: {verdict}" + ("" if right else f" (expected {defect.bisect}; culprits {' '.join(culprits)})"), right
    finally:
        finder.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("given", nargs="*", metavar="DEFECT")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--first", type=int, default=FIRST)
    parser.add_argument("--mode")
    parser.add_argument("--no-bisect", action="store_true")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if not_built():
        return 1
    end_with_children()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    defects = [defect for defect in rows() if not arguments.given or defect.name in arguments.given]
    programs, counts = Programs(), [0, 0]
    for defect in defects:
        line, right = hunt(defect, programs, arguments)
        counts[not right] += 1
        print(f"{'' if right else 'FAILED '}{defect.name}: {line}", flush=True)
    programs.close()
    print(f"{counts[0]} passed, {counts[1]} failed, 0 skipped")
    return 1 if counts[1] else 0


if __name__ == "__main__":
    sys.exit(main())
