"""dynvm's own options, the report at each kind of end, the Python package."""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

from compare import CompareCase, DYNVM, PYTHON, ROOT, run

KEYS = {"tensor_ops_total", "tensor_ops_compiled", "traces", "side_exits", "aborts", "residual_calls", "handovers", "record_ms",
        "compile_ms", "native"}


class Options(CompareCase):
    def test_version(self):
        outcome = run(DYNVM, ["--version"])
        self.assertEqual(outcome.status, 0)
        self.assertRegex(outcome.stdout, r"^dynvm \d+\.\d+\.\d+ \(Python 3\.\d+\.\d+, (torch \S+|no torch)\)\n$")

    def test_help_lists_each_row_of_the_table(self):
        outcome = run(DYNVM, ["--help"])
        self.assertEqual((outcome.status, outcome.stderr), (0, ""))
        with open(os.path.join(ROOT, "runtime", "base", "options.def"), encoding="utf-8") as table:
            spellings = re.findall(r'^[A-Z]+\(\w+, "(--[\w-]+)"', table.read(), re.M)
        self.assertGreater(len(spellings), 5)
        for spelling in spellings:
            self.assertIn(spelling, outcome.stdout)

    def test_bad_values_end_with_status_2(self):
        for option in ("--jit=x", "--hot=x", "--log=x", "--dump=x", "--stress=x", "--report=", "--stats=1", "--report"):
            with self.subTest(option=option):
                outcome = run(DYNVM, [option])
                self.assertEqual(outcome.status, 2)
                self.assertRegex(outcome.stderr, r"\Adynvm: --\w+.*\n\Z")

    def test_options_are_hidden_from_the_script(self):
        outcome = run(DYNVM, ["--hot", "3", "-X", "dev", "--jit=on", "-c", "import sys; print(sys.argv, sys.orig_argv[1:])", "--stats"])
        self.assertEqual(outcome.stdout, "['-c', '--stats'] ['-X', 'dev', '-c', 'import sys; print(sys.argv, sys.orig_argv[1:])', '--stats']\n")

    def test_counted_instructions(self):
        text = "def f(a, b):\n  return a + b\nfor i in range(500): f(i, 2.5)\nfor i in range(300): [] @ b if i < 0 else {1} | {2}\nfor i in range(40): exec('{1} | {2}')"
        outcome = run(DYNVM, ["--dump=pairs", "-c", text])
        self.assertEqual((outcome.status, outcome.stdout), (0, ""))
        forms, pairs, operands = (outcome.stderr.split(title)[1] for title in ("\nforms:\n", "\npairs:\n", "\noperands of generic forms:\n"))
        calls = int(re.search(r"(\d+) +[\d.]+ %  CallPythonExact\*\n", forms)[1])
        own = 50 if sys.version_info >= (3, 13) else 0  # Python's, when it starts
        self.assertTrue(400 < calls < 500 + own, calls)  # a few were looked at first
        self.assertIn("BinarySlot*\n", forms)
        self.assertRegex(pairs, r"\d+ +[\d.]+ %  CallPythonExact\* ")
        self.assertRegex(operands, r"\d+ +[\d.]+ %  BinaryOp 7 set set\n")

    def test_environment(self):
        outcome = run(DYNVM, ["-c", "pass"], env={"DYNVM_OPTIONS": "--stats"})
        self.assertIn("traces", outcome.stderr)
        outcome = run(DYNVM, ["-c", "pass"], env={"DYNVM_OPTIONS": "--odd"})
        self.assertEqual((outcome.status, outcome.stderr), (2, "dynvm: DYNVM_OPTIONS: --odd: no such option\n"))

    def test_every_switch_runs(self):
        for option in ("--jit=off", "--vm=off", "--hot=1", "--stress=exit", "--log=all"):
            with self.subTest(option=option):
                self.assertEqual(run(DYNVM, [option, "-c", "print(sum(range(10)))"]).stdout, "45\n")

    def test_symbolic_link_to_the_launcher(self):
        link = os.path.join(self.folder, "linked")
        os.symlink(DYNVM, link)
        self.assertEqual(run(link, ["-c", "print(1)"]).stdout, "1\n")


class Versions(CompareCase):
    def test_a_python_without_its_library(self):
        """The shim chooses the library by the process's Python; where there is none it says which there are."""
        program = os.path.realpath(DYNVM)
        libraries = os.path.join(os.path.dirname(os.path.dirname(program)), "lib", "dynvm")
        for folder in ("bin", os.path.join("lib", "dynvm")):
            os.makedirs(os.path.join(self.folder, folder))
        shutil.copy(program, os.path.join(self.folder, "bin"))
        shutil.copy(os.path.join(libraries, "libdynvm_shim.so"), os.path.join(self.folder, "lib", "dynvm"))
        os.symlink(PYTHON, os.path.join(self.folder, "bin", "python"))
        command = os.path.join(self.folder, "bin", "dynvm")
        outcome = run(command, ["-c", "print(1)"])
        self.assertEqual((outcome.status, outcome.stdout), (127, ""))
        self.assertIn("has no VM library\ndynvm: there is no VM library in ", outcome.stderr)
        open(os.path.join(self.folder, "lib", "dynvm", "libdynvm-cp39.so"), "w").close()
        self.assertIn("this installation serves Python 3.9\n", run(command, ["-c", "print(1)"]).stderr)


