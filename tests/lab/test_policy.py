"""--policy: each decision follows the policy's answer, is counted and logged; what is wrong with a policy is said, and harmless."""

import json
import os
import re
import textwrap
import unittest

from compare import ROOT, row_names, run
from lab_case import INSTALLED, POLICIES, LabCase, SCRIPT


DECISIONS = row_names("decisions.def")


def settled(report):
    """Iterations of the outer loop until its last trace was there."""
    return next(loop["settled_iterations"] for loop in report["loops"] if loop["function"] == "main")


class Policies(LabCase):
    def policy(self, body):
        return f"--policy={self.script('class Policy:' + chr(10) + textwrap.indent(textwrap.dedent(body), '    '), 'mine.py')}"

    def shape(self, report):
        """What does not depend on time."""
        return ([(trace["line"], trace["kind"], trace["ir_insts"], trace["kernels"], trace["runs"], trace["exits"]) for trace in report["traces"]],
                report["side_exits"], report["aborts"], settled(report))

    def test_the_usual_answers_change_nothing(self):
        everything = "".join(f"def {name}(self, facts): return {{}}\n" for name in DECISIONS)
        usual = self.shape(self.usual())
        report = self.report(self.policy(everything.format(*["None"] * len(DECISIONS))))
        self.assertEqual(self.shape(report), usual)
        self.assertEqual(set(report["policy"]), set(DECISIONS))
        for counts in report["policy"].values():
            self.assertGreater(counts["asked"], 0)
            self.assertEqual(counts["yes"] + counts["no"] + counts["against"], 0)
        report = self.report(self.policy(everything.format(*["facts.default"] * len(DECISIONS))))
        self.assertEqual(self.shape(report), usual)
        for name, counts in report["policy"].items():
            self.assertEqual((counts["yes"] + counts["no"], counts["against"]), (counts["asked"], 0), name)

    def test_each_row_has_a_test_and_facts_as_documented(self):
        """The facts that each decision gives are those of the table in docs/lab.md."""
        with open(os.path.join(ROOT, "docs", "lab.md"), encoding="utf-8") as file:
            rows = re.findall(r"^\| `(\w+)` \| [^|]+\? [^|]*\| ([^|]+) \|$", file.read(), re.M)
        documented = {name: set(re.findall(r"`(\w+)`", re.sub(r"\([^()]*\)", "", facts))) for name, facts in rows}
        self.assertEqual(set(documented), set(DECISIONS))
        body = "import atexit, json, sys\nseen = {}\natexit.register(lambda seen=seen, dump=json.dump, to=sys.stderr: dump({name: list(facts) for name, facts in seen.items()}, to))\n"
        body += "".join(f"def {name}(self, facts): self.seen.setdefault({name!r}, {{}}).update(facts.__dict__)\n" for name in DECISIONS)
        given = {name: set(facts) - {"default"} for name, facts in json.loads(self.dynvm(self.policy(body), self.script(SCRIPT)).stderr).items()}
        self.assertEqual(given, documented)
        for name in DECISIONS:
            self.assertTrue(hasattr(self, f"test_{name}"), name)

    def test_record(self):
        report = self.report(self.policy("def record(self, facts): return facts.name == 'main' and facts.arrivals >= 100"))
        self.assertTrue(100 <= settled(report) < 130, settled(report))
        self.assertEqual({trace["function"] for trace in report["traces"]}, {"main"})
        never = self.report(self.policy("def record(self, facts): return False"))
        self.assertEqual((never["traces"], never["loops"]), ([], []))
        self.assertGreater(never["policy"]["record"]["against"], 0)

    def test_inline(self):
        followed = self.usual()
        report = self.report(self.policy("def inline(self, facts): return not facts.name.endswith('.scaled')"))
        self.assertEqual(followed["residual_calls"], {})
        self.assertEqual(list(report["residual_calls"]), ["call scaled"])
        self.assertGreater(report["policy"]["inline"]["no"], 0)
        self.assertGreater(report["policy"]["inline"]["yes"], 0)

    def test_inline_of_modules_that_train(self):
        """Calls that are left alone build graphs, raise, and are the bodies of modules; the program prints the same."""
        report = self.report(self.policy("def inline(self, facts): return False"), text="""\
import torch
torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
    def forward(self, x):
        return self.b(torch.relu(self.a(x)))
def checked(x):
    if x.item() > 1e9: raise ValueError("large")
    return x
def main():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    for i in range(60):
        optimizer.zero_grad()
        loss = (net(torch.ones(2, 4) * i / 60) - 1).pow(2).mean()
        loss.backward()
        optimizer.step()
        try:
            checked(loss * (1e12 if i == 50 else 1))
        except ValueError as error:
            print(i, error)
    print(f"{loss.item():.5f}")
main()
""")
        self.assertGreater(report["policy"]["inline"]["no"], 0)

    def test_unroll(self):
        report = self.report(self.policy("def unroll(self, facts): return facts.rounds <= 5"))
        self.assertGreater(report["aborts"].get("loop_unrolled_too_often", 0), 0)
        self.assertIn("layers", {trace["function"] for trace in report["traces"]})
        limited = self.report("--heuristics=max_unroll=3,max_unroll_light=3", self.policy("def unroll(self, facts): return True"))
        self.assertEqual(limited["aborts"], {})
        self.assertGreater(limited["policy"]["unroll"]["against"], 0)

    def test_side(self):
        self.assertIn("side", {trace["kind"] for trace in self.usual()["traces"]})
        report = self.report(self.policy("def side(self, facts): return False"))
        self.assertNotIn("side", {trace["kind"] for trace in report["traces"]})
        at_once = self.report(self.policy("def side(self, facts): return True"))
        self.assertLess(settled(at_once), settled(self.usual()))

    def test_fuse(self):
        usual, apart = self.usual(), self.report(self.policy("def fuse(self, facts): return False"))
        self.assertGreater(apart["traces"][0]["kernels"], 3 * usual["traces"][0]["kernels"])

    def test_facts_and_log(self):
        policy = self.policy("""
            def unroll(self, facts):
                assert (facts.file, facts.line, facts.name) == (__import__('sys').argv[0], 6, 'layers'), facts
                assert facts.default is True and facts.has_trace is False and facts.limit >= facts.rounds
                return True
            def inline(self, facts):
                assert facts.name in ('__main__.layers', '__main__.scaled') and facts.depth in (1, 2) and facts.line in (10, 6), facts
        """)
        outcome = self.dynvm(policy, "--log=policy", self.script(SCRIPT))
        self.assertRegex(outcome.stderr, r"\A(\[policy\] unroll: yes \(file \S+script.py, line 6, name layers, rounds \d+, limit \d+, .*default yes\)\n)+\Z")

    def test_numbers(self):
        numbers = "heuristics = {'hot_exit': 7, 'hot_loop': 50}"
        self.assertEqual(self.report(self.policy(numbers))["heuristics"], {"hot_loop": 50, "hot_exit": 7})
        self.assertEqual(self.report(self.policy(numbers), "--heuristics=hot_exit=9")["heuristics"], {"hot_loop": 50, "hot_exit": 9})

    def test_not_kept_on_disk(self):
        """Traces of an earlier process were recorded by other answers, perhaps."""
        cache = f"--cache={self.folder}/cache"
        self.report(cache)
        self.assertGreater(self.report(cache)["cache"]["loaded"], 0)
        report = self.report(cache, self.policy("def side(self, facts): return None"))
        self.assertEqual((report["cache"]["loaded"], report["cache"]["kept"]), (0, 0))

    def test_an_exception_is_told_once(self):
        for body, error in (("return 1 / 0", "ZeroDivisionError: division by zero"), ("return 'yes'", "TypeError: expected True, False or None, got str")):
            with self.subTest(body=body):
                outcome = self.dynvm(self.policy(f"def inline(self, facts): {body}"), self.script(SCRIPT))
                self.assertEqual(outcome.stderr.count("dynvm: --policy: inline() is asked no more:\n"), 1)
                self.assertEqual(outcome.stderr.count(error), 1, outcome)
        report = self.report(self.policy("def inline(self, facts): raise SystemExit(3)"), stderr=None)
        self.assertEqual(report["policy"]["inline"]["asked"], 1)
        self.assertEqual(self.shape(report), self.shape(self.usual()))

    def test_wrong_policies(self):
        for text, error in (("x = 1", "has no attribute 'Policy'"), ("class Policy: pass", "neither `heuristics` nor one of the methods record, inline, unroll, side, fuse"),
                            ("class Policy\n", "SyntaxError"), ("class Policy:\n    heuristics = {'hot_loop': 'x'}", "expected a dict of names and ints"),
                            ("class Policy:\n    heuristics = {'hot_lop': 1}", "is hot_loop meant?"), ("raise OSError('no')", "OSError: no")):
            with self.subTest(text=text):
                outcome = run(INSTALLED, [f"--policy={self.script(text, 'wrong.py')}", "-c", "print(1)"])
                self.assertEqual((outcome.status, outcome.stdout), (2, ""))
                self.assertIn(error, outcome.stderr)
        outcome = run(INSTALLED, ["--policy=/nowhere/p.py", "-c", "print(1)"])
        self.assertEqual((outcome.status, outcome.stdout), (2, ""))
        self.assertIn("cannot read /nowhere/p.py", outcome.stderr)

    def test_the_script_does_not_see_it(self):
        text = "import sys\nprint(sorted(m for m in sys.modules if 'policy' in m), sys.argv)"
        self.same_under_policy(text)

    def same_under_policy(self, text):
        script = self.script(text)
        self.assertEqual(self.dynvm(self.policy("def side(self, facts): return None"), script).stdout, self.dynvm(script).stdout)


