"""Exits: what they rebuild and what they release. Loops: what they write back. Stress: each guard fails once."""

import gc
import unittest

from trace_case import NULL, UNCHANGED, TraceCase, native


class Exits(TraceCase):
    def test_sunk_objects_keep_their_identity(self):
        trace = self.compile("""
%0:o = slot #0
%1:i = unbox_int %0 !snap0
%2:i = add_int %1, %1 !snap0
%3:o = box_int %2 sunk
%4:o = build_tuple %3, %0 sunk
%5:o = build_list %4, %4, %2 sunk
leave !snap1
snap0: root unit 0 [=]
snap1: root unit 4 [%5, %4, %3, %2, =, _]
""")
        kind, _, frames, _ = trace.run([1000])
        self.assertEqual(kind, "leave")
        function, unit, continuation, value, slots = frames[0]
        self.assertEqual((function, unit, continuation, value), (NULL, 4, 0, NULL))
        items, pair, boxed, number, unchanged, null = slots
        self.assertEqual((items, pair, boxed, number), ([(2000, 1000), (2000, 1000), 2000], (2000, 1000), 2000, 2000))
        self.assertIs(items[0], pair)
        self.assertIs(items[1], pair)
        self.assertIs(pair[0], boxed)
        self.assertIs(unchanged, UNCHANGED)
        self.assertIs(null, NULL)
        self.check_leaks(lambda: trace.run([1000]))

    def test_sunk_kinds(self):
        trace = self.compile("""
%0:o = slot #0
%1:o = slot #1
%2:b = is_same %0, %1
%3:o = box_bool %2 sunk
%4:o = build_slice %0, %1, %3 sunk
%5:o = const_obj @0 "'key'"
%6:o = build_map %5, %4 sunk
%7:o = const_obj @1 "len"
%8:o = bind_method %7, %1 sunk
%9:f = const_float 0.5
%10:o = box_float %9 sunk
%11:o = const_obj @2 "NULL"
%12:o = build_cell %11 sunk
leave !snap0
snap0: root unit 4 [%3, %4, %6, %8, %9, %10, %12]
""")
        slots = trace.run([1, "ab"])[2][0][4]
        self.assertEqual(slots[:3], [False, slice(1, "ab", False), {"key": slice(1, "ab", False)}])
        self.assertEqual((slots[3](), slots[4], slots[5]), (2, 0.5, 0.5))
        self.assertEqual(repr(slots[6])[:6], "<cell ")

    def test_inlined_frames(self):
        def f():
            pass

        trace = self.compile("""
%0:o = slot #0
%1:o = const_obj @0 "f"
%2:o = build_list %0
%3:o = get_iter %2 !snap0
guard_bound %0 !snap1
guard_is %0, %1 !snap1
leave !snap0
snap0: root unit 0 [=]
snap1: root unit 3 [=, %2] | %1 unit 7 then 3 with %3 [%0, _, %2] | %1 unit 8 then 1 [%3]
""", {"f": f})
        o = object()
        kind, inst, frames, _ = trace.run([o])
        self.assertEqual((kind, inst), ("guard", 5))
        self.assertEqual([frame[:3] for frame in frames], [(NULL, 3, 0), (f, 7, 3), (f, 8, 1)])
        made = frames[0][4][1]
        self.assertEqual((frames[0][4][0], made), (UNCHANGED, [o]))
        self.assertIs(frames[1][4][0], o)
        self.assertIs(frames[1][4][2], made)
        self.assertIs(frames[1][3], frames[2][4][0])
        self.check_counts(lambda: trace.run([o]), o, f)
        self.check_leaks(lambda: trace.run([o]))

    def test_error_exit_keeps_the_exception_and_releases(self):
        def fails(x):
            raise KeyError(x)

        trace = self.compile("""
%0:o = slot #0
%1:o = build_list %0
%2:o = const_obj @0 "fails"
%3:o = call %2, %1 !snap0
%4:o = build_tuple %3, %1
leave !snap1
snap0: root unit 5 [=, %2, %1]
snap1: root unit 6 [%4]
""", {"fails": fails})
        o = object()
        kind, inst, frames, error = trace.run([o])
        self.assertEqual((kind, inst, type(error), error.args), ("error", 3, KeyError, ([o],)))
        self.assertIs(frames[0][4][2], error.args[0])
        del frames, error
        gc.collect()

        def again():
            trace.run([o])[3].__traceback__ = None

        self.check_counts(again, o, fails)

    def test_finalizer_runs_at_the_last_use(self):
        events = []

        class Noisy:
            def __del__(self):
                events.append("gone")

        trace = self.leave_with("""
%c:o = const_obj @0 "Noisy"
%n:o = const_obj @1 "note"
%a:o = call %c !snap0
%t:o = build_tuple %a
%x:o = call %n !snap0
""", "%x", 1, {"Noisy": Noisy, "note": lambda: events.append("called")})
        trace.run([0])
        self.assertEqual(events, ["gone", "called"])

    def test_nullable_values_are_released(self):
        trace = self.leave_with("%a:o = iter_next_known %s0 !snap0\n%n:o = get_iter %s1 !snap0\nguard_bound %a !snap0", "_", 2)
        o = object()
        self.assertEqual(trace.run([iter([o]), []])[0], "leave")
        self.assertEqual(trace.run([iter([]), []])[0], "guard")
        self.check_counts(lambda: (trace.run([iter([o]), []]), trace.run([iter([]), []])), o)

    def test_wrong_traces_are_refused(self):
        for text, message in (("%0:o = slot #0\nguard_bound %0\nloop !snap0\nsnap0: root unit 0 [=]", "needs a snapshot"),):
            with self.assertRaisesRegex(ValueError, message):
                self.compile(text)
        with self.assertRaisesRegex(ValueError, "torch bridge"):
            native.compile('trace 1 "t" storages 0\nguard_torch_state {: f32 0 0} !snap0\nloop !snap0\nsnap0: root unit 0 [=]\n', {})


