"""Makes small random programs that use torch: the same seed gives the same text.

Usage:   generate.py SEED            prints the program
Inputs:  a seed. Outputs: the text of a program that prints all its results with six digits.
Invariants: a program needs nothing but torch, ends within a second, and is numerically tame: rounding of 1e-7 in its inputs
  changes no printed number by more than the suite's tolerance (run.py --self-test). About 60 lines after the header.
What they do: loops over tensor expressions, branches on values, numbers that change, in-place operations and writes
  through views, lists and dicts of tensors, helper functions and closures, small classes, exceptions, prints in the
  middle, random tensors, integer and double tensors, gradients by backward() and autograd.grad, optimizer steps.
Tests:   run.py, run.py --self-test.
"""

import random
import sys

from expressions import Expressions, Variable

HEADER = '''\
import math

import torch
import torch.nn.functional as F


def digits(x):
    text = f"{x:.6g}"
    return text if set(text) & set(".en") else text + ".0"


def show(name, value):
    if isinstance(value, torch.Tensor):
        flat = value.detach().flatten()
        kind = f"{str(value.dtype)[6:]} {list(value.shape)}{' grad' if value.requires_grad else ''}"
        if flat.is_floating_point():
            print(name, kind, f"mean {digits(flat.double().mean().item())}", *map(digits, flat.tolist()[:24]))
        else:
            print(name, kind, flat.sum().item(), flat.tolist()[:24])
    elif isinstance(value, float):
        print(name, digits(value))
    elif isinstance(value, dict):
        for key in value:
            show(f"{name}[{key!r}]", value[key])
    elif isinstance(value, (list, tuple)):
        print(name, type(value).__name__, len(value))
        for index, item in enumerate(value):
            show(f"{name}[{index}]", item)
    else:
        print(name, repr(value))

'''
NUMBERS = ("s", "(i % 4) * 0.25", "math.sin(i * 0.7)", "(1 / (i + 1))", "0.9 ** i", "k % 3", "(k * 0.1 - 0.5)")
HELPERS = (
    ("mix", "def mix(a, b, s=0.5, *, shift=0.0):\n    return torch.tanh(a * s + b * (1 - s) + shift)"),
    ("gate", "def gate(a, b, s):\n    if s > 0.5:\n        return a * torch.sigmoid(b)\n    return torch.sigmoid(a) * b * 0.9"),
    ("swirl", "def swirl(a, b, s):\n    out = a\n    for j in range(3):\n        out = torch.sin(out + b * (j * 0.2))\n    return out * s"),
    ("fold", "def fold(a, *rest):\n    total = a\n    for r in rest:\n        total = total + torch.as_tensor(r) * 0.2\n"
             "    return total.clamp(-3, 3)"),
    ("bump", "bump = lambda a, b, s: torch.exp(-(a - b).square()) + s * 0.1"),
)
CLASSES = (
    ("Layer", "class Layer:\n    count = 0\n\n    def __init__(self, gain):\n        self.gain = gain\n\n"
              "    def __call__(self, a, b, s):\n        Layer.count += 1\n        return F.softplus(a * self.gain) - b * s * 0.3",
     "layer = Layer(0.7)", "layer"),
    ("Module", "class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.bias = torch.nn.Buffer(torch.tensor(0.1))\n\n"
               "    def forward(self, a, b, s):\n        return torch.relu(a + self.bias) - torch.relu(-b) * s",
     "net = Net()", "net"),
)


