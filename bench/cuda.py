"""Workloads on a GPU: `python bench/cuda.py [--only A,B] [--modes eager,dynvm,...] [--compile]` runs each under each mode and prints a table.

Modes: eager, dynvm, and of torch.compile: compile (its default), compile:reduce-overhead, compile:max-autotune. --compile adds these three. dynvm:again is a second
process that finds what dynvm's left in its cache; only its start is measured. dynvm:autotune is dynvm with --autotune; behind dynvm it finds that one's traces.
Workloads: bench/cuda_workloads.py, by name or number. Each measurement is a process of its own, and each workload has caches of its own, empty at first; with
--together the processes of one mode start together, import what they need, and then measure in turn. --json FILE: the rows too, a mode's last ones.

Times are milliseconds an iteration, by events around groups of iterations, median and minimum of 20 groups; host: until the last one was queued. The copy rate of
the device is measured in the same processes. Cold: seconds from the end of the first iteration, in which each mode has its libraries' start, until three take at
most 1.3 times the steady time ("over": none did before the first loop ended, after 2.5 s). Peak: of torch's allocator in an iteration at full speed, and (first)
with recording, compiling and capturing; behind it what graphs have reserved beside that. Difference: 30 iterations from the beginning, in eager and in this mode,
the largest difference of any of them relative to the largest value.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PYTHON = os.environ.get("DYNVM_TEST_PYTHON", os.path.join(ROOT, ".venv", "bin", "python"))
DYNVM = os.environ.get("DYNVM", os.path.join(ROOT, ".venv", "bin", "dynvm"))
COMPILE = ("compile", "compile:reduce-overhead", "compile:max-autotune")
AGAIN, TUNED = "dynvm:again", "dynvm:autotune"
TIME_LIMIT_S = 400


def run(step, at_least, seconds):
    """Seconds from one iteration's end to the next one's, the device waited for after each."""
    import torch

    taken, begun = [], time.perf_counter()
    end = begun
    while len(taken) < at_least or (time.perf_counter() - begun < seconds and len(taken) < 3000):
        if time.perf_counter() - begun > 60 and len(taken) > 5:
            break
        result = step()  # noqa: F841: kept, as a script would
        torch.cuda.synchronize()
        start, end = end, time.perf_counter()
        taken.append(end - start)
    return taken


def timed(step, iterations, of_group):
    """Milliseconds an iteration, of groups of iterations that follow each other without waiting; the host's, until the last was queued."""
    import torch

    events = [torch.cuda.Event(enable_timing=True) for _ in range(iterations // of_group + 1)]
    start = time.perf_counter()
    for k in range(iterations):
        if k % of_group == 0:
            events[k // of_group].record()
        result = step()  # noqa: F841: kept, so that it is computed each time
    host = (time.perf_counter() - start) * 1e3 / iterations
    events[-1].record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) / of_group for a, b in zip(events, events[1:])], host


def peaks(step, iterations):
    """The largest peak of torch's allocator in one of the last 10 iterations, bytes."""
    import torch

    taken = []
    for _ in range(iterations):
        torch.cuda.reset_peak_memory_stats()
        result = step()  # noqa: F841: kept, as a script would
        taken.append(torch.cuda.max_memory_allocated())
    return max(taken[-10:])


def samples(step):
    """What 30 iterations gave, a few numbers of each."""
    kept = []
    for _ in range(30):
        result = step()
        kept.append(result.detach().flatten()[:: max(1, result.numel() // 64)].double().tolist())
    return kept


def copy_rate():
    import torch

    source = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    rates = []
    for _ in range(12):
        a.record()
        target.copy_(source)
        b.record()
        torch.cuda.synchronize()
        rates.append(2 * source.numel() / a.elapsed_time(b) / 1e6)
    return max(rates)


def of_graphs():
    """Bytes of the pools of graphs that no tensor has: their intermediates when they run, and gaps."""
    import torch

    return sum(segment["total_size"] - segment["allocated_size"] for segment in torch.cuda.memory_snapshot() if tuple(segment["segment_pool_id"]) != (0, 0))


def measure(name, mode):
    import torch
    from cuda_workloads import workload

    torch.set_float32_matmul_precision("high")
    torch.manual_seed(0)
    try:
        work = workload(name)()
    except ImportError as missing:
        return {"skipped": str(missing)}
    step = work.step
    if mode.startswith("compile"):
        step = torch.compile(step, mode=mode.partition(":")[2] or None)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    first = run(step, 40, 2.5)
    peak_first = torch.cuda.max_memory_allocated()
    steady = statistics.median(first[-5:])
    settling = max(40, min(2000, int(1.5 / steady)))
    timed(step, settling, 10)  # the loop of the measurement gets its traces and graphs too
    steady = min(steady, statistics.median(run(step, 10, 0)))
    warm = next((k for k in range(len(first) - 2) if all(t <= 1.3 * steady + 5e-5 for t in first[k : k + 3])), None)
    row = {"cold": sum(first[1:warm]), "reached": warm is not None, "first": first[:60]}
    if mode == AGAIN:
        return {**row, "median": steady * 1e3 / work.repeats}
    count = max(2, int(0.02 / steady))
    groups, host = timed(step, 20 * count, count)
    peak = peaks(step, settling)
    row.update({"median": statistics.median(groups) / work.repeats, "min": min(groups) / work.repeats, "host": host / work.repeats, "slowest": max(first), "peak": peak,
                "peak_first": peak_first, "graphs": of_graphs(), "copy": copy_rate()})
    if work.moved:
        row["gbs"] = work.moved / row["median"] / 1e6
    if not mode.startswith("compile"):  # the workload once more, from its beginning
        torch.manual_seed(0)
        torch.cuda.manual_seed(0)
        row["samples"] = samples(workload(name)().step)
    if mode in ("dynvm", TUNED):
        import dynvm

        facts = dynvm.stats()
        row["facts"] = facts
    return row


def work(name, mode):
    """Measures one workload here, once it is this process's turn: a line on standard input says so."""
    sys.path.insert(0, os.path.join(ROOT, "bench"))
    import cuda_workloads

    cuda_workloads.import_libraries(name)
    print("READY", flush=True)
    if not sys.stdin.readline():  # whoever waited for it is gone
        return
    print("ROW " + json.dumps({"name": name, **measure(name, mode)}), flush=True)


def difference(mine, other):
    """The largest difference of any iteration, relative to the largest value there."""
    worst = 0.0
    for p, q in zip(mine, other):
        scale = max([1e-6, *map(abs, q)])
        worst = max(worst, max((abs(a - b) for a, b in zip(p, q)), default=0) / scale if len(p) == len(q) else float("inf"))
    return worst


def line(name, mode, row, eager):
    cold = f"  cold {row['cold']:6.2f} s" + ("" if row["reached"] else " over")
    if mode == AGAIN:
        return f"{name:14} {mode:24} {row['median']:9.4f} ms{'':31}{cold}"
    text = f"{name:14} {mode:24} {row['median']:9.4f} ms (min {row['min']:.4f}, host {row['host']:.4f})"
    if eager:
        text += f"  {eager['median'] / row['median']:6.2f}x eager"
    text += f"{cold}  peak {row['peak'] / 1e6:7.1f} MB (first {row['peak_first'] / 1e6:.1f}) + {row['graphs'] / 1e6:.1f}"
    if "gbs" in row:
        text += f"  {row['gbs']:6.0f} GB/s, {100 * row['gbs'] / row['copy']:.0f} % of copy"
    if eager and "samples" in row and "samples" in eager:
        text += f"  difference {difference(row['samples'], eager['samples']):.2g}"
    if "facts" in row:
        facts = row["facts"]
        share = facts["tensor_ops_compiled"] / max(1, facts["tensor_ops_total"])
        text += f"  {100 * share:.1f} % compiled, kernels {max((t['kernels'] for t in facts['traces']), default=0)}, aborts {facts['aborts']} notes {facts['notes']}"
        if mode == TUNED:
            text += f" autotune {facts['autotune']}"
    return text


def with_caches(folder):
    """The environment, with caches of dynvm and of torch.compile in this folder."""
    return {**os.environ, "DYNVM_CACHE": os.path.join(folder, "dynvm"), "TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "inductor"),
            "TRITON_CACHE_DIR": os.path.join(folder, "triton")}


def main(words=None):
    """words: the arguments, those of the process where there are none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names or numbers, separated by commas")
    parser.add_argument("--modes", default="eager,dynvm")
    parser.add_argument("--compile", action="store_true", help="torch.compile too, in three modes")
    parser.add_argument("--together", action="store_true", help="the processes of one mode start side by side, and measure in turn")
    parser.add_argument("--json", help="file for the rows")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    if arguments.worker:
        return work(*arguments.worker)
    sys.path.insert(0, os.path.join(ROOT, "bench"))
    from cuda_workloads import WORKLOADS, workload

    names = [workload(n).__name__ for n in arguments.only.split(",")] if arguments.only else [f.__name__ for f in WORKLOADS.values()]
    modes = arguments.modes.split(",") + (list(COMPILE) if arguments.compile else [])
    jobs = [(names, mode) for mode in modes] if arguments.together else [([name], mode) for name in names for mode in modes]
    rows, failed = {}, 0
    with tempfile.TemporaryDirectory(prefix="dynvm-bench-") as folder:
        for some, mode in jobs:
            workers = [Worker(name, mode, folder) for name in some]
            for worker in workers:
                worker.wait()
            for worker in workers:
                row = worker.measure()
                if row is None:
                    failed += 1
                    print(f"{worker.name:14} {mode:24} failed: {worker.errors()}", flush=True)
                    continue
                rows[worker.name, mode] = row
                print(f"{worker.name:14} {mode:24} skipped: {row['skipped']}" if "skipped" in row else line(worker.name, mode, row, rows.get((worker.name, "eager"))), flush=True)
                if arguments.json:
                    with open(arguments.json, "w", encoding="utf-8") as file:
                        json.dump([{"mode": mode, **row} for (_, mode), row in rows.items()], file)
    return 1 if failed else 0


class Worker:
    """A process that measures one workload in one mode. folder: for its files and caches."""

    def __init__(self, name, mode, folder):
        self.name = name
        self.words = tempfile.TemporaryFile("w+")
        program = [DYNVM, *(["--autotune"] if mode == TUNED else []), "--report", os.path.join(folder, f"{name}.json")] if mode.startswith("dynvm") else [PYTHON]
        self.process = subprocess.Popen([*program, os.path.abspath(__file__), "--worker", name, mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.words,
                                        text=True, env=with_caches(os.path.join(folder, name)))

    def find(self, beginning):
        """The rest of the next line that begins so; None where there is none before the time limit."""
        late = threading.Timer(TIME_LIMIT_S, self.process.kill)
        late.start()
        found = next((text[len(beginning):] for text in self.process.stdout if text.startswith(beginning)), None)
        late.cancel()
        return found

    def wait(self):
        """Until it is ready to measure, or has failed."""
        self.find("READY")

    def measure(self):
        """Its row, once it has ended; None where it failed."""
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        row = self.find("ROW ")
        try:
            self.process.wait(TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
        return json.loads(row) if row else None

    def errors(self):
        self.words.seek(0)
        return self.words.read()[-1500:]


if __name__ == "__main__":
    sys.exit(main())
