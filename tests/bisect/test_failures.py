"""Operations of traces that fail: the script's own errors are python's, dynvm's own cost a trace and are told of."""

import os
import unittest

from bisect_case import BisectCase, is_there

if not is_there():
    raise unittest.SkipTest("dynvm is not installed in .venv, with torch")

# With the defect out_resizes the trace's huber_loss fails: it is run by its out form, which resizes planned memory.
HUBER = """\
import torch
torch.set_num_threads(1)
def main():
    x, total = torch.linspace(0.0, 3.0, 12), 0.0
    for i in range(80):
        y = torch.softmax(x * (i % 5), 0)
        loss = torch.nn.functional.huber_loss(y, x)
        total += torch.sort(loss.expand(3))[0].sum().item()
    print(round(total, 2))
main()
"""
FOR_THE_LIBRARY = "--disable=pass:fuse"  # else it is part of a kernel
QUIET = "-Wignore"  # what fails has warned before that
# What raises by itself, in the middle of a trace's iteration.
CAUGHT = """\
import torch
torch.set_num_threads(1)
def main():
    t, caught, total = torch.arange(12.0), [], 0.0
    for i in range(90):
        total += (t * 2).sum().item()
        try:
            total += torch.nn.functional.one_hot(torch.tensor([i % 7]), 6).sum().item()
        except RuntimeError as error:
            caught.append((i, str(error).splitlines()[0]))
    print(caught, total)
main()
"""
UNCAUGHT = """\
import torch
torch.set_num_threads(1)
def look(table, at):
    return torch.nn.functional.embedding(torch.tensor([at]), table)
def main():
    table, total = torch.arange(40.0).view(20, 2), 0.0
    for i in range(90):
        total += look(table, i // 3).sum().item()
main()
"""
# What is written in place is not done twice.
EFFECT = """\
import torch
torch.set_num_threads(1)
def main():
    t, counts = torch.zeros(6), torch.zeros(6)
    for i in range(90):
        counts.add_(1)
        try:
            t.index_add_(0, torch.tensor([i % 7]), torch.ones(1))
        except (IndexError, RuntimeError): pass
    print(t.tolist(), counts.tolist(), t._version, counts._version)
main()
"""


class Failures(BisectCase):
    def test_one_of_dynvms_own_costs_a_trace(self):
        _, report = self.outcome(HUBER, "--hot=3", FOR_THE_LIBRARY, QUIET, env={"DYNVM_DEFECT": "out_resizes"})
        self.assertEqual(len(report["failures"]["own"]), 1, report["failures"])
        [text] = report["failures"]["own"]
        self.assertRegex(text, r"script.py:5: RuntimeError: .*resiz")
        self.assertEqual(report["failures"]["own"][text], 1)
        [note] = [why for what, why in report["notes"].items() if what.startswith("trace ")]
        self.assertRegex(note, r"aten::huber_loss failed in it and not in the interpreter .*--disable=trace:.*script.py:5")
        # The loop has traces still, with that operation as a call.
        self.assertGreater(report["tensor_ops_compiled"], report["tensor_ops_total"] / 3)

    def test_it_is_told_where_the_interpreter_may_not_try_again(self):
        outcome, report = self.outcome(HUBER, "--hot=3", FOR_THE_LIBRARY, "--disable=opt:again", env={"DYNVM_DEFECT": "out_resizes"}, same=False)
        self.assertEqual(outcome.status, 1)
        self.assertRegex(outcome.stderr, r"RuntimeError: .*resiz[^\n]*\n(?s:.*)dynvm: this was raised inside the trace of \S*script.py:5 \(main\).*--disable=trace:\S*script.py:5 leaves")
        self.assertEqual(len(report["failures"]["own"]), 1)

    def test_the_switch_of_the_note_avoids_it(self):
        script = os.path.join(self.folder, "script.py")
        self.outcome(HUBER, "--hot=3", FOR_THE_LIBRARY, "--disable=opt:again", f"--disable=trace:{script}:5", env={"DYNVM_DEFECT": "out_resizes"})

    def test_the_scripts_own_errors(self):
        for text in (CAUGHT, EFFECT):
            _, report = self.outcome(text, "--hot=3")
            self.assertEqual(report["failures"]["own"], {})
            self.assertGreater(len(report["traces"]), 0)

    def test_their_tracebacks(self):
        _, report = self.outcome(UNCAUGHT, "--hot=3")
        self.assertEqual(report["failures"]["own"], {})
        self.assertGreater(sum(trace["runs"] for trace in report["traces"]), 4)


if __name__ == "__main__":
    unittest.main()