class Program:
    """One program while it is written."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.indent = 0
        self.n = self.random.randint(3, 6)
        self.m = self.random.choice([k for k in range(2, 7) if k != self.n])
        self.shapes = [(self.n,), (self.m, self.n), (self.m, self.n), (2, self.m, self.n), (self.n, self.n)]
        self.with_gradients = self.random.random() < 0.55
        self.in_function = self.random.random() < 0.5
        self.variables, self.shown = [], ["s", "k"]
        helpers = self.random.sample(HELPERS, self.random.randint(0, 3))
        self.definitions = [text for _, text in helpers]
        names = [name for name, _ in helpers]
        self.made = []
        if self.random.random() < 0.4:
            _, text, made, name = self.random.choice(CLASSES)
            self.definitions.append(text)
            self.made.append(made)
            names.append(name)
        self.expressions = Expressions(self.random, self.variables, list(NUMBERS), names, self.emit)

    def emit(self, text):
        for line in text.split("\n"):
            self.lines.append("    " * self.indent + line if line else "")

    def chance(self, probability):
        return self.random.random() < probability

    def expression(self, shape, dtype="f32", depth=3, grads=True):
        return self.expressions.make(shape, dtype, depth, grads)

    def plain(self, shape, dtype="f32", depth=3):
        """An expression that surely requires no gradients."""
        text, grad = self.expression(shape, dtype, depth, grads=not self.chance(0.6))
        return f"({text}).detach()" if grad else text

    def buffer(self, dtypes=("f32",)):
        """A variable of the program that requires no gradients."""
        fitting = [v for v in self.variables if not v.grad and v.dtype in dtypes and v.name[0] in "xdq"]
        return self.random.choice(fitting) if fitting else None

    # --- before the loop -------------------------------------------------------------------------------------------

    def set_up(self, seed):
        self.emit(f"torch.manual_seed({seed})")
        self.emit(f"n = {self.n}")
        self.emit("W = torch.randn(n, n) * 0.4")
        self.emit("ORDER = torch.randperm(n)")
        self.emit("s, k = 0.5, 1")
        for made in self.made:
            self.emit(made)
        for number in range(self.random.randint(2, 3)):
            self.define(f"x{number}", self.random.choice(self.shapes), "f32", "torch.randn({})")
        if self.chance(0.35):
            self.define("d0", self.random.choice(self.shapes), "f64", "torch.randn({}, dtype=torch.float64)")
        if self.chance(0.4):
            self.define("q0", self.random.choice(self.shapes), "i64", "torch.randint(0, 9, ({},))")
        if self.with_gradients:
            for number in range(self.random.randint(1, 3)):
                self.define(f"p{number}", self.random.choice(self.shapes), "f32", "torch.randn({}, requires_grad=True)", grad=True)

    def define(self, name, shape, dtype, template, grad=False):
        self.emit(f"{name} = {template.format(', '.join(map(str, shape)))}")
        self.variables.append(Variable(name, shape, dtype, grad))
        self.shown.append(name)

    def parameters(self):
        return [v for v in self.variables if v.name[0] == "p"]

    # --- statements of the loop ------------------------------------------------------------------------------------

    def assign(self):
        v = self.buffer(("f32", "f64", "i64"))
        text = self.plain(v.shape, v.dtype)
        if v.dtype == "i64":
            self.emit(f"{v.name} = {text} % 23")
        else:
            self.emit(self.random.choice(["{0} = torch.tanh({1})", "{0} = {0} * 0.5 + torch.sin({1})", "{0} = ({1}).clamp(-2, 2)"])
                      .format(v.name, text))

    def in_place(self):
        v = self.buffer(("f32", "f64"))
        text = self.plain(v.shape, v.dtype, 2)
        self.emit(self.random.choice(
            ["{0}.mul_(0.5).add_({1}, alpha=0.25)", "{0} += 0.1 * torch.tanh({1})", "{0}.copy_(torch.sin({1}))", "{0}.lerp_(torch.tanh({1}), 0.3)",
             "{0}[...] = torch.cos({1})", "{0}.sub_({1}).clamp_(-1.5, 1.5)", "{0}.mul_(torch.sigmoid({1}))", "{0} *= 0.8\n{0}.tanh_()"])
                  .format(v.name, text))

    def through_view(self):
        v = self.buffer()
        forms = ["{0}[..., 1:3] = {0}[..., 0:2] * 0.5", "{0}[..., i % n] += s * 0.1", "{0}.view(-1)[::2] *= 0.9", "{0}[..., -1].fill_(s)",
                 "{0}[..., ORDER[:2]] = 0.25", "{0}.flatten()[0] = 0.5", "{0}.transpose(0, -1)[0].mul_(0.7)", "{0}.narrow(-1, 0, 2).add_(k % 3)\n{0}.clamp_(-2, 2)"]
        if len(v.shape) > 1:
            forms += ["{0}[0] = {0}[1] * 0.5 + s", "row = {0}[i % 2]\nrow.neg_()", "{0}[:, 1:].sin_()", "a, b = {0}[0], {0}[-1]\na.add_(b, alpha=0.1)\na.clamp_(-2, 2)"]
        self.emit(self.random.choice(forms).format(v.name))

    def numbers(self):
        self.emit(self.random.choice(["s = s * 0.9 + 0.05", "s = math.sin(i * 0.3) * 0.5 + 0.5", "k = k * 3 % 17", "k += i % 3", "s, k = 1.0 - s, k + 1",
                                      "k = (k << 1 ^ i) & 31", "s = min(max(s + 0.1, -1.0), 1.0) if i % 2 else s / 2", "s = round(0.1 * (i % 7), 2)"]))

    def block(self, statements, header):
        self.emit(header)
        self.indent += 1
        before = len(self.lines)
        for statement in statements:
            statement()
        if len(self.lines) == before:
            self.emit("pass")
        self.indent -= 1

    def branch(self):
        v = self.buffer()
        condition = self.random.choice(
            ["{0}.mean().item() > 0.05", "bool(({0} > 0.6).any())", "{0}.sum() < s", "float({0}.view(-1)[0]) > 0.1", "i % 3 == 1", "k % 2",
             "({0}.abs().max() > 1.0).item()", "torch.all({0} < 1.2)", "{0}.norm().item() > {0}.numel() ** 0.5", "s > 0.4 and {0}.flatten()[1] > 0",
             "i > 6", "not ({0}.min() > -0.5)"]).format(v.name)
        self.block(self.simple(1), f"if {condition}:")
        if self.chance(0.3):
            w = self.buffer()
            self.block(self.simple(1), f"elif {w.name}.var().item() < 0.4:")
        if self.chance(0.6):
            self.block(self.simple(1), "else:")

    def inner_loop(self):
        header = self.random.choice(["for j in range(3):", "for j in range(i % 4):", "for j, scale in enumerate((0.5, 0.9)):", "for j in reversed(range(2)):"])
        statements = self.simple(1)
        if self.chance(0.3):
            statements.append(lambda: self.emit("if j == 1 and i % 2:\n    break" if self.chance(0.5) else "if j == 0:\n    continue\nk += 1"))
        self.block(statements, header)

    def while_loop(self):
        v = self.buffer()
        self.emit("count = 0")
        self.block([lambda: self.emit(f"{v.name} = {v.name} * 0.7\ncount += 1")], f"while {v.name}.abs().max() > 0.4 and count < 5:")

    def keep(self):
        v = self.buffer(("f32", "f64", "i64"))
        form = self.random.choice(
            ["hist.append({0}.sum().item())", "kept.append({0}.clone())\nif len(kept) > 3:\n    kept.pop(0)", "kept.append({0}[..., 0])\nkept = kept[-3:]",
             "state['last'] = {0}", "state[i % 3] = {0}.double().mean()", "hist.append(float({0}.flatten()[-1]) + k)", "state['n'] = state.get('n', 0) + {0}.numel()",
             "kept = [t * 1 for t in kept[-2:]] + [{0} + 0]", "state.update(total=state.get('total', 0) + {0}.double().sum() * 0.01)"])
        self.emit(form.format(v.name))

    def raises(self):
        v = self.buffer()
        bad = self.random.choice(["{0} @ torch.ones({0}.shape[-1] + 1)", "{0}.view(-1, 1000)", "{0} + torch.ones(97)", "{0}[100]", "{0}.item()",
                                  "[][k]", "1 / (i - i)", "int('x')", "{0}.nothing"]).format(v.name)
        self.emit(f"try:\n    if i % 4 == 3:\n        {bad}\n    s = s * 0.95\nexcept (RuntimeError, LookupError, ArithmeticError, ValueError, AttributeError) as error:\n"
                  "    print(i, type(error).__name__)" + ("\nfinally:\n    k += 1" if self.chance(0.4) else ""))

    def prints(self):
        v = self.buffer()
        self.emit(self.random.choice(["if i % 5 == 0:\n    show(f'at {{i}}', {0})", "if i % 4 == 2:\n    print(i, f'{{s:.5f}}', k, f'{{{0}.mean().item():.5f}}')",
                                      "if i == 7:\n    print({0}.shape, {0}.dtype, {0}.stride(), {0}.is_contiguous())"]).format(v.name))

    def random_tensors(self):
        v = self.buffer()
        self.emit(self.random.choice(["{0} = {0} * 0.5 + torch.rand({1}) * 0.3", "{0} = F.dropout({0}, 0.3) * 0.5", "{0}.add_(torch.randn({1}), alpha=0.1)\n{0}.clamp_(-2, 2)",
                                      "{0} = {0} + (torch.randint(0, 3, ({1},)) - 1) * 0.1\n{0} = {0}.clamp(-2, 2)"])
                  .format(v.name, ", ".join(map(str, v.shape))))

    def simple(self, count):
        return [self.random.choice((self.assign, self.assign, self.in_place, self.through_view, self.numbers, self.keep)) for _ in range(count)]

    def statement(self):
        self.random.choice((self.assign, self.assign, self.assign, self.in_place, self.in_place, self.through_view, self.numbers, self.branch,
                            self.branch, self.inner_loop, self.while_loop, self.keep, self.keep, self.raises, self.prints, self.random_tensors))()

    # --- gradients -------------------------------------------------------------------------------------------------

    def make_optimizer(self):
        """Sets up how parameters are updated; gives the lines that do it."""
        names = ", ".join(v.name for v in self.parameters())
        clear = "for p in params:\n    p.grad = None"
        manual = ("with torch.no_grad():\n    for p in params:\n        if p.grad is not None:\n            p -= 0.05 * p.grad", clear)
        kind = self.random.choice(["manual", "sgd", "momentum", "adam", "accumulate", "grad"])
        self.emit(f"params = [{names}]")
        if kind in ("sgd", "momentum", "adam"):
            # A large eps: without it Adam turns the rounding of a gradient that is zero into a step.
            made = {"sgd": "SGD(params, lr=0.05)", "momentum": "SGD(params, lr=0.03, momentum=0.8)", "adam": "Adam(params, lr=0.02, eps=0.01)"}[kind]
            self.emit(f"optimizer = torch.optim.{made}")
            return "optimizer.zero_grad()", "optimizer.step()", "loss.backward()"
        if kind == "accumulate":
            return "", "if i % 3 == 2:\n" + "\n".join("    " + line for text in manual for line in text.split("\n")), "(loss / 3).backward()"
        if kind == "grad":
            return "", ("for p, g in zip(params, torch.autograd.grad(loss, params, allow_unused=True)):\n    if g is not None:\n"
                        "        with torch.no_grad():\n            p.sub_(g, alpha=0.05)"), ""
        return clear, manual[0], "loss.backward()"

    def gradient_step(self, clear, update, backward):
        for line in clear, :
            if line:
                self.emit(line)
        terms = []
        for v in self.random.sample(self.parameters(), self.random.randint(1, len(self.parameters()))):
            text, _ = self.expression(v.shape, "f32", 3)
            terms.append(self.random.choice(["({0} * {1}).tanh().pow(2).mean()", "({0} + {1}).sin().mean()", "F.mse_loss(torch.tanh({0}), torch.sigmoid({1}))",
                                             "torch.log1p(({0} - {1}).square().mean())"]).format(v.name, text))
        if self.chance(0.2):
            p = self.parameters()[0].name
            terms.append(f"sum(t.mean() for t in ({p}, {p} * s)) * 0.1")
        self.emit("loss = " + " + ".join(terms))
        if self.chance(0.25):
            self.emit("if loss.item() > 0.5:\n    loss = loss * 0.5")
        if backward:
            self.emit(backward)
        if self.chance(0.2) and backward:
            self.emit("torch.nn.utils.clip_grad_norm_(params, 0.5)")
        self.emit(update)
        self.emit("hist.append(loss.item())" if self.chance(0.6) else "kept = kept[-2:] + [loss.detach()]")

    # --- the whole -------------------------------------------------------------------------------------------------

    def text(self, seed):
        self.lines = []
        for definition in self.definitions:
            self.emit(definition + "\n")
        if self.in_function:
            self.emit("def main():")
            self.indent = 1
        self.set_up(seed)
        self.emit("hist, kept, state = [], [], {}")
        optimizer = self.make_optimizer() if self.with_gradients else None
        self.emit(f"for i in range({self.random.randint(50, 70)}):")
        self.indent += 1
        for _ in range(self.random.randint(2, 4)):
            self.statement()
        if optimizer:
            self.gradient_step(*optimizer)
        for _ in range(self.random.randint(1, 3)):
            self.statement()
        self.indent -= 1
        for name in self.shown + ["hist", "kept", "state"]:
            self.emit(f"show({name!r}, {name})")
        for v in self.parameters():
            self.emit(f"show('{v.name}.grad', {v.name}.grad)")
        if self.in_function:
            self.indent = 0
            self.emit("\n\nmain()")
        return HEADER + "\n" + "\n".join(self.lines) + "\n"


def generate(seed):
    """The program's text."""
    return Program(seed).text(seed)


if __name__ == "__main__":
    print(generate(int(sys.argv[1])), end="")
