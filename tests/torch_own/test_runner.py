"""The runner of torch's tests: what its worker tells, what loops do, where sources come from, what is a difference."""

import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib")]
import run as runner  # noqa: E402
import sources  # noqa: E402
import verdicts  # noqa: E402
from compare import PYTHON, CompareCase  # noqa: E402
from process import Run, Side  # noqa: E402


def run_of(**tests):
    found = {name: [outcome, 0, shown] for name, (outcome, shown) in tests.items()}
    return Run(found, True, True, "", 1.0, False, None)


class Verdicts(unittest.TestCase):
    def kind(self, stock, own):
        found = verdicts.compare("m", run_of(t=stock), run_of(t=own), runner.Exclusions("hot", []))
        return {v.test: v.kind for v in found}["t"]

    def test_shown_text_is_compared(self):
        self.assertEqual(self.kind(("ok", "a 1.50000 2"), ("ok", "a 1.50001 2")), "passed")
        self.assertEqual(self.kind(("ok", "a 1.50000 2"), ("ok", "a 1.51000 2")), "failed")
        self.assertEqual(self.kind(("ok", "a 1.50000 2"), ("ok", "a 1.50000 3")), "failed")
        self.assertEqual(self.kind(("ok", "a"), ("ok", "")), "failed")
        self.assertEqual(self.kind(("fail", "a"), ("ok", "b")), "skipped")

    def test_two_runs_that_differ_say_nothing(self):
        first, second = run_of(t=("ok", "1.0"), u=("ok", "1.0")), run_of(t=("ok", "2.0"), u=("ok", "1.0"))
        self.assertEqual(verdicts.undetermined(first, second), {"t"})

    def test_exclusions_are_of_modes(self):
        table = [("test_a.K.f", "hot looped", "why."), ("test_b.K", "all", "why.")]
        self.assertEqual(runner.Exclusions("hot", table).of("test_a"), [("test_a.K.f", "why.")])
        self.assertEqual(runner.Exclusions("once", table).of("test_a"), [])
        self.assertEqual(runner.Exclusions("once", table).of("test_b"), [("test_b.K", "why.")])


class Tables(unittest.TestCase):
    def test_can_be_read(self):
        modules = runner.table("modules.def", "MODULE", 3)
        self.assertEqual(len({name for name, _, _ in modules}), len(modules))
        self.assertLessEqual({level for _, level, _ in modules}, set(runner.LEVELS))
        for name, _, _ in modules:
            if name.startswith(runner.OWN):
                self.assertEqual(runner.owner(name, [HERE]), name)

    def test_modes(self):
        self.assertEqual([mode.name for mode in runner.modes_of(["hot", "looped"])], ["hot", "looped"])
        with self.assertRaises(SystemExit):
            runner.modes_of(["cold"])

    def test_excluded_with_reasons(self):
        modes = {mode.name for mode in runner.modes_of([])} | {"all"}
        for _, where, reason in runner.table("exclusions.def", "EXCLUDED", 3):
            self.assertLessEqual(set(where.split()), modes)
            self.assertRegex(reason, r"\w+ .*\.$")


