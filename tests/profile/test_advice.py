"""Each rule of the advice: where it speaks, with which words, and where it must not."""

import os
import re
import unittest

import made
from dynvm.profile import advice


def texts(profile, rule):
    return [finding["text"] for finding in profile.advice if finding["rule"] == rule]


def with_exit(*exits, **changes):
    """Of a trace that is left by its first guard, before anything costly."""
    return made.profile(made.data(traces=[made.trace(7, exits=[dict(exit, inst=1) for exit in exits], **changes)]))


class Rules(unittest.TestCase):
    def test_each_has_a_test(self):
        tested = {name for case in (Exits, Others) for name in dir(case)}
        self.assertEqual([rule.__name__ for rule in advice.RULES if rule.__name__ != "exits" and f"test_{rule.__name__.removesuffix('s')}" not in tested and f"test_{rule.__name__}" not in tested], [])

    def test_each_class_of_exits_has_words(self):
        """A text without gaps for each class that tracer/exit_reasons.def has, named in the script or not; but for the ends of loops."""
        with open(os.path.join(made.ROOT, "tracer", "exit_reasons.def"), encoding="utf-8") as file:
            classes = set(re.findall(r'^X\(\w+,\s*"(\w+)"', file.read(), re.M)) | {"error", "value"}
        said = {"sizes": "changed: 1 other size seen (5)", "branch": "SENTENCE: 1 value seen (5)", "value": "changed: 1 value seen (5)", "type": "SENTENCE: 1 type seen (5)",
                "object": "SENTENCE: 1 object seen (5)", "state": "SENTENCE", "number": "SENTENCE", "error": "raised an exception"}
        self.assertEqual(set(said), classes - {"end"})
        nameless = {"sizes": "a tensor's sizes", "branch": "the condition", "value": "a number", "type": "a value", "object": "an object", "state": "something", "number": "a number", "error": "an operation"}
        for reason, words in said.items():
            for what, shown in (("n", "`n`"), ("", nameless[reason])):
                with self.subTest(reason=reason, what=what):
                    leave = made.leave(150, reason=reason, what=what, sentence="SENTENCE", values={} if reason == "state" else {"5": 150})
                    text, = texts(with_exit(leave), "exits")
                    self.assertEqual(text.split("; ", 1)[0], f"60 % of iterations leave trace 7 at script.py:4 because {shown} {words}")
                    self.assertEqual(text.split("; ", 1)[1:], [advice.HELP[reason]] if reason in advice.HELP else [])


class Exits(unittest.TestCase):
    def test_sizes(self):
        leave = made.leave(150, reason="sizes", what="n", values={"[3]": 50, "[5]": 60, "[7]": 40})
        self.assertRegex(texts(with_exit(leave), "exits")[0],
                         r"^60 % of iterations leave trace 7 at script\.py:4 because `n` changed: 3 sizes seen \(\[5\], \[3\], \[7\]\); ")

    def test_branch(self):
        self.assertRegex(texts(with_exit(made.leave(100)), "exits")[0], r"^50 % of iterations leave trace 7 at script\.py:4 because `n == 3` does not hold this time: 1 value seen \(5\); torch\.where")

    def test_value_and_many_of_them(self):
        leave = made.leave(100, reason="value", what="lr", values={str(k): 6 for k in range(16)})
        self.assertIn("because `lr` changed: at least 16 values seen (0, 1, 2, 3, ...)", texts(with_exit(leave), "exits")[0])

    def test_refused_at_entry(self):
        leave = made.leave(40, reason="type", what="x", sentence="has another type", at_entry=40, values={"str": 40})
        self.assertIn("80 % of entries into trace 7 fail at script.py:4 because `x` has another type: 1 type seen (str)", texts(with_exit(leave, entries=50, exit_ms=7.0), "exits")[0])
        self.assertEqual(texts(with_exit(leave, entries=50, exit_ms=0.5), "exits"), [])  # which costs next to nothing

    def test_not_for(self):
        self.assertEqual(texts(with_exit(made.leave(100, reason="end")), "exits"), [])        # the loop is over
        self.assertEqual(texts(with_exit(made.leave(9)), "exits"), [])                        # a few
        self.assertEqual(texts(with_exit(made.leave(100, to=[[7, 95]])), "exits"), [])        # goes on in another trace
        self.assertEqual(texts(with_exit(made.leave(20), iterations=1000), "exits"), [])      # rare
        self.assertEqual(texts(with_exit(made.leave(100, at_entry=100), entries=200), "exits"), [])  # another variant takes it
        self.assertEqual(texts(made.profile(made.data(traces=[made.trace(7, exit_ms=0.0, exits=[made.leave(100, inst=5)])])), "exits"), [])  # nothing of the iteration was left

    def test_the_weight_is_the_rest_of_the_iterations(self):
        """50 of 100 left before 8 ms of calls; of those 20 went on in another trace."""
        finding, = with_exit(made.leave(50, to=[[8, 20]])).advice[:1]
        self.assertEqual(finding["rule"], "exits")
        self.assertAlmostEqual(finding["ms"], 0.75 + 30 * 8.0 / 100)

    def test_a_trace_without_complete_iterations(self):
        """Then it is the loop's time in the interpreter."""
        script = made.script_file(self)
        trace = made.trace(7, iterations=0, exits=[made.leave(50, inst=1)])
        finding = next(finding for finding in made.profile(made.data(traces=[trace], script=script)).advice if finding["rule"] == "exits")
        self.assertAlmostEqual(finding["ms"], 0.75 + 400)


