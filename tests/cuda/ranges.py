"""Kernels in NVTX ranges: `python tests/cuda/ranges.py` prints as JSON, for each range of the last iterations, the kernels that were queued in it.

A kernel was queued in a range if the call that queued it (cuLaunchKernel, cudaLaunchKernel, cudaGraphLaunch, ...) lies between the range's push and pop: what
profilers with NVTX show. CUPTI tells the calls, kernels and ranges; layouts and numbers are those of cupti_activity.h. Exit status 77 without a GPU or CUPTI.
"""
import ctypes
import json
import os
import struct
import subprocess
import sys
import tempfile

import torch

RUNTIME_CALL, DRIVER_CALL, KERNEL, RANGE_ENDS = 5, 4, 10, 12  # CUpti_ActivityKind
STEPS, LAST = 60, 10
# CUPTI's threads call these while others hold the interpreter's lock and wait for CUPTI, so they are no Python functions.
BUFFERS = """
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
enum { kBytes = 1 << 20, kMost = 256 };
uint8_t* full[kMost];
size_t valid[kMost];
atomic_int count;
void wanted(uint8_t** buffer, size_t* size, size_t* most) { *buffer = aligned_alloc(8, kBytes); *size = kBytes; *most = 0; }
void done(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t bytes) {
  int k = atomic_fetch_add(&count, 1);
  if (k < kMost) { full[k] = buffer; valid[k] = bytes; }
}
"""

calls, kernels, pushed, ranges = {}, [], {}, []


def built(folder):
    source, library = os.path.join(folder, "buffers.c"), os.path.join(folder, "buffers.so")
    with open(source, "w", encoding="utf-8") as file:
        file.write(BUFFERS)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", source, "-o", library], check=True)
    return ctypes.CDLL(library)


def text(address):
    return ctypes.string_at(address).decode() if address else ""


def take(record):
    def field(form, at):
        return struct.unpack(form, ctypes.string_at(record + at, struct.calcsize(form)))[0]

    kind = field("I", 0)
    if kind in (RUNTIME_CALL, DRIVER_CALL):
        calls.setdefault(field("I", 32), (field("Q", 8), field("Q", 16)))  # a driver's call inside of one of the runtime has its number
    elif kind == KERNEL:
        kernels.append((text(field("P", 104)), field("I", 92)))
    elif kind == RANGE_ENDS:
        if field("I", 4) & 2:  # its beginning
            pushed[field("I", 16)] = (text(field("P", 40)), field("Q", 8))
        else:
            ranges.append((*pushed.pop(field("I", 16)), field("Q", 8)))


def steps(x, w):
    for k in range(STEPS):
        torch.cuda.nvtx.range_push(f"chain {k}")
        y = torch.tanh(x * w + 1.0)
        torch.cuda.nvtx.range_pop()
        torch.cuda.nvtx.range_push(f"softmax {k}")
        z = torch.softmax(y, 1)
        torch.cuda.nvtx.range_pop()
        x = torch.exp(z) - y
    return x.sum().item()


def loaded_cupti():
    """The path of the CUPTI that came with torch; None: there is none."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return next((line.split()[-1] for line in maps if "/libcupti.so" in line), None)


if not torch.cuda.is_available() or loaded_cupti() is None:
    sys.exit(77)
os.environ["NVTX_INJECTION64_PATH"] = loaded_cupti()  # read at the first range
cupti = ctypes.CDLL(loaded_cupti())
steps(torch.ones(8, 8, device="cuda"), torch.ones(8, 8, device="cuda"))
with tempfile.TemporaryDirectory() as folder:
    buffers = built(folder)
if cupti.cuptiActivityRegisterCallbacks(buffers.wanted, buffers.done):
    sys.exit(77)
for kind in (RUNTIME_CALL, DRIVER_CALL, KERNEL, RANGE_ENDS):
    cupti.cuptiActivityEnable(kind)
torch.manual_seed(0)
steps(torch.randn(64, 256, device="cuda"), torch.randn(64, 256, device="cuda"))
torch.cuda.synchronize()
cupti.cuptiActivityFlushAll(1)
full, valid = (ctypes.c_void_p * 256).in_dll(buffers, "full"), (ctypes.c_size_t * 256).in_dll(buffers, "valid")
record = ctypes.c_void_p()
for k in range(ctypes.c_int.in_dll(buffers, "count").value):
    record.value = None
    while cupti.cuptiActivityGetNextRecord(ctypes.c_void_p(full[k]), ctypes.c_size_t(valid[k]), ctypes.byref(record)) == 0:
        take(record.value)
found = {name: [] for name, _, _ in ranges if int(name.split()[1]) >= STEPS - LAST}
outside = []
for name, number in kernels:
    begin, end = calls[number]
    around = [of for of, start, stop in ranges if start <= begin and end <= stop]
    if not around:
        outside.append(name)
    for of in around:
        if of in found:
            found[of].append(name)
print(json.dumps({"ranges": found, "outside": outside}))
