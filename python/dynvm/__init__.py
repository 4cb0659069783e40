"""dynvm runs Python programs that use PyTorch faster. `dynvm script.py` needs nothing of this package.

install() puts dynvm into an interpreter that already runs; `python -m dynvm script.py` is `dynvm script.py`. stats() gives the report so far.
Tests: tests/launcher/test_options.py.
"""

import ctypes
import json
import os
import sys

__all__ = ["install", "stats", "version", "library_folder"]

_library = None


def library_folder():
    """The folder of dynvm's shared libraries: that of the environment this package is installed in."""
    return os.path.join(sys.prefix, "lib", "dynvm")


def _library_name():
    return f"libdynvm-cp{sys.version_info[0]}{sys.version_info[1]}.so"


def _load():
    global _library
    if _library is None:
        path = os.path.join(library_folder(), _library_name())
        if not os.path.exists(path):
            raise ImportError(f"dynvm was not built for Python {sys.version.split()[0]}: there is no {path}")
        _library = ctypes.PyDLL(path)
        _library.dynvm_version.restype = ctypes.c_char_p
        _library.dynvm_install.argtypes = [ctypes.c_char_p]
    return _library


def stats():
    """The report so far, with the keys of --report; {} under plain Python. Operations and residual calls are counted with --report or --stats."""
    try:
        library = ctypes.PyDLL(_library_name(), mode=os.RTLD_NOLOAD | os.RTLD_NOW)  # by its name among those that are loaded
    except OSError:
        return {}
    library.dynvm_report.restype = ctypes.c_char_p
    return json.loads(library.dynvm_report())


def version():
    """The line that `dynvm --version` prints."""
    return _load().dynvm_version().decode()


def install(*options):
    """Runs all further calls on dynvm. Options as on the command line: install("--stats", "--log=trace")."""
    _load().dynvm_install(" ".join(options).encode())
