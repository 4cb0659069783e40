"""The runner of public programs: what it takes for the same, what it says of dynvm's report, its tables, and the data that programs learn from."""

import collections
import contextlib
import io
import os
import re
import sys
import tomllib
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "programs")]
import run as runner  # noqa: E402
from compare import PYTHON, CompareCase  # noqa: E402
from packages import Environment, NotFetched  # noqa: E402
from session import Run  # noqa: E402

# A loss that twenty steps of descent give, told to six places.
DESCENT = """
    import torch
    torch.manual_seed(0)
    x, w = torch.randn(64, 8), torch.randn(8, requires_grad=True)
    for step in range(20):
        loss = (torch.tanh(x @ w) - 0.5).pow(2).mean()
        grad, = torch.autograd.grad(loss, w)
        with torch.no_grad():
            w -= 0.1 * grad
    print(f"step {step} loss {loss.item() * FACTOR:.6f}")
    """


def without_torch():
    import subprocess
    return subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0


def quiet(expected, got, noisy=None, text=""):
    """The complaints of compare() about two outputs."""
    first, second = Run(0, expected, ""), Run(0, got, "")
    return runner.compare(text, first, second, lambda part: noisy or (lambda seed: getattr(first, part)))


class Compared(unittest.TestCase):
    def test_the_same(self):
        self.assertEqual(quiet("loss 1.5\n", "loss 1.5\n"), ([], False))
        self.assertEqual(quiet("loss 123.4567 0.5\n", "loss 123.4568 0.5\n"), ([], False))

    def test_a_wrong_number_fails(self):
        complaints, _ = quiet("a\nloss 1.2345\n", "a\nloss 1.2395\n")
        self.assertIn("numbers, line 2", complaints[0])

    def test_a_wrong_word_or_integer_fails(self):
        self.assertIn("text, line 1", quiet("right 41/64\n", "right 40/64\n")[0][0])
        self.assertIn("text, line 2", quiet("a\nb\n", "a\n")[0][0])

    def test_noise_widens(self):
        outputs = {0: "loss 1.0000\n", 1: "loss 1.0020\n", 2: "loss 0.9990\n", 3: "loss 1.0010\n"}
        self.assertEqual(quiet("loss 1.0000\n", "loss 1.0100\n", outputs.get), ([], True))
        self.assertTrue(quiet("loss 1.0000\n", "loss 1.2000\n", outputs.get)[0])

    def test_status_and_warnings(self):
        same = lambda part: lambda seed: ""  # noqa: E731
        self.assertIn("exit status 1, python gives 0", runner.compare("", Run(0, "", ""), Run(1, "", ""), same)[0])
        complaints, _ = runner.compare("", Run(0, "", ""), Run(0, "", "UserWarning: x\n"), same)
        self.assertIn("stderr: ", complaints[0])


class Reported(unittest.TestCase):
    report = {"aborts": {"loop_left": 3}, "handovers": 0, "failures": {"own": {}}, "checks": {"different": 0}}

    def test_usual(self):
        self.assertEqual(runner.judge_report("x", self.report, [], collections.Counter()), [])

    def test_defects(self):
        for more in ({"aborts": {"pass_failed": 1}}, {"handovers": 2}, {"failures": {"own": {"x": 1}}}, {"checks": {"different": 1}}):
            self.assertEqual(len(runner.judge_report("x", {**self.report, **more}, ["dynvm: check: it\n"], collections.Counter())), 1, more)
        self.assertEqual(len(runner.judge_report("x", {**self.report, "checks": {"different": 1}}, [], collections.Counter())), 1)  # nothing says what
        self.assertEqual(runner.judge_report("x", None, [], collections.Counter()), ["no report was written"])


