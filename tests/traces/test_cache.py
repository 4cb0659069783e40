"""The trace cache: a second process enters the traces of the first without recording, and only where all that they rely on is the same."""

import concurrent.futures
import glob
import json
import os
import subprocess
import unittest

from compare import DYNVM, PYTHON, CompareCase, environment, run

try:
    import torch  # noqa: F401
except ImportError:
    raise unittest.SkipTest("needs torch")

SCRIPT = """
import collections
import enum
import sys
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
what = sys.argv[1] if len(sys.argv) > 1 else ""

class Mode(enum.Enum):
    A = 1
    B = 2

class Block(torch.nn.Module):
    slope = 0.5
    def __init__(self, scale=2.0):
        super().__init__()
        self.inner = torch.nn.Linear(6, 6)
        self.scale = scale
        self.mode = Mode.A
        self.weights = (1.0, 2.0)
        self.steps = [lambda x: x + 1, torch.relu]
        self.after = None
    def forward(self, x, k=3):
        y = self.inner(x) * self.scale + k
        y = y * self.slope if self.mode is Mode.A else y - self.slope
        for step in self.steps:
            y = step(y)
        if self.after is not None:
            y = self.after(y)
        return helper(y) * self.weights[1]

missing, other = object(), object()
flag = missing
def helper(x):
    return x.sin() if flag is missing else x.cos()
def closing(n):
    def add(x):
        return x + n
    return add
extra = closing(1.0)
class Holder:
    def __init__(self, n): self.n = n
    def work(self, x): return x * self.n
first, second = Holder(1.5), Holder(2.5)
method = first.work
table = {"a": 1.0, "b": 2.0}
def annotated(x: 1.5, y: 2): pass
marks = collections.OrderedDict(a=1)
marks.shift = 0.5

net = torch.nn.Sequential(Block(), Block(3.0))
state = collections.defaultdict(lambda: {"gain": 2.0})
for parameter in net.parameters():
    state[parameter] = {"gain": 1.0 + 0.25 * parameter.ndim}
sizes = (4, 6)
if what == "number": net[0].scale = 7.0
if what == "enum": net[1].mode = Mode.B
if what == "sentinel": flag = other
if what == "function": helper = lambda x: x.tanh()
if what == "class": Block.slope = 0.25
if what == "forward": Block.forward = lambda self, x: self.inner(x)
if what == "instance": net[0].forward = lambda x: x - 1
if what == "default": Block.forward.__defaults__ = (5,)
if what == "list": net[0].steps = net[0].steps[1:]
if what == "tuple": net[1].weights = (1.0, 4.0)
if what == "closure": extra = closing(2.0)
if what == "method": method = second.work
if what == "object": first.n = 3.5
if what == "dict": table["b"] = 3.0
if what == "keys": table["c"] = 5.0
if what == "order": table = {"b": 2.0, "a": 1.0}
if what == "layers": net.append(Block())
if what == "module": net[1] = torch.nn.Tanh()
if what == "after": net[0].after = torch.exp
if what == "hook": net[0].register_forward_hook(lambda m, i, o: o * 2)
if what == "training": net[0].inner = torch.nn.Sequential(net[0].inner, torch.nn.Dropout(0.5)).train()
if what == "sizes": sizes = (5, 6)
if what == "dtype": net, dtype = net.double(), torch.float64
if what == "default_dtype": torch.set_default_dtype(torch.float64); net = net.double()
if what == "frozen": net.requires_grad_(False)
if what == "annotation": annotated.__annotations__["y"] = 4
if what == "mark": marks.shift = 1.5
if what == "item": marks["a"] = 2
if what == "state": state[next(net.parameters())]["gain"] = 3.0
if what == "states": state[next(net.parameters())] = {"gain": 4.0}
if what == "builtin": len = lambda x: 17

def main():
    x = torch.randn(sizes).to(next(net.parameters(), torch.zeros(1)).dtype)
    total = 0.0
    with torch.no_grad():
        for i in range(30):
            y = extra(method(net(x)))
            for name, value in table.items():
                y = y * value + len(name)
            for parameter in net.parameters():
                y = y * state[parameter]["gain"] + marks.shift + marks["a"]
            for value in annotated.__annotations__.values():
                y = y - value
            total += y.abs().mean().item()
    print(f"{total:.5g}", y.shape, y.dtype)

main()
"""

CHANGES = ["number", "enum", "sentinel", "function", "class", "forward", "instance", "default", "list", "tuple", "closure", "method", "object", "dict", "keys",
           "order", "layers", "module", "after", "hook", "training", "sizes", "dtype", "default_dtype", "frozen", "annotation", "mark", "item", "state", "states", "builtin"]

# Sizes that grow from token to token, objects that each call makes, a signature that is asked for.
GROWING = """
import inspect
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
layer = torch.nn.Linear(8, 8)

class Store:
    def __init__(self, x): self.x = x
    def add(self, x, scale=1.0):
        self.x = torch.cat([self.x, x * scale])
        return self.x

def generate(n):
    store = Store(torch.randn(n, 8))
    with torch.no_grad():
        for i in range(200):
            if "scale" in inspect.signature(store.add).parameters:
                x = store.add(layer(store.x[-1:]), scale=0.9)
            y = torch.tanh(x).sum(0)
    return y.sum().item()

def main():
    total = 0.0
    for k in range(3):
        total += generate(3 + k % 2)
    print(f"{total:.4g}")

main()
"""


