"""--disable and --safe: each kind, each part and each pass is left out, which the report says, and the script shows what it shows under python."""

import json
import os
import re
import unittest

from bisect_case import BisectCase, INSTALLED, is_there
from compare import FULL, run, ROOT

if not is_there():
    raise unittest.SkipTest("dynvm is not installed in .venv, with torch")

# Something for each part that a CPU knows: a function that C calls, branches, sizes that change, hooks, views by numbers, a loop of short iterations, products,
# convolutions, library calls with and without out forms, an operation that fails now and then, large results, many guards.
PARTS = """\
import torch
torch.set_num_threads(2)
torch.manual_seed(0)
def step(x): return (x * 2 + 1).sum().item()
def main():
    total = sum(map(step, [torch.full((8,), float(k)) for k in range(60)]))
    x, big, m, order = torch.ones(16), torch.ones(400, 400), torch.eye(24), torch.arange(16.0)
    for k in range(400): x = x * 0.5 + 0.25
    total += x.sum().item()
    image, kernel = torch.ones(1, 64, 2, 2), torch.ones(64, 64, 3, 3) * 0.001
    rows = torch.arange(64.0).view(16, 4)
    w = torch.ones(16, requires_grad=True)
    w.register_hook(lambda grad: grad * 2)
    for i in range(90):
        y = torch.relu(x * i - 3)
        if i % 3 == 0: y = y + torch.sin(x)
        with torch.autograd.profiler.record_function("part"): z = torch.softmax(y, 0)
        loss = (w * y.detach()).sum()
        loss.backward()
        with torch.no_grad(): w -= 0.001 * w.grad
        w.grad = None
        m = torch.nn.functional.conv2d(image, kernel, padding=1)
        a = (big * 0.5 + i).cumsum(0)
        p = torch.mm(torch.eye(24) * i, torch.eye(24))
        total += z.sum().item() + rows[i % 16].sum().item() + m.mean().item() + p.trace().item() + a[0, 0].item() + torch.sort(order)[0][3].item()
        if y.numel() > 3 and x.dim() == 1: total += 1
    print(round(total, 2))
    for n in range(3, 60):
        v = torch.ones(n) * n
        total += (v * 2 + torch.arange(n)).sum().item() + torch.cat([v, v]).mean().item()
    print(round(total, 2))
    caught, t = 0, torch.arange(12.0)
    for i in range(60):
        try:
            u = t.narrow(0, i % 13, 1) + 1
            u = torch.nn.functional.one_hot(torch.tensor([i % 7]), 6).sum().item() + u.sum().item()
            total += u
        except (RuntimeError, IndexError): caught += 1
    print(caught, round(total, 2))
main()
"""
SHORT = """\
import torch
torch.set_num_threads(1)
def inner(x):
    return torch.tanh(x * 0.5) + 1
def main():
    x, total = torch.ones(8), 0.0
    for i in range(60):
        x = inner(x) - x.mean()
        total += x.sum().item()
    print(round(total, 3))
main()
"""
# Parts that only GPUs know.
GPU = {"graphs", "draws", "batches", "mirrors"}
# Those that are options too, or that another has to be there for.
TOGETHER = {"open": "sizes"}


def names(table, pattern):
    with open(os.path.join(ROOT, table), encoding="utf-8") as file:
        return re.findall(pattern, file.read(), re.M)


PART_NAMES = names("runtime/base/parts.def", r'^X\(k\w+,\s*"(\w+)"')
PASS_NAMES = names("ir/passes/passes.def", r"^X\((\w+),")


