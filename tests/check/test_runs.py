"""DYNVM_STRESS=check over whole runs: no difference where there is none, and a difference named where there is one.

A difference is made by what a forked process tells from the script's own: the interpreted run has Python's collector
switched off (python/dynvm/check/describe.py), so a script that asks for it does something else there.
"""

import json
import os
import unittest

from compare import CompareCase, ROOT, run

try:
    import torch  # noqa: F401
except ImportError:
    raise unittest.SkipTest("needs torch")

INSTALLED = os.path.join(ROOT, ".venv", "bin", "dynvm")  # with the package
PLAIN = os.path.join(ROOT, ".venv", "bin", "python")
if not os.path.exists(INSTALLED):
    raise unittest.SkipTest("dynvm is not installed in .venv")

HEAD = """
import gc, os, sys, time
import torch
torch.manual_seed(3)
x = torch.randn(6, 4)
w = torch.randn(4, 5, requires_grad=True)
class Box: pass
box = Box()
def differs(): return gc.isenabled()
"""


class CheckCase(CompareCase):
    def checked(self, body, *, words="check", status=0, count=24, options=()):
        """The outcome and the report's checks of a loop with this body in a function."""
        lines = "".join(f"        {line}\n" for line in body.strip().splitlines())
        text = HEAD + f"def main():\n    for i in range({count}):\n{lines}main()\nprint('to the end')\n"
        report = os.path.join(self.folder, "report.json")
        script = self.script(text)
        env = {"DYNVM_STRESS": words, "OMP_NUM_THREADS": "1"}
        outcome = run(INSTALLED, ["--hot=2", "--report", report, *options, script], env=env, timeout=300)
        self.assertEqual(outcome.status, status, outcome)
        self.expected = run(PLAIN, [script])
        with open(report, encoding="utf-8") as file:
            return outcome, json.load(file)["checks"]

    def same(self, body, **how):
        outcome, checks = self.checked(body, **how)
        self.assertEqual((outcome.stdout, outcome.stderr), (self.expected.stdout, self.expected.stderr))
        self.assertEqual(checks["different"], 0)
        self.assertGreater(checks["made"], 2)
        return checks

    def differs(self, body, *expected, **how):
        outcome, checks = self.checked(body, status=97, **how)
        self.assertEqual(checks["different"], 1)
        for text in expected:
            self.assertIn(text, outcome.stderr)
        self.assertNotIn("to the end", outcome.stdout)
        return outcome


class Same(CheckCase):
    def test_training(self):
        self.same("""
loss = (x @ w).relu().mean()
loss.backward()
with torch.no_grad(): w.sub_(0.1 * w.grad); w.grad = None
""")

    def test_exits(self):
        checks = self.same("""
y = x * i
if y.max() > 10 and i % 3 == 0:
    box.last = y
    y = y / 2
kept = [y, y.sum().item()]
""", words="check,exit", count=40)
        self.assertGreater(checks["made"], 5)

    def test_a_part_of_an_instruction(self):
        """A trace is left in front of an instruction whose operand it has taken apart, or has asked for its truth."""
        self.same("rows = (x * k for k in range(3))\ntry: a, b = rows\nexcept ValueError: pass\nc = list(rows)")
        self.same(
            "class Sized:\n    def __init__(self, data): self.data = data\n    def __bool__(self): return bool(self.data > 3)\n"
            "y = x.abs().sum() / (i % 5 + 1)\nif Sized(y): y = y + 1\nz = not Sized(y * 0.5)"
        )

    def test_iterators_in_the_middle(self):
        self.same("t = 0\nfor k, (a, b) in enumerate(zip(x, (1, 2, 3, 4, 5, 6))):\n    if a[0] > 0 and k % 3 == i % 3: t = t + a * b")

    def test_inside_of_calls_from_c(self):
        """A recording follows functions that the evaluator leaves to C; a trace may be left in there, where the interpreted run has no hook."""
        checks = self.same("""
if i == 0:
    class Limited(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            result = super().__torch_function__(function, types, args, kwargs)
            if type(result) is Limited and result.as_subclass(torch.Tensor).max().item() > 2: box.above = i
            return result
    y = torch.ones(4).as_subclass(Limited)
y = y * 1.2
if i % 7 == 6: y = torch.ones(4).as_subclass(Limited)
""", count=40)
        self.assertGreaterEqual(checks["skipped"].get("inside of a function that the interpreter calls from C", 0), 1, checks)

    def test_random_numbers(self):
        self.same("""
y = torch.nn.functional.dropout(x, 0.5) + torch.rand(6, 4)
total = y.sum().item()
""")

    def test_exceptions(self):
        self.same("""
try:
    y = x.narrow(0, i % 8, 1)
except (RuntimeError, IndexError) as error:
    box.error = str(error)
""", count=40)

    def test_printing_is_seen_once(self):
        self.same("""
y = (x * i).sum()
print(i, y.item() > 0, flush=True)
""")

    def test_output_that_has_not_been_flushed(self):
        self.same("""
y = (x * i).sum()
sys.stdout.write(f"{i} ")
""")

    def test_what_a_clock_says_is_not_determined(self):
        checks = self.same("""
begin = time.perf_counter()
y = (x * i).sum()
took = time.perf_counter() - begin
""")
        self.assertGreater(checks["undetermined"], 0)

    def test_addresses_of_new_objects_are_not_determined(self):
        self.same("""
y = x * i
names = id(y), repr(object())
""")