class Cache(CompareCase):
    def setUp(self):
        super().setUp()
        self.cache = os.path.join(self.folder, "cache")
        self.path = self.script(SCRIPT)

    def run_cached(self, *args, path=None):
        """(output, report)"""
        file = os.path.join(self.folder, "r.json")
        outcome = run(DYNVM, [f"--report={file}", f"--cache={self.cache}", path or self.path, *args], env={"OMP_NUM_THREADS": "1"})
        self.assertEqual(outcome.status, 0, outcome)
        with open(file, encoding="utf-8") as content:
            return outcome.stdout, json.load(content)

    def fill(self):
        """Runs until there is nothing more to keep: a process spends little time on that. The last output and report."""
        for _ in range(8):
            output, report = self.run_cached()
            if not report["cache"]["kept"]:
                break
        return output, report

    def expected(self, *args, path=None):
        outcome = run(PYTHON, [path or self.path, *args], env={"OMP_NUM_THREADS": "1"})
        self.assertEqual(outcome.status, 0, outcome)
        return outcome.stdout

    def files(self):
        return [file for file in glob.glob(os.path.join(self.cache, "*", "*")) if os.path.isfile(file)]

    def test_the_next_process_records_nothing(self):
        expected = self.expected()
        output, report = self.run_cached()
        self.assertEqual(output, expected)
        self.assertGreater(report["recordings"], 0)
        self.assertGreater(report["cache"]["kept"], 0)
        output, report = self.fill()
        self.assertEqual(output, expected)
        self.assertGreater(report["cache"]["loaded"], 0)
        self.assertEqual(report["recordings"], 0)
        self.assertEqual(report["cache"]["kept"], 0)
        self.assertGreater(report["tensor_ops_compiled"], 0.9 * report["tensor_ops_total"])

    def test_a_trace_for_all_sizes_is_kept(self):
        self.path = self.script(GROWING, "growing.py")
        expected = self.expected()
        self.assertGreater(self.run_cached()[1]["sizes"]["generic"], 0)
        output, report = self.fill()
        self.assertEqual(output, expected)
        self.assertGreaterEqual(report["cache"]["loaded"], 2)
        self.assertEqual((report["sizes"]["generic"], report["sizes"]["made"]), (0, 0), "no recording with sizes as numbers")
        self.assertGreater(report["tensor_ops_compiled"], 0.8 * report["tensor_ops_total"])

    def test_whatever_has_changed_is_seen(self):
        self.fill()
        before = self.expected()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            expected = dict(zip(CHANGES, pool.map(self.expected, CHANGES)))
        for change in CHANGES:
            with self.subTest(change):
                if change not in ("frozen", "keys"):
                    self.assertNotEqual(expected[change], before, "the change cannot be seen")
                self.assertEqual(self.run_cached(change)[0], expected[change])
        self.assertEqual(self.run_cached()[0], before)

    def test_what_did_not_fit_stays(self):
        """Scripts that share a loop keep traces for it beside each other."""
        expected = self.fill()[0]
        for _ in range(3):
            report = self.run_cached("layers")[1]
        self.assertGreater(report["cache"]["refused"], 0)
        output, report = self.run_cached()
        self.assertEqual((output, report["recordings"]), (expected, 0))

    def test_a_changed_source_is_read_again(self):
        self.fill()
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(SCRIPT.replace("y = step(y)", "y = step(y) * 2"))
        self.assertEqual(self.run_cached()[0], self.expected())

    def test_damaged_files_are_refused(self):
        expected = self.fill()[0]
        for file in self.files():
            with open(file, "rb") as content:
                whole = content.read()
            with open(file, "wb") as content:
                content.write(whole[:len(whole) // 2])
        output, report = self.run_cached()
        self.assertEqual(output, expected)
        self.assertIn("is damaged", report["notes"]["trace cache"])
        self.assertGreater(report["recordings"], 0)
        output, report = self.fill()
        self.assertEqual((output, report["recordings"]), (expected, 0), "what was damaged has been replaced")

    def test_folders_that_others_can_write_are_refused(self):
        expected = self.run_cached()[0]
        for folder in glob.glob(os.path.join(self.cache, "*")):
            os.chmod(folder, 0o777)
        output, report = self.run_cached()
        self.assertEqual(output, expected)
        self.assertIn("may be written by others", report["notes"]["trace cache"])
        self.assertEqual((report["cache"]["loaded"], report["cache"]["kept"]), (0, 0))

    def test_processes_at_the_same_time(self):
        expected = self.expected()
        command = [DYNVM, f"--cache={self.cache}", self.path]
        variables = environment({"OMP_NUM_THREADS": "1"})
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, env=variables, text=True) for _ in range(4)]
        for process in running:
            self.assertEqual(process.communicate(timeout=120)[0], expected)
            self.assertEqual(process.returncode, 0)
        output, report = self.fill()
        self.assertEqual((output, report["recordings"]), (expected, 0))

    def test_off(self):
        self.cache = "off"
        expected = self.expected()
        for _ in range(2):
            output, report = self.run_cached()
            self.assertEqual(output, expected)
            self.assertEqual((report["cache"]["loaded"], report["cache"]["kept"]), (0, 0))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "off")))
