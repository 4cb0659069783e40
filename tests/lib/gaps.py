"""What DYNVM_STRESS=check tells of traces, and which of it is known and not mended yet (gaps.def).

A report begins with "dynvm: check:" and has lines that are indented; those with MARK are differences. A report is a
known gap where each of its differences has a row; what suites do with it: they print it, and do not fail.
"""

import os
import re

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gaps.def")
START, MARK = "dynvm: check: ", " in the trace's run, "


def rows(file=FILE):
    """[(pattern of scripts' names, pattern of differences, what is wrong)]"""
    with open(file, encoding="utf-8") as text:
        lines = [line.rstrip("\n") for line in text if line.strip() and not line.startswith("#")]
    return [tuple(part.strip() for part in line.split(" :: ")) for line in lines]


def split(stderr):
    """(standard error without reports, the reports)"""
    text, reports, inside = [], [], False
    for line in stderr.splitlines(keepends=True):
        if line.startswith(START):
            reports.append(line)
            inside = True
        elif inside and line.startswith("  "):
            reports[-1] += line
        else:
            inside = False
            text.append(line)
    return "".join(text), reports


def known(script, report, table):
    """What is known to be wrong, or None. script: the name of the script that ran."""
    differences = [line for line in report.splitlines() if MARK in line]
    found = set()
    for difference in differences:
        what = [what for scripts, pattern, what in table if re.fullmatch(scripts, script) and re.search(pattern, difference)]
        if not what:
            return None
        found.add(what[0])
    cut = re.search(r"^  +and \d+ more", report, re.MULTILINE)  # taken for more of the same, where there is one kind
    return ", ".join(sorted(found)) if found and not (cut and len(found) > 1) else None
