"""What a script gets: views, freed and live graphs, version counters, errors; and what is refused as an input."""

import unittest

from bridge_case import Replay, bitwise, driver, names, record, wrap_spec
import torch
import torch.nn as nn
import torch.nn.functional as F


def forward_calls(ops):
    return [i for i, op in enumerate(ops) if not op["in_backward"]]


class Plain(unittest.TestCase):
    def test_fresh_result(self):
        x = torch.randn(3, 4)
        recorder, records, ops, y = record(lambda: x.t() * 2)
        replay = Replay(recorder, records, [ops[-1]["results"][0]], wraps=[wrap_spec(ops[-1]["results"][0])])
        results = []
        for i in range(3):
            other = torch.randn(3, 4)
            replay.run(inputs={ops[0]["args"][0]["ids"][0]: other})
            z = replay.wrap(0)
            self.assertIs(replay.wrap(0), z)
            replay.end()
            self.assertTrue(bitwise(z, other.t() * 2))
            self.assertEqual((z._version, z.is_leaf, z.grad_fn, z._base), (0, True, None, None))
            results.append((z, other))
        for z, other in results:  # an iteration does not write what an earlier one gave away
            self.assertTrue(bitwise(z, other.t() * 2))
            z.resize_(20)

    def test_view_of_an_input(self):
        x = torch.arange(12.0).view(3, 4).clone()
        recorder, records, ops, v = record(lambda: x[1:].t())
        id = driver.tensor_id(recorder, v)
        replay = Replay(recorder, records, wraps=[wrap_spec(id)])
        replay.run(inputs={ops[0]["args"][0]["ids"][0]: x})
        w = replay.wrap(0)
        replay.end()
        self.assertIs(w._base, v._base)
        self.assertIs(w._base, x)
        self.assertTrue(bitwise(w, v))
        w.add_(1)
        self.assertEqual(x._version, 1)
        self.assertEqual(x[1, 0].item(), 5)

    def test_view_of_a_fresh_result_shares_base_and_version(self):
        x = torch.randn(3, 4)

        def step():
            y = x * 2
            return y, y.view(12)

        recorder, records, ops, (y, v) = record(step)
        ids = [driver.tensor_id(recorder, t) for t in (y, v)]
        for order in ([0, 1], [1, 0]):
            replay = Replay(recorder, records, ids, wraps=[wrap_spec(id) for id in ids])
            replay.run(inputs={driver.tensor_id(recorder, x): x})
            got = {n: replay.wrap(n) for n in order}
            replay.end()
            self.assertTrue(bitwise(got[0], y) and bitwise(got[1], v))
            self.assertIs(got[1]._base, got[0])
            got[1].mul_(3)
            self.assertEqual(got[0]._version, 1)
            self.assertTrue(torch.equal(got[0].view(12), got[1]))

    def test_detach_is_another_object_on_the_same_memory(self):
        x = torch.randn(3)

        def step():
            y = x * 2
            return y, y.detach()

        recorder, records, ops, (y, d) = record(step)
        id = driver.tensor_id(recorder, y)
        replay = Replay(recorder, records, [id], wraps=[wrap_spec(id), wrap_spec(id)])
        replay.run(inputs={driver.tensor_id(recorder, x): x})
        a, b = replay.wrap(0), replay.wrap(1)
        replay.end()
        self.assertIsNot(a, b)
        self.assertEqual(a.data_ptr(), b.data_ptr())
        b.add_(1)
        self.assertEqual(a._version, 1)

    def test_versions(self):
        x, y = torch.randn(3), torch.randn(3)

        def step():
            x.add_(1)
            z = y * 2
            z.mul_(2).add_(1)
            return z

        recorder, records, ops, z = record(step)
        id_x, id_z = driver.tensor_id(recorder, x), driver.tensor_id(recorder, z)
        replay = Replay(recorder, records, [id_z], wraps=[wrap_spec(id_z)])
        before = x._version
        for _ in range(2):
            replay.run(inputs={id_x: x, driver.tensor_id(recorder, y): y})
            driver.bump(replay.program, id_x, 1)
            driver.bump(replay.program, id_z, 2)
            w = replay.wrap(0)
            driver.bump(replay.program, id_z, 1)
            replay.end()
            self.assertEqual((w._version, z._version), (3, 2))
        self.assertEqual(x._version, before + 2)

    def test_leaf_that_requires_grad(self):
        recorder, records, ops, t = record(lambda: torch.zeros(3) + 1)
        id = driver.tensor_id(recorder, t)
        replay = Replay(recorder, records, [id], wraps=[wrap_spec(id, requires_grad=True)])
        replay.run()
        w = replay.wrap(0)
        replay.end()
        self.assertTrue(w.requires_grad and w.is_leaf)
        (w * 2).sum().backward()
        self.assertEqual(w.grad.tolist(), [2, 2, 2])

    def test_arena_value_can_escape_by_copy(self):
        x = torch.randn(5)
        recorder, records, ops, y = record(lambda: (x * 2) + 1)
        first = ops[0]["results"][0]
        replay = Replay(recorder, records, [], wraps=[wrap_spec(first)])
        replay.run(inputs={driver.tensor_id(recorder, x): x})
        w = replay.wrap(0)
        replay.end()
        replay.run(inputs={driver.tensor_id(recorder, x): torch.zeros(5)})
        replay.end()
        self.assertTrue(bitwise(w, x * 2))

    def test_constant_data(self):
        recorder, records, ops, t = record(lambda: (torch.tensor([1.0, 2.0]), torch.tensor(3)))
        ids = [driver.tensor_id(recorder, x) for x in t]
        t[0].zero_()
        replay = Replay(recorder, records, ids, wraps=[wrap_spec(id) for id in ids])
        replay.run()
        a, b = replay.wrap(0), replay.wrap(1)
        replay.end()
        self.assertEqual((a.tolist(), b.item()), ([1.0, 2.0], 3))
        scalar = Replay(recorder, records, ids, scalars=[(1, 1, -1)], wraps=[wrap_spec(id) for id in ids])
        scalar.run([8])
        self.assertEqual(scalar.wrap(1).item(), 8)
        scalar.end()

    def test_scalars_of_every_kind(self):
        x = torch.arange(6.0)

        def step():
            a = x * 2.5                     # wrapped number
            a = torch.add(a, x, alpha=3)    # int in a Scalar parameter
            a = a.clamp(0.5)                # Scalar?
            a = F.elu(a, 1.5)               # Scalar
            torch._foreach_mul_([a], [4.0])  # Scalar[]
            return a

        recorder, records, ops, y = record(step)
        id = driver.tensor_id(recorder, y)
        places = [(0, 1, -1), (1, 2, -1), (2, 1, -1), (3, 1, -1), (4, 1, 0)]
        replay = Replay(recorder, records, [id], scalars=places, wraps=[wrap_spec(id)])
        for values in ([2.5, 3, 0.5, 1.5, 4.0], [-1.0, 2, -0.25, 3.0, 0.5]):
            replay.run(values, {driver.tensor_id(recorder, x): x})
            w = replay.wrap(0)
            replay.end()
            expected = F.elu(torch.add(x * values[0], x, alpha=values[1]).clamp(values[2]), values[3]) * values[4]
            self.assertTrue(bitwise(w, expected))

    def test_view_with_a_run_time_offset(self):
        data = torch.arange(40.0).view(10, 4).clone()

        def step():
            rows = data[2:5]
            first = rows[1]
            return rows, first, first + 1

        recorder, records, ops, results = record(step)
        ids = [driver.tensor_id(recorder, r) for r in results]
        slice_op = names(ops).index("aten::slice.Tensor")
        replay = Replay(recorder, records, ids[2:], scalars=[(slice_op, 2, -1), (slice_op, 3, -1)], wraps=[wrap_spec(id) for id in ids])
        for start in (3, 0, 7):
            replay.run([start, start + 3], {driver.tensor_id(recorder, data): data})
            driver.bump(replay.program, ids[1], 1)
            rows, first, plus = (replay.wrap(n) for n in range(3))
            replay.end()
            self.assertTrue(bitwise(rows, data[start:start + 3]) and bitwise(first, data[start + 1]) and bitwise(plus, data[start + 1] + 1))
            self.assertIs(first._base, data)
            self.assertEqual(rows.storage_offset(), start * 4)
        self.assertEqual(data._version, 3)
        with self.assertRaisesRegex(RuntimeError, "another geometry than recorded"):
            replay.run([1, 3], {driver.tensor_id(recorder, data): data})

    def test_inference_mode(self):
        with torch.inference_mode():
            x = torch.randn(3)
            recorder, records, ops, y = record(lambda: (x * 2).view(3, 1))
            id = driver.tensor_id(recorder, y)
            replay = Replay(recorder, records, [id], wraps=[wrap_spec(id)])
            replay.run(inputs={driver.tensor_id(recorder, x): x})
            w = replay.wrap(0)
            replay.end()
            self.assertTrue(w.is_inference() and bitwise(w, y))
        # What a wrap makes is decided by what was recorded, not by the mode that it is made in.
        replay.run(inputs={driver.tensor_id(recorder, x): x})
        w = replay.wrap(0)
        replay.end()
        self.assertTrue(w.is_inference() and bitwise(w, y))
        self.assertEqual(driver.bind(replay.program, driver.tensor_id(recorder, x), torch.randn(3)), 1)
        self.assertEqual(driver.last_refusal(), "another kind of tensor")

    def test_views_of_both_kinds(self):
        x = torch.randn(3)
        with torch.inference_mode():
            recorder, records, ops, (y, z) = record(lambda: (x.view(3, 1), x * 2))
            ids = [driver.tensor_id(recorder, y), driver.tensor_id(recorder, z)]
            replay = Replay(recorder, records, ids[1:], wraps=[wrap_spec(id) for id in ids])
        replay.run(inputs={driver.tensor_id(recorder, x): x})
        view, made = replay.wrap(0), replay.wrap(1)
        replay.end()
        self.assertTrue(not view.is_inference() and view._base is x and made.is_inference() and bitwise(made, z))
        with self.assertRaisesRegex(RuntimeError, "inference mode"):
            view.requires_grad_(False).add_(torch.ones(3, 1, requires_grad=True))

    def test_leaf_made_by_the_trace(self):
        recorder, records, ops, y = record(lambda: torch.ones(3).requires_grad_() * 2)
        id = driver.tensor_id(recorder, y)
        mul = names(ops).index("aten::mul.Tensor")
        replay = Replay(recorder, records, [id], wraps=[wrap_spec(id, True, False, "MulBackward0", forward=[mul])])
        replay.run(inputs={})
        w = replay.wrap(0)
        replay.end()
        self.assertEqual(w.grad_fn.next_functions[0][0].name(), "torch::autograd::AccumulateGrad")

    def test_read_number(self):
        x = torch.randn(4)
        recorder, records, ops, value = record(lambda: (x.sum().item(), x.argmax().item(), (x > 0).any().item()))
        ids = [op["args"][0]["ids"][0] for op in ops if op["name"] == "aten::_local_scalar_dense"]
        replay = Replay(recorder, records)
        y = torch.randn(4)
        replay.run(inputs={driver.tensor_id(recorder, x): y})
        got = [driver.read_number(replay.program, id, f) for id, f in zip(ids, (True, False, False))]
        self.assertEqual(got, [y.sum().item(), y.argmax().item(), int((y > 0).any().item())])
        replay.end()

    def test_sessions_are_independent(self):
        x = torch.randn(3)
        recorder, records, ops, y = record(lambda: x * 2 + 1)
        id = driver.tensor_id(recorder, y)
        replay = Replay(recorder, records, [id], wraps=[wrap_spec(id)])
        for i in range(4):
            driver.change_session(replay.program)
            replay.run(inputs={driver.tensor_id(recorder, x): x + i})
            self.assertTrue(bitwise(replay.wrap(0), (x + i) * 2 + 1))
            replay.end()


