"""Rules of the house that can be checked by reading the sources: the direction of includes, heads, sizes, tables."""

import os
import re
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# A folder may include itself and what stands before it.
ORDER = ["runtime/base", "ir", "codegen", "runtime", "vm", "tracer", "main"]
SOURCE_FOLDERS = ["vm", "tracer", "ir", "codegen", "runtime", "main", "launcher"]
MAX_LINES = 800
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.M)


def files(folders, *endings):
    """Paths of the sources in folders, relative to the root."""
    for folder in folders:
        for path, subfolders, names in os.walk(os.path.join(ROOT, folder)):
            subfolders[:] = [name for name in subfolders if name not in ("__pycache__", "build", ".venv")]
            for name in names:
                if name.endswith(endings):
                    yield os.path.relpath(os.path.join(path, name), ROOT)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def stage(path):
    """The folder of ORDER that a path is in, or None. runtime/bridge holds the bridge's types, which codegen may see too."""
    if path.startswith("runtime/base/"):
        return "runtime/base"
    return next((folder for folder in ORDER if path.startswith(folder + "/")), None)


class Includes(unittest.TestCase):
    def test_point_one_way(self):
        wrong = []
        for path in files(SOURCE_FOLDERS, ".h", ".cpp", ".c"):
            own = stage(path)
            if own is None:
                continue
            for name in INCLUDE.findall(read(path)):
                other = stage(name)
                if other is not None and ORDER.index(other) > ORDER.index(own):
                    wrong.append(f"{path} includes {name}")
        self.assertEqual(wrong, [], "includes go runtime/base <- ir <- codegen <- runtime <- vm <- tracer <- main")

    def check_only_in(self, pattern, allowed, what):
        wrong = [f"{path} includes {name}"
                 for path in files(SOURCE_FOLDERS, ".h", ".cpp", ".c")
                 for name in INCLUDE.findall(read(path))
                 if re.match(pattern, name) and not path.startswith(allowed)]
        self.assertEqual(wrong, [], f"{what} are included in {', '.join(allowed)} only")

    def test_torch(self):
        self.check_only_in(r"(torch|ATen|c10|caffe2)/", ("runtime/torch/",), "torch's headers")

    def test_cuda(self):
        self.check_only_in(r"(cuda|cudnn|cublas|nvrtc)\w*\.h", ("codegen/cuda/", "runtime/cuda/"), "CUDA's headers")

    def test_cpython_internals(self):
        self.check_only_in(r"(internal/pycore_|pycore_|cpython/)", ("vm/cpython/", "vm/"), "CPython's internal headers")
        # In vm/ only behind the one header of vm/cpython that stands for the running version.
        direct = [path for path in files(["vm"], ".h", ".cpp") if not path.startswith("vm/cpython/")
                  and re.search(r'#\s*include\s+[<"](internal/)?pycore_', read(path))]
        self.assertEqual(direct, [])


class Files(unittest.TestCase):
    def test_head_comment(self):
        wrong = []
        for path in files(SOURCE_FOLDERS, ".h", ".cpp", ".c", ".def"):
            if not re.match(r"\s*(//|/\*)", read(path)):
                wrong.append(path)
        self.assertEqual(wrong, [], "every file starts with a comment that says what it is for")

    def test_size(self):
        wrong = []
        for path in files(SOURCE_FOLDERS + ["python", "bench"], ".h", ".cpp", ".c", ".py"):
            lines = read(path).count("\n")
            if lines > MAX_LINES:
                wrong.append(f"{path}: {lines} lines")
        self.assertEqual(wrong, [], f"a file has at most {MAX_LINES} lines; tables are exempt")

    def test_names(self):
        wrong = [path for path in files(SOURCE_FOLDERS, ".h", ".cpp", ".c", ".def", ".py")
                 if not re.fullmatch(r"[a-z0-9_]+(\.inc)?\.\w+", os.path.basename(path))]
        self.assertEqual(wrong, [], "file names are snake_case")

    def test_headers_are_guarded(self):
        # NAME.inc.h holds text that is included into the middle of a function.
        wrong = [path for path in files(SOURCE_FOLDERS, ".h") if not path.endswith(".inc.h") and "#pragma once" not in read(path)]
        self.assertEqual(wrong, [])

    def test_no_text_of_one_machine(self):
        places = re.compile(r"/(root|home|work)/|/tmp/bash")
        wrong = []
        for path in files([*SOURCE_FOLDERS, "tests", "cmake", "python", "docs", "examples", "bench", ".ci"],
                          ".h", ".cpp", ".c", ".def", ".py", ".md", ".sh", ".txt", ".cmake", "run"):
            if path != "tests/structure/test_structure.py" and places.search(read(path)):
                wrong.append(path)
        self.assertEqual(wrong, [])


class Tables(unittest.TestCase):
    def test_rows_end_in_a_sentence(self):
        """Tables whose rows readers see (help, logs, reference pages) explain each row at its end."""
        wrong = []
        for table in ("runtime/base/options.def", "runtime/base/log_categories.def", "runtime/base/dump_stages.def",
                      "vm/insts.def", "tracer/aborts.def", "runtime/base/heuristics.def", "ir/ops.def", "runtime/base/switch_kinds.def", "runtime/base/parts.def",
                      "runtime/base/safe.def", "runtime/base/defects.def", "tracer/own_errors.def"):
            if not os.path.exists(os.path.join(ROOT, table)):
                continue
            for line in read(table).splitlines():
                if re.match(r"^[A-Za-z_]+\(.*\)\s*$", line) and not re.search(r'[^"]{4}[.?!]?"\)\s*$', line):
                    wrong.append(f"{table}: {line}")
        self.assertEqual(wrong, [])


class Pages(unittest.TestCase):
    def test_heuristics_page_is_that_of_the_table(self):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "docs", "heuristics.py"), "--check"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""), "run docs/heuristics.py")

    def test_switches_page_is_that_of_the_tables(self):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "docs", "switches.py"), "--check"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""), "run docs/switches.py")

    def check_asked(self, table, pattern):
        rows = re.findall(r"^X\((k\w+),", read(table), re.M)
        sources = "".join(read(path) for path in files(SOURCE_FOLDERS, ".h", ".cpp", ".inc.h"))
        self.assertEqual([row for row in rows if not re.search(pattern.format(row), sources)], [], f"rows of {table} that nothing asks for")

    def test_no_part_and_no_defect_is_left_unused(self):
        self.check_asked("runtime/base/parts.def", r"Part::{}\b")
        self.check_asked("runtime/base/defects.def", r"Defect::{}\b")

    def test_no_heuristic_is_left_unused(self):
        names = re.findall(r"^X\((\w+),", read("runtime/base/heuristics.def"), re.M)
        sources = "".join(read(path) for path in files(SOURCE_FOLDERS, ".h", ".cpp", ".inc.h"))
        self.assertEqual([name for name in names if not re.search(rf"(heuristics\(\)|limits_?)\.{name}\b", sources)], [])


class Scripts(unittest.TestCase):
    def test_shell_syntax(self):
        for path in ("run", "check", ".ci/run", "cmake/setup.sh"):
            done = subprocess.run(["bash", "-n", os.path.join(ROOT, path)], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), path)
            if not path.endswith(".sh"):
                self.assertTrue(os.access(os.path.join(ROOT, path), os.X_OK), path)


if __name__ == "__main__":
    unittest.main()
