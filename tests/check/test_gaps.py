"""tests/lib/gaps.py: what is said about traces is told apart from the script's own text, and from what is known."""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gaps  # noqa: E402

REPORT = "dynvm: check: trace 2 of x.py:3 (f) is not what the interpreter does\n  at the loop's header after 1 iterations\n  locals['a'].b: 1 in the trace's run, 0 in the interpreter's\n"
TABLE = [("x.*", r"\['a'\]\.b: 1 in", "wrong b"), ("y", "c: ", "wrong c")]


class Gaps(unittest.TestCase):
    def test_split(self):
        text, reports = gaps.split(f"a warning\n{REPORT}more\n  indented\n{REPORT}")
        self.assertEqual(text, "a warning\nmore\n  indented\n")
        self.assertEqual(reports, [REPORT, REPORT])

    def test_known(self):
        self.assertEqual(gaps.known("x_1", REPORT, TABLE), "wrong b")

    def test_cut(self):
        self.assertEqual(gaps.known("x", REPORT + "  and 3 more\n", TABLE), "wrong b")
        two = REPORT + "  c: 1 in the trace's run, 0 in the interpreter's\n  and 3 more\n"
        self.assertIsNone(gaps.known("x", two, [*TABLE, (".*", "c: ", "wrong c")]))

    def test_unknown(self):
        other = "  locals['d']: 1 in the trace's run, 0 in the interpreter's\n"
        for script, report in (("z", REPORT), ("x", REPORT + other), ("x", "dynvm: check: it stopped\n")):
            self.assertIsNone(gaps.known(script, report, TABLE), report)

    def test_table(self):
        for scripts, pattern, what in gaps.rows():
            re.compile(scripts), re.compile(pattern)
            self.assertTrue(what)


if __name__ == "__main__":
    unittest.main()
