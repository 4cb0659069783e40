"""python/dynvm/check: what is described of a state, and which differences between two states count."""

import functools
import importlib.util
import os
import sys
import unittest
import weakref

from compare import ROOT

try:
    import torch
except ImportError:
    raise unittest.SkipTest("needs torch")


def module(name):
    spec = importlib.util.spec_from_file_location(
        "check_" + name, os.path.join(ROOT, "python", "dynvm", "check", name + ".py")
    )
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


describe, compare = module("describe"), module("compare")


def described(value, limit=describe.LIMIT):
    def of(value):
        frame = sys._getframe()
        return describe.describe([(frame.f_code, (value,), (), {})], None, limit, callers=False)

    return of(value)


def paths(first, second):
    """What differs between two values, by path."""
    return [
        path.replace("locals['value']", "v") for path, _, _ in compare.differences(described(first), described(second))
    ]


class Slotted:
    __slots__ = ("a", "b")


class Plain:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Loud:
    """Whose every look-up would be seen."""

    looked = 0

    def __getattribute__(self, name):
        Loud.looked += 1
        return object.__getattribute__(self, name)

    def __eq__(self, other):
        Loud.looked += 1
        return True

    def __hash__(self):
        return 1


class Python(unittest.TestCase):
    def test_equal(self):
        for value in (
            None,
            True,
            3,
            2.5,
            "text",
            b"bytes",
            1j,
            [1, [2]],
            {"a": 1, (1, 2): {3}},
            range(3),
            slice(1, 2),
            Plain(a=1),
            functools.partial(max, 1),
            frozenset({1}),
            ValueError("x"),
        ):
            self.assertEqual(paths(value, value), [], value)

    def test_atoms(self):
        for first, second in (
            (None, 0),
            (True, 1),
            (1, 2),
            (1, 1.0),
            ("a", "b"),
            (b"a", b"b"),
            (1.0, 1.01),
            (float("nan"), 1.0),
            (1j, 2j),
            (2**70, 2**70 + 1),
        ):
            self.assertEqual(paths(first, second), ["v"], (first, second))

    def test_rounding(self):
        self.assertEqual(paths(1.0, 1.00001), [])
        self.assertEqual(paths("loss 1.2345", "loss 1.2346"), [])
        self.assertEqual(paths("loss 1.2345", "loss 1.3345"), ["v"])
        self.assertEqual(paths("loss 1.0 of 3", "loss 1.0 of 4"), ["v"])
        self.assertEqual(paths("<x at 0x7f0011223344>", "<x at 0x7f0011223355>"), [])

    def test_containers(self):
        self.assertEqual(paths([1, 2], [1, 3]), ["v[1]"])
        self.assertEqual(paths([1, 2], [1, 2, 3]), ["v", "v[2]"])
        self.assertEqual(paths({"a": 1, "b": 2}, {"b": 2, "a": 1}), ["v keys"])
        self.assertEqual(paths({"a": [1]}, {"a": [2]}), ["v['a'][0]"])
        self.assertEqual(paths({1, 2}, {1, 3}), ["v items"])
        self.assertEqual(paths((1,), [1])[0], "v")

    def test_sharing(self):
        one = [1]
        self.assertEqual(paths([one, one], [one, [1]]), ["v[1]", "v[1][0]"])

    def test_instances(self):
        first, second = Slotted(), Slotted()
        first.a = second.a = 1
        second.b = 2
        self.assertEqual(paths(first, second), ["v.b"])
        self.assertEqual(paths(Plain(a=1), Plain(a=2)), ["v.a"])
        self.assertIn("v attributes", paths(Plain(a=1), Plain(b=1)))

    def test_iterators(self):
        def after(count, items):
            iterator = iter(items)
            for _ in range(count):
                next(iterator)
            return iterator

        self.assertEqual(paths(after(1, [1, 2, 3]), after(0, (2, 3))), ["v.__class__"])  # whoever has it can ask for that
        self.assertEqual(paths(after(1, [1, 2, 3]), after(2, [1, 2, 3]))[0], "v")
        self.assertEqual(paths(after(1, range(9)), after(2, range(9)))[0], "v")
        self.assertEqual(paths(enumerate(iter([1])), enumerate(iter(())))[0], "v")
        self.assertEqual(paths(zip([1, 2], "ab"), zip([1, 2], "ac"))[0], "rest of v[1][1]")
        iterator = after(1, [1, 2, 3])
        described(iterator)
        self.assertEqual(list(iterator), [2, 3])

    def test_iterators_that_only_the_evaluator_holds(self):
        """An exit makes one of the items that are left."""

        def left(iterator, named=None):
            frame = sys._getframe()
            return describe.describe([(frame.f_code, (None, named), (iterator,), {})], callers=False)

        def differing(first, second, names=(None, None)):
            found = compare.differences(left(first, names[0]), left(second, names[1]))
            return [path for path, _, _ in found]

        def read_by_all(items):
            iterator = iter(items)
            return zip(iterator, iterator)

        def moved(iterator, count=1):
            for _ in range(count):
                next(iterator)
            return iterator

        dictionary, script = {"a": 1, "b": 2, "c": 3}, []
        for first, second in (
            (moved(iter([1, 2, 3])), iter((2, 3))),
            (moved(iter(range(4))), iter((1, 2, 3))),
            (moved(enumerate("abc")), iter([(1, "b"), (2, "c")])),
            (moved(zip([1, 2, 3], enumerate("abc", 5))), iter([(2, (6, "b")), (3, (7, "c"))])),
            (moved(zip([1, 2], dictionary)), iter(((2, "b"),))),
            (moved(iter(dictionary.items()), 2), iter([("c", 3)])),
            (moved(reversed([1, 2, 3])), iter([2, 1])),
            (moved(read_by_all(range(6))), iter([(2, 3), (4, 5)])),
            (enumerate(iter(())), zip(iter([1]), iter(()))),
            (map(script.append, []), iter(())),
        ):
            self.assertEqual(differing(first, second), [], (first, second))
        self.assertEqual(script, [])
        self.assertIn("stack[0][0][1]", " ".join(differing(enumerate("ab"), enumerate("cb"))))
        self.assertEqual(differing(enumerate("abc"), moved(enumerate("abc")))[0], "stack[0]")
        self.assertNotEqual(differing(map(script.append, [1]), iter([None])), [])  # what the script does is not asked for
        self.assertEqual(script, [])
        # One that a variable has, too.
        first, second = enumerate("ab"), zip(range(2), "ab")
        self.assertEqual(differing(first, second, (first, second)), ["locals['named'].__class__"])

    def test_functions(self):
        def make(value):
            return lambda default=value: (value, default)

        self.assertEqual(paths(make(1), make(1)), [])
        self.assertEqual(paths(make(1), make(2)), ["v.__defaults__[0]", "v.value"])

    def test_generators(self):
        def generator(n):
            for i in range(n):
                yield i

        first, second = generator(5), generator(5)
        next(first), next(second)
        self.assertEqual(paths(first, second), [])
        next(second)
        self.assertIn("v locals['i']", paths(first, second))

    def test_no_code_of_the_script_runs(self):
        loud = Loud()
        described([loud, {loud: 1}, {loud}, weakref.ref(loud)])
        self.assertEqual(Loud.looked, 0)

    def test_limit(self):
        entries = described([[i] for i in range(100)], limit=10)
        self.assertLess(len(entries), 150)
        self.assertIn(("objects", "is", "the first 10"), entries)

    def test_cycle(self):
        cycle = []
        cycle.append(cycle)
        self.assertEqual(paths(cycle, cycle), [])


