"""`dynvm lab`: settings, the test for noise, searches, and whole runs with what they print and save."""

import csv
import itertools
import json
import math
import os
import random
import sys
import unittest

from compare import run
from lab_case import INSTALLED, POLICIES, LabCase, SCRIPT

from dynvm.lab import noise, runs, search, settings, table


class Settings(unittest.TestCase):
    def test_grid(self):
        axes = [settings.parse_axis("hot_loop=1,4"), settings.parse_axis("fuse-operands=8,24,30")]
        found = settings.grid(axes)
        self.assertEqual([setting.values for setting in found],
                         [{}, {"hot_loop": 1, "fuse_operands": 8}, {"hot_loop": 1}, {"hot_loop": 1, "fuse_operands": 30}, {"fuse_operands": 8}, {"fuse_operands": 30}])
        self.assertEqual(found[0].name, "default")
        self.assertEqual(found[1].options(), ["--heuristics=hot_loop=1,fuse_operands=8"])

    def test_the_default_is_always_there(self):
        self.assertEqual([setting.name for setting in settings.grid([settings.parse_axis("hot_loop=7")])], ["default", "hot_loop=7"])

    def test_policy(self):
        file = os.path.join(POLICIES, "never_inline.py")
        found = settings.grid([settings.parse_axis(f"policy=default,{file}")])
        self.assertEqual([(setting.name, setting.options()) for setting in found], [("default", []), ("policy=never_inline.py", [f"--policy={file}"])])

    def test_sample(self):
        axes = [settings.parse_axis("hot_loop=1..1000"), settings.parse_axis("hot_exit=2,3")]
        found = settings.sample(axes, 200, seed=3)
        self.assertEqual(len(found), len(set(found)))
        self.assertEqual(found, settings.sample(axes, 200, seed=3))
        values = [setting.values.get("hot_loop", 4) for setting in found[1:]]
        self.assertTrue(all(1 <= value <= 1000 for value in values))
        self.assertTrue(20 < sum(value < 32 for value in values) < 150, "each order of magnitude as often")
        self.assertEqual(len(settings.sample([settings.parse_axis("hot_exit=2,3")], 9, 0)), 3)

    def test_wrong(self):
        for text, message in (("hot_lop=3", "'hot_lop' is no number of dynvm's (is hot_loop meant?)"), ("hot_loop", "expected NAME=VALUE"), ("hot_loop=", "expected NAME=VALUE"),
                              ("hot_loop=0", "from 1 to 1000000000, got 0"), ("hot_loop=2,x", "got 'x'"), ("hot_loop=9..2", "9 is greater than 2"),
                              ("policy=/nowhere.py", "no file /nowhere.py"), ("zzzz=1", "docs/heuristics.md")):
            with self.subTest(text=text), self.assertRaises(settings.Wrong) as caught:
                settings.parse_axis(text)
            self.assertIn(message, str(caught.exception))
        with self.assertRaises(settings.Wrong):
            settings.grid([settings.parse_axis("hot_loop=1..9")])


