"""--log and --dump: each row of log_categories.def and dump_stages.def prints what its sentence says, with the places of the script."""

import os
import re
import unittest

from compare import ROOT, row_names
from inspect_case import INSTALLED, InspectCase, run, torch

# Line 9 is a loop with a branch, 17 one that is cut, 24 one for the interpreter's machine code.
SCRIPT = """\
import sys
import torch
torch.set_num_threads(1)

def helper(x):
    return x * 2
def train(n):
    x = torch.ones(4)
    for i in range(n):
        x = torch.relu(helper(x) * 0.5 + 1.0)
        if i % 10 == 9:
            x = x - 1
    return x

def frames(n):
    x = torch.ones(4)
    for i in range(n):
        x = x + 1
        sys._getframe()
    return x

def plain(n):
    total = 0
    for i in range(n):
        total += i * 3 + 1
    return total

print(train(100).sum().item(), frames(40).sum().item(), plain(20000))
"""
POLICY = """
class Policy:
    def inline(self, facts): return True
"""
LINES = {
    "trace": (r"recording FILE:9$", r"recording FILE:10 \(side trace\)$", r"trace 1 script\.py:9 train: \d+ instructions, 4 tensor operations, 1 kernels; made in [\d.]+ ms, compiled in [\d.]+ ms$"),
    "exit": (r"FILE:11: trace 1 is left, guard_false %\d+: i % 10 == 9 holds this time, 3 times$", r"FILE:9: trace 1 is left, guard_bound %\d+: has ended or is not there, 1 times$"),
    "abort": (r"FILE:17 frame_introspection sys\._getframe, in frames line 19 at Call; the trace ends there$",),
    "guard": (r"%\d+ guard_type at FILE:9$", r"%\d+ guard_false at FILE:11$"),
    "compile": (r"trace 1 script\.py:9 train: [\d.]+ ms for \d+ instructions, \d+ bytes of machine code, kernels mul_mul_add_relu$",),
    "cache": (r"trace 1 script\.py:9 train is kept: \d+ bytes in [\d.]+ ms$", r"trace 1 script\.py:9 train: read$", r"train:9: 1 traces in [\d.]+ ms$"),
    "policy": (r"inline: yes \(file FILE, line 10, name __main__\.helper, depth 1, .*default yes\)$",),
}


class Printed(InspectCase):
    def stderr(self, *options):
        """What dynvm writes while SCRIPT, the same file each time, prints what it prints under python."""
        path = os.path.join(self.folder, "script.py")
        if not os.path.exists(path):
            self.script(SCRIPT)
        outcome = run(INSTALLED, [*options, path])
        self.assertEqual((outcome.status, outcome.stdout), (0, "364.0 164.0 599990000\n"), outcome)
        return outcome.stderr


class Logs(Printed):
    def test_each_category(self):
        self.assertEqual(list(LINES), row_names("log_categories.def"))
        cache = os.path.join(self.folder, "cache")
        os.mkdir(cache, 0o700)
        said = self.stderr("--log=all", f"--cache={cache}") + self.stderr("--log=all", f"--cache={cache}")
        said += self.stderr("--log=all", "--cache=off", f"--policy={self.script(POLICY, 'mine.py')}")
        self.assertEqual([line for line in said.splitlines() if not re.match(rf"\[({'|'.join(LINES)})\] \S", line)], [])
        for name, patterns in LINES.items():
            for pattern in patterns:
                with self.subTest(category=name, pattern=pattern):
                    self.assertRegex(said, rf"(?m)^\[{name}\] " + pattern.replace("FILE", re.escape(os.path.join(self.folder, "script.py"))))

    def test_one_alone(self):
        for name in ("trace", "exit", "abort", "guard", "compile"):
            with self.subTest(category=name):
                self.assertEqual({line.split()[0] for line in self.stderr(f"--log={name}").splitlines()}, {f"[{name}]"})


