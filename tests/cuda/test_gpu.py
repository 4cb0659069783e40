"""Generated CUDA kernels on a GPU: operations.py under dynvm, where each of its cases must have been compiled. Skipped without a GPU."""

import ast
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
DYNVM = os.environ.get("DYNVM", os.path.join(HERE, "..", "..", ".venv", "bin", "dynvm"))
SCRIPT = os.path.join(HERE, "operations.py")


def around_the_cases():
    """A switch that leaves out traces of what operations.py does beside its cases: while a function around a case's loop is recorded, the loop is not."""
    with open(SCRIPT, encoding="utf-8") as file:
        functions = [node for node in ast.parse(file.read()).body if isinstance(node, ast.FunctionDef) and node.name in ("main", "check", "close")]
    lines = sorted({node.lineno for function in functions for node in ast.walk(function) if isinstance(node, (ast.FunctionDef, ast.ListComp, ast.GeneratorExp))})
    return "--disable=" + ",".join(f"trace:operations.py:{line}" for line in lines)


class Operations(unittest.TestCase):
    def check(self, *options, names=(), parts=1):
        with tempfile.TemporaryDirectory() as folder:
            report = os.path.join(folder, "report{}.json")
            processes = [subprocess.Popen([DYNVM, "--hot", "2", "--cache", "off", "--cuda-background", "off", "--report", report.format(k), around_the_cases(), *options, SCRIPT, "--part", f"{k}/{parts}", *names],
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
                compiled |= {trace["file"] for trace in facts["traces"] if trace["kernels"] > 0}
                notes |= facts["notes"]
        if all(process.returncode == 77 for process in processes):
            self.skipTest("no CUDA device")
        self.assertFalse(passed - compiled, notes)
        print(f"{len(passed)} passed, 0 failed, 0 skipped", file=sys.stderr)

    def test_operations(self):
        self.check(parts=max(1, min(8, (os.cpu_count() or 1) // 2)))  # beside each other: compiling is what takes the time

    def test_exits(self):
        self.check("--stress", "exit", names=("chain", "softmax", "sum 0", "split", "add"))


if __name__ == "__main__":
    unittest.main()
