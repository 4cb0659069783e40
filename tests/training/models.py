"""Writes a model's text from its layers, in one of several shapes.

Shapes: "sequential" (nn.Sequential, with lambdas where a layer is more than a call), "class" (a Module whose forward names its layers), "list" (a
  Module with a ModuleList or ModuleDict), "plain" (a dict of parameters and a function).
Inputs: Layers (layers.py). Outputs: definitions, and the expression that makes the model.
Tests: test_tables.py.
"""

import re

from layers import STATEFUL, is_smooth, make_layers

SHAPES = ("sequential", "class", "class", "list", "plain")
# Unused results, asserts and state, as forwards have them. {} is the layer's input.
EXTRAS = ("assert x.dim() == {d}", "x.sum()", "self.calls = getattr(self, 'calls', 0) + 1", "self.last = x.detach()", "if self.training:\n    x = x * 1.0",
          "torch.rand(1)", "x.mean().item()", "self.peak = max(getattr(self, 'peak', 0.0), float(x.detach().abs().max()))", "scale = x.shape[0] / (x.shape[0] + 1)\nx = x * scale",
          "x.narrow(0, 0, 1)", "x = x.contiguous()", "mask = x.detach() > 0\nx = x.masked_fill(mask, 0.25) + x * mask")


class Model:
    """x: a sample of the input; y: of the output."""

    def __init__(self, rng, x, name="Net", shape=None, count=None):
        self.rng, self.name = rng, name
        while True:
            self.shape = shape or rng.choice(SHAPES)
            made = make_layers(rng, x, count or rng.choice((1, 2, 2, 3, 3, 4, 5)), "function" if self.shape == "plain" else "both")
            if made:
                self.layers, self.y = made
                break
        self.x = x
        self.text = " ".join(layer.text for layer in self.layers)

    def words(self):
        """What steps.def's rows can need."""
        words = {"plain" if self.shape == "plain" else "module"}
        if self.x.is_floating_point():
            words.add("floats")
        if is_smooth(self.layers, self.x):
            words.add("smooth")
        if self.y.dim() == 2:
            words.add("vector")
        if STATEFUL.search(self.text):
            words.add("stateful")
        if re.search(r"inplace|Hardtanh|_\(", self.text) or ", True)" in self.text:
            words.add("inplace")
        if re.search(r"\bsparse=True", self.text):
            words.add("sparse")
        if "Lazy" in self.text:
            words.add("lazy")
        words.add("twice")
        return words

    # ---- texts

    def element(self, layer):
        """An expression for a module that does what the layer does."""
        if layer.made and layer.is_plain_call:
            text = layer.made
        elif layer.made:
            text = f"Wrap({layer.made}, lambda m, x: {layer.call.replace('$m', 'm').replace('$x', 'x')})"
        else:
            call = re.sub(r"@([pb]\d)", r"self.\1", layer.call).replace("$x", "x").replace("$training", "self.training")
            text = f"Fn(lambda self, x: {call}{''.join(f', {name}={self.value(name, sizes)}' for name, sizes in layer.sizes.items())})"
        return f"Residual({text})" if layer.residual else text

    @staticmethod
    def value(name, sizes):
        return f"nn.Parameter(torch.randn({sizes}) * 0.5)" if name[0] == "p" else f"torch.zeros({sizes})"

    def definition(self):
        """Lines that stand in front of the program."""
        return {"sequential": list, "class": self.as_class, "list": self.as_list, "plain": self.as_function}[self.shape]()

    def made(self):
        """The expression for the model; of a plain one, of its parameters."""
        if self.shape == "sequential":
            return "nn.Sequential(" + ", ".join(map(self.element, self.layers)) + ")"
        if self.shape == "plain":
            return "dict(" + ", ".join(f"{name}{k}={self.value(name, sizes)}" for k, layer in enumerate(self.layers) for name, sizes in layer.sizes.items()) + ")"
        return f"{self.name}()"

    def as_class(self):
        rng, init, forward = self.rng, [], []
        for k, layer in enumerate(self.layers):
            if layer.made:
                init.append(f"self.l{k} = {layer.made}")
            for name, sizes in layer.sizes.items():
                init.append(f"self.{name}{k} = {self.value(name, sizes)}" if name[0] == "p" else f"self.register_buffer('{name}{k}', torch.zeros({sizes}))")
            call = re.sub(r"@([pb]\d)", rf"self.\g<1>{k}", layer.call).replace("$m", f"self.l{k}").replace("$x", "x").replace("$training", "self.training")
            forward.append(f"x = x + {call}" if layer.residual else f"x = {call}")
            if rng.random() < 0.12:
                forward += rng.choice(EXTRAS).format(d="x.dim()").split("\n")
        if rng.random() < 0.3:
            forward[-1] = "return" + forward[-1][3:] if forward[-1].startswith("x = ") else forward[-1] + "\nreturn x"
            forward[-1:] = forward[-1].split("\n")
        else:
            forward.append("return x")
        return [f"class {self.name}(nn.Module):", "    def __init__(self):", "        super().__init__()", *("        " + line for line in init or ["pass"]), "",
                "    def forward(self, x):", *("        " + line for line in forward)]

    def as_list(self):
        elements = [self.element(layer) for layer in self.layers]
        if self.rng.random() < 0.5:
            init, loop = f"nn.ModuleList([{', '.join(elements)}])", "for layer in self.layers:"
        else:
            init = f"nn.ModuleDict(dict({', '.join(f'l{k}={element}' for k, element in enumerate(elements))}))"
            loop = self.rng.choice(("for name, layer in self.layers.items():", "for layer in self.layers.values():"))
        return [f"class {self.name}(nn.Module):", "    def __init__(self):", "        super().__init__()", f"        self.layers = {init}", "",
                "    def forward(self, x):", f"        {loop}", "            x = layer(x)", "        return x"]

    def as_function(self):
        lines = []
        for k, layer in enumerate(self.layers):
            call = re.sub(r"@([pb]\d)", rf"weights['\g<1>{k}']", layer.call).replace("$x", "x").replace("$training", "training")
            lines.append(f"x = x + {call}" if layer.residual else f"x = {call}")
        return ["def model(x, training=True):", *("    " + line for line in lines), "    return x"]
