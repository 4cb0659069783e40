"""Runs training programs in a process that stays (worker.py), under python or under dynvm in one of its modes.

Inputs: programs' texts. Outputs: what each showed. Invariants: a worker that dies or takes too long is ended, the program is named, and the next one
  gets a new worker; each worker leads its own process group, which ends with it.
Tests: test_training.py.
"""

import json
import os
import select
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from compare import DYNVM, PATIENCE, PYTHON, environment  # noqa: E402
from process import describe, end_group, live  # noqa: E402

STRESS = "DYNVM_STRESS"
# mode -> (options, variables)
MODES = {"plain": ((), {}), "hot": (("--hot=2",), {}), "exit": (("--hot=2",), {STRESS: "exit"}), "check": (("--hot=2",), {STRESS: "check"})}
# What runs under python itself. perturbed: memory that nothing has written holds other bytes, which what a program shows must not depend on.
PYTHONS = {"python": {}, "perturbed": {"MALLOC_PERTURB_": "170"}}
SECONDS = 20 * PATIENCE      # of processor time for a program
WAITS = 12                   # times as many seconds on the clock
PROGRAMS = 150               # of a worker before it is made anew
TAIL = 3000


class Shown:
    """What a program showed: its output, or how its worker ended. before: the programs that the worker had run."""

    def __init__(self, output, end, before):
        self.output, self.end, self.before = output, end, before


class Side:
    """mode: one of PYTHONS or of MODES; variables: more of the environment."""

    def __init__(self, mode, patched=None, variables=None):
        self.mode, self.process, self.before, self.variables = mode, None, [], variables or {}
        self.patched = patched  # a file that is run in the worker first: tests seed differences so
        self.reports = []

    def start(self):
        self.folder = tempfile.TemporaryDirectory(prefix="dynvm-training-")
        if self.mode in PYTHONS:
            command, variables = [PYTHON], PYTHONS[self.mode]
        else:
            options, variables = MODES[self.mode]
            command = [DYNVM, "--report", os.path.join(self.folder.name, "report.json"), *options]
        read, write = os.pipe()
        self.words = open(os.path.join(self.folder.name, "words"), "w+b")
        self.process = subprocess.Popen([*command, *([self.patched] if self.patched else []), os.path.join(HERE, "worker.py"), str(write)], stdin=subprocess.PIPE,
                                        stdout=self.words, stderr=self.words, pass_fds=[write], start_new_session=True, cwd=self.folder.name,
                                        env=environment({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONHASHSEED": "0",
                                                         "CUDA_VISIBLE_DEVICES": "",  # where torch sees a GPU, its autograd refuses to run in forked children
                                                         **variables, **self.variables}))
        os.close(write)
        live.add(self.process)
        self.results, self.rest, self.before = read, b"", []

    def close(self, kill=False):
        """Ends the worker; its report is kept."""
        if self.process is None:
            return None
        if not kill:
            try:
                self.process.stdin.close()
                self.process.wait(30)
            except (OSError, subprocess.TimeoutExpired):
                pass
        status = self.process.poll()
        end_group(self.process)
        live.discard(self.process)
        os.close(self.results)
        try:
            with open(os.path.join(self.folder.name, "report.json"), encoding="utf-8") as file:
                self.reports.append(json.load(file))
        except (OSError, ValueError):
            pass
        self.words.seek(0, os.SEEK_END)
        self.words.seek(max(0, self.words.tell() - TAIL))
        tail = self.words.read().decode(errors="backslashreplace")
        self.words.close()
        self.folder.cleanup()
        self.process = None
        return f"{describe(status) if status is not None else 'killed'}\n{tail}"

    def line(self, seconds):
        """The next result, "" when the worker ended, None when its time was over."""
        begun, used = time.monotonic(), self.processor_time()
        while b"\n" not in self.rest:
            if not select.select([self.results], [], [], 2)[0]:
                if self.processor_time() - used > seconds or time.monotonic() - begun > WAITS * seconds:
                    return None
                continue
            piece = os.read(self.results, 1 << 20)
            if not piece:
                return ""
            self.rest += piece
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()

    def processor_time(self):
        """Seconds that the worker and its children that have ended have used: how busy the machine is must not decide."""
        try:
            with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
                fields = file.read().rpartition(")")[2].split()
            return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            return 0.0

    def run(self, text, noise=None, alone=False):
        """Shown. alone: in a process that has run nothing before."""
        if self.process is None or (len(self.before) >= PROGRAMS and not alone):
            self.close()
            self.start()
        first = not self.before
        before = list(self.before)
        if noise is None and not alone:
            self.before.append(text)
        try:
            self.process.stdin.write(json.dumps({"text": text, "noise": noise, "alone": alone}).encode() + b"\n")
            self.process.stdin.flush()
            line = self.line(SECONDS + (60 if first else 0))
        except BrokenPipeError:
            line = ""
        if line is None:
            self.close(kill=True)
            return Shown("", "time", before)
        if not line:
            self.process.wait()
            return Shown("", "crash: " + self.close(kill=True), before)
        result = json.loads(line)
        if "status" in result:
            return Shown("", f"crash: {describe(result['status'])}", before)
        return Shown(result["output"], None, before)
