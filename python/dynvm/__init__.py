"""dynvm runs Python programs that use PyTorch faster. `dynvm script.py` needs nothing of this package.

install() puts dynvm into an interpreter that already runs; `python -m dynvm script.py` is `dynvm script.py`. The other functions look at what dynvm does and
steer it; under plain Python they do nothing and give what their descriptions say.
Tests: tests/launcher/test_options.py, tests/launcher/test_heuristics.py, tests/inspect/.
"""

import json
import os

from dynvm._events import on
from dynvm._explain import Explanation, explain
from dynvm._library import library_folder, load as _load, running as _running
from dynvm._traces import Exit, Kernel, Trace, traces
from dynvm._zones import bind as _bind_zones, zone

__all__ = ["Exit", "Explanation", "Kernel", "Trace", "explain", "heuristics", "install", "library_folder", "on", "reset", "set_heuristics", "stats", "traces",
           "version", "zone"]

if _running() is not None:
    _running().dynvm_keep_recorded(1)  # for traces()


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


def reset():
    """Drops all traces, what was learnt for them, counters and penalties, as if the script had just begun. Gives None; nothing under plain Python.

    May be called anywhere. A trace that runs is left after its iteration; in the middle of a recording this takes effect when that is over. What stats()
    counts, zones with it, stays; so do numbers that were set, and traces on disk, which this process does not read again where it has asked for them.
    """
    library = _running()
    if library is not None:
        library.dynvm_reset()


def version():
    """The line that `dynvm --version` prints."""
    return _load().dynvm_version().decode()


def install(*options):
    """Runs all further calls on dynvm. Options as on the command line: install("--stats", "--log=trace"). ValueError: a bad option."""
    library = _load()
    library.dynvm_install(" ".join(options).encode())
    library.dynvm_keep_recorded(1)
    _bind_zones()
