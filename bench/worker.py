"""One measurement: runs one case's step in this process and prints one line of JSON.

Usage:   python bench/worker.py CASE OUTPUT.json [--compile MODE] [--seconds S] [--groups N] [--threads N]
         dynvm bench/worker.py ... for dynvm: the script is the same.
Inputs:  bench/cases/CASE.py, whose make() gives the step and a list of batches, the tuples of arguments that it takes in turn,
         fixed by seed; for zoo/NAME a row of bench/zoo_models.py. Each step sees another batch than the one before and its result is kept
         for a round, in every mode: a step is never the same work twice, and never work that nobody sees.
Outputs: JSON with
           import_s   importing torch
           cold_us    time of each of the first COLD_STEPS steps, nothing run before
           groups_us  time per step of each group; a group is one plain loop over steps
           results    numbers that step COMPARED_STEP gave, MAX_RESULTS at most, for comparison between modes
           warm       dynvm's report when the warm-up was over; {} elsewhere
         The timed loops are plain Python on purpose: they are what dynvm traces.
Tests:   bench/run.py --quick
"""

import argparse
import importlib.util
import json
import os
import sys
import time
from time import perf_counter

COLD_STEPS = 60
COMPARED_STEP = 20  # few: training steps amplify rounding
WARM_UP_S = 0.5
MIN_STEPS = 64  # of a group: a loop must run for a while before it counts as the one to compile
MAX_RESULTS = 4096


def load_case(name):
    """(step, batches) of a case."""
    if name.startswith("zoo/"):
        import zoo_models
        return zoo_models.make(name.removeprefix("zoo/"))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases", name + ".py")
    spec = importlib.util.spec_from_file_location("case_" + name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # torch.compile looks it up
    spec.loader.exec_module(module)
    return module.make()


def dynvm_stats():
    """dynvm's report so far."""
    try:
        import dynvm
    except ImportError:
        return {}
    return dynvm.stats()


def numbers_of(result):
    """A tensor's elements, as Python numbers."""
    return result.detach().flatten()[:MAX_RESULTS].tolist()


def first_steps(step, batches, kept, count):
    """The microseconds of each of `count` steps, and what the last one gave."""
    times = []
    result = None
    for i in range(count):
        start = perf_counter()
        turn = i % len(batches)
        kept[turn] = result = step(*batches[turn])
        times.append((perf_counter() - start) * 1e6)
    return times, result


def group(step, batches, kept, count):
    """The microseconds per step over `count` steps."""
    start = perf_counter()
    for i in range(count):
        turn = i % len(batches)
        kept[turn] = step(*batches[turn])
    return (perf_counter() - start) * 1e6 / count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case")
    parser.add_argument("output")
    parser.add_argument("--compile", metavar="MODE")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--groups", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()

    start = perf_counter()
    import torch
    torch.set_num_threads(arguments.threads)
    import_s = perf_counter() - start

    step, batches = load_case(arguments.case)
    kept = [None] * len(batches)
    if arguments.compile:
        step = torch.compile(step, mode=arguments.compile)
    cold, result = first_steps(step, batches, kept, COMPARED_STEP)
    results = numbers_of(result)
    cold += first_steps(step, batches, kept, COLD_STEPS - COMPARED_STEP)[0]

    # Warm-up: until the time is over the count grows, so that the loop of `group` is itself compiled by then.
    count = MIN_STEPS
    per_step = group(step, batches, kept, count)
    end = perf_counter() + WARM_UP_S
    while perf_counter() < end:
        count = max(MIN_STEPS, int(0.1e6 / per_step))
        per_step = group(step, batches, kept, count)
    count = max(MIN_STEPS, int(arguments.seconds * 1e6 / arguments.groups / per_step))
    warm = dynvm_stats()
    groups = [group(step, batches, kept, count) for _ in range(arguments.groups)]

    with open(arguments.output, "w", encoding="utf-8") as file:
        json.dump({"import_s": import_s, "cold_us": cold, "groups_us": groups, "steps_per_group": count,
                   "results": results, "warm": warm, "torch": torch.__version__, "time": time.time()}, file)


if __name__ == "__main__":
    main()