class Outside(CheckCase):
    def test_files_are_written_once(self):
        path = os.path.join(self.folder, "log.txt")
        self.same(f"""
if i == 0: file = open({path!r}, "w")
y = (x * i).sum()
file.write(f"{{i}}\\n")
file.flush()
if i == 23:
    file.close()
    print(open({path!r}).read().split() == [str(k) for k in range(24)])
""")

    def test_files_are_read_at_one_place(self):
        path = os.path.join(self.folder, "numbers.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(f"{i}\n" for i in range(200)))
        self.same(f"""
if i == 0: file = open({path!r}, "rb", buffering=0)
line = file.readline()
y = (x * int(line)).sum().item()
if i == 23: print(line)
""")

    def test_folders_are_changed_once(self):
        path = os.path.join(self.folder, "made")
        _, checks = self.checked(f"""
y = (x * i).sum()
os.mkdir({path!r} + str(i))
""")
        self.assertEqual(checks["made"], 0)
        self.assertGreater(checks["skipped"]["changes a folder"], 0)

    def test_pipes_are_left_alone(self):
        _, checks = self.checked("""
if i == 0: ends = os.pipe()
y = (x * i).sum()
os.write(ends[1], b"a")
assert os.read(ends[0], 9) == b"a"
""")
        self.assertGreater(checks["skipped"]["uses a pipe or socket"], 0)

    def test_no_process_stays(self):
        self.same("""
y = (x * i).sum()
if i == 23: print(os.listdir(f"/proc/{os.getpid()}/task") != [], open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read())
""")


class Different(CheckCase):
    def test_a_local_variable(self):
        self.differs("""
y = x * i
flag = differs()
""", "dynvm: check: trace ", "script.py:11 (main) is not what the interpreter does",
                     "locals['flag']: True in the trace's run, False in the interpreter's")

    def test_values(self):
        self.differs("""
y = x + (1 if differs() else 0)
""", "locals['y'] values: element ", " of 24: ")

    def test_an_attribute(self):
        self.differs("""
y = x * i
box.value = [1, {"key": differs()}]
""", "globals['box'].value[1]['key']: True in the trace's run")

    def test_a_gradient(self):
        self.differs("""
(w * (2.0 if differs() else 3.0)).sum().backward()
""", "globals['w'].grad values: element 0 of 20")

    def test_a_version_counter(self):
        self.differs("""
y = x * i
if differs(): box.__dict__.setdefault("t", torch.zeros(3)).mul_(1)
""", "_version: ")

    def test_random_state(self):
        self.differs("""
y = x * i
if differs(): torch.rand(3)
""", "torch's random state: ")

    def test_a_lost_exception(self):
        self.differs("""
y = x * i
if not differs(): raise KeyError(3)
""", "the interpreter's run does not come there: the interpreter leaves the function; ", "; it raised KeyError in main")

    def test_another_way(self):
        self.differs("""
y = x * i
if not differs(): break
""", "the interpreter's run does not come there: the interpreter leaves the function")

    def test_the_instruction_is_named(self):
        self.differs("""
y = torch.relu(x * (i if differs() else 7))
""", "locals['y'] values", "  made by %", "aten::relu")

    def test_going_on(self):
        outcome, checks = self.checked("""
y = x * i
flag = differs()
""", words="check,continue")
        self.assertEqual(outcome.stdout, self.expected.stdout)
        self.assertGreater(checks["different"], 3)


class Words(CheckCase):
    def test_runs(self):
        _, checks = self.checked("y = x * i", words="check,runs=0")
        self.assertLess(checks["made"], 8)

    def test_wrong_words(self):
        for words in ("checks", "check=3", "runs", "runs=x", "check,,exit=1"):
            outcome = run(INSTALLED, ["-c", "1"], env={"DYNVM_STRESS": words})
            self.assertEqual(outcome.status, 2, outcome)
            self.assertIn("--stress: expected ", outcome.stderr)

    def test_not_asked_for(self):
        outcome, checks = self.checked("y = x * i", words="")
        self.assertEqual(checks, {"made": 0, "different": 0, "undetermined": 0, "skipped": {}})


if __name__ == "__main__":
    unittest.main()
