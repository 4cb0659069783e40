"""The search for culprits and the order of stages, on programs that are only made up, and the time that a run has."""

import random
import subprocess
import unittest
import unittest.mock

from bisect_case import PACKAGE  # noqa: F401  the package from the source tree
from dynvm.bisect import runs
from dynvm.bisect.runs import Judge, Outcome, Program
from dynvm.bisect.search import grown, minimal, smallest
from dynvm.bisect.stages import Investigation, RIGHT, UNSTEADY, WRONG

TABLES = {"parts": ["out", "direct", "native", "cache", "gemm"], "passes": ["fold", "cse", "fuse"], "kinds": {}, "safe": {}}


class Minimal(unittest.TestCase):
    def test_it_finds_any_set(self):
        chance = random.Random(3)
        for _ in range(300):
            names = [f"n{k}" for k in range(chance.randint(1, 40))]
            culprits = set(chance.sample(names, min(len(names), chance.randint(1, 4))))
            asked = []

            def right(part):
                asked.append(part)
                return culprits <= set(part)

            found = minimal(names, right)
            self.assertEqual(set(found), culprits)
            self.assertLessEqual(len(asked), (len(culprits) + 1) * 9)

    def test_either_of_two_is_enough(self):
        self.assertEqual(len(minimal(list("abcdef"), lambda part: bool({"b", "e"} & set(part)))), 1)

    def test_more_than_are_wanted(self):
        """Then it is told soon."""
        asked = []

        def right(part):
            asked.append(part)
            return set("abcdefgh") <= set(part)

        names = list("abcdefghijklmnop")
        self.assertIsNone(minimal(names, right, 3))
        self.assertLessEqual(len(asked), 3 * 5 + 1)
        self.assertEqual(set(minimal(names, right, 8)), set("abcdefgh"))

    def test_nothing_is_needed(self):
        self.assertEqual(minimal(list("abc"), lambda part: True), [])

    def test_where_less_is_right_and_more_is_not(self):
        """Such a set is still one that makes it right."""
        def right(part):
            return set(part) in ({"a", "b", "c", "d"}, {"c"}, {"b", "c"})
        self.assertTrue(right(minimal(list("abcd"), right)))

    def test_one_instead_of_several(self):
        """Those that come first would do, together; one behind them does by itself."""
        def right(part):
            return {"b", "c"} <= set(part) or "g" in part

        self.assertEqual(sorted(minimal(list("abcdefgh"), right)), ["b", "c"])
        self.assertEqual(smallest(list("abcdefgh"), right), ["g"])
        self.assertEqual(smallest(list("gabc"), right), ["g"])
        self.assertEqual(sorted(smallest(list("abcd"), lambda part: {"b", "c"} <= set(part), 2)), ["b", "c"])
        self.assertIsNone(smallest(list("abcd"), lambda part: len(part) > 2, 2))

    def test_what_comes_to_life(self):
        inner = {"outer": ["inner"], "inner": ["innermost"], "innermost": []}
        found = grown(["outer"], lambda part: "innermost" in part, lambda part: [new for name in part for new in inner[name]])
        self.assertEqual(found, ["outer", "inner", "innermost"])
        self.assertIsNone(grown(["outer"], lambda part: False, lambda part: []))
        self.assertIsNone(grown([], lambda part: True, lambda part: []))


class MadeUp:
    """A program that is right where any of `ways` (sets of switches and options) is left out. blocks: switches without which it has no traces; other: a way -> what it shows then."""

    def __init__(self, *ways, traces=(), python=("1.0\n", "1.0\n"), blocks=(), other=None, shows=("1.0\n", "2.0\n")):
        self.ways, self.traces, self._python = [set(way) for way in ways], traces, list(python)
        self.blocks, self.other, self.shows = set(blocks), other or {}, shows
        self.count, self.timeout = 0, 100

    def python(self):
        return Outcome(0, self._python.pop(0), "", {}, 1.0)

    def dynvm(self, switches=(), options=(), kept=True):
        self.count += 1
        given = {*switches, *options}
        right = any(way <= given for way in self.ways) or bool(self.blocks & given)
        shown = next((text for switch, text in self.other.items() if switch in given and not right), self.shows[not right])
        rows = [{"file": file, "line": line, "operations": operations, "kernel_names": kernels} for file, line, operations, kernels in self.traces
                if f"trace:{file}:{line}" not in given and not self.blocks & given]
        return Outcome(0, shown, "", {"traces": rows, "loops": rows}, 1.0)

    def places(self, outcome, switches=()):
        return [f"{loop['file']}:{loop['line']}" for loop in outcome.report["loops"]]


