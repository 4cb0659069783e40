"""What this machine can do at most: the roof that kernels' times are compared with.

Memory: the rate of copying, measured with as many threads as there are processors; reading and writing count. Arithmetic: the processors' nominal
rate of f32 multiply-adds, from their clock and the width of their vectors. Tests: tests/profile/test_model.py.
"""

import ctypes
import os
import re
import threading
import time

SIZE = 32 << 20
REPEATS = 3


def copy_rate(threads):
    """Bytes per second."""
    buffers = [(ctypes.create_string_buffer(SIZE), ctypes.create_string_buffer(SIZE)) for _ in range(threads)]
    best = float("inf")
    for _ in range(REPEATS + 1):  # the first one makes the pages
        workers = [threading.Thread(target=ctypes.memmove, args=(to, source, SIZE)) for to, source in buffers]  # without the GIL
        start = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        best = min(best, time.perf_counter() - start)
    return 2 * SIZE * threads / best


def processor():
    """(name, GHz, f32 operations per cycle and processor)."""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        text = file.read()
    name = re.search(r"^model name\s*: (.*)$", text, re.M)
    clocks = [float(mhz) for mhz in re.findall(r"^cpu MHz\s*: ([\d.]+)$", text, re.M)]
    flags = re.search(r"^flags\s*: (.*)$", text, re.M)
    wide = flags is not None and "avx512f" in flags.group(1).split()
    return name.group(1) if name else "?", (max(clocks) if clocks else 2000.0) / 1000, 64 if wide else 32


def measure():
    threads = len(os.sched_getaffinity(0))
    name, ghz, per_cycle = processor()
    return {"processor": name, "threads": threads, "bytes_per_s": copy_rate(threads), "flops_per_s": threads * ghz * 1e9 * per_cycle}


def fraction(machine, milliseconds, moved, computed):
    """The least time that moving and computing so much takes on this machine, as a share of the time it took; None: not known."""
    if milliseconds <= 0 or not machine or (moved <= 0 and computed <= 0):
        return None
    least = max(moved / machine["bytes_per_s"], computed / machine["flops_per_s"])
    return 1000 * least / milliseconds
