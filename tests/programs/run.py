#!/usr/bin/env python3
"""Runs random programs under python and dynvm: what they print must be the same.

Usage:   run.py [--count N] [--first SEED] [--hot N] [--stress] [--check] [--shrink] [SEED ...]
         run.py --self-test    python against python with one rounding error more in each operation: a program that prints
                               something else decides by rounding, and is of no use here
Inputs:  generate.py's programs, seeds from --first on, without FRAGILE. DYNVM and DYNVM_TEST_PYTHON: what is tested.
Outputs: for each failure the seed, what differs and the program (shrunk with --shrink); the share of tensor operations that
         ran compiled over the whole suite, which must not be below SHARE; last line "N passed, N failed, N skipped".
         Floats may differ by 1e-4 relative, 1e-6 absolute (tolerant.py), all else is exact.
Method:  programs run in groups of ten a process (batch.py, driver.py); when a process dies, those it had not finished run
         again alone, so that one crash is one failure.
"""

import argparse
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from batch import batch_text, split_output  # noqa: E402
from generate import generate  # noqa: E402
from session import DYNVM, PYTHON, defects, run_shared  # noqa: E402
from shrink import shrink  # noqa: E402
from tolerant import difference  # noqa: E402
from compare import not_built  # noqa: E402

COUNT, GROUP = 200, 10
HEADER = ("show", "digits")  # functions of generate.py's programs that stay when one is made smaller
SHARE = 0.58  # of tensor operations that must run compiled, without --stress: what is reached, less a little
# Seeds whose programs decide by rounding (found by --self-test).
FRAGILE = frozenset({25, 36, 48, 136, 164, 198})


class Totals:
    """Sums over the reports."""

    def __init__(self):
        self.total = self.compiled = self.traces = self.side_exits = self.handovers = self.missing = self.checks = self.different = 0
        self.aborts = {}

    def add(self, report):
        if report is None:
            self.missing += 1
            return
        self.total += report["tensor_ops_total"]
        self.compiled += report["tensor_ops_compiled"]
        self.traces += len(report["traces"])
        self.side_exits += report["side_exits"]
        self.handovers += report["handovers"]
        self.checks += report["checks"]["made"]
        self.different += report["checks"]["different"]
        for name, count in report["aborts"].items():
            self.aborts[name] = self.aborts.get(name, 0) + count


def run_programs(mode, paths, folder, *, options=(), env=None, totals=None, noise=False, group=GROUP):
    """path -> (output, whether the program came to its end)."""
    outputs = {}
    groups = [paths[k:k + group] for k in range(0, len(paths), group)]
    scripts = []
    for number, part in enumerate(groups):
        script = os.path.join(folder, f"batch_{mode}_{group}_{number}.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(batch_text(part, noise))
        scripts.append(script)
    for part, run in zip(groups, run_shared(mode, scripts, options=options, env=env, seconds=(60 if (env or {}).get("DYNVM_STRESS", "").startswith("check") else 12) * group)):
        found = split_output(run.stdout)
        for path in part:
            output, ended = found.get(path, ("", False))
            if not ended:
                output += f"\n(ended with status {run.status})\n{run.stderr[-2000:]}"
            outputs[path] = output, ended
        if totals is not None:
            totals.add(run.report)
    again = [path for path in paths if not outputs[path][1]]
    if again and group > 1:
        outputs.update(run_programs(mode, again, folder, options=options, env=env, noise=noise, group=1))
    return outputs


def write_programs(texts, folder, prefix):
    paths = []
    for name, text in texts:
        path = os.path.join(folder, f"{prefix}{name}.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        paths.append(path)
    return paths


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("seeds", nargs="*", type=int)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--hot", type=int, default=2)
    parser.add_argument("--stress", action="store_true", help="each guard of each trace fails once")
    parser.add_argument("--check", action="store_true", help="what traces leave is compared with what the interpreter does")
    parser.add_argument("--shrink", action="store_true", help="make the first failing program smaller")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if not_built((PYTHON,) if arguments.self_test else (PYTHON, DYNVM)):
        return 1
    seeds, seed = list(arguments.seeds), arguments.first
    while not arguments.seeds and len(seeds) < arguments.count:
        if seed not in FRAGILE:
            seeds.append(seed)
        seed += 1

    options = [f"--hot={arguments.hot}"]
    env = {"DYNVM_STRESS": "exit"} if arguments.stress else {"DYNVM_STRESS": "check,continue"} if arguments.check else {}
    totals = Totals()
    with tempfile.TemporaryDirectory(prefix="dynvm-programs-") as folder:
        def differences(paths, collect=None):
            """path -> None or what differs, and python's output."""
            expected = run_programs("python", paths, folder)
            if arguments.self_test:
                got = run_programs("python", paths, folder, noise=True)
            else:
                got = run_programs("dynvm", paths, folder, options=options, env=env, totals=collect)
            return {path: (difference(expected[path][0], got[path][0]), expected[path][0]) for path in paths}

        paths = write_programs(((seed, generate(seed)) for seed in seeds), folder, "program_")
        results = differences(paths, totals)
        failed = [(seed, path) for seed, path in zip(seeds, paths) if results[path][0]]
        raised = sum("Traceback" in results[path][1] for path in paths)
        for seed, path in failed:
            print(f"FAILED seed {seed}: {results[path][0]}")
        for number, (seed, path) in enumerate(failed[:3]):
            text = generate(seed)
            if arguments.shrink and number == 0:
                def failing(texts):
                    tried = write_programs(enumerate(texts), folder, "candidate_")
                    shown = differences(tried)
                    # A candidate that python itself cannot run is no smaller form of the same failure.
                    return [bool(shown[p][0]) and "NameError" not in shown[p][1] and "Unbound" not in shown[p][1] for p in tried]
                text = shrink(text, failing, HEADER)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                print(f"--- seed {seed}, made smaller: {differences([path])[path][0]}\n{text}")
            else:
                print(f"--- seed {seed}\n{text[text.index('import math'):]}")

    count, failures = len(seeds), len(failed)
    print(f"{raised} of {count} programs end with an exception under python")
    if not arguments.self_test:
        share = totals.compiled / totals.total if totals.total else 0.0
        print(f"{totals.traces} traces, {totals.side_exits} side exits, {totals.compiled} of {totals.total} tensor operations "
              f"({100 * share:.1f} %) ran compiled; aborts {dict(sorted(totals.aborts.items(), key=lambda e: -e[1]))}")
        if not arguments.seeds:
            complaints = [text for text, wrong in (("nothing was compiled", not totals.compiled or not totals.traces),
                                                   (f"{totals.missing} reports are missing", totals.missing),
                                                   (f"{totals.handovers} hand-overs", totals.handovers),
                                                   (f"only {share:.3f} ran compiled, not {SHARE}", share < SHARE and not arguments.stress and not arguments.check and arguments.count == COUNT),
                                                   ("no exit was forced", arguments.stress and not totals.side_exits),
                                                   ("nothing was checked", arguments.check and not totals.checks),
                                                   (f"{totals.different} runs of traces are not what the interpreter does", totals.different)) if wrong]
            complaints += defects(totals.aborts)
            count, failures = count + 1, failures + bool(complaints)
            if complaints:
                print("FAILED suite: " + "; ".join(complaints))
    print(f"{count - failures} passed, {failures} failed, 0 skipped")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
