"""The recording interface: what a recorder sees of an iteration, in order, with the events of frames entered in place."""
import os
import tempfile
import textwrap
import unittest

import vm_case


@unittest.skipUnless(vm_case.available(), "the test module of the evaluator is not built")
class Recording(unittest.TestCase):
    maxDiff = None

    def record(self, source, call="f()", loop=3, function=0, length=60, follow=0):
        """The lines of a recording made while `call` runs."""
        program = "import _dynvm_vm as vm\n" + textwrap.dedent(source) + \
            f"\nvm.trace({loop}, {function}, {length}, {follow})\n{call}\nprint('\\n'.join(vm.take_trace()))\n"
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(program)
            file.flush()
            status, out, err = vm_case.run([file.name], "vm")
        self.assertEqual((status, err), (0, ""))
        return out.splitlines()

    def test_loop_iteration(self):
        lines = self.record("""
            def f():
                s = 0
                for i in range(9):
                    s = s + i
            """, length=7)
        names = [line.split()[1] for line in lines]
        self.assertEqual(names, ["loop", "ForIter", "StoreFast", "LoadFast", "LoadFast", "BinaryOp", "StoreFast", "JumpBackward"])

    def events(self, body, **how):
        source = textwrap.dedent("""
            class C:
                def __init__(self): self.v = 1
                @property
                def p(self): return self.v
                def __getattr__(self, name): return 2
                def __call__(self): return 3
                def __setitem__(self, k, v): pass
                def __getitem__(self, k): return 4
                def __len__(self): return 5
                def __contains__(self, k): return True
                def __add__(self, o): return 6
                def __lt__(self, o): return True
                def __enter__(self): return self
                def __exit__(self, *a): return True
                def __iter__(self): return iter(())
                def __setattr__(self, k, v): object.__setattr__(self, k, v)
            def gen():
                yield 1
            def delegate():
                yield from gen()
            def raises(): raise KeyError
            def loop(make):
                for x in make(): pass
            class D:
                def __getattr__(self, name): return len
            c, d = C(), D()
            def f():
                for i in range(9):
            """) + textwrap.indent(body, " " * 8)
        lines = self.record(source, length=200, **how)
        start = [n for n, line in enumerate(lines) if line.startswith("f ForIter")]
        return [line[2:] for line in lines[start[0]:start[1]] if line.startswith("*")]

    def test_continuations(self):
        for body, expected in [
            ("c.p", ["pushed p Attribute", "returned p"]),
            ("c.missing", ["pushed __getattr__ Replace", "returned __getattr__"]),
            ("d.anything(())", ["pushed __getattr__ ReplaceMethod", "returned __getattr__"]),
            ("c()", ["pushed __call__ Push", "returned __call__"]),
            ("c[1] = 2", ["pushed __setitem__ Discard", "returned __setitem__"]),
            ("c[1]", ["pushed __getitem__ Push", "returned __getitem__"]),
            ("c.w = 1", ["pushed __setattr__ Discard", "returned __setattr__"]),
            ("if c: pass", ["pushed __len__ Length", "returned __len__"]),
            ("1 in c", ["pushed __contains__ Contains", "returned __contains__"]),
            ("c + 1", ["pushed __add__ Binary", "returned __add__"]),
            ("c < 1", ["pushed __lt__ Compare", "returned __lt__"]),
            ("for x in c: pass", ["pushed __iter__ Iter", "returned __iter__"]),
            ("with c: pass", ["pushed __enter__ Push", "returned __enter__", "pushed __exit__ Replace", "returned __exit__"]),
            ("loop(gen)", ["pushed loop Push", "pushed gen Push", "made gen", "resumed gen ForGenerator", "yielded gen",
                           "resumed gen ForGenerator", "returned gen", "returned loop"]),
        ]:
            with self.subTest(body=body):
                got = self.events(body)
                self.assertEqual(got, expected)

    def test_construction(self):
        self.assertEqual(self.events("C()"), ["pushed __init__ Init", "pushed __setattr__ Discard", "returned __setattr__",
                                              "returned __init__"])

    def test_delegation(self):
        self.assertEqual(self.events("loop(delegate)"), [
            "pushed loop Push", "pushed delegate Push", "made delegate", "resumed delegate ForGenerator", "pushed gen Push", "made gen",
            "resumed gen SendGenerator", "yielded gen", "yielded delegate", "resumed delegate ForGenerator",
            "resumed gen SendGenerator", "returned gen", "returned delegate", "returned loop"])

    def test_exceptions(self):
        self.assertEqual(self.events("try: raises()\nexcept KeyError: pass"),
                         ["pushed raises Push", "unwind raises", "unwound raises", "unwind f"])

    def test_nested_activation(self):
        self.assertEqual(self.events("sorted([2, 1], key=lambda v: v)"),
                         ["nested <lambda>", "nested-exit <lambda>"] * 2)

    def test_nested_activation_that_is_followed(self):
        self.assertEqual(self.events("sorted([2, 1], key=lambda v: max([v], key=lambda w: c.missing))", follow=1),
                         ["nested <lambda>", "nested <lambda>", "pushed __getattr__ Replace", "returned __getattr__", "nested-exit <lambda>",
                          "nested-exit <lambda>"] * 2)
        self.assertEqual(self.events("try: sorted([2], key=lambda v: raises())\nexcept KeyError: pass", follow=1),
                         ["nested <lambda>", "pushed raises Push", "unwind raises", "unwound raises", "unwind <lambda>", "nested-exit <lambda>", "unwind f"])
        self.assertEqual(self.events("list(map(lambda v: loop(delegate), [1]))", follow=1),
                         ["nested <lambda>", *self.events("loop(delegate)"), "nested-exit <lambda>"])

    def test_recording_that_ends_in_a_followed_activation(self):
        for length in range(4, 24):
            lines = self.record("""
                def g(x): return [y + x for y in (1, 2)]
                def f():
                    for i in range(9): out = sorted(map(g, [i, i + 1]), key=lambda v: g(v[0]))
                    assert out == [[9, 10], [10, 11]], out
                """, length=length, follow=1)
            self.assertEqual(sum(not line.startswith(("*", "hot")) for line in lines), length)

    def test_call_recording_ends_with_its_activation(self):
        lines = self.record("""
            def g(x): return x + 1
            def f():
                for i in range(9): list(map(g, [i]))
            """, loop=0, function=4, length=100)
        self.assertEqual(lines[0], "hot call")
        self.assertEqual(lines[-1], "* end g")
        self.assertTrue(all(line.startswith(("g ", "* end g", "hot call")) for line in lines), lines)

    def test_keyword_names_are_part_of_the_call(self):
        lines = self.record("""
            def g(a, *, k): return k
            def f():
                for i in range(9): g(1, k=i)
            """, length=12)
        self.assertIn("f Call 2 kw1", lines)

    def test_handler_is_marked(self):
        lines = self.record("""
            def f():
                for i in range(9):
                    try: 1 / 0
                    except ZeroDivisionError: pass
            """, length=14)
        self.assertEqual([line for line in lines if line.endswith("handler")], ["f PushExcInfo 0 handler"])
