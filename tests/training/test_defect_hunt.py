"""Defects' rows, and when a verdict of `dynvm bisect` names a defect; programs and runs are defects.py's own."""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from compare import ROOT  # noqa: E402
from defects import Defect, FuzzHunt, names, rows  # noqa: E402


class Rows(unittest.TestCase):
    def test_each_row_is_read(self):
        with open(os.path.join(ROOT, "runtime", "base", "defects.def"), encoding="utf-8") as file:
            count = len(re.findall(r"^X\(", file.read(), re.M))
        self.assertEqual(len(rows()), count)
        self.assertEqual(len({defect.name for defect in rows()}), count)

    def test_what_bisect_names_is_a_kind_of_switch(self):
        with open(os.path.join(ROOT, "runtime", "base", "switch_kinds.def"), encoding="utf-8") as file:
            kinds = re.findall(r'^X\(k\w+,\s*"(\w+)"', file.read(), re.M)
        for defect in rows():
            self.assertIn(defect.bisect.partition(":")[0], kinds, defect.name)
            re.compile(defect.bisect)


class Names(unittest.TestCase):
    def test_the_loop_and_the_switch(self):
        defect = Defect("some", "pass", "pass:cse", "")
        self.assertTrue(names(defect, ["trace:a.py:3", "pass:cse", "record:aten::add"]))
        self.assertFalse(names(defect, ["pass:cse"]))
        self.assertFalse(names(defect, ["trace:a.py:3", "pass:dce"]))

    def test_the_interpreter_has_no_loop(self):
        self.assertTrue(names(Defect("some", "vm", "opt:native", ""), ["opt:native"]))

    def test_one_operation_of_several(self):
        defect = Defect("some", "lower", "op:aten::r?sub_?", "")
        self.assertTrue(names(defect, ["trace:a.py:3", "op:aten::mul", "op:aten::rsub"]))
        self.assertFalse(names(defect, ["trace:a.py:3", "op:aten::subtract"]))


class Fuzz(unittest.TestCase):
    def test_nothing_is_wrong_without_a_defect(self):
        hunt = FuzzHunt(Defect("native_overflow", "vm", "opt:native", ""))
        self.assertEqual(hunt.wrong([(1, "log(1 + 1)\n")], defect=False), "")


if __name__ == "__main__":
    unittest.main()
