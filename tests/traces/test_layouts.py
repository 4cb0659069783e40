"""Images that lie channels last inside of traces (channels_last=2 does so on the CPU): scripts see what they saw, and traces did change them."""

import os
import re
import subprocess
import sys
import unittest

from compare import CompareCase, DYNVM, FULL, PYTHON, run

try:
    import torch  # noqa: F401
except ImportError:
    raise unittest.SkipTest("needs torch")

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = ("layouts_", "convnet", "batchnorm", "group_norm_and_pooling", "sizes_images", "views_escape", "hooks_of_results", "grad_modified")

NET = """
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
first, second = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.Conv2d(8, 8, 3)
x = torch.randn(2, 3, 8, 8)
with torch.no_grad():
    for k in range(30):
        y = torch.relu_(first(x * (1 + k)))
        z = second(y).mean((2, 3))
        if k == 25:
            print(y.stride(), y.view(2, -1)[:, 5].tolist())
print(z.stride(), z[0, :3].tolist())
"""


class Layouts(CompareCase):
    def suite(self, *options):
        done = subprocess.run([sys.executable, os.path.join(HERE, "run.py"), "--heuristics=channels_last=2", *options, *CASES], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:])

    def test_same(self):
        self.suite()

    def test_exits(self):
        self.suite("--stress")

    @unittest.skipUnless(FULL, "only with --full")
    def test_cached(self):
        self.suite("--cached")

    def test_the_trace_has_them(self):
        script = self.script(NET)
        expected = run(PYTHON, [script])
        for layout, changed in (("1", False), ("2", True)):
            got = run(DYNVM, ["--hot=3", "--cache=off", f"--heuristics=channels_last={layout}", "--dump=ir", script])
            self.assertEqual(got.status, 0, got)
            self.assertIn(expected.stdout.splitlines()[0].split("[")[0], got.stdout)
            self.assertEqual(bool(re.search(r"result .* f32\[2,8,8,8\]\{512,1,64,8\} s\d+ .*shown \{512,64,8,1\}", got.stdout + got.stderr)), changed, layout)


if __name__ == "__main__":
    unittest.main()
