"""dynvm.explain(): what becomes of a function."""

import json
import os
import time
import types

from dynvm import _events, _library
from dynvm._traces import traces

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_BATCH, _BATCHES, _SECONDS = 12, 12, 10.0


def _repeat(function, args, kwargs, times):
    result = None
    for _ in range(times):
        result = function(*args, **kwargs)
    return result


def _begin(call):
    return call()


def _from_c(call):
    """call(), by way of a C function and of one in Python that has not been called before: loops of the script around it are not waited for."""
    return next(map(types.FunctionType(_begin.__code__.replace(), globals()), (call,)))


def _as_long_as(batch, number=0):
    """batch(0), batch(1), ... until one is false. Not a loop: that would be recorded."""
    if batch(number):
        _as_long_as(batch, number + 1)


class Explanation:
    """What explain() has found; str() is a page of text.

    function (str); calls (int): how often it was called; result: of the last call; traces ([Trace]); aborts ([dict]: reason, detail, file (str), line, times
    (int)); compiled (float or None): the part, 0 to 1, of the tensor operations of the last calls that ran in traces; None: there were none.
    """

    def __init__(self, function, calls, result, traces_made, aborts, compiled, running, loop=None):
        self.function, self.calls, self.result, self.traces, self.aborts, self.compiled = function, calls, result, traces_made, aborts, compiled
        self._running = running
        self._loop = loop  # its traces live as long as its code

    @property
    def residuals(self):
        """Operations that are run as Python does: {name: times in one iteration of each trace, added up}."""
        counts = {}
        for trace in self.traces:
            for name, count in trace.residuals.items():
                counts[name] = counts.get(name, 0) + count
        return dict(sorted(counts.items(), key=lambda item: -item[1]))

    def __str__(self):
        if not self._running:
            return f"{self.function}: called once; dynvm does not run here, so nothing is traced"
        lines = [f"{self.function}: called {self.calls} times"]
        if self.compiled is not None:
            lines.append(f"compiled: {100 * self.compiled:.0f} % of the tensor operations of the last {_BATCH} calls")
        lines.append("traced:" if self.traces else "traced: nothing")
        for trace in self.traces:
            after = f" after trace {trace.parent}" if trace.parent is not None else ""
            cut = ", cut before an instruction that it cannot hold" if trace.cut else ""
            lines.append(f"  trace {trace.id}, {trace.kind}{after}, {_lines(trace)} {trace.function}: {_count(trace.tensor_ops, 'tensor operation')}"
                         f"{f' of {trace.rounds} iterations' if trace.rounds > 1 else ''}, "
                         f"{_count(len(trace.kernels), 'kernel')}; {_count(trace.iterations, 'iteration')}{cut}")
            for part in trace.functions:
                if os.path.dirname(part["file"]) != _FOLDER:
                    lines.append(f"    {part['function']} at {part['file']}:{part['first_line']}-{part['last_line']}")
            for kernel in trace.kernels:
                lines.append(f"    kernel {kernel.name}")
            for name, count in sorted(trace.library_calls.items()):
                lines.append(f"    library {name} {_times(count)}")
            for exit in trace.exit_list:
                if os.path.dirname(exit.file) != _FOLDER:  # the end of the calls is no matter of the function's
                    goes = f"goes on in trace {exit.trace}" if exit.trace is not None else "goes on in the interpreter"
                    lines.append(f"    left {_times(exit.count)} by {exit.guard}, {goes} at {exit.file}:{exit.line}")
        residuals = self.residuals
        lines.append("residual (run as Python does, in one iteration of each trace):" if residuals else "residual: nothing")
        lines += [f"  {name} {_times(count)}" for name, count in residuals.items()]
        lines.append("given up:" if self.aborts else "given up: nothing")
        for abort in self.aborts:
            lines.append(f"  {abort['reason']} {_times(abort['times'])} at {abort['file']}:{abort['line']}: {abort['detail']}")
        return "\n".join(lines)

    def __repr__(self):
        return f"<explanation of {self.function}: {_count(len(self.traces), 'trace')}, {_count(len(self.aborts), 'reason')} to give up>"


def _count(number, noun):
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _times(number):
    return "once" if number == 1 else f"{number} times"


def _lines(trace):
    last = f"-{trace.last_line}" if trace.last_line != trace.first_line else ""
    return f"{trace.file}:{trace.first_line}{last}"


def _operations(library):
    report = json.loads(library.dynvm_report())
    return report["tensor_ops_total"], report["tensor_ops_compiled"]


def explain(fn, *args, **kwargs):
    """Calls fn(*args, **kwargs) until nothing new is recorded for it, and gives an Explanation: what was traced, what is residual, what was given up and why.

    fn is called at least 24 times, and no more often after ten seconds; what it changes is changed each time. Recording begins earlier meanwhile than it does
    otherwise. An exception of fn is raised. TypeError: fn cannot be called. Under plain Python fn is called once.
    """
    if not callable(fn):
        raise TypeError(f"expected a callable, got {type(fn).__name__}")
    name = getattr(fn, "__qualname__", None) or type(fn).__qualname__
    library = _library.running()
    if library is None:
        return Explanation(name, 1, fn(*args, **kwargs), [], [], None, False)
    import dynvm
    aborts, news = {}, []

    def given_up(event):
        if os.path.dirname(event.get("file", "")) == _FOLDER:  # the end of the calls
            return
        place = (event.get("reason", ""), event.get("file", ""), event.get("line", 0))
        row = aborts.setdefault(place, {"reason": place[0], "detail": event.get("detail", ""), "file": place[1], "line": place[2], "times": 0})
        row["times"] += 1

    repeat = types.FunctionType(_repeat.__code__.replace(), globals())  # a loop of its own, with counters and traces of its own
    before = {trace.id for trace in traces()}
    numbers = dynvm.set_heuristics(hot_loop=2, hot_call=2, hot_exit=2, hot_size_exit=1, penalty_start=1)
    library.dynvm_count(1)
    calls, end, last, result = 0, time.monotonic() + _SECONDS, (0, 0), None

    def batch(number):
        """Calls fn some times; is more to be learnt?"""
        nonlocal calls, last, result
        news.clear()
        start = _operations(library)
        result = _from_c(lambda: repeat(fn, args, kwargs, _BATCH))
        calls += _BATCH
        _events.flush()
        now = _operations(library)
        last = (now[0] - start[0], now[1] - start[1])
        return number == 0 or (news and number + 1 < _BATCHES and time.monotonic() < end)

    try:
        with _events.on("abort", given_up), _events.on("trace", news.append):
            _as_long_as(batch)
    finally:
        library.dynvm_count(0)
        dynvm.set_heuristics(**numbers)
    made = [trace for trace in traces() if trace.id not in before]
    ordered = sorted(aborts.values(), key=lambda row: -row["times"])
    compiled = min(1.0, last[1] / last[0]) if last[0] > 0 else None
    return Explanation(name, calls, result, made, ordered, compiled, True, repeat)
