"""Tensors whose geometry only a run tells (TensorMeta::open): what operations on them give must be eager's, whatever sizes come."""

import unittest

from bridge_case import Replay, bitwise, driver, record, wrap_spec
import torch

LAYOUT = -1


def program(function, inputs, open, results=1):
    """(replay, ids of the inputs, ids of the results) of what function(*inputs) runs; open(ids of inputs, ops, ids of results): open dims."""
    recorder = driver.recorder()
    ids = [driver.tensor_id(recorder, tensor) for tensor in inputs]
    _, records, ops, made = record(lambda: function(*inputs), recorder)
    made = made if isinstance(made, tuple) else (made,)
    made_ids = [driver.tensor_id(recorder, tensor) for tensor in made]
    replay = Replay(recorder, records, wraps=[wrap_spec(id) for id in made_ids], open=open(ids, ops, made_ids))
    return replay, ids, made_ids


class Open(unittest.TestCase):
    def compare(self, replay, ids, function, inputs):
        """One iteration with these inputs: each result is eager's."""
        replay.run(inputs=dict(zip(ids, inputs)))
        expected = function(*inputs)
        expected = expected if isinstance(expected, tuple) else (expected,)
        got = [replay.wrap(number) for number in range(len(expected))]
        replay.end()
        for one, other in zip(expected, got):
            self.assertTrue(bitwise(one, other), (one.shape, other.shape))
        return got

    def test_what_a_mask_selects(self):
        def function(x, mask):
            y = x[mask]
            return y, torch.relu(y) + 1, y.sum()

        torch.manual_seed(0)
        x, mask = torch.randn(20, 3), torch.arange(20) % 3 > 0
        replay, ids, made = program(function, (x, mask), lambda ids, ops, made: [(id, 0) for op in ops for id in op["results"] if id != made[2]])
        kept = []
        for n in (13, 2, 20, 7):
            data, selected = torch.randn(20, 3), torch.arange(20) < n
            replay.run(inputs={ids[0]: data, ids[1]: selected})
            self.assertEqual([driver.tensor_size(replay.program, made[0], dim) for dim in (0, 1, -1)], [n, 3, 3 * n])
            replay.end()
            kept.append((self.compare(replay, ids, function, (data, selected)), function(data, selected)))
        for got, expected in kept:  # what has escaped stays what it was
            self.assertTrue(all(map(bitwise, got, expected)))

    def test_left_where_torch_has_cases_of_its_own(self):
        replay, ids, _ = program(lambda x: x[x > 0], (torch.tensor([1.0, 2, 3, -1, -2]),), lambda ids, ops, made: [(made[0], 0)])
        for values in ([1.0, -1, -1, -1, -1], [-1.0] * 5):
            with self.assertRaisesRegex(RuntimeError, "would be left"):
                replay.run(inputs={ids[0]: torch.tensor(values)})
            replay.end()
        self.compare(replay, ids, lambda x: x[x > 0], (torch.tensor([1.0, -1, 1, -1, -1]),))

    def test_sizes_that_are_not_open_are_left_too(self):
        replay, ids, _ = program(lambda x: x[x > 0], (torch.tensor([1.0, 2, 3, -1, -2]),), lambda ids, ops, made: [])
        self.compare(replay, ids, lambda x: x[x > 0], (torch.tensor([1.0, -2, 3, -1, 2]),))
        with self.assertRaisesRegex(RuntimeError, "would be left"):
            replay.run(inputs={ids[0]: torch.tensor([1.0, 2, -3, -1, -2])})
        replay.end()

    def test_views_and_writes(self):
        def function(x, mask):
            y = x[mask]
            y.mul_(2)
            column = y[:, 1]
            column += 1
            return y, column, y.t(), y[1:], y[0]

        torch.manual_seed(0)
        every = lambda ids, ops, made: [(id, dim) for op in ops for id in op["results"] for dim in ((1,) if id == made[2] else (0,) if id != made[4] else (LAYOUT,))]
        replay, ids, _ = program(function, (torch.randn(9, 4), torch.arange(9) > 3), every)
        for n in (5, 9, 3):
            y, column, turned, rest, first = self.compare(replay, ids, function, (torch.randn(9, 4), torch.arange(9) < n))
            for view in (column, turned, rest, first):
                self.assertIs(view._base, y)
            column.zero_()
            self.assertEqual((turned[1].sum().item(), first[1].item(), y._version), (0, 0, column._version))

    def test_inputs(self):
        function = lambda x, y: ((x + y).softmax(1), (x @ y.t()).sum(0), x.transpose(0, 1))
        shapes = lambda ids, ops, made: [(id, 1 if id == made[2] else 0) for id in [*ids, *[id for op in ops for id in op["results"]]]] + \
            [(id, 1) for op in ops if op["name"] == "aten::mm" for id in op["results"]] + [(id, 1) for op in ops if op["name"] == "aten::t" for id in op["results"]]
        replay, ids, _ = program(function, (torch.randn(5, 3), torch.randn(5, 3)), shapes)
        for n in (5, 8, 2, 6):
            self.compare(replay, ids, function, (torch.randn(n, 3), torch.randn(3, n).t()))
        for bad in (torch.randn(1, 3), torch.randn(5, 4), torch.randn(5), torch.randn(5, 3).double()):
            with self.assertRaises(ValueError):
                replay.bind({ids[0]: bad})
            replay.end()


if __name__ == "__main__":
    unittest.main()