class FreedGraph(unittest.TestCase):
    def setUp(self):
        self.w = torch.randn(3, requires_grad=True)

        def step():
            loss = (self.w * self.w).sum()
            loss.backward()
            return loss

        self.recorder, records, ops, self.loss = record(step)
        id = driver.tensor_id(self.recorder, self.loss)
        self.replay = Replay(self.recorder, records, [id], wraps=[wrap_spec(id, True, False, "SumBackward0", freed=True), wrap_spec(id)])
        self.inputs = {driver.tensor_id(self.recorder, self.w): self.w}

    def test_raises_as_eager(self):
        self.replay.run(inputs=self.inputs)
        loss = self.replay.wrap(0)
        self.replay.end()
        self.assertTrue(bitwise(loss, self.loss))
        self.assertTrue(loss.requires_grad and not loss.is_leaf)
        self.assertEqual(loss.grad_fn.name(), "SumBackward0")
        self.assertEqual(repr(loss), repr(self.loss))
        errors = []
        for t in (loss, self.loss, loss * 2, self.loss * 2):
            with self.assertRaises(RuntimeError) as caught:
                t.backward()
            errors.append(str(caught.exception))
        self.assertEqual(len(set(errors)), 1)

    def test_detached_twin(self):
        for first, second in ((0, 1), (1, 0)):
            self.replay.run(inputs=self.inputs)
            t = {n: self.replay.wrap(n) for n in (first, second)}
            self.replay.end()
            self.assertTrue(t[0].requires_grad)
            self.assertFalse(t[1].requires_grad)
            self.assertEqual(t[0].data_ptr(), t[1].data_ptr())


