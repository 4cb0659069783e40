"""The VM library of this process, and its functions' types. Everything else of the package goes through running() and load()."""

import ctypes
import os
import sys

_library = None


def library_folder():
    """The folder of dynvm's shared libraries: that of the environment this package is installed in."""
    return os.path.join(sys.prefix, "lib", "dynvm")


def _library_name():
    return f"libdynvm-cp{sys.version_info[0]}{sys.version_info[1]}.so"


def _declare(library):
    text, number, object_ = ctypes.c_char_p, ctypes.c_int, ctypes.py_object
    for name, result, arguments in (
        ("version", text, []), ("install", number, [text]), ("report", text, []), ("heuristics", text, []), ("set_heuristics", number, [text]),
        ("module", object_, []), ("traces", text, []), ("trace", text, [number, text]), ("keep_recorded", None, [number]), ("count", None, [number]),
        ("replay", text, [text, text]), ("switches", text, []), ("check_heuristics", number, [text]), ("reset", None, []), ("observe", number, [text, object_]), ("deliver", None, []),
    ):
        function = getattr(library, "dynvm_" + name)
        function.restype, function.argtypes = result, arguments
    return library


def load():
    """The library, loaded where it was not; ImportError where there is none."""
    global _library
    if running() is None:
        path = os.path.join(library_folder(), _library_name())
        if not os.path.exists(path):
            raise ImportError(f"dynvm was not built for Python {sys.version.split()[0]}: there is no {path}")
        _library = _declare(ctypes.PyDLL(path))
    return _library


def launcher():
    """The program `dynvm` that this process's library belongs to; that of the environment where there is none loaded."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            if path.endswith("/lib/dynvm/" + _library_name()):
                return "/" + path[:-len("/lib/dynvm/" + _library_name())] + "/bin/dynvm"
    return os.path.join(sys.prefix, "bin", "dynvm")


def running():
    """The library if this process has loaded it; None under plain Python."""
    global _library
    if _library is None:
        try:
            _library = _declare(ctypes.PyDLL(_library_name(), mode=os.RTLD_NOLOAD | os.RTLD_NOW))  # by its name among those that are loaded
        except OSError:
            return None
    return _library