class Report(CompareCase):
    def report_after(self, text, **how):
        file = os.path.join(self.folder, "r.json")
        outcome = run(DYNVM, [f"--report={file}", self.script(text)], **how)
        self.assertTrue(os.path.exists(file), outcome)
        with open(file, encoding="utf-8") as content:
            report = json.load(content)
        self.assertLessEqual(KEYS, set(report))
        return report, outcome

    def test_normal_end(self):
        self.assertEqual(self.report_after("print(1)")[1].status, 0)

    def test_exit_in_script(self):
        self.assertEqual(self.report_after("import sys; sys.exit(3)")[1].status, 3)

    def test_exception(self):
        self.assertEqual(self.report_after("1/0")[1].status, 1)

    def test_ctrl_c(self):
        _, outcome = self.report_after("import time\nprint('ready', flush=True)\ntime.sleep(60)", interrupt_after="ready")
        self.assertEqual(outcome.status, -signal.SIGINT)

    def test_relative_name_and_chdir(self):
        outcome = run(DYNVM, ["--report", "r.json", "-c", "import os; os.chdir('/')"], cwd=self.folder)
        self.assertEqual(outcome.status, 0, outcome)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "r.json")))

    def test_forked_child_has_its_own_file(self):
        self.report_after("""
            import os, sys
            pid = os.fork()
            if pid == 0:
                sys.exit(0)
            os.waitpid(pid, 0)
        """)
        self.assertEqual(len(glob.glob(os.path.join(self.folder, "r.*.json"))), 1)

    def test_cannot_be_written(self):
        outcome = run(DYNVM, ["--report", os.path.join(self.folder, "none", "r.json"), "-c", "print(1)"])
        self.assertEqual((outcome.status, outcome.stdout), (0, "1\n"))
        self.assertIn("cannot write the report", outcome.stderr)

    def test_stats_are_eleven_lines_on_stderr(self):
        outcome = run(DYNVM, ["--stats", "-c", "print(1)"])
        self.assertEqual(outcome.stdout, "1\n")
        self.assertEqual(len(outcome.stderr.splitlines()), 12, outcome)

    def test_no_handover_without_tracing(self):
        report, _ = self.report_after("def f():\n    yield 1\nprint(list(f()), [i for i in range(3)])")
        self.assertEqual(report["handovers"], 0)


@unittest.skipUnless(os.path.exists(os.path.join(ROOT, ".venv", "bin", "dynvm")), "dynvm is not installed in .venv")
class Package(CompareCase):
    """The installed package; run with the environment's own interpreter."""

    python = os.path.join(ROOT, ".venv", "bin", "python")

    def test_python_m_dynvm(self):
        script = self.script("import sys; print(__name__, sys.argv, sys.flags.optimize); 1/0")
        expected, got = run(self.python, ["-O", script, "a"]), run(self.python, ["-O", "-m", "dynvm", script, "a"])
        self.assertEqual(repr(expected), repr(got))

    def test_version(self):
        text = run(self.python, ["-c", "import dynvm; print(dynvm.version())"]).stdout
        self.assertEqual(text, run(os.path.join(ROOT, ".venv", "bin", "dynvm"), ["--version"]).stdout)

    def test_install_into_a_running_interpreter(self):
        outcome = run(self.python, ["-c", "import dynvm; dynvm.install('--stats'); print((lambda: 3)())"])
        self.assertEqual((outcome.status, outcome.stdout), (0, "3\n"), outcome)
        self.assertIn("traces", outcome.stderr)

    def test_stats(self):
        self.assertEqual(run(self.python, ["-c", "import dynvm; print(dynvm.stats())"]).stdout, "{}\n")
        text = "import dynvm; a = dynvm.stats(); [x for x in [3] * 9999]; b = dynvm.stats(); print(len(a), a.keys() == b.keys(), b['native']['runs'] > 0)"
        outcome = run(os.path.join(ROOT, ".venv", "bin", "dynvm"), ["-c", f"def f():\n  {text}\nf()"])
        self.assertRegex(outcome.stdout, r"^\d\d True (True|False)\n$", outcome)

    def test_install_with_a_bad_option(self):
        outcome = run(self.python, ["-c", "import dynvm; dynvm.install('--odd')"])
        self.assertIn("ValueError: --odd: no such option", outcome.stderr)
