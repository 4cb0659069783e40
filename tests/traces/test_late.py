"""Traces that may be entered only some time after they were made, as those whose kernels are compiled beside the script (--stress=wait does so on the CPU)."""

import json
import os
import unittest

from compare import CompareCase, DYNVM, PYTHON, run

try:
    import torch  # noqa: F401
except ImportError:
    raise unittest.SkipTest("needs torch")

TRAINING = """
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(*[m for _ in range(3) for m in (torch.nn.Linear(8, 8), torch.nn.Tanh())])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(4, 8), torch.randn(4, 8)
for i in range(200):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    if i % 50 == 49:
        print(f"{loss.item():.4f}")
    loss.backward()
    optimizer.step()
"""


class Late(CompareCase):
    def test_the_loop_goes_on_and_is_recorded_once(self):
        file = os.path.join(self.folder, "r.json")
        script = self.script(TRAINING)
        expected = run(PYTHON, [script])
        got = run(DYNVM, ["--hot=4", "--cache=off", "--stress=wait", f"--report={file}", script])
        self.assertEqual((got.status, got.stdout), (expected.status, expected.stdout), got)
        with open(file, encoding="utf-8") as content:
            facts = json.load(content)
        roots = [trace for trace in facts["traces"] if trace["kind"] == "loop" and trace["tensor_ops"] > 20]
        self.assertEqual(len(roots), 1, facts["traces"])
        self.assertGreater(roots[0]["runs"], 60)


if __name__ == "__main__":
    unittest.main()
