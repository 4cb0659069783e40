"""`dynvm --record-to=DIR` and `dynvm replay DIR`: what is compiled again is what the script ran, and other settings make other kernels."""

import json
import os
import re
import unittest

from compare import ROOT
from lab_case import LabCase, SCRIPT

from dynvm.replay import differences, numbers, replay


# Long and short chains, reductions, many operations on few numbers: what the numbers of passes and kernels decide about.
VARIED = """\
import torch
torch.set_num_threads(1)
params = [torch.ones(40) for k in range(30)]
def main(total=0.0):
    x, big, small = torch.ones(64, 64), torch.ones(300, 300), torch.ones(50)
    for i in range(60):
        y = x * 0.5 + 1.25
        for k in range(20): y = torch.tanh(y * 0.1) + x * 0.5
        z, light = (big * 2.0).sum(dim=1), big.sum(dim=0)
        w = torch.relu(big * 0.5 - 1)
        m = torch.ones(100, 100) * i
        m = ((((m + 1) * 3 - 2) * m + 0.5) * m - 0.25) * m + 0.125
        m = ((m * m + 0.5) * m - 0.25) * m + m
        a, b, c, d, e = small * 2, torch.ones(50) * i, torch.ones(50) + i, small - i, torch.ones(200) + i
        for p in params: p.mul_(0.999)
        total += y.mean().item() + z[0].item() + light[1].item() + w.mean().item() + (a[0] + b[0] + c[0] + d[0] + e[0]).item()
    print(round(total))
main()
"""
# Attributes that are written between reads of others.
FIELDS = """\
import torch
torch.set_num_threads(1)
class Box: pass
def main():
    box, x, total = Box(), torch.ones(4), 0
    for k in range(40): setattr(box, f"a{k}", k)
    items = [Box() for k in range(40)]
    for k, item in enumerate(items): item.value = k * 1.5
    for i in range(200):
        box.first = i
        box.second = box.a1
        box.third = box.a2 + box.first
        for item in items: total += item.value
        x = torch.relu(x + box.third + box.a1)
main()
"""


