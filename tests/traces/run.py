#!/usr/bin/env python3
"""Runs the scripts of tests/traces/cases under python and dynvm: all that can be seen must be the same.

Usage:   run.py [--stress] [--alone] [--examples] [--hot N] [-v] [NAME ...]     (a NAME is a part of cases' names)
Inputs:  cases/*.py, what training scripts do, each with a comment at its top:
           # What it is about.
           # expect: compiled>=0.9, traces>=1     against the report; compiled is the share of tensor operations
           # expect-abort: none                   no recording was given up
           # interrupt-after: TEXT                SIGINT is sent when TEXT was written
           # alone: WHY                           runs in a process of its own, started as users start scripts
         DYNVM and DYNVM_TEST_PYTHON: what is tested (tests/lib/compare.py).
Outputs: each failure with what differs; last line "N passed, N failed, N skipped"; exit status 1 when one failed.
         Floats may differ by rounding (tests/programs/tolerant.py), all else is exact: output, tracebacks, exit status.
         --stress     each guard of each trace fails once (DYNVM_STRESS=exit); expectations are not checked, because
                      exits make other shares
         --examples   the programs of examples/ instead, with the share of compiled operations after their beginning
         --alone      all cases in processes of their own; also with DYNVM_TEST_FULL=1
"""

import argparse
import glob
import operator
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "programs"))
from session import DYNVM, PYTHON, defects, run_alone, run_shared  # noqa: E402
from tolerant import difference  # noqa: E402
from compare import FULL, ROOT, no_addresses  # noqa: E402

STRESS = {"DYNVM_STRESS": "exit"}
COMPARISONS = {">=": operator.ge, "<=": operator.le, "==": operator.eq, ">": operator.gt, "<": operator.lt}
HEADER = re.compile(r"^# ([a-z-]+): (.*)$")
EXPECTATION = re.compile(r"^(\w+)\s*(>=|<=|==|>|<)\s*([0-9.]+)$")
# The examples: arguments of a short and of a long run. What the long run does more is steady state.
EXAMPLES = {"train_digits.py": (["--epochs", "3"], []), "char_gpt.py": (["--steps", "40"], [])}
EXAMPLE_SHARE = 0.99


class Case:
    def __init__(self, path):
        self.path = path
        self.name = os.path.basename(path)[:-3]
        self.headers = {}
        with open(path, encoding="utf-8") as file:
            for line in file:
                if not line.startswith("#"):
                    break
                match = HEADER.match(line.rstrip())
                if match:
                    self.headers[match[1]] = match[2]
        unknown = set(self.headers) - {"expect", "expect-abort", "interrupt-after", "alone"}
        if unknown:
            raise SystemExit(f"{path}: no such header: {', '.join(sorted(unknown))}")
        self.alone = "alone" in self.headers or "interrupt-after" in self.headers


def values_of(report):
    """What expectations can name."""
    total = report["tensor_ops_total"]
    return {"compiled": report["tensor_ops_compiled"] / total if total else 0.0,
            "traces": len(report["traces"]),
            "side_exits": report["side_exits"],
            "handovers": report["handovers"],
            "aborts": sum(report["aborts"].values()),
            "residual_calls": sum(report["residual_calls"].values())}


def check_report(case, report):
    """Complaints about the report, as texts."""
    values = values_of(report)
    complaints = []
    if values["handovers"]:
        complaints.append(f"{values['handovers']} frames were handed to CPython's evaluator")
    for part in filter(None, (p.strip() for p in case.headers.get("expect", "").split(","))):
        match = EXPECTATION.match(part)
        if not match or match[1] not in values:
            complaints.append(f"expectation not understood: {part}")
        elif not COMPARISONS[match[2]](values[match[1]], float(match[3])):
            complaints.append(f"expected {part}, got {values[match[1]]:.4g}; aborts {report['aborts']}")
    allowed = case.headers.get("expect-abort")
    if allowed is not None:
        names = set() if allowed == "none" else {name.strip() for name in allowed.split(",")}
        extra = {name: count for name, count in report["aborts"].items() if name not in names}
        if extra:
            complaints.append(f"aborts: {extra}")
    return complaints


def compare(expected, got):
    """Complaints about what could be seen, as texts."""
    complaints = []
    if expected.status != got.status:
        complaints.append(f"exit status {got.status}, python gives {expected.status}")
    for part in ("stdout", "stderr"):
        message = difference(no_addresses(getattr(expected, part)), no_addresses(getattr(got, part)))
        if message:
            complaints.append(f"{part}: {message}")
    if complaints and expected.stderr != got.stderr and "stderr" not in complaints[-1]:
        complaints.append(f"dynvm's stderr ends: {got.stderr[-800:]}")
    return complaints


