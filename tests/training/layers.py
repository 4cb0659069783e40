"""Draws the layers of a model from modules.def and functional.def, and tries each before it is taken.

Inputs: a random.Random, a sample of the model's input. Outputs: a list of Layers: texts that make a module and call it.
Method: a row's constructor and call are drawn and run on the sample, forward and backward, here, in the generator's process: what raises, gives
  no float tensor of the same batch, or numbers that are not finite or large, is drawn anew. So tables need no formulas for sizes.
Invariants: with torch's seed set, the same random.Random gives the same layers.
Tests: test_tables.py.
"""

import functools
import re
import warnings

import tables

LARGE, MANY, TRIES = 1e3, 3000, 12
TOKENS = 11
SIZES = (2, 3, 4, 4, 6, 6, 8, 5, 17)
STATEFUL = re.compile(r"BatchNorm|InstanceNorm|spectral_norm|batch_norm|Lazy|track_running_stats")


@functools.lru_cache(maxsize=None)
def namespace():
    """What constructors and calls are evaluated in."""
    import prelude
    return {name: value for name, value in vars(prelude).items() if not name.startswith("__")}


@functools.lru_cache(maxsize=None)
def rows(kind):
    """form -> [(row, is_module)]; kind: "module", "function" or "both"."""
    by_form = {}
    for table in ("modules.def", "functional.def"):
        is_module = table == "modules.def"
        if kind != "both" and is_module != (kind == "module"):
            continue
        for row in tables.load(table)[0]:
            for form in "VSIDT" if row[1] == "*" else row[1].split():
                by_form.setdefault(form, []).append((row, is_module))
    return by_form


def forms_of(x):
    """The forms that a tensor's sizes allow."""
    if not x.is_floating_point():
        return "K"
    return {2: "V", 3: "ST", 4: "I", 5: "D"}.get(x.dim(), "")


def divisors(size):
    return [d for d in range(1, size + 1) if size % d == 0]


class Layer:
    """made: the constructor's text, or None; call: text with $m, $x and p0, p1... for parameters, b0... for buffers; sizes: name -> sizes."""

    def __init__(self, row, made, call, sizes):
        self.row, self.made, self.call, self.sizes = row, made, call, sizes
        self.text = f"{made or ''} {call}"
        self.residual = False

    @property
    def is_plain_call(self):
        return self.call == "$m($x)"


def fill_sizes(text, x, rng):
    """$C, $E ... replaced by the input's sizes and drawn ones."""
    def replace(match):
        name = match[1]
        if name == "C":
            return str(x.shape[1])
        if name == "E":
            return str(x.shape[-1])
        if name == "L":
            return str(x.shape[2])
        if name == "inner":
            return str(list(x.shape[1:]))
        if name == "out":
            return out
        if name == "div":
            return str(rng.choice(divisors(x.shape[1])))
        if name == "dive":
            return dive
        if name == "tokens":
            return str(TOKENS)
        return match[0]

    out = str(rng.choice(SIZES))
    dive = str(rng.choice(divisors(x.shape[-1])))
    return re.sub(r"\$(C|E|L|inner|out|dive|div|tokens)\b", replace, text)


def parameters_of(text, x):
    """(the text with names for $P(...) and $h, name -> sizes)."""
    sizes = {}
    while "$P(" in text:
        start = text.index("$P(")
        end = tables.closing(text, start + 2)
        name = f"p{len(sizes)}"
        sizes[name] = text[start + 3:end]
        text = text[:start] + "@" + name + text[end + 1:]
    if "$h" in text:
        sizes["b0"] = str(x.shape[1])
        text = text.replace("$h", "@b0")
    return text, sizes


def drawn(row, is_module, x, rng):
    """A Layer of a row; it may not work."""
    if is_module:
        arguments = fill_sizes(tables.draw(row[2], rng), x, rng)
        made = arguments[1:] if arguments.startswith("@") else f"nn.{row.names[0]}({tidy(arguments)})"
        return Layer(row, made, fill_sizes(tables.draw(row[3], rng), x, rng) or "$m($x)", {})
    call, sizes = parameters_of(fill_sizes(tables.draw(row[2], rng), x, rng), x)
    return Layer(row, None, call, sizes)


def tidy(arguments):
    """Arguments without the commas that optional ones leave behind."""
    return re.sub(r"^, |, $", "", re.sub(r"(, )+", ", ", arguments.strip().removeprefix(",").strip()))


class Unfit(Exception):
    """A layer that cannot be used."""


