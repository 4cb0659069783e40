"""Objects made and changed, and residual operations, in compiled code and through execute()."""

import sys
import time
import types
import unittest

from trace_case import CELL_CONTENT, NULL, TraceCase, native


class Weird:
    def __getattr__(self, name):
        raise AttributeError(f"no {name}")

    def __bool__(self):
        raise ValueError("no truth")

    def __iter__(self):
        raise RuntimeError("no iterator")


class Making(TraceCase):
    def test_containers(self):
        a, b, c = object(), object(), object()
        self.assertEqual(self.apply("%r:o = build_tuple %s0, %s1", a, b), (a, b))
        self.assertEqual(self.apply("%r:o = build_tuple", a), ())
        self.assertEqual(self.apply("%r:o = build_list %s0, %s1, %s2", a, b, c), [a, b, c])
        self.assertEqual(self.apply("%r:o = build_slice %s0, %s1, %s2", 1, 2, None), slice(1, 2, None))
        self.assertEqual(self.apply("%r:o = build_map %s0, %s1, %s2, %s3 !snap0", "x", a, "y", b), {"x": a, "y": b})
        self.assertEqual(self.apply("%r:o = build_set %s0, %s1 !snap0", 1, 2), {1, 2})
        self.assertEqual(self.apply("%r:o = build_string %s0, %s1 !snap0", "ab", "cd"), "abcd")
        self.assertEqual(self.apply("%r:o = build_map_any %s0, %s1 !snap0", (1,), a), {(1,): a})
        with self.assertRaisesRegex(TypeError, "unhashable type: 'list'"):
            self.apply("%r:o = build_set %s0 !snap0", [])
        trace = self.leave_with("%r:o = build_tuple %s0, %s1\n%n:o = get_iter %r !snap0", "%n", 2)
        self.check_counts(lambda: trace.run([a, b]), a, b)

    def test_cell_method_function(self):
        o = object()
        self.assertEqual(self.apply("%r:o = build_cell %s0", o).cell_contents, o)
        empty = self.apply('%n:o = const_obj @0 "NULL"\n%r:o = build_cell %n', o)
        with self.assertRaises(ValueError):
            empty.cell_contents
        method = self.apply("%r:o = bind_method %s0, %s1", len, "abc")
        self.assertEqual((type(method), method()), (types.MethodType, 3))

        def outer(x):
            def inner(a, b=2, *, c=3) -> int:
                return a, b, c, x

            return inner

        template = outer(4)
        made = self.apply(
            '%n:o = const_obj @0 "NULL"\n%r:o = make_function %s0, %s1, %s2, %s3, %s4, %s5',
            template.__code__, globals(), (20,), {"c": 30}, ("return", int), template.__closure__)
        self.assertEqual(made(1), (1, 20, 30, 4))
        self.assertEqual(made.__annotations__, {"return": int})
        self.assertEqual(made.__qualname__, template.__qualname__)
        self.assertEqual(self.apply("%r:o = make_function %s0, %s1", (lambda: 7).__code__, globals())(), 7)

    def test_views_sets_and_iterators(self):
        table = {"a": 1, "b": 2}
        for which, view in enumerate((table.keys(), table.values(), table.items())):
            self.assertEqual(list(self.apply(f"%r:o = dict_view %s0 #{which}", table)), list(view))
        self.assertEqual(self.apply("%r:o = set_of %s0, %s1, %s0 !snap0", 1, "x"), {1, "x"})
        for index in range(4):
            self.assertEqual(list(self.apply("%r:o = iter_at %s0, %s1, %s2", iter, index, ["a", "b", "c"])), ["a", "b", "c"][index:])

    def test_writes(self):
        class C:
            def __init__(self):
                self.a = self.b = None

        o, value = C(), object()
        self.leave_with("store_value %s0, %s1 #1", "_", 2).run([o, value])
        self.assertIs(o.b, value)
        cell = types.CellType(1)
        store = self.leave_with(f"store_field %s0, %s1 #{CELL_CONTENT}", "_", 2)
        store.run([cell, value])
        self.assertIs(cell.cell_contents, value)
        self.check_counts(lambda: store.run([cell, value]), cell, value)
        store.run([cell, NULL])
        with self.assertRaises(ValueError):
            cell.cell_contents
        d, l = {}, [1, 2, 3]
        self.leave_with("dict_set %s0, %s1, %s2 !snap0", "_", 3).run([d, "key", value])
        self.assertEqual(d, {"key": value})
        self.leave_with("dict_merge %s0, %s1 !snap0", "_", 2).run([d, {"key": 1, "more": 2}])
        self.assertEqual(d, {"key": 1, "more": 2})
        self.leave_with("list_append %s0, %s1 !snap0", "_", 2).run([l, value])
        self.assertEqual(l, [1, 2, 3, value])
        self.leave_with("list_extend_list %s0, %s1 !snap0", "_", 2).run([l, (5, 6)])
        self.leave_with("list_extend_list %s0, %s0 !snap0", "_", 1).run([l])
        self.assertEqual(l, [1, 2, 3, value, 5, 6] * 2)
        put = self.leave_with("%i:i = const_int #2\nlist_set %s0, %i, %s1", "_", 2)
        put.run([l, value])
        self.assertIs(l[2], value)
        self.check_counts(lambda: put.run([l, value]), l, value)

    def test_a_drop_sees_the_new_value(self):
        seen = []

        class Last:
            def __del__(self):
                seen.append(cell.cell_contents)

        cell = types.CellType(Last())
        self.leave_with(f"store_field %s0, %s1 #{CELL_CONTENT}", "_", 2).run([cell, "new"])
        self.assertEqual(seen, ["new"])


