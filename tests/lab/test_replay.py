"""`dynvm --record-to=DIR` and `dynvm replay DIR`: what is compiled again is what the script ran, and other settings make other kernels."""

import json
import os
import unittest

from lab_case import LabCase, SCRIPT

from dynvm.replay import differences, numbers, replay


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
