"""Runs programs under CPython's evaluator and under dynvm's, by the extension module _dynvm_vm.

Purpose: shared by the tests of this folder. Inputs: DYNVM_VM_MODULE, the folder of _dynvm_vm; DYNVM_TEST_PYTHON.
Outputs: (exit status, standard output, standard error) of a run. Invariants: both sides have the same environment but for the
evaluator, so that all that can be seen must be equal.
"""
import os
import re
import subprocess
import sys

from compare import PATIENCE

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(FOLDER))
PYTHON = os.environ.get("DYNVM_TEST_PYTHON", os.path.join(ROOT, ".venv", "bin", "python"))
MODULE = os.environ.get("DYNVM_VM_MODULE", os.path.join(ROOT, "build", "vm"))
# What the environment says beyond "vm". DYNVM_VM_STRESS: loop limit, call limit, recorded instructions, rebuild frames. DYNVM_VM_NATIVE:
# calls and iterations before native runs are compiled, failed guards before one is given up.
STRESS = {"stress": {"DYNVM_VM_STRESS": "2,2,40,0"}, "rebuild": {"DYNVM_VM_STRESS": "2,2,60,1"}, "native": {"DYNVM_VM_NATIVE": "5,6,3"}}


def available():
    return any(name.startswith("_dynvm_vm") for name in os.listdir(MODULE)) if os.path.isdir(MODULE) else False


def run(arguments, mode, timeout=300, cwd=None):
    """mode: "stock", "vm" or a key of STRESS."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("DYNVM_VM_")}
    variables.update(PYTHONPATH=os.path.join(FOLDER, "site"), DYNVM_VM_MODULE=MODULE, PYTHONHASHSEED="0")
    if mode == "stock":
        variables["DYNVM_VM_OFF"] = "1"
    elif mode in STRESS:
        variables.update(STRESS[mode])
    done = subprocess.run([PYTHON, *arguments], env=variables, capture_output=True, text=True, timeout=timeout * PATIENCE, cwd=cwd,
                          stdin=subprocess.DEVNULL, errors="backslashreplace")
    return done.returncode, clean(done.stdout), clean(done.stderr)


def clean(text):
    return re.sub(r"\b0x[0-9a-f]{6,}", "0x...", text)
