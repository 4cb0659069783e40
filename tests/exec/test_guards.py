"""Every guard and load, both ways."""

import unittest

from trace_case import CELL_CONTENT, NULL, TraceCase, native


class Plain:
    def __init__(self, a, b):
        self.a = a
        self.b = b


class Slotted:
    __slots__ = ("x",)


class Guards(TraceCase):
    def guard(self, line, *slots, namespace=None, **options):
        """Whether the guard holds for these slots."""
        trace = self.leave_with(line, "_", len(slots), namespace, **options)
        return self.holds(trace, slots)

    def holds(self, trace, slots):
        kind, inst, frames, error = trace.run(list(slots))
        self.assertIsNone(error)
        if kind == "guard":
            self.assertEqual(frames[0][1], 0)
            self.assertEqual(trace.exits_at(inst), trace.exits)
        return kind == "leave"

    def test_is(self):
        one, other = object(), object()
        line = '%c:o = const_obj @0 "one"\nguard_is %s0, %c !snap0'
        self.assertTrue(self.guard(line, one, namespace={"one": one}))
        self.assertFalse(self.guard(line, other, namespace={"one": one}))
        null = '%c:o = const_obj @0 "NULL"\nguard_is %s0, %c !snap0'
        self.assertTrue(self.guard(null, NULL))
        self.assertFalse(self.guard(null, one))

    def test_is_of_constants(self):
        line = '%a:o = const_obj @0 "int"\n%b:o = const_obj @1 "{}"\nguard_is %a, %b !snap0'
        self.assertTrue(self.guard(line.replace("{}", "int"), 1))
        self.assertFalse(self.guard(line.replace("{}", "str"), 1))

    def test_bound(self):
        self.assertTrue(self.guard("guard_bound %s0 !snap0", 5))
        self.assertFalse(self.guard("guard_bound %s0 !snap0", NULL))

    def test_type(self):
        line = '%c:o = const_obj @0 "int"\nguard_type %s0, %c !snap0'
        self.assertTrue(self.guard(line, 5))
        self.assertFalse(self.guard(line, True))
        self.assertFalse(self.guard(line, NULL))

    def test_null_is_no_object(self):
        self.assertFalse(self.guard("guard_dict_version %s0 #5 !snap0", NULL))
        self.assertFalse(self.guard("guard_type_version %s0 #5 !snap0", NULL))
        self.assertFalse(self.guard("guard_list_items %s0 !snap0", NULL))

    def test_type_version(self):
        class C:
            pass

        trace = self.leave_with(f'%c:o = const_obj @0 "C"\nguard_type_version %c #{native.type_version(C)} !snap0', "_", 1, {"C": C})
        self.assertTrue(self.holds(trace, [0]))
        C.attribute = 1
        self.assertFalse(self.holds(trace, [0]))

    def test_dict_version(self):
        d = {"a": 1}
        trace = self.leave_with(f'%c:o = const_obj @0 "d"\nguard_dict_version %c #{native.dict_version(d)} !snap0', "_", 1, {"d": d})
        self.assertTrue(self.holds(trace, [0]))
        d["a"] = 2
        self.assertFalse(self.holds(trace, [0]))

    def test_keys_version(self):
        class C:
            def __init__(self):
                self.a = 1

        C()
        trace = self.leave_with(f'%c:o = const_obj @0 "C"\nguard_keys_version %c #{native.keys_version(C)} !snap0', "_", 1, {"C": C})
        self.assertTrue(self.holds(trace, [0]))
        C().new = 1  # a new shared key
        self.assertFalse(self.holds(trace, [0]))

    def test_func_version(self):
        def f(x=1):
            return x

        for _ in range(100):
            f()  # the evaluator gives it a version
        trace = self.leave_with(f'%c:o = const_obj @0 "f"\nguard_func_version %c #{native.function_version(f)} !snap0', "_", 1, {"f": f})
        self.assertTrue(self.holds(trace, [0]))
        f.__defaults__ = (2,)
        self.assertEqual(self.holds(trace, [0]), native.function_version(f) != 0 and False)

    def test_many_dict_versions(self):
        """More than 16 in a row are one loop over a table: the exit still names the guard."""
        dicts = [{"k": k} for k in range(40)]
        constants = "\n".join(f'%d{k}:o = const_obj @{k} "dicts[{k}]"' for k in range(40))
        guards = "\n".join(f"guard_dict_version %d{k} #{native.dict_version(d)} !snap0" for k, d in enumerate(dicts))
        trace = self.leave_with(f"{constants}\n{guards}", "_", 1, {"dicts": dicts}, listing=True)
        self.assertIn("40 x guard_dict_version", trace.listing)
        self.assertTrue(self.holds(trace, [0]))
        dicts[33]["k"] = "changed"
        kind, inst, _, _ = trace.run([0])
        self.assertEqual((kind, inst), ("guard", 1 + 40 + 33))

    def test_many_type_versions(self):
        types = [type(f"T{k}", (), {}) for k in range(20)]
        lines = "\n".join(f'%d{k}:o = const_obj @{k} "types[{k}]"\nguard_type_version %d{k} #{native.type_version(t)} !snap0' for k, t in enumerate(types))
        trace = self.leave_with(lines, "_", 1, {"types": types}, listing=True)
        self.assertIn("20 x guard_type_version", trace.listing)
        self.assertTrue(self.holds(trace, [0]))
        types[19].x = 1
        kind, inst, _, _ = trace.run([0])
        self.assertEqual((kind, inst), ("guard", 1 + 2 * 19 + 1))

    def test_list_items(self):
        for count in (0, 3, 20):
            objects = [object() for _ in range(count)]
            constants = "\n".join(f'%i{k}:o = const_obj @{k} "objects[{k}]"' for k in range(count))
            line = f"{constants}\nguard_list_items " + ", ".join(["%s0"] + [f"%i{k}" for k in range(count)]) + " !snap0"
            trace = self.leave_with(line, "_", 1, {"objects": objects})
            self.assertTrue(self.holds(trace, [list(objects)]))
            self.assertFalse(self.holds(trace, [objects + [1]]))
            for k in range(count):
                self.assertFalse(self.holds(trace, [objects[:k] + [None] + objects[k + 1 :]]))

    def test_true_false(self):
        for value in (True, False):
            line = "%b:b = unbox_bool %s0 !snap0\nguard_{} %b !snap0"
            self.assertEqual(self.guard(line.format("true"), value), value)
            self.assertEqual(self.guard(line.format("false"), value), not value)
        self.assertTrue(self.guard("%b:b = const_bool #1\nguard_true %b !snap0", 0))
        self.assertFalse(self.guard("%b:b = const_bool #1\nguard_false %b !snap0", 0))

    def test_unbox_int(self):
        for value in (0, 1, -1, 2**30 - 1, 2**30, -(2**30), 2**62, 2**63 - 1, -(2**63), 12345678901234567):
            self.assertEqual(self.apply("%i:i = unbox_int %s0 !snap0\n%r:o = box_int %i", value), value)
        for value in (2**63, -(2**63) - 1, 2**200, True, 1.0, "1", NULL):
            self.assertEqual(self.apply("%i:i = unbox_int %s0 !snap0\n%r:o = box_int %i", value), "guard")

    def test_unbox_float(self):
        for value in (0.0, -1.5, 1e308, float("inf")):
            self.assertEqual(self.apply("%i:f = unbox_float %s0 !snap0\n%r:o = box_float %i", value), value)
        for value in (1, True, "x", NULL):
            self.assertEqual(self.apply("%i:f = unbox_float %s0 !snap0\n%r:o = box_float %i", value), "guard")

    def test_unbox_bool(self):
        for value in (True, False):
            self.assertIs(self.apply("%i:b = unbox_bool %s0 !snap0\n%r:o = box_bool %i", value), value)
        for value in (1, 0, None, NULL):
            self.assertEqual(self.apply("%i:b = unbox_bool %s0 !snap0\n%r:o = box_bool %i", value), "guard")