class Loops(TraceCase):
    def test_swap_until_the_counter_ends(self):
        trace = self.compile("""
%0:o = slot #0
%1:o = slot #1
%2:o = slot #2
%3:i = unbox_int %2 !snap0
%4:i = const_int #1
%5:i = sub_int %3, %4 !snap0
%6:i = const_int #0
%7:b = gt_int %3, %6
guard_true %7 !snap0
%9:o = box_int %5
loop !snap1
snap0: root unit 2 [=, =, =]
snap1: root unit 2 [%1, %0, %9]
""")
        a, b = object(), object()
        slots = [a, b, 1001]
        kind, inst, frames, _ = trace.run(slots)
        self.assertEqual((kind, inst, slots, trace.iterations), ("guard", 8, [b, a, 0], 1001))
        del slots
        self.check_counts(lambda: trace.run([a, b, 300]), a, b)
        self.check_leaks(lambda: trace.run([a, b, 300]), 50)

    def test_sunk_values_and_scalars_are_written_back(self):
        trace = self.compile("""
%0:o = slot #0
%1:i = unbox_int %0 !snap0
%2:i = add_int %1, %1 !snap0
%3:o = box_int %2 sunk
%4:o = build_tuple %3 sunk
loop !snap1
snap0: root unit 2 [=, =, =, =]
snap1: root unit 2 [%3, %4, %2, _]
""")
        slots = [3000, NULL, "old", object()]
        self.assertEqual(trace.run(slots, breaker=True)[0], "break")
        self.assertEqual(slots, [6000, (6000,), 6000, NULL])
        self.assertIs(slots[0], slots[1][0])

    def test_breaker_set_inside(self):
        calls = []

        def step(x):
            calls.append(x)
            if len(calls) == 5:
                native.set_breaker()
            return x + 1

        trace = self.compile("""
%0:o = slot #0
%1:o = const_obj @0 "step"
%2:o = call %1, %0 !snap0
loop !snap1
snap0: root unit 2 [=]
snap1: root unit 2 [%2]
""", {"step": step})
        slots = [10]
        self.assertEqual(trace.run(slots)[0], "break")
        self.assertEqual((slots, trace.iterations, trace.exits), ([15], 5, 0))

    def test_recursion(self):
        """A trace that is entered again while it runs has its own values."""
        depth = []

        def again(x):
            if len(depth) < 4:
                depth.append(x)
                slots = [x + 100]
                self.assertEqual(trace.run(slots, breaker=True)[0], "break")
                return slots[0]
            native.set_breaker()
            return x

        trace = self.compile("""
%0:o = slot #0
%1:o = build_list %0
%2:o = const_obj @0 "again"
%3:o = call %2, %0 !snap0
%4:o = build_tuple %3, %1
loop !snap1
snap0: root unit 2 [=]
snap1: root unit 2 [%4]
""", {"again": again})
        slots = [1]
        self.assertEqual(trace.run(slots, breaker=True)[0], "break")
        self.assertEqual(slots, [(((((401, [401]), [301]), [201]), [101]), [1])])


class Stress(TraceCase):
    def test_each_guard_fails_once(self):
        trace = self.compile("""
%0:o = slot #0
%1:o = const_obj @0 "int"
guard_type %0, %1 !snap0
%3:i = unbox_int %0 !snap0
%4:i = add_int %3, %3 !snap0
%5:o = box_int %4
guard_bound %5 !snap1
loop !snap1
snap0: root unit 2 [=]
snap1: root unit 2 [%5]
""", stress=True)
        seen = []
        for _ in range(4):
            kind, inst, frames, _ = trace.run([5], breaker=True)
            seen.append((kind, inst))
        self.assertEqual(seen, [("guard", 2), ("guard", 3), ("guard", 4), ("guard", 6)])
        slots = [5]
        self.assertEqual(trace.run(slots, breaker=True)[0], "break")
        self.assertEqual((slots, trace.stressed), ([10], 4))


if __name__ == "__main__":
    unittest.main()
