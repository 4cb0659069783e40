"""The runner of CPython's tests: what it takes for a difference, what it reads of a process that ends in any way, its tables."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import tables  # noqa: E402
import verdicts  # noqa: E402
from compare import PYTHON, CompareCase  # noqa: E402
from process import Kept, Run  # noqa: E402
from run import side  # noqa: E402


def run_of(ended=True, handovers=None, traced=False, **tests):
    return Run({name: [outcome, 0, "why"] for name, outcome in tests.items()}, ended, ended, "" if ended else "ended by SIGSEGV",
               1.0, traced, handovers)


class Verdicts(unittest.TestCase):
    def kinds(self, stock, own, excluded=""):
        found = verdicts.compare("m", stock, own, tables.Exclusions((3, 11), excluded))
        return {v.test: v.kind for v in found}

    def test_passing_must_pass(self):
        for own, kind in (("ok", "passed"), ("fail", "failed"), ("error", "failed"), ("skip", "failed"), ("unfinished", "failed")):
            self.assertEqual(self.kinds(run_of(t="ok"), run_of(t=own))["t"], kind, own)

    def test_skipped_must_not_fail(self):
        for own, kind in (("ok", "passed"), ("skip", "skipped"), ("fail", "failed")):
            self.assertEqual(self.kinds(run_of(t="skip"), run_of(t=own))["t"], kind, own)

    def test_failing_says_nothing(self):
        for stock in ("fail", "error", "unfinished"):
            for own in ("ok", "fail"):
                self.assertEqual(self.kinds(run_of(t=stock), run_of(t=own))["t"], "skipped")

    def test_tests_that_did_not_run(self):
        self.assertEqual(self.kinds(run_of(t="ok", u="ok"), run_of(t="ok")), {"t": "passed", "u": "failed", "m (exit)": "passed"})
        self.assertEqual(self.kinds(run_of(t="ok"), run_of(False, t="ok")), {"t": "passed", "m (exit)": "failed"})

    def test_only_under_dynvm(self):
        """A fixture that fails is a test that python's run does not have."""
        self.assertEqual(self.kinds(run_of(), run_of(t="error"))["t"], "failed")

    def test_exclusions(self):
        row = 'EXCLUDED("m.t", "3.11 3.12", "says so.")'
        ok, fail = run_of(**{"m.t": "ok"}), run_of(**{"m.t": "fail"})
        self.assertEqual(self.kinds(ok, fail, row)["m.t"], "skipped")
        self.assertEqual(self.kinds(run_of(), run_of(), row)["m.t"], "skipped")
        self.assertEqual(self.kinds(ok, fail, row.replace("3.11 ", ""))["m.t"], "failed")
        row = 'EXCLUDED("m.t", "all --children", "says so.")'
        self.assertEqual(tables.Exclusions((3, 11), row).of("m"), [])
        self.assertEqual(tables.Exclusions((3, 11), row, children=True).of("m"), [("m.t", "says so.")])

    def test_handovers_need_tracing(self):
        for handovers, traced, kind in ((0, False, "passed"), (3, False, "failed"), (3, True, "passed")):
            self.assertEqual(self.kinds(run_of(), run_of(True, handovers, traced))["m (hand-overs)"], kind)

    def test_second_run(self):
        first = [verdicts.Verdict("m", "t", "failed", "late"), verdicts.Verdict("m", "u", "failed"), verdicts.Verdict("m", "v", "passed")]
        second = [verdicts.Verdict("m", "t", "passed"), verdicts.Verdict("m", "u", "failed"), verdicts.Verdict("m", "v", "failed")]
        found, changed = verdicts.again(first, second)
        self.assertEqual([v.kind for v in found], ["passed", "failed", "passed"])
        self.assertEqual(changed, [("t", "late")])


class Tables(unittest.TestCase):
    def test_can_be_read(self):
        self.assertIn("test_grammar", tables.chosen("quick"))
        self.assertLess(len(tables.chosen("quick")), len(tables.chosen("subset")))
        self.assertEqual(len(set(tables.chosen("subset"))), len(tables.chosen("subset")))

    def test_few_exclusions_with_reasons(self):
        for version in ((3, 11), (3, 12), (3, 13)):
            reasons = tables.Exclusions(version, children=True).reasons
            self.assertLess(len(reasons), 40)
            for reason in reasons.values():
                self.assertRegex(reason, r"\w+ .*\.$")

    def test_rows(self):
        self.assertEqual(tables.rows('// x\n\nA("b \\"c\\"", d)\n', "A", 2), [('b "c"', "d")])
        for wrong in ("A(b)", 'B("b", c)', "words"):
            with self.assertRaises(ValueError):
                tables.rows(wrong, "A", 2)

    def test_selection(self):
        modules = ["test_a", "test_b.test_c", "test_b.test_d"]
        self.assertEqual(tables.select(["test_a"], modules), {"test_a": None})
        self.assertEqual(tables.select(["test_b"], modules), {"test_b.test_c": None, "test_b.test_d": None})
        self.assertEqual(tables.select(["test_b.test_c.K.f", "test.test_a"], modules), {"test_b.test_c": ["test_b.test_c.K.f"], "test_a": None})
        self.assertEqual(tables.select(["test_x", "test_a"], modules, strict=False), {"test_a": None})
        with self.assertRaises(ValueError):
            tables.select(["test_x"], modules)


