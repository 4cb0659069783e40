"""shrink.py: what does not matter is removed, what fails stays."""

import unittest

from shrink import shrink

TEXT = """\
import math
def show(name, value):
    print(name, value)
a = 1
b = 2
for i in range(3):
    a += 1
    if a > 2:
        b = bad(a)
    else:
        b = 3
show('a', a)
"""


class Shrink(unittest.TestCase):
    def test_only_the_failing_statement_stays(self):
        small = shrink(TEXT, lambda texts: ["bad(a)" in t and "range" in t for t in texts], ["show"])
        self.assertIn("bad(a)", small)
        self.assertIn("def show", small)
        self.assertNotIn("else", small)
        self.assertNotIn("if a", small)
        self.assertNotIn("a = 1", small)

    def test_a_program_that_needs_all_stays(self):
        self.assertIn("else", shrink(TEXT, lambda texts: [False for _ in texts]))


if __name__ == "__main__":
    unittest.main()
