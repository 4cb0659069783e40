"""Convolutions whose weights stay in oneDNN's layout from run to run: what comes is eager's, also when the weight is written or is another tensor."""

import unittest

from bridge_case import Replay, driver, record, wrap_spec
import numpy as np
import torch
import torch.nn.functional as F


class PackedConvolution(unittest.TestCase):
    def check(self, weight_shape, input_shape, bias=True, **options):
        torch.manual_seed(0)
        x, w = torch.randn(input_shape), torch.randn(weight_shape)
        b = torch.randn(weight_shape[0]) if bias else None
        recorder, records, _, out = record(lambda: F.conv2d(x, w, b, **options))
        place = {name: driver.tensor_id(recorder, t) for name, t in (("x", x), ("w", w), ("b", b)) if t is not None}
        id = driver.tensor_id(recorder, out)
        replay = Replay(recorder, records, fresh=[id], wraps=[wrap_spec(id)])

        def compare(weight):
            bound = {place["x"]: x, place["w"]: weight, **({place["b"]: b} if bias else {})}
            with torch.no_grad():
                x.normal_()
            replay.run(inputs=bound)
            got = replay.wrap(0)
            wanted = F.conv2d(x, weight, b, **options)
            self.assertEqual(got.stride(), wanted.stride())
            torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4 * float(wanted.abs().max()))
            replay.end()

        for _ in range(4):
            compare(w)
        # Written: packed no more. Only the first write shows in the version counter.
        for write in (lambda: w.mul_(2), lambda: w.data.mul_(0.7), lambda: np.negative(w.numpy(), out=w.numpy())):
            write()
            for _ in range(4):
                compare(w)
        other = torch.randn(weight_shape)
        for _ in range(3):
            compare(other)
        compare(w)

    def test_more_weights_than_results(self):
        self.check((64, 32, 3, 3), (1, 32, 5, 5), padding=1)

    def test_strides_groups_and_dilation(self):
        self.check((48, 8, 3, 3), (2, 32, 6, 6), stride=2, groups=4, padding=2, dilation=2)

    def test_without_bias(self):
        self.check((40, 24, 5, 5), (1, 24, 7, 7), bias=False)

    def test_channels_last(self):
        torch.manual_seed(1)
        x = torch.randn(1, 32, 4, 4).to(memory_format=torch.channels_last)
        w = torch.randn(64, 32, 3, 3)
        recorder, records, _, out = record(lambda: F.conv2d(x, w, padding=1))
        id = driver.tensor_id(recorder, out)
        replay = Replay(recorder, records, fresh=[id], wraps=[wrap_spec(id)])
        for _ in range(3):
            replay.run(inputs={driver.tensor_id(recorder, x): x, driver.tensor_id(recorder, w): w})
            got = replay.wrap(0)
            self.assertEqual(got.stride(), out.stride())
            torch.testing.assert_close(got, out, rtol=1e-4, atol=1e-3)
            replay.end()

    def test_trained_behind_the_counter(self):
        """A weight that each run finds changed, and one that is then left alone."""
        torch.manual_seed(2)
        x, w = torch.randn(1, 8, 4, 4), torch.randn(32, 8, 3, 3)
        recorder, records, _, out = record(lambda: F.conv2d(x, w, padding=1))
        id = driver.tensor_id(recorder, out)
        replay = Replay(recorder, records, fresh=[id], wraps=[wrap_spec(id)])
        for k in range(24):
            if k < 16:
                w.data.mul_(0.9)
            replay.run(inputs={driver.tensor_id(recorder, x): x, driver.tensor_id(recorder, w): w})
            torch.testing.assert_close(replay.wrap(0), F.conv2d(x, w, padding=1), rtol=1e-4, atol=1e-3)
            replay.end()

    def test_more_results_than_weights(self):
        self.check((8, 4, 3, 3), (1, 4, 30, 30), padding=1)


if __name__ == "__main__":
    unittest.main()
