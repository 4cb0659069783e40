"""dynvm.on(): Python callbacks for what the JIT does."""

import atexit
import json

from dynvm import _library

_handlers = {}  # event -> [Handle], in the order in which they were made
_registered = False


class Handle:
    """What on() gives: remove() ends the calls. Also a context manager that does so at its end."""

    def __init__(self, event, callback):
        self.event, self.callback = event, callback

    def remove(self):
        """No further calls; once more does nothing. Events that are still queued are not delivered to it."""
        handles = _handlers.get(self.event, [])
        if self in handles:
            handles.remove(self)
            if not handles:
                del _handlers[self.event]
            library = _library.running()
            if library is not None:
                library.dynvm_observe(",".join(_handlers).encode(), _deliver)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


def _deliver(text):
    for event in json.loads(text):
        for handle in list(_handlers.get(event["event"], ())):
            try:
                handle.callback(event)
            except Exception as error:  # the script is not what has gone wrong
                _library.running().dynvm_module().unraisable(error, handle.callback)


def flush():
    """Delivers now what is queued, where that may be."""
    library = _library.running()
    if library is not None and _handlers:
        library.dynvm_deliver()


def on(event, callback):
    """Calls callback(dict) for each event of this kind from now on; gives a Handle whose remove() ends that.

    event: a category of --log: "trace" (recordings, traces made and dropped), "exit", "abort", "guard", "compile", "cache". The dict has event (str), text
    (str: the log's line), time (float: seconds, as time.monotonic()) and, where they are known, what (str: "recording", "finished", "dropped", "left",
    "given up" ...), trace (int: an id), file (str), line (int), reason (str: an abort's name, a guard's operation), detail (str), times (int), ms (float:
    milliseconds) and lost (int: events dropped before this one, as more came than are queued).

    Callbacks run later, in the main thread, in the order of the events: never while a trace runs there or something is recorded, but no later than at the
    end of the script. What they do is not traced. An exception in one goes to sys.unraisablehook. ValueError: no such event; TypeError: callback
    cannot be called. Under plain Python nothing is ever called, and any event will do.
    """
    global _registered
    if not callable(callback):
        raise TypeError(f"expected a callable, got {type(callback).__name__}")
    handle = Handle(event, callback)
    library = _library.running()
    if library is None:
        return handle
    if event not in _handlers:
        library.dynvm_observe(",".join([*_handlers, event]).encode(), _deliver)
    _handlers.setdefault(event, []).append(handle)
    if not _registered:
        _registered = True
        atexit.register(flush)
    return handle
