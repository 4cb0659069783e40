"""The tensor part of traces on a bridge without torch: who is called, when, with what."""

import struct
import unittest

from trace_case import TraceCase

INPUT, ARENA, FRESH, RESULT = range(4)


def floats(*values):
    return bytearray(struct.pack(f"{len(values)}f", *values))


class Tensors(TraceCase):
    def test_calls_in_order_with_their_numbers(self):
        log = []
        trace = self.compile("""
%0:o = slot #0
guard_torch_state {grad : f32 0 0} !snap0
%2:t = unbox_tensor %0 !snap0 -> f32[2]{1} s0
%3:o = slot #1
%4:f = unbox_float %3 !snap0
%5 = aten "test::scale" (%2, $%4, 3) -> (f32[2]{1} s1) !snap0
%6:t = result %5 #0 -> f32[2]{1} s1
%7 = aten "aten::view" (%6, ints[2,1]) -> (f32[2,1]{1,1} s1 alias 0) !snap0
%8:t = result %7 #0 -> f32[2,1]{1,1} s1
bump_version %2 #2
%10 = aten "test::fill" (%8, $%4) -> () mutates [0] !snap0
%11:o = wrap %8 grad
loop !snap1
snap0: root unit 0 [=, =, =]
snap1: root unit 0 [=, =, %11]
""", storages=[(INPUT, 8), (FRESH, 8)], log=log)
        bits = struct.unpack("q", struct.pack("d", 2.5))[0]
        slots = [floats(1, 2), 2.5, None]
        self.assertEqual(trace.run(slots, breaker=True)[0], "break")
        self.assertEqual(log, [("bind", 0), ("allocate", 1), ("call", "test::scale", [bits]), ("bump", 0, 2), ("call", "test::fill", [bits]),
                               ("wrap", 0), ("end",)])
        self.assertEqual(slots[2], floats(2.5, 2.5))
        self.check_leaks(lambda: (trace.run([slots[0], 2.5, None], breaker=True), log.clear()))

    def test_draws_in_order_for_their_call(self):
        """A call that kernels stand for is in the program, so that the bridge knows whose numbers are drawn."""
        log = []
        trace = self.compile("""
%0:o = slot #0
%1:t = unbox_tensor %0 !snap0 -> f32[2]{1} s0
%2 = aten "aten::native_dropout" (%1, 0.5, true) -> (f32[2]{1} s1, bool[2]{1} s2) random stream 256 x 4 sunk
%3:t = result %2 #0 -> f32[2]{1} s1
%4:i = draw_seed %2
%5:i = draw_offset %2 #4
%6 = aten "test::scale" (%1) -> (f32[2]{1} s3) random !snap0
%7:i = draw_offset %2 #8
%8:i = sub_int %4, %5 !snap0
%9:o = box_int %8
%10:o = box_int %7
loop !snap1
snap0: root unit 0 [=, =, =]
snap1: root unit 0 [=, %9, %10]
""", storages=[(INPUT, 8), (ARENA, 8), (ARENA, 2), (RESULT, 8)], log=log)
        slots = [floats(1, 2), None, None]
        self.assertEqual(trace.run(slots, breaker=True)[0], "break")
        dropout = "aten::native_dropout"
        self.assertEqual(log, [("bind", 0), ("seed", dropout), ("draw", dropout, 4), ("call", "test::scale", []), ("draw", dropout, 8), ("end",)])
        self.assertEqual(slots[1:], [65, 12])

    def test_wrap_is_told_the_numbers_of_fused_calls(self):
        log = []
        trace = self.compile("""
%0:o = slot #0
%1:t = unbox_tensor %0 !snap0 -> f32[2]{1} s0
%2:o = slot #1
%3:f = unbox_float %2 !snap0
%4:i = const_int #7
%5 = aten "test::scale" (%1, $%3, $%4) -> (f32[2]{1} s1) sunk
%6:t = result %5 #0 -> f32[2]{1} s1
%7 = aten "test::scale" (%6, $%3, 3) -> (f32[2]{1} s2) !snap0
%8:t = result %7 #0 -> f32[2]{1} s2
%9:o = wrap %8 grad nonleaf fn "Scale" forward [%5, %7] sunk
leave !snap1
snap0: root unit 0 [=, =]
snap1: root unit 9 [%9, =]
""", storages=[(INPUT, 8), (ARENA, 8), (FRESH, 8)], log=log)
        for number in (2.5, -1.0):
            bits = struct.unpack("q", struct.pack("d", number))[0]
            log.clear()
            self.assertEqual(trace.run([floats(1, 2), number])[0], "leave")
            self.assertEqual(log, [("bind", 0), ("allocate", 2), ("call", "test::scale", [bits]), ("numbers", "test::scale", [bits, 7]), ("wrap", 0),
                                   ("end",)])

    def test_guards(self):
        state = [True]
        trace = self.compile("""
%0:o = slot #0
guard_torch_state {grad : f32 0 0} !snap0
%2:t = unbox_tensor %0 !snap0 -> f32[2]{1} s0
leave !snap0
snap0: root unit 0 [=]
""", storages=[(INPUT, 8)], state=state)
        self.assertEqual(trace.run([floats(1, 2)])[0], "leave")
        self.assertEqual(trace.run([floats(1)])[:2], ("guard", 2))
        self.assertEqual(trace.run(["no tensor"])[:2], ("guard", 2))
        state[0] = False
        self.assertEqual(trace.run([floats(1, 2)])[:2], ("guard", 1))

    def test_raising_call_ends_the_session(self):
        log = []
        trace = self.compile("""
%0:o = slot #0
%1:o = build_list %0
%2:t = unbox_tensor %0 !snap0 -> f32[2]{1} s0
%3 = aten "test::raise" (%2) -> () !snap1
leave !snap0
snap0: root unit 0 [=]
snap1: root unit 3 [=, %1]
""", storages=[(INPUT, 8)], log=log)
        o = floats(1, 2)
        kind, inst, frames, error = trace.run([o])
        self.assertEqual((kind, inst, str(error), frames[0][4][1]), ("error", 3, "raised by test::raise", [o]))
        self.assertEqual(log[-1], ("end",))

    def test_read_scalar_and_sunk_wrap(self):
        log = []
        trace = self.compile("""
%0:o = slot #0
%1:t = unbox_tensor %0 !snap0 -> f32[]{} s0
%2:f = read_scalar %1 !snap0
%3:f = const_float 1.0
%4:b = gt_float %2, %3
%5 = aten "test::fill" (%1, $%2) -> (f32[]{} s1) !snap0
%6:t = result %5 #0 -> f32[]{} s1
%7:o = wrap %6 sunk
guard_true %4 !snap1
loop !snap0
snap0: root unit 0 [=]
snap1: root unit 3 [%7, %2, %7]
""", storages=[(INPUT, 4), (ARENA, 4)], log=log)
        self.assertEqual(trace.run([floats(1.5)], breaker=True)[0], "break")
        self.assertNotIn(("wrap", 0), log)
        kind, _, frames, _ = trace.run([floats(0.5)])
        made, number, same = frames[0][4]
        self.assertEqual((kind, made, number), ("guard", floats(0.0), 0.5))
        self.assertIs(made, same)
        self.assertEqual(log[-2:], [("wrap", 0), ("end",)])

    def test_wrap_that_raises(self):
        for how in ("", " sunk"):
            trace = self.compile(f"""
%0:o = slot #0
%1:t = unbox_tensor %0 !snap0 -> f32[2]{{1}} s0
%2:o = wrap %1 fn "Raises"{how} !snap0
leave !snap1
snap0: root unit 0 [=]
snap1: root unit 3 [%2]
""", storages=[(INPUT, 8)])
            _, _, frames, error = trace.run([floats(1, 2)])
            self.assertEqual(str(error), "raised by wrap")

    def test_grad(self):
        trace = self.compile("""
%0:o = slot #0
%1:o = slot #1
%2:o = get_grad %0
set_grad %0, %1 !snap0
%4:o = get_grad %0
leave !snap1
snap0: root unit 0 [=, =]
snap1: root unit 3 [%2, %4]
""", storages=[])
        t, g = floats(1), floats(2)
        self.assertEqual(trace.run([t, g])[2][0][4], [None, g])
        self.check_counts(lambda: trace.run([t, g]), t, g)
        self.assertEqual(str(trace.run([t, "text"])[3]), "assigned grad has to be a Tensor or None")

    def test_kernel(self):
        """A fused kernel runs on the session's storages with the trace's numbers."""
        kernel = """
kernel k0 "double" sizes [4] pointers 2 scalars (f64) {
  o0 = f32 p0 + 0 {1}
  o1 = f32 p1 + 0 {1}
  n0 = load f32 o0
  n1 = scalar f32 s0
  n2 = mul f32 n0, n1
  store o1, n2
}
"""
        trace = self.compile("""
%0:o = slot #0
%1:t = unbox_tensor %0 !snap0 -> f32[4]{1} s0
%2:o = slot #1
%3:f = unbox_float %2 !snap0
%4 = aten "test::mul" (%1, $%3) -> (f32[4]{1} s1) sunk
%5:t = result %4 #0 -> f32[4]{1} s1
kernel k0 (%1, %5, %3)
%7:o = wrap %5
leave !snap1
snap0: root unit 0 [=, =]
snap1: root unit 3 [%7]
""" + kernel, storages=[(INPUT, 16), (FRESH, 16)])
        self.assertEqual(trace.run([floats(1, 2, 3, 4), 0.5])[2][0][4], [floats(0.5, 1, 1.5, 2)])
        self.assertEqual(trace.run([floats(1, 2, 3, 4), -1.0])[2][0][4], [floats(-1, -2, -3, -4)])

    def test_unknown_operation(self):
        with self.assertRaisesRegex(ValueError, "torch program: no operation test::unknown"):
            self.compile("""
%0:o = slot #0
%1:t = unbox_tensor %0 !snap0 -> f32[2]{1} s0
%2 = aten "test::unknown" (%1) -> () !snap0
leave !snap0
snap0: root unit 0 [=]
""", storages=[(INPUT, 8)])


if __name__ == "__main__":
    unittest.main()
