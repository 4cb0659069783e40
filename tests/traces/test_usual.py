"""Scripts with the numbers that users have, where recordings wait until they pay: what costs a trace shows as a share of operations that are not compiled."""

import json
import os
import unittest

from compare import CompareCase, DYNVM, PYTHON, ROOT, run

try:
    import torch  # noqa: F401
except ImportError:
    raise unittest.SkipTest("needs torch")


class Usual(CompareCase):
    def test_evaluations_cost_no_traces(self):
        """train() and eval() every 30 steps: 66 % were compiled when each of them cost a trace that begins inside of an iteration."""
        script = os.path.join(ROOT, "tests", "traces", "cases", "evaluated_now_and_then.py")
        file = os.path.join(self.folder, "r.json")
        expected = run(PYTHON, [script])
        got = run(DYNVM, ["--cache=off", f"--report={file}", script])
        self.assertEqual((got.status, got.stderr), (expected.status, expected.stderr))
        with open(file, encoding="utf-8") as content:
            facts = json.load(content)
        self.assertGreater(facts["tensor_ops_compiled"], 0.85 * facts["tensor_ops_total"])


if __name__ == "__main__":
    unittest.main()