class Others(unittest.TestCase):
    def test_residual(self):
        busy = made.trace(1)
        busy["insts"][4]["ms"] = 200.0
        found = texts(made.profile(made.data(traces=[busy])), "residuals")
        self.assertRegex(found[0], r"of the time is save inside trace 1 \(50 runs, script\.py:5\)")
        self.assertEqual(texts(made.profile(), "residuals"), [])

    def test_aborted(self):
        """The time is that of the loop's lines: 80 of 100 samples."""
        script = made.script_file(self)
        data = made.data(traces=[], script=script)
        data["recordings"][0].update(trace=0, result="no_tensor_work", sentence="It ran no tensor operation.", detail="x")
        self.assertEqual(texts(made.profile(data), "aborted"), ["69 % of the time is the loop at script.py:4 in the interpreter, where a recording was given up: It ran no tensor operation. no_tensor_work (x)"])
        data["recordings"].append(dict(data["recordings"][0], detail=""))
        self.assertIn("where 2 recordings were given up: It ran no tensor operation. no_tensor_work", texts(made.profile(data), "aborted")[0])
        data["recordings"].append(dict(data["recordings"][0], trace=1))
        self.assertEqual(texts(made.profile(data), "aborted"), [])  # one was not
        data = made.data(traces=[], script=script)
        data["recordings"][0].update(trace=0, result="no_tensor_work", place=[0, 0, 1])
        self.assertEqual(texts(made.profile(data), "aborted"), [])  # where no time was
        self.assertEqual(texts(made.profile(), "aborted"), [])

    def test_cut(self):
        data = made.data(traces=[made.trace(1, ms=100.0)])
        data["recordings"][0].update(result="frame_introspection", sentence="A call that looks at frames.")
        self.assertEqual(texts(made.profile(data), "cut"), ["trace 1 ends early and the interpreter goes on: A call that looks at frames. frame_introspection"])
        self.assertEqual(texts(made.profile(), "cut"), [])

    def test_collector(self):
        data = made.data()
        self.assertEqual(texts(made.profile(data), "collector"), [])
        data["parts"]["gc"] = 100.0
        self.assertIn("outside of imports", texts(made.profile(data), "collector")[0])

    def test_making(self):
        data = made.data()
        self.assertEqual(texts(made.profile(data), "making"), [])
        data["parts"]["compiling"] = 200.0
        self.assertIn("recording and compiling 1 traces", texts(made.profile(data), "making")[0])

    def test_imports(self):
        data = made.data()
        self.assertEqual(texts(made.profile(data), "imports"), [])
        data["samples"][2]["count"] = 200
        self.assertEqual(len(texts(made.profile(data), "imports")), 1)

    def test_interpreted(self):
        data = made.data(traces=[])
        data["recordings"] = []
        self.assertIn("script.py:5 in the interpreter, outside of any trace", texts(made.profile(data), "interpreted")[0])
        self.assertEqual(texts(made.profile(), "interpreted"), [])  # line 5 is in a trace

    def test_kernels(self):
        slow = made.trace(1)
        slow["insts"][2]["ms"] = 300.0
        self.assertRegex(texts(made.profile(made.data(traces=[slow])), "kernels")[0], r"kernel mul_add \(100 runs of 3,000\.0 us, trace 1, script\.py:5\), which reaches under 1 % .*: its threads wait for busy processors")
        short = made.trace(1)
        short["insts"][2].update(ms=300.0, runs=100_000)
        short["kernels"][0].update(bytes_read=40, bytes_written=40, flops=10)
        self.assertRegex(texts(made.profile(made.data(traces=[short])), "kernels")[0], r"\(100000 runs of 3\.0 us, .*: larger tensors pay for its launches$")
        slow["kernels"][0]["bytes_read"] = 3_000_000
        self.assertEqual(texts(made.profile(made.data(traces=[slow])), "kernels"), [])  # as fast as memory allows

    def test_library(self):
        busy = made.trace(1)
        busy["insts"][3]["ms"] = 300.0
        self.assertIn("the library's aten::mm inside traces (100 runs of 3,000.0 us, most at script.py:5)", texts(made.profile(made.data(traces=[busy])), "library")[0])
        self.assertEqual(texts(made.profile(), "library"), [])

    def test_idle_gpu(self):
        gpu = {"device": "GPU", "missing": "", "bytes_per_s": 1e12, "flops_per_s": 1e12, "works": [{"name": "gemm", "runs": 2, "ms": 60.0}], "events": [[0, 7, 100.0, 30.0], [0, 7, 370.0, 30.0]]}
        found = [finding for finding in made.profile(gpu=gpu).advice if finding["rule"] == "idle_gpu"]
        self.assertRegex(found[0]["text"], r"^the GPU works 20 % of the time between its first and last work: ")
        self.assertAlmostEqual(found[0]["ms"], 240)
        gpu["events"][0][3] = 260.0
        self.assertEqual(texts(made.profile(gpu=gpu), "idle_gpu"), [])  # most of the time
        gpu["events"] = [[0, 7, 100.0, 1.0], [0, 7, 120.0, 1.0]]
        self.assertEqual(texts(made.profile(gpu=gpu), "idle_gpu"), [])  # it was used for a moment
        self.assertEqual(texts(made.profile(), "idle_gpu"), [])

    def test_the_most_important_first(self):
        busy = made.trace(1)
        busy["insts"][3]["ms"], busy["insts"][4]["ms"] = 150.0, 300.0
        weights = [finding["ms"] for finding in made.profile(made.data(traces=[busy])).advice]
        self.assertGreater(len(weights), 1)
        self.assertEqual(weights, sorted(weights, reverse=True))


if __name__ == "__main__":
    unittest.main()
