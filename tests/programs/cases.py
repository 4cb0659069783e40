"""Runs a folder of scripts with headers under python and dynvm: all that can be seen must be the same.

Inputs:  scripts, each with a comment at its top:
           # What it is about.
           # expect: compiled>=0.9, traces>=1     against the report; compiled is the share of tensor operations
           # gap: compiled WHY                    the expectation of that name does not hold, and is to: it is printed, and no complaint
           # expect-abort: none                   no recording was given up
           # interrupt-after: TEXT                SIGINT is sent when TEXT was written
           # alone: WHY                           runs in a process of its own, started as users start scripts
         DYNVM and DYNVM_TEST_PYTHON: what is tested (tests/lib/compare.py).
Outputs: complaints about each script; finish() prints them, with the last line "N passed, N failed, N skipped".
         With --check what traces leave is a complaint too, but for known gaps (tests/lib/gaps.def).
         Floats may differ by rounding (tolerant.py), all else is exact: output, tracebacks, exit status.
Tests:   the suites that use it: tests/traces/run.py, tests/whole/run.py.
"""

import argparse
import collections
import fcntl
import glob
import hashlib
import json
import operator
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from session import Run, defects, run_alone, run_shared  # noqa: E402
from tolerant import difference  # noqa: E402
import gaps  # noqa: E402
from compare import FULL, no_addresses  # noqa: E402

STRESS = {"DYNVM_STRESS": "exit"}
CHECK = {"DYNVM_STRESS": "check,continue"}
CACHED_SHARE = 0.5  # of traces on disk, to be entered when the same script runs again
COMPARISONS = {">=": operator.ge, "<=": operator.le, "==": operator.eq, ">": operator.gt, "<": operator.lt}
HEADER = re.compile(r"^# ([a-z-]+): (.*)$")
EXPECTATION = re.compile(r"^(\w+)\s*(>=|<=|==|>|<)\s*([0-9.]+)$")


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
        unknown = set(self.headers) - {"expect", "expect-abort", "interrupt-after", "alone", "gap"}
        if unknown:
            raise SystemExit(f"{path}: no such header: {', '.join(sorted(unknown))}")
        self.alone = "alone" in self.headers or "interrupt-after" in self.headers


class Checks:
    """The sum of reports' `checks`."""

    def __init__(self):
        self.made = self.undetermined = 0
        self.skipped = collections.Counter()
        self.known = collections.Counter()

    def add(self, checks):
        self.made += checks["made"]
        self.undetermined += checks["undetermined"]
        self.skipped.update(checks["skipped"])

    def __str__(self):
        skipped = ", ".join(f"{why} {count}" for why, count in self.skipped.most_common())
        return f"{self.made} runs of traces were compared with the interpreter's, {self.undetermined} of them not determined; skipped: {skipped or 'none'}"

    def gaps(self):
        """Lines about what is known to be wrong."""
        return [f"known gap: {what} ({count} times)" for what, count in self.known.items()]


def judge_checks(script, different, said, known):
    """Complaints about `different` runs of traces, of which there are the reports `said`; a known gap goes to `known` (a Counter). One without a report is none."""
    table, unknown = gaps.rows(), []
    for report in said:
        what = gaps.known(script, report, table)
        if what is None:
            unknown.append(report)
        else:
            different -= 1
            known[f"{script}: {what}"] += 1
    return [f"{different} runs of traces are not what the interpreter does\n{''.join(unknown[:1])[:2000]}"] if different > 0 else []


def values_of(report):
    """What expectations can name."""
    total = report["tensor_ops_total"]
    return {"compiled": report["tensor_ops_compiled"] / total if total else 0.0,
            "traces": len(report["traces"]),
            "side_exits": report["side_exits"],
            "handovers": report["handovers"],
            "recordings": report["recordings"],
            "made_for_sizes": report["sizes"]["made"],
            "open_sizes": report["sizes"]["open"],
            "aborts": sum(report["aborts"].values()),
            "failed": report["failures"]["again"],
            "residual_calls": sum(report["residual_calls"].values())}


def check_report(case, report, known):
    """Complaints about the report, as texts; what is a known gap goes to `known` (a Counter)."""
    values = values_of(report)
    complaints = []
    if values["handovers"]:
        complaints.append(f"{values['handovers']} frames were handed to CPython's evaluator")
    for part in filter(None, (p.strip() for p in case.headers.get("expect", "").split(","))):
        match = EXPECTATION.match(part)
        if not match or match[1] not in values:
            complaints.append(f"expectation not understood: {part}")
        elif not COMPARISONS[match[2]](values[match[1]], float(match[3])):
            wrong = f"expected {part}, got {values[match[1]]:.4g}; aborts {report['aborts']}"
            gap, _, why = case.headers.get("gap", "").partition(" ")
            if gap == match[1]:
                known[f"{case.name}: {wrong}: {why}"] += 1
            else:
                complaints.append(wrong)
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


def environment_of(arguments):
    """What the environment says beyond the usual."""
    return STRESS if arguments.stress else CHECK if arguments.check else {}


