"""What these suites share: a small script with branches and calls, run by the installed dynvm, and its report."""

import json
import os
import unittest

from compare import CompareCase, ROOT, run

try:
    import torch  # noqa: F401
except ImportError:
    raise unittest.SkipTest("needs torch")

INSTALLED = os.path.join(ROOT, ".venv", "bin", "dynvm")
PLAIN = os.path.join(ROOT, ".venv", "bin", "python")
POLICIES = os.path.join(ROOT, "examples", "policies")
if not os.path.exists(INSTALLED):
    raise unittest.SkipTest("dynvm is not installed in .venv")

# Line 9 is the outer loop's, 6 the inner one's; each third iteration goes another way.
SCRIPT = """\
import torch
torch.set_num_threads(1)
def scaled(x, by):
    return torch.tanh(x * by) + x * 0.5
def layers(x):
    for k in range(20): x = scaled(x, 0.1)
    return x
def main(x, total=0.0):
    for i in range(300):
        x = layers(x) + 1
        if i % 3 == 0: x = x + torch.sin(x)
        total += x.mean().item()
    print(round(total, 1))
main(torch.ones(1024))
"""


class LabCase(CompareCase):
    _usual = _written = None

    def usual(self):
        """The report of SCRIPT without a policy, from one run for all tests."""
        if LabCase._usual is None:
            LabCase._usual = self.report("--heuristics=trial_after=0")  # a policy has no trials
        return LabCase._usual

    def dynvm(self, *arguments, status=0):
        """What `dynvm arguments` shows."""
        outcome = run(INSTALLED, list(arguments), cwd=self.folder, timeout=300)
        self.assertEqual(outcome.status, status, outcome)
        return outcome

    def report(self, *options, text=SCRIPT, stderr=""):
        """The report of a script of this text. Its output is that under plain python."""
        file, script = os.path.join(self.folder, "report.json"), os.path.join(self.folder, "script.py")
        if text != self._written:  # kept traces are those of a file that has not been written since
            self.script(text)
            self._written = text
        outcome, plain = self.dynvm(*options, f"--report={file}", script), run(PLAIN, [script])
        self.assertEqual(outcome.stdout, plain.stdout)
        if stderr is not None:
            self.assertEqual(outcome.stderr, stderr)
        with open(file, encoding="utf-8") as stream:
            return json.load(stream)
