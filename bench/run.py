#!/usr/bin/env python3
"""Measures each case of bench/cases under eager, torch.compile and dynvm, and prints a table.

Usage:   bench/run.py [--cases A,B] [--modes eager,compile,dynvm] [--quick] [--rounds N] [--threads N] [--json FILE]
                      [--markdown FILE]
         bench/run.py --device cuda ...: the workloads on a GPU, by bench/cuda.py with these arguments.
Inputs:  bench/cases/*.py; the interpreter and launcher of .venv, or DYNVM_TEST_PYTHON and DYNVM.
Outputs: a table (microseconds per step, ratios, cold time, share of tensor operations that ran compiled), the same as
         JSON, and as Markdown. Exit status 1 when a mode failed or gave other results than eager.
Method:  Each measurement is a process of its own (bench/worker.py). The modes take turns: eager, compile, dynvm, eager, ...
         over --rounds rounds; a case's time is the minimum over groups and rounds, the median is given beside it.
         torch.compile compiles the whole step, and counts with the best of its modes (COMPILE_MODES). Its first process of
         each mode starts with an empty cache, and gives the cold time; later ones use the caches it left, as dynvm does with
         its own: both start with empty cache folders that belong to this run.
         Cold time is from the start of the first step until the first step that is nearly as fast (COLD_FACTOR,
         COLD_NOISE_US for the clock around a single step) as the steady time; import is not in it.
Tests:   bench/run.py --quick
"""

import argparse
import itertools
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

BENCH = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(BENCH)
PYTHON = os.environ.get("DYNVM_TEST_PYTHON", os.path.join(ROOT, ".venv", "bin", "python"))
DYNVM = os.environ.get("DYNVM", os.path.join(ROOT, ".venv", "bin", "dynvm"))
MODES = ("eager", "compile", "dynvm")
COMPILE_MODES = ("default", "reduce-overhead", "max-autotune-no-cudagraphs")
COLD_FACTOR = 1.5
COLD_NOISE_US = 30
TIME_LIMIT_S = 900
# Results may differ by rounding, which training steps amplify.
RELATIVE, ABSOLUTE = 2e-3, 1e-4


class Failed(Exception):
    """A worker did not come to its end; the text says how."""


class Runner:
    """Starts workers, each with this run's cache folders and thread count."""

    def __init__(self, folder, arguments, variables=None):
        """folder: for this run's files. variables: more of the environment."""
        self.folder = folder
        self.arguments = arguments
        self.variables = variables or {}
        self.count = itertools.count(1)  # cases may be measured by several threads

    def run(self, case, mode, compile_mode=None):
        """What bench/worker.py measured, and dynvm's report under "report"."""
        number = next(self.count)
        output = os.path.join(self.folder, f"{number}.json")
        report = os.path.join(self.folder, f"{number}.report.json")
        caches = os.path.join(self.folder, "caches", case, compile_mode or mode)
        threads = str(self.arguments.threads)
        environment = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads,
                       "TORCHINDUCTOR_CACHE_DIR": caches, "TRITON_CACHE_DIR": os.path.join(caches, "triton"),
                       "XDG_CACHE_HOME": os.path.join(caches, "xdg"), "DYNVM_CACHE": "off", **self.variables}
        command = [DYNVM, "--report", report] if mode == "dynvm" else [PYTHON]
        command += [os.path.join(BENCH, "worker.py"), case, output, "--threads", threads,
                    "--seconds", str(0.4 if self.arguments.quick else 1.0),
                    "--groups", str(4 if self.arguments.quick else 8)]
        if compile_mode:
            command += ["--compile", compile_mode]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace",
                                  timeout=TIME_LIMIT_S)
        except OSError as error:
            raise Failed(f"cannot start: {error}") from None
        except subprocess.TimeoutExpired:
            raise Failed(f"time limit of {TIME_LIMIT_S} s passed") from None
        if done.returncode != 0 or not os.path.exists(output):
            raise Failed(f"status {done.returncode}\n{done.stderr[-3000:]}")
        with open(output, encoding="utf-8") as file:
            result = json.load(file)
        if mode == "dynvm":
            with open(report, encoding="utf-8") as file:
                result["report"] = json.load(file)
        return result


def cold_s(result, steady_us):
    """Seconds until the first step that is nearly as fast as the steady time; None when none was."""
    elapsed = 0.0
    for time_us in result["cold_us"]:
        if time_us <= COLD_FACTOR * steady_us + COLD_NOISE_US:
            return elapsed / 1e6
        elapsed += time_us
    return None


def same_results(expected, got):
    return len(expected) == len(got) and all(
        math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE) or (math.isnan(a) and math.isnan(b))
        for a, b in zip(expected, got))


def summarise(results, first=None):
    """The numbers of one mode over its rounds; the cold time is that of `first` (the run with empty caches)."""
    groups = [time for result in results for time in result["groups_us"]]
    row = {"min_us": min(groups), "median_us": statistics.median(groups), "groups_us": groups}
    row["cold_s"] = cold_s(first or results[0], row["median_us"])
    return row


