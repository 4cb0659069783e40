"""Rows of tracer/late_writes.def against torch: the form that returns another tensor has the same arguments in each overload, computes the same, and autograd names it alike."""
import pathlib
import re
import unittest

import torch

DEF = pathlib.Path(__file__).parents[2] / "tracer" / "late_writes.def"
NAMES = re.findall(r'^L\("aten::(\w+)_"\)', DEF.read_text(), re.MULTILINE)


def arguments(schema):
    """Values for the arguments of an operation on a 4 x 4 tensor, by name and type; None: this test has none."""
    square, index = torch.rand(4, 4) + 0.5, torch.tensor([0, 2, 1, 3])
    by_name = {"index": index.unsqueeze(0).expand(4, 4) if "scatter" in schema.name else index, "indices": [index], "mask": square > 1, "vec1": square[0], "vec2": square[1], "vec": square[0],
               "mat": square, "mat1": square, "mat2": square.t(), "batch1": square[None], "batch2": square[None], "dim": 0, "rounding_mode": None, "reduce": "sum", "diagonal": 0, "dtype": None,
               "accumulate": False, "include_self": True}
    for argument in schema.arguments[1:]:
        kind = str(argument.type)
        if argument.name in by_name:
            yield by_name[argument.name]
        elif argument.name == "value" and "Tensor" in kind:
            yield torch.tensor(0.5)
        elif "Tensor" in kind:
            yield square * 0.75
        else:
            yield 1 if argument.name == "alpha" else 0.5


class LateWrites(unittest.TestCase):
    def test_there_are_rows(self):
        self.assertGreater(len(NAMES), 30)

    def test_forms_agree(self):
        for name in NAMES:
            in_place = getattr(torch.ops.aten, name + "_")
            for overload in in_place.overloads():
                schema = getattr(in_place, overload)._schema
                if "Tensor" not in str(schema.arguments[0].type) or schema.arguments[0].type.kind() != "TensorType":
                    continue
                if name == "scatter" and "reduce" in overload:  # has no derivative
                    continue
                with self.subTest(f"{name}.{overload}"):
                    other = getattr(getattr(torch.ops.aten, name), overload)
                    self.assertEqual([(a.name, str(a.type)) for a in other._schema.arguments], [(a.name, str(a.type)) for a in schema.arguments])
                    torch.manual_seed(0)
                    base = torch.rand(1, 4, 4) + 0.5 if name == "baddbmm" else torch.rand(4) + 0.5 if name == "addmv" else torch.rand(4, 4) + 0.5
                    given = list(arguments(schema))
                    tensors = [base.clone().requires_grad_() for _ in range(2)]
                    written = tensors[0].clone()
                    getattr(in_place, overload)(written, *positional(schema, given), **keywords(schema, given))
                    made = other(tensors[1].clone(), *positional(schema, given), **keywords(schema, given))
                    torch.testing.assert_close(made, written, rtol=0, atol=0)
                    self.assertEqual(made.stride(), written.stride())
                    self.assertEqual(made.grad_fn.name(), written.grad_fn.name())
                    for result in (made, written):
                        result.sum().backward()
                    torch.testing.assert_close(tensors[1].grad, tensors[0].grad, rtol=0, atol=0)


def positional(schema, given):
    return [value for argument, value in zip(schema.arguments[1:], given) if not argument.kwarg_only]


def keywords(schema, given):
    return {argument.name: value for argument, value in zip(schema.arguments[1:], given) if argument.kwarg_only}


if __name__ == "__main__":
    unittest.main()
