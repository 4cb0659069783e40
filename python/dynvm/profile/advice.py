"""Findings of a profile, one line each, the most important first: what a person may change, and what it would be worth.

Each rule looks at the tables of model.py and yields (weight, text, place); weight: milliseconds that the finding is about, less where a line of the
script cannot change them. LEAST is the share of the work (what the script does behind its imports) below which nothing is said. Tests:
tests/profile/test_advice.py.
"""

import collections

from .model import what_of

LEAST = 0.03
MANY_EXITS = 10
LEAST_LEFT, LEAST_REFUSED = 0.001, 0.01  # of the work: what exits of one kind, and entries that are refused, have to cost
FEW_SAMPLES = 3                          # of a line in the interpreter: they say nothing
SHORT_US = 10                            # of a kernel that is so short, a good part is its launch


def share_text(share):
    return f"{100 * share:.0f} %" if share >= 0.01 else "under 1 %"


def name_of(exit):
    return f"`{exit['what']}`" if exit["what"] else what_of(exit)


def seen(values, noun):
    """"3 sizes seen ([10], [7], [3])"; what the trace was recorded with is not among them."""
    if not values:
        return ""
    shown = ", ".join(sorted(values, key=lambda value: -values[value])[:4])
    several = "" if len(values) == 1 else "s"
    at_least = "at least " if len(values) >= 16 else ""
    return f": {at_least}{len(values)} {noun}{several} seen ({shown}{', ...' if len(values) > 4 else ''})"


def because(exit):
    """Why the trace was left, in words."""
    what = name_of(exit)
    if exit["reason"] == "sizes":
        return (f"{what} changed" if exit["what"] else "a tensor's sizes changed") + seen(exit["values"], "size" if len(exit["values"]) != 1 else "other size")
    if exit["reason"] == "value":
        return f"{what} changed" + seen(exit["values"], "value")
    if exit["reason"] == "number":
        return f"{what} {exit['sentence']}"
    if exit["reason"] == "branch":
        condition = what if exit["what"] else "the condition"
        return f"{condition} {exit['sentence']}" + seen(exit["values"], "value")
    if exit["reason"] == "type":
        return f"{what} {exit['sentence']}" + seen(exit["values"], "type")
    if exit["reason"] == "error":
        return f"{what} raised an exception"
    return f"{what} {exit['sentence']}" + seen(exit["values"], "object")


HELP = {
    "sizes": "dynvm makes traces for other sizes by itself; few different ones, or padding, need fewer",
    "value": "a number that differs in each iteration is better computed from the loop's own variables or kept in a tensor",
    "branch": "torch.where, or two loops, keep it in one trace",
    "type": "one type in each iteration keeps it in one trace",
    "object": "the same object in each iteration keeps it in one trace",
    "state": "set modules, classes and modes up before the loop",
}


def cost_of_leaving(profile, exit):
    """Milliseconds, at least: its part of the way out, and the rest of the iterations that no other trace went on with, as fast as in the trace."""
    trace = profile.by_id[exit["trace"]]
    out = trace["exit_ms"] * exit["count"] / sum(other["count"] for other in trace["exits"])
    if exit["at_entry"] == exit["count"]:
        return out
    alone = exit["count"] - exit["linked"]
    if trace["iterations"] == 0:
        return out + profile.interpreted_in(trace["place"])
    behind = sum(inst.get("ms", 0) for inst in trace["insts"][exit["inst"]:])
    return out + behind / trace["iterations"] * alone


def exits(profile):
    for exit in profile.exits:
        trace = profile.by_id[exit["trace"]]
        if exit["reason"] == "end" or exit["count"] < MANY_EXITS or exit["share"] < 0.05 or exit["linked"] > 0.9 * exit["count"]:
            continue
        if exit["reason"] == "error" and exit["share"] < 0.5:
            continue
        # What one trace refuses, another one at the same place may take, at the cost of a few guards.
        refused = exit["at_entry"] == exit["count"]
        if refused and (exit["reason"] == "branch" or exit["share"] < 0.3):
            continue
        cost = cost_of_leaving(profile, exit)
        if cost < (LEAST_REFUSED if refused else LEAST_LEFT) * profile.work:
            continue
        what = "entries into" if refused else "iterations leave"
        verb = f"{share_text(exit['share'])} of {what} trace {trace['id']}" + (" fail" if refused else "")
        text = f"{verb} at {profile.where(exit['at'])} because {because(exit)}"
        if exit["reason"] in HELP:
            text += f"; {HELP[exit['reason']]}"
        yield cost, text, exit["at"]


def residuals(profile):
    for name, ms, runs, calls in profile.by_name(profile.residuals):
        if ms < LEAST * profile.work:
            continue
        at = calls[0]["at"]
        yield ms, (f"{share_text(ms / profile.wall)} of the time is {name.removeprefix('call ')} inside trace {calls[0]['trace']} ({runs} runs, {profile.where(at)}): "
                   "it runs as it is; do it less often, or outside of the loop"), at


