"""dynvm.zone(): names for parts of a script, with counts and times in the report.

A zone is two calls of C functions that traces know, so code in it is traced as without.
"""

import functools

from dynvm import _library


def _nothing(argument):
    return -1  # no zone


_number = _enter = _leave = _nothing


def bind():
    """Zones count from now on, if dynvm runs. Those that were made before do not."""
    global _number, _enter, _leave
    if _library.running() is not None:
        module = _library.running().dynvm_module()
        _number, _enter, _leave = module.zone_number, module.zone_enter, module.zone_leave


bind()


class zone:
    """Labels a part of the script: `with dynvm.zone("load"): ...`, or a decorator, `@dynvm.zone("load")`.

    name: str; TypeError otherwise. stats()["zones"] and --report have for each name count (int: times that it was entered), ms and own_ms (float:
    milliseconds of the clock in it, and without the zones inside of it); --stats prints them. Zones may be nested, also in themselves, and one object may be
    used again and in several threads. In compiled code, operations that were fused count where their kernel runs. Under plain Python nothing happens.
    """

    __slots__ = ("name", "_number")

    def __init__(self, name):
        if not isinstance(name, str):
            raise TypeError(f"expected the name of a zone, got {type(name).__name__}")
        self.name = name
        self._number = _number(name)

    def __enter__(self):
        _enter(self._number)
        return self

    def __exit__(self, *_):
        _leave(self._number)

    def __call__(self, function):
        """function, with this zone around each of its calls."""
        @functools.wraps(function)
        def inside(*args, **kwargs):
            _enter(self._number)
            try:
                return function(*args, **kwargs)
            finally:
                _leave(self._number)
        return inside

    def __repr__(self):
        return f"dynvm.zone({self.name!r})"
