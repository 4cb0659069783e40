"""Scripts of whole loops on GPUs, under python and under dynvm: the same numbers within rounding. For the unittest files of this folder.

A script takes names of its cases and prints, for each, a line of JSON: its name and the numbers that its iterations gave. Exit status 77: too few GPUs, and the test is skipped.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
DYNVM = os.environ.get("DYNVM", os.path.join(ROOT, ".venv", "bin", "dynvm"))
PYTHON = os.environ.get("DYNVM_TEST_PYTHON", os.path.join(ROOT, ".venv", "bin", "python"))
RELATIVE, ABSOLUTE = 5e-3, 1e-4          # training amplifies rounding
BF16 = 5e-2


class Compared(unittest.TestCase):
    script = ""  # its name in this folder

    def numbers(self, program, names=()):
        done = subprocess.run([*program, os.path.join(HERE, self.script), *names], capture_output=True, text=True)
        if done.returncode == 77:
            self.skipTest("too few CUDA devices")
        self.assertEqual(done.returncode, 0, done.stdout[-1000:] + done.stderr[-3000:])
        return dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))

    def compiled(self, *options, names=(), background=False):
        """The numbers under dynvm, and the report's facts."""
        with tempfile.TemporaryDirectory() as folder:
            report = os.path.join(folder, "report.json")
            got = self.numbers([DYNVM, "--hot", "3", "--cache", "off", "--cuda-background", "on" if background else "off", "--report", report, *options], names)
            with open(report, encoding="utf-8") as file:
                return got, json.load(file)

    def compare(self, got, expected):
        for name, numbers in expected.items():
            with self.subTest(name):
                relative = BF16 if name.endswith("bf16") else RELATIVE
                self.assertEqual(len(got[name]), len(numbers))
                for k, (mine, theirs) in enumerate(zip(got[name], numbers)):
                    self.assertLessEqual(abs(mine - theirs), ABSOLUTE + relative * abs(theirs), f"{name}, number {k}: {mine} instead of {theirs}")
        print(f"{len(expected)} passed, 0 failed, 0 skipped", file=sys.stderr)

    def check(self, *options, names=(), background=False):
        """The report's facts."""
        expected = self.numbers([PYTHON], names)
        got, facts = self.compiled(*options, names=names, background=background)
        self.compare(got, expected)
        return facts
