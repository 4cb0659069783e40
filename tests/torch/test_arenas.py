"""Programs that do not run at the same time share the memory of their intermediates."""

import gc
import unittest

from bridge_case import Replay, driver, record
import torch


def chain(size):
    """A program whose intermediates take a few times `size` floats, its input, and what eager gives."""
    x = torch.arange(float(size))
    recorder, records, ops, out = record(lambda: (torch.sin(x) * 2).sum().item())
    replay = Replay(recorder, records)
    replay.inputs = {driver.tensor_id(recorder, x): x}
    return replay, next(op["args"][0]["ids"][0] for op in ops if op["name"] == "aten::_local_scalar_dense"), out


def value(replay, id):
    replay.run()
    return driver.read_number(replay.program, id, True)


def addresses(replay):
    """Of what the program computes: inputs have none before a run."""
    return {address for address in driver.addresses(replay.program) if address}


class Arenas(unittest.TestCase):
    def setUp(self):
        gc.collect()

    def test_in_turn(self):
        small, small_id, small_out = chain(1 << 16)
        first = addresses(small)
        driver.end_run(small.program)
        again, again_id, again_out = chain(1 << 16)
        self.assertEqual(addresses(again), first)
        self.assertAlmostEqual(value(again, again_id), again_out, places=2)
        again.end()
        driver.end_run(again.program)
        driver.begin_run(small.program)
        self.assertEqual(addresses(small), first)
        self.assertAlmostEqual(value(small, small_id), small_out, places=2)
        small.end()

    def test_at_the_same_time(self):
        a, a_id, a_out = chain(1 << 16)
        b, b_id, b_out = chain(1 << 16)
        self.assertFalse(addresses(a) & addresses(b))
        a.run()
        b.run()
        self.assertAlmostEqual(driver.read_number(a.program, a_id, True), a_out, places=2)
        self.assertAlmostEqual(driver.read_number(b.program, b_id, True), b_out, places=2)
        a.end()
        b.end()

    def test_a_small_one_makes_way(self):
        small, small_id, small_out = chain(1 << 12)
        driver.end_run(small.program)
        large, large_id, large_out = chain(1 << 18)
        first = min(addresses(large))
        self.assertAlmostEqual(value(large, large_id) / large_out, 1, places=3)
        large.end()
        driver.end_run(large.program)
        driver.begin_run(small.program)
        self.assertEqual(min(addresses(small)), first)
        self.assertAlmostEqual(value(small, small_id), small_out, places=2)
        small.end()

    def test_ended_twice(self):
        a, _, _ = chain(1 << 10)
        driver.end_run(a.program)
        b, b_id, b_out = chain(1 << 10)
        driver.end_run(a.program)  # not b's
        c, _, _ = chain(1 << 10)
        self.assertFalse(addresses(b) & addresses(c))
        self.assertAlmostEqual(value(b, b_id), b_out, places=2)
        b.end()


if __name__ == "__main__":
    unittest.main()