class Processes(CompareCase):
    def run_module(self, text, name="test_sample", times=1, only=None, without=()):
        os.makedirs(os.path.join(self.folder, os.path.dirname(name.replace(".", "/"))), exist_ok=True)
        self.script(text, name.replace(".", "/") + ".py")
        side = Side(PYTHON, False, runner.WORKER, {"roots": [self.folder], "times": times}, 60, tuple(without))
        run = side.run(name, only)
        return run, {test: found[0] for test, found in run.tests.items()}

    TEXT = """
        import unittest
        calls = []
        class K(unittest.TestCase):
            def test_a(self):
                self.shown = "text of a"
            def test_once(self):
                calls.append(1)
                self.assertEqual(len(calls), 1)
            @unittest.skip("no")
            def test_skipped(self): pass
            @unittest.expectedFailure
            def test_expected(self): self.fail()
        """

    def test_outcomes_and_what_is_shown(self):
        run, found = self.run_module(self.TEXT)
        self.assertEqual(found, {"test_sample (import)": "ok", "test_sample.K.test_a": "ok",
                                 "test_sample.K.test_once": "ok", "test_sample.K.test_skipped": "skip",
                                 "test_sample.K.test_expected": "ok"})
        self.assertEqual(run.tests["test_sample.K.test_a"][2], "text of a")
        self.assertTrue(run.finished and run.ended)

    def test_a_loop_calls_the_method_again(self):
        _, found = self.run_module(self.TEXT, times=3)
        self.assertEqual(found, {"test_sample (import)": "ok", "test_sample.K.test_a": "ok",
                                 "test_sample.K.test_once": "fail", "test_sample.K.test_skipped": "skip",
                                 "test_sample.K.test_expected": "ok"})

    def test_files_in_folders_find_their_neighbours(self):
        self.script("", "near.py")
        os.makedirs(os.path.join(self.folder, "below"))
        self.script("", "below/beside.py")
        _, found = self.run_module("""
            import near, beside, unittest
            class K(unittest.TestCase):
                def test_a(self): pass
            """, "below.test_sample")
        self.assertEqual(found, {"below.test_sample (import)": "ok", "below.test_sample.K.test_a": "ok"})

    def test_single_tests(self):
        self.assertEqual(len(self.run_module(self.TEXT, only=["test_sample.K.test_a"])[1]), 2)
        self.assertEqual(len(self.run_module(self.TEXT, without=["test_sample.K"])[1]), 1)

    def test_what_cannot_be_imported(self):
        self.assertEqual(self.run_module("1 / 0")[1], {"test_sample (import)": "error"})
        _, found = self.run_module("import unittest; raise unittest.SkipTest('no')")
        self.assertEqual(found, {"test_sample (import)": "skip"})


class Sources(CompareCase):
    def torch(self, commit):
        torch = object.__new__(sources.Torch)
        torch.commit, torch.python, torch.interpreter = commit, "3.11", PYTHON
        return torch

    def git(self, *words):
        return subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words], check=True,
                              cwd=os.path.join(self.folder, "origin"), capture_output=True, text=True).stdout.strip()

    def test_only_the_tests_of_one_commit_are_fetched(self):
        os.makedirs(os.path.join(self.folder, "origin"))
        for name in ("test", "other"):
            os.makedirs(os.path.join(self.folder, "origin", name))
            self.script("first = 1", f"origin/{name}/test_a.py")
        try:
            self.git("init", "--quiet")
        except OSError:
            self.skipTest("no git")
        self.git("config", "uploadpack.allowAnySHA1InWant", "true")
        self.git("add", ".")
        self.git("commit", "--quiet", "-m", "first")
        commit = self.git("rev-parse", "HEAD")
        self.script("second = 2", "origin/test/test_a.py")
        self.git("commit", "--quiet", "-a", "-m", "second")
        folder = sources.sources(self.torch(commit), self.folder, "file://" + os.path.join(self.folder, "origin"))
        with open(os.path.join(folder, "test_a.py"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "first = 1")
        self.assertFalse(os.path.exists(os.path.join(os.path.dirname(folder), "other")))

    def test_what_cannot_be_fetched_leaves_nothing(self):
        kept = os.path.join(self.folder, "kept")
        os.makedirs(kept)
        with self.assertRaises(sources.NotFetched):
            sources.sources(self.torch("0" * 40), kept, "file://" + os.path.join(self.folder, "nothing"))
        self.assertEqual(os.listdir(kept), [])

    def test_what_changes_is_not_kept(self):
        path = self.script("a = 1", "test_a.py")
        before = sources.mark(self.folder)
        os.utime(path, (1, 1))
        self.assertNotEqual(before, sources.mark(self.folder))


if __name__ == "__main__":
    unittest.main()