class Switches(BisectCase):
    def test_parts(self):
        """All parts but those that hide others are left out at once, then these."""
        hidden = set(TOGETHER) | GPU
        for group in ([name for name in PART_NAMES if name not in hidden], [name for name in TOGETHER]):
            _, report = self.outcome(PARTS, *(f"--disable=opt:{name}" for name in group))
            never = [name for name in group if not report["switches"].get(f"opt:{name}")]
            self.assertEqual(never, [], report["switches"])

    def test_each_pass(self):
        """Each by itself: what comes later does without."""
        for name in PASS_NAMES:
            with self.subTest(name=name):
                _, report = self.outcome(PARTS if FULL else SHORT, f"--disable=pass:{name}", "--hot=3")
                self.assertGreater(report["switches"][f"pass:{name}"], 0)
                self.assertGreater(len(report["traces"]), 0, report["aborts"])

    @unittest.skipUnless(FULL, "only with --full")
    def test_each_part(self):
        for name in PART_NAMES:
            with self.subTest(name=name):
                self.outcome(PARTS, f"--disable=opt:{name}")

    def test_an_operation_stays_torchs_own(self):
        _, usual = self.outcome(SHORT, "--hot=3")
        _, report = self.outcome(SHORT, "--hot=3", "--disable=op:aten::tanh")
        self.assertIn("tanh", " ".join(name for trace in usual["traces"] for name in trace["kernel_names"]))
        self.assertNotIn("tanh", " ".join(name for trace in report["traces"] for name in trace["kernel_names"]))
        self.assertIn("aten::tanh", [name for trace in report["traces"] for name in trace["operations"]])
        self.assertGreater(report["switches"]["op:aten::tanh"], 0)

    def test_an_operation_is_in_no_trace(self):
        _, report = self.outcome(SHORT, "--hot=3", "--disable=record:aten::tanh")
        self.assertNotIn("aten::tanh", [name for trace in report["traces"] for name in trace["operations"]])
        self.assertGreater(report["switches"]["record:aten::tanh"], 0)
        self.assertGreater(len(report["traces"]), 0)

    def test_a_kernel_becomes_its_operations(self):
        _, usual = self.outcome(SHORT, "--hot=3")
        for name in {name for trace in usual["traces"] for name in trace["kernel_names"]}:
            with self.subTest(name=name):
                _, report = self.outcome(SHORT, "--hot=3", f"--disable=kernel:{name}")
                self.assertNotIn(name, [made for trace in report["traces"] for made in trace["kernel_names"]])
                self.assertGreater(report["switches"][f"kernel:{name}"], 0)
                self.assertGreater(len(report["traces"]), 0)

    def test_a_loop_gets_no_traces(self):
        _, usual = self.outcome(SHORT, "--hot=3")
        lines = {trace["line"] for trace in usual["traces"]}
        self.assertEqual(len(lines), 1, usual["traces"])
        place = f"trace:script.py:{lines.pop()}"
        _, report = self.outcome(SHORT, "--hot=3", f"--disable={place}")
        self.assertEqual(report["traces"], [])
        self.assertGreater(report["switches"][place], 0)

    def test_what_never_comes_to_it_is_counted_as_that(self):
        _, report = self.outcome(SHORT, "--disable=trace:other.py:3,kernel:none")
        self.assertEqual(report["switches"], {"trace:other.py:3": 0, "kernel:none": 0})

    def test_no_traces_are_kept(self):
        cache = os.path.join(self.folder, "cache")
        self.outcome(SHORT, "--hot=3", f"--cache={cache}", "--disable=opt:unroll")
        self.assertFalse(os.path.exists(cache) and os.listdir(cache))

    def test_safe(self):
        """Traces, but no kernel, and every digit is eager's."""
        exact = PARTS.replace("round(total, 2)", "total.hex()")
        _, report = self.outcome(exact, "--safe")
        self.assertGreater(len(report["traces"]), 0)
        self.assertEqual([name for trace in report["traces"] for name in trace["kernel_names"]], [])
        self.assertGreater(report["switches"]["pass:fuse"], 0)
        self.assertGreater(report["tensor_ops_compiled"], report["tensor_ops_total"] / 3)

    def test_safe_and_more(self):
        _, report = self.outcome(SHORT, "--safe", "--disable=pass:cse", "--hot=3")
        self.assertGreater(report["switches"]["pass:cse"], 0)
        self.assertGreater(report["switches"]["pass:fuse"], 0)


class Words(BisectCase):
    def refused(self, *options, env=None):
        outcome = run(INSTALLED, [*options, "-c", "pass"], env=env)
        self.assertEqual((outcome.status, outcome.stdout), (2, ""), outcome)
        return outcome.stderr

    def test_unknown_names(self):
        self.assertEqual(self.refused("--disable=pass:fues").split(";")[:2], ["dynvm: --disable: there is no pass 'fues'", " near it: fuse"])
        self.assertIn("near it: pass:fuse", self.refused("--disable=fuse"))
        self.assertIn("near it: op:aten::add", self.refused("--disable=op:add"))
        self.assertIn("trace:FILE:LINE", self.refused("--disable=trace:x.py"))
        self.assertIn("DYNVM_DEFECT: no defect is called 'odd'", self.refused(env={"DYNVM_DEFECT": "odd"}))

    def test_an_operation_that_torch_does_not_have(self):
        outcome, report = self.outcome(SHORT, "--hot=3", "--disable=op:aten::tanhh", same=False)
        self.assertEqual(outcome.status, 0)
        self.assertIn("torch has no operation 'aten::tanhh'; near it: aten::tanh", outcome.stderr)
        self.assertIn("--disable=op:aten::tanhh", report["notes"])

    def test_help_lists_the_kinds(self):
        text = run(INSTALLED, ["--help"]).stdout
        for kind in names("runtime/base/switch_kinds.def", r'^X\(k\w+,\s*"(\w+)"'):
            self.assertIn(f" {kind}:", text)

    def test_they_may_be_given_in_the_environment_and_more_than_once(self):
        outcome, report = self.outcome(SHORT, "--disable=pass:cse", "--disable=opt:out", env={"DYNVM_OPTIONS": "--disable=opt:sides"})
        self.assertEqual(set(report["switches"]), {"pass:cse", "opt:out", "opt:sides"})

    def test_the_package_knows_the_tables(self):
        done = run(os.path.join(ROOT, ".venv", "bin", "python"), ["-c", "from dynvm import _library; print(_library.load().dynvm_switches().decode())"])
        tables = json.loads(done.stdout)
        self.assertEqual((list(tables["parts"]), list(tables["passes"])), (PART_NAMES, PASS_NAMES))


if __name__ == "__main__":
    unittest.main()
