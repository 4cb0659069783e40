"""A loop whose device fails in its 41st iteration: `python tests/cuda/failing.py HOW` prints in which iteration reading a number raised what. Exit status 77 without a GPU.

HOW: by an assertion of the script's, or an index out of bounds (FAILING).

Run by tests/cuda/test_whole.py under python and under dynvm, where the loop is a trace by then.
"""
import os
import sys

import torch
import torch.nn.functional as F

if not torch.cuda.is_available():
    sys.exit(77)


FAILING = {
    "assertion": lambda table, index, k: torch._assert_async(table[0, 0] * (k - 40) != 0),
    "embedding": lambda table, index, k: F.embedding(index, table),
    "index_select": lambda table, index, k: table.index_select(0, index),
    "gather": lambda table, index, k: table.gather(0, -index.view(1, 1)),
    "index": lambda table, index, k: table[-index],
    "scatter": lambda table, index, k: table.scatter(0, index.view(1, 1), 1.0),
    "index_add": lambda table, index, k: table.index_add(0, -index, table[:1], alpha=0),
    "index_put": lambda table, index, k: table.index_put((-index,), table[:1]),
}


def main(fail):
    x, table, count = torch.ones(1000, device="cuda"), torch.ones(10, 8, device="cuda"), torch.zeros(1, dtype=torch.int64, device="cuda")
    for k in range(60):
        try:
            count += 1
            rows = fail(table, (count > 40).long() * 11, k)
            if (x * k if rows is None else x * rows.amax() * k).amax().item() != k:
                print(k, "a wrong number")
        except RuntimeError as error:
            print(k, f"{type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
            os._exit(0)  # nothing works any more


main(FAILING[sys.argv[1]])
