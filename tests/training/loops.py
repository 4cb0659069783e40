"""Writes the loop around a training step, in one of many forms.

Inputs: a Program (program.py) with its set-up, the lines that fetch a batch, the lines of a step; names that live longer than a step are written
  @name in them, and @continue and @break leave the step. Outputs: the lines of the program.
Forms: the loop at the top level; in a function; a function for the step, called by a loop, by map or in a comprehension, with global or free
  variables; a class with a method for it; a generator; a while loop; epochs with batches, from lists or a DataLoader; the same training twice; a
  function that calls itself. Around them `try`, `finally` and `with`.
Tests: test_training.py.
"""

import re

SHOWN = ("hist",)


def indented(lines, depth=1):
    return ["    " * depth + part if part else "" for line in lines for part in line.split("\n")]


def named(lines, how):
    """Lines with @names written as `how` says: a function of a name."""
    return [re.sub(r"@([a-z_]+)\b", lambda m: how(m[1]), part) for line in lines for part in line.split("\n")]


def assigned(lines, names):
    """The @names among `names` that lines bind."""
    found = []
    for line in lines:
        for part in line.split("\n"):
            match = re.match(r"\s*((?:@[a-z_]+(?:, | = )?)+)\s*([-+*/|]?=)(?!=)", part)
            if match:
                found += [name for name in re.findall(r"@([a-z_]+)", match[1]) if name in names and name not in found]
    return found


def leave(lines, continued, broken):
    """@continue and @break replaced by what leaves the step here."""
    return [part.replace("@continue", continued).replace("@break", broken) for line in lines for part in line.split("\n")]


