"""Generated CUDA kernels on a GPU: operations.py under dynvm, where each of its cases must have been compiled. Skipped without a GPU."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
DYNVM = os.environ.get("DYNVM", os.path.join(HERE, "..", "..", ".venv", "bin", "dynvm"))
NOT_COMPILED = 15  # cases of a process that may have no kernel: while the function around their loops is recorded, which is given up ever more seldom, the loops are not


class Operations(unittest.TestCase):
    def check(self, *options, names=(), not_compiled=NOT_COMPILED, parts=1):
        with tempfile.TemporaryDirectory() as folder:
            report = os.path.join(folder, "report{}.json")
            processes = [subprocess.Popen([DYNVM, "--hot", "2", "--cache", "off", "--cuda-background", "off", "--report", report.format(k), *options, os.path.join(HERE, "operations.py"), "--part", f"{k}/{parts}", *names],
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for k in range(parts)]
            passed, compiled, notes = set(), set(), {}
            for k, process in enumerate(processes):
                stdout, stderr = process.communicate()
                if process.returncode == 77:
                    continue
                self.assertEqual(process.returncode, 0, stdout[-3000:] + stderr[-3000:])
                with open(report.format(k), encoding="utf-8") as file:
                    facts = json.load(file)
                passed |= {line.removeprefix("passed ") for line in stdout.splitlines() if line.startswith("passed ")}
                compiled |= {trace["file"] for trace in facts["traces"] if trace["kernels"] > 0 and " " in trace["file"]}
                notes |= facts["notes"]
        if all(process.returncode == 77 for process in processes):
            self.skipTest("no CUDA device")
        self.assertLessEqual(len(passed - compiled), not_compiled * parts, (sorted(passed - compiled), notes))
        print(f"{len(passed)} passed, 0 failed, 0 skipped", file=sys.stderr)

    def test_operations(self):
        self.check(parts=max(1, min(8, (os.cpu_count() or 1) // 2)))  # beside each other: compiling is what takes the time

    def test_exits(self):
        self.check("--stress", "exit", names=("chain", "softmax", "sum 0", "split", "add"), not_compiled=21)  # where each guard fails once, so many iterations are not always enough


if __name__ == "__main__":
    unittest.main()
