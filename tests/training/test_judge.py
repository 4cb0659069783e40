"""judge.py: what counts as the same, and how noise widens it."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from judge import Judge  # noqa: E402
from hunt import known  # noqa: E402

TEXT = "float_type = torch.float32\n"
DOUBLE = "torch.set_default_dtype(torch.float64)\n"


def difference(expected, got, noisy=None, text=TEXT):
    return Judge(expected, text, noisy or (lambda k: expected)).difference(got)


class Judged(unittest.TestCase):
    def test_rounding_is_no_difference(self):
        self.assertIsNone(difference("loss 1.0 200.0", "loss 1.0001 200.0"))
        self.assertIsNone(difference("w float32 [2] v3 0.5 -1e-09", "w float32 [2] v3 0.5000001 1e-09"))
        self.assertIsNone(difference("loss nan inf", "loss nan inf"))

    def test_more_is(self):
        self.assertEqual(difference("loss 1.0 2.0", "loss 1.001 2.0").kind, "numbers")
        self.assertEqual(difference("loss nan", "loss 1.0").kind, "numbers")
        self.assertEqual(difference("loss inf", "loss -inf").kind, "numbers")
        self.assertEqual(difference("loss 1.0", "loss 1.0000001", text=DOUBLE).kind, "numbers")

    def test_all_else_is_exact(self):
        for expected, got, kind in (("w v3 0.5", "w v4 0.5", "version"), ("w v3 0.5", "w v4 0.6", "numbers"), ("w v3 0.5\nn 3", "w v4 0.5\nn 4", "text"), ("n 3", "n 4", "text"), ("a\nb", "a", "text"), ("random state torch 1", "random state torch 2", "random"),
                                    ("ended by ValueError x", "w 1", "raises"), ("w 1", "ended by ValueError x", "raises"), ("a", "a\nwarning x", "warning")):
            self.assertEqual(difference(expected, got).kind, kind, (expected, got))

    def test_noise_widens_what_is_accepted(self):
        outputs = ["loss 1.0", "loss 1.0002", "loss 0.9999", "loss 1.0001"]
        judge = Judge("loss 1.0", TEXT, lambda k: outputs[k])
        self.assertIsNone(judge.difference("loss 1.003"))
        self.assertTrue(judge.by_noise)
        self.assertEqual(judge.difference("loss 1.02").kind, "numbers")

    def test_noise_that_takes_other_branches_ends_the_comparison(self):
        outputs = ["a 1.0\nstop 3", "a 1.0\nstop 3", "a 1.0\nstop 4", "a 1.0\nstop 3"]
        judge = Judge(outputs[0], TEXT, lambda k: outputs[k])
        self.assertIsNone(judge.difference("a 1.0\nstop 5"))
        self.assertEqual(judge.difference("a 2.0\nstop 5").kind, "numbers")

    def test_a_mode_that_changes_more_accepts_nothing(self):
        judge = Judge("a 1.0", TEXT, lambda k: "a 1.0" if k else "b 1.0")
        self.assertEqual(judge.difference("a 1.001").kind, "numbers")

    def test_version_counters_are_not_those_of_noisy_runs(self):
        judge = Judge("w v3 1.0", TEXT, lambda k: "w v1 1.0" if k != 1 else "w v1 1.001")
        self.assertIsNone(judge.difference("w v3 1.002"))
        self.assertEqual(judge.difference("w v4 1.0").kind, "version")

    def test_open_differences_are_told_apart(self):
        self.assertIsNotNone(known(TEXT, difference("node MeanBackward0", "node CppFunction")))
        self.assertIsNone(known(TEXT, difference("loss 1.0", "ended by RuntimeError something else")))
        self.assertIsNone(known(TEXT, difference("loss 1.0", "loss 2.0")))


if __name__ == "__main__":
    unittest.main()
