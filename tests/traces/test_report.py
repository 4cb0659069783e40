"""What the report says of a run with traces: residual operations, also of dropped traces, and time."""

import json
import os
import unittest

from compare import CompareCase, DYNVM, run

try:
    import torch  # noqa: F401
except ImportError:
    raise unittest.SkipTest("needs torch")

BEGINNING = """
import time
import torch
torch.set_num_threads(1)
"""

LOOP = BEGINNING + """
x = torch.ones(8)
for i in range(60):
    x = x * 0.5 + 1.0
    time.sleep(0.002)
"""

# Steps of training, with a loop around them that goes round a few times.
STEPS = BEGINNING + """
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(6):
    for x in torch.ones(40, 3, 6):
        opt.zero_grad()
        model(x).pow(2).mean().backward()
        opt.step()
"""

# The code of each round dies, and with it its trace.
DROPPED = BEGINNING + """
import types

def template():
    x = torch.ones(8)
    for i in range(30):
        x = x * 0.5 + 1.0
        time.sleep(0.002)

def call():
    types.FunctionType(template.__code__.replace(), globals())()

call(), call(), call(), call()
"""


# The loop over weights has its traces before a loop goes round it.
AROUND = BEGINNING + """
weights, start = [torch.eye(4) * 0.9 for _ in range(6)], torch.ones(2, 4)

def layers():
    x = start
    for w in weights:
        x = torch.tanh(x @ w)
    return x

def outer():
    for _ in range(300):
        layers()

list(map(lambda _: layers(), range(60)))
outer()
"""

# A variable's size is another one in each iteration.
GROWS = BEGINNING + """
def run(n):
    kept = torch.zeros(1, 8)
    for i in range(n):
        kept = torch.cat([kept, torch.tanh(kept[-1:] * 0.9 + 0.5)])
    return kept.sum().item()

run(300)
"""

# The inner loop runs in its trace in each iteration of the outer one, then in some.
ENDS_AT_INNER = BEGINNING + """
start = torch.ones(2, 4)

def step(inner):
    x = torch.tanh(start + 0.5) * 2
    if inner:
        for _ in range(80):
            x = x * 0.5 + 1.0
            x = torch.relu(x)
    return x

def outer(without):
    for k in range(600):
        step(k not in without)

outer(range(0))
outer(range(200, 400))
"""

# An inner loop that has a trace before the loop around it does, in a function that this one calls or in the same one.
BEFORE_INNER = BEGINNING + """
weights = [torch.eye(4) * 0.9 for _ in range(10)]

def steps(x, count):
    for _ in range(count):
        x = torch.relu(x * 0.5 + 1.0)
    return x

def outer(n, count):
    for k in range(n):
        x = torch.ones(2, 4)
        for w in weights:
            x = torch.tanh(x @ w) + 0.1
        if CALLS:
            x = steps(x, count)
        else:
            for _ in range(count):
                x = torch.relu(x * 0.5 + 1.0)

outer(2, 2000)
outer(60, 100)
"""

# Results of 32 MB, dropped at once; the recorded iteration makes 40 of them, through tuples of arguments, cells, methods and views.
DROPPED_RESULTS = """
import resource
import torch
torch.set_num_threads(1)

class Block(torch.nn.Module):
    def forward(self, x, *rest, **named):
        def halves():
            return x * 0.5
        y = halves().view(2, -1).reshape(-1)
        return y + 1.0

block = Block()
def forward(y):
""" + "    y = block(*(y,))\n" * 20 + """
    return y

x, before = torch.ones(8 << 20), 0
with torch.no_grad():
    for i in range(12):
        if i == 2:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        y = forward(x)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)  # MB
"""


COUNTED_WITHIN = """
import torch

NAMES = [f"name{k}" for k in range(8)]

def look(name):
    return name[-1]

def main():
    x = torch.ones(4)
    for step in range(60):
        if step > 2:
            sorted(NAMES, key=look)
        x = torch.tanh(x) * 2

main()
"""

SHORT = """
import torch

def main():
    x = torch.ones(4)
    for _ in range(1000):
        x = torch.tanh(x) * 0.9

main()
"""

WAYS = BEGINNING + """
import random

def pick():  # goes another way each time
    count = 0
    for _ in range(8):
        count += 1 if random.random() < 0.5 else 2
    return count

def main():
    x = torch.ones(60000)
    for i in range(1000):
        n = pick()
        for _ in range(6):
            x = torch.tanh(x * 0.99 + 0.01 * n)

random.seed(1)
main()
"""