TRACES = [("a.py", 3, ["aten::add", "aten::mul", "dynvm::hooked"], ["add_mul", "sum"]), ("a.py", 9, ["aten::sub"], ["sub"])]


class Stages(unittest.TestCase):
    def verdict(self, program, **judge):
        return Investigation(program, Judge(1e-4, **judge), TABLES, lambda line: None).run()

    def test_right(self):
        self.assertEqual(self.verdict(MadeUp(set())).kind, RIGHT)

    def test_a_script_that_differs_by_itself(self):
        self.assertEqual(self.verdict(MadeUp(set(), python=("1.0\n", "3.0\n"))).kind, UNSTEADY)

    def test_with_an_expected_text_python_is_not_asked(self):
        self.assertEqual(self.verdict(MadeUp(set(), python=()), expect="1.0\n").kind, RIGHT)
        self.assertEqual(self.verdict(MadeUp(set(), python=()), expect="5.0\n").kind, WRONG)

    def test_rounding_is_no_difference(self):
        self.assertEqual(self.verdict(MadeUp(python=("2.00001\n", "2.00001\n"))).kind, RIGHT)

    def test_the_interpreter(self):
        verdict = self.verdict(MadeUp({"--vm=off"}))
        self.assertEqual((verdict.kind, verdict.option), (WRONG, "--vm=off"))
        verdict = self.verdict(MadeUp({"--vm=off"}, {"--jit=off", "opt:native"}))
        self.assertEqual((verdict.kind, verdict.option), (WRONG, "--native=off"))
        self.assertEqual(self.verdict(MadeUp()).option, "")

    def test_the_narrowest_is_named(self):
        jit = {"--jit=off"}
        program = MadeUp(jit, {"trace:a.py:3"}, {"pass:fuse"}, {"op:aten::mul"}, {"kernel:add_mul"}, traces=TRACES)
        verdict = self.verdict(program)
        self.assertEqual([culprit.switches for culprit in verdict.culprits], [["trace:a.py:3"], ["pass:fuse"], ["op:aten::mul"], ["kernel:add_mul"]])
        self.assertEqual(verdict.option, "--disable=kernel:add_mul")
        self.assertIn("the kernel add_mul in the loop at a.py:3", verdict.text)
        self.assertFalse(verdict.safe)

    def test_operations_of_other_loops_are_not_tried(self):
        program = MadeUp({"--jit=off"}, {"trace:a.py:3"}, {"op:aten::sub"}, traces=TRACES)
        self.assertEqual([culprit.kind for culprit in self.verdict(program).culprits], ["trace"])

    def test_several_together(self):
        program = MadeUp({"--jit=off"}, {"trace:a.py:3", "trace:a.py:9"}, {"op:aten::mul", "op:aten::sub"}, traces=TRACES)
        verdict = self.verdict(program)
        self.assertEqual(set(verdict.culprits[0].names), {"a.py:3", "a.py:9"})
        self.assertEqual(set(verdict.culprits[-1].switches), {"op:aten::mul", "op:aten::sub"})

    def test_a_pass_where_all_of_them_together_are_wrong(self):
        program = MadeUp({"--jit=off"}, {"pass:cse"}, traces=TRACES)
        usual = program.dynvm
        program.dynvm = lambda switches=(), options=(), kept=True: usual([switch for switch in switches if switch != "pass:cse" or "pass:fold" not in switches], options, kept)
        self.assertEqual([culprit.switches for culprit in self.verdict(program).culprits], [["pass:cse"]])

    def test_many_together_are_not_named(self):
        operations = [f"aten::op{k}" for k in range(9)]
        program = MadeUp({"--jit=off"}, {"pass:fuse"}, {f"op:{name}" for name in operations}, traces=[("a.py", 3, operations, [])])
        self.assertEqual([culprit.switches for culprit in self.verdict(program).culprits], [["pass:fuse"]])
        self.assertLess(program.count, 48)

    def test_what_keeps_the_loop_from_being_traced_is_not_named(self):
        """Without add there are no traces; mul is what is wrong."""
        program = MadeUp({"--jit=off"}, {"trace:a.py:3"}, {"record:aten::mul"}, traces=TRACES, blocks={"record:aten::add"})
        verdict = self.verdict(program)
        self.assertEqual([culprit.switches for culprit in verdict.culprits], [["trace:a.py:3"], ["record:aten::mul"]])
        self.assertEqual(verdict.untraced, [])

    def test_where_nothing_else_helps_it_is_said(self):
        program = MadeUp({"--jit=off"}, {"trace:a.py:3"}, traces=TRACES, blocks={"record:aten::add", "opt:out"})
        verdict = self.verdict(program)
        self.assertEqual([culprit.switches for culprit in verdict.culprits], [["trace:a.py:3"]])
        self.assertEqual([culprit.switches for culprit in verdict.untraced], [["opt:out"], ["record:aten::add"]])
        self.assertEqual(verdict.option, "--disable=trace:a.py:3")
        self.assertIn("without the part out or without the operation aten::add it has no traces", verdict.text)

    def test_a_second_fault_behind_a_pass(self):
        """Without the pass, what was wrong is right, and another line is wrong."""
        right, wrong, other = "a 1\nb 2\nc 3\n", "a 1\nb 2\nc 4\n", "a 2\nb 2\nc 3\n"
        program = MadeUp({"--jit=off"}, {"trace:a.py:3"}, traces=TRACES, python=(right, right), shows=(right, wrong), other={"pass:cse": other})
        verdict = self.verdict(program)
        self.assertEqual([culprit.switches for culprit in verdict.culprits], [["trace:a.py:3"], ["pass:cse"]])
        self.assertEqual(verdict.option, "--disable=trace:a.py:3")
        self.assertIn("the pass cse in the loop at a.py:3, without which something else is wrong: standard output: line 1 differs; --disable=trace:a.py:3 avoids both", verdict.text)

    def test_the_pass_that_makes_a_kernel_is_named_with_it(self):
        program = MadeUp({"--jit=off"}, {"trace:a.py:3"}, {"pass:cse"}, {"pass:fuse"}, {"kernel:sum"}, traces=TRACES)
        self.assertEqual([culprit.switches for culprit in self.verdict(program).culprits], [["trace:a.py:3"], ["pass:cse"], ["pass:fuse"], ["kernel:sum"]])

    def test_each_run_is_judged_once(self):
        """And right behind it: a check looks at files, which the next run writes over."""
        program, written = MadeUp({"--jit=off"}, {"trace:a.py:3"}, {"op:aten::mul"}, traces=TRACES), []
        usual = program.dynvm
        known = {}

        def dynvm(switches=(), options=(), kept=True):
            key = (frozenset(switches), tuple(options))
            if key not in known:
                known[key] = usual(switches, options)
                written[:] = [known[key].stdout]
            return known[key]

        program.dynvm = dynvm
        judge = Judge(1e-4, check="true")
        judge.opinion = lambda outcome: "" if written == ["1.0\n"] else "wrong"
        verdict = Investigation(program, judge, TABLES, lambda line: None).run()
        self.assertEqual([culprit.switches for culprit in verdict.culprits], [["trace:a.py:3"], ["op:aten::mul"]])

    def test_safe_alone(self):
        verdict = self.verdict(MadeUp({"--jit=off"}, {"--safe"}, traces=TRACES))
        self.assertEqual((verdict.option, verdict.safe, verdict.culprits), ("--jit=off", True, []))


