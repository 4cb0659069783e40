"""Replaying recorded steps without any fusion: values, gradients and random streams must be eager's, bit for bit."""

import copy
import time
import unittest

from bridge_case import Replay, bitwise, changing, driver, names, numbers, record, wrap_spec
import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp():
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))


def state_tensors(model, optimizer):
    """Everything that a training step keeps, in an order that a copy of the model shares."""
    out = list(model.parameters()) + list(model.buffers())
    for p in model.parameters():
        state = optimizer.state.get(p, {})
        out += [state[k] for k in sorted(state) if torch.is_tensor(state[k])]
    return out


class Steps:
    """A model trained eagerly and its twin trained by replaying the recorded steps of the first."""

    def __init__(self, make_model, make_optimizer, loss, data):
        torch.manual_seed(1)
        self.eager = make_model()
        self.make_optimizer, self.loss, self.data = make_optimizer, loss, data
        self.eager_optimizer = make_optimizer(self.eager.parameters())
        for _ in range(2):
            self.step(data[0])
        self.twin = copy.deepcopy(self.eager)
        self.twin_optimizer = make_optimizer(self.twin.parameters())
        self.twin_optimizer.load_state_dict(copy.deepcopy(self.eager_optimizer.state_dict()))
        for p in self.twin.parameters():
            p.grad = None
        self.recorder = driver.recorder()

    def step(self, batch):
        self.eager_optimizer.zero_grad()
        loss = self.loss(self.eager, *batch)
        loss.backward()
        self.eager_optimizer.step()
        return loss.detach()

    def prepare(self, steps):
        """Records `steps` eager steps; builds the program of the last one. Keeps what each of them gave."""
        self.lists, self.losses, self.grads, self.seeds = [], [], [], []
        for i in range(steps):
            self.seeds.append(torch.get_rng_state())
            batch = self.data[i % len(self.data)]
            _, records, ops, loss = record(lambda: self.step(batch), self.recorder)
            self.lists.append(ops)
            self.losses.append(loss.clone())
            self.grads.append([p.grad.clone() for p in self.eager.parameters()])
        self.rng_after = torch.get_rng_state()
        self.last_batch = batch
        self.places = changing(self.lists)
        self.parameters = list(self.twin.parameters())
        grad_ids = [driver.tensor_id(self.recorder, p.grad) for p in self.eager.parameters()]
        loss_id = driver.tensor_id(self.recorder, loss)
        eager_state, twin_state = state_tensors(self.eager, self.eager_optimizer), state_tensors(self.twin, self.twin_optimizer)
        used = {id for op in ops for arg in op["args"] for id in arg["ids"]}
        self.state_inputs = {driver.tensor_id(self.recorder, e): t for e, t in zip(eager_state, twin_state)}
        self.state_inputs = {id: t for id, t in self.state_inputs.items() if id in used}
        self.batch_ids = [driver.tensor_id(self.recorder, t) for t in batch]
        wraps = [wrap_spec(id) for id in grad_ids + [loss_id]]
        self.replay = Replay(self.recorder, records, fresh=grad_ids + [loss_id], scalars=self.places, wraps=wraps)

    def replay_step(self, i):
        torch.set_rng_state(self.seeds[i])
        values = numbers(self.lists[i])
        batch = self.data[i % len(self.data)]
        self.replay.run([values[p] for p in self.places], {**self.state_inputs, **dict(zip(self.batch_ids, batch))})
        for n, p in enumerate(self.parameters):
            driver.set_grad(p, self.replay.wrap(n))
        loss = self.replay.wrap(len(self.parameters))
        self.replay.end()
        return loss


def batches(n, *shape, classes=10):
    torch.manual_seed(5)
    return [(torch.randn(*shape), torch.randint(0, classes, shape[:1])) for _ in range(n)]


class Training(unittest.TestCase):
    def check(self, make_model, make_optimizer, loss, data, steps=5):
        s = Steps(make_model, make_optimizer, loss, data)
        s.prepare(steps)
        self.assertEqual([op["unsupported"] for op in s.lists[-1] if op["unsupported"]], [])
        for i in range(steps):
            value = s.replay_step(i)
            self.assertTrue(bitwise(value, s.losses[i]), f"loss of step {i}: {value} {s.losses[i]}")
            for p, expected in zip(s.parameters, s.grads[i]):
                self.assertTrue(bitwise(p.grad, expected), f"gradient in step {i}")
        self.assertTrue(torch.equal(torch.get_rng_state(), s.rng_after))
        for twin, eager in zip(state_tensors(s.twin, s.twin_optimizer), state_tensors(s.eager, s.eager_optimizer)):
            self.assertTrue(bitwise(twin, eager), "state after the last step")
        return s

    def test_mlp_sgd(self):
        self.check(mlp, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda m, x, y: F.cross_entropy(m(x), y), batches(5, 64, 64))

    def test_mlp_adam(self):
        self.check(mlp, lambda p: torch.optim.Adam(p, lr=1e-3), lambda m, x, y: F.cross_entropy(m(x), y), batches(5, 64, 64))

    def test_mlp_adam_foreach(self):
        self.check(mlp, lambda p: torch.optim.Adam(p, lr=1e-3, foreach=True), lambda m, x, y: F.cross_entropy(m(x), y), batches(5, 64, 64))

    def test_mlp_adamw_fused(self):
        self.check(mlp, lambda p: torch.optim.AdamW(p, lr=1e-3, fused=True), lambda m, x, y: F.cross_entropy(m(x), y), batches(5, 64, 64))

    def test_encoder_layer_with_dropout(self):
        def model():
            return nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)

        torch.manual_seed(3)
        data = [(torch.randn(4, 7, 32),) for _ in range(5)]
        self.check(model, lambda p: torch.optim.AdamW(p, lr=1e-3), lambda m, x: m(x).square().mean(), data)

    def test_batch_norm_conv(self):
        def model():
            return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.GELU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10))

        torch.manual_seed(3)
        data = [(torch.randn(6, 3, 8, 8), torch.randint(0, 10, (6,))) for _ in range(5)]
        self.check(model, lambda p: torch.optim.SGD(p, lr=0.05), lambda m, x, y: F.cross_entropy(m(x), y), data)

    def test_embedding_lstm(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding, self.lstm, self.head = nn.Embedding(20, 8), nn.LSTM(8, 12, batch_first=True), nn.Linear(12, 5)

            def forward(self, x):
                return self.head(self.lstm(self.embedding(x))[0][:, -1])

        torch.manual_seed(3)
        data = [(torch.randint(0, 20, (6, 9)), torch.randint(0, 5, (6,))) for _ in range(5)]
        self.check(Model, lambda p: torch.optim.Adam(p, lr=0.01), lambda m, x, y: F.cross_entropy(m(x), y), data)

    def test_time(self):
        s = self.check(mlp, lambda p: torch.optim.Adam(p, lr=1e-3), lambda m, x, y: F.cross_entropy(m(x), y), batches(5, 64, 64))
        values = numbers(s.lists[-1])
        inputs = list({**s.state_inputs, **dict(zip(s.batch_ids, s.data[0]))}.items())
        best = driver.time_program(s.replay.program, inputs, [values[p] for p in s.places], 300, list(enumerate(s.parameters)))[0]
        eager = 1e9
        for _ in range(300):
            start = time.perf_counter()
            s.step(s.data[0])
            eager = min(eager, (time.perf_counter() - start) * 1e6)
        print(f"\nMLP 64-128-128-10, batch 64, Adam: {len(s.lists[-1])} operations, eager {eager:.0f} us, replay {best:.0f} us")
        self.assertLess(best, eager)
