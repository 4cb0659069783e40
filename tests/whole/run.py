#!/usr/bin/env python3
"""Runs the scripts of tests/whole/scripts, one for each construct of Python or torch, under python and dynvm.

Usage:   run.py [--stress] [--check] [--cached] [--alone] [--hot N] [--heuristics NAME=N,...] [-v] [NAME ...]     (a NAME is a part of scripts' names)
Inputs:  scripts/*.py, small programs as users write them; their headers, DYNVM and DYNVM_TEST_PYTHON: tests/programs/cases.py.
Outputs: each failure with what differs; last line "N passed, N failed, N skipped"; exit status 1 when one failed.
         --stress     each guard of each trace fails once (DYNVM_STRESS=exit); expectations are not checked
         --check      what traces leave is compared with what the interpreter does (DYNVM_STRESS=check)
         --cached     runs twice with one trace cache: the second run, with traces of the first, is compared
         --alone      all scripts in processes of their own; also with DYNVM_TEST_FULL=1
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "programs"))
from cases import finish, parser, run_folder  # noqa: E402
from compare import not_built  # noqa: E402


def main():
    arguments = parser().parse_args()
    if not_built():
        return 1
    return finish(run_folder(os.path.join(HERE, "scripts"), arguments))


if __name__ == "__main__":
    sys.exit(main())