class TimeLimit(unittest.TestCase):
    """How busy the machine is does not decide: a run has its time of the processor as well."""

    def looks(self, *used, ends_after=10**6):
        """How often a run is looked at until it is ended, None where it ends by itself. used: seconds of the processor at each look; the last ones go on as the last two do."""
        count = 0

        class Run:
            pid = 0

            def communicate(self, timeout):
                if count >= ends_after:
                    return b"", b""
                raise subprocess.TimeoutExpired("", timeout)

        def seconds(pid):
            nonlocal count
            count += 1
            return used[count - 1] if count <= len(used) else used[-1] + (used[-1] - used[-2]) * (count - len(used))

        with unittest.mock.patch.object(runs, "processor_seconds", seconds):
            out, _ = Program([], timeout=100)._wait(Run())
        return count if out is None else None

    def test_one_that_goes_on(self):
        self.assertEqual(self.looks(100, 200), 1)

    def test_one_that_stands_still(self):
        self.assertEqual(self.looks(0.5, 0.5), 1)
        self.assertEqual(self.looks(20, 20), 1 + runs.LOOKS)

    def test_one_that_gets_little_of_the_processor(self):
        self.assertIsNone(self.looks(20, 23, ends_after=20))
        self.assertEqual(self.looks(20, 30), 9)
        self.assertEqual(self.looks(20, 20, 20, 30), 4 + 7)
        self.assertEqual(self.looks(2, 2.5), runs.PATIENCE * runs.LOOKS)

    def test_of_a_process(self):
        self.assertTrue(Program(["-c", "import time\ntime.sleep(100)"], timeout=0.5).python().late)
        self.assertFalse(Program(["-c", "pass"], timeout=100).python().late)


if __name__ == "__main__":
    unittest.main()
