"""Each script of scripts/ prints the same, raises the same and ends the same under CPython and under dynvm.

Three dynvm runs: as it is; recording whatever gets hot (plain code, the recording dispatch); and with frames taken apart
and pushed again in the middle of recordings, as side exits do.
"""
import os
import unittest

import vm_case

SCRIPTS = os.path.join(vm_case.FOLDER, "scripts")


@unittest.skipUnless(vm_case.available(), "the test module of the evaluator is not built")
class Scripts(unittest.TestCase):
    maxDiff = 3000


def add(name):
    def test(self):
        path = os.path.join(SCRIPTS, name)
        expected = vm_case.run([path], "stock")
        for mode in ("vm", *vm_case.STRESS):
            with self.subTest(mode=mode):
                got = vm_case.run([path], mode)
                for part, want, have in zip(("exit status", "stdout", "stderr"), expected, got):
                    self.assertEqual(want, have, f"{part} under {mode}")

    setattr(Scripts, f"test_{name[:-3]}", test)


for script in sorted(os.listdir(SCRIPTS)):
    if script.endswith(".py"):
        add(script)
