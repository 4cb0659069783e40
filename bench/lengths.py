"""BERT-base with 64 sequence lengths, in random order, each four times: `dynvm --report FILE.json bench/lengths.py [numbers]`.

The tokens are there before the loop; with `numbers` each step makes its own, of a length that is a number of Python's.
Prints, of each length, how long its first run took in terms of the least of its next three: the median, the largest ones, and those above 1.5.
Needs `transformers` on PYTHONPATH (bench/zoo.py fetches it into build/zoo-VERSION).
"""
import random
import statistics
import sys
import time

import torch
import zoo_models

zoo_models.allow_torchvision()
from transformers import BertConfig, BertModel  # noqa: E402

REPEATS = 4


def main(lengths, numbers):
    random.Random(0).shuffle(lengths)
    torch.manual_seed(0)
    model = BertModel(BertConfig()).eval()
    batches = {length: torch.randint(0, 30000, (1, length)) for length in lengths}
    times = {}
    with torch.no_grad():
        for step in range(REPEATS * len(lengths)):
            length = lengths[step // REPEATS]
            tokens = torch.randint(0, 30000, (1, length)) if numbers else batches[length]
            start = time.perf_counter()
            model(tokens)
            times.setdefault(length, []).append(time.perf_counter() - start)
    print(f"sum of the least {sum(min(runs) for runs in times.values()):.3f} s, of the first runs {sum(runs[0] for runs in times.values()):.3f} s")
    ratios = sorted((runs[0] / min(runs[1:]), length) for length, runs in times.items())
    print(f"median {statistics.median(ratio for ratio, _ in ratios):.2f}")
    print("above 1.5:", ", ".join(f"{ratio:.2f} at {length}" for ratio, length in ratios if ratio > 1.5) or "none", f"of {len(ratios)}; largest {ratios[-1][0]:.2f}")


if __name__ == "__main__":
    torch.set_num_threads(2)
    main(list(range(32, 96)), sys.argv[1:] == ["numbers"])
