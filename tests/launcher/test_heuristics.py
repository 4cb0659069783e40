"""The numbers that steer the JIT: by option, file, environment and at run time; what they change, and what is said of wrong ones."""

import json
import os
import re
import unittest

from compare import CompareCase, DYNVM, PYTHON, ROOT, run

INSTALLED = os.path.join(ROOT, ".venv", "bin", "dynvm")
# A loop with one tensor operation: `runs()` of its trace tell after how many iterations it was recorded.
LOOP = """
    import torch
    def main():
        x = torch.ones(4)
        for i in range(400):
            x = x + 1
        print(x.sum().item())
    main()
"""


class Settings(CompareCase):
    def traced(self, *options, script=LOOP, env=None):
        """Iterations that traces went through, and heuristics, of the report after LOOP."""
        report_file = os.path.join(self.folder, "report.json")
        outcome = run(DYNVM, [*options, "--report", report_file, self.script(script)], env=env)
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        with open(report_file, encoding="utf-8") as file:
            report = json.load(file)
        return sum(trace["runs"] * trace["rounds"] for trace in report["traces"]), report["heuristics"]

    def toml(self, text):
        return self.script(text, "numbers.toml")

    def test_usual(self):
        runs, changed = self.traced()
        self.assertTrue(350 < runs < 400, runs)
        self.assertEqual(changed, {})

    def test_recording_may_cost_so_much(self):
        """Each branch wants a side trace: beyond the free ones they are recorded only where there is time for it."""
        branches = """
            import torch
            x, n = torch.ones(4), 0
            for i in range(2000):
                for k in (2, 3, 5, 7):
                    if i % k == 0:
                        x = x + 1
                x = x * 0.5
        """
        report_file = os.path.join(self.folder, "report.json")

        def recordings(settings):
            outcome = run(DYNVM, ["--cache=off", f"--heuristics={settings}", "--report", report_file, self.script(branches)])
            self.assertEqual(outcome.status, 0, outcome)
            with open(report_file, encoding="utf-8") as file:
                return json.load(file)["recordings"]

        self.assertLessEqual(recordings("free_recordings=2,recording_time=0,recording_share=0"), 2 * 2)  # of each loop
        self.assertLessEqual(recordings("process_time=0,process_share=0,free_few=2"), 2 * 2)
        self.assertGreater(recordings("free_recordings=100"), 2 * 2)

    def test_option(self):
        runs, changed = self.traced("--heuristics=hot_loop=100,hot-exit=3")
        self.assertTrue(150 < runs < 305, runs)
        self.assertEqual(changed, {"hot_loop": 100, "hot_exit": 3})

    def test_options_add_up(self):
        _, changed = self.traced("--heuristics=hot_loop=200,hot_exit=3", "--heuristics", "hot_exit=5")
        self.assertEqual(changed, {"hot_loop": 200, "hot_exit": 5})

    def test_file(self):
        file = self.toml("# late\nhot_loop = 150\n")
        runs, changed = self.traced(f"--heuristics={file}")
        self.assertTrue(50 < runs < 255, runs)
        self.assertEqual(changed, {"hot_loop": 150})
        self.assertEqual(self.traced(f"--heuristics={file},hot_loop=7")[1], {"hot_loop": 7})

    def test_environment(self):
        file = self.toml("hot_loop = 300\nhot_exit = 9\n")
        self.assertEqual(self.traced(env={"DYNVM_HEURISTICS": f"{file},hot_call=5"})[1], {"hot_loop": 300, "hot_exit": 9, "hot_call": 5})
        self.assertEqual(self.traced("--heuristics=hot_exit=8", env={"DYNVM_HEURISTICS": file})[1], {"hot_loop": 300, "hot_exit": 8})
        self.assertEqual(self.traced("--heuristics=hot_loop=3", env={"DYNVM_OPTIONS": "--heuristics=hot_loop=2,hot_exit=7"})[1], {"hot_loop": 3, "hot_exit": 7})

    def test_hot_still_works(self):
        runs, _ = self.traced("--hot=50", "--heuristics=hot_loop=10000")
        self.assertTrue(250 < runs < 355, runs)

    def test_errors(self):
        bad = self.toml("hot_exit = 3\n\nhot_loop = 0\n")
        for words, message in (("hot_lop=3", "'hot_lop' is no number of dynvm's (is hot_loop meant?)"),
                               ("hot_loop=x", "hot_loop: expected a whole number from 1 to 1000000000, got 'x'"),
                               (bad, f"{bad}:3: hot_loop: expected a whole number from 1 to 1000000000, got 0")):
            for spelling, how in (("--heuristics", {"args": [f"--heuristics={words}"]}), ("DYNVM_HEURISTICS", {"args": [], "env": {"DYNVM_HEURISTICS": words}})):
                with self.subTest(words=words, spelling=spelling):
                    outcome = run(DYNVM, [*how["args"], "-c", "print(1)"], env=how.get("env"))
                    self.assertEqual((outcome.status, outcome.stdout, outcome.stderr), (2, "", f"dynvm: {spelling}: {message}\n"))

    def test_bounds_are_safe(self):
        """All numbers at their least, and at their greatest, but for those by which nothing would be recorded: the program prints the same."""
        recorded = {"hot_loop", "hot_call", "hot_exit", "hot_size_exit", "min_tensor_ops", "max_insts", "max_depth", "penalty_start", "penalty_max", "probe_wait",
                    "inner_call_wait", "torch_wait"}
        with open(os.path.join(ROOT, "runtime", "base", "heuristics.def"), encoding="utf-8") as file:
            rows = re.findall(r"^X\((\w+),\s*\d+,\s*(\d+),\s*(\d+),", file.read(), re.M)
        self.assertGreater(len(rows), 60)
        script = self.script(VARIED)
        expected = run(PYTHON, [script])
        self.assertEqual((expected.status, expected.stderr), (0, ""))
        for part in (1, 2):
            with self.subTest(bound=part):
                report_file = os.path.join(self.folder, "report.json")
                words = ",".join(f"{row[0]}={row[part]}" for row in rows if row[0] not in recorded)
                got = run(DYNVM, [f"--heuristics={words}", "--report", report_file, script])
                self.assertEqual(repr(got), repr(expected))
                with open(report_file, encoding="utf-8") as file:
                    self.assertTrue(json.load(file)["traces"])

    def test_kept_traces_are_apart(self):
        """Traces on disk serve processes with the same numbers only."""
        def loaded(*options):
            report_file = os.path.join(self.folder, "report.json")
            script = os.path.join(self.folder, "script.py")
            outcome = run(DYNVM, [f"--cache={self.folder}/cache", *options, "--report", report_file, script])
            self.assertEqual(outcome.status, 0, outcome)
            with open(report_file, encoding="utf-8") as file:
                return json.load(file)["cache"]["loaded"]
        self.script(LOOP)
        self.assertEqual([loaded(), loaded("--heuristics=fuse_nodes=7"), loaded(), loaded("--heuristics=fuse_nodes=7")], [0, 0, 1, 1])


