"""Arithmetic on unboxed numbers against Python's own."""

import itertools
import math
import operator
import random
import unittest

from trace_case import TraceCase

INTS = [0, 1, -1, 2, -2, 7, -7, 10, 2**31, -(2**31), 2**62, -(2**62), 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan, 1e-200, 2.0**60]


def same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return type(a) is type(b) and a == b


class Scalars(TraceCase):
    def binary(self, op, kind, result):
        box = {"i": "int", "f": "float", "b": "bool"}
        return self.leave_with(
            f"%a:{kind} = unbox_{box[kind]} %s0 !snap0\n%b:{kind} = unbox_{box[kind]} %s1 !snap0\n"
            f"%c:{result} = {op} %a, %b{' !snap0' if self.exits else ''}\n%r:o = box_{box[result]} %c", "%r", 2)

    exits = False

    def check(self, op, kind, result, expected, values):
        trace = self.binary(op, kind, result)
        for a, b in itertools.product(values, values):
            got = self.result_of(trace, [a, b])
            want = expected(a, b)
            self.assertTrue(same(got, want), f"{op}({a!r}, {b!r}) is {got!r}, not {want!r}")

    def test_int_arithmetic(self):
        def fits(function):
            def checked(a, b):
                value = function(a, b)
                return value if -(2**63) <= value < 2**63 else "guard"

            return checked

        self.exits = True
        self.check("add_int", "i", "i", fits(operator.add), INTS)
        self.check("sub_int", "i", "i", fits(operator.sub), INTS)
        self.check("mul_int", "i", "i", fits(operator.mul), INTS)
        self.check("floordiv_int", "i", "i", lambda a, b: "guard" if b in (0, -1) else a // b, INTS)
        self.check("mod_int", "i", "i", lambda a, b: "guard" if b in (0, -1) else a % b, INTS)

    def test_int_division_of_random_numbers(self):
        self.exits = True
        div, mod = self.binary("floordiv_int", "i", "i"), self.binary("mod_int", "i", "i")
        rng = random.Random(1)
        for _ in range(2000):
            a, b = rng.randrange(-(10**12), 10**12), rng.choice([-1, 1]) * rng.randrange(2, 10**4)
            self.assertEqual(self.result_of(div, [a, b]), a // b)
            self.assertEqual(self.result_of(mod, [a, b]), a % b)

    def test_int_bits_and_comparisons(self):
        for name in ("and", "or", "xor"):
            self.check(f"{name}_int", "i", "i", getattr(operator, f"{name}_"[: len(name) + (name != "xor")]), INTS)
        for name in ("eq", "ne", "lt", "le", "gt", "ge"):
            self.check(f"{name}_int", "i", "b", getattr(operator, name), INTS)

    def test_float_arithmetic(self):
        for name in ("add", "sub", "mul"):
            self.check(f"{name}_float", "f", "f", getattr(operator, name), FLOATS)
        for name in ("eq", "ne", "lt", "le", "gt", "ge"):
            self.check(f"{name}_float", "f", "b", getattr(operator, name), FLOATS)
        self.exits = True
        self.check("div_float", "f", "f", lambda a, b: "guard" if b == 0 else a / b, FLOATS)

        def power(a, b):
            try:
                value = a**b
            except (ZeroDivisionError, OverflowError):
                return "guard"
            return "guard" if isinstance(value, complex) else value

        self.check("pow_float", "f", "f", power, FLOATS)

    def test_same_float(self):
        import struct

        self.check("same_float", "f", "b", lambda a, b: struct.pack("d", a) == struct.pack("d", b), FLOATS)

    def test_unary(self):
        neg = self.leave_with("%a:i = unbox_int %s0 !snap0\n%b:i = neg_int %a !snap0\n%r:o = box_int %b", "%r")
        for a in INTS:
            self.assertEqual(self.result_of(neg, [a]), "guard" if a == -(2**63) else -a)
        convert = self.leave_with("%a:i = unbox_int %s0 !snap0\n%b:f = int_to_float %a !snap0\n%r:o = box_float %b", "%r")
        for a in INTS + [2**53, 2**53 + 1, 2**60 + 2**8]:
            self.assertEqual(self.result_of(convert, [a]), float(a) if int(float(a)) == a else "guard")
        for name, function in (("neg", operator.neg), ("abs", abs)):
            trace = self.leave_with(f"%a:f = unbox_float %s0 !snap0\n%b:f = {name}_float %a\n%r:o = box_float %b", "%r")
            for a in FLOATS:
                self.assertTrue(same(self.result_of(trace, [a]), function(a)))
        sqrt = self.leave_with("%a:f = unbox_float %s0 !snap0\n%b:f = sqrt_float %a !snap0\n%r:o = box_float %b", "%r")
        for a in FLOATS:
            self.assertTrue(same(self.result_of(sqrt, [a]), "guard" if a < 0 else math.sqrt(a)), a)

    def test_bools(self):
        invert = self.leave_with("%a:b = unbox_bool %s0 !snap0\n%b:b = not_bool %a\n%r:o = box_bool %b", "%r")
        number = self.leave_with("%a:b = unbox_bool %s0 !snap0\n%b:i = bool_to_int %a\n%r:o = box_int %b", "%r")
        for value in (True, False):
            self.assertIs(self.result_of(invert, [value]), not value)
            self.assertTrue(same(self.result_of(number, [value]), int(value)))

    def test_constants(self):
        self.assertEqual(self.apply("%a:i = const_int #-5\n%b:i = const_int #7000000000\n%c:i = add_int %a, %b !snap0\n%r:o = box_int %c", 0), 6999999995)
        self.assertEqual(self.apply("%a:f = const_float 0.25\n%b:f = const_float -1.5\n%c:f = mul_float %a, %b\n%r:o = box_float %c", 0), -0.375)

    def test_is_same(self):
        trace = self.leave_with("%a:b = is_same %s0, %s1\n%r:o = box_bool %a", "%r", 2)
        o = object()
        self.assertIs(self.result_of(trace, [o, o]), True)
        self.assertIs(self.result_of(trace, [o, object()]), False)


if __name__ == "__main__":
    unittest.main()
