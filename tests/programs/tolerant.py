"""Compares two texts exactly but for floating-point numbers: python/dynvm/bisect/tolerant.py, from the source tree, whatever is installed.

Tests: tests/programs/test_tolerant.py.
"""

import importlib.util
import os

_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python", "dynvm", "bisect", "tolerant.py")
_spec = importlib.util.spec_from_file_location("dynvm_bisect_tolerant", _FILE)
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
difference, floats_agree, lines_agree = _module.difference, _module.floats_agree, _module.lines_agree