class Dumps(Printed):
    """{stage: [(title, text)]} of SCRIPT, and what each stage's text has to be."""

    def dumped(self, *options):
        found = {}
        for piece in re.split(r"^--- ", self.stderr(*options), flags=re.M)[1:]:
            head, text = piece.split("\n", 1)
            stage, title = head.split(": ", 1)
            found.setdefault(stage, []).append((title, text))
        return found

    def test_each_stage(self):
        stages = set(row_names("dump_stages.def"))
        found = self.dumped("--dump=" + ",".join(sorted(stages - {"pairs"})))
        found |= self.dumped("--dump=pairs")  # with which nothing becomes native
        self.assertEqual(set(found), stages - {"cuda"})
        for stage in sorted(found):
            with self.subTest(stage=stage):
                getattr(self, f"check_{stage}")(found[stage])

    @unittest.skipUnless(torch.cuda.is_available(), "no CUDA device")
    def test_cuda(self):
        outcome = run(INSTALLED, ["--dump=cuda", self.script("import torch\nx = torch.ones(64, device='cuda')\nfor i in range(60): x = torch.relu(x * 0.5 + 1)\nprint(x[0].item())")])
        self.assertEqual((outcome.status, outcome.stdout), (0, "2.0\n"), outcome)
        name = re.match(r"--- cuda: (\w*mul_add_relu\w*)\n", outcome.stderr)
        self.assertIsNotNone(name, outcome)
        self.assertRegex(outcome.stderr, rf'(?m)^extern "C" __global__ void .*{name[1]}\(')

    def check_bytecode(self, dumps):
        texts = dict(dumps)
        self.assertTrue({"train", "helper", "frames"} <= set(texts), texts.keys())
        self.assertRegex(texts["helper"], r"(?m)^ *\d+ LoadFast 0$")
        self.assertRegex(texts["train"], r"(?m)^ *\d+ ForIter \d+ to \d+$")

    def check_ir(self, dumps):
        titles = [title for title, _ in dumps if title.startswith("script.py:9 train ")]
        self.assertEqual((titles[0], titles[-1]), ("script.py:9 train recorded", "script.py:9 train optimised"))
        with open(os.path.join(ROOT, "ir", "passes", "passes.def"), encoding="utf-8") as file:
            passes = set(re.findall(r'^X\((\w+)', file.read(), re.M))
        between = [re.fullmatch(r"script\.py:9 train after (\w+)", title)[1] for title in titles[1:-1]]
        self.assertIn("fuse", between)
        self.assertEqual(set(between) - passes, set())
        texts = dict(dumps)
        recorded, fused = texts[titles[0]], texts["script.py:9 train after fuse"]
        self.assertRegex(recorded, r'(?m)^%\d+ = aten "aten::relu" \(%\d+\) -> \(f32\[4\]')
        self.assertNotRegex(recorded, r"(?m)^%?\d* ?=? ?kernel k0 ")
        self.assertRegex(fused, r"kernel k0 \(%")
        self.assertRegex(fused, r'(?m)^kernel k0 "mul_mul_add_relu" ')
        changed = [texts[title] for title in titles[:-1]]
        self.assertTrue(all(before != after for before, after in zip(changed, changed[1:])), "a pass is shown where it changed something")

    def check_asm(self, dumps):
        text = dict(dumps)["script.py:9 train"]
        self.assertRegex(text, r"(?m)^push rbx$")
        self.assertRegex(text, r"(?m)^  ; (%\d+ = )?kernel k0 \(%")
        self.assertRegex(text, r"(?m)^call ")

    def check_native(self, dumps):
        text = next(text for title, text in dumps if title == f"plain in {self.folder}/script.py")
        self.assertRegex(text, r"(?m)^\d+ > ForIterRange\* \d+ -> \d+$")
        self.assertRegex(text, r"(?m)^\d+   JumpBackward \d+ -> \d+$")

    def check_pairs(self, dumps):
        (title, text), = dumps
        self.assertEqual(title, "executed instructions")
        number = int(re.match(r"(\d+) instructions ", text)[1])
        self.assertGreater(number, 20000)
        for part in ("forms:", "pairs:", "operands of generic forms:"):
            self.assertRegex(text, rf"(?m)^{part}\n +\d+ +[\d.]+ %  \w+")


if __name__ == "__main__":
    unittest.main()
