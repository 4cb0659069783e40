"""Makes random training programs: the same seed gives the same text.

Usage:   program.py SEED            prints the program
Inputs:  a seed. Outputs: the text of a script that trains a small model for 6 to 20 steps and prints losses, and at its end everything that the
         training has changed (prelude.py's show): parameters, gradients, buffers, version counters, optimizers, random states.
Method:  a model (models.py), data, a loss (losses.def), an optimizer (optimizers.def) and perhaps a scheduler; a recipe for the step, with rows of
         steps.def at its points; the loop around it in one of the forms below (LOOPS).
Invariants: a program needs nothing but torch and numpy and ends within a second or so. Learning rates are small, so that rounding stays rounding.
Tests:   test_training.py.
"""

import ast
import functools
import os
import random
import re
import sys

import tables
from layers import TOKENS, fill_sizes, namespace
from models import Model

HERE = os.path.dirname(os.path.abspath(__file__))
INPUTS = {"V": ((6,), (4,), (8,), (17,)), "S": ((4, 8), (3, 6), (2, 9)), "I": ((4, 6, 6), (3, 5, 7), (1, 8, 8), (2, 4, 4)),
          "D": ((2, 4, 4, 4), (3, 2, 4, 5)), "T": ((4, 8), (5, 6), (3, 4)), "K": ((5,), (3,))}
LOOPS = ("top", "main", "main", "function", "function", "closure", "closure", "method", "generator", "map", "while", "nested", "loader", "twice", "recursion")
STEPS = (6, 8, 9, 10, 12, 12, 15, 18, 20)


@functools.lru_cache(maxsize=None)
def table(name):
    return tables.load(name)[0]


@functools.lru_cache(maxsize=None)
def blocks():
    return tables.load_blocks("steps.def")


@functools.lru_cache(maxsize=None)
def prelude():
    """(the text that every program begins with, name -> text of what it may need)."""
    with open(os.path.join(HERE, "prelude.py"), encoding="utf-8") as file:
        text = file.read()
    lines, always, needed = text.splitlines(), [], {}
    for node in ast.parse(text).body[1:]:
        part = "\n".join(lines[node.lineno - 1:node.end_lineno])
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            always.append(part)
        elif node.name in ("show", "show_random"):
            always += ["", "", part]
        else:
            needed[node.name] = part
    return "\n".join(always) + "\n", needed


def with_prelude(body):
    """The whole text of a program."""
    always, needed = prelude()
    used, text = [], body
    while True:
        more = [name for name in needed if name not in used and re.search(rf"\b{name}\b", text)]
        if not more:
            break
        used += more
        text = body + "".join(needed[name] for name in used)
    return always + "".join(f"\n\n{needed[name]}\n" for name in needed if name in used) + "\n\n" + body


def indented(lines, depth=1):
    return ["    " * depth + line if line else "" for line in lines]