def run_cases(mode, cases, options, env, all_alone):
    """name -> Run."""
    longer = 6 if env == CHECK else 1
    shared = [case for case in cases if not (case.alone or all_alone)]
    runs = dict(zip((case.name for case in shared),
                    run_shared(mode, [case.path for case in shared], options=options, env=env, seconds=60 * longer)))
    for case in cases:
        if case.name not in runs:
            runs[case.name] = run_alone(mode, case.path, options=options, env=env, seconds=120 * longer,
                                        interrupt_after=case.headers.get("interrupt-after"))
    return runs


def expected_runs(cases, all_alone):
    """name -> Run under python. Suites that run_all.py runs at one time share them, in the folder DYNVM_TEST_SHARED: the first one of each selection runs the scripts."""
    folder = os.environ.get("DYNVM_TEST_SHARED")
    if folder is None:
        return run_cases("python", cases, (), {}, all_alone)
    name = hashlib.sha256(repr(([case.path for case in cases], all_alone)).encode()).hexdigest()
    path = os.path.join(folder, name + ".json")
    with open(path + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(path):
            runs = run_cases("python", cases, (), {}, all_alone)
            with open(path + ".new", "w", encoding="utf-8") as file:
                json.dump({case: [run.status, run.stdout, run.stderr] for case, run in runs.items()}, file)
            os.rename(path + ".new", path)
    with open(path, encoding="utf-8") as file:
        return {case: Run(*shown) for case, shown in json.load(file).items()}


def parser():
    """The options that each suite of such scripts has."""
    result = argparse.ArgumentParser()
    result.add_argument("names", nargs="*")
    result.add_argument("--stress", action="store_true")
    result.add_argument("--check", action="store_true")
    result.add_argument("--cached", action="store_true")
    result.add_argument("--alone", action="store_true", default=FULL)
    result.add_argument("--hot", type=int, default=2)
    result.add_argument("--heuristics", metavar="NAME=N,...")
    result.add_argument("-v", "--verbose", action="store_true")
    return result


def run_folder(folder, arguments, choose=lambda cases: cases, more=()):
    """name -> complaints, for the scripts that `choose` leaves, under dynvm with `more` options; "suite" stands for all together."""
    cases = [Case(path) for path in sorted(glob.glob(os.path.join(folder, "*.py")))]
    if arguments.names:
        cases = [case for case in cases if any(name in case.name for name in arguments.names)]
    else:
        cases = choose(cases)
    expected = expected_runs(cases, arguments.alone)
    options = [f"--hot={arguments.hot}", *more, *([f"--heuristics={arguments.heuristics}"] if arguments.heuristics else [])]
    kept = loaded = {}
    if arguments.cached:
        with tempfile.TemporaryDirectory(prefix="dynvm-cache-") as folder:
            env = {"DYNVM_CACHE": os.path.join(folder, "traces")}
            kept, got = (run_cases("dynvm", cases, options, env, arguments.alone) for _ in range(2))
            loaded = got
    else:
        got = run_cases("dynvm", cases, options, environment_of(arguments), arguments.alone)
    side_exits = compiled = total = traces = 0
    checks = Checks()
    results = {}
    for case in cases:
        run = got[case.name]
        said = []
        if arguments.check:
            run.stderr, said = gaps.split(run.stderr)
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
        checks.add(run.report["checks"])
        if run.report["checks"]["different"]:
            complaints += judge_checks(case.name, run.report["checks"]["different"], said, checks.known)
        if not arguments.stress and not arguments.cached and not arguments.check:
            complaints += check_report(case, run.report, checks.known)
        if arguments.verbose:
            print(f"{case.name:<32} " + " ".join(f"{key} {value:.4g}" for key, value in values.items()))
            if arguments.cached:
                print(f"{'':<32} kept {kept[case.name].report['cache']}, then {run.report['cache']}")
    for line in checks.gaps():
        print(line)
    if not arguments.names:
        print(f"{traces} traces, {side_exits} side exits, {compiled} of {total} tensor operations ran compiled")
        results["suite"] = []
        if arguments.check:
            print(checks)
            if not checks.made:
                results["suite"].append("nothing was checked")
        if arguments.cached:
            written, read = (sum(run.report["cache"][key] for run in runs.values() if run.report) for runs, key in ((kept, "kept"), (loaded, "loaded")))
            print(f"{written} traces were kept, {read} of them entered by the next process")
            if read < CACHED_SHARE * written:
                results["suite"].append(f"expected {CACHED_SHARE:.0%} of the traces that were kept")
        if not compiled:
            results["suite"].append("nothing was compiled")
        elif arguments.stress and not side_exits:
            results["suite"].append("no exit was forced")
    return results


def finish(results):
    """Prints the complaints; gives the exit status."""
    failed = {name: complaints for name, complaints in results.items() if complaints}
    for name, complaints in failed.items():
        print(f"FAILED {name}")
        for text in complaints:
            print("  " + text.rstrip().replace("\n", "\n  "))
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed, 0 skipped")
    return 1 if failed else 0
