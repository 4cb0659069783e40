"""index.html: the viewer of a profile, one file that needs nothing else.

viewer.html is the frame; viewer.css and viewer.js go into it as they are, the data as JSON in <script type="application/json"> elements: one for what all
views need, and one for each trace and each source file, deflated, which the page opens when it is asked for. So the page is there at once
however many traces there are. Input: a Profile. Tests: tests/profile/test_viewer.py.
"""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import zlib

from .model import values_of, what_of
from .report import source_line

HERE = os.path.dirname(os.path.abspath(__file__))
MAX_SOURCES = 400
MAX_LINES = 40  # of the overview


def _read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


def _packed(data):
    text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("utf-8", "surrogateescape"), 6)).decode()


def disassemble(codes):
    """The instructions of machine code given in hex, for each; the hex itself where there is no objdump."""
    if shutil.which("objdump") is None:
        return list(codes)
    texts = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "code")
        for code in codes:
            with open(path, "wb") as file:
                file.write(bytes.fromhex(code))
            done = subprocess.run(["objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "--no-show-raw-insn", path], capture_output=True, text=True)
            lines = done.stdout.splitlines()
            texts.append("\n".join(line.strip() for line in lines[7:]) if done.returncode == 0 else code)
    return texts


def trace_data(profile, trace, assembly):
    """What the page shows of a trace when it is chosen."""
    kernels = []
    for number, kernel in enumerate(trace["kernels"]):
        ms, runs, roof = profile.kernel_cost(kernel, profile.calls_of_kernel[trace["id"], number])
        shown = {key: kernel[key] for key in ("name", "device", "places", "points", "bytes_read", "bytes_written", "flops", "nodes", "text")}
        shown.update(ms=ms, runs=runs, roof=roof)
        shown["code"] = assembly.get(kernel["code"], kernel["code"])
        kernels.append(shown)
    return {"insts": trace["insts"], "places": trace["places"], "stages": trace["stages"], "kernels": kernels}


def overview(profile, sources):
    """What the page shows at once."""
    traces = []
    for trace in profile.traces:
        spent = {}
        for inst in trace["insts"]:
            if "ms" in inst:
                spent[inst["kind"]] = spent.get(inst["kind"], 0) + inst["ms"]
        traces.append({key: trace[key] for key in ("id", "number", "kind", "function", "place", "entries", "iterations", "ms", "guards_ms", "entry_ms", "exit_ms", "record_ms",
                                                   "compile_ms", "from_cache", "for_sizes", "tensor_ops", "exits")} | {"spent": spent, "begin": profile.begin_of(trace)})
    lines = [[line.file, line.line, line.state, round(line.self_ms, 3), round(line.total_ms, 3), line.exits, sorted(line.traces)]
             for line in profile.lines.values() if line.file >= 0]
    own = sorted((line for line in lines if profile.is_own(line[0]) and line[4] > 0), key=lambda line: -line[4])[:MAX_LINES]
    codes = [{"file": code["file"], "name": code["name"], "line": code["line"]} for code in profile.codes]
    shares = {(exit["trace"], exit["inst"]): exit["share"] for exit in profile.exits}
    for trace in traces:
        trace["exits"] = [dict(exit, share=shares[trace["id"], exit["inst"]], what=what_of(exit), values=values_of(exit)[:4]) for exit in trace["exits"]]
    return {"wall": profile.wall, "parts": profile.parts_with_imports(), "program": profile.data["program"], "machine": profile.machine, "advice": profile.advice,
            "files": profile.files, "own": [profile.is_own(number) for number in range(len(profile.files))], "sources": sorted(sources), "codes": codes, "traces": traces,
            "lines": lines, "top": [line[:2] + [source_line(profile, line[0], line[1])] for line in own], "recordings": profile.data["recordings"]}


def shown_sources(profile):
    """The numbers of the files that the page has: the script's own, and those in which most of the time went."""
    spent = {}
    for line in profile.lines.values():
        spent[line.file] = spent.get(line.file, 0) + line.self_ms + (1e-6 if line.traces else 0)
    known = [number for number in profile.sources() if spent.get(number)]
    return sorted(known, key=lambda number: (not profile.is_own(number), -spent[number]))[:MAX_SOURCES]


def page(profile):
    sources = shown_sources(profile)
    codes = sorted({kernel["code"] for trace in profile.traces for kernel in trace["kernels"] if kernel["device"] == "cpu" and kernel["code"]})
    assembly = dict(zip(codes, disassemble(codes)))
    blobs = [f'<script type="application/json" id="trace-{trace["id"]}">{_packed(trace_data(profile, trace, assembly))}</script>' for trace in profile.traces]
    blobs += [f'<script type="application/json" id="source-{number}">{_packed(chr(10).join(profile.sources()[number]))}</script>' for number in sources]
    blobs += [f'<script type="application/json" id="bytecode">{_packed([code["bytecode"] for code in profile.codes])}</script>']
    overview_text = json.dumps(overview(profile, sources), separators=(",", ":")).replace("<", "\\u003c")  # no end of the element inside
    return (_read("viewer.html").replace("/*STYLE*/", _read("viewer.css")).replace("<!--DATA-->", f'<script type="application/json" id="overview">{overview_text}</script>\n' + "\n".join(blobs))
            .replace("/*SCRIPT*/", _read("viewer.js")))


def write(profile, path):
    with open(path, "w", encoding="utf-8", errors="replace") as file:
        file.write(page(profile))
