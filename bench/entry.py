#!/usr/bin/env python3
"""What a compiled trace costs beside its operations: guards, entry and exit.

Usage:   dynvm bench/entry.py [--rounds N] [--device cuda]      (or python: eager's times of the same)
Outputs: one line for each pair, in microseconds, the least of all rounds; the rounds of a pair alternate.
           sequential - plain   100 modules Linear(8, 8) in an nn.Sequential, against the same products with the parameters at hand
           mapped - loop        `x + 1` in a function that C calls, a trace entered and left each time, against a loop that is inside one and makes the same objects;
                              once more with `x.add_(1)`, which makes none
         On a GPU: the host's time; the device is waited for before each run.
"""
import argparse
from collections import deque
from time import perf_counter

import torch

STEPS = 3000


def sequential(model, x):
    for _ in range(STEPS):
        y = model(x)
    return y


def plain(pairs, x):
    for _ in range(STEPS):
        y = x
        for weight, bias in pairs:
            y = torch.nn.functional.linear(y, weight, bias)
    return y


def increment(x):
    return x + 1


def same(x):
    return x


def mapped(function, items):
    deque(map(function, items), maxlen=0)


def loop(x):
    kept = [None, None]
    for i in range(STEPS):
        kept[i & 1] = x + 1  # an object with memory of its own each time, as what the function returns is
    return kept


def increment_in_place(x):
    return x.add_(1)


def loop_in_place(x):
    for _ in range(STEPS):
        x.add_(1)


def microseconds(function, *arguments):
    """The time of one step."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    start = perf_counter()
    function(*arguments)
    return (perf_counter() - start) / STEPS * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(100)]).to(arguments.device)
    pairs = [(layer.weight, layer.bias) for layer in model]
    x, items = torch.randn(4, 8).to(arguments.device), [torch.ones(8).to(arguments.device)] * STEPS
    cases = {"sequential": (sequential, model, x), "plain": (plain, pairs, x), "mapped": (mapped, increment, items), "loop": (loop, items[0]),
             "mapped in place": (mapped, increment_in_place, items), "loop in place": (loop_in_place, items[0]), "mapped identity": (mapped, same, items)}
    least = dict.fromkeys(cases, float("inf"))
    with torch.no_grad():
        for _ in range(arguments.rounds):
            for name, (function, *arguments) in cases.items():
                least[name] = min(least[name], microseconds(function, *arguments))
    for name, value in least.items():
        print(f"{name:16s} {value:8.3f} us")
    print(f"modules and their guards: {least['sequential'] - least['plain']:.3f} us")
    print(f"entry and exit: {least['mapped'] - least['mapped identity'] - least['loop']:.3f} us")
    print(f"entry and exit, in place: {least['mapped in place'] - least['mapped identity'] - least['loop in place']:.3f} us")


if __name__ == "__main__":
    main()