class Program:
    """One program while it is made."""

    def __init__(self, seed):
        import torch
        self.seed, self.rng = seed, random.Random(seed)
        torch.manual_seed(seed)
        random.seed(seed)
        namespace()["np"].random.seed(seed % 2 ** 32)
        rng = self.rng
        self.float64 = rng.random() < 0.15
        self.state = []         # names that live longer than a step, in the order of their making
        self.setup = []         # lines in front of the loop
        self.definitions = []
        self.choose_model(torch)
        self.choose_loss()
        self.choose_optimizer()
        self.steps = rng.choice(STEPS)

    def chance(self, probability):
        return self.rng.random() < probability

    # ---- parts

    def choose_model(self, torch):
        rng = self.rng
        self.batch = rng.choice((2, 3, 4, 4, 5))
        while True:
            form = rng.choice("VVVSIIDTTKK")
            self.sizes = rng.choice(INPUTS[form])
            x = torch.randint(0, TOKENS, (self.batch, *self.sizes)) if form == "K" else torch.randn(self.batch, *self.sizes)
            self.form, self.model = form, Model(rng, x)
            losses = [row for row in table("losses.def") if self.fits(row)]
            if losses:
                break
        self.words = self.model.words()
        self.losses = losses
        self.gan = "module" in self.words and form != "K" and "lazy" not in self.words and self.chance(0.15)

    def fits(self, row):
        form = {2: "V", 3: "ST", 4: "I", 5: "D"}[self.model.y.dim()]
        return row[1] == "*" or any(one in row[1].split() for one in form)

    def choose_loss(self):
        """self.loss (text with y, t), self.target (text with n), and what they need in front of the loop."""
        import layers
        rng, y, names = self.rng, self.model.y, layers.namespace()
        torch = names["torch"]
        sizes = list(y.shape[1:])
        words = {"K": str(sizes[0]), "last": str(sizes[-1]), "sizes": ", ".join(map(str, sizes)), "rest": ", ".join(map(str, sizes[1:])),
                 "w": "w0.expand_as(y)", "u": "u0", "y": "y", "t": "t", "z": f"torch.randn(len(y), {', '.join(map(str, sizes))})"}

        def fill(text):
            return re.sub(r"\$(K|last|sizes|rest|w|u|y|t|z)\b", lambda m: words[m[1]], text)

        for _ in range(30):
            self.setup, self.loss_parameters = [], []
            row = rng.choice(self.losses)
            loss, self.target = fill(tables.draw(row[2], rng)), fill(tables.draw(row[3], rng))
            local = {"n": len(y), "y": (y * 1.0).requires_grad_(), "float_type": torch.float32}
            try:
                for mark in ("$N(", "$M("):
                    if mark in loss:
                        start = loss.index(mark)
                        end = tables.closing(loss, start + 2)
                        made = layers.tidy(loss[start + 3:end]).replace(", )", ")")
                        loss = loss[:start] + "crit" + loss[end + 1:]
                        self.setup.append(f"crit = {made}")
                        self.loss_parameters = ["crit"] if mark == "$M(" else []
                if "w0" in loss:
                    self.setup.append(f"w0 = torch.rand({words['sizes']}) + 0.1")
                if "u0" in loss:
                    self.setup.append(f"u0 = torch.rand({words['K']}) + 0.1")
                exec("\n".join(self.setup), names, local)
                everything = {**names, **local}
                everything["t"] = eval(self.target, everything)
                value = eval(loss, everything)
                if value.dim():
                    loss = f"({loss}){rng.choice(('.mean()', '.sum()', '.mean(0).sum()', '.square().mean().sqrt()'))}"
                    value = eval(loss, everything)
                if value.dim() or not value.isfinite() or value.abs() > 1e4:
                    continue
                value.backward()
                if not local["y"].grad.isfinite().all():
                    continue
            except Exception:
                continue
            if abs(value.item()) > 20:
                loss += " * 0.05"
            self.loss, self.row = loss, row
            if "log_prob(torch.dist" in loss or "entropy" in loss:
                self.words.discard("twice")
            return
        self.setup, self.loss, self.target, self.loss_parameters, self.row = [], "y.square().mean()", "0", [], None

    def choose_optimizer(self):
        """self.optimizer: the expression without parameters."""
        rng = self.rng
        while True:
            row = rng.choice(table("optimizers.def"))
            words = row[2].split()
            if "only" in words and "sparse" not in self.words:
                continue
            if "sparse" in self.words and "sparse" not in words:
                continue
            if "matrices" in words and not re.search(r"nn\.Linear\(|p\d", self.model.text):
                continue
            break
        self.optimizer_words = words
        self.optimizer_name, self.optimizer_arguments = row[0], tables.draw(row[1], rng)
        self.closure = "closure" in words or self.chance(0.05)

    def make_optimizer(self, model, plain):
        rng = self.rng
        params = "@params" if plain or self.loss_parameters else f"{model}.parameters()"
        if "closure" in self.optimizer_words:
            params = "[p for p in @params if p.requires_grad]"
        elif "matrices" in self.optimizer_words:
            params = "[p for p in @params if p.dim() == 2]"
        elif "only" in self.optimizer_words:
            params = "[p for p in @params if p.dim() == 2]"
        elif not plain and self.chance(0.15) and "sparse" not in self.words:
            params = rng.choice(("[dict(params=[p]) for p in @params]", "[dict(params=@params[:1], lr=0.005), dict(params=@params[1:])]",
                                 "[dict(params=[p], lr=0.001 * (k + 1)) for k, p in enumerate(@params)]", "(p for p in @params if p.requires_grad)",
                                 f"{model}.named_parameters()"))
            if params.startswith("[dict(params=@params[:1]"):
                params = f"({params} if len(@params) > 1 else @params)"
        return f"torch.optim.{self.optimizer_name}({params}, {self.optimizer_arguments})"

    def pick(self, section, words=None):
        fitting = [block for block in blocks().get(section, ()) if block.fits(self.words if words is None else words)]
        return self.rng.choices(fitting, [block.weight for block in fitting])[0] if fitting else None

    def keep(self, line):
        """A line in front of the loop that makes state."""
        self.setup.append(line)
        for name in re.findall(r"@([a-z_]+)(?=[^=(]*=[^=])", re.sub(r"\(.*\)", "()", line)):
            if name not in self.state:
                self.state.append(name)

    def section(self, name, count):
        """Lines of some rows."""
        lines = []
        for _ in range(count):
            block = self.pick(name)
            if block is None:
                continue
            text = tables.draw(block.text, self.rng)
            before = [tables.draw(line, self.rng) for line in block.before]
            if before and before[0].split(" =")[0].split(",")[0] in "\n".join(self.setup):
                before = []
            for line in before:
                self.keep(line)
            lines += text.split("\n")
        return lines

    # ---- data

    def sample_text(self):
        sizes = ", ".join(map(str, self.sizes))
        if self.form == "K":
            return f"torch.randint(0, {TOKENS}, (n, {sizes}))"
        return self.rng.choice((f"torch.randn(n, {sizes})", f"torch.randn(n, {sizes})", f"torch.rand(n, {sizes}) * 2 - 1", f"torch.randn((n, {sizes}))",
                                f"torch.from_numpy(np.random.randn(n, {sizes})).to(float_type)", f"torch.tensor(np.random.rand(n, {sizes}), dtype=float_type)",
                                f"torch.empty(n, {sizes}).normal_()"))

    def data(self):
        """Lines in the step that set x, t and n."""
        rng, n = self.rng, self.batch
        x = self.sample_text()
        kind = "loader" if self.loop == "loader" else rng.choice(("fresh", "fresh", "sizes", "sizes", "slices", "index", "list", "fixed"))
        if kind == "sizes":
            size = rng.choice((f"{n} + i % 3", f"{n} if i % 4 else {n + 1}", f"random.randint({n}, {n + 2})", f"{n} if i < {rng.choice((4, 7, 9))} else {n + 1}",
                               f"{n + 2} - i % 2", f"{n} + (i > {rng.choice((5, 8))}) * 2"))
            return [f"n = {size}", f"x, t = {x}, {self.target}" if self.chance(0.5) else f"x = {x}\nt = {self.target}"]
        if kind == "fresh":
            return [f"n = {n}", f"x = {x}\nt = {self.target}"]
        many = n * rng.choice((3, 4, 5))
        if kind == "loader":
            # A loader gives the last, smaller batch too.
            self.setup += [f"n = {many + rng.choice((0, 2))}", f"inputs, targets = {x}, {self.target}"]
            if self.target == "0":
                self.setup.append("targets = torch.zeros(n)")
            self.setup.append(f"loader = DataLoader(TensorDataset(inputs, targets), batch_size={n}, shuffle={rng.choice((True, True, False))}"
                              f"{rng.choice(('', ', drop_last=True'))})")
            return ["n = len(x)"]
        if kind == "fixed":
            self.setup += [f"n = {n}", f"inputs, targets = {x}, {self.target}"]
            return [f"n = {n}", rng.choice(("x, t = inputs, targets", "x, t = inputs.clone(), targets", "x, t = inputs + 0, targets"))]
        if kind == "list":
            self.setup += ["batches = []", f"for n in [{n}] * {rng.choice((3, 5))}{rng.choice(('', f' + [{n + 1}]'))}:", f"    batches.append(({x}, {self.target}))"]
            return ["x, t = batches[i % len(batches)]", "n = len(x)"]
        if self.target == "0":
            targets = "0"
        else:
            targets = "targets[where]"
        self.setup += [f"n = {many}", f"inputs, targets = {x}, {self.target}"]
        if kind == "index":
            where = rng.choice((f"where = torch.randint(0, {many}, ({n},))", f"where = torch.randperm({many})[:{n}]", f"where = np.random.choice({many}, {n}, replace=False)",
                                f"where = torch.tensor(random.sample(range({many}), {n}))", f"where = [(i * 3 + k) % {many} for k in range({n})]"))
        else:
            where = rng.choice((f"where = slice(i * {n} % {many - n}, i * {n} % {many - n} + {n})", f"where = slice(i % {many - n}, i % {many - n} + {n})"))
        return [f"n = {n}", where, f"x, t = inputs[where], {targets}"]

    # ---- the step

    def forward(self):
        call = "y = @model(x)"
        if "plain" in self.words and self.chance(0.5):
            call = f"y = @model(x, {self.rng.choice(('True', 'i % 4 != 2', 'training=True'))})"
        form = self.rng.choice(("inline", "function", "nested"))
        if form == "inline":
            return [call, f"loss = {self.loss}"]
        return [call, "loss = loss_of(y, t)"] if form == "function" else [call, "loss = loss_of(y, t)" if self.chance(0.5) else f"loss = {self.loss}"]

    def filled(self, text, depth=0):
        """Lines of a recipe with its points filled."""
        lines = []
        for line in text.split("\n"):
            margin = line[:len(line) - len(line.lstrip())]
            point = line.strip()
            if point == "%forward":
                more = self.forward()
            elif point == "%between":
                more = self.section("between", self.rng.choice((0, 0, 1, 1, 2)))
            elif point == "%backward":
                more = self.section("backward", self.rng.choice((0, 0, 0, 1, 1, 2)))
            elif point == "%after":
                more = self.section("after", 1)
            else:
                lines.append(line)
                continue
            lines += [margin + one for one in more]
        return lines

    def step(self):
        """The lines of one step, with @names."""
        section = "gan" if self.gan else "closure" if self.closure else "recipe"
        block = self.pick(section)
        if block is None:
            block = self.pick("recipe")
        for line in block.before:
            self.keep(line)
        lines = self.filled(tables.draw(block.text, self.rng))
        if section == "gan":
            lines.append("y = @model(x).detach()")
        lines += self.section("after", self.rng.choice((0, 1, 1, 2, 2, 3)))
        if self.scheduler:
            lines.append("@sched.step(" + (self.scheduler if self.scheduler != "-" else "") + ")")
        return lines

    def prepare(self):
        """Lines in front of the loop: model, optimizer, scheduler."""
        rng, plain = self.rng, "plain" in self.words
        setup, self.setup = self.setup, []
        if plain:
            self.keep(f"@weights = {self.model.made()}")
            self.keep("@params = [p for p in @weights.values() if p.requires_grad]")
        else:
            self.keep(f"@model = {self.model.made()}")
            if "lazy" in self.words:
                self.setup.append(f"n = {self.batch}\n@model({self.sample_text()})")
            if self.chance(0.08) and "Lazy" not in self.model.text:
                self.setup.append("@model.requires_grad_()")
            self.keep("@params = list(@model.parameters())")
        self.globals = setup
        if self.loss_parameters:
            self.setup.append("@params = @params + list(crit.parameters())")
        if self.gan:
            count = 1
            for size in self.sizes:
                count *= size
            inner = rng.choice(("nn.ReLU()", "nn.LeakyReLU(0.2, inplace=True)", "nn.ReLU(True)", "nn.Tanh()", "nn.SiLU()", "nn.BatchNorm1d(6)", "nn.Dropout(0.2)"))
            self.keep(f"@made = nn.Sequential(nn.Linear(3, 6), {inner}, nn.Linear(6, {count}), {rng.choice(('nn.Tanh(), ', ''))}nn.Unflatten(1, {self.sizes}))"
                      if len(self.sizes) > 1 else f"@made = nn.Sequential(nn.Linear(3, 6), {inner}, nn.Linear(6, {count}))")
            self.keep(f"@optd = {self.make_optimizer('@model', plain)}")
            self.setup.append("@params = list(@made.parameters())")
            self.keep(f"@opt = {self.make_optimizer('@made', plain)}")
        else:
            self.keep(f"@opt = {self.make_optimizer('@model', plain)}")
        self.scheduler = None
        if self.chance(0.25):
            row = rng.choice(table("schedulers.def"))
            arguments = tables.draw(row[2], rng)
            self.keep(f"@sched = {tables.draw(row[1], rng).replace('$o', '@opt')}")
            self.scheduler = arguments or "-"
        for line in self.section("prepare", rng.choice((0, 0, 0, 1, 1, 2))):
            self.setup.append(line)
            for name in re.findall(r"^@([a-z_]+) =", line):
                if name not in self.state:
                    self.state.append(name)

    def text(self):
        from loops import write
        rng = self.rng
        self.loop = rng.choice(LOOPS)
        self.prepare()
        data = [line for text in self.data() for line in text.split("\n")]
        step = self.step()
        body = write(self, data, step)
        lines = [f"float_type = torch.float{'64' if self.float64 else '32'}"]
        if self.float64:
            lines.append("torch.set_default_dtype(torch.float64)")
        lines += [f"torch.manual_seed({self.seed})", f"random.seed({self.seed})", f"np.random.seed({self.seed % 2 ** 32})", ""]
        return with_prelude("\n".join(lines + body) + "\n")


def generate(seed):
    """The program's text."""
    return Program(seed).text()


def generate_apart(seed):
    """The program's text, or None: torch runs while a program is chosen, and some of its kernels write where they must not, which ends the process."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            with os.fdopen(write, "w", encoding="utf-8") as file:
                file.write(generate(seed))
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as file:
        text = file.read()
    return None if os.waitpid(child, 0)[1] else text


if __name__ == "__main__":
    print(generate(int(sys.argv[1])), end="")
