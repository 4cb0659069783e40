"""The runner of popular packages: what the worker tells of pytest's tests, the table, packages that cannot be fetched."""

import os
import subprocess
import sys
import tomllib
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import run as runner  # noqa: E402
from compare import PYTHON, CompareCase  # noqa: E402
from process import Side  # noqa: E402


class Table(unittest.TestCase):
    def test_rows(self):
        with open(os.path.join(HERE, "packages.toml"), "rb") as file:
            table = tomllib.load(file)
        self.assertGreaterEqual(len(table), 5)
        for name, row in table.items():
            self.assertLessEqual(set(row), {"version", "with", "source", "arguments", "about", "without"}, name)
            self.assertTrue(row["about"].endswith("."), name)
            for reason in row.get("without", {}).values():
                self.assertRegex(reason, r"\w+ .*\.$")


class Fetching(CompareCase):
    def test_what_cannot_be_had(self):
        package = runner.Package("sample", {"version": "1", "with": [], "arguments": []}, self.folder)
        package.python = self.script("#!/bin/sh\necho noise >&2\necho 'ERROR: no such package' >&2\nexit 1\n", "python")
        os.chmod(package.python, 0o755)
        with self.assertRaisesRegex(runner.NotFetched, "^ERROR: no such package$"):
            package.pip("install", "sample")


@unittest.skipIf(subprocess.run([PYTHON, "-c", "import pytest"], capture_output=True).returncode, "this Python has no pytest")
class Worker(CompareCase):
    def run_tests(self, text, only=None, without=()):
        self.script(text, "test_sample.py")
        side = Side(PYTHON, False, runner.WORKER, {"arguments": ["test_sample.py"]}, 60, tree=self.folder)
        run = side.run("sample", only, without)
        return run, {name.removeprefix("test_sample.py::"): test[0] for name, test in run.tests.items()}

    def test_outcomes(self):
        run, found = self.run_tests("""
            import pytest
            def test_ok(): pass
            def test_fail(): assert 0, "reason of it"
            def test_skip(): pytest.skip("no")
            @pytest.mark.xfail
            def test_expected(): assert 0
            @pytest.fixture
            def broken(): 1 / 0
            @pytest.fixture
            def late():
                yield
                1 / 0
            def test_setup(broken): pass
            def test_teardown(late): pass
            @pytest.mark.parametrize("x", [1, "a (b)"])
            def test_each(x): pass
            """)
        self.assertEqual(found, {"test_ok": "ok", "test_fail": "fail", "test_skip": "skip", "test_expected": "skip", "test_setup": "fail",
                                 "test_teardown": "fail", "test_each[1]": "ok", "test_each[a (b)]": "ok"})
        self.assertIn("reason of it", run.tests["test_sample.py::test_fail"][2])
        self.assertTrue(run.finished and run.ended)

    def test_parts(self):
        text = """
            class TestA:
                def test_a(self): pass
                def test_b(self): pass
            def test_a(): pass
            def test_ab(): pass
            """
        self.assertEqual(list(self.run_tests(text, only=["test_sample.py::TestA"])[1]), ["TestA::test_a", "TestA::test_b"])
        self.assertEqual(list(self.run_tests(text, only=["test_sample.py::test_a"])[1]), ["test_a"])
        self.assertEqual(list(self.run_tests(text, without=["test_sample.py::TestA", "test_sample.py::test_a#2"])[1]), ["test_ab"])

    def test_what_does_not_load(self):
        self.assertEqual(self.run_tests("1 / 0")[1], {"test_sample.py (collect)": "error"})

    def test_crash(self):
        run, found = self.run_tests("import os\ndef test_a(): pass\ndef test_b(): os.abort()")
        self.assertEqual(found, {"test_a": "ok", "test_b": "unfinished"})
        self.assertIn("SIGABRT", run.why)


if __name__ == "__main__":
    unittest.main()