UPDATES = """
import torch

values = [torch.ones(3 + k % KINDS, 2) for k in range(150)]

def update():
    for k, value in enumerate(values):
        value.mul_(0.9).add_(0.1).sub_(0.01 * k)

def outer():
    for _ in range(60):
        update()

outer()
"""


FILLED = """
import torch

def fill(sums, x, step):  # has many ways, and so side traces
    for k in range(4):
        x = torch.tanh(x * 1.01)
        for m in (2, 3, 5, 7, 11):
            if (step + k) % m == 0:
                x = x + 0.1
        sums["loss"] += x.sum().item()
        sums["most"] = max(sums["most"], sums["loss"])
    return x

def main():
    x, total = torch.ones(8), 0.0
    for step in range(200):
        sums = {"loss": 0.0, "most": 0.0}
        x = fill(sums, x, step)
        total += sums["most"]

main()
"""


class Report(CompareCase):
    def report_of(self, text, *options, env=None):
        file = os.path.join(self.folder, "r.json")
        outcome = run(DYNVM, ["--hot=2", f"--report={file}", "--stats", *options, self.script(text)], env=env)
        self.assertEqual(outcome.status, 0, outcome)
        with open(file, encoding="utf-8") as content:
            return json.load(content), outcome

    def test_residual_calls_have_counts_and_time(self):
        report, outcome = self.report_of(LOOP)
        stats = outcome.stderr
        calls = report["residual_calls"]["call time.sleep"]
        self.assertGreater(calls, 40)
        self.assertLessEqual(calls, 60)
        self.assertGreater(report["residual_ms"]["call time.sleep"], 1.9 * calls)
        self.assertEqual(next(iter(report["residual_ms"])), "call time.sleep")  # the most costly one first
        self.assertIn(f"call time.sleep {calls} in ", stats)
        self.assertEqual(stats.count("\n"), 12)

    def test_recording_holds_no_dropped_memory(self):
        report, outcome = self.report_of(DROPPED_RESULTS, "--hot=4", "--cache=off")
        traces = report["traces"]
        self.assertTrue(any(trace["tensor_ops"] >= 40 and trace["runs"] > 2 for trace in traces), traces)
        self.assertLess(int(outcome.stdout.split()[-1]), 400)

    def test_dropped_traces_are_counted(self):
        report, _ = self.report_of(DROPPED)
        calls = report["residual_calls"]["call time.sleep"]
        loops = [trace for trace in report["traces"] if trace["function"] == "template"]
        self.assertGreaterEqual(len(loops), 2)
        self.assertGreater(calls, len(loops) * 15)
        self.assertGreater(report["residual_ms"]["call time.sleep"], 1.9 * calls)

    def test_loops_around_traces(self):
        """Operations that all run in traces of an inner loop count as the outer one's, where they are not too many to be unrolled, and once the outer one has gone round long enough for that."""
        for most, pays, loops in ((256, 0, ["layers", "outer"]), (10, 0, ["layers"]), (256, 1000000, ["layers"])):
            report, _ = self.report_of(AROUND, "--cache=off", "--hot=0", f"--heuristics=hot_call=1000000,hot_defer=0,hot_defer_long=0,trial_after=0,around_traces={most},unroll_pays={pays}")
            self.assertEqual([loop["function"] for loop in report["loops"] if loop["function"] in ("layers", "outer")], loops)

    def test_steps_of_training_are_recorded_in_the_first_epoch(self):
        """They wait for no loop around them, and none unrolls them before it has gone round often."""
        report, _ = self.report_of(STEPS, "--cache=off")
        self.assertGreater(report["tensor_ops_compiled"], 0.8 * report["tensor_ops_total"])
        self.assertLess(max(trace["tensor_ops"] for trace in report["traces"]), 100)

    def test_dicts_that_each_iteration_makes_are_soon_known(self):
        """A loop that fills them takes one for a constant, and another one once more."""
        report, _ = self.report_of(FILLED, "--cache=off", f"--disable=trace:{os.path.basename(self.script(FILLED))}:17")
        self.assertLessEqual(report["aborts"].get("dict_changes", 0), 6, report["aborts"])

    def test_ways_that_part_inside_of_a_call_meet_behind_it(self):
        """Where recordings are taken for costly: one trace goes on from the call's end, whichever way was gone inside, in place of one for each way."""
        meeting, parting = (self.report_of(WAYS, "--cache=off", "--hot=0", f"--heuristics=costly=0,free_costly=1000000,max_parted={most}")[0] for most in (1, 1000000))
        self.assertGreater(meeting["tensor_ops_compiled"], 0.88 * meeting["tensor_ops_total"])
        self.assertLess(meeting["side_exits"], 0.75 * parting["side_exits"])

    def test_long_loops_over_other_sizes_are_unrolled(self):
        """More rounds than max_unroll are recorded where tensors have ever other sizes, not where a trace of the loop does for all of them."""
        for kinds, unrolled in ((5, True), (1, False)):
            report, _ = self.report_of(f"KINDS = {kinds}\n" + UPDATES, "--cache=off", "--heuristics=hot_call=1000000,hot_defer=100000000,hot_defer_long=100000000")
            self.assertEqual(max(trace["tensor_ops"] for trace in report["traces"]) >= 450, unrolled, report["traces"])
            self.assertEqual("loop_unrolled_too_often" in report["aborts"], not unrolled, report["aborts"])

    def test_operations_of_several_iterations_count_once(self):
        report, _ = self.report_of(SHORT, "--cache=off")
        self.assertIn(16, [trace["rounds"] for trace in report["traces"]])
        self.assertGreater(report["tensor_ops_compiled"], 1900)
        self.assertTrue(2000 <= report["tensor_ops_total"] <= 2010, report["tensor_ops_total"])
        self.assertTrue(all(loop["iterations"] <= 1001 for loop in report["loops"]), report["loops"])

    def test_an_iteration_is_counted_to_its_end(self):
        """A function whose operations are counted within the iteration of a loop whose are does not end that; without a report, which counts all the time."""
        outcome = run(DYNVM, ["--cache=off", "--log=trace", self.script(COUNTED_WITHIN)])
        self.assertEqual(outcome.status, 0, outcome)
        self.assertIn(" main: ", outcome.stderr)

    def test_no_recording_ends_twice_at_the_same_inner_loop(self):
        report, _ = self.report_of(ENDS_AT_INNER, "--cache=off")
        self.assertLessEqual(report["aborts"]["inner_loop_has_trace"], 2, report["aborts"])
        self.assertIn(("outer", 17), [(trace["function"], trace["line"]) for trace in report["traces"]])  # of the iterations without it

    def test_sizes_are_learned_while_kernels_are_compiled(self):
        """One trace for all sizes is waited for, not the one of the recording and then another of the next: each is 60 iterations late."""
        report, _ = self.report_of(GROWS, "--cache=off", env={"DYNVM_STRESS": "wait"})
        self.assertEqual((report["sizes"]["generic"], report["sizes"]["open"]), (1, 1), report["sizes"])
        self.assertGreater(report["tensor_ops_compiled"], 0.7 * report["tensor_ops_total"])

    def test_work_before_an_inner_loop_of_a_called_function_is_a_trace(self):
        for calls in (True, False):
            report, _ = self.report_of(f"CALLS = {calls}\n" + BEFORE_INNER, "--cache=off")
            self.assertEqual("inner_loop_begins" in report["aborts"], calls, report["aborts"])
            self.assertGreater(report["tensor_ops_compiled"], 0.97 * report["tensor_ops_total"])
            if calls:
                self.assertTrue(any(trace["function"] == "outer" and trace["tensor_ops"] == 31 and trace["runs"] > 40 for trace in report["traces"]), report["traces"])

    def test_time_of_traces(self):
        report, _ = self.report_of(LOOP)
        trace, = (trace for trace in report["traces"] if trace["function"] == "<module>" and trace["runs"])
        # An iteration sleeps at least 2 ms, in the interpreter and compiled.
        self.assertGreater(trace["interpreted_ms"], 2)
        self.assertGreater(trace["compiled_ms"], 2 * trace["runs"])
        saved = sum(t["interpreted_ms"] * t["rounds"] * (t["runs"] + t["partial_runs"]) - t["compiled_ms"] for t in report["traces"]
                    if t["interpreted_ms"] and t["compiled_ms"])
        self.assertAlmostEqual(report["time_saved_ms"], saved, places=6)


if __name__ == "__main__":
    unittest.main()
