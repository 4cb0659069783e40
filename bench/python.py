#!/usr/bin/env python3
"""Measures the evaluator on pyperformance's benchmarks: each under python and under dynvm, the same interpreter.

Usage:   bench/python.py [--only A,B] [--rounds N] [--quick] [--environment DIR] [--json FILE] [--markdown FILE]
Inputs:  a virtual environment with pyperformance and what its benchmarks import, made on first use (--environment, default
         build/bench-python-X.Y) from the interpreter of .venv or DYNVM_TEST_PYTHON; the launcher DYNVM. Benchmarks that need a
         network, or whose requirements do not install, are listed as left out.
Outputs: a table with each benchmark's time and the ratio stock : dynvm, the geometric mean of the ratios; start-up time and
         peak memory of `-c pass` and, where there is torch, of `import torch`. The same as JSON and as Markdown. Exit status 1 when a benchmark runs under
         python and not under dynvm.
Method:  A value is one run of pyperf's worker with the number of loops that pyperf calibrated under python, so both sides do the
         same work; warm-ups of WARM_UP_S seconds, then four values (two with --quick). The sides take turns, ROUNDS
         times. A benchmark's ratio is the median over the rounds of the ratio of both sides' least values, its times are the least
         of all. Nothing else may run on the machine: a busy second thread of the same core slows one side and not the other.
"""

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib

BENCH = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(BENCH)
PYTHON = os.environ.get("DYNVM_TEST_PYTHON", os.path.join(ROOT, ".venv", "bin", "python"))
DYNVM = os.environ.get("DYNVM", os.path.join(ROOT, ".venv", "bin", "dynvm"))
# Network or servers, threads of other programs, or nothing but start-up, which is measured apart.
LEFT_OUT = {"asyncio_tcp", "asyncio_tcp_ssl", "asyncio_websockets", "concurrent_imap", "dask", "fastapi", "hg_startup",
            "python_startup", "python_startup_no_site", "tornado_http", "dulwich_log", "sphinx"}
TIME_LIMIT_S = 300
MAX_TASKS = 40
# Where the work is done by programs that the script starts with sys.executable: they are started with the side's own.
SAME_PROGRAM = "import runpy, sys; sys.executable = sys.argv[1]; del sys.argv[:2]; runpy.run_path(sys.argv[0], run_name='__main__')"
WARM_UP_S, MAX_WARM_UPS = 0.3, 6


class Failed(Exception):
    """A process ended with an error; the text is its last line."""


