"""Traces on the real torch bridge ($DYNVM_TEST_BRIDGE): the same values as eager, with and without the passes."""

import os
import unittest

BRIDGE = os.environ.get("DYNVM_TEST_BRIDGE")
if not BRIDGE:
    raise unittest.SkipTest("the torch bridge is not built")
import torch  # noqa: E402

from trace_case import TraceCase, native  # noqa: E402

torch.set_num_threads(1)


class Torch(TraceCase):
    def both(self, body, namespace=None):
        for passes in (False, True):
            yield self.compile(body, namespace, torch=BRIDGE, passes=passes)

    def test_elementwise_and_mm(self):
        body = """
%0:o = slot #0
STATE !snap0
%2:t = unbox_tensor %0 !snap0 -> f32[8,4]{4,1} s0
%3:o = slot #1
%4:f = unbox_float %3 !snap0
%5 = aten "aten::mul.Tensor" (%2, $f64 %4) -> (f32[8,4]{4,1} s1) !snap0
%6:t = result %5 #0 -> f32[8,4]{4,1} s1
%7 = aten "aten::relu" (%6) -> (f32[8,4]{4,1} s2) !snap0
%8:t = result %7 #0 -> f32[8,4]{4,1} s2
%9 = aten "aten::t" (%2) -> (f32[4,8]{1,4} s0 alias 0) !snap0
%10:t = result %9 #0 -> f32[4,8]{1,4} s0
%11 = aten "aten::mm" (%8, %10) -> (f32[8,8]{8,1} s3) !snap0
%12:t = result %11 #0 -> f32[8,8]{8,1} s3
%13:o = wrap %12
loop !snap1
snap0: root unit 0 [=, =, =]
snap1: root unit 0 [=, =, %13]
"""
        for trace in self.both(body.replace("STATE", native.torch_state(BRIDGE))):
            x = torch.randn(8, 4)
            for number in (1.5, -2.0):
                slots = [x, number, None]
                self.assertEqual(trace.run(slots, breaker=True)[0], "break")
                self.assertTrue(torch.equal(slots[2], torch.relu(x * number) @ x.t()))
                self.assertFalse(slots[2].requires_grad)
            kept = slots[2].clone()
            trace.run([torch.ones(8, 4), 1.0, None], breaker=True)
            self.assertTrue(torch.equal(slots[2], kept), "an escaped result was written again")
            self.check_leaks(lambda: trace.run([x, 1.0, None], breaker=True))
            self.assertEqual(trace.run([torch.ones(8, 5), 1.0, None])[0], "guard")
            with torch.no_grad():
                self.assertEqual(trace.run([x, 1.0, None])[0], "guard")

    def test_in_place_and_scalar(self):
        body = """
%0:o = slot #0
%1:t = unbox_tensor %0 !snap0 -> f32[3]{1} s0
%2:f = const_float 1.0
%3 = aten "aten::add_.Scalar" (%1, $%2, 1) -> (f32[3]{1} s0 alias 0) mutates [0] !snap0
%4:t = result %3 #0 -> f32[3]{1} s0
bump_version %4 #1
%6 = aten "aten::sum" (%4, none) -> (f32[]{} s1) !snap0
%7:t = result %6 #0 -> f32[]{} s1
%8:f = read_scalar %7 !snap1
%9:o = box_float %8
leave !snap2
snap0: root unit 0 [=]
snap1: root unit 1 [=]
snap2: root unit 2 [%9]
"""
        for trace in self.both(body):
            x = torch.tensor([1.0, 2.0, 3.0])
            version = x._version
            self.assertEqual(self.result_of(trace, [x]), 9.0)
            self.assertEqual(self.result_of(trace, [x]), 12.0)
            self.assertEqual((x.tolist(), x._version), ([3.0, 4.0, 5.0], version + 2))

    def test_error(self):
        body = """
%0:o = slot #0
%1:o = slot #1
%2:t = unbox_tensor %0 !snap0 -> f32[5,2]{2,1} s0
%3:t = unbox_tensor %1 !snap0 -> i64[2]{1} s1
%4 = aten "aten::embedding" (%2, %3, -1, false, false) -> (f32[2,2]{2,1} s2) !snap0
%5:t = result %4 #0 -> f32[2,2]{2,1} s2
%6:o = wrap %5
leave !snap1
snap0: root unit 0 [=, =]
snap1: root unit 2 [%6]
"""
        for trace in self.both(body):
            weight = torch.randn(5, 2)
            good, bad = torch.tensor([1, 4]), torch.tensor([1, 9])
            self.assertTrue(torch.equal(self.result_of(trace, [weight, good]), weight[good]))
            with self.assertRaises(IndexError) as mine:
                self.result_of(trace, [weight, bad])
            with self.assertRaises(IndexError) as eager:
                torch.nn.functional.embedding(bad, weight)
            self.assertEqual(str(mine.exception), str(eager.exception))


if __name__ == "__main__":
    unittest.main()
