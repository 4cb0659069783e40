"""`dynvm bisect` and `dynvm replay` as commands: a defect that it names, scripts that are right, that differ by themselves, and what decides."""

import os
import unittest

from bisect_case import BisectCase, INSTALLED, is_there
from compare import run

if not is_there():
    raise unittest.SkipTest("dynvm is not installed in .venv, with torch")

RIGHT = """\
import torch
torch.set_num_threads(1)
x, total = torch.arange(8.0), 0.0
for i in range(60): total += (torch.exp(x * 0.1) - x * i).sum().item()
print("total", round(total, 3))
open("result.txt", "w").write(str(round(total, 1)))
"""
RANDOM = "import os\nprint(os.urandom(4).hex())\n"
FAILS = """\
import torch
for i in range(60): torch.arange(3.0) * i
raise ValueError("as ever")
"""
DEFECT = {"DYNVM_DEFECT": "lower_sub_swapped"}


class Bisect(BisectCase):
    def test_a_defect_is_named_and_replayed(self):
        outcome, found = self.bisect(RIGHT, env=DEFECT)
        self.assertEqual(outcome.status, 1, outcome)
        self.assertIn("op:aten::sub", found["culprits"])
        self.assertIn("pass:fuse", found["culprits"])
        self.assertTrue(found["culprits"][0].endswith("script.py:4"), found["culprits"])
        self.assertTrue(found["option"].startswith("--disable=kernel:"), found["option"])
        self.assertRegex(outcome.stdout, r"(?m)^verdict: the kernel \w+ in the loop at script.py:4 .*; --disable=kernel:\w+ avoids it, and so does --safe$")
        folder = os.path.join(self.folder, "found")
        self.assertLess({"bisect.json", "expected.out", "wrong.out", "wrong.err", "script.py"}, set(os.listdir(folder)))
        again = run(INSTALLED, ["replay", folder], env=DEFECT, cwd=self.folder, timeout=300)
        self.assertEqual((again.status, again.stdout.splitlines()[-1]), (0, "as it was found"), again)
        # Without the defect, and without the script in its place.
        os.rename(os.path.join(self.folder, "script.py"), os.path.join(self.folder, "away.py"))
        mended = run(INSTALLED, ["replay", folder], cwd=self.folder, timeout=300)
        self.assertEqual((mended.status, mended.stdout.splitlines()[-1]), (0, "as it was found"), "the variable is part of what was found")
        compiled = run(INSTALLED, ["replay", folder, "--heuristics=fuse_nodes=8"], cwd=self.folder, timeout=300)
        self.assertEqual(compiled.status, 0, compiled)
        self.assertIn("trace-", compiled.stdout)

    def test_a_right_script(self):
        outcome, found = self.bisect(RIGHT)
        self.assertEqual((outcome.status, found), (0, None), outcome)
        self.assertIn("dynvm's result is right", outcome.stdout)

    def test_a_script_that_fails_as_under_python(self):
        outcome, found = self.bisect(FAILS)
        self.assertEqual((outcome.status, found), (0, None), outcome)

    def test_a_script_that_differs_by_itself(self):
        outcome, found = self.bisect(RANDOM)
        self.assertEqual((outcome.status, found), (3, None), outcome)
        self.assertIn("python's own two runs differ", outcome.stdout)

    def test_a_check_decides(self):
        usual = run(INSTALLED, [self.script(RIGHT)], cwd=self.folder)
        value = usual.stdout.split()[1].split(".")[0]
        check = f"--check=grep -q -e '{value}' result.txt && test $DYNVM_BISECT_STATUS = 0 && grep -q total \"$DYNVM_BISECT_STDOUT\""
        outcome, found = self.bisect(RIGHT, check)
        self.assertEqual((outcome.status, found), (0, None), outcome)
        outcome, found = self.bisect(RIGHT, check, env=DEFECT)
        self.assertEqual(outcome.status, 1, outcome)
        self.assertIn("op:aten::sub", found["culprits"])

    def test_an_expected_text_decides(self):
        usual = run(INSTALLED, [self.script(RIGHT)], cwd=self.folder)
        file = os.path.join(self.folder, "expected.txt")
        with open(file, "w", encoding="utf-8") as stream:
            stream.write(usual.stdout)
        outcome, found = self.bisect(RIGHT, f"--expect={file}")
        self.assertEqual((outcome.status, found), (0, None), outcome)

    def test_command_lines(self):
        for words, text in (([], "there is no script"), (["--tolerance=x", "s.py"], "--tolerance: expected a number"), (["--timeout"], "--timeout: its value is missing"),
                            (["--expect=none.txt", "s.py"], "--expect: "), (["--check=true", "--expect=x", "s.py"], "one of them")):
            with self.subTest(words=words):
                outcome = run(INSTALLED, ["bisect", *words], cwd=self.folder)
                self.assertEqual(outcome.status, 2, outcome)
                self.assertIn(text, outcome.stderr)
        self.assertEqual(run(INSTALLED, ["bisect", "--help"]).status, 0)


if __name__ == "__main__":
    unittest.main()
