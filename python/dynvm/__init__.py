"""dynvm runs Python programs that use PyTorch faster. `dynvm script.py` needs nothing of this package.

install() puts dynvm into an interpreter that already runs; `python -m dynvm script.py` is `dynvm script.py`. The other functions look at what dynvm does and
steer it; under plain Python they do nothing and give what their descriptions say.
Tests: tests/launcher/test_options.py, tests/launcher/test_heuristics.py.
"""

import ctypes
import json
import os
import sys

__all__ = ["heuristics", "install", "library_folder", "set_heuristics", "stats", "version"]

_library = None


def library_folder():
    """The folder of dynvm's shared libraries: that of the environment this package is installed in."""
    return os.path.join(sys.prefix, "lib", "dynvm")


def _library_name():
    return f"libdynvm-cp{sys.version_info[0]}{sys.version_info[1]}.so"


def _declare(library):
    library.dynvm_version.restype = ctypes.c_char_p
    library.dynvm_install.argtypes = [ctypes.c_char_p]
    library.dynvm_report.restype = ctypes.c_char_p
    library.dynvm_heuristics.restype = ctypes.c_char_p
    library.dynvm_set_heuristics.argtypes = [ctypes.c_char_p]
    return library


def _load():
    """The library, loaded where it was not; ImportError where there is none."""
    global _library
    if _running() is None:
        path = os.path.join(library_folder(), _library_name())
        if not os.path.exists(path):
            raise ImportError(f"dynvm was not built for Python {sys.version.split()[0]}: there is no {path}")
        _library = _declare(ctypes.PyDLL(path))
    return _library


def _running():
    """The library if this process has loaded it; None under plain Python."""
    global _library
    if _library is None:
        try:
            _library = _declare(ctypes.PyDLL(_library_name(), mode=os.RTLD_NOLOAD | os.RTLD_NOW))  # by its name among those that are loaded
        except OSError:
            return None
    return _library


def stats():
    """The report so far, a dict with the keys of --report; {} under plain Python. Operations and residual calls are counted with --report or --stats."""
    library = _running()
    return json.loads(library.dynvm_report()) if library is not None else {}


def heuristics(full=False):
    """The numbers that steer the JIT: {name: int} in the order of docs/heuristics.md; {} under plain Python.

    full: {name: row} with the keys value, default, least, greatest (int), unit, like (what LuaJIT or PyPy call it) and meaning (str).
    """
    library = _running()
    table = json.loads(library.dynvm_heuristics()) if library is not None else {}
    return table if full else {name: row["value"] for name, row in table.items()}


def set_heuristics(*files, **numbers):
    """Sets numbers that steer the JIT from now on: set_heuristics("mine.toml", hot_loop=2), those given by name last.

    Gives the numbers that it has changed as they were before, so that set_heuristics(**before) puts them back; {} under plain Python, where nothing is
    looked at. ValueError: no such name, a value outside of its bounds, a file that cannot be read or is wrong (with its line). TypeError: a value
    that is no int, a file that is no path to a .toml file. Nothing is set then. What was decided before stays as it is, traces with it.
    """
    library = _running()
    if library is None:
        return {}
    words = []
    for file in files:
        path = os.fspath(file)
        if not isinstance(path, str) or not path.endswith(".toml") or "," in path:
            raise TypeError(f"expected the path of a .toml file, without a comma, got {path!r}")
        words.append(path)
    for name, value in numbers.items():
        if type(value) is not int:
            raise TypeError(f"{name}: expected an int, got {type(value).__name__}")
        words.append(f"{name}={value}")
    before = heuristics()
    library.dynvm_set_heuristics(",".join(words).encode())
    return {name: before[name] for name, value in heuristics().items() if value != before[name]}


def version():
    """The line that `dynvm --version` prints."""
    return _load().dynvm_version().decode()


def install(*options):
    """Runs all further calls on dynvm. Options as on the command line: install("--stats", "--log=trace"). ValueError: a bad option."""
    _load().dynvm_install(" ".join(options).encode())