@unittest.skipIf(tables.about(PYTHON)[1] is None, "this Python has no test package")
class Processes(CompareCase):
    """Modules of all kinds, put into the `test` package of a python for these tests."""

    def side(self, text, limit=60, without=()):
        self.script(text, "test_sample.py")
        self.script("import test\ntest.__path__.append(%r)" % self.folder, "sitecustomize.py")
        program = self.script(f'#!/bin/sh\nPYTHONPATH={self.folder} exec {PYTHON} "$@"\n', "program")
        os.chmod(program, 0o755)
        return side(program, False, limit=limit, without=without)

    def run_module(self, text, limit=60, only=None, without=()):
        run = self.side(text, limit, without).run("test_sample", only)
        return run, {name: test[0] for name, test in run.tests.items()}

    def test_outcomes(self):
        run, found = self.run_module("""
            import unittest, sys
            class K(unittest.TestCase):
                def test_ok(self): print("noise")
                def test_fail(self): self.fail("reason of it")
                def test_error(self): 1 / 0
                def test_skip(self): self.skipTest("no")
                @unittest.expectedFailure
                def test_expected(self): self.fail()
                @unittest.expectedFailure
                def test_unexpected(self): pass
                def test_subtests(self):
                    for i in range(3):
                        with self.subTest(i=i): self.assertNotEqual(i, 1)
            class L(unittest.TestCase):
                @classmethod
                def setUpClass(cls): raise OSError
                def test_never(self): pass
            """)
        self.assertEqual(found, {
            "test_sample (import)": "ok", "test_sample.K.test_ok": "ok", "test_sample.K.test_fail": "fail",
            "test_sample.K.test_error": "error", "test_sample.K.test_skip": "skip", "test_sample.K.test_expected": "ok",
            "test_sample.K.test_unexpected": "fail", "test_sample.K.test_subtests": "fail",
            "setUpClass (test.test_sample.L)": "error"})
        self.assertIn("reason of it", run.tests["test_sample.K.test_fail"][2])
        self.assertTrue(run.finished and run.ended)
        self.assertFalse(run.traced)

    def test_doctests_and_load_tests(self):
        _, found = self.run_module('''
            """
            >>> 1 + 1
            2
            """
            import doctest
            def load_tests(loader, tests, pattern):
                tests.addTest(doctest.DocTestSuite())
                tests.addTest(doctest.DocTestSuite())
                return tests
            ''')
        self.assertEqual(found, {"test_sample (import)": "ok", "test_sample": "ok", "test_sample#2": "ok"})

    def test_modules_that_do_not_load(self):
        self.assertEqual(self.run_module("import unittest; raise unittest.SkipTest('not here')")[1], {"test_sample (import)": "skip"})
        self.assertEqual(self.run_module("1 / 0")[1], {"test_sample (import)": "error"})

    def test_crash(self):
        run, found = self.run_module("""
            import unittest, os, signal
            class K(unittest.TestCase):
                def test_a(self): pass
                def test_b(self): os.kill(os.getpid(), signal.SIGSEGV)
                def test_c(self): pass
            """)
        self.assertEqual(found, {"test_sample (import)": "ok", "test_sample.K.test_a": "ok", "test_sample.K.test_b": "unfinished"})
        self.assertFalse(run.finished or run.ended)
        self.assertIn("SIGSEGV", run.why)
        self.assertIn("in test_b", run.why)  # where it stood

    def test_those_behind_a_stuck_one(self):
        run = self.side("""
            import unittest, os
            class K(unittest.TestCase):
                def test_a(self): os._exit(1)
                def test_b(self): pass
                def test_c(self): os._exit(1)
                def test_d(self): pass
            """).run_through("test_sample")
        self.assertEqual({name[-1]: test[0] for name, test in run.tests.items() if ".K." in name},
                         {"a": "unfinished", "b": "ok", "c": "unfinished", "d": "ok"})
        self.assertTrue(run.ended)

    def test_time_limit(self):
        run, found = self.run_module("""
            import unittest, time
            class K(unittest.TestCase):
                def test_a(self): time.sleep(60)
            """, limit=1)
        self.assertEqual(found["test_sample.K.test_a"], "unfinished")
        self.assertIn("time limit", run.why)
        self.assertIn("in test_a", run.why)

    def test_end_of_the_interpreter(self):
        run, _ = self.run_module("import atexit, os\natexit.register(os._exit, 3)")
        self.assertTrue(run.finished)
        self.assertFalse(run.ended)
        self.assertIn("exit status 3", run.why)

    def test_tracing_is_seen(self):
        run, _ = self.run_module("import sys; sys.settrace(None)")
        self.assertTrue(run.traced)

    def test_single_tests(self):
        text = """
            import unittest
            class K(unittest.TestCase):
                def test_a(self): pass
                def test_ab(self): pass
            class L(unittest.TestCase):
                def test_a(self): pass
            """
        self.assertEqual(list(self.run_module(text, only=["test_sample.K.test_a"])[1]), ["test_sample (import)", "test_sample.K.test_a"])
        self.assertEqual(len(self.run_module(text, only=["test_sample.K"])[1]), 3)
        self.assertEqual(len(self.run_module(text, without=["test_sample.K.test_a"])[1]), 3)

    def test_checks_left_out(self):
        text = """
            import unittest
            class K(unittest.TestCase):
                def check(self, x): self.fail(x)
                def test_a(self): self.check(x=1)
            """
        for without, outcome in ((), "fail"), (["test_sample.K.check"], "ok"):
            self.assertEqual(self.run_module(text, without=without)[1]["test_sample.K.test_a"], outcome)

    def test_kept_results(self):
        kept = Kept(side(PYTHON, False), self.folder)
        self.assertIsNone(kept.load("test_sample"))
        run = run_of(t="ok")
        kept.store("test_sample", run)
        self.assertEqual(kept.load("test_sample"), run)
        self.assertNotEqual(Kept(side(PYTHON, False, ("cpu",)), self.folder).folder, kept.folder)


if __name__ == "__main__":
    unittest.main()