def parts_of(layer):
    """What the layer needs to be called: module, parameters, buffers."""
    names = namespace()
    torch = names["torch"]
    parts = {"m": eval(layer.made, names)} if layer.made else {}
    for name, sizes in layer.sizes.items():
        parts[name] = eval(f"torch.{'randn' if name[0] == 'p' else 'zeros'}({sizes})", names)
        if name[0] == "p":
            parts[name].mul_(0.5).requires_grad_()
    if isinstance(parts.get("m"), torch.nn.Module):
        parts["m"].train()
    return parts


def called(layer, parts, x):
    text = layer.call.replace("$m", "m").replace("$x", "x").replace("$training", "True")
    text = re.sub(r"@(?=[pb]\d)", "", text)
    y = eval(text, {**namespace(), **parts, "x": x})
    return x + y if layer.residual else y


def check(y, x):
    torch = namespace()["torch"]
    if not isinstance(y, torch.Tensor) or not y.is_floating_point() or y.dtype != torch.get_default_dtype():
        raise Unfit("no float tensor")
    if y.is_sparse or not 2 <= y.dim() <= 5 or y.shape[0] != x.shape[0] or not 0 < y.numel() <= MANY:
        raise Unfit(f"sizes {list(y.shape)}")
    if not y.isfinite().all() or y.abs().max() > LARGE:
        raise Unfit("large numbers")


def run(layers, x, whole=True):
    """The output of all layers, newly made; whole: with a backward pass and a second batch size. Unfit when that does not work."""
    names = namespace()
    torch = names["torch"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            parts = [parts_of(layer) for layer in layers]
            first = None
            for sample in (x.clone(), torch.cat([x, x[:1]]))[:2 if whole else 1]:
                y = sample
                if y.is_floating_point() and first is not None:
                    y = y.requires_grad_() * 1.0
                for layer, part in zip(layers, parts):
                    before = y
                    y = called(layer, part, y)
                    check(y, before)
                if first is not None and y.shape[1:] != first.shape[1:]:
                    raise Unfit("sizes depend on the batch")
                if whole and y.requires_grad:
                    y.square().mean().backward()
                first = y if first is None else first
            return first.detach()
        except Unfit:
            raise
        except Exception as error:
            raise Unfit(f"{type(error).__name__}: {error}") from error


def make_layer(rng, x, kind):
    """(a Layer that works on x, its output), or None."""
    for _ in range(TRIES):
        form = rng.choice(forms_of(x))
        choices = rows(kind).get(form, ())
        if not choices:
            return None
        row, is_module = rng.choice(choices)
        layer = drawn(row, is_module, x, rng)
        try:
            y = run([layer], x, whole=False)
        except Unfit:
            continue
        if x.is_floating_point() and y.shape == x.shape and rng.random() < 0.15:
            layer.residual = True
            try:
                y = run([layer], x, whole=False)
            except Unfit:
                layer.residual = False
        return layer, y
    return None


def make_layers(rng, x, count, kind="both"):
    """(Layers, the output's sample): `count` of them, or a few less, that work together, some with parameters; None where they do not."""
    layers, y = [], x
    for _ in range(count + 2):
        made = make_layer(rng, y, kind if kind != "both" or rng.random() < 0.75 else "function")
        if made is not None:
            layers.append(made[0])
            y = made[1]
        if len(layers) >= count:
            break
    if not layers or not have_parameters(layers):
        if not y.is_floating_point():
            return None
        size = rng.choice((2, 3, 4, 5))
        row = tables.Row("layers.py", 0, ["Linear"])
        layers.append(Layer(row, None, "F.linear($x, @p0, @p1)", {"p0": f"{size}, {y.shape[-1]}", "p1": str(size)}) if kind == "function" else
                      Layer(row, f"nn.Linear({y.shape[-1]}, {size})", "$m($x)", {}))
    try:
        return layers, run(layers, x)
    except Unfit:
        return None


def is_smooth(layers, x):
    """Whether gradients of gradients can be computed, for the input and the parameters."""
    names = namespace()
    torch = names["torch"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            parts, y = [parts_of(layer) for layer in layers], x.clone()
            wanted = [y.requires_grad_()] if x.is_floating_point() else []
            for layer, part in zip(layers, parts):
                y = called(layer, part, y * 1.0 if wanted and y is wanted[0] else y)
            for part in parts:
                wanted += [p for p in part.values() if isinstance(p, torch.Tensor) and p.requires_grad]
                wanted += list(part["m"].parameters()) if "m" in part else []
            grads = torch.autograd.grad(y.square().mean(), wanted, create_graph=True, allow_unused=True)
            total = sum(g.square().sum() for g in grads if g is not None)
            total.backward()
            return all(not g.is_sparse for g in grads if g is not None)
        except Exception:
            return False


def have_parameters(layers):
    return any(name[0] == "p" for layer in layers for name in layer.sizes) or any(
        next(parts_of(layer)["m"].parameters(), None) is not None for layer in layers if layer.made)