class Tables(unittest.TestCase):
    def test_programs(self):
        paths = runner.scripts("programs")
        names = {os.path.basename(path)[:-3] for path in paths}
        self.assertGreaterEqual(len(names), 30)
        self.assertLessEqual(runner.QUICK, names)
        for path in paths:
            with open(path, encoding="utf-8") as file:
                self.assertRegex(file.read(), r'\A"""[A-Z][^"]+\.\n?[^"]*"""\n', path)

    def test_packaged(self):
        with open(os.path.join(HERE, "packages.toml"), "rb") as file:
            table = tomllib.load(file)
        self.assertGreaterEqual(len(table), 5)
        for name, row in table.items():
            self.assertEqual(set(row), {"requirements", "about"}, name)
            self.assertTrue(row["about"].endswith("."), name)
            self.assertTrue(os.path.exists(os.path.join(HERE, "packaged", name + ".py")), name)
            for requirement in row["requirements"]:
                self.assertRegex(requirement, r"^[\w-]+==[\d.]+$")


@unittest.skipIf(without_torch(), "this Python has no torch")
class Running(CompareCase):
    def program(self, factor=1.0):
        return runner.Program(self.script(DESCENT.replace("FACTOR", repr(factor))))

    def test_a_seeded_wrong_number_is_found_and_rounding_is_not(self):
        program = self.program()
        expected, _ = program.under_python()
        self.assertEqual(expected.status, 0, expected.stderr)
        noise = runner.Noise(program)
        self.assertEqual(noise.run(0).stdout, expected.stdout)
        wrong = runner.Program(self.script(DESCENT.replace("FACTOR", "1.001"), "wrong.py")).under_python()[0]
        complaints, _ = runner.compare(program.text, expected, wrong, noise.of)
        self.assertIn("numbers, line 1", complaints[0])
        self.assertEqual(runner.compare(program.text, expected, noise.run(1), noise.of)[0], [])

    def test_a_run(self):
        row = runner.run_program(self.program(), False, collections.Counter())
        self.assertEqual(row["complaints"], [])
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            runner.show(row, True)
        self.assertRegex(shown.getvalue(), r"% compiled +[\d.]+ s / python +[\d.]+ s = +[\d.]+")

    def test_a_program_that_fails_under_python_fails(self):
        row = runner.run_program(runner.Program(self.script("raise SystemExit(3)")), False, collections.Counter())
        self.assertIn("ends with status 3 under python", row["complaints"][0])

    def test_data_leave_the_random_state(self):
        import torch
        from synthetic import Corpus, Digits, Pole, Shapes, community_graph
        state = torch.get_rng_state()
        digits, again, shapes, (x, edges, groups) = Digits(32, seed=1), Digits(32, seed=1), Shapes(8), community_graph()
        pole, corpus = Pole(1), Corpus(20, 5)
        pole.reset()
        while not any(pole.step(1)[2:]):
            pass
        self.assertTrue(torch.equal(state, torch.get_rng_state()))
        self.assertTrue(torch.equal(digits.data, again.data))
        self.assertGreater(digits[0][0].max(), 0.8)
        self.assertEqual(tuple(shapes.masks.shape), (8, 1, 32, 32))
        self.assertTrue((shapes.masks.sum(dim=(1, 2, 3)) > 0).all())
        same = groups[edges[0]] == groups[edges[1]]
        self.assertGreater(same.float().mean(), 0.6)
        self.assertLess(int(corpus.train.max()), len(corpus))


class Environments(CompareCase):
    def test_what_cannot_be_had(self):
        place = Environment(self.folder, ["sample==1"])
        place.python = self.script("#!/bin/sh\necho noise >&2\necho 'ERROR: no such package' >&2\nexit 1\n", "python")
        os.chmod(place.python, 0o755)
        with self.assertRaisesRegex(NotFetched, "^ERROR: no such package$"):
            place.fill()

    def test_made_anew_where_the_row_changes(self):
        place = Environment(os.path.join(self.folder, "one"), [])
        place.fill = lambda: None
        place.make()
        inside = os.path.join(place.folder, "mark")
        open(inside, "w").close()
        place.make()
        self.assertTrue(os.path.exists(inside))
        place.requirements.append("other==1")
        place.make()
        self.assertFalse(os.path.exists(inside))
        self.assertTrue(re.search("other", place.wanted()))


if __name__ == "__main__":
    unittest.main()
