"""Files for other programs' viewers. Input: a Profile. Tests: tests/profile/test_formats.py.

trace.json: the Trace Event Format (Perfetto, chrome://tracing). Rows: recordings, compilations, runs of traces (neighbouring runs of one trace are one entry
with a count), garbage collection; a row for each stream of a GPU. Times are microseconds since the process began.
profile.speedscope.json: a sampled profile (speedscope.app); a frame [trace N] stands for compiled code.
"""

import json

GPU_ROW = 100  # and the stream's number
ROWS = {"record": (1, "recording"), "compile": (2, "compiling"), "run": (3, "traces"), "gc": (4, "garbage collection")}


def timeline(profile):
    events = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "dynvm"}}]
    for number, name in ROWS.values():
        events.append({"ph": "M", "pid": 1, "tid": number, "name": "thread_name", "args": {"name": name}})
    for event in profile.data["events"]:
        row, kind = ROWS[event["kind"]]
        trace = profile.by_id.get(event["trace"])
        name = event["name"] if trace is None else f"trace {event['trace']} {profile.where(profile.begin_of(trace))}"
        args = {"count": event["count"]}
        if trace is not None:
            args.update(trace=event["trace"], function=trace["function"])
        events.append({"ph": "X", "pid": 1, "tid": row, "cat": kind, "name": name, "ts": 1000 * event["start_ms"], "dur": 1000 * event["ms"], "args": args})
    streams = sorted({stream for _, stream, _, _ in profile.gpu["events"]})
    for stream in streams:
        events.append({"ph": "M", "pid": 1, "tid": GPU_ROW + stream, "name": "thread_name", "args": {"name": f"{profile.gpu['device']}, stream {stream}"}})
    for work, stream, start, ms in profile.gpu["events"]:
        events.append({"ph": "X", "pid": 1, "tid": GPU_ROW + stream, "cat": "gpu", "name": profile.gpu["works"][work]["name"], "ts": 1000 * start, "dur": 1000 * ms, "args": {}})
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def speedscope(profile):
    frames, numbers, samples, weights = [], {}, [], []

    def number(key, frame):
        if key not in numbers:
            numbers[key] = len(frames)
            frames.append(frame)
        return numbers[key]

    for sample in profile.data["samples"]:
        stack = []
        for place in sample["frames"]:
            code = profile.codes[place[0]]
            file = profile.files[code["file"]]
            stack.append(number(tuple(place), {"name": code["name"], "file": file, "line": place[2]}))
        if sample["part"] == "trace":
            stack.append(number(sample["trace"], {"name": f"[trace {sample['trace']}]"}))
        elif sample["part"] != "interpreter":
            stack.append(number(sample["part"], {"name": f"[{sample['part']}]"}))
        samples.append(stack)
        weights.append(sample["count"] * profile.data["sample_ms"])
    end = sum(weights)
    return {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": frames}, "activeProfileIndex": 0, "exporter": "dynvm",
            "profiles": [{"type": "sampled", "name": profile.data["program"].get("command", "dynvm"), "unit": "milliseconds", "startValue": 0,
                          "endValue": end, "samples": samples, "weights": weights}]}


def _write(data, path):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(data, file, separators=(",", ":"))


def write_timeline(profile, path):
    _write(timeline(profile), path)


def write_speedscope(profile, path):
    _write(speedscope(profile), path)