class Noise(unittest.TestCase):
    def test_known_values(self):
        """Exact two-sided p: 2 of the 252 (70) ways for samples that do not overlap; Mann and Whitney's table I for n = m = 3, U = 1: 0.2 in all."""
        self.assertAlmostEqual(noise.p_value([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]), 2 / 252)
        self.assertAlmostEqual(noise.p_value([9, 8, 7, 6], [1, 2, 3, 4]), 2 / 70)
        self.assertAlmostEqual(noise.p_value([1, 2, 4], [3, 5, 6]), 0.2)
        self.assertEqual(noise.p_value([1, 1, 1], [1, 1, 1]), 1.0)
        self.assertEqual(noise.p_value([], [1]), 1.0)

    def test_it_is_wrong_as_seldom_as_it_says(self):
        chance, wrong = random.Random(1), 0
        for _ in range(400):
            sample = [chance.gauss(0, 1) for _ in range(10)]
            wrong += noise.p_value(sample[:5], sample[5:]) < 0.05
        self.assertTrue(4 <= wrong <= 32, wrong)

    def test_many_runs_are_near_the_exact_value(self):
        a, b = list(range(0, 20, 2)), [value + 5 for value in range(1, 19, 2)]
        approximate = noise.p_value(a, b)
        all_ranks = noise.ranks(a + b)
        mean = len(a) * (len(all_ranks) + 1) / 2
        distance = abs(sum(all_ranks[:len(a)]) - mean)
        sums = [abs(sum(chosen) - mean) >= distance for chosen in itertools.combinations(all_ranks, len(a))]
        self.assertAlmostEqual(approximate, sum(sums) / len(sums), delta=0.01)

    def test_medians(self):
        self.assertEqual((noise.median([3, 1, 2]), noise.spread([1, 2, 10])), (2, 1))
        self.assertAlmostEqual(noise.least_p_value(4, 4), 2 / 70)


class Searches(unittest.TestCase):
    def laboratory(self, cost, higher=False):
        self.order = []

        def one(setting):
            self.order.append(setting.values.get("hot_loop", 4))
            return runs.Run({"wall_s": cost(self.order[-1])})
        return search.Laboratory(one, lambda text: None, "wall_s", higher)

    @staticmethod
    def those(*values):
        return [settings.Setting({"hot_loop": value} if value != 4 else {}) for value in values]

    def test_turns(self):
        laboratory = self.laboratory(float)
        laboratory.repeat(self.those(4, 1, 2), 3)
        self.assertEqual(self.order, [4, 1, 2, 2, 1, 4, 4, 1, 2])
        self.assertEqual([setting.name for setting in laboratory.ordered()], ["hot_loop=1", "hot_loop=2", "default"])

    def test_halving_keeps_the_better_half_and_the_default(self):
        laboratory = self.laboratory(lambda value: abs(value - 30))
        laboratory.halve(self.those(4, *range(10, 90, 10)), 8)
        counts = {value: self.order.count(value) for value in set(self.order)}
        self.assertEqual((counts[4], counts[30]), (8, 8))
        self.assertEqual(sum(counts[value] == 1 for value in counts), 4)

    def test_verdicts(self):
        cases = ((lambda value: 10 + value / 100, 5, "best: hot_loop=1: 0.3% less", True), (lambda value: 10.0, 5, "best: the default", False),
                 (lambda value: 10 + value / 100, 3, "3 runs can show no difference", False), (lambda value: 5.0 - value / 100, 5, "best: hot_loop=9:", True))
        for cost, repeat, text, differs in cases:
            laboratory, fresh = self.laboratory(cost), self.laboratory(cost)
            laboratory.repeat(self.those(4, 1, 9), 2)
            verdict = search.confirm(laboratory, fresh, repeat)
            self.assertIn(text, verdict.text("wall_s"))
            self.assertEqual(verdict.differs, differs)

    def test_luck_is_no_verdict(self):
        """The best of many is better in the runs that chose it; what counts are others."""
        chance, found = random.Random(5), 0
        for _ in range(60):
            laboratory, fresh = self.laboratory(lambda value: chance.gauss(10, 1)), self.laboratory(lambda value: chance.gauss(10, 1))
            laboratory.repeat(self.those(4, *range(10, 30)), 3)
            found += search.confirm(laboratory, fresh, 5).differs
        self.assertLess(found, 8)

    def test_failed_ones_are_last(self):
        laboratory = self.laboratory(float)
        laboratory.repeat(self.those(4, 1), 1)
        bad = self.those(7)[0]
        laboratory.results[bad] = [runs.Run(failure="exit status 1: no")]
        self.assertEqual((laboratory.ordered()[-1], laboratory.cost(bad)), (bad, math.inf))
        lines = []
        table.print_table(laboratory, lines.append)
        self.assertEqual(lines[-1], "hot_loop=7: exit status 1: no")