class Tensors(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.x = torch.randn(4, 3)

    def test_equal(self):
        for value in (
            self.x,
            self.x.clone().requires_grad_(),
            torch.nn.Linear(3, 2),
            self.x.to_sparse(),
            torch.tensor(float("nan")),
            torch.empty(0),
            self.x > 0,
            self.x.bfloat16(),
            self.x + 1j,
            torch.Generator(),
            torch.float32,
            self.x.numpy(),
            torch.nn.Parameter(self.x),
        ):
            self.assertEqual(paths(value, value), [])

    def test_values(self):
        other = self.x.clone()
        other[1, 2] += 0.5
        self.assertEqual(paths(self.x, other), ["v._version", "v values"])
        self.assertEqual(paths(self.x, self.x * (1 + 1e-6)), [])
        self.assertEqual(paths(self.x.double(), self.x.double() * (1 + 1e-5)), ["v values"])
        nan = self.x.clone()
        nan.view(-1).data[0] = float("nan")
        self.assertEqual(paths(self.x, nan), ["v values"])
        self.assertEqual(paths(torch.tensor([1, 2]), torch.tensor([1, 3])), ["v values"])

    def test_scale(self):
        """The rule is the tensor's scale, not the element's: what cancels has the rounding of what it was made of."""
        self.assertEqual(paths(torch.tensor([1000.0, 1e-6]), torch.tensor([1000.0, -1e-6])), [])
        self.assertEqual(paths(torch.tensor([1e-3, 1e-6]), torch.tensor([1e-3, -1e-6])), ["v values"])

    def test_metadata(self):
        self.assertEqual(paths(self.x, self.x.double())[0], "v")
        self.assertIn("v.stride()", paths(torch.zeros(2, 3), torch.zeros(3, 2).t()))
        self.assertIn("v.storage_offset()", paths(torch.zeros(4)[0:2], torch.zeros(4)[2:4]))
        self.assertEqual(paths(self.x, self.x.clone().requires_grad_()), ["v.requires_grad"])

    def test_version(self):
        other = self.x.clone()
        other.mul_(1)
        self.assertEqual(paths(self.x.clone(), other), ["v._version"])

    def test_memory_that_is_shared(self):
        y = self.x.clone()
        self.assertIn("v[1] shares memory with", paths([y, y.detach()], [y, y.clone()]))

    def test_gradient(self):
        def leaf(by):
            w = self.x.clone().requires_grad_()
            (w * by).sum().backward()
            return w

        self.assertEqual(paths(leaf(2), leaf(2)), [])
        self.assertEqual(paths(leaf(2), leaf(3)), ["v.grad values"])
        self.assertIn("v.grad", paths(leaf(2), self.x.clone().requires_grad_()))

    def test_graph(self):
        w = self.x.clone().requires_grad_()
        self.assertEqual(paths((w * 2).sum(), (w * 2).sum()), [])
        self.assertIn("v.grad_fn", paths((w * 2).sum(), (w * 2).sum().exp().log()))
        self.assertIn("v.grad_fn and what is behind it", paths(((w * 2).exp()).sum(), ((w * 2) + 0).exp().sum()))
        self.assertIn("v.grad_fn", paths((w * 2).sum(), (w * 2).sum().detach()))

    def test_what_a_graph_gives(self):
        """Two graphs of one shape with equal values: what they saved is another number."""
        w = self.x.clone().requires_grad_()

        def slope(by):
            return (w * by).sum() - (w.detach() * by).sum()

        self.assertEqual(paths([w, slope(2.0)], [w, slope(2.0)]), [])
        self.assertEqual(paths([w, slope(2.0)], [w, slope(3.0)]), ["gradient of v[1] by v[0]"])

    def test_freed(self):
        def loss(free):
            w = self.x.clone().requires_grad_()
            result = (w * w).sum()
            if free:
                result.backward()
            return result

        self.assertEqual(paths(loss(True), loss(True)), [])
        self.assertIn("v.grad_fn and what is behind it", paths(loss(True), loss(False)))

    def test_random_state(self):
        before = described(None)
        torch.rand(1)
        self.assertEqual(
            [path for path, _, _ in compare.differences(before, described(None))], ["torch's random state"]
        )

    def test_modes(self):
        before = described(None)
        with torch.no_grad():
            self.assertEqual([path for path, _, _ in compare.differences(before, described(None))], ["torch's modes"])


class Undetermined(unittest.TestCase):
    def report(self, interpreted, traced, again):
        return compare.report(described(interpreted), described(traced), described(again))

    def test_what_two_interpreted_runs_do_not_agree_in(self):
        self.assertEqual(self.report({"time": 1.0}, {"time": 2.0}, {"time": 3.0}), (None, "", 1))
        text, first, loose = self.report(
            {"time": 1.0, "loss": 1.0}, {"time": 2.0, "loss": 2.0}, {"time": 3.0, "loss": 1.0}
        )
        self.assertEqual((first, loose), ("locals['value']['loss']", 1))
        self.assertIn("2.0 in the trace's run, 1.0 in the interpreter's", text)


if __name__ == "__main__":
    unittest.main()