def aborted(profile):
    places = collections.defaultdict(list)
    for recording in profile.data["recordings"]:
        places[tuple(recording["place"][:1] + recording["place"][2:])].append(recording)
    for same in places.values():
        failed = [recording for recording in same if not recording["trace"]]
        if not failed or len(failed) < len(same):
            continue
        last = failed[-1]
        ms = profile.interpreted_in(last["place"])
        if ms < (LEAST if profile.is_own(profile.file_of(last["place"])) else 0.1) * profile.work:
            continue
        detail = f" ({last['detail']})" if last["detail"] else ""
        times = "a recording was" if len(failed) == 1 else f"{len(failed)} recordings were"
        yield ms, (f"{share_text(ms / profile.wall)} of the time is the loop at {profile.where(last['place'])} in the interpreter, where {times} given up: {last['sentence']} "
                   f"{last['result']}{detail}"), last["place"]


def cut(profile):
    for recording in profile.data["recordings"]:
        trace = profile.by_id.get(recording["trace"])
        if trace is None or recording["result"] in ("kept", "inner_loop_begins") or trace["iterations"] + trace["entries"] == 0 or trace["ms"] < LEAST * profile.work:
            continue
        detail = f" ({recording['detail']})" if recording["detail"] else ""
        yield trace["ms"] * 0.5, f"trace {trace['id']} ends early and the interpreter goes on: {recording['sentence']} {recording['result']}{detail}", trace["place"]


def collector(profile):
    ms = profile.parts_with_imports()["gc"]
    if ms > LEAST * profile.work:
        yield ms, (f"{share_text(ms / profile.wall)} of the time is garbage collection outside of imports: "
                   "gc.freeze() behind the imports leaves what they made alone; gc.disable() around the loop does without"), None


def making(profile):
    ms = profile.parts["recording"] + profile.parts["compiling"]
    if ms > 0.1 * profile.wall:
        yield 0.01 * ms, f"{share_text(ms / profile.wall)} of the time is recording and compiling {len(profile.traces)} traces: a longer run, or --cache, makes less of it", None


def imports(profile):
    ms = profile.imports.total()
    if ms > 0.2 * profile.wall:
        yield 0.01 * ms, f"{share_text(ms / profile.wall)} of the time is imports: a longer run makes less of them", None


def interpreted(profile):
    for line in profile.lines.values():
        if line.file < 0 or not profile.is_own(line.file) or line.traces or line.recorded or line.python < LEAST * profile.work or line.python < FEW_SAMPLES * profile.data["sample_ms"]:
            continue
        name = f"{profile.files[line.file].rsplit('/', 1)[-1]}:{line.line}"
        yield line.python, f"{share_text(line.python / profile.wall)} of the time is {name} in the interpreter, outside of any trace", None


def kernels(profile):
    for name, ms, runs, calls in profile.by_name(profile.kernels):
        if ms < LEAST * profile.work or not profile.machine:
            continue
        call = max(calls, key=lambda c: c["ms"])
        kernel = profile.by_id[call["trace"]]["kernels"][call["kernel"]]
        if kernel["device"] != "cpu":
            continue  # its time here is that of its launch
        reached = profile.kernel_cost(kernel, [call])[2]
        if reached is not None and reached < 0.25:
            each = 1000 * ms / runs
            remedy = "larger tensors pay for its launches" if each < SHORT_US else "its threads wait for busy processors, or it computes functions such as exp and tanh"
            yield ms, (f"{share_text(ms / profile.wall)} of the time is kernel {name} ({runs} runs of {each:,.1f} us, trace {call['trace']}, {profile.where(call['at'])}), "
                       f"which reaches {share_text(reached)} of what this machine can do: {remedy}"), call["at"]


def library(profile):
    for name, ms, runs, calls in profile.by_name(profile.library):
        if ms > 0.1 * profile.work:
            yield ms * 0.5, (f"{share_text(ms / profile.wall)} of the time is the library's {name} inside traces ({runs} runs of {1000 * ms / runs:,.1f} us, most at "
                             f"{profile.where(calls[0]['at'])}): fewer or smaller ones would help"), calls[0]["at"]


def idle_gpu(profile):
    """Between the first and the last work that was seen."""
    events = profile.gpu["events"]
    if not events:
        return
    start, end = min(event[2] for event in events), max(event[2] + event[3] for event in events)
    busy = sum(event[3] for event in events)
    if end - start > 0.1 * profile.wall and busy < 0.5 * (end - start):
        yield end - start - busy, (f"the GPU works {share_text(busy / (end - start))} of the time between its first and last work: what is done per launch is too little, or the "
                                   "script waits for values (.item(), printing) before it queues more"), None


RULES = (exits, residuals, aborted, cut, collector, making, imports, interpreted, kernels, library, idle_gpu)


def findings(profile):
    """[{"rule", "text", "ms", "place"}]."""
    found = [{"rule": rule.__name__, "ms": ms, "text": text, "place": place and place[:3]} for rule in RULES for ms, text, place in rule(profile)]
    return sorted(found, key=lambda finding: -finding["ms"])
