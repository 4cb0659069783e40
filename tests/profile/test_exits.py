"""Why traces were left: each row of tracer/exit_reasons.def, met by a function of a script, with its place, its words and the values seen."""

import os
import re
import unittest

import made
from compare import ROOT

try:
    import torch  # noqa: F401
except ImportError:
    raise unittest.SkipTest("needs torch")

# Each function leaves its trace by the guard that it is named after, on the line that has `# here`.
SCRIPT = """
import torch
torch.set_num_threads(1)

def guard_is(calls):
    x = torch.ones(4)
    for f in calls:
        x = f(x)  # here

def guard_bound(n):
    x = torch.ones(4)
    for i in range(n):  # here
        x = x + 1

class First: factor = 2.0
class Second: factor = 3.0

def guard_type(things):
    x = torch.ones(4)
    for thing in things:
        x = x * thing.factor  # here

def guard_type_version(n):
    thing, x = First(), torch.ones(4)
    for i in range(n):
        x = x * thing.factor  # here
        if i % 60 == 59:
            First.factor = First.factor + 1.0

scale = 2.0

def guard_dict_version(n):
    global scale
    x = torch.ones(4)
    for i in range(n):
        x = x * scale  # here
        if i % 60 == 59:
            scale = i * 0.5

def guard_list_items(n):
    x, calls = torch.ones(4), [torch.relu, torch.sin]
    for i in range(n):
        for f in calls:  # here
            x = f(x)
        if i == 70:
            calls[1] = torch.cos

def guard_true(n):
    x = torch.ones(4)
    for i in range(n):
        if i < 70:  # here
            x = x * 2

def guard_false(n):
    x = torch.ones(4)
    for i in range(n):
        x = x + 1
        if i >= 70:  # here
            x = x * 2

def guard_torch_state(n):
    x = torch.ones(4)
    for i in range(n):  # here
        x = x + 1

def unbox_tensor(tensors):
    for tensor in tensors:
        tensor * 2  # here

def unbox_int(values):
    x = torch.ones(4)
    for value in values:
        x = x + value  # here

def unbox_float(values):
    x = torch.ones(4)
    for value in values:
        x = x + value  # here

def unbox_bool(values):
    x = torch.ones(4)
    for value in values:
        x = x + value  # here

def add_int(n, k=1):
    x = torch.ones(4)
    for i in range(n):
        x = x + 1
        k = k + k  # here

def sub_int(n, k=-1):
    x = torch.ones(4)
    for i in range(n):
        x = x + 1
        k = k - (1 << 58)  # here

def mul_int(n, k=1):
    x = torch.ones(4)
    for i in range(n):
        x = x + 1
        k = k * 3  # here

def floordiv_int(n):
    x = torch.ones(4)
    for i in range(n):
        x = x + 1
        try:
            100 // (70 - i)  # here
        except ZeroDivisionError:
            pass

def mod_int(n):
    x = torch.ones(4)
    for i in range(n):
        x = x + 1
        try:
            100 % (70 - i)  # here
        except ZeroDivisionError:
            pass

def div_float(n):
    x = torch.ones(4)
    for i in range(n):
        x = x + 1
        try:
            1.0 / (70.0 - i)  # here
        except ZeroDivisionError:
            pass

def aten(limits):
    x = torch.arange(8.0)
    for limit in limits:
        y = x[x < limit] * 2  # here

def raises(n):
    x, items = torch.ones(4), list(range(70))
    for i in range(n):
        x = x + 1
        try:
            items.index(i)  # here
        except ValueError:
            pass

guard_is([torch.relu] * 60 + [torch.sin] * 3)
guard_bound(60)
guard_type([First()] * 60 + [Second()] * 3)
guard_type_version(120)
guard_dict_version(120)
guard_list_items(120)
guard_true(120)
guard_false(120)
guard_torch_state(60)
unbox_tensor([torch.ones(3)] * 60 + [torch.ones(7)] * 3)
unbox_int([1] * 60 + [1.5] * 3)
unbox_float([1.5] * 60 + [1] * 3)
unbox_bool([True] * 60 + [1.5] * 3)
add_int(99)
sub_int(99)
mul_int(99)
floordiv_int(99)
mod_int(99)
div_float(99)
raises(99)
aten([3.0] * 60 + [5.0] * 3)
"""

