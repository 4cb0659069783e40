"""The tables on the terminal. Input: a Profile with its advice. Output: text. Tests: tests/profile/test_model.py."""

import os

from . import model

ROWS = 12


def table(title, heads, rows, total=None):
    """Aligned columns; numbers to the right. The last column may be long."""
    if not rows:
        return ""
    shown = [[cell if isinstance(cell, str) else f"{cell:,.1f}" if isinstance(cell, float) else f"{cell:,}" for cell in row] for row in rows[:ROWS]]
    right = [not isinstance(cell, str) for cell in rows[0]]
    widths = [max(len(row[k]) for row in [list(heads)] + shown) for k in range(len(heads))]

    def line(cells):
        padded = [cell.rjust(width) if at_right else cell.ljust(width) for cell, width, at_right in zip(cells, widths, right)]
        return "  " + "  ".join(padded).rstrip()

    more = [f"  ... {len(rows) - ROWS} more"] if len(rows) > ROWS else []
    return "\n".join(["", title, line(heads)] + [line(row) for row in shown] + more) + "\n"


def percent(ms, wall):
    return f"{100 * ms / wall:.1f} %"


def line_rows(profile):
    lines = [line for line in profile.lines.values() if line.file >= 0 and (line.self_ms or line.total_ms)]
    own = [line for line in lines if profile.is_own(line.file)]
    rows = []
    for line in sorted(own, key=lambda line: -line.total_ms):
        name = f"{os.path.basename(profile.files[line.file])}:{line.line}"
        rows.append([line.total_ms, percent(line.total_ms, profile.wall), line.imports, line.python_total, line.trace_total, line.exits, line.state, name, source_line(profile, line.file, line.line)])
    return rows


def source_line(profile, file, line):
    lines = profile.sources().get(file) or []
    return lines[line - 1].strip()[:70] if 0 < line <= len(lines) else ""


def trace_rows(profile):
    rows = []
    for trace in sorted(profile.traces, key=lambda trace: -trace["ms"]):
        spent = {"kernel": 0.0, "library": 0.0, "residual": 0.0}
        for inst in trace["insts"]:
            if inst["kind"] in spent:
                spent[inst["kind"]] += inst.get("ms", 0)
        exits = sum(exit["count"] for exit in trace["exits"])
        rows.append([str(trace["id"]), float(trace["ms"]), percent(trace["ms"], profile.wall), trace["iterations"], float(trace["guards_ms"]), spent["kernel"], spent["library"], spent["residual"],
                     float(trace["entry_ms"] + trace["exit_ms"]), exits, trace["kind"], f"{profile.where(profile.begin_of(trace))} {trace['function']}"])
    return rows


def kernel_rows(profile):
    rows = []
    for call in profile.kernels:
        kernel = profile.by_id[call["trace"]]["kernels"][call["kernel"]]
        moved = kernel["bytes_read"] + kernel["bytes_written"]
        ms, runs, reached = profile.kernel_cost(kernel, [call])
        if not runs:
            ms, runs = call["ms"], call["runs"]
        rows.append([ms, percent(ms, profile.wall), call["runs"], 1000 * ms / runs, moved / 1024, kernel["flops"] / 1000,
                     "-" if reached is None else f"{100 * reached:.0f} %", str(call["trace"]), profile.where(call["at"]), call["name"]])
    return rows


def gpu_rows(profile):
    rows = []
    for work in sorted(profile.gpu["works"], key=lambda work: -work["ms"]):
        where = f"{profile.where(work['at'])}, trace {', '.join(map(str, work['traces'][:4]))}" if "at" in work else ""
        rows.append([work["ms"], percent(work["ms"], profile.wall), work["runs"], 1000 * work["ms"] / work["runs"], where, work["name"][:100]])
    return rows


def call_rows(profile, calls):
    return [[ms, percent(ms, profile.wall), runs, 1000 * ms / runs, profile.where(same[0]["at"]), name] for name, ms, runs, same in profile.by_name(calls)]


def exit_rows(profile):
    rows = []
    for exit in profile.exits:
        values = ", ".join(model.values_of(exit)[:3])
        to = ", ".join(f"{trace}" for trace, _ in exit["to"])
        rows.append([exit["count"], f"{100 * exit['share']:.0f} %", str(exit["trace"]), profile.where(exit["at"]), to or "-", f"{model.what_of(exit)} {exit['sentence']}" + (f" ({values})" if values else "")])
    return rows


def text(profile):
    parts = profile.parts_with_imports()
    out = f"dynvm profile: {profile.wall:,.0f} ms, {len(profile.traces)} traces\n"
    rows = [[ms, percent(ms, profile.wall), name] for name, ms in parts.items() if ms >= 0.05]
    out += table("Where the time went", ("ms", "", "part"), rows)
    out += table("Source lines, with what they call", ("ms", "", "imports", "interpreter", "traces", "exits", "state", "line", ""), line_rows(profile))
    out += table("Traces", ("id", "ms", "", "iterations", "guards", "kernels", "library", "residual", "in, out", "exits", "kind", "where"), trace_rows(profile))
    out += table("Kernels", ("ms", "", "runs", "us each", "KiB", "kFLOP", "of roof", "trace", "line", "kernel"), kernel_rows(profile))
    if profile.gpu["device"]:
        busy = sum(work["ms"] for work in profile.gpu["works"])
        out += table(f"On {profile.gpu['device']}: {busy:,.1f} ms of work, {percent(busy, profile.wall)} of the time", ("ms", "", "runs", "us each", "line", "kernel"), gpu_rows(profile))
        if profile.gpu["missing"]:
            out += f"\nNo times of the GPU's kernels: {profile.gpu['missing']}\n"
    out += table("Library calls in traces", ("ms", "", "runs", "us each", "line", "operation"), call_rows(profile, profile.library))
    out += table("Residual calls in traces", ("ms", "", "runs", "us each", "line", "call"), call_rows(profile, profile.residuals))
    out += table("Exits", ("times", "share", "trace", "line", "goes to", "because"), exit_rows(profile))
    if profile.advice:
        out += "\nAdvice\n" + "".join(f"  - {finding['text']}\n" for finding in profile.advice)
    return out