class Measures(unittest.TestCase):
    def test_own(self):
        self.assertEqual(runs.own_measures(b"a\ndynvm-lab: loss 0.5\nx dynvm-lab: y 1\ndynvm-lab: loss 0.25\n"), {"loss": 0.25})
        for line in (b"dynvm-lab: loss high\n", b"dynvm-lab: wall_s 3\n"):
            with self.assertRaises(ValueError):
                runs.own_measures(line)

    def test_loop(self):
        loop = {"file": "a.py", "line": 3, "function": "f", "began_ms": 100.0, "settled_ms": 150.0, "last_ms": 350.0, "iterations": 110, "settled_iterations": 10}
        report = {"loops": [loop]}
        self.assertEqual(runs.loop_measures(report, ("a.py", 3, "f")), (0.05, 2000.0))
        self.assertEqual(runs.loop_measures(report, ("a.py", 4, "f")), (None, None))
        self.assertEqual(runs.loop_measures({"loops": [{**loop, "iterations": 11}]}, ("a.py", 3, "f")), (0.05, None))


SLEEPS = """\
import sys, time
import torch
def main():
    x = torch.ones(4)
    for i in range(200):
        x = x + 1
        time.sleep(0.001)
    print("dynvm-lab: argument", sys.argv[1] if len(sys.argv) > 1 else 0)
main()
"""


