# torch.profiler around loops, started inside of one, and stepped by a schedule: traces run, and what they run has names there.
# expect: compiled>=0.1, traces>=3
import os

os.environ["KINETO_LOG_LEVEL"] = "99"

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

CPU = [ProfilerActivity.CPU]


def chain(x, w, times):
    for _ in range(times):
        x = torch.tanh(x @ w * 0.1 + 1.0)
    return x


def names(profiler):
    return {event.key: event.count for event in profiler.key_averages()}


def times_seen(found, operation):
    """By itself, or in a fused kernel, which is named after what it is made of."""
    return sum(count for name, count in found.items() if name == "aten::" + operation or name.startswith("dynvm::") and operation in name.split("::")[1].split("_"))


def seen(found, operation):
    return times_seen(found, operation) > 0


def whole_loop(w):
    x = chain(torch.ones(16, 16), w, 100)
    with profile(activities=CPU) as profiler:
        x = chain(x, w, 200)
    found = names(profiler)
    print(f"{x.sum().item():.4f}", found["aten::mm"], seen(found, "tanh"), seen(found, "sin"))


def large():
    """Kernels that may run on several threads have names too."""
    x = torch.ones(512, 768)
    for _ in range(60):
        x = torch.tanh(x * 0.5 + 1.0)
    with profile(activities=CPU) as profiler:
        for _ in range(40):
            x = torch.tanh(x * 0.5 + 1.0)
    print(f"{x.mean().item():.4f}", times_seen(names(profiler), "tanh"))


def inside(w):
    profiler = profile(activities=CPU)
    x = torch.ones(16, 16)
    for i in range(200):
        if i == 120:
            profiler.start()
        x = torch.sigmoid(x @ w - 0.5)
        if i == 150:
            profiler.stop()
    found = names(profiler)
    print(f"{x.sum().item():.4f}", found["aten::mm"], seen(found, "sigmoid"))


def training():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, y = torch.randn(32, 8), torch.randn(32, 1)
    ready = []
    with profile(activities=CPU, schedule=schedule(wait=60, warmup=5, active=20, repeat=2), on_trace_ready=lambda p: ready.append(names(p))) as profiler:
        for _ in range(200):
            with record_function("step"):
                optimizer.zero_grad()
                loss = torch.nn.functional.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()
            profiler.step()
    print(f"{loss.item():.4f}", len(ready), [found["step"] for found in ready], ["Optimizer.step#Adam.step" in found for found in ready])


def main():
    torch.manual_seed(0)
    w = torch.randn(16, 16)
    whole_loop(w)
    large()
    inside(w)
    training()


main()
