#!/usr/bin/env python3
"""CPython's own tests under dynvm: each test that passes under python must pass under dynvm.

Usage:   run.py [--quick | --full] [-j N] [--cache DIR] [--report FILE.json] [--resources WHAT,...] [--limit SECONDS]
                [--children] [-v] [NAME ...]
         NAME: a module (test_grammar), a package (test_asyncio) or a single test (test_grammar.TokenTests.test_eval_input).
         Without names: the subset of modules.def that covers the language (about ten minutes on two cores); --quick: the part
         of it that ./check runs; --full, also by DYNVM_TEST_FULL=1 (./check --full): all modules of the running Python.
         --children: programs that tests start with sys.executable are dynvm too.
         -v: also what was skipped, and why. --program PROGRAM: in place of dynvm, without a report.
Inputs:  DYNVM and DYNVM_TEST_PYTHON, what is compared; modules.def, exclusions.def. DYNVM_TEST_CACHE or --cache: where python's
         results are kept, for each version (default: build/cpython).
Outputs: a line for each module, each failure with its detail; --report: all of it as JSON, with the frames handed over to
         CPython's evaluator; last line "N passed, N failed, N skipped" over single tests, exit status 1 when one failed, 77
         when this Python has no tests.
Method:  tests/lib/process.py runs a module under both, worker.py tells of each test, tests/lib/verdicts.py compares. What failed
         runs once more. A difference that only the first run showed is printed as `unsteady`, with its detail: one that is not
         about time is a defect that depends on addresses.
"""

import argparse
import concurrent.futures
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib")]
import tables  # noqa: E402
import verdicts  # noqa: E402
from process import Kept, Side  # noqa: E402
from compare import DYNVM, FULL, PATIENCE, PYTHON, ROOT  # noqa: E402

LIMIT_S, LIMIT_FULL_S = 300, 1500
# What tests may use: nothing that needs a network or a display; time only with --full.
RESOURCES, RESOURCES_FULL = "decimal,subprocess,tzdata", "cpu,decimal,subprocess,tzdata,walltime"
WORKER = os.path.join(HERE, "worker.py")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--cache", default=os.environ.get("DYNVM_TEST_CACHE", os.path.join(ROOT, "build", "cpython")))
    parser.add_argument("--report")
    parser.add_argument("--resources")
    parser.add_argument("--limit", type=float)
    parser.add_argument("--children", action="store_true")
    parser.add_argument("--program", metavar="PROGRAM")
    parser.add_argument("-v", "--verbose", action="store_true")
    arguments = parser.parse_intermixed_args()
    arguments.full = arguments.full or FULL
    if arguments.resources is None:
        arguments.resources = RESOURCES_FULL if arguments.full else RESOURCES
    if arguments.limit is None:
        arguments.limit = (LIMIT_FULL_S if arguments.full or arguments.names else LIMIT_S) * PATIENCE
    return arguments


def side(program, report, resources=(), limit=600.0, children=None, without=()):
    """children: what sys.executable is to be in the tests."""
    return Side(program, report, WORKER, {"resources": list(resources), "children": children}, limit, without)


class Runner:
    def __init__(self, arguments, version):
        resources = tuple(sorted(word for word in arguments.resources.split(",") if word))
        self.exclusions = tables.Exclusions(version, children=arguments.children)
        program, without = arguments.program or DYNVM, tuple(self.exclusions.reasons)
        self.stock = Kept(side(PYTHON, False, resources, arguments.limit, None, without), arguments.cache)
        self.own = side(program, arguments.program is None, resources, arguments.limit, program if arguments.children else None, without)

    def expected_seconds(self, module):
        kept = self.stock.load(module)
        return kept.seconds if kept is not None else 0.0

    def run(self, module, only):
        return verdicts.judge(module, self.stock, self.own, self.exclusions, only)


def main():
    arguments = parse()
    verdicts.end_with_children()
    version, folder = tables.about(PYTHON)
    modules = tables.list_modules(folder) if folder is not None else []
    if not modules:  # Debian's and Ubuntu's Python have but its support modules
        print("0 passed, 0 failed, 1 skipped: this Python has no test package")
        return 77
    if arguments.names:
        try:
            picked = tables.select(arguments.names, modules)
        except ValueError as error:
            print(f"run.py: {error}", file=sys.stderr)
            return 2
    elif arguments.full:
        picked = dict.fromkeys(modules)
    else:
        picked = tables.select(tables.chosen("quick" if arguments.quick else "subset"), modules, strict=False)

    start = time.monotonic()
    runner = Runner(arguments, version)
    results = []
    order = sorted(picked, key=runner.expected_seconds, reverse=True)  # the longest first
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        futures = [pool.submit(runner.run, module, picked[module]) for module in order]
        for future in concurrent.futures.as_completed(futures):
            results.append(future.result())
            verdicts.show(results[-1], arguments.verbose)
    results.sort(key=lambda result: result["module"])
    passed, failed, skipped = (sum(result[kind] for result in results) for kind in ("passed", "failed", "skipped"))
    excluded = sum(text.startswith("excluded: ") for result in results for _, text in result["left_out"])
    if arguments.report:
        with open(arguments.report, "w", encoding="utf-8") as file:
            json.dump({"version": "%d.%d" % version, "seconds": round(time.monotonic() - start, 1), "passed": passed, "failed": failed,
                       "skipped": skipped, "excluded": excluded, "modules": results}, file, indent=1)
    handed = sum(result["handovers"] or 0 for result in results)
    unsteady = sum(len(result["unsteady"]) for result in results)
    untraced = sum(result["handovers"] or 0 for result in results if not result["traced"])
    print(f"{len(results)} modules, {time.monotonic() - start:.0f} s; {excluded} tests excluded by the table; {unsteady} unsteady; "
          f"{handed} frames handed over, {untraced} of them where nothing was traced")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