def measure_case(runner, case, modes):
    """mode -> its numbers, or {"error": text}."""
    rounds = {mode: [] for mode in modes}
    rows, first, compile_mode = {}, {}, None
    if "compile" in modes:
        trials = {}
        for candidate in COMPILE_MODES[:1] if runner.arguments.quick else COMPILE_MODES:
            try:
                trials[candidate] = runner.run(case, "compile", candidate)
            except Failed as error:
                rows.setdefault("compile", {"error": f"{candidate}: {error}"})
        if trials:
            compile_mode = min(trials, key=lambda name: min(trials[name]["groups_us"]))
            first["compile"] = trials[compile_mode]
            rounds["compile"].append(trials[compile_mode])
            rows.pop("compile", None)
    for _ in range(runner.arguments.rounds):
        for mode in modes:
            if mode in rows:
                continue
            try:
                rounds[mode].append(runner.run(case, mode, compile_mode if mode == "compile" else None))
            except Failed as error:
                rows[mode] = {"error": str(error)}
    for mode in modes:
        if mode in rows:
            continue
        row = rows[mode] = summarise(rounds[mode], first.get(mode))
        row["results"] = rounds[mode][0]["results"]
        if mode == "compile":
            row["mode"] = compile_mode
        if mode == "dynvm":
            report = row["report"] = rounds[mode][-1]["report"]
            row["warm"] = rounds[mode][-1]["warm"]
            total = report["tensor_ops_total"]
            row["compiled_share"] = report["tensor_ops_compiled"] / total if total else None
            row["record_ms"] = rounds[mode][0]["report"]["record_ms"]
            row["compile_ms"] = rounds[mode][0]["report"]["compile_ms"]
    reference = rows.get("eager", {}).get("results")
    for row in rows.values():
        if reference is not None and "results" in row:
            row["same_results"] = same_results(reference, row["results"])
    return rows


COLUMNS = ("case", "eager us", "compile us", "dynvm us", "dynvm : eager", "dynvm : compile", "compile : eager",
           "compile cold s", "dynvm cold s", "record+compile ms", "compiled ops", "results")


def cells(case, rows):
    """The case's line of the table; times are minimum (median)."""
    def time(mode):
        row = rows.get(mode)
        if row is None:
            return "-"
        return "failed" if "error" in row else f"{row['min_us']:.1f} ({row['median_us']:.1f})"

    def ratio(slow, fast):
        slow, fast = rows.get(slow, {}), rows.get(fast, {})
        return f"{slow['min_us'] / fast['min_us']:.2f}x" if "min_us" in slow and "min_us" in fast else "-"

    def cold(mode):
        row = rows.get(mode, {})
        if "min_us" not in row:
            return "-"
        return "never" if row["cold_s"] is None else f"{row['cold_s']:.3f}"

    mine = rows.get("dynvm", {})
    share = mine.get("compiled_share")
    differing = [mode for mode, row in rows.items() if row.get("same_results") is False]
    return (case, time("eager"), time("compile"), time("dynvm"), ratio("eager", "dynvm"), ratio("compile", "dynvm"),
            ratio("eager", "compile"), cold("compile"), cold("dynvm"),
            f"{mine['record_ms'] + mine['compile_ms']:.1f}" if "record_ms" in mine else "-",
            "-" if share is None else f"{100 * share:.1f} %",
            "differ: " + ",".join(differing) if differing else "same" if "eager" in rows and len(rows) > 1 else "-")


def print_table(lines, out=sys.stdout):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join(text.ljust(width) if i == 0 else text.rjust(width)
                        for i, (text, width) in enumerate(zip(line, widths))), file=out)


def write_markdown(path, lines, arguments):
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"`bench/run.py`, {arguments.threads} threads, {arguments.rounds} rounds; "
                   "microseconds per step, minimum (median).\n\n")
        file.write("| " + " | ".join(lines[0]) + " |\n|" + "---|" * len(lines[0]) + "\n")
        for line in lines[1:]:
            file.write("| " + " | ".join(line) + " |\n")


def main():
    where = argparse.ArgumentParser(add_help=False)
    where.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="cuda: see bench/cuda.py --help; the other arguments are its own")
    place, words = where.parse_known_args()
    if place.device == "cuda":
        import cuda

        return cuda.main(words)
    available = sorted(name[:-3] for name in os.listdir(os.path.join(BENCH, "cases")) if name.endswith(".py"))
    parser = argparse.ArgumentParser(description="Measures bench/cases under eager, torch.compile and dynvm.", parents=[where])
    parser.add_argument("--cases", default=",".join(available), help="comma separated; default all: %(default)s")
    parser.add_argument("--modes", default=",".join(MODES), help="comma separated, of %(default)s")
    parser.add_argument("--rounds", type=int, help="default 3; 1 with --quick")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="one round, short, torch.compile's default mode only")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--markdown", metavar="FILE")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 3)
    modes, cases = arguments.modes.split(","), arguments.cases.split(",")
    for wanted, known, what in ((modes, MODES, "mode"), (cases, available, "case")):
        for name in wanted:
            if name not in known:
                parser.error(f"no {what} {name}; there are {', '.join(known)}")

    all_rows, lines, failed = {}, [COLUMNS], False
    folder = tempfile.mkdtemp(prefix="dynvm-bench-")
    try:
        runner = Runner(folder, arguments)
        for case in cases:
            rows = all_rows[case] = measure_case(runner, case, modes)
            lines.append(cells(case, rows))
            print_table([COLUMNS, lines[-1]], sys.stderr)
            for mode, row in rows.items():
                if "error" in row:
                    print(f"{case} under {mode} failed: {row['error']}", file=sys.stderr)
                failed = failed or "error" in row or row.get("same_results") is False
    finally:
        shutil.rmtree(folder, ignore_errors=True)

    print_table(lines)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"threads": arguments.threads, "rounds": arguments.rounds, "quick": arguments.quick,
                       "cases": all_rows}, file, indent=1)
    if arguments.markdown:
        write_markdown(arguments.markdown, lines, arguments)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
