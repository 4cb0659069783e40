"""What these suites share: a script that imports dynvm, run by the installed dynvm with and by plain python."""

import os
import textwrap
import unittest

from compare import CompareCase, ROOT, run

try:
    import torch  # noqa: F401
except ImportError:
    raise unittest.SkipTest("needs torch")

INSTALLED = os.path.join(ROOT, ".venv", "bin", "dynvm")
PLAIN = os.path.join(ROOT, ".venv", "bin", "python")
if not os.path.exists(INSTALLED):
    raise unittest.SkipTest("dynvm is not installed in .venv")


class InspectCase(CompareCase):
    def shown(self, text, *options, program=INSTALLED, stderr=""):
        """Standard output of a script of this text. stderr: what it has to write there; None: anything."""
        outcome = run(program, [*options, self.script("import torch\nimport dynvm\ntorch.set_num_threads(1)\n" + textwrap.dedent(text))])
        self.assertEqual(outcome.status, 0, outcome)
        if stderr is not None:
            self.assertEqual(outcome.stderr, stderr, outcome)
        return outcome.stdout

    def holds(self, text, *options):
        """The script runs to its end: what it asserts holds."""
        self.assertEqual(self.shown(text + "\nprint('to the end')", *options), "to the end\n")
