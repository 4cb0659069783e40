"""A loop whose device fails in its 41st iteration: `python tests/cuda/failing.py` prints in which iteration reading a number raised what. Exit status 77 without a GPU.

Run by tests/cuda/test_whole.py under python and under dynvm, where the loop is a trace by then.
"""
import os
import sys

import torch

if not torch.cuda.is_available():
    sys.exit(77)


def main():
    x = torch.ones(1000, device="cuda")
    for k in range(60):
        torch._assert_async(x[0] * (k - 40) != 0)
        try:
            if (x * k).amax().item() != k:
                print(k, "a wrong number")
        except RuntimeError as error:
            print(k, type(error).__name__, flush=True)
            os._exit(0)  # nothing works any more


main()
