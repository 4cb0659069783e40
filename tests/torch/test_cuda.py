"""The bridge on a GPU: recording across autograd's device thread, and replay that is eager's bit for bit. Skipped where there is none."""

import unittest

from bridge_case import Replay, bitwise, driver, record, wrap_spec
from test_replay import Steps, batches, mlp
import torch
import torch.nn as nn
import torch.nn.functional as F


@unittest.skipUnless(torch.cuda.is_available(), "no CUDA device")
class Cuda(unittest.TestCase):
    def check(self, make_model, make_optimizer, loss, data, steps=4):
        s = Steps(lambda: make_model().cuda(), make_optimizer, loss, [tuple(t.cuda() for t in batch) for batch in data])
        s.prepare(steps)
        self.assertEqual([op["unsupported"] for op in s.lists[-1] if op["unsupported"]], [])
        self.assertTrue(any(op["in_backward"] for op in s.lists[-1]))
        for i in range(steps):
            value = s.replay_step(i)
            self.assertTrue(bitwise(value, s.losses[i]), f"loss of step {i}: {value} {s.losses[i]}")
            for p, expected in zip(s.parameters, s.grads[i]):
                self.assertTrue(bitwise(p.grad, expected), f"gradient in step {i}")

    def test_mlp_sgd(self):
        self.check(mlp, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda m, x, y: F.cross_entropy(m(x), y), batches(4, 64, 64))

    def test_mlp_adam(self):
        self.check(mlp, lambda p: torch.optim.Adam(p, lr=1e-3), lambda m, x, y: F.cross_entropy(m(x), y), batches(4, 64, 64))

    def test_mlp_adam_fused(self):
        self.check(mlp, lambda p: torch.optim.Adam(p, lr=1e-3, fused=True), lambda m, x, y: F.cross_entropy(m(x), y), batches(4, 64, 64))

    def test_autocast_encoder(self):
        def loss(m, x):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                return m(x).float().square().mean()

        torch.manual_seed(3)
        data = [(torch.randn(4, 16, 64),) for _ in range(4)]
        self.check(lambda: nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True), lambda p: torch.optim.SGD(p, lr=0.01), loss, data)

    def test_dropout_is_known(self):
        """How native_dropout draws is known, and measuring it has left the generator alone."""
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
            x = torch.randn(8, 64, device="cuda", dtype=dtype)

            def step():
                return torch.native_dropout(x, 0.5, True)[0], torch.native_dropout(x, 0.5, False)[0], torch.native_dropout(x, 1.0, True)[0], torch.rand(8, device="cuda")

            torch.manual_seed(3)
            expected, state = step(), torch.cuda.get_rng_state()
            for _ in range(2):  # the first one measures
                torch.manual_seed(3)
                _, _, ops, got = record(step)
                self.assertEqual([(op["name"], op["stream"], op["note"]) for op in ops if op["name"] == "aten::native_dropout"],
                                 [("aten::native_dropout", stream, "") for stream in (True, False, False)])
                self.assertTrue(all(bitwise(a, b) for a, b in zip(got, expected)))
                self.assertTrue(torch.equal(torch.cuda.get_rng_state(), state))

    def test_dropout_graph(self):
        w = torch.randn(64, 64, device="cuda", requires_grad=True)
        x = torch.randn(8, 64, device="cuda")
        state = torch.cuda.get_rng_state()
        recorder, records, ops, y = record(lambda: F.dropout(x @ w, 0.5))
        after = torch.cuda.get_rng_state()
        y.sum().backward()
        expected, w.grad = w.grad.clone(), None
        ids = [driver.tensor_id(recorder, t) for t in (y, x, w)]
        replay = Replay(recorder, records, ids[:1], wraps=[wrap_spec(ids[0], True, False, y.grad_fn.name(), forward=range(len(ops)))])
        torch.cuda.set_rng_state(state)
        replay.run(inputs={ids[1]: x, ids[2]: w})
        z = replay.wrap(0)
        replay.end()
        self.assertTrue(torch.equal(torch.cuda.get_rng_state(), after))
        self.assertTrue(bitwise(z, y))
        z.sum().backward()
        self.assertTrue(bitwise(w.grad, expected))

    def test_read_number(self):
        x = torch.randn(4, device="cuda")
        recorder, records, ops, value = record(lambda: x.sum().item())
        id = next(op["args"][0]["ids"][0] for op in ops if op["name"] == "aten::_local_scalar_dense")
        replay = Replay(recorder, records)
        replay.run(inputs={driver.tensor_id(recorder, x): x})
        self.assertEqual(driver.read_number(replay.program, id, True), value)
        replay.end()


if __name__ == "__main__":
    unittest.main()
