#!/usr/bin/env python3
"""Runs the scripts of tests/traces/cases under python and dynvm: all that can be seen must be the same.

Usage:   run.py [--stress] [--check] [--cached] [--alone] [--examples] [--hot N] [--heuristics NAME=N,...] [-v] [NAME ...]     (a NAME is a part of cases' names)
Inputs:  cases/*.py, what training scripts do; their headers, DYNVM and DYNVM_TEST_PYTHON: tests/programs/cases.py.
Outputs: each failure with what differs; last line "N passed, N failed, N skipped"; exit status 1 when one failed.
         --stress     each guard of each trace fails once (DYNVM_STRESS=exit); expectations are not checked, because
                      exits make other shares
         --check      what traces leave is compared with what the interpreter does (DYNVM_STRESS=check)
         --cached     runs twice with one trace cache: the second run, with traces of the first, is compared
         --examples   the programs of examples/ instead, with the share of compiled operations after their beginning
         --alone      all cases in processes of their own; also with DYNVM_TEST_FULL=1
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "programs"))
from cases import compare, environment_of, finish, parser, run_folder  # noqa: E402
from compare import ROOT, not_built  # noqa: E402
from session import defects, run_alone  # noqa: E402

# The examples: arguments of a short and of a long run, which both make the same way to steady state: what the long run does more is that.
# The share of tensor operations that runs compiled then: char_gpt.py prints a line every 20 steps, and learns for some time where it goes on from there.
EXAMPLES = {
    "train_digits.py": (["--epochs", "3"], [], 0.99),
    "char_gpt.py": (["--steps", "100", "--sample", "20"], ["--sample", "20"], 0.96),
}


def run_examples(arguments):
    """name -> complaints. The share is that of what the long run does more than the short one."""
    results = {}
    env = environment_of(arguments)
    for name, (short, long, wanted) in EXAMPLES.items():
        path = os.path.join(ROOT, "examples", name)
        reports = []
        complaints = results[name] = []
        for args in (short,) if env else (short, long):
            expected = run_alone("python", path, args=args, seconds=300)
            got = run_alone("dynvm", path, args=args, env=env, seconds=1200 if env else 300)
            complaints += [f"{' '.join(args)}: {text}" for text in compare(expected, got)]
            if expected.status != 0:
                complaints.append(f"python itself ends with status {expected.status}:\n{expected.stderr[-800:]}")
            if got.report is None:
                complaints.append("no report was written")
            else:
                reports.append(got.report)
                if got.report["checks"]["different"]:
                    complaints.append(f"{got.report['checks']['different']} runs of traces are not what the interpreter does")
                complaints += defects(got.report["aborts"])
                if got.report["handovers"]:
                    complaints.append(f"{got.report['handovers']} frames were handed to CPython's evaluator")
        if len(reports) == 2:
            total, compiled = (reports[1][key] - reports[0][key] for key in ("tensor_ops_total", "tensor_ops_compiled"))
            share = compiled / total if total > 0 else 0.0
            print(f"{name}: {100 * share:.2f} % of {total} steady tensor operations ran compiled")
            if share < wanted:
                complaints.append(f"only {100 * share:.2f} % ran compiled, {100 * wanted:.0f} % wanted; "
                                  f"aborts {reports[1]['aborts']}, {reports[1]['side_exits']} side exits")
    return results


def main():
    options = parser()
    options.add_argument("--examples", action="store_true")
    arguments = options.parse_args()
    if not_built():
        return 1
    return finish(run_examples(arguments) if arguments.examples else run_folder(os.path.join(HERE, "cases"), arguments))


if __name__ == "__main__":
    sys.exit(main())