class LiveGraph(unittest.TestCase):
    def check(self, model, function, parameters, data, wraps_of):
        """Records function(*data); replays; several wraps of one graph; gradients must be those of eager."""
        state = {k: v.clone() for k, v in (model.state_dict() if model else {}).items()}
        seed = torch.get_rng_state()
        recorder, records, ops, results = record(lambda: function(*data))
        after = {k: v.clone() for k, v in (model.state_dict() if model else {}).items()}
        rng = torch.get_rng_state()
        torch.stack([r.square().mean() for r in results]).sum().backward()
        expected = [p.grad.clone() for p in parameters]
        for p in parameters:
            p.grad = None
        ids = [driver.tensor_id(recorder, r) for r in results]
        forward = forward_calls(ops)
        wraps = [wrap_spec(id, True, False, r.grad_fn.name(), driver.describe(r)["output_nr"], forward=forward) for id, r in zip(ids, results)]
        inputs = {driver.tensor_id(recorder, t): t for t in list(parameters) + list(data) + (list(model.buffers()) if model else [])}
        replay = Replay(recorder, records, ids, wraps=wraps)
        used = {id for op in ops for arg in op["args"] for id in arg["ids"]}
        inputs = {id: t for id, t in inputs.items() if id in used}
        for _ in range(2):
            if model:
                model.load_state_dict(state)
            torch.set_rng_state(seed)
            replay.run(inputs=inputs)
            got = [replay.wrap(n) for n in range(len(ids))]
            replay.end()
            self.assertTrue(torch.equal(torch.get_rng_state(), rng))
            if model:
                for k, v in model.state_dict().items():
                    self.assertTrue(torch.equal(v, after[k]), k)
            for g, r in zip(got, results):
                self.assertTrue(bitwise(g, r))
                self.assertEqual((g.grad_fn.name(), g.output_nr), (r.grad_fn.name(), r.output_nr))
            torch.stack([g.square().mean() for g in got]).sum().backward()
            for p, e in zip(parameters, expected):
                self.assertTrue(bitwise(p.grad, e))
                p.grad = None

    def test_linear(self):
        m = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
        self.check(m, lambda x: [m(x)], list(m.parameters()), [torch.randn(6, 4)], 1)

    def test_two_results_share_a_graph(self):
        w = torch.randn(4, 4, requires_grad=True)

        def function(x):
            h = (x @ w).tanh()
            return [h.sum(1), h * 2]

        self.check(None, function, [w], [torch.randn(3, 4)], 2)

    def test_detach_inside(self):
        w = torch.randn(4, requires_grad=True)

        def function(x):
            h = x * w
            return [(h * h.detach()).sum()]

        self.check(None, function, [w], [torch.randn(4)], 1)

    def test_dropout(self):
        m = nn.Sequential(nn.Linear(4, 50), nn.Dropout(0.4), nn.Linear(50, 3))
        self.check(m, lambda x: [m(x)], list(m.parameters()), [torch.randn(6, 4)], 1)

    def test_dropout_in_place(self):
        m = nn.Sequential(nn.Linear(4, 50), nn.Dropout(0.4, inplace=True), nn.ReLU(inplace=True), nn.Linear(50, 3))
        self.check(m, lambda x: [m(x)], list(m.parameters()), [torch.randn(6, 4)], 1)

    def test_batch_norm_statistics_move_once(self):
        m = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))
        self.check(m, lambda x: [m(x)], list(m.parameters()), [torch.randn(6, 4)], 1)

    def test_inputs_written_before_they_are_read(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.randn(4))
                self.register_buffer("steps", torch.zeros(2, 4))

            def forward(self, x):
                self.steps[0].add_(1)
                y = x * self.w * self.steps[0].clone()
                self.steps.mul_(2)
                return y * self.steps[0].clone()

        m = Model()
        self.check(m, lambda x: [m(x)], list(m.parameters()), [torch.randn(6, 4)], 1)

    def test_attention(self):
        m = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.2, batch_first=True)
        self.check(m, lambda x: [m(x)], list(m.parameters()), [torch.randn(2, 5, 16)], 1)

    def test_views_and_no_grad_parts(self):
        w = torch.randn(4, 6, requires_grad=True)

        def function(x):
            with torch.no_grad():
                scale = (w * 2).abs().max()
            a, b = (x @ w / scale).split(3, dim=1)
            y = a.t().reshape(-1) * b.reshape(-1)
            y[0] = 0.5
            return [y, b]

        self.check(None, function, [w], [torch.randn(3, 4)], 1)

    def test_use_after_the_iteration(self):
        w = torch.randn(4, requires_grad=True)
        x = torch.randn(4)
        recorder, records, ops, y = record(lambda: (x * w).exp())
        id = driver.tensor_id(recorder, y)
        replay = Replay(recorder, records, [id], wraps=[wrap_spec(id, True, False, "ExpBackward0", forward=forward_calls(ops))])
        inputs = {driver.tensor_id(recorder, x): x, driver.tensor_id(recorder, w): w}
        replay.run(inputs=inputs)
        y = replay.wrap(0)
        replay.end()
        replay.run(inputs=inputs)
        replay.end()
        y.sum().backward(retain_graph=True)
        y.sum().backward()
        self.assertTrue(torch.allclose(w.grad, 2 * x * (x * w).exp()))
        with self.assertRaises(RuntimeError):
            y.sum().backward()

    def test_another_graph_than_eager_is_refused(self):
        w = torch.randn(4, requires_grad=True)
        recorder, records, ops, y = record(lambda: w.exp())
        id = driver.tensor_id(recorder, y)
        replay = Replay(recorder, records, [id], wraps=[wrap_spec(id, True, False, "MyFunctionBackward", forward=forward_calls(ops))])
        replay.run(inputs={driver.tensor_id(recorder, w): w})
        with self.assertRaisesRegex(RuntimeError, "ends in ExpBackward0, not in MyFunctionBackward"):
            replay.wrap(0)
        replay.end()
        with self.assertRaisesRegex(ValueError, "needs the calls that rebuild it"):
            Replay(recorder, records, [id], wraps=[wrap_spec(id, True, False, "ExpBackward0")])


