"""Dropout on a GPU as kernels of our own (dropout.py): what eager gives, to the bit, and the generator where eager leaves it. Skipped without a GPU."""

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


class Dropout(unittest.TestCase):
    def lines(self, program):
        done = subprocess.run([*program, os.path.join(HERE, "dropout.py")], capture_output=True, text=True)
        if done.returncode == 77:
            self.skipTest("no CUDA device")
        self.assertEqual(done.returncode, 0, done.stdout[-1000:] + done.stderr[-3000:])
        return {name: rest for name, *rest in map(json.loads, done.stdout.splitlines())}

    def check(self, *options):
        expected = self.lines([PYTHON])
        with tempfile.TemporaryDirectory() as folder:
            report = os.path.join(folder, "report.json")
            got = self.lines([DYNVM, "--hot", "2", "--cache", "off", "--cuda-background", "off", "--report", report, *options])
            with open(report, encoding="utf-8") as file:
                facts = json.load(file)
        for name, values in expected.items():
            with self.subTest(name):
                self.assertEqual(got[name], values)
        print(f"{len(expected)} passed, 0 failed, 0 skipped", file=sys.stderr)
        return facts

    def test_same_to_the_bit(self):
        facts = self.check()
        self.assertNotIn("random numbers", facts["notes"])
        kernels = {trace["file"].removeprefix("dropout "): trace["kernels"] for trace in facts["traces"] if trace["file"].startswith("dropout ")}
        # Alone in its loop: what is compiled of it is a kernel.
        alone = [name for name in kernels if name.split(" ")[0] in ("f32", "f16", "bf16", "f64")]
        self.assertGreater(len(alone), 50, facts["aborts"])
        self.assertEqual([name for name in alone if kernels[name] == 0], [])
        self.assertEqual(kernels.get("of what the loop computes"), 1)

    def test_exits(self):
        self.check("--stress", "exit")


if __name__ == "__main__":
    unittest.main()
