"""Programs are made, run and compared; differences that are put in are found, and the programs that show them made smaller."""

import os
import re
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from compare import FULL  # noqa: E402
from judge import Judge  # noqa: E402
from hunt import Session, ended_by  # noqa: E402
from side import Side  # noqa: E402

try:
    import torch  # noqa: F401
    from program import generate
except ImportError:
    torch = None

# What is put into a worker, and what of a program shows it: the step, the optimizer, the kind of difference.
SEEDED = {
    "an operation's last element": ("silu = F.silu\ndef wrong(x):\n    y = silu(x)\n    return y + (torch.arange(y.numel()).view(y.shape) == y.numel() - 1) * 0.001\nF.silu = wrong",
                                    "y = F.silu(x)", "SGD", "numbers"),
    "a lost exception": ("torch.Tensor.narrow = lambda x, *rest: x", "y = x * 1\nx.narrow(0, 50, 1)", "SGD", "raises"),
    "other random numbers": ("rand = torch.rand\ntorch.rand = lambda *sizes: (rand(1), rand(*sizes))[1]", "y = x * torch.rand(3)", "SGD", "numbers"),
    "a number drawn too often": ("sinh = torch.Tensor.sinh\ntorch.Tensor.sinh = lambda x: (torch.randn(1), sinh(x))[1]", "y = x * 1\nif i == 7:\n    y.sinh()", "SGD", "random"),
    "a version counter": ("step = torch.optim.Rprop.step\ndef more(self):\n    step(self)\n    self.param_groups[0]['params'][0].detach().mul_(1.0)\ntorch.optim.Rprop.step = more",
                          "y = x * w", "Rprop", "version"),
    "a crash": ("import os\ntorch.Tensor.tanh = lambda x: os.abort()", "y = x.tanh()", "SGD", "crash"),
}
PROGRAM = """
def other(x):
    return x * 0.5 + 1


torch.manual_seed(3)
w = nn.Parameter(torch.randn(3))
opt = torch.optim.{optimizer}([w], lr=0.01)
hist = []
for i in range(8):
    x = torch.randn(4, 3)
    z = other(x).sigmoid_().sum()
    {step}
    loss = (y * w + 0.0 * z).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    hist.append(loss.detach())
show("hist", hist)
show("w", w)
show_random()
"""


@unittest.skipIf(torch is None, "no torch")
class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """A Session whose second side is python with all patches."""
        cls.folder = tempfile.TemporaryDirectory(prefix="dynvm-test-")
        path = os.path.join(cls.folder.name, "patched.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write("import runpy, sys, torch\nimport torch.nn.functional as F\n" + "\n".join(row[0] for row in SEEDED.values()) +
                       "\nsys.argv = sys.argv[1:]\nrunpy.run_path(sys.argv[0], run_name='__main__')\n")
        cls.session = Session([], sides={"plain": Side("python", patched=path)}, all=True)

    @classmethod
    def tearDownClass(cls):
        cls.session.close()
        cls.folder.cleanup()

    def program(self, step, optimizer="SGD"):
        from program import with_prelude
        return with_prelude(PROGRAM.format(step=textwrap.indent(step, "    ").strip(), optimizer=optimizer))

    def test_seeded_differences_are_found(self):
        for name, (_, step, optimizer, kind) in SEEDED.items():
            with self.subTest(name):
                found = self.session.check(0, self.program(step, optimizer))
                self.assertEqual([finding.difference.kind for finding in found], [kind], [str(f.difference) for f in found])
                self.assertTrue(found[0].alone)

    def test_without_one_nothing_is(self):
        found = self.session.check(0, self.program("y = x * w * 0.5"))
        self.assertEqual([str(finding.difference) for finding in found], [])

    def test_a_worker_that_dies_is_replaced(self):
        self.assertEqual([finding.difference.kind for finding in self.session.check(0, self.program("y = x.tanh()"))], ["crash"])
        self.assertEqual(self.session.check(1, self.program("y = x * 2")), [])

    def test_shrinking(self):
        finding, = self.session.check(0, self.program("y = F.silu(x)"))
        text = self.session.smaller(finding).text
        self.assertIn("F.silu", text)
        for gone in ("other", "SGD", "backward", "import numpy", "for i in"):
            self.assertNotIn(gone, text)

    def test_programs_are_scripts_that_end(self):
        """Few programs end with an exception, all are the same when made again, and none names what is not there."""
        side, ended, count = self.session.python, 0, 200 if FULL else 25
        for seed in range(count):
            text = generate(seed)
            self.assertEqual(text, generate(seed))
            shown = side.run(text)
            self.assertIsNone(shown.end, seed)
            kind = ended_by(shown.output)
            self.assertNotIn(kind, ("NameError", "UnboundLocalError", "SyntaxError", "AttributeError"), f"seed {seed}: {shown.output[-600:]}")
            ended += kind is not None
        self.assertLess(ended, count * 0.2)

    def test_rounding_of_programs_is_measured(self):
        """Under noise of nothing programs show the same, but for version counters; under noise they differ little or are known to."""
        side, told, usable = self.session.python, 0, 0
        for seed in range(8):
            text = generate(seed)
            judge = Judge(side.run(text).output, text, lambda k: side.run(text, noise=k).output)
            usable += bool(judge.runs())
            told += any(re.search(r"\d", line) for line in judge.expected)
        self.assertGreaterEqual(usable, 6)
        self.assertEqual(told, 8)


if __name__ == "__main__":
    unittest.main()
