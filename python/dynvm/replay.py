"""`dynvm replay DIR`: what recorded traces become under other settings, without running the script.

DIR holds what `dynvm --record-to=DIR script.py` has written: a trace as it was recorded in each file *.ir. Each is compiled under the numbers of the table
and under each --heuristics: the passes run, kernels for CPUs are compiled for this processor. A folder that `dynvm bisect` has left is run again as it was found, without
--heuristics and --json (bisect/reproducer.py). Tests: tests/lab/test_replay.py, tests/bisect/test_bisect.py.
"""

import argparse
import glob
import json
import os
import sys

from dynvm import _library
from dynvm.bisect import reproducer

COLUMNS = ("launches", "kernels", "library", "guards", "nodes", "operations", "est. us", "bytes")


def replay(text, words=""):
    """What becomes of the text of a trace under the words of --heuristics: a dict. ValueError: one of them is wrong, or a kernel cannot be compiled."""
    return json.loads(_library.load().dynvm_replay(text.encode(errors="surrogateescape"), words.encode()))


def numbers(result):
    """The values of COLUMNS; the estimated time is of one thread, and None where there are kernels for GPUs or sizes that only a run tells."""
    kernels = result["kernels"]
    known = all(kernel["cost_ns"] is not None and not kernel["per_point"] for kernel in kernels)
    compiled = [kernel["code_bytes"] for kernel in kernels if kernel["code_bytes"] is not None]
    return {"launches": result["launches"], "kernels": len(kernels), "library": result["library_calls"], "guards": result["guards"],
            "nodes": sum(kernel["nodes"] for kernel in kernels), "operations": sum(kernel["operations"] for kernel in kernels),
            "est. us": sum(kernel["cost_ns"] for kernel in kernels) / 1000 if known else None,
            "bytes": sum(compiled) if len(compiled) == len(kernels) else None}


def shown(value):
    return "-" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)


def table(rows):
    """Lines of text; the first column to the left."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join([row[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(row[1:], widths[1:]))]).rstrip() for row in rows]


def kernel_line(kernel):
    size = f"{kernel['points']} points" if kernel["points"] is not None else "symbolic sizes"
    cost = "for a GPU" if kernel["cost_ns"] is None else f"{kernel['cost_ns']:.0f} ns{' a point' if kernel['per_point'] else ''}, {kernel['code_bytes']} bytes"
    return f"{kernel['name']}: {kernel['operations']} operations, {kernel['operands']} operands, {size}, {cost}"


def differences(before, after):
    """Lines: kernels that only one of the two results has, "-" before, "+" after."""
    old, new = [kernel_line(kernel) for kernel in before["kernels"]], [kernel_line(kernel) for kernel in after["kernels"]]
    lines = []
    for sign, mine, others in (("-", old, list(new)), ("+", new, list(old))):
        for line in mine:
            if line in others:
                others.remove(line)
            else:
                lines.append(f"    {sign} {line}")
    return lines


def compare(results, settings, write):
    """results: {file: [result of each setting]}."""
    rows = [["trace", "setting", *COLUMNS]]
    totals = [dict.fromkeys(COLUMNS, 0) for _ in settings]
    for file, found in results.items():
        for setting, result, total in zip(settings, found, totals):
            values = numbers(result)
            rows.append([f"{os.path.basename(file)} {result['name']}", setting or "default", *(shown(values[name]) for name in COLUMNS)])
            for name in COLUMNS:
                total[name] = None if total[name] is None or values[name] is None else total[name] + values[name]
    for setting, total in zip(settings, totals):
        rows.append(["all", setting or "default", *(shown(total[name]) for name in COLUMNS)])
    for line in table(rows):
        write(line)
    for file, found in results.items():
        for setting, result in list(zip(settings, found))[1:]:
            lines = differences(found[0], result)
            write(f"{os.path.basename(file)}, {setting}: {'kernels that differ from the default' if lines else 'the same kernels as the default'}")
            for line in lines:
                write(line)


def main(words):
    options = argparse.ArgumentParser(prog="dynvm replay", description="Compiles traces that --record-to wrote again, under other settings, and compares the kernels.")
    options.add_argument("folder", metavar="DIR", help="what `dynvm --record-to=DIR script.py` has written")
    options.add_argument("--heuristics", action="append", default=[], metavar="NAME=N,...", help="a setting to compare with the default; may be given more than once")
    options.add_argument("--json", metavar="FILE", help="write everything to FILE")
    given = options.parse_args(words)

    def refuse(text):
        print(f"dynvm replay: {text}", file=sys.stderr)
        return 2

    if os.path.isfile(os.path.join(given.folder, reproducer.FILE)) and not given.heuristics and not given.json:
        return reproducer.replay(given.folder)
    library = _library.load()
    for setting in given.heuristics:
        try:
            library.dynvm_check_heuristics(setting.encode())
        except ValueError as error:
            return refuse(f"--heuristics: {error}")
    files = sorted(glob.glob(os.path.join(glob.escape(given.folder), "*.ir")))
    if not files:
        return refuse(f"there is no recorded trace (*.ir) in {given.folder}; `dynvm --record-to={given.folder} script.py` writes them")
    settings = ["", *given.heuristics]
    results = {}
    for file in files:
        with open(file, encoding="utf-8", errors="surrogateescape") as stream:
            text = stream.read()
        try:
            results[file] = [replay(text, setting) for setting in settings]
        except ValueError as error:
            return refuse(f"{file}: {error}")
    compare(results, settings, print)
    if given.json:
        with open(given.json, "w", encoding="utf-8") as stream:
            json.dump({os.path.basename(file): dict(zip((setting or "default" for setting in settings), found)) for file, found in results.items()}, stream, indent=1)
            stream.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