class Examples(LabCase):
    def test_each_differs_in_what_it_says(self):
        usual = self.usual()
        never = self.report(f"--policy={POLICIES}/never_inline.py")
        self.assertEqual(list(never["residual_calls"]), ["call layers"])
        classic = self.report(f"--policy={POLICIES}/luajit_classic.py")
        self.assertIn("layers", {trace["function"] for trace in classic["traces"]})
        self.assertGreater(classic["side_exits"], usual["side_exits"])
        at_once = self.report(f"--policy={POLICIES}/record_at_once.py")
        self.assertLess(settled(at_once), settled(usual))

    def test_they_are_those_of_the_page(self):
        with open(os.path.join(ROOT, "docs", "lab.md"), encoding="utf-8") as file:
            page = file.read()
        named = re.search(r"\[examples/policies\]\(\.\./examples/policies\) has three: (.*)\.\n", page)[1]
        self.assertEqual(sorted(re.findall(r"`(\w+\.py)`", named)), sorted(name for name in os.listdir(POLICIES) if name.endswith(".py")))
        for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page):
            self.assertGreater(os.path.getsize(os.path.join(ROOT, "docs", picture)), 1000)

    def test_each_has_a_page_of_text(self):
        for name in os.listdir(POLICIES):
            if name.endswith(".py"):
                with open(os.path.join(POLICIES, name), encoding="utf-8") as file:
                    self.assertTrue(re.match(r'"""A policy .*dynvm --policy examples/policies/' + name, file.read(), re.S), name)


if __name__ == "__main__":
    unittest.main()