# What each function's exit says: its class, what decides, in the script's terms (None: it has no such name), and the values seen.
SAYS = {
    "guard_is": ("object", "f", {"a builtin_function_or_method"}),
    "guard_bound": ("end", None, {"nothing"}),
    "guard_type": ("type", "thing", {"Second"}),
    "guard_type_version": ("state", "First", {"a type"}),
    "guard_dict_version": ("state", None, set()),
    "guard_list_items": ("object", None, {"a list"}),
    "guard_true": ("branch", "i < 70", {str(k) for k in range(70, 86)}),
    "guard_false": ("branch", "i >= 70", {str(k) for k in range(70, 86)}),
    "unbox_tensor": ("sizes", "tensor", {"[7]"}),
    "unbox_int": ("type", "value", {"float"}),
    "unbox_float": ("type", "value", {"int"}),
    "unbox_bool": ("type", "value", {"float"}),
    "add_int": ("number", "k", set()),
    "sub_int": ("number", "k", set()),
    "mul_int": ("number", "k", set()),
    "floordiv_int": ("number", None, set()),
    "mod_int": ("number", None, set()),
    "div_float": ("number", None, set()),
    "aten": ("sizes", "x", set()),
}
FAILED_ON_PURPOSE = {"guard_torch_state"}                        # in a loop where it holds
NOT_RECORDED = {"guard_keys_version", "guard_func_version"}      # no recording has them


def rows():
    """{op: sentence} of the table."""
    with open(os.path.join(ROOT, "tracer", "exit_reasons.def"), encoding="utf-8") as file:
        return dict(re.findall(r'^X\((\w+),\s*"\w+",\s*"(.*)"\)', file.read(), re.M))


def left(profile, function, op):
    """The exits of the function's traces by instructions with that op, on its line that says so."""
    lines = SCRIPT.split("\n")
    at = next(k for k in range(next(k for k, line in enumerate(lines) if line.startswith(f"def {function}(")), len(lines)) if "# here" in lines[k]) + 1
    return [exit for exit in profile.exits for trace in [profile.by_id[exit["trace"]]]
            if trace["function"] == function and trace["insts"][exit["inst"]]["op"] == op and exit["place"][2] == at]


class Reasons(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = made.Run(SCRIPT)
        cls.addClassCleanup(cls.run_.close)
        cls.profile = cls.run_.profile

    def test_every_row_is_met(self):
        self.assertEqual(set(SAYS) | FAILED_ON_PURPOSE | NOT_RECORDED, set(rows()))

    def test_each_row(self):
        self.assertEqual(self.run_.outcome.status, 0, self.run_.outcome)
        for op, (kind, what, values) in SAYS.items():
            with self.subTest(op=op):
                exits = left(self.profile, op, op)
                self.assertTrue(exits, self.profile.exits)
                for exit in exits:
                    self.assertEqual((exit["reason"], exit["sentence"]), (kind, rows()[op]))
                    self.assertEqual(set(exit["values"]), values)
                    self.assertGreater(exit["count"], 0)
                    if what is not None:
                        self.assertEqual(exit["what"], what)

    def test_what_raised(self):
        exit, = left(self.profile, "raises", "call")
        self.assertEqual((exit["reason"], exit["sentence"], exit["what"], exit["count"] > 20), ("error", "raised an exception", "list.index", True))

    def test_failed_on_purpose(self):
        again = made.Run(SCRIPT, env={"DYNVM_STRESS": "exit"})
        self.addCleanup(again.close)
        for op in FAILED_ON_PURPOSE:
            exits = left(again.profile, op, op)
            self.assertTrue(exits)
            self.assertEqual({(exit["reason"], exit["sentence"]) for exit in exits}, {("state", rows()[op])})

    def test_not_recorded(self):
        """Else a function above is missing."""
        for folder, _, names in os.walk(os.path.join(ROOT, "tracer")):
            for name in names:
                if name.endswith(".cpp"):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        self.assertEqual([op for op in re.findall(r"guard\(IrOp::k_(\w+)", file.read()) if op in NOT_RECORDED], [], name)


if __name__ == "__main__":
    unittest.main()
