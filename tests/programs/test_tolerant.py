"""tolerant.py: what counts as the same text."""

import unittest

from tolerant import difference


class Tolerant(unittest.TestCase):
    def agree(self, a, b):
        self.assertIsNone(difference(a, b))

    def differ(self, a, b):
        self.assertIsNotNone(difference(a, b))

    def test_floats_within_rounding_agree(self):
        self.agree("loss 1.23456", "loss 1.23457")
        self.agree("loss 0.1235", "loss 0.1234")
        self.agree("x=-1e-07", "x=1e-07")
        self.agree("tensor([-0.0000, 1.5])", "tensor([0.0000, 1.5])")
        self.agree("nan inf -inf", "nan inf -inf")

    def test_floats_apart_differ(self):
        self.differ("loss 1.2345", "loss 1.2355")
        self.differ("0.1235", "-0.1235")
        self.differ("nan", "0.5")
        self.differ("inf", "-inf")
        self.differ("tensor([1., 2.])", "tensor([1., 3.])")
        self.differ("0.5", "1.0")

    def test_integers_and_text_are_exact(self):
        self.differ("step 3", "step 4")
        self.differ("loss 1.0", "less 1.0")
        self.differ("1", "1.0")
        self.differ("True", "False")

    def test_line_counts_are_compared(self):
        self.differ("a\nb", "a")
        self.agree("a\n", "a")

    def test_column_width_is_not_compared(self):
        self.agree("tensor([ 1.5000, -0.0001])", "tensor([1.5000, -0.0001])")


if __name__ == "__main__":
    unittest.main()
