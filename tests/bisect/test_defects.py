"""Seeded defects: each makes its script wrong, a process without them is right, and `dynvm bisect` names what it should."""

import os
import re
import unittest

from bisect_case import BisectCase, INSTALLED, PLAIN, is_there
from compare import FULL, ROOT, run

if not is_there():
    raise unittest.SkipTest("dynvm is not installed in .venv, with torch")

HEAD = "import torch\ntorch.set_num_threads(1)\ntorch.manual_seed(1)\n"
# By defect: the script's text, and what must be among the switches that `dynvm bisect` finds ("" where only that it finds some).
SCRIPTS = {
    "cse_across_writes": ("""
class Box: pass
def main():
    box, x, total = Box(), torch.ones(4), 0.0
    for k in range(40): setattr(box, f"a{k}", 0.0)
    for i in range(60):
        before = box.a1
        setattr(box, "a" + str(1), before + 1.0)
        total += (x * box.a1).sum().item() - before
    print(total)
main()
""", "pass:cse"),
    "dce_raising": ("""
def main():
    table, at = torch.arange(40.0).view(40, 1), torch.zeros(1, dtype=torch.int64)
    for i in range(60):
        at = at + 1
        torch.nn.functional.embedding(at, table)
    print("no end")
main()
""", "pass:dce"),
    "hoist_across_writes": ("""
def main():
    items, x, total = [], torch.ones(4), 0.0
    for i in range(60):
        items.append((x * i).sum().item())
        total += len(items)
    print(total, sum(items))
main()
""", "pass:hoist"),
    "fuse_forgets_reads": ("""
def main():
    x, total = torch.arange(16.0).view(4, 4), 0.0
    for i in range(60):
        y = x * 0.5 + i
        total += torch.linalg.matrix_norm(torch.sort(y, 0)[0]).item()
    print(round(total, 2))
main()
""", "pass:fuse"),
    "lower_sub_swapped": ("""
def main():
    x, total = torch.arange(8.0), 0.0
    for i in range(60): total += (torch.exp(x * 0.1) - x * i).sum().item()
    print(round(total, 2))
main()
""", "op:aten::sub"),
    "mean_divides": ("""
def main():
    x, total = torch.arange(8.0), 0.0
    for i in range(60): total += torch.exp(x * 0.1).mean().item()
    print(round(total, 2))
main()
""", "op:aten::mean"),
    "overlap_missed": ("""
def main():
    x = torch.zeros(10)
    for i in range(60):
        x[1:].add_(1)
        x[:-1].mul_(0.5)
        y = x[1:] + x[:-1]
        x[2:].add_(y[1:])
    print(x.tolist())
main()
""", "pass:fuse"),
    "reads_early": ("""
def main():
    step, total = torch.zeros(()), 0.0
    for i in range(60):
        step.view(1).add_(1)
        total += step.item()
    print(total)
main()
""", "pass:hoist"),
    "plan_too_short": ("""
def main():
    x, total = torch.rand(16, 16) * 0.1, 0.0
    for i in range(60):
        y = torch.exp(x * 0.1) * i
        for k in range(6): y = torch.mm(y, x)
        total += y.sum().item()
    print(round(total, 2))
main()
""", "opt:arena"),
    "guard_left_out": ("""
def main():
    x, total = torch.ones(4), 0.0
    for i in range(60):
        y = (x * i).sum().item()
        if y > 100: total += 1000
        total += y
    print(total)
main()
""", "trace:"),
    "snapshot_slot": ("""
def main(kept=0.0):
    x, total = torch.ones(4), 0.0
    for i in range(60):
        kept = (x * i).sum().item()
        if i % 7 == 3: total += kept * 2
        total += kept
    print(total)
main()
""", "trace:"),
    "frozen_number": ("""
def main():
    x, total, scale = torch.ones(4), 0.0, 1.5
    for i in range(60):
        scale = scale * 1.01
        total += (x * scale).sum().item()
    print(round(total, 2))
main()
""", "trace:"),
    "random_kept": ("""
def main():
    x, total = torch.ones(16), 0.0
    for i in range(60):
        torch.rand(2)
        total += (x * i).sum().item()
    print(total, torch.rand(2).tolist())
main()
""", "trace:"),
    "version_kept": ("""
def main():
    x = torch.zeros(4)
    for i in range(60): x.add_(1)
    print(x.tolist(), x._version)
main()
""", "trace:"),
    "wrong_exit": ("""
def main():
    x, seen, total = torch.ones(4), [], 0.0
    for i in range(60):
        y = (x * i).sum().item()
        seen.append(y)
        if y > 100: total += 1
        total += y
    print(total, len(seen))
main()
""", "trace:"),
    "write_back_forgets": ("""
def main():
    x, first, second = torch.ones(4), 0.0, 0.0
    for i in range(60):
        first += (x * 2).sum().item()
        second += first
    print(first, second)
main()
""", "trace:"),
    "grad_added_twice": ("""
def main():
    w, x = torch.ones(4, requires_grad=True), torch.arange(4.0)
    for i in range(60): (w * x).sum().backward()
    print(w.grad.tolist())
main()
""", "trace:"),
    "out_resizes": ("""
def main():
    x, total = torch.linspace(0.0, 3.0, 12), 0.0
    for i in range(80):
        loss = torch.nn.functional.huber_loss(torch.softmax(x * (i % 5), 0), x)
        total += torch.sort(loss.expand(3))[0].sum().item()
    print(round(total, 2))
main()
""", None),  # the interpreter tries again, so that nothing is wrong: tests/bisect/test_failures.py
    "generator_moves": ("""
def main():
    w, total, losses = torch.ones(16, requires_grad=True), 0.0, []
    for i in range(60):
        y = torch.native_dropout(w, 0.5, True)[0]
        loss = (y * i).sum()
        if loss.item() > 100 and i % 4 == 2: losses.append(loss)
        loss.backward()
        total += loss.item()
    print(total, w.grad.sum().item(), torch.rand(2).tolist())
main()
""", "trace:"),
    "native_overflow": ("""
def ten(a): return a + a + a + a + a + a + a + a + a + a
def main(total=0):
    for i in range(20000): total += ten(i) % 3
    for i in range(5): print(total, ten(2 ** 60 - 1 - i))
main()
""", "opt:native"),
}
# Those that `dynvm bisect` runs on in each check; all of them with --full.
SOME = ("dce_raising", "guard_left_out")


