"""The tables of this folder, and the list of the running Python's test modules.

Inputs: modules.def, exclusions.def; the `test` package of the interpreter under test. Tests: tests/cpython/test_runner.py.
"""

import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROW = re.compile(r'^(\w+)\((.*)\)\s*$')
FIELD = re.compile(r'"((?:[^"\\]|\\.)*)"|(\w+)')
LEVELS = ("quick", "subset")
# Packages whose files are modules of their own, as for `python -m test`.
SPLIT = {"test_asyncio", "test_concurrent_futures", "test_doctests", "test_future_stmt", "test_gdb", "test_inspect", "test_pydoc",
         "test_multiprocessing_fork", "test_multiprocessing_forkserver", "test_multiprocessing_spawn"}


def rows(text, kind, fields):
    """The rows KIND(...) of a table, each a tuple of its fields; anything else but comments and blank lines is an error."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("//"):
            continue
        match = ROW.match(line)
        row = tuple(a.replace('\\"', '"') or b for a, b in FIELD.findall(match.group(2))) if match else ()
        if not match or match.group(1) != kind or len(row) != fields:
            raise ValueError(f"line {number}: not a row of {kind} with {fields} fields: {line}")
        found.append(row)
    return found


def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


class Exclusions:
    """Tests that are not run, with the reason. version: (3, 11); children: the run is one with --children."""

    def __init__(self, version, text=None, children=False):
        self.reasons = {}
        for test, where, reason in rows(read("exclusions.def") if text is None else text, "EXCLUDED", 3):
            words = where.split()
            if ("all" in words or "%d.%d" % version in words) and ("--children" not in words or children):
                self.reasons[test] = reason

    def of(self, module):
        """(test, reason) of a module's."""
        return [(test, reason) for test, reason in self.reasons.items() if test.startswith(module + ".")]


def chosen(level, text=None):
    """Modules of the table that a level has: quick, or subset with the quick ones."""
    levels = LEVELS[:LEVELS.index(level) + 1]
    table = rows(read("modules.def") if text is None else text, "MODULE", 3)
    unknown = [row for row in table if row[1] not in LEVELS]
    if unknown:
        raise ValueError(f"modules.def: no such level: {unknown[0]}")
    return [name for name, at, _ in table if at in levels]


def about(program):
    """((major, minor), the folder of the `test` package or None) of an interpreter."""
    text = subprocess.run([program, "-c", "import sys, importlib.util as u; s = u.find_spec('test.support'); "
                           "print(*sys.version_info[:2], s.origin if s else '')"], check=True, capture_output=True, text=True).stdout
    major, minor, *origin = text.split(None, 2)
    return (int(major), int(minor)), os.path.dirname(os.path.dirname(origin[0].strip())) if origin else None


def list_modules(folder, prefix=""):
    """All test modules below a folder of the `test` package, by name."""
    found = []
    for entry in os.listdir(folder):
        stem, ending = os.path.splitext(entry)
        if not stem.startswith("test_"):
            continue
        name = prefix + stem
        if name in SPLIT and ending == "":
            found += list_modules(os.path.join(folder, entry), name + ".")
        elif ending == ".py" or (ending == "" and os.path.exists(os.path.join(folder, entry, "__init__.py"))):
            found.append(name)
    return sorted(found)


def select(names, modules, strict=True):
    """module -> None (all of it) or a list of test ids, for names of modules, packages or single tests.
    strict: a name that there is not is an error."""
    picked = {}
    for name in names:
        name = name.removeprefix("test.").removesuffix(".py")
        below = [module for module in modules if module == name or module.startswith(name + ".")]
        if below:
            picked.update(dict.fromkeys(below))
            continue
        owner = max((module for module in modules if name.startswith(module + ".")), key=len, default=None)
        if owner is None and not strict:
            continue
        if owner is None:
            raise ValueError(f"no test module has {name}")
        if picked.get(owner, []) is not None:
            picked.setdefault(owner, []).append(name)
    return picked
