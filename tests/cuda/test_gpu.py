"""Generated CUDA kernels on a GPU: operations.py under dynvm, where each of its cases must have been compiled. Skipped without a GPU."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
DYNVM = os.environ.get("DYNVM", os.path.join(HERE, "..", "..", ".venv", "bin", "dynvm"))
NOT_COMPILED = 0.01  # the share of cases that may have no kernel: views and copies


class Operations(unittest.TestCase):
    def check(self, *options, names=(), not_compiled=NOT_COMPILED):
        with tempfile.TemporaryDirectory() as folder:
            report = os.path.join(folder, "report.json")
            done = subprocess.run([DYNVM, "--hot", "2", "--cache", "off", "--cuda-background", "off", "--report", report, *options, os.path.join(HERE, "operations.py"), *names], capture_output=True, text=True)
            if done.returncode == 77:
                self.skipTest("no CUDA device")
            self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])
            with open(report, encoding="utf-8") as file:
                facts = json.load(file)
        passed = int(done.stdout.split()[-4])
        compiled = {trace["file"] for trace in facts["traces"] if trace["kernels"] > 0 and " " in trace["file"]}
        self.assertGreaterEqual(len(compiled), passed * (1 - not_compiled), facts["notes"])
        print(f"{passed} passed, 0 failed, 0 skipped", file=sys.stderr)

    def test_operations(self):
        self.check()

    def test_exits(self):
        # Where each guard fails once, a dozen iterations are not always enough.
        self.check("--stress", "exit", names=("chain", "softmax", "sum 0", "split", "add"), not_compiled=0.1)


if __name__ == "__main__":
    unittest.main()
