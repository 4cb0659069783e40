"""Whole loops on several GPUs (devices.py), under python and under dynvm: the same numbers within rounding, compiled. Skipped with fewer than two GPUs."""

import concurrent.futures
import unittest

from comparing import PYTHON, Compared

AT_A_TIME = 4


class Devices(Compared):
    script = "devices.py"

    def check_apart(self, *options):
        """Each case in a process of its own, where no loop around it is hot: so its loop is what has traces with kernels."""
        expected = self.numbers([PYTHON])
        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            runs = {name: pool.submit(self.compiled, *options, names=(name,)) for name in expected}
        for name, run in runs.items():
            with self.subTest(name):
                got, facts = run.result()
                self.compare(got, {name: expected[name]})
                kernels = [trace["kernels"] for trace in facts["traces"] if trace["function"].split(".")[0] == name]
                self.assertGreater(max(kernels, default=0), 0, (facts["aborts"], facts["notes"]))

    def test_same(self):
        """All in one process."""
        facts = self.check()
        self.assertGreater(facts["cuda_graphs"]["launches"], 50, facts["notes"])

    def test_compiled(self):
        self.check_apart()

    def test_exits(self):
        self.check_apart("--stress", "exit")

    def test_without_graphs(self):
        self.check("--cuda-graphs", "off")


if __name__ == "__main__":
    unittest.main()
