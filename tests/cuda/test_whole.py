"""Whole loops on a GPU (whole.py), under python and under dynvm: the same numbers within rounding, compiled. Skipped without a GPU."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from comparing import DYNVM, HERE, PYTHON, Compared


class Whole(Compared):
    script = "whole.py"

    def test_same(self):
        facts = self.check()
        self.assertGreater(facts["tensor_ops_compiled"], 0.6 * facts["tensor_ops_total"], facts["aborts"])
        self.assertGreater(facts["cuda_graphs"]["launches"], 100, facts["notes"])

    def test_compiled_beside_the_script(self):
        self.check(names=("adam", "exits", "recurrent"), background=True)

    def test_exits(self):
        self.check("--stress", "exit", names=("adam", "convolutions", "group_norm_and_pooling", "layouts_eval", "layouts_training", "layouts_training_without_cudnn_norm", "layouts_joined", "branches", "dropout", "dropout_exits", "written_inputs", "exits", "sizes", "sizes_training", "sizes_grow"))

    def test_without_other_layouts(self):
        self.check("--heuristics", "channels_last=0", names=("layouts_eval", "layouts_training", "layouts_joined"))

    def test_numbers(self):
        """What a kernel has just computed is read where that stores it for the host, the rest by copies."""
        facts = self.check(names=("numbers", "numbers_of_one_kernel", "numbers_behind_long_work", "branches"))
        self.assertGreater(facts["cuda_reads"]["mirrored"], 400, facts["cuda_reads"])
        self.assertLess(facts["cuda_reads"]["copied"], 100, facts["cuda_reads"])
        facts = self.check(names=("numbers_of_the_library",))
        self.assertEqual(facts["cuda_reads"]["mirrored"], 0)
        self.assertGreater(facts["cuda_reads"]["copied"], 20)

    def test_numbers_where_guards_fail(self):
        names = ("numbers", "numbers_of_one_kernel", "numbers_of_the_library", "numbers_in_threads")
        self.assertGreater(self.check("--stress", "exit", names=names)["cuda_reads"]["mirrored"], 2000)

    def test_numbers_in_threads(self):
        self.assertGreater(self.check(names=("numbers_in_threads",))["cuda_reads"]["mirrored"], 2000)

    def test_numbers_without_graphs(self):
        self.assertGreater(self.check("--cuda-graphs", "off", names=("numbers", "branches"))["cuda_reads"]["mirrored"], 350)

    def test_a_read_raises_what_has_failed(self):
        """A device that has stopped computes no numbers: the read says so, in the iteration in which it does in eager (failing.py)."""
        self.check_failing("assertion")

    def test_an_index_out_of_bounds_stops_the_device(self):
        for how in ("embedding", "index_select", "gather", "index", "scatter", "index_add", "index_put"):
            with self.subTest(how):
                self.check_failing(how)

    def check_failing(self, how):
        seen = []
        for program in ([PYTHON], [DYNVM, "--hot", "3", "--cache", "off", "--cuda-background", "off"]):
            done = subprocess.run([*program, os.path.join(HERE, "failing.py"), how], capture_output=True, text=True, timeout=200)
            if done.returncode == 77:
                self.skipTest("no CUDA device")
            seen.append(done.stdout)
        self.assertEqual(seen[1], seen[0])
        self.assertRegex(seen[0], "^40 .*Error: .*device-side assert")

    def test_sizes_are_open(self):
        facts = self.check("--cuda-symbols", "on", names=("sizes", "sizes_training", "sizes_large", "sizes_grow"))
        self.assertGreater(facts["sizes"]["open"], 3, facts["sizes"])
        self.assertEqual(facts["notes"], {})

    def test_memory(self):
        """Traces take no more memory than eager (memory.py)."""
        loops = ("training", "convolutions", "attention", "inference", "variables", "branches", "pieces", "decoding")
        for name in loops:
            peaks = []
            with tempfile.TemporaryDirectory() as folder:
                report = os.path.join(folder, "report.json")
                for program in ([PYTHON], [DYNVM, "--cache", "off", "--cuda-background", "off", "--report", report]):
                    done = subprocess.run([*program, os.path.join(HERE, "memory.py"), name], capture_output=True, text=True, timeout=200)
                    if done.returncode == 77:
                        self.skipTest("no CUDA device")
                    self.assertEqual(done.returncode, 0, done.stderr[-3000:])
                    peaks.append(int(done.stdout))
                with open(report, encoding="utf-8") as file:
                    facts = json.load(file)
            self.assertGreater(facts["tensor_ops_compiled"], 0.8 * facts["tensor_ops_total"], (name, facts["aborts"]))
            if name not in ("variables", "pieces", "decoding"):  # too few operations between two reads; library calls that see sizes that change
                self.assertGreater(facts["cuda_graphs"]["launches"], 50, (name, facts["notes"]))
            # Of caches some are there twice while their next ones are; and a trace keeps small pieces that are many.
            self.assertLessEqual(peaks[1], peaks[0] * (1.05 if name == "decoding" else 1) + 8192, name)
        print(f"{len(loops)} passed, 0 failed, 0 skipped", file=sys.stderr)

    def test_profile_has_the_times_of_events(self):
        """A kernel's time in a profile and by CUDA events (clocks.py) are the same within 5 %."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([DYNVM, "profile", "-o", folder, "--cache", "off", os.path.join(HERE, "clocks.py")], capture_output=True, text=True, timeout=200)
            if done.returncode == 77:
                self.skipTest("no CUDA device")
            self.assertEqual(done.returncode, 0, done.stderr[-3000:])
            expected = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
            with open(os.path.join(folder, "profile.json"), encoding="utf-8") as file:
                works = json.load(file)["gpu"]["works"]
        for name, microseconds in expected.items():
            # The kernel that took most of those that have this in their names (libraries call a product by other names too: any of another maker then).
            named = [work for work in works if name in work["name"]] or [work for work in works if not work["name"].startswith("dynvm_")]
            work = max(named, key=lambda each: each["ms"])
            self.assertLess(abs(work["ms"] / work["runs"] * 1e3 / microseconds - 1), 0.05, (name, microseconds, work["name"], work["ms"] / work["runs"] * 1e3))
        print(f"{len(expected)} passed, 0 failed, 0 skipped", file=sys.stderr)

    def test_kernels_lie_in_their_ranges(self):
        """Tools that show NVTX ranges show a trace's kernels in the range of their lines (ranges.py)."""
        done = subprocess.run([DYNVM, "--hot", "3", "--cache", "off", "--cuda-background", "off", os.path.join(HERE, "ranges.py")], capture_output=True, text=True, timeout=200)
        if done.returncode == 77:
            self.skipTest("no CUDA device or no CUPTI")
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        seen = json.loads(done.stdout)
        self.assertEqual(len(seen["ranges"]), 20)
        for name, kernels in seen["ranges"].items():
            with self.subTest(name):
                self.assertEqual(len(kernels), 1)
                self.assertRegex(kernels[0], "^dynvm_.*" + ("tanh" if name.startswith("chain") else "softmax"))


if __name__ == "__main__":
    unittest.main()
