"""Runs tests in a process of its own, under python or under dynvm, by a worker that tells of each, and reads what became of them.

Inputs: a Side (the program, the worker, the options of the run), the name of what is run: a module, a package. Outputs: a Run.
Invariants: the process works in a folder of its own that is removed afterwards, is the leader of its process group, and the
  whole group ends with it. Both sides get the same environment, but for the program.
Tests: tests/cpython/test_runner.py.
"""

import dataclasses
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

from compare import environment

LIB = os.path.dirname(os.path.abspath(__file__))
SHARED = [os.path.join(LIB, name) for name in ("events.py", "units.py")]  # what workers import
TAIL = 3000  # characters of standard error that are kept
STUCK = 3    # tests of a module that may not come to an end
live = set()  # processes that run: whoever ends this one early ends their groups


@dataclasses.dataclass
class Run:
    """What one process showed. tests: id -> [outcome, seconds, detail]; outcomes are the worker's, and `unfinished`."""
    tests: dict
    finished: bool           # all tests have run
    ended: bool              # and the process ended with status 0
    why: str                 # how the process ended, and the end of standard error, when not
    seconds: float
    traced: bool             # tracing or profiling was switched on
    handovers: int | None    # of dynvm's report; None: no report
    compiled: int = 0        # tensor operations that ran in traces
    operations: int = 0      # all of them

    def to_json(self):
        return dataclasses.asdict(self)


@dataclasses.dataclass
class Side:
    """A program to run tests with. report: it takes dynvm's --report."""
    program: str
    report: bool
    worker: str              # started with a file for its events, the name of what to run, and its options as JSON
    options: dict            # of the worker's, besides "only", "without" and "limit"
    limit: float = 600.0     # seconds for a module
    without: tuple = ()      # tests that are not run
    variables: dict = dataclasses.field(default_factory=dict)  # of the environment
    switches: tuple = ()     # the program's own options
    tree: str | None = None  # a folder of which the process gets a copy to work in; None: an empty one

    def key(self):
        """Names results that may be kept: they belong to one interpreter, one worker and one set of options."""
        workers = b""
        for path in (self.worker, *SHARED):
            with open(path, "rb") as file:
                workers += file.read()
        about = [subprocess.run([self.program, "-c", "import sys; print(sys.version, sys.prefix, sys.base_prefix)"],
                                capture_output=True, text=True, check=True, env=environment()).stdout,
                 self.options]
        return hashlib.sha256(workers + json.dumps(about).encode()).hexdigest()[:16]

    def run(self, module, only=None, without=()):
        """The Run of a module, or of some of its tests. without: tests that are not run either."""
        folder = tempfile.mkdtemp(prefix="dynvm-test-")
        try:
            return self.run_in(folder, module, only, without)
        finally:
            writable(folder)
            shutil.rmtree(folder, ignore_errors=True)

    def run_through(self, module):
        """The Run of a whole module without the tests that do not come to an end, which are `unfinished` in it: those behind them run too."""
        stuck = {}
        while True:
            run = self.run(module, without=tuple(stuck))
            more = {name: test for name, test in run.tests.items() if test[0] == "unfinished" and name not in stuck}
            run.tests.update(stuck)
            if run.finished or not more or len(stuck) >= STUCK:
                return run
            stuck.update(more)

    def run_in(self, folder, module, only, without):
        work = os.path.join(folder, "work")
        if self.tree is None:
            os.mkdir(work)
        else:
            shutil.copytree(self.tree, work, symlinks=True)
        events, report = os.path.join(folder, "events"), os.path.join(folder, "report.json")
        temporary = os.path.join(folder, "tmp")
        os.mkdir(temporary)
        options = {**self.options, "only": only, "without": [*self.without, *without], "limit": self.limit}
        command = [self.program, *(["--report", report] if self.report else []), *self.switches, "-u", self.worker, events, module,
                   json.dumps(options)]
        # Variables of Python's would reach the tests' own child processes.
        unset = {name: None for name in os.environ if name.startswith("PYTHON")}
        variables = environment({**unset, "TMPDIR": temporary, "TEMP": temporary, "TMP": temporary, "PYTHONHASHSEED": "0",
                                 "OMP_NUM_THREADS": "1", **self.variables})
        start = time.monotonic()
        with open(os.path.join(folder, "output"), "w+b") as output:
            process = subprocess.Popen(command, cwd=work, env=variables, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=usual_signals)
            late = False
            live.add(process)
            try:
                process.wait(self.limit + 20)  # the worker ends itself at the limit, and shows where it stood
            except subprocess.TimeoutExpired:
                late = True
            end_group(process)
            live.discard(process)
            output.seek(0, os.SEEK_END)
            output.seek(max(0, output.tell() - TAIL))
            tail = output.read().decode(errors="backslashreplace")
        run = read_events(events)
        run.seconds = round(time.monotonic() - start, 2)
        run.ended = run.finished and process.returncode == 0
        if not run.ended:
            late = late or run.seconds > self.limit
            status = f"time limit of {self.limit:.0f} s" if late else describe(process.returncode)
            run.why = f"{status}\n{tail}"
        if self.report and os.path.exists(report):
            with open(report, encoding="utf-8") as file:
                told = json.load(file)
            run.handovers, run.compiled, run.operations = (told[key] for key in ("handovers", "tensor_ops_compiled", "tensor_ops_total"))
        return run


def usual_signals():
    """A job in a shell's background has signals ignored that tests send to themselves."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def writable(folder):
    """Tests leave folders that cannot be removed as they are."""
    for path, folders, _ in os.walk(folder):
        for name in folders:
            try:
                os.chmod(os.path.join(path, name), 0o700)
            except OSError:
                pass


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def describe(status):
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"


def read_events(path):
    run = Run({}, False, False, "", 0.0, False, None)
    begun = None
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError:
        lines = []
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:  # cut off in the middle
            continue
        if "start" in event:
            begun = event["start"]
        elif "id" in event:
            run.tests[event["id"]] = [event["outcome"], event["seconds"], event["detail"]]
            begun = None
        elif "traced" in event:
            run.traced = True
        elif "end" in event:
            run.finished = True
    if begun is not None:
        run.tests[begun] = ["unfinished", 0, ""]
    return run


class Kept:
    """Results of a side that are kept in a folder, so that python's are computed once for each version."""

    def __init__(self, side, folder):
        self.side = side
        self.folder = os.path.join(folder, side.key())
        os.makedirs(self.folder, exist_ok=True)

    def file(self, module):
        return os.path.join(self.folder, module + ".json")

    def load(self, module):
        try:
            with open(self.file(module), encoding="utf-8") as file:
                return Run(**json.load(file))
        except (OSError, ValueError, TypeError):
            return None

    def run(self, module):
        run = self.load(module)
        if run is None:
            run = self.side.run_through(module)
            self.store(module, run)
        return run

    def store(self, module, run):
        part = f"{self.file(module)}.{os.getpid()}"
        with open(part, "w", encoding="utf-8") as file:
            json.dump(run.to_json(), file)
        os.replace(part, self.file(module))
