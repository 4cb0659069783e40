"""Loops are measured with traces and without (tracer/trials.h): what a script prints stays what it is, whichever turn an iteration has, and the loop goes on the way that was found faster.

A loop that goes round in its trace arrives nowhere and is not measured, so each iteration here asks for its frame, which no trace holds. Method: the part of the traces' time that the interpreter may take decides the outcome whatever the times are.
"""

import json
import os
import unittest

from compare import CompareCase, DYNVM, PYTHON, run

try:
    import torch  # noqa: F401
except ImportError:
    raise unittest.SkipTest("needs torch")

LOST, WON = "trial_part=1000000", "trial_part=0"
SOON = "trial_after=8,trial_rounds=4,trial_quiet=1,trial_patience=2,trial_block=1,trial_pairs=2,trial_again=8"

BEGINNING = """
import sys
import threading
import torch
import torch.nn as nn
torch.set_num_threads(1)
torch.manual_seed(0)
x = torch.randn(8, 4)
"""

LOOP = BEGINNING + """
y = torch.zeros(8, 4)
for i in range(300):
    y = torch.tanh(y * 0.9 + x * i)
    sys._getframe()
print(y.sum().item())
"""

# Graphs, gradients and an optimizer's state go from iterations with traces to those without, and back.
TRAINING = BEGINNING + """
net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.1), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
total = torch.zeros(1)
for i in range(240):
    loss = (net(x) ** 2).mean()
    if i % 3 == 0:
        opt.zero_grad()
    loss.backward()
    opt.step()
    total = total * 0.5 + loss.detach()
    sys._getframe()
print(f"{total.item():.4f} {sum(p.abs().sum().item() for p in net.parameters()):.4f}", [p._version for p in net.parameters()], torch.rand(1).item())
"""

# Inner loops, functions and generators that are called in an iteration, one that ends early, and code behind the loop.
SHAPES = BEGINNING + """
def inner(y, n):
    for k in range(n):
        y = y * 0.5 + k
    return y

def rows(n):
    for k in range(n):
        yield x[k % 8] * k

def outer(n):
    y = torch.zeros(8, 4)
    for i in range(n):
        y = inner(y, i % 5 + 1) + sum(rows(3))
        sys._getframe()
        if y.max() > 1e6:
            break
    for i in range(n):
        y = torch.relu(y - i)
    return y

results = [outer(n).sum().item() for n in (40, 3, 80, 80, 80)]
print(results)
out = []
for i in range(200):
    try:
        if i % 7 == 3:
            raise KeyError(i)
        out.append(list(map(lambda k: (x[k] * i).sum().item(), range(3))))
    except KeyError as error:
        out.append(error.args)
print(out[:3], out[-3:])
"""

THREADS = BEGINNING + """
def work(scale, into):
    y = torch.zeros(8, 4)
    for i in range(1500):
        y = torch.tanh(y * scale + x)
        sys._getframe()
    into.append(y.sum().item())

results = []
threads = [threading.Thread(target=work, args=(0.1 * k, results)) for k in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sorted(round(each, 4) for each in results))
"""


class Trials(CompareCase):
    def report(self, source, *options):
        report = os.path.join(self.folder, "report.json")
        result = run(DYNVM, ["--cache=off", "--report", report, *options, self.script(source)])
        self.assertEqual(result.status, 0, result.stderr)
        with open(report, encoding="utf-8") as file:
            return result, json.load(file)

    def test_a_loop_that_loses_is_left_to_the_interpreter(self):
        result, report = self.report(LOOP, "--heuristics", LOST)
        self.assertEqual(len(report["trials"]["slower"]), 1)
        self.assertLess(report["tensor_ops_compiled"], report["tensor_ops_total"] / 2)
        self.assertIn("left alone", self.stats(LOOP, "--heuristics", LOST))

    def test_and_goes_on_with_traces_where_these_pay(self):
        result, report = self.report(LOOP, "--heuristics", WON)
        self.assertGreaterEqual(report["trials"]["made"], 1)
        self.assertEqual(report["trials"]["slower"], {})
        self.assertGreater(report["tensor_ops_compiled"], report["tensor_ops_total"] / 2)
        self.assertNotIn("left alone", self.stats(LOOP, "--heuristics", WON))

    def test_no_trials(self):
        for options in (("--heuristics", "trial_after=0"), ("--hot=3",), ("--stress=exit",), ("--jit=off",)):
            with self.subTest(options):
                self.assertEqual(self.report(LOOP, *options)[1]["trials"], {"made": 0, "slower": {}})

    def test_turns_change_nothing(self):
        for source in (LOOP, TRAINING, SHAPES, THREADS):
            for part in (LOST, WON):
                with self.subTest(source=source.splitlines()[8], part=part):
                    path = self.script(source)
                    expected = run(PYTHON, [path])
                    result, report = self.report(source, "--heuristics", f"{SOON},{part}")
                    self.assertEqual(self.rounded(result.stdout), self.rounded(expected.stdout))
                    self.assertGreater(report["trials"]["made"], 0)
                    self.assertEqual(bool(report["trials"]["slower"]), part == LOST)

    def stats(self, source, *options):
        return str(run(DYNVM, ["--cache=off", "--stats", *options, self.script(source)]).stderr)

    def rounded(self, text):
        def number(word):
            try:
                return f"{float(word):.4g}"
            except ValueError:
                return word
        return " ".join(number(word) for word in text.replace(",", " ").replace("[", " [ ").replace("]", " ] ").split())


if __name__ == "__main__":
    unittest.main()