class Writer:
    def __init__(self, program, data, step):
        self.program, self.rng, self.data, self.step = program, program.rng, data, step
        self.names = program.state
        self.plain = "plain" in program.words
        self.steps = program.steps

    def model_name(self, how):
        return lambda name: "model" if name == "model" and self.plain else how(name)

    def definitions(self, how=lambda name: name):
        """The model's and the loss's definitions, at the top level."""
        lines = [*self.program.globals, *self.program.model.definition()]
        if self.plain:
            lines = [line.replace("weights[", f"{how('weights')}[") for line in lines]
        lines = [*lines, ""] if lines else []
        text = "\n".join(self.step)
        if "loss_of" in text:
            if self.rng.random() < 0.2:
                lines += [f"loss_of = lambda y, t, n={self.program.batch}: {self.program.loss}", ""]
            else:
                lines += ["def loss_of(y, t):", "    n = len(y)", f"    return {self.program.loss}", ""]
        return lines

    def shown(self, how=lambda name: name):
        names = [name for name in self.names if name not in ("params", "inner", "sgd_like")]
        lines = [f"show({name!r}, {how(name)})" for name in ("hist", *names)]
        return ["show('hist', hist)" if line.startswith("show('hist'") else line for line in lines] + ["show_random()"]

    def guarded(self, loop):
        """The loop, perhaps inside of try or with."""
        form = self.rng.choice(("", "", "", "except", "finally", "anomaly", "enable"))
        if form == "except":
            return ["try:", *indented(loop), "except (Exception, KeyboardInterrupt) as error:", "    print(type(error).__name__, str(error)[:200])"]
        if form == "finally":
            return ["try:", *indented(loop), "finally:", "    print('finally', len(hist))"]
        if form == "anomaly":
            return ["with torch.enable_grad():", *indented(loop)]
        if form == "enable":
            return ["with torch.set_grad_enabled(True):", *indented(loop)]
        return loop

    def header(self):
        n = self.steps
        return self.rng.choice((f"for i in range({n}):", f"for i in range({n}):", f"for i, _ in enumerate([0] * {n}):", f"for i in list(range({n})):", f"for i in iter(range({n})):"))

    # ---- forms

    def flat_loop(self):
        return [self.header(), *indented(leave(self.data + self.step, "continue", "break"))]

    def setup(self):
        return ["hist = []", *self.program.setup]

    def top(self):
        how = self.model_name(lambda name: name)
        loop = self.guarded(self.flat_loop())
        return [*self.definitions(), *named(self.setup() + loop, how), *self.shown()]

    def main(self):
        if self.plain:
            return self.top()
        lines = [*self.setup(), *self.guarded(self.flat_loop()), *self.shown(lambda name: "@" + name)]
        return [*self.definitions(), "def main():", *indented(named(lines, lambda name: name)), "", "", "main()"]

    def body_with_result(self):
        """The step as a function's body."""
        return [*leave(self.data + self.step, "return None", "return 'stop'"), self.rng.choice(("return loss.item()", "return loss.detach()", "return float(loss)", "return loss.item()"))]

    def calls(self, call):
        """Lines that call the step for each i."""
        n = self.steps
        return self.rng.choice((
            [f"for i in range({n}):", f"    value = {call}", "    if value == 'stop':", "        break", "    hist.append(value)"],
            [f"hist = [{call} for i in range({n})]"],
            [f"for i in range({n}):", f"    {call}"],
            ["i = 0", f"while i < {n}:", f"    hist.append({call})", "    i += 1"],
            [f"losses = {{i: {call} for i in range({n})}}", "hist = list(losses.values())"],
            [f"total = sum(float({call} or 0) if True else 0 for i in range({n}))".replace(" if True else 0", ""), "hist.append(total)"] if "'stop'" not in "".join(self.step) and "@break" not in "".join(self.step) else
            [f"for i in range({n}):", f"    hist.append({call})"],
        ))

    def function(self):
        """A global function with global names."""
        how = self.model_name(lambda name: name)
        bound = assigned(self.step, self.names)
        body = [*([f"global {', '.join(bound)}"] if bound else []), *self.body_with_result()]
        return [*self.definitions(), *named(self.setup(), how), "", "", "def step(i):", *indented(named(body, how)), "", "", *self.guarded(self.calls("step(i)")), *self.shown()]

    def closure(self):
        if self.plain:
            return self.function()
        bound = assigned(self.step, self.names)
        body = [*([f"nonlocal {', '.join(bound)}"] if bound else []), *self.body_with_result()]
        inner = ["def step(i):", *indented(body), "", *self.guarded(self.calls("step(i)"))]
        lines = [*self.setup(), *inner, *self.shown(lambda name: "@" + name)]
        return [*self.definitions(), "def main():", *indented(named(lines, lambda name: name)), "", "", "main()"]

    def method(self):
        own = set(self.names)

        def how(name):
            return "model" if name == "model" and self.plain else f"self.{name}" if name in own else name

        fields = ["hist = self.hist = []", *self.program.setup]
        outside = [name for name in ("inputs", "targets", "batches", "loader") if re.search(rf"^{name}\b|^inputs, {name}\b", "\n".join(fields), re.M)]
        init = [*fields] if not outside else [f"global {', '.join(outside)}", *fields]
        body = ["hist = self.hist", *self.body_with_result()]
        loop = self.guarded(["hist = self.hist", *self.calls("self.step(i)")])
        lines = ["class Trainer:", "    def __init__(self):", *indented(named(init, how), 2), "", "    def step(self, i):", *indented(named(body, how), 2), "",
                 "    def fit(self):", *indented(named([*loop, "self.hist = hist", "return self"], how), 2)]
        start = "Trainer().fit()"
        if self.plain:
            return [*self.definitions(lambda name: "trainer." + name), *lines, "", "", "trainer = Trainer()", "trainer.fit()", "hist = trainer.hist", *self.shown(lambda name: "trainer." + name)]
        return [*self.definitions(), *lines, "", "", f"trainer = {start}", "hist = trainer.hist", *self.shown(lambda name: "trainer." + name)]

    def generator(self):
        how = self.model_name(lambda name: name)
        bound = assigned(self.step, self.names)
        yielded = self.rng.choice(("yield loss.item()", "yield i, loss.detach()", "yield float(loss)"))
        body = [*([f"global {', '.join(bound)}"] if bound else []), self.header(), *indented([*leave(self.data + self.step, "continue", "break"), yielded])]
        used = self.rng.choice((["hist = list(train())"], ["for value in train():", "    hist.append(value)"], ["for k, value in enumerate(train()):", "    hist.append(value)", "    if k > 12:", "        break"],
                                ["steps = train()", "while True:", "    try:", "        hist.append(next(steps))", "    except StopIteration:", "        break"],
                                ["hist = [v for v in train()]"], ["first, *rest = train()", "hist.append(first)"]))
        return [*self.definitions(), *named(self.setup(), how), "", "", "def train():", *indented(named(body, how)), "", "", *self.guarded(used), *self.shown()]

    def map(self):
        how = self.model_name(lambda name: name)
        bound = assigned(self.step, self.names)
        body = [*([f"global {', '.join(bound)}"] if bound else []), *self.body_with_result()]
        n = self.steps
        used = self.rng.choice((f"hist = list(map(step, range({n})))", f"hist = list(map(lambda k: step(k), range({n})))", f"hist = [*filter(None, map(step, range({n})))]",
                                f"functools.reduce(lambda a, k: hist.append(step(k)), range({n}), None)", f"hist = sorted(range({n}), key=lambda k: float(step(k) or 0.0) * 0 + k)"))
        if "@break" in "".join(self.step):
            used = f"hist = list(map(step, range({n})))"
        return [*self.definitions(), *named(self.setup(), how), "", "", "def step(i):", *indented(named(body, how)), "", "", *self.guarded([used]), *self.shown()]

    def while_(self):
        how = self.model_name(lambda name: name)
        loop = [f"i = -1\nwhile i < {self.steps - 1}:", *indented(["i += 1", *leave(self.data + self.step, "continue", "break")]), *self.rng.choice(((), ("else:", "    print('done', i)")))]
        return [*self.definitions(), *named(self.setup() + self.guarded(loop), how), *self.shown()]

    def nested(self):
        how = self.model_name(lambda name: name)
        inner = leave(self.data + self.step, "continue", "break")
        per = self.rng.choice((3, 4, 5))
        loop = [f"for epoch in range({max(2, self.steps // per)}):", *indented([f"for k in range({per}):", *indented([f"i = epoch * {per} + k", *inner]),
                                                                                self.rng.choice(("print('epoch', epoch, len(hist))", "hist.append(epoch)", "pass", "torch.manual_seed(epoch)"))])]
        return [*self.definitions(), *named(self.setup() + self.guarded(loop), how), *self.shown()]

    def loader(self):
        how = self.model_name(lambda name: name)
        inner = leave(self.data + self.step, "continue", "break")
        loop = ["i = -1", f"for epoch in range({self.rng.choice((2, 3, 4))}):", *indented([self.rng.choice(("for x, t in loader:", "for k, (x, t) in enumerate(loader):", "for batch in loader:\n    x, t = batch"))]),
                *indented(["i += 1", *inner], 2)]
        return [*self.definitions(), *named(self.setup() + self.guarded(loop), how), *self.shown()]

    def twice(self):
        """The same training in a function that is called again, with another number of steps."""
        if self.plain:
            return self.top()
        lines = [*self.setup(), "for i in range(steps):", *indented(leave(self.data + self.step, "continue", "break")), *self.shown(lambda name: "@" + name), "return hist"]
        calls = self.rng.choice((("train(5)", f"train({self.steps})"), (f"train({self.steps})", "train(4)"), (f"for steps in (3, {self.steps}):\n    train(steps)",)))
        return [*self.definitions(), "def train(steps):", *indented(named(lines, lambda name: name)), "", "", *calls]

    def recursion(self):
        how = self.model_name(lambda name: name)
        bound = assigned(self.step, self.names)
        body = [*([f"global {', '.join(bound)}"] if bound else []), f"if i >= {self.steps}:", "    return 0", *leave(self.data + self.step, "return step(i + 1)", "return i"), "return 1 + step(i + 1)"]
        return [*self.definitions(), *named(self.setup(), how), "", "", "def step(i):", *indented(named(body, how)), "", "", *self.guarded(["hist.append(step(0))"]), *self.shown()]


def write(program, data, step):
    """The lines of the whole program behind the seeds."""
    writer = Writer(program, data, step)
    return getattr(writer, "while_" if program.loop == "while" else program.loop)()
