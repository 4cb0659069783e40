#!/usr/bin/env python3
"""The scripts of tests/vm many times in one process: what is allocated must not grow, or not more than under CPython's evaluator.

Usage:   run.py [--count N] [--mode MODE] [SCRIPT ...]
Inputs:  tests/vm/scripts (a feature of the language each) less UNREPEATABLE; DYNVM_VM_MODULE, DYNVM_TEST_PYTHON (vm_case.py).
Outputs: for each script that grows, by how much; last line "N passed, N failed, N skipped".
Method:  allocations are looked at after 40 %, 70 % and all of the repetitions (repeat.py); growth is the smaller of the two differences,
         because tables grow in steps, which do not come again. With threads, when a step comes is chance: what seems to grow is measured
         again, and what leaks does so each time.
"""

import argparse
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in (os.path.join(HERE, "..", "vm"), os.path.join(HERE, "..", "lib")):
    sys.path.insert(0, folder)
import vm_case  # noqa: E402
from compare import FULL  # noqa: E402

SCRIPTS = os.path.join(vm_case.FOLDER, "scripts")
COUNT, FULL_COUNT = 20, 1000
MEASUREMENTS = 3
UNREPEATABLE = {
    "interactive_and_doctest.py": "starts other interpreters",
    "exit_status.py": "ends its process",
}
# Blocks, bytes and references that may come, for noise: what malloc keeps for reuse counts as bytes in use.
SLACK = (4, 32000, 8)
# Where a script leaves code objects behind under CPython too, dynvm's decoded and native code stays with them: (blocks, bytes, references) for
# one of CPython's.
BESIDE_LEFT_CODE = (1.2, 12, 1)
NAMES = ("blocks", "bytes", "references")


def growth(script, mode, count):
    """What comes in 30 % of the repetitions: (blocks, bytes, references), or a text that says what went wrong."""
    status, out, err = vm_case.run([os.path.join(HERE, "repeat.py"), os.path.join(SCRIPTS, script), str(count)], mode, timeout=3000)
    try:
        rows = json.loads(out.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return f"ended with status {status}: {err[-2000:]}"
    return tuple(min(later - earlier for earlier, later in zip(column, column[1:])) for column in zip(*rows))


def check(script, mode, count):
    """None, or what grows."""
    found = growth(script, mode, count)
    if isinstance(found, str):
        return found
    if all(value <= slack for value, slack in zip(found, SLACK)):
        return None
    stock = growth(script, "stock", count)
    if isinstance(stock, str):
        return None  # python itself cannot do that
    wrong = [f"{value} {name} ({other} under CPython)" for name, value, other, slack, factor
             in zip(NAMES, found, stock, SLACK, BESIDE_LEFT_CODE) if value > factor * other + slack]
    return f"{', '.join(wrong)} more in {int(0.3 * count)} repetitions" if wrong else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scripts", nargs="*")
    parser.add_argument("--count", type=int, default=FULL_COUNT if FULL else COUNT)
    parser.add_argument("--mode", choices=("vm", *vm_case.STRESS))
    arguments = parser.parse_args()
    if not vm_case.available():
        print("the test module of the evaluator is not built\n0 passed, 0 failed, 1 skipped")
        return 77
    modes = [arguments.mode] if arguments.mode else ["vm", *(vm_case.STRESS if FULL else ())]
    passed = failed = skipped = 0
    for script in arguments.scripts or sorted(os.listdir(SCRIPTS)):
        if script in UNREPEATABLE:
            skipped += 1
            continue
        for mode in modes:
            for _ in range(MEASUREMENTS):
                wrong = check(script, mode, arguments.count)
                if not wrong:
                    break
            passed += wrong is None
            failed += wrong is not None
            if wrong:
                print(f"FAILED {script} mode {mode}: {wrong}", flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
