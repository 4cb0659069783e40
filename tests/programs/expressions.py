"""Random tensor expressions of a wanted shape and dtype, for generate.py.

Inputs: a random.Random, the variables in scope. Outputs: expression text. What an expression needs besides torch and F is
  in scope by generate.py's header: W (n x n), ORDER (a permutation of n), and the numbers of the loop.
Invariants: values stay moderate (each template bounds what it makes larger), and templates are continuous in their inputs
  but at isolated points, so that rounding does not decide results. run.py --self-test checks that.
Tests: tests/programs/run.py --self-test.
"""

# {x}: an expression of the wanted shape [..., n]. Same shape comes out.
UNARY = (
    "torch.tanh({x})", "torch.sigmoid({x})", "torch.relu({x})", "F.gelu({x})", "F.gelu({x}, approximate='tanh')",
    "F.silu({x})", "F.softplus({x})", "F.leaky_relu({x}, 0.1)", "F.elu({x})", "F.hardtanh({x}, -0.7, 0.8)",
    "torch.sin({x})", "torch.cos({x})", "torch.exp(-{x}.abs())", "({x}.abs() + 0.1).sqrt()", "({x}.square() + 0.5).rsqrt()",
    "torch.log1p({x}.abs())", "torch.log({x}.square() + 0.3)", "torch.erf({x})", "(-{x})", "{x}.abs()", "torch.atan({x})",
    "{x}.square().clamp(max=4)", "{x}.clamp(-1, 1)", "{x}.clamp(min=-0.5)", "torch.expm1({x}.clamp(-1, 1))",
    "({x} ** 2 * 0.5)", "({x}.clamp(-2, 2) ** 3 * 0.1)", "(1 / ({x}.abs() + 1))", "({x}.abs() + 0.2).pow(1.5).clamp(max=5)",
    "({x} - {x}.mean(-1, keepdim=True))", "{x}.softmax(-1)", "({x}.log_softmax(-1) * 0.2)", "F.layer_norm({x}, (n,))",
    "({x} / ({x}.norm() + 1))", "({x}.cumsum(-1) * 0.2)", "{x}.flip(-1)", "{x}.roll(1, -1)", "{x}.clone()",
    "torch.cat([{x}[..., 1:], {x}[..., :1]], -1)", "torch.stack([{x}, {x} * 0.5]).mean(0)", "{x}[..., ORDER]",
    "{x}.index_select(-1, ORDER)", "torch.where({x} > 0.1, {x}, {x} * 0.5 + 0.05)", "{x}.masked_fill({x} < -1, -1.0)",
    "F.pad({x}, (1, 0))[..., :-1]", "{x}.reshape(-1).sin().view({x}.shape)", "{x}.double().sin().to({x}.dtype)",
    "({x} - {x}.amax(-1, keepdim=True)).exp()", "({x} * {x}.std(-1, keepdim=True, unbiased=False))",
    "torch.cat({x}.split([1, n - 1], -1)[::-1], -1)", "({x}.logsumexp(-1, keepdim=True) - {x}) * 0.3",
    "{x}.sort(-1).values", "torch.addcmul({x}, {x}, {x}, value=-0.1).clamp(-3, 3)", "{x}.unsqueeze(0).expand(2, *{x}.shape).mean(0)",
)
# Also for more than one dimension: [..., m, n].
UNARY_2D = (
    "{x}.transpose(-1, -2).tanh().transpose(-1, -2)", "torch.tril({x})", "({x} - {x}.mean(-2, keepdim=True))",
    "(torch.softmax({x} @ {x}.transpose(-1, -2), -1) @ {x})", "{x}.flip(-2)", "({x}.cumsum(-2) * 0.2)",
    "torch.cat([{x}[..., :1, :], {x}[..., 1:, :]], -2)", "{x}.transpose(0, -1).contiguous().transpose(0, -1)",
    "({x} / ({x}.sum(-2, keepdim=True).abs() + 1))", "{x}.softmax(-2)", "torch.stack([r * 0.5 for r in {x}])",
)
MATMUL = ("({x} @ W * 0.6)", "F.linear({x}, W, W[0]).tanh()", "torch.einsum('...i,ji->...j', {x}, W) * 0.4",
          "torch.matmul({x}, W.t()).sin()")
# {y}: the same shape, or one that broadcasts to it.
BINARY = ("({x} + {y})", "({x} - {y})", "({x} * {y}).clamp(-4, 4)", "({x} / (torch.as_tensor({y}).abs() + 1))", "({y} - {x})",
          "({x} + {y} * 0.5)", "(({y} * 0.3 + 1) * {x}).clamp(-4, 4)")
# {z}: the same shape; {s}: a Python number.
BINARY_TENSOR = ("torch.maximum({x}, {z})", "torch.minimum({x}, {z})", "torch.lerp({x}, {z}, 0.3)", "torch.hypot({x} + 0.1, {z})",
                 "torch.add({x}, {z}, alpha={s})", "torch.sub({x}, {z}, alpha=0.5)", "torch.addcdiv({x}, {z}, {z}.abs() + 1, value={s})",
                 "torch.where({x} > {z}, {x}, {z})", "torch.lerp({x}, {z}, {s} * 0.2)", "(0.5 * {x}).add({z}, alpha=0.25)")
