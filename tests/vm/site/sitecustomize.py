"""Switches dynvm's evaluator on at interpreter start (tests only: the launcher does it for users).

DYNVM_VM_MODULE: folder of _dynvm_vm. DYNVM_VM_OFF: leave CPython's evaluator (the other side of a comparison).
DYNVM_VM_STRESS: "loop_limit,call_limit,length,rebuild" for _dynvm_vm.stress.
DYNVM_VM_NATIVE: "calls,loops,misses" for _dynvm_vm.install.
"""
import os
import sys

sys.path.insert(0, os.environ["DYNVM_VM_MODULE"])
try:
    import _dynvm_vm
finally:
    del sys.path[0]
if "DYNVM_VM_OFF" not in os.environ:
    _dynvm_vm.install(*map(int, filter(None, os.environ.get("DYNVM_VM_NATIVE", "").split(","))))
    if "DYNVM_VM_STRESS" in os.environ:
        _dynvm_vm.stress(*map(int, os.environ["DYNVM_VM_STRESS"].split(",")))
