"""torch._dynamo under dynvm (main/lazy_dynamo.py): training does not load it; whoever needs more of it than training does finds all of it, and sees what python shows."""

import os
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from compare import DYNVM, PYTHON, run  # noqa: E402

TRAINING = """
    import sys
    import torch
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    for i in range(30):
        optimizer.zero_grad()
        model(torch.ones(3, 4)).pow(2).mean().backward()
        optimizer.step()
        scheduler.step()
    torch.save(optimizer.state_dict(), "/dev/null")
"""
LOADED = """
    print("torch._dynamo" in sys.modules, "torch._dynamo.eval_frame" in sys.modules)
"""
# Of each: what is printed, warnings and tracebacks too, is what python prints.
SEEN = {
    "submodule": """
        import torch._dynamo.testing
        print(torch._dynamo.testing.__name__, torch._dynamo.testing is sys.modules["torch._dynamo.testing"])
    """,
    "names": """
        import torch._dynamo as own
        print(own.config.suppress_errors, "eval_frame" in dir(own), own.__name__, own.__spec__.name, own.__file__ == torch._dynamo.__file__, repr(own))
        own.config.suppress_errors = True
        own.added = 1
        print(torch._dynamo.config.suppress_errors, torch._dynamo.added, sys.modules["torch._dynamo"] is torch._dynamo)
        try:
            own.no_such_name
        except AttributeError as error:
            print(error)
    """,
    "compiled": """
        @torch.compile(backend="eager")
        def f(x):
            torch._dynamo.graph_break()
            return x.sin() + 1
        print(f(torch.ones(2)))
        optimizer.step()
        optimizer.zero_grad()
        print([name for name in dir(torch.optim.SGD.add_param_group.__wrapped__.__dynamo_disable) if name.startswith("_torchdynamo")])
    """,
    "disabled": """
        @torch._dynamo.disable
        def f(x):
            return x + 1
        print(f(1), f._torchdynamo_disable, f.__name__)
    """,
    "warnings": """
        import warnings
        weight, bias = model.parameters()
        torch.optim.SGD([weight, weight, bias], lr=0.1)
        import inspect
        print(inspect.getmodule(torch.nn.Linear).__name__)
        optimizer.add_param_group({"params": [1]})
    """,
}


class Lazy(unittest.TestCase):
    def run_text(self, program, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "script.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(textwrap.dedent(TRAINING) + textwrap.dedent(text))
            done = run(program, [path], env={"OMP_NUM_THREADS": "1"})
        return done.status, done.stdout, done.stderr.replace(folder, "")

    def test_training_does_not_load_it(self):
        self.assertEqual(self.run_text(PYTHON, LOADED), (0, "True True\n", ""))
        self.assertEqual(self.run_text(DYNVM, LOADED), (0, "True False\n", ""))

    def test_all_of_it_is_there(self):
        for name, text in SEEN.items():
            with self.subTest(name):
                self.assertEqual(self.run_text(DYNVM, text), self.run_text(PYTHON, text))


if __name__ == "__main__":
    unittest.main()
