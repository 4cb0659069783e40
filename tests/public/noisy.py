"""Runs a program whose inexact operations have an error of about one rounding step: what rounding alone does to what it prints.

Usage:   python noisy.py SEED SCRIPT [ARGUMENT ...]; seed 0: no error, which shows whether the mode changes anything else.
Inputs:  tests/training/noise.py's mode. Outputs: the program's.
Invariants: the program sees its own sys.argv, sys.path and __main__; torch's generators stay as they are.
Tests:   test_public.py.
"""

import os
import runpy
import sys

seed, script = int(sys.argv[1]), sys.argv[2]
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "training"))
from noise import Noise  # noqa: E402

sys.path.pop()
sys.argv[:] = sys.argv[2:]
sys.path[0] = os.path.dirname(os.path.abspath(script))
with Noise(seed):
    runpy.run_path(script, run_name="__main__")
