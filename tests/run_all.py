#!/usr/bin/env python3
"""Runs every suite that the build registered and adds up what they counted.

Usage: run_all.py BUILD_FOLDER [--full] [--jobs N] [SUITE ...]   (a SUITE is a name or the beginning of one)
Inputs: ctest's list of tests. A suite's counts come from GoogleTest's JSON, else from the last line of its output of the
  form "N passed, N failed, N skipped", else from its exit status (0 passed, 77 skipped).
Outputs: a line for each suite, the output of those that failed, what suites name as known gaps, and as the last line the sum; exit status 1 when one failed.
Invariants: a suite that crashes, or passes its time limit, counts as failed, whatever it had counted before.
"""

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import time

COUNTS = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped\b", re.MULTILINE)
TIME_LIMIT_S = 1200
TIME_LIMIT_FULL_S = 3600


class Suite:
    def __init__(self, entry, build):
        properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
        self.name = entry["name"]
        self.command = entry.get("command", [])
        self.folder = properties.get("WORKING_DIRECTORY", build)
        labels = properties.get("LABELS", [])
        self.gtest = "gtest" in labels
        self.full = "full" in labels
        self.environment = dict(pair.split("=", 1) for pair in properties.get("ENVIRONMENT", []))


def list_suites(build):
    """The registered suites. Tests that gtest_discover_tests made one by one are put together again by their program."""
    text = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, check=True, capture_output=True, text=True).stdout
    suites, programs = [], {}
    for entry in json.loads(text)["tests"]:
        suite = Suite(entry, build)
        if any(word.startswith("--gtest_filter=") for word in suite.command):
            program = suite.command[0]
            if program in programs:
                continue
            programs[program] = suite
            suite.name, suite.command, suite.gtest = os.path.basename(program), [program], True
        suites.append(suite)
    return suites


def count_gtest(file):
    """(passed, failed, skipped), or None when the program did not come to its end."""
    try:
        with open(file) as text:
            result = json.load(text)
    except (OSError, ValueError):
        return None
    counts = [0, 0, 0]
    for group in result["testsuites"]:
        for case in group["testsuite"]:
            if case.get("result") in ("SKIPPED", "SUPPRESSED") or case.get("status") == "NOTRUN":
                counts[2] += 1
            else:
                counts[1 if "failures" in case else 0] += 1
    return tuple(counts)


def run_suite(suite, full, shared):
    """((passed, failed, skipped), output, seconds). shared: a folder for what suites need alike (tests/programs/cases.py)."""
    start = time.monotonic()
    if not suite.command or not os.path.exists(suite.command[0]):
        return (0, 1, 0), f"{suite.name} was not built\n", 0.0
    if suite.full and not full:
        return (0, 0, 1), "only with --full\n", 0.0
    with tempfile.TemporaryDirectory(prefix="dynvm-check-") as folder:
        result_file = os.path.join(folder, "gtest.json")
        command = suite.command + ([f"--gtest_output=json:{result_file}"] if suite.gtest else [])
        environment = {**os.environ, **suite.environment, "DYNVM_TEST_SHARED": shared}
        if full:
            environment["DYNVM_TEST_FULL"] = "1"
        limit = (TIME_LIMIT_FULL_S if full else TIME_LIMIT_S) * float(suite.environment.get("DYNVM_TEST_PATIENCE", "1"))
        try:
            done = subprocess.run(command, cwd=suite.folder, env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit)
            code, output = done.returncode, done.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired as timeout:
            code, output = -1, (timeout.stdout or b"").decode(errors="replace") + f"\ntime limit of {limit:.0f} s passed\n"
        counts = count_gtest(result_file) if suite.gtest else None
        if not suite.gtest:
            lines = COUNTS.findall(output)
            if lines:
                counts = tuple(int(n) for n in lines[-1])
        if counts is None:
            counts = {0: (1, 0, 0), 77: (0, 0, 1)}.get(code, (0, 1, 0)) if not suite.gtest else (0, 1, 0)
        if code not in (0, 77) and counts[1] == 0:
            counts = (counts[0], 1, counts[2])
            output += f"\n{suite.name} ended with status {code}\n"
    return counts, output, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("suites", nargs="*")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--jobs", type=int, default=max(1, min(4, os.cpu_count() or 1)))
    arguments = parser.parse_intermixed_args()

    suites = list_suites(os.path.abspath(arguments.build))
    if arguments.suites:
        suites = [suite for suite in suites if suite.name.startswith(tuple(arguments.suites))]
    total, known = [0, 0, 0], []
    with tempfile.TemporaryDirectory(prefix="dynvm-shared-") as shared, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        futures = [(suite, pool.submit(run_suite, suite, arguments.full, shared)) for suite in suites]
        for suite, future in futures:
            counts, output, seconds = future.result()
            for i in range(3):
                total[i] += counts[i]
            if counts[1]:
                print(output, end="" if output.endswith("\n") else "\n")
            known += [f"{suite.name}: {line}" for line in output.splitlines() if line.startswith("known gap: ")]
            passed, failed, skipped = counts
            verdict = "FAILED" if failed else "ok" if passed else "skipped"
            print(f"{suite.name:<24} {passed:5} passed {failed:5} failed {skipped:5} skipped {seconds:8.1f} s  {verdict}", flush=True)
    print(*known, sep="\n", end="\n" if known else "")
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