class Refusals(unittest.TestCase):
    def setUp(self):
        self.a, self.b = torch.randn(4, 4), torch.randn(4, 4)
        self.recorder, self.records, ops, y = record(lambda: self.a + self.b)
        self.ids = ops[0]["args"][0]["ids"][0], ops[0]["args"][1]["ids"][0]
        self.replay = Replay(self.recorder, self.records)

    def test_inputs(self):
        class Sub(torch.Tensor):
            pass

        hooked = torch.randn(4, 4, requires_grad=True)
        cases = {
            "other sizes": torch.randn(4, 5),
            "other strides": torch.randn(4, 4).t(),
            "another dtype": torch.randn(4, 4, dtype=torch.float64),
            "another requires_grad": hooked,
            "another Python type": torch.randn(4, 4).as_subclass(Sub),
            "another kind of tensor": torch.eye(4).to_sparse(),
            "copy-on-write storage": torch.randn(4, 4)._lazy_clone(),
        }
        for reason, tensor in cases.items():
            with self.subTest(reason):
                self.assertEqual(driver.bind(self.replay.program, self.ids[0], tensor), 1)
                self.assertEqual(driver.last_refusal(), reason)
                driver.end_iteration(self.replay.program)
        self.assertEqual(driver.bind(self.replay.program, self.ids[0], 3), 1)
        self.assertEqual(driver.bind(self.replay.program, self.ids[0], nn.Parameter(torch.randn(4, 4), requires_grad=False)), 1)
        self.assertEqual(driver.bind(self.replay.program, self.ids[0], torch.randn(6, 4)[1:5]), 0)
        driver.end_iteration(self.replay.program)

    def test_hooks(self):
        w = torch.randn(4, requires_grad=True)
        recorder, records, ops, _ = record(lambda: w * 2)
        replay = Replay(recorder, records)
        w.register_hook(lambda g: g)
        self.assertEqual(driver.bind(replay.program, 0, w), 1)
        self.assertEqual(driver.last_refusal(), "tensor hooks")

    def test_new_overlap(self):
        self.assertEqual(driver.bind(self.replay.program, self.ids[0], self.a), 0)
        self.assertEqual(driver.bind(self.replay.program, self.ids[1], self.a), 1)
        self.assertEqual(driver.last_refusal(), "inputs that did not share memory now do")
        driver.end_iteration(self.replay.program)
        self.assertEqual(driver.bind(self.replay.program, self.ids[1], self.a), 0)
        driver.end_iteration(self.replay.program)

    def test_errors_are_eagers(self):
        weight = torch.randn(5, 3)
        index = torch.tensor([0, 1])
        recorder, records, ops, _ = record(lambda: (F.embedding(index, weight), torch.linalg.cholesky(torch.eye(3) * 2)))
        replay = Replay(recorder, records)
        bad = torch.tensor([0, 9])
        with self.assertRaises(IndexError) as eager:
            F.embedding(bad, weight)
        with self.assertRaises(IndexError) as mine:
            replay.run(inputs={driver.tensor_id(recorder, index): bad, driver.tensor_id(recorder, weight): weight})
        self.assertEqual(str(mine.exception), str(eager.exception))
        replay.end()

        matrix = torch.eye(3)
        recorder, records, ops, _ = record(lambda: torch.linalg.cholesky(matrix))
        replay = Replay(recorder, records)
        with self.assertRaises(torch.linalg.LinAlgError) as eager:
            torch.linalg.cholesky(-matrix)
        with self.assertRaises(torch.linalg.LinAlgError) as mine:
            replay.run(inputs={driver.tensor_id(recorder, matrix): -matrix})
        self.assertEqual(str(mine.exception), str(eager.exception))

    def test_warnings_are_pythons(self):
        x = torch.randn(3)
        recorder, records, ops, _ = record(lambda: torch.add(x, 1, out=torch.empty(3)))
        Replay(recorder, records).run(inputs={driver.tensor_id(recorder, x): x})

    def test_modes(self):
        self.assertEqual(driver.check_state(self.replay.program), 0)
        with torch.no_grad():
            self.assertEqual(driver.check_state(self.replay.program), 1)
        with torch.autocast("cpu"):
            self.assertEqual(driver.check_state(self.replay.program), 1)


if __name__ == "__main__":
    unittest.main()
