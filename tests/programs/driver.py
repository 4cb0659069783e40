"""Runs many scripts in children of one process, so that importing torch is paid once.

Usage:   [python|dynvm] driver.py MANIFEST.json
Inputs:  a JSON object: "scripts" (paths), "folder" (for outputs), "seconds" (a script's time limit).
Outputs: for the script number N: folder/N.out, folder/N.err (what it wrote) and a line in folder/done: a JSON object with
         "index", "status" (as subprocess gives it: negative for a signal; null: time limit) and "pid". Under dynvm with
         --report, the child writes its own report, as each forked child does.
Invariants: a script sees a fresh __main__, its own sys.argv, and ends as scripts do: uncaught exceptions are printed by
         sys.excepthook with this file's frames taken out, exit handlers run. Modules that are slow to import are imported
         before, and are all that scripts share.
Tests:   the suites that use it: tests/programs/run.py, tests/traces/run.py.
"""

import gc
import json
import os
import signal
import sys
import time
import traceback
import types


def prepare_child(script, folder, index):
    """In the child: output goes to files, and the process looks as if it had been started for this script."""
    for descriptor, suffix in ((1, "out"), (2, "err")):
        file = os.open(os.path.join(folder, f"{index}.{suffix}"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, descriptor)
        os.close(file)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv[:] = [script]
    sys.path[0] = os.path.dirname(script)
    module = types.ModuleType("__main__")
    module.__file__ = script
    module.__builtins__ = __builtins__
    sys.modules["__main__"] = module

    def print_exception(kind, value, trace):
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        traceback.print_exception(kind, value, trace)

    sys.excepthook = print_exception
    with open(script, encoding="utf-8") as file:
        return compile(file.read(), script, "exec", dont_inherit=True), module.__dict__


def wait(child, seconds):
    """The child's exit status as subprocess gives it; None when its time was over and it was killed."""
    deadline = time.monotonic() + seconds
    pause = 0.002
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


def main():
    """The (code, globals) of the script to run, in its child; None in the parent, when all are done."""
    with open(sys.argv[1], encoding="utf-8") as file:
        manifest = json.load(file)
    folder = manifest["folder"]
    with open(os.path.join(folder, "done"), "a", encoding="utf-8") as done:
        for index, script in enumerate(manifest["scripts"]):
            sys.stdout.flush()
            sys.stderr.flush()
            child = os.fork()
            if child == 0:
                return prepare_child(script, folder, index)
            done.write(json.dumps({"index": index, "status": wait(child, manifest["seconds"]), "pid": child}) + "\n")
            done.flush()
    return None


import torch  # noqa: E402
import torch._dynamo  # noqa: E402,F401  torch.optim imports it at its first use
import torch.utils.checkpoint  # noqa: E402,F401
import torch.utils.data  # noqa: E402,F401

# Children would copy most of the heap when they collect garbage at their end: a second each.
gc.collect()
gc.freeze()
work = main()
if work is not None:
    exec(*work)
