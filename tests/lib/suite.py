"""Runs the unittest files of a folder and prints the counts that tests/run_all.py adds up.

Usage: suite.py FOLDER [NAME ...]: FOLDER/test_*.py; a NAME picks tests whose name contains it.
Outputs: failures as unittest prints them; last line "N passed, N failed, N skipped"; exit status 1 when one failed.
Each subTest that fails is one failure; a test passes as a whole. A file that cannot be imported is a failure.
"""

import os
import sys
import unittest


class Result(unittest.TextTestResult):
    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.passed += 1


def main():
    folder = os.path.abspath(sys.argv[1])
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    loader = unittest.TestLoader()
    if sys.argv[2:]:
        loader.testNamePatterns = [f"*{name}*" for name in sys.argv[2:]]
    tests = loader.discover(folder, pattern="test_*.py", top_level_dir=folder)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1, resultclass=Result).run(tests)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    print(f"{result.passed} passed, {failed} failed, {len(result.skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
