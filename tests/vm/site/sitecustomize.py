"""Switches dynvm's evaluator on at interpreter start (tests only: the launcher does it for users)."""
import os
import sys

sys.path.insert(0, os.environ["DYNVM_VM_MODULE"])
try:
    import _dynvm_vm
finally:
    del sys.path[0]
_dynvm_vm.install()
