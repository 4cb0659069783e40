"""--autotune: kernels of all forms in the shapes that timing chose compute what eager does; what was found is read in the next start; not under deterministic algorithms. But for the CPU's part
skipped without a GPU."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from comparing import DYNVM, HERE, PYTHON


class Autotune(unittest.TestCase):
    def run_script(self, program, *words):
        done = subprocess.run([*program, os.path.join(HERE, "autotuned.py"), *words], capture_output=True, text=True)
        if done.returncode == 77:
            self.skipTest("no CUDA device")
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return json.loads(done.stdout.splitlines()[-1])

    def tuned(self, folder, *words):
        """What dynvm gives with caches in the folder, and the report's counts."""
        report = os.path.join(folder, "report.json")
        got = self.run_script([DYNVM, "--hot", "3", "--autotune", "--cache", os.path.join(folder, "cache"), "--report", report], *words)
        with open(report, encoding="utf-8") as file:
            facts = json.load(file)
        self.assertTrue(any(trace["kernels"] > 0 for trace in facts["traces"]), facts["aborts"])
        return got, facts["autotune"]

    def assert_close(self, got, expected):
        self.assertEqual(len(got), len(expected))
        for mine, theirs in zip(got, expected):
            self.assertLessEqual(abs(mine - theirs), 1e-3 + 2e-3 * abs(theirs), (got, expected))

    def test_a_gpu(self):
        expected = self.run_script([PYTHON])
        with tempfile.TemporaryDirectory() as folder:
            first, found = self.tuned(folder)
            second, read = self.tuned(folder)
        self.assert_close(first, expected)
        self.assert_close(second, expected)
        self.assertGreaterEqual(found["timed"], 6, found)
        self.assertGreater(found["ms"], 0)
        self.assertEqual(read["timed"], 0, read)
        self.assertGreaterEqual(read["read"], found["timed"], read)
        print(found, read, file=sys.stderr)

    def check_untouched(self, word):
        expected = self.run_script([PYTHON], word)
        with tempfile.TemporaryDirectory() as folder:
            got, counts = self.tuned(folder, word)
        self.assert_close(got, expected)
        self.assertEqual(counts["timed"] + counts["read"], 0, counts)

    def test_deterministic_algorithms(self):
        self.check_untouched("--deterministic")

    def test_the_cpu(self):
        self.check_untouched("--cpu")


if __name__ == "__main__":
    unittest.main()