def make_environment(folder):
    """A virtual environment with pyperformance and its benchmarks' requirements, made unless it is there. Gives its python."""
    python = os.path.join(folder, "bin", "python")
    done = os.path.join(folder, ".complete")
    if os.path.exists(done):
        return python
    print("making", folder, file=sys.stderr)
    subprocess.run([PYTHON, "-c", "import sys, venv; venv.create(sys.argv[1], with_pip=True)", folder], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "pyperformance"], check=True)
    for _, metafile in benchmarks(folder):
        listed = os.path.join(os.path.dirname(metafile), "requirements.txt")
        if os.path.exists(listed):  # those that fail show when the benchmark runs
            with open(listed) as file:
                wanted = [line.strip() for line in file if line.strip() and not line.startswith("#")]
            subprocess.run([*install, *wanted], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    open(done, "w").close()
    return python


def benchmarks(folder):
    """(name, the file that describes it) of each benchmark in the environment's pyperformance."""
    python = os.path.join(folder, "bin", "python")
    where = subprocess.run([python, "-c", "import pyperformance; print(pyperformance.DATA_DIR)"], capture_output=True, text=True, check=True)
    root = os.path.join(where.stdout.strip(), "benchmarks")
    found = []
    with open(os.path.join(root, "MANIFEST")) as manifest:
        for line in manifest:
            entry = re.fullmatch(r"(\w+)\s+<local(?::(\w+))?>\s*", line)
            if entry:
                name, base = entry.groups()
                file = "pyproject.toml" if base is None else f"bm_{name}.toml"
                found.append((name, os.path.join(root, "bm_" + (base or name), file)))
    return found


def options_of(metafile):
    with open(metafile, "rb") as file:
        return tomllib.load(file).get("tool", {}).get("pyperformance", {}).get("extra_opts", [])


class Worker:
    """Runs one task of one benchmark's script as pyperf's worker."""

    def __init__(self, environment, metafile):
        self.environment = environment
        script = os.path.join(os.path.dirname(metafile), "run_benchmark.py")
        with open(script) as file:
            self.starts_programs = "bench_command" in file.read()
        self.command = [script, *options_of(metafile), "--worker"]

    def run(self, program, options):
        """pyperf's JSON, or None where the script has no such task."""
        with tempfile.TemporaryDirectory() as folder:
            output = os.path.join(folder, "out.json")
            variables = dict(os.environ, VIRTUAL_ENV=self.environment, PYTHONHASHSEED="0")
            prelude = ["-c", SAME_PROGRAM, program] if self.starts_programs else []
            done = subprocess.run([program, *prelude, *self.command, *options, "-o", output], capture_output=True, text=True, env=variables, cwd=folder,
                                  timeout=TIME_LIMIT_S, stdin=subprocess.DEVNULL)
            if done.returncode != 0:
                raise Failed((done.stderr.strip() or f"status {done.returncode}").splitlines()[-1])
            if not os.path.exists(output):
                return None
            with open(output) as file:
                return json.load(file)


def values_of(result):
    return [value for run in result["benchmarks"][0]["runs"] for value in run.get("values", [])]


def metadata(result):
    return {**result.get("metadata", {}), **result["benchmarks"][0].get("metadata", {}), **result["benchmarks"][0]["runs"][0].get("metadata", {})}


def measure(worker, python, arguments):
    """For each of the script's tasks: (its name, stock's seconds, dynvm's, the ratio)."""
    for task in range(MAX_TASKS):
        chosen = ["--worker-task", str(task)]
        calibrated = worker.run(python, [*chosen, "--calibrate-loops", "--min-time", "0.05" if arguments.quick else "0.2"])
        if calibrated is None:
            return
        facts = metadata(calibrated)
        loops, value_s = max(((n, n * s) for run in calibrated["benchmarks"][0]["runs"] for n, s in run["warmups"]), key=lambda pair: pair[0])
        warm_ups = min(max(math.ceil(WARM_UP_S / value_s), 1), MAX_WARM_UPS)
        fixed = [*chosen, "-l", str(loops), "-w", str(warm_ups), "-n", "2" if arguments.quick else "4"]
        rounds = [[min(values_of(worker.run(program, fixed))) for program in (python, DYNVM)] for _ in range(arguments.rounds)]
        yield facts["name"], *map(min, zip(*rounds)), statistics.median(stock / ours for stock, ours in rounds)


def start_up(python, code, arguments):
    """[stock, dynvm] of (the least seconds, the least peak memory in KiB) that a program of this text takes."""
    measured = ([], [])
    for _ in range(5 if arguments.quick else 20):
        for side, program in enumerate((python, DYNVM)):
            variables = dict(os.environ, VIRTUAL_ENV=os.path.dirname(os.path.dirname(python)))
            script = ("import os, subprocess, sys, time; start = time.perf_counter(); child = subprocess.Popen(sys.argv[1:]);"
                      "_, status, usage = os.wait4(child.pid, 0); print(time.perf_counter() - start, usage.ru_maxrss, status)")
            done = subprocess.run([sys.executable, "-c", script, program, "-c", code], capture_output=True, text=True, env=variables)
            seconds, kib, status = done.stdout.split()
            if status != "0":
                raise Failed(f"{program} -c {code!r}: status {status}")
            measured[side].append((float(seconds), int(kib)))
    return [(min(s for s, _ in side), min(k for _, k in side)) for side in measured]


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def seconds(value):
    return f"{value * 1e3:.3f} ms" if value < 1 else f"{value:.3f} s"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="names of benchmarks, separated by commas")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--quick", action="store_true", help="shorter values: for a look, not for a record")
    parser.add_argument("--environment", default=None)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--markdown", metavar="FILE")
    arguments = parser.parse_args()

    version = subprocess.run([PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True, check=True).stdout.strip()
    environment = os.path.abspath(arguments.environment or os.path.join(ROOT, "build", "bench-python-" + version))
    python = make_environment(environment)
    wanted = set(arguments.only.split(",")) if arguments.only else None
    rows, left_out, broken = [], [], []
    for name, metafile in benchmarks(environment):
        if wanted is not None and name not in wanted or wanted is None and name in LEFT_OUT:
            continue
        try:
            for task, stock, ours, ratio in measure(Worker(environment, metafile), python, arguments):
                rows.append((task, stock, ours, ratio))
                print(f"{task:36} {seconds(stock):>12} {seconds(ours):>12} {ratio:6.2f}x", flush=True)
        except (Failed, subprocess.TimeoutExpired) as error:
            try:
                Worker(environment, metafile).run(python, ["--worker-task", "0", "-l", "1", "-w", "0", "-n", "1"])
                broken.append((name, str(error)))
            except (Failed, subprocess.TimeoutExpired):
                left_out.append((name, str(error)))
            print(f"{name:36} {error}", flush=True)
    mean = geometric_mean([ratio for *_, ratio in rows])
    print(f"{len(rows)} benchmarks, geometric mean {mean:.3f}x; left out, as they do not run under python: {', '.join(n for n, _ in left_out) or 'none'}")
    starts = {}
    if wanted is None:
        for code in ("pass", "import torch"):
            if code == "pass" or subprocess.run([PYTHON, "-c", code], capture_output=True).returncode == 0:
                starts[code] = start_up(PYTHON if code != "pass" else python, code, arguments)
                (stock_s, stock_kib), (ours_s, ours_kib) = starts[code]
                print(f"-c {code!r}: {seconds(stock_s)}, {seconds(ours_s)}: {ours_s / stock_s:.3f} of python's time; {ours_kib / stock_kib:.3f} of its peak memory")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"python": version, "benchmarks": [{"name": n, "python_s": a, "dynvm_s": b, "ratio": r} for n, a, b, r in rows], "geometric_mean": mean,
                       "left_out": left_out, "broken": broken, "start_up": starts}, file, indent=1)
    if arguments.markdown:
        with open(arguments.markdown, "w") as file:
            print("| benchmark | python | dynvm | times python's speed |\n|---|---|---|---|", file=file)
            for name, stock, ours, ratio in rows:
                print(f"| {name} | {seconds(stock)} | {seconds(ours)} | {ratio:.2f} |", file=file)
            print(f"| geometric mean of {len(rows)} | | | {mean:.3f} |", file=file)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