# Branches, sizes that change, inner loops, calls, training steps, lists: what many of the numbers decide about.
VARIED = """
    import torch
    torch.manual_seed(0)
    def f(x, n):
        return [torch.relu(x[:n] * k).sum().item() for k in range(3)]
    def main():
        layer = torch.nn.Linear(6, 6)
        optimizer = torch.optim.Adam(layer.parameters(), 0.01)
        total = 0.0
        for i in range(60):
            x = torch.arange(12.0).reshape(2, 6)[:, : 6] * (i % 3)
            if i % 4 == 0:
                x = x + 1
            loss = layer(x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += sum(f(torch.ones(8), 1 + i % 5)) + loss.item()
        print(f"{total:.3f}", len(list(map(lambda n: torch.ones(n).sum(), range(30)))))
    main()
"""


@unittest.skipUnless(os.path.exists(INSTALLED), "dynvm is not installed in .venv")
class AtRunTime(CompareCase):
    def shown(self, text):
        outcome = run(INSTALLED, [self.script(text)])
        self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
        return outcome.stdout

    def test_all_of_them(self):
        with open(os.path.join(ROOT, "docs", "heuristics.md"), encoding="utf-8") as file:
            names = re.findall(r"^\| `(\w+)` \| ([\d,]+) ", file.read(), re.M)
        shown = self.shown("import dynvm; print(dynvm.heuristics()); print(dynvm.heuristics(full=True)['hot_loop']['least'])")
        self.assertEqual(shown, repr({name: int(value.replace(",", "")) for name, value in names}) + "\n1\n")

    def test_setting_and_putting_back(self):
        self.assertEqual(self.shown("""
            import dynvm
            before = dynvm.set_heuristics(hot_loop=9, max_side=40, hot_exit=7)
            print(before, dynvm.heuristics()["hot_loop"], dynvm.stats()["heuristics"])
            dynvm.set_heuristics(**before)
            print(dynvm.stats()["heuristics"])
        """), "{'hot_loop': 4, 'hot_exit': 4} 9 {'hot_loop': 9, 'hot_exit': 7}\n{}\n")

    def test_from_then_on(self):
        self.assertEqual(self.shown("""
            import dynvm, torch
            def loop(n):
                x = torch.ones(4)
                for i in range(n):
                    x = x + 1
                return x
            dynvm.set_heuristics(hot_loop=10000)
            loop(300)
            print(len(dynvm.stats()["traces"]))
            dynvm.set_heuristics(hot_loop=3)
            loop(300)
            print(len(dynvm.stats()["traces"]))
        """), "0\n1\n")

    def test_native_numbers_too(self):
        self.assertEqual(self.shown("""
            import dynvm
            dynvm.set_heuristics(native_calls=10**9, native_loops=10**9)
            def make():
                def f(n):
                    total = 0
                    for i in range(n):
                        total += i * 3 + 1
                    return total
                return f
            exec("def f(n):\\n  total = 0\\n  for i in range(n):\\n    total += i * 3 + 1\\n  return total")
            f(20000)
            print(dynvm.stats()["native"]["runs"])
            dynvm.set_heuristics(native_calls=5, native_loops=50)
            exec("def f(n):\\n  total = 0\\n  for i in range(n):\\n    total += i * 3 + 1\\n  return total")
            f(20000)
            print(dynvm.stats()["native"]["runs"] > 0)
        """), "0\nTrue\n")

    def test_errors_set_nothing(self):
        bad = self.script("hot_exit = 3\nhot_loop = 0\n", "bad.toml")
        self.assertEqual(self.shown(f"""
            import dynvm
            for files, numbers in (((), dict(hot_exit=3, hot_lop=3)), ((), dict(hot_exit=3, hot_loop=0)), ((), dict(hot_exit=3, hot_loop=1.5)), ((), dict(hot_loop=True)),
                                   (("x.txt",), {{}}), (({bad!r},), {{}})):
                try:
                    dynvm.set_heuristics(*files, **numbers)
                except (TypeError, ValueError) as error:
                    print(type(error).__name__, error)
            print(dynvm.stats()["heuristics"])
        """), f"""ValueError 'hot_lop' is no number of dynvm's (is hot_loop meant?)
ValueError hot_loop: expected a whole number from 1 to 1000000000, got 0
TypeError hot_loop: expected an int, got float
TypeError hot_loop: expected an int, got bool
TypeError expected the path of a .toml file, without a comma, got 'x.txt'
ValueError {bad}:2: hot_loop: expected a whole number from 1 to 1000000000, got 0
{{}}
""")

    def test_plain_python(self):
        outcome = run(os.path.join(ROOT, ".venv", "bin", "python"), ["-c", "import dynvm; print(dynvm.heuristics(), dynvm.heuristics(full=True), dynvm.set_heuristics(no_such=-1))"])
        self.assertEqual((outcome.stdout, outcome.stderr), ("{} {} {}\n", ""))


if __name__ == "__main__":
    unittest.main()
