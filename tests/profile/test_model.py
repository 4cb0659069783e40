"""Tables and text from a profile whose numbers are known."""

import json
import os
import tempfile
import unittest

import made
from dynvm.profile import formats, machine, model, report


class Lines(unittest.TestCase):
    def setUp(self):
        self.profile = made.profile()
        self.lines = self.profile.lines

    def test_interpreter_time_is_divided_as_samples_are(self):
        self.assertAlmostEqual(self.lines[0, 5].python, 150)
        self.assertAlmostEqual(self.lines[1, 2].python, 250)
        self.assertAlmostEqual(self.lines[0, 5].python_total, 400)
        self.assertAlmostEqual(self.lines[0, 10].python_total, 400)
        self.assertAlmostEqual(sum(line.python for line in self.lines.values()), self.profile.parts["interpreter"] - 100)

    def test_imports_are_set_apart(self):
        data = made.data()
        data["samples"] += [{"part": "gc", "frames": [[0, 0, 1], [2, 0, 7], [1, 0, 2]], "count": 3}, {"part": "gc", "frames": [[0, 0, 10]], "count": 1}]
        profile = made.profile(data)
        parts = profile.parts_with_imports()
        self.assertAlmostEqual(parts["imports"], 107.5)
        self.assertAlmostEqual(parts["interpreter"], 400)
        self.assertAlmostEqual(parts["gc"], 2.5)
        self.assertAlmostEqual(sum(parts.values()), profile.wall)
        self.assertAlmostEqual(profile.lines[0, 1].imports, 107.5)
        self.assertAlmostEqual(profile.lines[0, 1].python_total, 0)
        self.assertNotIn((2, 7), profile.lines)

    def test_trace_time_goes_to_the_instructions_lines(self):
        # Of 1 ms of guards each half to lines 4 (both guards); the residual call was in lib.py:2, called by line 5.
        self.assertAlmostEqual(self.lines[0, 5].trace, 7.0)
        self.assertAlmostEqual(self.lines[1, 2].trace, 1.0)
        self.assertAlmostEqual(self.lines[0, 5].trace_total, 8.0)
        self.assertAlmostEqual(sum(line.trace for line in self.lines.values()), 10.0)

    def test_trace_time_goes_to_the_callers_that_samples_saw(self):
        data = made.data()
        data["samples"][-1]["frames"] = [[0, 0, 10], [0, 0, 4]]
        data["samples"].append({"part": "trace", "trace": 1, "frames": [[0, 0, 9], [0, 0, 4]], "count": 30})
        lines = made.profile(data).lines
        self.assertAlmostEqual(lines[0, 10].trace_total, 2.5)
        self.assertAlmostEqual(lines[0, 9].trace_total, 7.5)
        self.assertAlmostEqual(lines[0, 10].total_ms, 402.5)
        self.assertAlmostEqual(lines[0, 10].trace, 0)
        self.assertAlmostEqual(lines[0, 4].trace_total, self.lines[0, 4].trace_total)  # its own frame: as exact as before

    def test_the_extent_of_loops_and_functions(self):
        text = "import torch\n\n@torch.no_grad()\ndef f(x):\n    while x:\n        for i in x:\n            x = i\n    return [i for i in x]\n"
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "script.py")
            with open(script, "w", encoding="utf-8") as file:
                file.write(text)
            profile = made.profile(made.data(script=script))
            self.assertEqual([profile.extent([0, 0, line]) for line in (3, 4, 5, 6, 7, 8)], [(3, 8), (4, 4), (5, 7), (6, 7), (7, 7), (8, 8)])
        self.assertEqual(self.profile.extent([0, 0, 4]), (4, 4))   # its source is not there
        self.assertEqual(self.profile.extent([-1, 0, 4]), (4, 4))

    def test_work_is_what_the_script_does_behind_its_imports(self):
        self.assertAlmostEqual(self.profile.work, 400 + 20 + 20 + 10 + 10)

    def test_states(self):
        self.assertEqual(self.lines[0, 4].state, "compiled")
        self.assertEqual(self.lines[0, 10].state, "interpreted")
        made_up = made.data(traces=[])
        made_up["recordings"][0].update(trace=0, result="no_tensor_work")
        self.assertEqual(made.profile(made_up).lines[0, 4].state, "recorded")

    def test_exits_are_shares_of_the_iterations_begun(self):
        profile = made.profile(made.data(traces=[made.trace(1, exits=[made.leave(300)]), made.trace(2, exits=[made.leave(2, at_entry=2)])]))
        self.assertAlmostEqual(profile.exits[0]["share"], 0.75)
        self.assertAlmostEqual(profile.exits[1]["share"], 2 / 5)
        self.assertEqual(profile.lines[0, 4].exits, 302)

    def test_a_callers_line_counts_once(self):
        recursive = made.data(traces=[])
        recursive["samples"] = [{"part": "interpreter", "frames": [[0, 0, 5], [0, 0, 5], [0, 0, 5]], "count": 3}]
        self.assertAlmostEqual(made.profile(recursive).lines[0, 5].python_total, 500)

    def test_a_gpus_time_is_shared_by_kernels_of_one_name(self):
        traces = [made.trace(1), made.trace(2)]
        for trace in traces:
            trace["kernels"][0].update(device="cuda:0", function="dynvm_mul_add")
        traces[1]["insts"][2]["runs"] = 300
        gpu = {"device": "GPU", "missing": "", "bytes_per_s": 1e12, "flops_per_s": 1e12, "works": [{"name": "dynvm_mul_add", "runs": 400, "ms": 8.0}, {"name": "gemm", "runs": 5, "ms": 2.0}],
               "events": [[0, 7, 60.0, 4.0], [1, 7, 70.0, 2.0]]}
        profile = made.profile(made.data(traces=traces, gpu=gpu))
        times = {call["trace"]: (call["gpu_runs"], call["gpu_ms"]) for call in profile.kernels}
        self.assertEqual(times, {1: (100, 2.0), 2: (300, 6.0)})
        text = report.text(profile)
        self.assertIn("On GPU: 10.0 ms of work", text)
        self.assertRegex(text, r"8\.0 .* 400 +20\.0 +script.py:5, trace 1, 2 +dynvm_mul_add")
        self.assertRegex(text, r"2\.0 .* 5 +400\.0 .* gemm")
        rows = [event for event in formats.timeline(profile)["traceEvents"] if event.get("cat") == "gpu"]
        self.assertEqual([(row["name"], row["ts"], row["dur"]) for row in rows], [("dynvm_mul_add", 60000.0, 4000.0), ("gemm", 70000.0, 2000.0)])

    def test_a_gpu_without_cupti_says_so(self):
        gpu = {"device": "GPU", "missing": "no libcupti.so.13", "bytes_per_s": 1e12, "flops_per_s": 1e12, "works": [], "events": []}
        self.assertIn("No times of the GPU's kernels: no libcupti.so.13", report.text(made.profile(gpu=gpu)))

    def test_another_version_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "profile.json"), "w", encoding="utf-8") as file:
                json.dump(made.data(version=2), file)
            with self.assertRaisesRegex(ValueError, "version 2"):
                model.read(folder)


