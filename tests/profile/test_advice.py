"""Each rule of the advice: where it speaks, with which words, and where it must not."""

import unittest

import made


def texts(profile, rule):
    return [finding["text"] for finding in profile.advice if finding["rule"] == rule]


def with_exit(*exits, **changes):
    return made.profile(made.data(traces=[made.trace(7, exits=list(exits), **changes)]))


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
        self.assertIn("fail at script.py:4 because `x` has another type: 1 type seen (str)", texts(with_exit(leave, entries=50), "exits")[0])

    def test_not_for(self):
        self.assertEqual(texts(with_exit(made.leave(100, reason="end")), "exits"), [])        # the loop is over
        self.assertEqual(texts(with_exit(made.leave(9)), "exits"), [])                        # a few
        self.assertEqual(texts(with_exit(made.leave(100, to=[[7, 95]])), "exits"), [])        # goes on in another trace
        self.assertEqual(texts(with_exit(made.leave(20), iterations=1000), "exits"), [])      # rare
        self.assertEqual(texts(with_exit(made.leave(100, at_entry=100), entries=200), "exits"), [])  # another variant takes it


class Others(unittest.TestCase):
    def test_residual(self):
        busy = made.trace(1)
        busy["insts"][4]["ms"] = 200.0
        found = texts(made.profile(made.data(traces=[busy])), "residuals")
        self.assertRegex(found[0], r"of the time is save inside trace 1 \(50 runs, script\.py:5\)")
        self.assertEqual(texts(made.profile(), "residuals"), [])

    def test_aborted(self):
        data = made.data(traces=[])
        data["recordings"][0].update(trace=0, result="no_tensor_work", sentence="It ran no tensor operation.", detail="x", ms=100.0)
        self.assertEqual(texts(made.profile(data), "aborted"), ["the loop at script.py:4 stays in the interpreter, 1 recordings were given up: It ran no tensor operation. no_tensor_work (x)"])
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
        self.assertRegex(texts(made.profile(made.data(traces=[slow])), "kernels")[0], r"kernel mul_add \(100 runs, trace 1, script\.py:5\), which reaches under 1 %")
        slow["kernels"][0]["bytes_read"] = 3_000_000
        self.assertEqual(texts(made.profile(made.data(traces=[slow])), "kernels"), [])  # as fast as memory allows

    def test_library(self):
        busy = made.trace(1)
        busy["insts"][3]["ms"] = 300.0
        self.assertIn("the library's aten::mm inside traces (100 runs, most at script.py:5)", texts(made.profile(made.data(traces=[busy])), "library")[0])
        self.assertEqual(texts(made.profile(), "library"), [])

    def test_the_most_important_first(self):
        busy = made.trace(1)
        busy["insts"][3]["ms"], busy["insts"][4]["ms"] = 150.0, 300.0
        weights = [finding["ms"] for finding in made.profile(made.data(traces=[busy])).advice]
        self.assertGreater(len(weights), 1)
        self.assertEqual(weights, sorted(weights, reverse=True))


if __name__ == "__main__":
    unittest.main()
