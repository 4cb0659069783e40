#!/usr/bin/env python3
"""Torch's own tests under dynvm: each test that passes under python must pass under dynvm.

Usage:   run.py [--quick | --full] [--source DIR] [--modes NAME,...] [--part K/N] [-j N] [--folder DIR] [--report
                FILE.json] [--limit SECONDS] [-v] [NAME ...]
         NAME: a row of modules.def or any other file below torch's `test` (functorch.test_vmap), or tests of one, as
         failures print them (test_nn.TestNN.test_dir). Without names: the usual rows; --quick: what ./check runs,
         from what torch ships; --full, also by DYNVM_TEST_FULL=1: all rows in all modes. --modes: rows of modes.def
         (default: once,hot). --part K/N: each N-th module.
         --source, also by DYNVM_TORCH_TESTS: a folder `test` of torch's sources that fits the installed torch. -v:
         also what was skipped.
Inputs:  DYNVM and DYNVM_TEST_PYTHON, what is compared, with torch; modules.def, modes.def, exclusions.def. --folder:
         where sources, packages and python's results are kept (default: build/torch_own).
Outputs: a line for each module and mode, each failure with its detail; --report: all of it as JSON; last line "N
         passed, N failed, N skipped" over single tests, exit status 1 when one failed, 77 when there was nothing to
         run.
Method:  Test files are those of the commit that the installed torch was built from, fetched with git; where that
         cannot be had, they are skipped with the reason, and parts/ remains: tests made from the descriptions of
         modules, optimizers and operators that torch ships. tests/lib/process.py runs a file under both, worker.py
         tells of each test, tests/lib/verdicts.py compares.
Tests:   test_runner.py.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(TESTS, "lib")]
sys.path.append(os.path.join(TESTS, "cpython"))
import verdicts  # noqa: E402
from compare import DYNVM, FULL, PATIENCE, PYTHON, ROOT  # noqa: E402
from process import Kept, Side  # noqa: E402
from sources import NotFetched, Torch, mark, packages, sources  # noqa: E402
from tables import rows  # noqa: E402

WORKER = os.path.join(HERE, "worker.py")
LEVELS = ("quick", "usual", "full")
LIMIT_S = 1800
OWN = "parts."  # how modules of this folder begin


def table(name, kind, fields):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return rows(file.read(), kind, fields)


@dataclasses.dataclass
class Mode:
    name: str
    times: int
    switches: tuple


class Exclusions:
    """What verdicts.py asks for, of one mode."""

    def __init__(self, mode, table):
        self.reasons = {test: reason for test, modes, reason in table if modes == "all" or mode in modes.split()}

    def of(self, module):
        return [(test, reason) for test, reason in self.reasons.items() if test.startswith(module + ".")]


def modes_of(names):
    known = {name: Mode(name, int(times), tuple(switches.split()))
             for name, times, switches, _ in table("modes.def", "MODE", 4)}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"run.py: modes.def has no {', '.join(unknown)}")
    return [known[name] for name in names] or list(known.values())


def owner(name, roots):
    """The module that a name is or is below: the longest beginning that is a file."""
    words = name.split(".")
    for length in range(len(words), 0, -1):
        module = ".".join(words[:length])
        if any(os.path.exists(os.path.join(root, *words[:length]) + ".py") for root in roots):
            return module
    return None


class Runner:
    def __init__(self, arguments, torch, roots, extra):
        self.arguments, self.torch, self.roots, self.extra = arguments, torch, roots, extra
        self.exclusions = table("exclusions.def", "EXCLUDED", 3)

    def sides(self, mode):
        """(python's, kept; dynvm's)."""
        inputs = "1" if self.arguments.quick else ""
        exclusions = Exclusions(mode.name, self.exclusions)
        options = {"roots": self.roots, "times": mode.times}
        variables = {"PYTHONPATH": self.extra, "DYNVM_TEST_INPUTS": inputs, "MKL_NUM_THREADS": "1"}
        stock = Side(PYTHON, False, WORKER, options, self.arguments.limit, tuple(exclusions.reasons), variables)
        # What is kept belongs to these files and this torch.
        about = dataclasses.replace(stock, options={
            **options, "torch": self.torch.commit, "files": [mark(root) for root in self.roots],
            "parts": mark(os.path.join(HERE, "parts")), "inputs": inputs})
        kept = Kept(about, os.path.join(self.arguments.folder, "results"))
        return kept, dataclasses.replace(stock, program=DYNVM, report=True, switches=mode.switches), exclusions

    def run(self, module, mode, only):
        kept, own, exclusions = self.sides(mode)
        result = verdicts.judge(module, kept, own, exclusions, only)
        first = kept.load(module)
        if not any(test[0] == "ok" for name, test in first.tests.items() if name != f"{module} (import)"):
            why = "no test passes under python: " + (first.why or first_word(first))
            result["left_out"].append((f"{module} (python)", why))
        result["module"] = f"{module} [{mode.name}]"
        return result


def first_word(run):
    """Why no test of a run passed: the last line of its first failure."""
    details = [test[2] for test in run.tests.values() if test[0] in ("fail", "error") and test[2]]
    return details[0].strip().splitlines()[-1] if details else "it has none"


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--source", metavar="DIR", default=os.environ.get("DYNVM_TORCH_TESTS"))
    parser.add_argument("--modes")
    parser.add_argument("--part", default="1/1", metavar="K/N")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "torch_own"))
    parser.add_argument("--report")
    parser.add_argument("--limit", type=float, default=LIMIT_S * PATIENCE)
    parser.add_argument("-v", "--verbose", action="store_true")
    arguments = parser.parse_intermixed_args()
    arguments.folder = os.path.abspath(arguments.folder)
    arguments.full = arguments.full or FULL and not arguments.quick
    if arguments.modes is None:
        arguments.modes = "hot" if arguments.quick else "once,hot,looped" if arguments.full else "once,hot"
    return arguments


def chosen(arguments):
    """Names of modules that the level has, or those given."""
    if arguments.names:
        return arguments.names
    level = "quick" if arguments.quick else "full" if arguments.full else "usual"
    part, parts = (int(word) for word in arguments.part.split("/"))
    at = LEVELS[:LEVELS.index(level) + 1]
    return [name for name, of, _ in table("modules.def", "MODULE", 3) if of in at][part - 1::parts]


def pick(names, roots):
    """module -> None (all of it) or a list of test ids; and the names of which there is no file."""
    picked, absent = {}, []
    for name in names:
        module = owner(name, roots)
        if module is None:
            absent.append(name)
        elif module == name:
            picked[module] = None
        elif picked.get(module, []) is not None:
            picked.setdefault(module, []).append(name)
    return picked, absent


def main():
    arguments = parse()
    verdicts.end_with_children()
    modes = modes_of(arguments.modes.split(","))
    names = chosen(arguments)
    roots, skipped = [HERE], 0
    os.makedirs(arguments.folder, exist_ok=True)
    try:
        torch = Torch(PYTHON)
        extra = packages(torch, arguments.folder)
    except NotFetched as error:
        print(f"0 passed, 0 failed, 1 skipped: {error}")
        return 77
    if any(not name.startswith(OWN) for name in names):
        try:
            roots.append(os.path.abspath(arguments.source) if arguments.source else sources(torch, arguments.folder))
        except NotFetched as error:
            skipped = sum(not name.startswith(OWN) for name in names)
            names = [name for name in names if name.startswith(OWN)]
            print(f"skipped: {skipped} files of torch's tests: {error}", flush=True)
    picked, absent = pick(names, roots)
    if arguments.names and absent:
        print(f"run.py: no file has {', '.join(absent)}", file=sys.stderr)
        return 2

    start = time.monotonic()
    runner = Runner(arguments, torch, roots, extra)
    results = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        futures = [pool.submit(runner.run, module, mode, only) for module, only in picked.items() for mode in modes
                   if not module.startswith(OWN) or mode.times == 1]
        for future in concurrent.futures.as_completed(futures):
            results.append(future.result())
            verdicts.show(results[-1], arguments.verbose)
    results.sort(key=lambda result: result["module"])
    if arguments.report:
        with open(arguments.report, "w", encoding="utf-8") as file:
            about = {"torch": torch.version, "commit": torch.commit, "modules": results, "absent": absent}
            json.dump(about, file, indent=1)
    passed, failed, left = (sum(result[kind] for result in results) for kind in ("passed", "failed", "skipped"))
    operations, compiled = (sum(result[kind] for result in results) for kind in ("operations", "compiled"))
    unsteady = sum(len(result["unsteady"]) for result in results)
    print(f"{len(results)} runs of files, {time.monotonic() - start:.0f} s; {unsteady} unsteady; "
          f"{compiled} of {operations} tensor operations ran in traces")
    print(f"{passed} passed, {failed} failed, {left + skipped} skipped")
    return 77 if not results else 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