# Of integers: {x} and {y} of the same shape, {k} a Python integer, not negative.
INTEGER = ("({x} * 3 + {k}) % 7", "({x} + {y}) % 11", "({x} // 2 + {y})% 9", "{x}.flip(-1)", "torch.maximum({x}, {y})", "({x} ^ {y}) & 15",
           "({x} << 1) % 13", "{x}.cumsum(-1) % 17", "torch.where({x} > {y}, {x}, {y} + 1) % 19", "{x}.sort(-1).values",
           "({x} == {y}).long() + {x} % 5", "torch.bitwise_or({x}, {y}) % 12", "({x} - {y}).abs()", "{x}[..., ORDER]")


class Variable:
    """A tensor that programs can name. dtype "f32", "f64" or "i64"; grad: whether it may require gradients."""

    def __init__(self, name, shape, dtype, grad=False):
        self.name, self.shape, self.dtype, self.grad = name, shape, dtype, grad


class Expressions:
    """Makes expressions from the variables in scope, which the caller may add to."""

    def __init__(self, random, variables, numbers, helpers, emit):
        self.random = random
        self.emit = emit             # takes a line of the program that must stand before the expression
        self.fresh = 0
        self.variables = variables   # list of Variable
        self.numbers = numbers       # expressions of Python numbers of moderate size
        self.helpers = helpers       # names of functions of (x, y, s) that give x's shape

    def number(self):
        return self.random.choice(self.numbers + [str(self.random.choice([0.5, 0.25, -0.3, 1.5, 2, 1]))])

    def variable(self, shape, dtype, grads=True):
        fitting = [v for v in self.variables if v.shape == shape and v.dtype == dtype and (grads or not v.grad)]
        return self.random.choice(fitting) if fitting else None

    def leaf(self, shape, dtype, grads):
        """(text, whether it may require gradients)"""
        variable = self.variable(shape, dtype, grads)
        if variable is not None:
            return variable.name, variable.grad
        of = {"f32": "torch.float32", "f64": "torch.float64", "i64": "torch.int64"}[dtype]
        count = 1
        for size in shape:
            count *= size
        text = f"torch.arange({count}, dtype={of}).view({', '.join(map(str, shape))})"
        return (text if dtype == "i64" else f"({text} * 0.1).sin()"), False

    def narrow(self, shape, dtype, grads):
        """(text, grad) of something that broadcasts to the shape."""
        choice = self.random.random()
        suffixes = [v for v in self.variables if v.dtype == dtype and len(v.shape) < len(shape)
                    and v.shape == shape[len(shape) - len(v.shape):] and (grads or not v.grad)]
        if choice < 0.4 or not suffixes:
            return self.number(), False
        variable = self.random.choice(suffixes)
        if choice < 0.8:
            return variable.name, variable.grad
        return f"{variable.name}.{self.random.choice(['mean()', 'sum(-1, keepdim=True) * 0.1', 'amax(-1, keepdim=True)'])}", variable.grad

    def make(self, shape, dtype="f32", depth=3, grads=True):
        """(text, whether it may require gradients) of the shape; grads=False: it may not."""
        random = self.random
        if depth <= 0 or random.random() < 0.08:
            return self.leaf(shape, dtype, grads)
        x, grad = self.make(shape, dtype, depth - 1, grads)
        if dtype == "i64":
            y, _ = self.make(shape, dtype, depth - 2, grads)
            return "(" + random.choice(INTEGER).format(x=x, y=y, k="(i % 5)") + ")", False
        if x.count("(") > 3:
            # Templates name {x} more than once: a long expression gets a name.
            self.fresh += 1
            self.emit(f"e{self.fresh} = {x}")
            x = f"e{self.fresh}"
        kind = random.random()
        if kind < 0.42 or not shape:
            text = random.choice(UNARY if shape else UNARY[:25]).format(x=x)
        elif kind < 0.50 and len(shape) > 1:
            text = random.choice(UNARY_2D).format(x=x)
        elif kind < 0.58:
            text = random.choice(MATMUL).format(x=x) if dtype == "f32" else f"({x} @ W.double() * 0.6)"
        elif kind < 0.78:
            y, other = self.narrow(shape, dtype, grads) if random.random() < 0.6 else self.make(shape, dtype, depth - 2, grads)
            text, grad = random.choice(BINARY).format(x=x, y=y), grad or other
        elif kind < 0.86 and self.helpers:
            y, other = self.make(shape, dtype, depth - 2, grads)
            text, grad = f"{random.choice(self.helpers)}({x}, {y}, {self.number()})", grad or other
        else:
            z, other = self.make(shape, dtype, depth - 2, grads)
            text, grad = random.choice(BINARY_TENSOR).format(x=x, z=z, s=self.number()), grad or other
        return f"({text})", grad
