"""The tables of training programs: nothing of torch is forgotten, and each row makes what it says."""

import os
import random
import sys
import unittest
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tables  # noqa: E402

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None

# Names of torch.nn.functional that are no operations for programs.
NO_OPERATION = {"assert_int_or_pair", "boolean_dispatch", "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"}
# Containers and criterions of torch.nn that hold no numbers of their own are in the tables too.
TRIES = 60


def public(module):
    return [name for name in dir(module) if not name.startswith("_")]


@unittest.skipIf(torch is None, "no torch")
class Coverage(unittest.TestCase):
    def named(self, *names):
        """What tables have rows for or leave out with a reason."""
        found = set()
        for name in names:
            rows, without = tables.load(name)
            found.update(word for row in rows for word in row.names)
            for word, why in without.items():
                self.assertGreater(len(why), 8, f"{name}: {word} is left out without a reason")
            found.update(without)
        return found

    def test_each_class_of_torch_nn(self):
        classes = {name for name in public(torch.nn) if isinstance(getattr(torch.nn, name), type) and issubclass(getattr(torch.nn, name), torch.nn.Module)}
        self.assertEqual(classes - self.named("modules.def", "losses.def"), set(), "rows are missing in modules.def or losses.def")

    def test_each_function(self):
        functions = {name for name in public(F) if callable(getattr(F, name)) and not isinstance(getattr(F, name), type) and name not in NO_OPERATION
                     and getattr(getattr(F, name), "__module__", "torch") != "typing"}
        self.assertEqual(functions - self.named("functional.def", "losses.def"), set(), "rows are missing in functional.def or losses.def")

    def test_each_optimizer(self):
        optimizers = {name for name in public(torch.optim) if isinstance(getattr(torch.optim, name), type)}
        self.assertEqual(optimizers - self.named("optimizers.def"), set())

    def test_each_scheduler(self):
        from torch.optim import lr_scheduler
        schedulers = {name for name in public(lr_scheduler) if isinstance(getattr(lr_scheduler, name), type)
                      and (issubclass(getattr(lr_scheduler, name), lr_scheduler.LRScheduler) or name == "ReduceLROnPlateau")}
        self.assertEqual(schedulers - self.named("schedulers.def"), set())


@unittest.skipIf(torch is None, "no torch")
class Rows(unittest.TestCase):
    SAMPLES = {"V": (4, 6), "S": (4, 4, 8), "I": (3, 4, 6, 6), "D": (3, 2, 4, 4, 4), "T": (3, 4, 8)}

    def setUp(self):
        torch.manual_seed(0)
        self.rng = random.Random(0)
        warnings.simplefilter("ignore")

    def test_each_layer(self):
        """Each row makes a layer for each of its forms that can be trained."""
        import layers
        for table in ("modules.def", "functional.def"):
            for row in tables.load(table)[0]:
                for form in "VSIDT" if row[1] == "*" else row[1].split():
                    x = torch.randint(0, layers.TOKENS, (3, 5)) if form == "K" else torch.randn(self.SAMPLES[form])
                    reasons = []
                    for _ in range(TRIES):
                        try:
                            layers.run([layers.drawn(row, table == "modules.def", x, self.rng)], x)
                            break
                        except layers.Unfit as error:
                            reasons.append(str(error))
                    else:
                        self.fail(f"{row} makes no layer for {form}: {set(reasons)}")

    def test_each_loss(self):
        """Each row gives a loss with a gradient for each of its forms."""
        from program import Program
        from types import SimpleNamespace
        for row in tables.load("losses.def")[0]:
            for form in "VSIDT" if row[1] == "*" else row[1].split():
                program = Program.__new__(Program)
                program.rng, program.losses, program.words = self.rng, [row], set()
                program.model = SimpleNamespace(y=torch.randn(self.SAMPLES[form]))
                program.choose_loss()
                self.assertEqual(program.row, row, f"{row} gives no loss for {form}")

    def test_each_optimizer_and_scheduler(self):
        from torch.optim import lr_scheduler
        for row in tables.load("optimizers.def")[0]:
            for _ in range(6):
                weight = torch.nn.Parameter(torch.randn(3, 2))
                weight.grad = torch.ones(3, 2)
                if "only" in row[2]:
                    weight.grad = weight.grad.to_sparse(1)
                optimizer = eval(f"torch.optim.{row[0]}([weight], {tables.draw(row[1], self.rng)})", {"torch": torch, "weight": weight})
                before = weight.detach().clone()

                def closure():
                    weight.grad = 2 * weight.detach()
                    return (weight ** 2).sum()

                optimizer.step(*([closure] if "closure" in row[2] else []))
                self.assertFalse(torch.equal(before, weight.detach()), f"{row} does not step")
        for row in tables.load("schedulers.def")[0]:
            optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
            scheduler = eval(tables.draw(row[1], self.rng).replace("$o", "o"), {"lr_scheduler": lr_scheduler, "o": optimizer})
            loss = torch.tensor(1.0)
            optimizer.step()
            scheduler.step(*([eval(tables.draw(row[2], self.rng), {"loss": loss})] if row[2] else []))


class Texts(unittest.TestCase):
    def test_alternatives(self):
        rng = random.Random(1)
        self.assertEqual({tables.draw("a{b|c{d|}}e", rng) for _ in range(60)}, {"abe", "acde", "ace"})
        self.assertRaises(ValueError, tables.draw, "a{b", rng)

    def test_closing(self):
        self.assertEqual(tables.closing("f(a[1], (b))c", 1), 11)

    def test_all_texts_can_be_drawn(self):
        rng = random.Random(2)
        for name in ("modules.def", "functional.def", "losses.def", "optimizers.def", "schedulers.def"):
            for row in tables.load(name)[0]:
                for column in row.columns:
                    self.assertNotIn("{", tables.draw(column, rng), row)
        for section, rows in tables.load_blocks("steps.def").items():
            self.assertTrue(rows, section)
            for block in rows:
                self.assertNotIn("{", tables.draw(block.text, rng), block.text)


if __name__ == "__main__":
    unittest.main()
