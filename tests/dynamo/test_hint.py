"""torch.compile as a hint (main/torch_compile.py): what can be seen of it is as with torch's own, which python runs here
with the backend "eager"; nothing of torch's compiler is imported for it, and the loop is traced."""

import json
import os
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from compare import DYNVM, PYTHON, run  # noqa: E402

HEAD = """
    import copy, functools, io, os, pickle, sys
    import torch
    from torch import nn
    torch.manual_seed(0)
    compile = functools.partial(torch.compile, backend=os.environ["BACKEND"])
    def net():
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    x, y = torch.randn(16, 4), torch.randn(16, 2)
"""

SEEN = {
    "modules": """
        inner = net()
        made = compile(inner)
        print(type(made).__name__, list(made.state_dict()), [name for name, _ in made.named_parameters()], len(made), bool(made))
        print(made._orig_mod is inner, isinstance(made, nn.Module), isinstance(made, nn.Sequential))
        made.eval()
        made.label = "on the inner one"
        print(made.training, inner.training, inner.label, made.label, "label" in dir(made), hasattr(made, "nothing"))
        del made.label
        print(hasattr(inner, "label"), torch.equal(made(x), inner(x)), repr(made).splitlines()[0])
        made.train()
        print(inner.training, made.requires_grad_(False) is made, inner[0].weight.requires_grad)
        made.load_state_dict(compile(net()).state_dict())
        copied = copy.deepcopy(made)
        print(type(copied).__name__, copied._orig_mod is inner, torch.equal(copied(x), made(x)))
        import torch._dynamo
        print(isinstance(made, torch._dynamo.OptimizedModule), isinstance(inner, torch._dynamo.OptimizedModule))
    """,
    "functions": """
        def plain(x, *, by=2.0):
            "Multiplies."
            return (x * by).relu()
        made = compile(plain)
        print(made.__name__, made.__doc__, made.__wrapped__ is plain, made._torchdynamo_orig_callable is plain, torch.equal(made(x, by=3.0), plain(x, by=3.0)))
        @compile
        def f(x):
            return made(x).sin()
        @functools.partial(compile, fullgraph=True, dynamic=False)
        def g(x):
            return f(x) + 1
        print(g(x).sum().item() == (plain(x).sin() + 1).sum().item(), compile(compile(plain))._torchdynamo_orig_callable is plain)
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 2)
                self.forward = compile(self.forward)
            @torch.compiler.disable
            def loss(self, z):
                return z.square().mean()
            def forward(self, x):
                return self.loss(self.layer(x))
        model = Model()
        model(x).backward()
        print(model.layer.weight.grad.shape, torch.compiler.is_compiling(), torch.compiler.disable(plain)(x).shape)
        model.compile(backend=os.environ["BACKEND"])
        print(model(x).shape, torch.compile(plain, disable=True) is plain)
        torch.compiler.reset()
    """,
    "cond": """
        up, down = (lambda a: (a * 2).sum()), (lambda a: (a * 3).sum() - 1)
        w = torch.ones(3, requires_grad=True)
        for i in range(60):
            w.grad = None
            torch.cond(w.sum() > 2, up, down, (w,)).backward()
            with torch.no_grad():
                w -= 0.01 * w.grad
        print([round(each, 4) for each in w.tolist()], torch.cond(True, up, down, (w,)).item())
        print(torch.func.vmap(lambda a: torch.cond(a.sum() > 0, torch.sin, torch.cos, (a,)))(x).sum().item())
        for wrong in ((x > 0, up, down, (w,)), ("no", up, down, (w,)), (x.sum() > 0, 3, down, (w,)), (x.sum() > 0, up, down, (3,))):
            try:
                print(torch.cond(*wrong))
            except Exception as error:
                print(type(error).__name__, str(error)[:60])
    """,
    "errors": """
        for options in ({"mode": "nonsense"}, {"mode": "default", "options": {"a": 1}}, {"backend": "nonsense"}):
            try:
                torch.compile(net(), **options)(x)
            except Exception as error:
                print(type(error).__name__, str(error)[:40])
        try:
            torch.compile(net(), False)
        except TypeError:
            print("TypeError")
    """,
}

LOOP = """
    model = compile(net(), mode="max-autotune")
    @compile
    def loss_of(x, y):
        return nn.functional.mse_loss(model(x), y)
    for step in range(300):
        loss = loss_of(x, y)
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
                p.grad = None
    print(f"{loss.item():.4f}", "torch._dynamo.eval_frame" in sys.modules, "torch._inductor" in sys.modules)
"""


class Hint(unittest.TestCase):
    def run_text(self, program, text, options=(), backend="inductor"):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(textwrap.dedent(HEAD) + textwrap.dedent(text))
            file.flush()
            done = run(program, [*options, file.name], env={"BACKEND": backend, "OMP_NUM_THREADS": "1"})
        self.assertEqual(done.status, 0, done.stderr)
        return done.stdout

    def test_looks_like_torchs_own(self):
        for name, text in SEEN.items():
            with self.subTest(name):
                self.assertEqual(self.run_text(DYNVM, text), self.run_text(PYTHON, text, backend="eager"))

    def test_loop_is_traced_without_dynamo(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.json")
            seen = self.run_text(DYNVM, LOOP, [f"--report={path}"])
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
        loss, *rest = self.run_text(PYTHON, LOOP, backend="eager").split()
        self.assertEqual(seen.split(), [loss, "False", "False"])
        self.assertGreater(report["tensor_ops_compiled"], 0.9 * report["tensor_ops_total"])

    def test_cond_calls_the_branch(self):
        text = """
            total = torch.zeros(3)
            for i in range(80):
                total = total + torch.cond(total.sum() > 5, torch.cos, torch.exp, (total,))
            print(round(total.sum().item(), 4), "torch._dynamo.convert_frame" in sys.modules)
        """
        expected, imported = self.run_text(PYTHON, text).split()
        self.assertEqual(imported, "True")
        self.assertEqual(self.run_text(DYNVM, text).split(), [expected, "False"])

    def test_other_backends_are_torchs(self):
        text = """
            def backend(module, inputs):
                print("asked")
                return module.forward
            print(torch.compile(lambda x: x + 1, backend=backend)(x).shape)
        """
        self.assertEqual(self.run_text(DYNVM, text), "asked\ntorch.Size([16, 4])\n")

    def test_real(self):
        text = """
            import torch._dynamo
            print(type(torch.compile(net())) is torch._dynamo.OptimizedModule)
        """
        self.assertEqual(self.run_text(DYNVM, text, ["--torch-compile=real"]), "True\n")
        self.assertEqual(run(DYNVM, ["--torch-compile=odd", "-c", "pass"]).status, 2)


if __name__ == "__main__":
    unittest.main()
