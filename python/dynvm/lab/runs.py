"""One run of the script under one setting, in a process of its own, and what is measured of it.

Measures (MEASURES), each a number, or None where a run has none:

wall_s        time from the start of the process to its end, measured from outside.
steady_s      time to steady state of the script's hottest loop: from its first arrival until the last of its traces was there.
iteration_us  mean time of an iteration of that loop after that, with all that the script does between them, until the loop was left for the last time.
compile_ms    time spent on recording and on compiling traces.
memory_mib    peak of resident memory, as the kernel counts it for the process and what it has waited for.
exits, traces side exits taken; traces made.

The hottest loop is chosen once for all settings (Hottest): the one whose traces have run for the longest time in the first run that has one, which is that
of the default where this makes traces. A setting under which it has no trace has neither steady_s nor iteration_us. Lines `dynvm-lab: NAME VALUE` on the
script's standard output are measures of its own; of several with one name the last counts.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from dynvm import _library

MEASURES = {"wall_s": "total time [s]", "steady_s": "time to steady state [s]", "iteration_us": "time per iteration [us]", "compile_ms": "recording and compiling [ms]",
            "memory_mib": "peak memory [MiB]", "exits": "side exits", "traces": "traces"}
_OWN = re.compile(rb"^dynvm-lab: +(\S+) +(\S+)\s*$", re.M)


class Hottest:
    """The loop that is measured; place: (file, line, function), None as long as no run has had a trace."""

    def __init__(self):
        self.place = None

    def choose(self, report):
        times = {}
        for trace in report["traces"]:
            place = (trace["file"], trace["line"], trace["function"])
            times[place] = times.get(place, 0) + trace["compiled_ms"]
        loops = {_place(loop) for loop in report["loops"]}
        times = {place: ms for place, ms in times.items() if place in loops}
        if self.place is None and times:
            self.place = max(times, key=times.get)

    def __str__(self):
        return "none has a trace" if self.place is None else f"{self.place[0]}:{self.place[1]} {self.place[2]}"


def _place(loop):
    return (loop["file"], loop["line"], loop["function"])


def loop_measures(report, place):
    """(steady_s, iteration_us) of the loop at `place`."""
    loop = next((loop for loop in report["loops"] if _place(loop) == place), None)
    if loop is None:
        return None, None
    steady = (loop["settled_ms"] - loop["began_ms"]) / 1000
    rounds = loop["iterations"] - loop["settled_iterations"]
    return steady, (loop["last_ms"] - loop["settled_ms"]) * 1000 / rounds if rounds >= 2 and loop["last_ms"] > loop["settled_ms"] else None


def own_measures(output):
    """Those of lines `dynvm-lab: NAME VALUE`. ValueError: a VALUE that is no number, or a NAME that is one of MEASURES."""
    measures = {}
    for name, value in _OWN.findall(output):
        name = name.decode(errors="replace")
        if name in MEASURES:
            raise ValueError(f"the script measures {name}, which is a name of the laboratory's")
        try:
            measures[name] = float(value)
        except ValueError:
            raise ValueError(f"the script's measure {name} is no number: {value.decode(errors='replace')}") from None
    return measures


class Run:
    """measures: {name: number or None}; failure: why there are none ("" where there are); policy: the report's counts of a policy's decisions."""

    def __init__(self, measures=None, failure="", policy=None):
        self.measures, self.failure, self.policy = measures or {}, failure, policy or {}


def _wait(process, seconds):
    """(status, usage) as os.wait4 gives them; the process is killed where it takes longer."""
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
    finally:
        timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage


def run(setting, script, arguments, hottest, timeout):
    """Runs the script, and gives a Run. Its standard output is only looked through; its errors are shown where it fails. No traces are kept on disk."""
    with tempfile.TemporaryDirectory(prefix="dynvm-lab-") as folder:
        report_file = os.path.join(folder, "report.json")
        command = [_library.launcher(), *setting.options(), "--cache=off", f"--report={report_file}", script, *arguments]
        with open(os.path.join(folder, "out"), "w+b") as out, open(os.path.join(folder, "err"), "w+b") as err:
            start = time.perf_counter()
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
            try:
                status, usage = _wait(process, timeout)
            except BaseException:  # Ctrl-C: no run goes on behind
                process.kill()
                raise
            wall = time.perf_counter() - start
            out.seek(0)
            err.seek(0)
            output, errors = out.read(), err.read().decode(errors="replace")
        last = (errors.strip().splitlines() or [""])[-1]
        if status == -signal.SIGKILL and wall >= timeout:
            return Run(failure=f"it took longer than {timeout:g} s")
        if status != 0:
            return Run(failure=f"exit status {status}: {last}")
        try:
            with open(report_file, encoding="utf-8") as file:
                report = json.load(file)
        except FileNotFoundError:
            return Run(failure="it ended without a report (os._exit?)")
        if "is asked no more" in errors:
            print(errors, end="", file=sys.stderr)
        hottest.choose(report)
        steady, iteration = loop_measures(report, hottest.place)
        measures = {"wall_s": wall, "steady_s": steady, "iteration_us": iteration, "compile_ms": report["record_ms"] + report["compile_ms"],
                    "memory_mib": usage.ru_maxrss / 1024, "exits": report["side_exits"], "traces": len(report["traces"])}
        try:
            return Run({**measures, **own_measures(output)}, policy=report["policy"])
        except ValueError as error:
            return Run(failure=str(error))