class Loads(TraceCase):
    def test_value(self):
        o = Plain("first", "second")
        self.assertEqual(self.apply("%r:o = load_value %s0 #0", o), "first")
        self.assertEqual(self.apply("%r:o = load_value %s0 #1", o), "second")
        del o.b
        self.assertIs(self.apply("%r:o = load_value %s0 #1", o), NULL)
        o.__dict__.popitem()  # from now on the values are in the dict only
        self.assertIs(self.apply("%r:o = load_value %s0 #0", o), NULL)

    def test_dict_of(self):
        o = Plain(1, 2)
        self.assertIs(self.apply("%r:o = load_dict_of %s0", o), NULL)
        d = o.__dict__
        self.assertIs(self.apply("%r:o = load_dict_of %s0", o), d)
        self.assertIs(self.apply("%r:o = load_dict_of %s0", 5), NULL)

        class E(Exception):  # a dict pointer inside the object
            pass

        e = E()
        e.x = 1
        self.assertIs(self.apply("%r:o = load_dict_of %s0", e), e.__dict__)

    def test_field(self):
        o = Slotted()
        self.assertIs(self.apply(f"%r:o = load_field %s0 #{CELL_CONTENT}", o), NULL)
        o.x = "content"
        self.assertEqual(self.apply(f"%r:o = load_field %s0 #{CELL_CONTENT}", o), "content")
        self.check_counts(lambda: self.apply(f"%r:o = load_field %s0 #{CELL_CONTENT}", o), o, o.x, times=2)

    def test_containers(self):
        t, l, d = (object(), object()), [object(), object()], {"key": object()}
        self.assertIs(self.apply("%r:o = tuple_item %s0 #1", t), t[1])
        self.assertIs(self.apply("%i:i = const_int #1\n%r:o = list_item %s0, %i", l), l[1])
        self.assertIs(self.apply('%k:o = const_obj @0 "\'key\'"\n%r:o = dict_get %s0, %k', d), d["key"])
        self.assertIs(self.apply('%k:o = const_obj @0 "\'other\'"\n%r:o = dict_get %s0, %k', d), NULL)
        for keys, same in ((("a", "b"), True), (("b", "a"), False), (("a",), False), (("a", "c"), False)):
            text = f"%k:o = const_obj @0 \"{keys!r}\"\n%x:b = dict_has_keys %s0, %k\n%r:o = box_bool %x"
            self.assertIs(self.apply(text, {"".join("a"): 1, "b": 2}), same)
        self.assertEqual(self.apply("%n:i = tuple_len %s0\n%r:o = box_int %n", t), 2)
        self.assertEqual(self.apply("%n:i = list_len %s0\n%r:o = box_int %n", l), 2)
        self.assertEqual(self.apply("%n:i = dict_len %s0\n%r:o = box_int %n", d), 1)

    def test_counts(self):
        t = (object(), object())
        trace = self.leave_with("%a:o = tuple_item %s0 #0\n%b:o = tuple_item %s0 #1\n%n:o = get_iter %s0 !snap0\nguard_bound %b !snap0", "%a")
        self.check_counts(lambda: trace.run([t]), t, t[0], t[1])


if __name__ == "__main__":
    unittest.main()
