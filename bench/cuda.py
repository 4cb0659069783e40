"""Workloads on a GPU: `python bench/cuda.py [--only A,B] [--compile]` runs each under eager, dynvm and (with --compile) torch.compile, and prints a table.

Each mode is a process of its own; times are milliseconds an iteration, by events around groups of iterations, median and minimum of 20 groups. The copy rate of
the device is measured in the same processes. Cold: from the first iteration until one takes at most 1.3 times the steady time, in seconds.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PYTHON = os.environ.get("DYNVM_TEST_PYTHON", os.path.join(ROOT, ".venv", "bin", "python"))
DYNVM = os.environ.get("DYNVM", os.path.join(ROOT, ".venv", "bin", "dynvm"))


def workloads():
    """name -> (step, bytes that an iteration must move at least, or None)."""
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    device = "cuda"

    def pointwise():
        n = 64 << 20
        x, w, b = (torch.randn(n, device=device) for _ in range(3))

        def step():
            return F.gelu(x * w + b) * torch.sigmoid(x) - torch.tanh(x)
        return step, 4 * 4 * n

    def layer_norm():
        x, residual = (torch.randn(8192, 4096, device=device, dtype=torch.bfloat16) for _ in range(2))
        norm = nn.LayerNorm(4096, device=device, dtype=torch.bfloat16)

        def step():
            with torch.no_grad():
                return F.gelu(norm(x + residual))
        return step, 3 * 2 * x.numel()

    def cross_entropy():
        logits = torch.randn(8192, 32000, device=device, dtype=torch.bfloat16, requires_grad=True)
        target = torch.randint(0, 32000, (8192,), device=device)

        def step():
            logits.grad = None
            loss = F.cross_entropy(logits, target)
            loss.backward()
            return loss
        return step, 2 * 2 * logits.numel()

    def mlp():
        model = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(1024, 1024), nn.GELU())]).to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        x, y = torch.randn(256, 1024, device=device), torch.randn(256, 1024, device=device)

        def step():
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss
        return step, None

    def lstm_loop():
        cell = nn.LSTMCell(256, 256).to(device)
        w_i, w_h, b_i, b_h = (p.detach() for p in (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh))
        xs = torch.randn(256, 32, 256, device=device)

        def step():
            h = c = torch.zeros(32, 256, device=device)
            for t in range(256):
                gates = F.linear(xs[t], w_i, b_i) + F.linear(h, w_h, b_h)
                i, f, g, o = gates.chunk(4, 1)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(c)
            return h
        return step, None

    def branches():
        layers = [nn.Linear(256, 256, device=device) for _ in range(10)]
        x0 = torch.randn(64, 256, device=device)

        def step():
            x = x0
            with torch.no_grad():
                for layer in layers:
                    x = layer(x)
                    x = torch.relu(x) if x.mean().item() > 0 else torch.tanh(x)
            return x
        return step, None

    return {f.__name__: f for f in (pointwise, layer_norm, cross_entropy, mlp, lstm_loop, branches)}


def run(step, at_least, seconds):
    """Seconds of single iterations, the device waited for after each; the last one's result."""
    import torch

    taken, begun = [], time.perf_counter()
    while len(taken) < at_least or (time.perf_counter() - begun < seconds and len(taken) < 3000):
        start = time.perf_counter()
        result = step()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return taken, result


def timed(step, iterations, of_group):
    """Milliseconds an iteration, of groups of iterations that follow each other without waiting; the last one's result."""
    import torch

    events = [torch.cuda.Event(enable_timing=True) for _ in range(iterations // of_group + 1)]
    for k in range(iterations):
        if k % of_group == 0:
            events[k // of_group].record()
        result = step()  # kept, so that it is computed each time
    events[-1].record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) / of_group for a, b in zip(events, events[1:])], result


def work(name, mode):
    import torch

    torch.manual_seed(0)
    step, moved = workloads()[name]()
    if mode.startswith("compile"):
        step = torch.compile(step, mode=None if mode == "compile" else mode.partition(":")[2])
    torch.cuda.synchronize()
    first, _ = run(step, 40, 1.5)
    steady = statistics.median(first[-5:])
    count = max(2, int(0.02 / steady))
    timed(step, 60, 10)  # the loop of the measurement gets its traces too
    groups, result = timed(step, 20 * count, count)
    a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    warm = next(k for k in range(len(first)) if all(t <= 1.3 * steady + 5e-5 for t in first[k : k + 3]))
    source = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    copies = []
    for _ in range(12):
        a.record()
        target.copy_(source)
        b.record()
        torch.cuda.synchronize()
        copies.append(2 * source.numel() / a.elapsed_time(b) / 1e6)
    value = result.detach().double().flatten()[:: max(1, result.numel() // 64)].tolist()
    row = {"median": statistics.median(groups), "min": min(groups), "cold": sum(first[:warm]), "copy": max(copies), "result": value,
           "peak": torch.cuda.max_memory_allocated() - source.numel() * 2, "gbs": moved / statistics.median(groups) / 1e6 if moved else None}
    print("ROW " + json.dumps(row))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="pointwise,layer_norm,cross_entropy,mlp,lstm_loop,branches")
    parser.add_argument("--compile", action="store_true", help="torch.compile too, in its default and reduce-overhead modes")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return work(*arguments.worker)
    modes = ["eager", "dynvm"] + (["compile", "compile:reduce-overhead"] if arguments.compile else [])
    for name in arguments.only.split(","):
        eager = None
        for mode in modes:
            report = f"/tmp/dynvm-cuda-{name}.json"
            program = [DYNVM, "--report", report] if mode == "dynvm" else [PYTHON]
            done = subprocess.run([*program, os.path.abspath(__file__), "--worker", name, mode], capture_output=True, text=True)
            rows = [line for line in done.stdout.splitlines() if line.startswith("ROW ")]
            if not rows:
                print(name, mode, "failed:", (done.stdout + done.stderr)[-1500:], flush=True)
                continue
            row = json.loads(rows[0][4:])
            eager = eager or row
            error = max((abs(p - q) for p, q in zip(row["result"], eager["result"])), default=0)
            text = f"{name:14} {mode:24} {row['median']:9.4f} ms (min {row['min']:.4f})  {eager['median'] / row['median']:6.2f}x eager  cold {row['cold']:6.2f} s  peak {row['peak'] / 1e6:7.1f} MB"
            if row["gbs"]:
                text += f"  {row['gbs']:6.0f} GB/s, {100 * row['gbs'] / row['copy']:.0f} % of copy"
            text += f"  difference {error:.2g}"
            if mode == "dynvm":
                facts = json.load(open(report))
                share = facts["tensor_ops_compiled"] / max(1, facts["tensor_ops_total"])
                text += f"  {100 * share:.1f} % compiled, kernels {max((t['kernels'] for t in facts['traces']), default=0)}, aborts {facts['aborts']} notes {facts['notes']}"
            print(text, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
