#!/usr/bin/env python3
"""Runs the scripts of tests/dynamo/cases under python and dynvm: all that can be seen must be the same. They use torch's
own compiler in hot loops.

Usage:   run.py [--plain] [--stress] [--alone] [--hot N] [-v] [NAME ...]     (a NAME is a part of cases' names)
Inputs:  cases/*.py; their headers, DYNVM and DYNVM_TEST_PYTHON: tests/programs/cases.py.
Outputs: each failure with what differs; last line "N passed, N failed, N skipped"; exit status 1 when one failed.
         --plain      each in a process of its own, in default settings and without a report, for which operations are
                      counted all the time: what decides is when counting and recording begin
         Without names and DYNVM_TEST_FULL=1 only QUICK: torch's compiler takes a second or two for most of them.
"""

import glob
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "programs"))
from cases import Case, compare, finish, parser, run_folder  # noqa: E402
from compare import DYNVM, FULL, not_built, run  # noqa: E402
from session import THREADS, run_alone  # noqa: E402

REAL = "--torch-compile=real"  # else torch.compile is a hint (test_hint.py)

# One for each rule, of those that take least.
QUICK = {
    "backend_counts_calls", "backend_replaces", "cond", "dispatch_keys", "frame_evaluation_from_outside", "fullgraph",
    "hook_calls_compiled", "is_compiling", "library_override_in_loop", "library_overrides", "nested_compile",
    "optimizers_do_not_compile", "recompiles", "skipped_frames", "stances", "trace_goes_on_behind",
}


def choose(cases):
    return [case for case in cases if FULL or case.name in QUICK]


def run_plain(names):
    """name -> complaints."""
    results = {}
    for path in sorted(glob.glob(os.path.join(HERE, "cases", "*.py"))):
        case = Case(path)
        if not names and not choose([case]) or names and not any(name in case.name for name in names):
            continue
        results[case.name] = compare(run_alone("python", path), run(DYNVM, [REAL, path], env=THREADS))
    return results


def main():
    options = parser()
    options.add_argument("--plain", action="store_true")
    arguments = options.parse_args()
    if not_built():
        return 1
    if arguments.plain:
        return finish(run_plain(arguments.names))
    return finish(run_folder(os.path.join(HERE, "cases"), arguments, choose, [REAL]))


if __name__ == "__main__":
    sys.exit(main())