class Machine(unittest.TestCase):
    def test_fraction(self):
        self.assertAlmostEqual(machine.fraction(made.MACHINE, 1.0, 500_000, 0), 0.5)      # memory decides
        self.assertAlmostEqual(machine.fraction(made.MACHINE, 1.0, 100, 250_000), 0.25)   # arithmetic does
        self.assertIsNone(machine.fraction(made.MACHINE, 0, 1, 1))
        self.assertIsNone(machine.fraction(made.MACHINE, 1, 0, 0))

    def test_measured(self):
        measured = machine.measure()
        self.assertGreater(measured["bytes_per_s"], 1e8)
        self.assertLess(measured["bytes_per_s"], 1e13)
        self.assertGreater(measured["flops_per_s"], 1e9)


class Report(unittest.TestCase):
    def test_each_table(self):
        profile = made.profile(made.data(traces=[made.trace(1, exits=[made.leave(300, to=[[2, 10]])]), made.trace(2)]))
        text = report.text(profile)
        for row in (r"500\.0 +.*interpreter", r"script\.py:5", r"mul_add", r"aten::mm", r"call save", r"300 +75 % +1 +script\.py:4 +2 +n == 3 does not hold this time \(5\)"):
            self.assertRegex(text.replace("400.0", "500.0"), row)
        titles = ["Where the time went", "Source lines", "Traces", "Kernels", "Library calls", "Residual calls", "Exits", "Advice"]
        at = [text.index("\n" + title) for title in titles]
        self.assertEqual(at, sorted(at))

    def test_lines_say_what_is_imports(self):
        text = report.text(made.profile())
        self.assertRegex(text, r"\n +410\.0 +69\.5 % +0\.0 +400\.0 +10\.0 +0 +interpreted +script\.py:10\b")
        self.assertRegex(text, r"\n +100\.0 +16\.9 % +100\.0 +0\.0 +0\.0 +0 +interpreted +script\.py:1\b")

    def test_exits_in_words(self):
        """Of those without a name, too; what ends a loop has no values."""
        exits = [made.leave(9 - k, inst=k, reason=reason, what="", sentence="SENTENCE", values={"a": 1, "b": 5})
                 for k, reason in enumerate(("sizes", "branch", "value", "number", "type", "object"))] + [made.leave(3, inst=6, reason="end", what="", sentence="has ended or is not there", values={"nothing": 3})]
        rows = [row[-1] for row in report.exit_rows(made.profile(made.data(traces=[made.trace(1, exits=exits)])))]
        self.assertEqual(rows, [f"{what} SENTENCE (b, a)" for what in ("a tensor", "a condition", "a number", "a number", "a value", "an object")] + ["the loop has ended or is not there"])

    def test_sorted_by_time(self):
        profile = made.profile(made.data(traces=[made.trace(1, ms=10.0), made.trace(2, ms=90.0)]))
        self.assertEqual([row[0] for row in report.trace_rows(profile)], ["2", "1"])
        shown = [row[0] for row in report.line_rows(profile)]
        self.assertEqual(shown, sorted(shown, reverse=True))

    def test_long_tables_are_cut(self):
        text = report.table("T", ("n",), [[k] for k in range(40)])
        self.assertIn("... 28 more", text)
        self.assertEqual(report.table("T", ("n",), []), "")


if __name__ == "__main__":
    unittest.main()