class Residual(TraceCase):
    def both(self, op, args, imm=0, names=None):
        """The operation compiled and executed: the same result, which is returned, or the same exception, which is raised."""
        result = {"contains": "b", "is_true": "b", "is_true_builtin": "b"}.get(op, "o")
        operands = ", ".join(f"%s{k}" for k in range(len(args)))
        number = f" #{imm}" if imm else ""
        if op in ("call", "call_known", "call_pure", "call_new"):
            number = ' @0 "names"' if names is not None else ""
        line = f"%x:{result} = {op} {operands}{number} !snap0"
        line += "\n%r:o = box_bool %x" if result == "b" else ""
        line = line if result == "b" else line.replace("%x", "%r")
        outcomes = []
        for way in (lambda: self.apply(line, *args, namespace={"names": names}), lambda: native.execute(op, imm, list(args), names)):
            try:
                outcomes.append(("value", way()))
            except Exception as error:
                outcomes.append((type(error), str(error)))
        if outcomes[0][0] != "value":
            self.assertEqual(outcomes[0], outcomes[1])
            raise outcomes[0][0](outcomes[0][1])
        self.assertEqual(outcomes[1][0], "value")
        return outcomes[0][1]

    def test_call(self):
        def f(a, b=2, *c, d=4, **e):
            return a, b, c, d, e

        self.assertEqual(self.both("call", [f, 1]), (1, 2, (), 4, {}))
        self.assertEqual(self.both("call", [f, 1, 5, 6, 7, 8, 9], names=("d", "z")), (1, 5, (6, 7), 8, {"z": 9}))
        self.assertEqual(self.both("call", [max, 1, 5, 3]), 5)
        self.assertEqual(self.both("call_pure", [abs, -3]), 3)
        self.assertEqual(self.both("call_known", [abs, -3]), 3)
        self.assertEqual(self.both("call_new", [list, (1, 2)]), [1, 2])
        with self.assertRaisesRegex(TypeError, "missing 1 required positional argument: 'a'"):
            self.both("call", [f])
        with self.assertRaisesRegex(TypeError, "'int' object is not callable"):
            self.both("call", [5, 1])

    def test_call_may_use_the_word_before_its_arguments(self):
        class C:
            def method(self, *args):
                return args

        o = C()
        self.assertEqual(self.both("call", [o.method, 1, 2]), (1, 2))

    def test_call_ex(self):
        def f(*a, **k):
            return a, k

        self.assertEqual(self.both("call_ex", [f, (1, 2), {"x": 3}]), ((1, 2), {"x": 3}))
        self.assertEqual(self.both("call_ex", [f, (1, 2), NULL]), ((1, 2), {}))
        self.assertEqual(self.both("call_ex", [f, [1], NULL]), ((1,), {}))
        for arguments, keywords, text in (((5), {}, r"\.f\(\) argument after \* must be an iterable, not int"), ((), 5, r"\.f\(\) argument after \*\* must be a mapping, not int")):
            with self.assertRaisesRegex(TypeError, text):
                self.both("call_ex", [f, arguments, keywords])

    def test_operators(self):
        import operator

        names = "add and_ floordiv lshift matmul mul mod or_ pow rshift sub truediv xor".split()
        for k, name in enumerate(names):
            if name == "matmul":
                with self.assertRaisesRegex(TypeError, "unsupported operand type.s. for @: 'int' and 'int'"):
                    self.both("binary", [5, 3], k)
                continue
            self.assertEqual(self.both("binary", [5, 3], k), getattr(operator, name)(5, 3))
            self.assertEqual(self.both("binary", [5, 3], k + 13), getattr(operator, name)(5, 3))
        with self.assertRaisesRegex(TypeError, r"unsupported operand type\(s\) for \*\* or pow\(\): 'str' and 'int'"):
            self.both("binary", ["a", 3], 8)
        with self.assertRaisesRegex(TypeError, r"unsupported operand type\(s\) for \*\*=: 'str' and 'int'"):
            self.both("binary", ["a", 3], 21)
        items = []
        self.assertIs(self.apply("%r:o = binary %s0, %s1 #13 !snap0", items, [1]), items)
        for k, value in enumerate((-6, ~6, 6)):
            self.assertEqual(self.both("unary", [6], k), value)
        for k, value in enumerate((True, True, False, True, False, False)):
            self.assertIs(self.both("compare", [1, 2], k), value)
        with self.assertRaisesRegex(TypeError, "'<' not supported between instances of 'int' and 'str'"):
            self.both("compare", [1, "a"], 0)

    def test_truth_and_containment(self):
        self.assertIs(self.both("contains", [[1, 2], 2]), True)
        self.assertIs(self.both("contains", [[1, 2], 3]), False)
        with self.assertRaisesRegex(TypeError, "argument of type 'int' is not iterable"):
            self.both("contains", [5, 3])
        for value in ([], [1], "", "a", 0, 5, 0.0, None, {}):
            self.assertIs(self.both("is_true", [value]), bool(value))
            self.assertIs(self.both("is_true_builtin", [value]) if False else self.apply("%x:b = is_true_builtin %s0\n%r:o = box_bool %x", value), bool(value))
        with self.assertRaisesRegex(ValueError, "no truth"):
            self.both("is_true", [Weird()])

    def test_attributes(self):
        o = types.SimpleNamespace(x=5)
        self.assertEqual(self.both("get_attr", [o, "x"]), 5)
        self.assertEqual(self.both("get_attr_known", [o, "x"]), 5)
        with self.assertRaisesRegex(AttributeError, "no y"):
            self.both("get_attr", [Weird(), "y"])
        for op in ("set_attr", "set_attr_known"):
            self.leave_with(f"{op} %s0, %s1, %s2 !snap0", "_", 3).run([o, "y", 6])
            self.assertEqual(o.y, 6)
            self.leave_with(f"{op} %s0, %s1, %s2 !snap0", "_", 3).run([o, "y", NULL])
            self.assertFalse(hasattr(o, "y"))
        kind, _, _, error = self.leave_with("set_attr %s0, %s1, %s2 !snap0", "_", 3).run([5, "y", 6])
        with self.assertRaises(AttributeError) as eager:
            (5).y = 6
        self.assertEqual((kind, str(error)), ("error", str(eager.exception)))

    def test_items(self):
        d = {1: 2}
        self.assertEqual(self.both("get_item", [d, 1]), 2)
        with self.assertRaises(KeyError):
            self.both("get_item", [d, 5])
        put = self.leave_with("set_item %s0, %s1, %s2 !snap0", "_", 3)
        put.run([d, 5, 6])
        self.assertEqual(d, {1: 2, 5: 6})
        put.run([d, 5, NULL])
        self.assertEqual(d, {1: 2})

    def test_iteration(self):
        self.assertEqual(list(self.both("get_iter", [[1, 2]])), [1, 2])
        self.assertEqual(list(self.apply("%r:o = get_iter_known %s0 !snap0", (1, 2))), [1, 2])
        with self.assertRaisesRegex(RuntimeError, "no iterator"):
            self.both("get_iter", [Weird()])
        with self.assertRaisesRegex(TypeError, "'int' object is not iterable"):
            self.both("get_iter", [5])
        for op in ("iter_next %s0 !snap0", "iter_next_known %s0 !snap0"):
            trace = self.leave_with(f"%r:o = {op}", "%r")
            it = iter([7])
            self.assertEqual(self.result_of(trace, [it]), 7)
            self.assertIs(self.result_of(trace, [it]), NULL)

        def raises():
            yield 1
            raise KeyError("inside")

        generator = raises()
        trace = self.leave_with("%r:o = iter_next %s0 !snap0", "%r")
        self.assertEqual(self.result_of(trace, [generator]), 1)
        with self.assertRaises(KeyError):
            self.result_of(trace, [generator])

    def test_unpack(self):
        self.assertEqual(self.both("unpack", [(1, 2)], 2), (1, 2))
        self.assertEqual(self.both("unpack", [[1, 2]], 2), (1, 2))
        self.assertEqual(self.both("unpack", ["ab"], 2), ("a", "b"))
        for value, text in ((5, "cannot unpack non-iterable int object"), ([1], r"not enough values to unpack \(expected 2, got 1\)"),
                            ((1, 2, 3), r"too many values to unpack \(expected 2\)")):
            with self.assertRaisesRegex((TypeError, ValueError), text):
                self.both("unpack", [value], 2)

    def test_format(self):
        self.assertEqual(self.both("format_value", [3.14159, ".2f"]), "3.14")
        self.assertEqual(self.both("format_value", [5, NULL]), "5")
        self.assertEqual(self.both("format_value", ["ä", NULL], 3), "'\\xe4'")
        self.assertEqual(self.both("format_value", ["x", NULL], 2), "'x'")
        self.assertEqual(self.both("format_value", ["x", ">3"], 1), "  x")
        with self.assertRaisesRegex(ValueError, "Unknown format code"):
            self.both("format_value", ["x", "d"])

    def test_imports(self):
        import os.path

        self.assertIs(self.both("import_name", ["os.path", globals(), None, 0]), os)
        self.assertIs(self.both("import_name", ["os.path", globals(), ("join",), 0]), os.path)
        self.assertIs(self.both("import_from", [os, "path"]), os.path)
        with self.assertRaisesRegex(ModuleNotFoundError, "No module named 'no_such_module'"):
            self.both("import_name", ["no_such_module", globals(), None, 0])

        def expected(statement):
            try:
                exec(statement)
            except ImportError as error:
                return str(error)

        for name in ("os", "sys"):
            with self.assertRaises(ImportError) as raised:
                self.both("import_from", [sys.modules[name], "nothing"])
            self.assertEqual(str(raised.exception), expected(f"from {name} import nothing"))

    def test_counting(self):
        trace = self.leave_with('%f:o = const_obj @0 "abs"\n%r:o = call %f, %s0 !snap0\n%q:o = call %f, %r !snap0', "%q", count=True)
        for _ in range(3):
            trace.run([-5])
        self.assertEqual({name: calls for name, (calls, ms) in trace.residuals.items()}, {"call abs": 6})

    def test_time_of_residual_operations(self):
        class Slow:
            def __abs__(self):
                time.sleep(0.02)
                return 7

        lines = ('%f:o = const_obj @0 "abs"', '%r:o = call %f, %s0 !snap0', '%g:o = const_obj @1 "divmod"', '%q:o = call_known %g, %r, %r !snap0')
        trace = self.leave_with("\n".join(lines), "%q", count=True)
        for _ in range(3):
            self.assertEqual(self.result_of(trace, [Slow()]), (1, 0))
        self.assertEqual({name: calls for name, (calls, ms) in trace.residuals.items()}, {"call abs": 3, "call divmod": 3})
        self.assertGreater(trace.residuals["call abs"][1], 55)
        self.assertLess(trace.residuals["call divmod"][1], 10)


if __name__ == "__main__":
    unittest.main()
