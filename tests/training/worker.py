"""Runs training programs one after the other in one process and tells what each showed.

Usage:   [python|dynvm] worker.py DESCRIPTOR      (an inherited one to write results to)
Inputs:  lines of JSON on standard input: {"text": the program, "noise": null or a number, "alone": whether it runs in a child of its own}.
Outputs: for each a line of JSON: {"output": what it printed, the exception that ended it and its warnings with it}.
Invariants: programs get globals of their own and the same state of torch; what they leave behind besides is theirs to share. With "noise" each
         inexact operation's results get an error of about a rounding step (noise.py); nothing else is different then.
Tests:   test_training.py.
"""

import contextlib
import gc
import io
import json
import os
import random
import sys
import warnings

import numpy
import torch
import torch._dynamo  # noqa: F401  torch.optim imports it at its first use
import torch.nn.utils.prune  # noqa: F401
import torch.utils.checkpoint  # noqa: F401
import torch.utils.data  # noqa: F401

NAME = "<program>"


def show_exception(error):
    """Its type, text and frames, without those of this file and of noise.py."""
    print("ended by", type(error).__name__, str(error)[:500])
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename != __file__ and "noise.py" not in code.co_filename and "_python_dispatch" not in code.co_filename:
            print("  at", os.path.basename(code.co_filename), trace.tb_lineno, code.co_name)
        trace = trace.tb_next


def run_one(text, noise):
    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)
    torch.manual_seed(0)
    random.seed(0)
    numpy.random.seed(0)
    output, seen = io.StringIO(), set()
    context = contextlib.nullcontext()
    if noise is not None:
        from noise import Noise
        context = Noise(noise)

    def note(message, category, *rest, **more):
        seen.add(f"warning {category.__name__}: {str(message)[:200]}")

    warnings.resetwarnings()
    warnings.simplefilter("always")
    warnings.showwarning = note
    names = {"__name__": "__main__", "__builtins__": __builtins__}
    with contextlib.redirect_stdout(output):
        try:
            code = compile(text, NAME, "exec", dont_inherit=True)
            with context:
                exec(code, names)
        except BaseException as error:
            show_exception(error)
            del error
    # What a worker has been warned of once, it is not again: C++ code of torch warns once a process.
    warned = [line for line in sorted(seen) if "Triggered internally" not in line]
    names.clear()
    gc.collect()
    return output.getvalue() + "".join(line + "\n" for line in warned)


def main():
    results = os.fdopen(int(sys.argv[1]), "w", encoding="utf-8", errors="backslashreplace")
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        if request["alone"]:
            child = os.fork()
            if child:
                status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                if status:
                    results.write(json.dumps({"status": status}) + "\n")
                    results.flush()
                continue
        results.write(json.dumps({"output": run_one(request["text"], request["noise"])}) + "\n")
        results.flush()
        if request["alone"]:
            os._exit(0)


if __name__ == "__main__":
    main()
