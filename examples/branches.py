#!/usr/bin/env dynvm
"""A loop for docs/lab.md: it calls functions, has a loop of 20 rounds inside, and goes another way each third time and where data say so.

branches.py [ITERATIONS]

It measures the second half of the iterations itself, for `dynvm lab --measure half_us`.
"""

import sys
import time

import torch


def activate(x, scale):
    return torch.tanh(x * scale) + x * 0.96


def layers(x):
    for k in range(20):
        x = activate(x, 0.05)
    return x


def run(x, iterations):
    halved = 0
    for i in range(iterations):
        x = layers(x)
        if i % 3 == 0:
            x = x + torch.sin(x * i)
        if x.norm().item() > 30:
            x = x / 2
            halved += 1
    return x, halved


def main(iterations):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    half = iterations // 2
    x, halved = run(torch.randn(256), half)
    start = time.perf_counter()
    x, more = run(x, half)
    print(f"dynvm-lab: half_us {(time.perf_counter() - start) * 1e6 / half:.1f}")
    print(f"{iterations} iterations, halved {halved + more} times")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 6000)
