"""Runs scripts under python or dynvm and gathers what each one showed.

Purpose: the suites of small scripts (tests/programs, tests/traces) run hundreds of them; most share a process that has
  imported torch and forks for each (driver.py), a few need a process of their own.
Inputs: scripts' paths. Outputs: a Run for each: exit status, output, and dynvm's report.
Invariants: scripts run with one thread (OMP_NUM_THREADS=1), so that rounding does not depend on the machine. A script whose
  driver died has status "lost" and the driver's last words as stderr: no script is dropped.
Tests: the suites that use it.
"""

import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from compare import DYNVM, PATIENCE, PYTHON, environment, run  # noqa: E402,F401

DRIVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "driver.py")
JOBS = 2
# Aborts that no script should cause: a part of dynvm breaks its own rules, or has no name for what happened.
DEFECTS = ("", "unknown", "pass_failed", "compile_failed")
THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Run:
    """What one script showed. status: exit code, negative for a signal, or "time limit" or "lost"."""

    def __init__(self, status, stdout, stderr, report=None):
        self.status, self.stdout, self.stderr, self.report = status, stdout, stderr, report


def _text(path):
    try:
        with open(path, encoding="utf-8", errors="backslashreplace") as file:
            return file.read()
    except OSError:
        return ""


def read_report(path):
    """The report's object, or None where it is absent or damaged."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def _command(mode, options, folder):
    if mode == "python":
        return [PYTHON]
    report = [] if mode == "timed" else ["--report", os.path.join(folder, "report.json")]  # which counts operations: each takes longer
    return [DYNVM, *report, *options]


def _run_part(mode, scripts, options, env, seconds):
    """The Runs of scripts that share one driver."""
    folder = tempfile.mkdtemp(prefix="dynvm-session-")
    seconds *= PATIENCE
    try:
        with open(os.path.join(folder, "manifest"), "w", encoding="utf-8") as file:
            json.dump({"scripts": scripts, "folder": folder, "seconds": seconds}, file)
        command = [*_command(mode, options, folder), DRIVER, os.path.join(folder, "manifest")]
        # Into files: a child that lives on would keep a pipe open.
        with open(os.path.join(folder, "driver.txt"), "wb") as words:
            try:
                status = subprocess.run(command, env=environment({**THREADS, **env}), stdin=subprocess.DEVNULL, stdout=words,
                                        stderr=words, timeout=60 + seconds * len(scripts)).returncode
            except subprocess.TimeoutExpired:
                status = "time limit"
        done = {}
        for line in _text(os.path.join(folder, "done")).splitlines():
            entry = json.loads(line)
            done[entry["index"]] = entry
        last_words = _text(os.path.join(folder, "driver.txt"))[-3000:]
        runs = []
        for index in range(len(scripts)):
            entry = done.get(index)
            out, err = _text(os.path.join(folder, f"{index}.out")), _text(os.path.join(folder, f"{index}.err"))
            if entry is None:
                runs.append(Run("lost", out, f"{err}\nthe driver ended with status {status}:\n{last_words}"))
            else:
                end = "time limit" if entry["status"] is None else entry["status"]
                runs.append(Run(end, out, err, read_report(os.path.join(folder, f"report.{entry['pid']}.json"))))
        return runs
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def defects(aborts):
    """Complaints about a report's aborts."""
    return [f"{count} aborts {name!r}" for name, count in aborts.items() if name in DEFECTS]


def run_shared(mode, scripts, *, options=(), env=None, seconds=60, jobs=JOBS):
    """The Runs of scripts, mode "python", "dynvm" or "timed" (dynvm without a report), in `jobs` drivers side by side."""
    parts = [scripts[k::jobs] for k in range(jobs)]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(lambda part: _run_part(mode, part, options, env or {}, seconds) if part else [], parts))
    runs = [None] * len(scripts)
    for k, part in enumerate(results):
        runs[k::jobs] = part
    return runs


def run_alone(mode, script, *, args=(), options=(), env=None, seconds=120, interrupt_after=None):
    """The Run of one script in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="dynvm-session-") as folder:
        outcome = run(_command(mode, options, folder), [script, *args], env={**THREADS, **(env or {})}, timeout=seconds,
                      interrupt_after=interrupt_after)
        report = read_report(os.path.join(folder, "report.json")) if mode == "dynvm" else None
        return Run(outcome.status, outcome.stdout, outcome.stderr, report)
