#!/usr/bin/env python3
"""Popular packages' own tests under dynvm: each test that passes under python must pass under dynvm.

Usage:   run.py [-j N] [--folder DIR] [--report FILE.json] [--limit SECONDS] [-v] [NAME ... | NAME TEST-ID ...]
         Without names: all packages of packages.toml. TEST-ID: single tests of one package, as failures print them.
         -v: also what was skipped, and why.
Inputs:  DYNVM and DYNVM_TEST_PYTHON, what is compared; packages.toml; pip's index. --folder: where environments, sources and python's
         results are kept, each package apart (default: build/popular-X.Y).
Outputs: a line for each package, each failure with its detail; --report: all of it as JSON; last line "N passed, N failed,
         N skipped" over single tests, exit status 1 when one failed, 77 when no package could be fetched.
Method:  A package has a virtual environment of its own, with its fixed version and what its tests import; they run in a copy
         of its source distribution or from where they are installed. tests/lib/process.py runs them under both, worker.py
         tells of each, tests/lib/verdicts.py compares. What cannot be fetched is skipped, with pip's last word.
Tests:   test_runner.py.
"""

import argparse
import concurrent.futures
import glob
import json
import os
import sys
import tarfile
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib")]
import verdicts  # noqa: E402
from compare import DYNVM, PATIENCE  # noqa: E402
from packages import Environment, NotFetched, folder_for  # noqa: E402
from process import Kept, Side  # noqa: E402

WORKER = os.path.join(HERE, "worker.py")
LIMIT_S = 1800


class Package(Environment):
    """A row of packages.toml, also the exclusions that verdicts.py asks for."""

    def __init__(self, name, row, folder):
        super().__init__(os.path.join(folder, name), [f"{name}=={row['version']}", *row["with"]])
        self.name = name
        self.arguments, self.source = row["arguments"], row.get("source", False)
        self.reasons = row.get("without", {})
        self.tree = os.path.join(self.folder, "source") if self.source else None

    def of(self, name):
        return list(self.reasons.items())

    def wanted(self):
        return json.dumps([self.requirements, self.source])

    def fill(self):
        super().fill()
        if self.source:
            self.unpack(self.requirements[0])

    def unpack(self, pinned):
        fetched = os.path.join(self.folder, "fetched")
        self.pip("download", "--quiet", "--no-deps", "--no-binary", self.name, "-d", fetched, pinned)
        with tarfile.open(*glob.glob(os.path.join(fetched, "*.tar.gz"))) as archive:
            archive.extractall(fetched, filter="data")
        os.rename(*glob.glob(os.path.join(fetched, "*", "")), self.tree)

    def side(self, program, report, limit):
        return Side(program, report, WORKER, {"arguments": self.arguments}, limit, tuple(self.reasons), self.variables(), self.tree)

    def run(self, arguments, only):
        self.make()
        own = self.side(DYNVM, True, arguments.limit)
        self.check_dynvm()
        stock = Kept(self.side(self.python, False, arguments.limit), os.path.join(self.folder, "results"))
        result = verdicts.judge(self.name, stock, own, self, only)
        first = stock.load(self.name)
        if not any(outcome == "ok" for outcome, _, _ in first.tests.values()):  # the row is wrong: nothing was compared
            result["failed"] += 1
            result["failures"].append((f"{self.name} (python)", "no test passes under python\n" + first.why))
        return result


def parse(known):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--folder")
    parser.add_argument("--report")
    parser.add_argument("--limit", type=float, default=LIMIT_S * PATIENCE)
    parser.add_argument("-v", "--verbose", action="store_true")
    arguments = parser.parse_intermixed_args()
    arguments.packages = [name for name in arguments.names if name in known]
    arguments.only = [name for name in arguments.names if name not in known] or None
    if arguments.only and len(arguments.packages) != 1:
        parser.error(f"single tests need the one package that they are of: {' '.join(known)}")
    return arguments


def main():
    with open(os.path.join(HERE, "packages.toml"), "rb") as file:
        table = tomllib.load(file)
    arguments = parse(table)
    verdicts.end_with_children()
    usual = folder_for("popular")
    folder = os.path.abspath(arguments.folder or usual)
    packages = [Package(name, table[name], folder) for name in arguments.packages or table]
    results, missing = [], []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        futures = {pool.submit(package.run, arguments, arguments.only): package for package in packages}
        for future in concurrent.futures.as_completed(futures):
            try:
                results.append(future.result())
            except NotFetched as error:
                missing.append(futures[future].name)
                print(f"{missing[-1]:<40} skipped: {error}", flush=True)
                continue
            verdicts.show(results[-1], arguments.verbose)
    if arguments.report:
        with open(arguments.report, "w", encoding="utf-8") as file:
            json.dump({"version": usual.rpartition("-")[2], "packages": results, "missing": missing}, file, indent=1)
    passed, failed, skipped = (sum(result[kind] for result in results) for kind in ("passed", "failed", "skipped"))
    print(f"{passed} passed, {failed} failed, {skipped + len(missing)} skipped")
    return 77 if not results else 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