class WholeRuns(LabCase):
    def lab(self, *words, status=0):
        return self.dynvm("lab", *words, status=status)

    def test_iterations_are_counted_right(self):
        """A loop that sleeps a millisecond each time takes about that, and goes round as often as it does, but for what is recorded."""
        report = self.report(text=SLEEPS, stderr="")
        loop = next(loop for loop in report["loops"] if loop["function"] == "main")
        self.assertTrue(190 <= loop["iterations"] <= 201, loop)
        _, us = runs.loop_measures(report, (loop["file"], loop["line"], loop["function"]))
        self.assertTrue(1000 <= us < 5000, us)
        branchy = next(loop for loop in self.report()["loops"] if loop["function"] == "main")
        self.assertTrue(285 <= branchy["iterations"] <= 301, branchy)

    def test_grid(self):
        script = self.script(SCRIPT)
        outcome = self.lab(script, "--vary", "hot_loop=4,50", "--vary", f"policy=default,{POLICIES}/never_inline.py", "--repeat", "2", "-o", "out")
        self.assertIn(f"{script}:9 main", outcome.stdout)
        self.assertIn("[iteration_us]", outcome.stdout)
        self.assertIn("best: ", outcome.stdout)
        folder = os.path.join(self.folder, "out")
        with open(os.path.join(folder, "lab.json"), encoding="utf-8") as file:
            saved = json.load(file)
        found = {setting["name"]: setting for setting in saved["settings"]}
        self.assertEqual(set(found), {"default", "hot_loop=50", "policy=never_inline.py", "hot_loop=50 policy=never_inline.py"})
        for setting in found.values():
            self.assertEqual((len(setting["runs"]), setting["failure"]), (2, ""))
            for measure in setting["runs"]:
                self.assertTrue(10 < measure["memory_mib"] < 10000 and measure["wall_s"] > 0.1, measure)
        self.assertGreater(found["default"]["median"]["compile_ms"], 0)
        self.assertLess(found["default"]["median"]["steady_s"], found["hot_loop=50"]["median"]["steady_s"])
        self.assertGreater(found["policy=never_inline.py"]["policy"]["inline"]["no"], 0)
        self.assertEqual(saved["settings"], sorted(saved["settings"], key=lambda setting: setting["median"]["iteration_us"]))
        with open(os.path.join(folder, "lab.csv"), encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 8)
        self.assertEqual({row["hot_loop"] for row in rows}, {"", "50"})
        self.assert_plotted(folder, outcome)

    def assert_plotted(self, folder, outcome):
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            self.assertIn("pip install matplotlib", outcome.stderr)
            return
        with open(os.path.join(folder, "lab.png"), "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")
        with open(os.path.join(folder, "lab.svg"), encoding="utf-8") as file:
            self.assertIn("</svg>", file.read())

    def test_without_matplotlib(self):
        self.script("raise ImportError('none here')", "matplotlib.py")
        outcome = run(INSTALLED, ["lab", self.script(SLEEPS), "--vary", "hot_loop=9", "--repeat", "1"], cwd=self.folder, env={"PYTHONPATH": self.folder})
        self.assertEqual(outcome.status, 0, outcome)
        self.assertIn("dynvm lab: no plot: it needs matplotlib", outcome.stderr)
        self.assertIn("-m pip install matplotlib", outcome.stderr)
        self.assertIn("saved in dynvm-lab: lab.csv, lab.json\n", outcome.stdout)

    def test_random_and_measures_of_the_script(self):
        outcome = self.lab(self.script(SLEEPS), "--vary", "hot_loop=2..100", "--search", "random", "--runs", "2", "--repeat", "1", "--measure", "argument", "--higher", "--no-plot",
                           "--", "41")
        self.assertEqual(outcome.stderr.count("run 1: "), 3)  # all alike: the default is the best, and nothing is to be confirmed
        self.assertIn("[argument]", outcome.stdout)
        self.assertIn("  41", outcome.stdout)

    def test_halving(self):
        outcome = self.lab("--search=halving", "--runs=3", "--repeat=2", "--no-plot", self.script(SLEEPS), "--vary=hot_loop=2..100")
        self.assertIn("best: ", outcome.stdout)
        self.assertEqual(outcome.stderr.count("run 2: "), 2 + (0 if "best: the default" in outcome.stdout else 2))

    def test_a_script_that_fails(self):
        outcome = self.lab(self.script("import sys\nsys.exit('broken')"), "--vary=hot_loop=2", status=2)
        self.assertIn("under the default setting: exit status 1: broken", outcome.stderr)
        outcome = self.lab(self.script("import time\ntime.sleep(60)"), "--vary=hot_loop=2", "--timeout=1", status=2)
        self.assertIn("it took longer than 1 s", outcome.stderr)

    def test_wrong_words_run_nothing(self):
        script = self.script("open('ran', 'w')")
        for words, message in (([script, "--vary=hot_lop=1"], "is hot_loop meant?"), ([script], "nothing to vary"), (["nowhere.py", "--vary=hot_loop=1"], "no script nowhere.py"),
                               ([script, "--vary=hot_loop=4"], "nothing to compare"), ([script, "--vary=hot_loop=1", "--repeat=0"], "--repeat"),
                               ([script, "--vary=hot_loop=1", "--vary=hot-loop=2"], "more than once"), ([script, "--vary=hot_loop=1", "--runs=3"], "--runs is for"),
                               ([script, "--vary=hot_loop=1", "--searc=x"], "invalid choice")):
            with self.subTest(words=words):
                outcome = self.lab(*words, status=2)
                self.assertIn(message, outcome.stderr)
                self.assertFalse(os.path.exists(os.path.join(self.folder, "ran")))


class Commands(LabCase):
    def test_help(self):
        text = self.dynvm("--help").stdout
        self.assertRegex(text, r"\n  lab --vary .*\n +run a script under .*\n  replay DIR .*\n +compile traces ")
        for command in ("lab", "replay"):
            self.assertIn(f"usage: dynvm {command}", self.dynvm(command, "--help").stdout)

    def test_scripts_of_that_name(self):
        self.script("print('mine')", "lab")
        self.assertEqual(self.dynvm("./lab").stdout, "mine\n")
        self.assertEqual(self.dynvm("--stats", "lab").stdout, "mine\n")  # the first word alone is a command
        self.assertEqual(self.dynvm("-c", "import sys; print(sys.argv)", "lab").stdout, "['-c', 'lab']\n")


if __name__ == "__main__":
    sys.exit(unittest.main())