class Replay(LabCase):
    def recorded(self, text=SCRIPT):
        """(folder, report)"""
        folder = os.path.join(self.folder, "traces")
        return folder, self.report(f"--record-to={folder}", text=text)

    def compiled(self, folder, *settings):
        file = os.path.join(self.folder, "replay.json")
        outcome = self.dynvm("replay", folder, *(f"--heuristics={setting}" for setting in settings), f"--json={file}")
        with open(file, encoding="utf-8") as stream:
            return json.load(stream), outcome.stdout

    def test_it_is_what_the_script_ran(self):
        folder, report = self.recorded()
        found, _ = self.compiled(folder)
        self.assertEqual(len(found), len(report["traces"]))
        for file, trace in zip(sorted(found), sorted(report["traces"], key=lambda trace: trace["id"])):
            result = found[file]["default"]
            self.assertEqual((result["insts"], len(result["kernels"])), (trace["ir_insts"], trace["kernels"]))

    def test_other_settings(self):
        folder, _ = self.recorded()
        found, text = self.compiled(folder, "fuse_nodes=8", "kernel_unroll=1", "hot_loop=9")
        for results in found.values():
            usual, small, flat, same = (numbers(results[name]) for name in ("default", "fuse_nodes=8", "kernel_unroll=1", "hot_loop=9"))
            self.assertGreater(small["kernels"], usual["kernels"])
            self.assertEqual(small["operations"], usual["operations"])
            self.assertEqual(small["launches"], small["kernels"])
            self.assertEqual(flat["kernels"], usual["kernels"])
            self.assertLess(flat["bytes"], usual["bytes"])
            self.assertEqual(same, usual)
        self.assertIn("hot_loop=9: the same kernels as the default", text)
        self.assertIn("fuse_nodes=8: kernels that differ from the default", text)
        self.assertRegex(text, r"\nall +default +\d+ +\d+ ")

    def test_each_number_of_passes_and_kernels_changes_something(self):
        """Each row of these parts of heuristics.def, under some value."""
        values = {"fuse_operands": 4, "fuse_nodes": 8, "fuse_small": 0, "fuse_tries": 0, "kernel_parallel": 0, "kernel_unroll": 1, "unroll_light": 0, "unroll_light_reduce": 0,
                  "unroll_medium": 0, "schedule_from": 1000000, "share_constants": 1000}
        elsewhere = {"search_writes", "guard_table"}  # below: they are about the code around kernels
        threads = {"kernel_grain"}                    # it is looked at when a kernel runs
        with open(os.path.join(ROOT, "runtime", "base", "heuristics.def"), encoding="utf-8") as file:
            parts = dict(re.findall(r'^GROUP\("([^"]+)"\)\n((?:X\(.*\n)+)', file.read(), re.M))
        rows = {name for part in ("Passes and fusion", "Kernels for CPUs") for name in re.findall(r"^X\((\w+)", parts[part], re.M)}
        self.assertEqual(rows, set(values) | elsewhere | threads)
        folder, _ = self.recorded(VARIED)
        settings = [f"{name}={value}" for name, value in values.items()]
        found, _ = self.compiled(folder, *settings)
        for setting in settings:
            with self.subTest(setting=setting):
                self.assertTrue(any(results[setting] != results["default"] for results in found.values()))

    def test_numbers_of_the_code_around_kernels(self):
        def shown(*options):
            return self.dynvm("--cache=off", *options, self.script(FIELDS)).stderr
        table = re.compile(r"^  ; \d+ x guard_dict_version$", re.M)
        self.assertIsNone(table.search(shown("--dump=asm")))
        self.assertIsNotNone(table.search(shown("--dump=asm", "--heuristics=guard_table=1")))
        size = re.compile(r"trace 1 .* (\d+) instructions, (\d+) bytes of machine code")
        self.assertNotEqual(size.search(shown("--log=compile"))[2], size.search(shown("--log=compile", "--heuristics=search_writes=0"))[2])

    def test_the_script_does_the_same_under_that_setting(self):
        folder, _ = self.recorded()
        found, _ = self.compiled(folder, "fuse_nodes=8")
        ran = self.report("--heuristics=fuse_nodes=8")
        self.assertEqual([len(found[file]["fuse_nodes=8"]["kernels"]) for file in sorted(found)], [trace["kernels"] for trace in ran["traces"]])

    def test_sizes_that_change(self):
        folder, report = self.recorded("""\
import torch
torch.set_num_threads(1)
def main():
    total = 0.0
    for i in range(120):
        total += torch.relu(torch.ones(3 + i % 40) * i).sum().item()
    print(total)
main()
""")
        self.assertGreater(report["sizes"]["generic"], 0)
        found, text = self.compiled(folder)
        self.assertTrue(any(kernel["per_point"] for results in found.values() for kernel in results["default"]["kernels"]))
        self.assertTrue(any(kernel["points"] is not None for results in found.values() for kernel in results["default"]["kernels"]))

    def test_differences(self):
        kernel = {"name": "mul", "operations": 1, "operands": 2, "points": 4, "cost_ns": 8.0, "per_point": False, "code_bytes": 32}
        self.assertEqual(differences({"kernels": [kernel, kernel]}, {"kernels": [kernel, {**kernel, "name": "add"}]}),
                         ["    - mul: 1 operations, 2 operands, 4 points, 8 ns, 32 bytes", "    + add: 1 operations, 2 operands, 4 points, 8 ns, 32 bytes"])

    def test_wrong(self):
        os.mkdir(os.path.join(self.folder, "empty"))
        self.assertIn("there is no recorded trace", self.dynvm("replay", "empty", status=2).stderr)
        self.script("trace 1 \"x\" storages 0\n%1 = nonsense\n", "empty/bad.ir")
        self.assertRegex(self.dynvm("replay", "empty", status=2).stderr, r"bad\.ir: line 2: ")
        self.assertIn("--heuristics: 'fuse_node' is no number", self.dynvm("replay", "empty", "--heuristics=fuse_node=3", status=2).stderr)
        with self.assertRaises(ValueError):
            replay("trace", "hot_loop=0")

    def test_a_folder_that_cannot_be_written(self):
        self.script("", "file")
        report = self.report(f"--record-to={self.folder}/file/x", stderr=None)
        self.assertIn("--record-to", report["notes"])
        self.assertTrue(report["traces"])


if __name__ == "__main__":
    unittest.main()