def rows():
    with open(os.path.join(ROOT, "runtime", "base", "defects.def"), encoding="utf-8") as file:
        return re.findall(r'^X\(k\w+,\s*"(\w+)"', file.read(), re.M)


class Defects(BisectCase):
    def text(self, name):
        return HEAD + SCRIPTS[name][0]

    def test_each_row_has_a_script(self):
        self.assertEqual(sorted(SCRIPTS), sorted(rows()))

    def test_each_makes_its_script_wrong(self):
        """And without it the script is right."""
        for name in rows():
            with self.subTest(name=name):
                script = self.script(self.text(name))
                plain, usual, seeded = run(PLAIN, [script]), run(INSTALLED, [script]), run(INSTALLED, [script], env={"DYNVM_DEFECT": name})
                right, *others = [(each.status, each.stdout) for each in (plain, usual, seeded)]
                self.assertEqual(others[0], right, usual)
                (self.assertEqual if SCRIPTS[name][1] is None else self.assertNotEqual)(others[1], right)

    def test_bisect_names_them(self):
        for name in rows() if FULL else SOME:
            wanted = SCRIPTS[name][1]
            if wanted is None:
                continue
            with self.subTest(name=name):
                outcome, found = self.bisect(self.text(name), env={"DYNVM_DEFECT": name}, folder=name)
                self.assertEqual(outcome.status, 1, outcome)
                self.assertTrue(any(switch.startswith(wanted) for switch in found["culprits"]), found)
                self.assertTrue(found["option"])


if __name__ == "__main__":
    unittest.main()