def run_cases(mode, cases, options, env, all_alone):
    """name -> Run."""
    shared = [case for case in cases if not (case.alone or all_alone)]
    runs = dict(zip((case.name for case in shared),
                    run_shared(mode, [case.path for case in shared], options=options, env=env)))
    for case in cases:
        if case.name not in runs:
            runs[case.name] = run_alone(mode, case.path, options=options, env=env,
                                        interrupt_after=case.headers.get("interrupt-after"))
    return runs


def run_examples(options, env, stress):
    """name -> complaints. The share is that of what the long run does more than the short one."""
    results = {}
    for name, (short, long) in EXAMPLES.items():
        path = os.path.join(ROOT, "examples", name)
        reports = []
        complaints = results[name] = []
        for args in (short,) if stress else (short, long):
            expected = run_alone("python", path, args=args, seconds=300)
            got = run_alone("dynvm", path, args=args, options=options, env=env, seconds=600 if stress else 300)
            complaints += [f"{' '.join(args)}: {text}" for text in compare(expected, got)]
            if expected.status != 0:
                complaints.append(f"python itself ends with status {expected.status}:\n{expected.stderr[-800:]}")
            if got.report is None:
                complaints.append("no report was written")
            else:
                reports.append(got.report)
                complaints += defects(got.report["aborts"])
                if got.report["handovers"]:
                    complaints.append(f"{got.report['handovers']} frames were handed to CPython's evaluator")
        if len(reports) == 2:
            total, compiled = (reports[1][key] - reports[0][key] for key in ("tensor_ops_total", "tensor_ops_compiled"))
            share = compiled / total if total > 0 else 0.0
            print(f"{name}: {100 * share:.2f} % of {total} steady tensor operations ran compiled")
            if share < EXAMPLE_SHARE:
                complaints.append(f"only {100 * share:.2f} % ran compiled, {100 * EXAMPLE_SHARE:.0f} % wanted; "
                                  f"aborts {reports[1]['aborts']}, {reports[1]['side_exits']} side exits")
    return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--stress", action="store_true")
    parser.add_argument("--alone", action="store_true", default=FULL)
    parser.add_argument("--examples", action="store_true")
    parser.add_argument("--hot", type=int, default=2)
    parser.add_argument("-v", "--verbose", action="store_true")
    arguments = parser.parse_args()
    for program in (PYTHON, DYNVM):
        if not os.access(program, os.X_OK):
            print(f"{program} is not there: build first\n0 passed, 1 failed, 0 skipped")
            return 1
    env = STRESS if arguments.stress else {}
    side_exits = compiled = total = traces = 0

    if arguments.examples:
        results = run_examples([], env, arguments.stress)
    else:
        cases = [Case(path) for path in sorted(glob.glob(os.path.join(HERE, "cases", "*.py")))]
        if arguments.names:
            cases = [case for case in cases if any(name in case.name for name in arguments.names)]
        expected = run_cases("python", cases, (), {}, arguments.alone)
        got = run_cases("dynvm", cases, [f"--hot={arguments.hot}"], env, arguments.alone)
        results = {}
        for case in cases:
            run = got[case.name]
            complaints = results[case.name] = compare(expected[case.name], run)
            if expected[case.name].status in ("lost", "time limit"):
                complaints.insert(0, f"the case does not run under python: {expected[case.name].status}")
            if run.report is None:
                complaints.append("no report was written")
                continue
            values = values_of(run.report)
            side_exits += values["side_exits"]
            traces += values["traces"]
            compiled += run.report["tensor_ops_compiled"]
            total += run.report["tensor_ops_total"]
            complaints += defects(run.report["aborts"])
            if not arguments.stress:
                complaints += check_report(case, run.report)
            if arguments.verbose:
                print(f"{case.name:<32} " + " ".join(f"{key} {value:.4g}" for key, value in values.items()))

    failed = {name: complaints for name, complaints in results.items() if complaints}
    for name, complaints in failed.items():
        print(f"FAILED {name}")
        for text in complaints:
            print("  " + text.rstrip().replace("\n", "\n  "))
    count = len(results)
    if not arguments.examples and not arguments.names:
        print(f"{traces} traces, {side_exits} side exits, {compiled} of {total} tensor operations ran compiled")
        count += 1
        if not traces or not compiled or (arguments.stress and not side_exits):
            failed["suite"] = ["nothing was compiled" if not compiled else "no exit was forced"]
            print(f"FAILED suite\n  {failed['suite'][0]}")
    print(f"{count - len(failed)} passed, {len(failed)} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
