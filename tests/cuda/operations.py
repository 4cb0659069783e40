"""Every rendered operation on a GPU, in each dtype and layout, against eager: `dynvm --report FILE.json tests/cuda/operations.py [--part K/N] [NAME ...]`.

Each case is a loop of its own, in a file of its name; its first iterations run eagerly, the later ones in a compiled trace. Their results must agree: exactly for integers, else
within what the dtype rounds to. Prints one line for each failure and "N passed, N failed"; exit status 1 when one failed, 77 without a GPU.
"""
import itertools
import sys

import torch
import torch.nn.functional as F

STEPS = 12
ROUNDING = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 1.6e-2, torch.float16: 2e-3}
FLOATS = tuple(ROUNDING)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)

UNARY = ("neg", "abs", "sign", "sqrt", "rsqrt", "reciprocal", "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan",
         "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "erf", "erfc", "floor", "ceil", "round", "trunc", "relu", "isnan", "isfinite", "square")
BINARY = ("add", "sub", "mul", "true_divide", "maximum", "minimum", "pow", "atan2", "hypot", "copysign", "fmod", "remainder", "eq", "ne", "lt", "le", "gt", "ge")
OF_INTEGERS = ("add", "sub", "mul", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor", "eq", "lt")
REDUCTIONS = ("sum", "mean", "amax", "amin", "argmax", "prod")
FUNCTIONS = {
    "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "leaky_relu": F.leaky_relu, "elu": F.elu, "softplus": F.softplus,
    "hardswish": F.hardswish, "softmax": lambda x: x.softmax(-1), "log_softmax": lambda x: x.log_softmax(-1), "softmax_0": lambda x: x.softmax(0),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]), "where": lambda x: torch.where(x > 0, x, x * 0.5), "clamp": lambda x: x.clamp(-0.5, 0.5),
    "chain": lambda x: F.gelu(x * 1.5 + 0.5) * torch.sigmoid(x) - torch.tanh(x), "rms": lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5),
    "var": lambda x: x.var(-1), "std_0": lambda x: x.std(0), "residual_norm": lambda x: F.gelu(F.layer_norm(x + x.flip(0), x.shape[-1:])),
}


def classes(x):
    return torch.arange(x.shape[0], device=x.device) * 5 % x.shape[1]


def cross_entropy_gradient(x, **options):
    x = x.detach().clone().requires_grad_()
    loss = F.cross_entropy(x, classes(x), **options)
    loss.backward()
    return torch.cat([x.grad.flatten(), loss.detach().reshape(1)])


FUNCTIONS |= {"cross_entropy": lambda x: F.cross_entropy(x, classes(x)), "cross_entropy_gradient": cross_entropy_gradient,
              "cross_entropy_ignored": lambda x: cross_entropy_gradient(x, ignore_index=5), "cross_entropy_sum": lambda x: cross_entropy_gradient(x, reduction="sum")}


def linear(x, activation):
    weight = (torch.arange(8 * x.shape[-1], device=x.device) % 7 - 3.0).reshape(8, -1).to(x.dtype) / 16
    with torch.no_grad():  # what a library call does with it is the activation too
        return activation(F.linear(x, weight, weight[:, 0] * 4)) * 1.5


FUNCTIONS |= {"linear_relu": lambda x: linear(x, F.relu), "linear_relu_in_place": lambda x: linear(x, F.relu_), "linear_gelu": lambda x: linear(x, lambda y: F.gelu(y, approximate="tanh")),
              "linear_batch_relu": lambda x: linear(x.unsqueeze(1), torch.relu)}


def layouts(make):
    """name -> two tensors of (48, 64) elements, contiguous, transposed, strided, broadcast, of odd sizes and long rows."""
    yield "dense", make(48, 64), make(48, 64)
    yield "transposed", make(64, 48).t(), make(48, 64)
    yield "strided", make(48, 128)[:, ::2], make(96, 64)[::2]
    yield "broadcast", make(48, 1).expand(48, 64), make(64)
    yield "odd", make(7, 33), make(7, 33)
    yield "rows", make(3, 5000), make(3, 5000)


def cases():
    torch.manual_seed(0)
    device = "cuda"
    for dtype in FLOATS:
        for layout, x, y in layouts(lambda *sizes, dtype=dtype: (torch.rand(*sizes, device=device) * 0.9 + 0.05).to(dtype)):
            some = layout in ("dense", "odd")
            for name in UNARY if some else ("exp", "tanh"):
                function = getattr(torch, name)
                argument = x + 1 if name == "acosh" else x
                yield f"{name} {dtype} {layout}", lambda i, f=function, x=argument: f(x * 1)
            for name in BINARY if some else ("add", "true_divide"):
                yield f"{name} {dtype} {layout}", lambda i, f=getattr(torch, name), x=x, y=y: f(x, y) if f in (torch.eq, torch.lt) else f(x + 0, y)
            for name in REDUCTIONS:
                for dim in (0, 1):
                    yield f"{name} {dim} {dtype} {layout}", lambda i, f=getattr(torch, name), x=x, dim=dim: f(x * 2, dim=dim)
            yield f"sum all {dtype} {layout}", lambda i, x=x: (x * 2).sum()
            for name, function in FUNCTIONS.items():
                yield f"{name} {dtype} {layout}", lambda i, f=function, x=x: f(x - 0.5)
    for dtype in INTEGERS:
        for layout, x, y in layouts(lambda *sizes, dtype=dtype: torch.randint(0, 100, sizes, device=device).to(dtype)):
            for name in OF_INTEGERS:
                yield f"{name} {dtype} {layout}", lambda i, f=getattr(torch, name), x=x, y=y: f(x + i % 1, y)
            yield f"sum {dtype} {layout}", lambda i, x=x: (x * 2).sum(0)
            yield f"to float {dtype} {layout}", lambda i, x=x: x.float() / 3
    big = torch.randn(3000, 1024, device=device)
    for name, function in {"columns": lambda x: x.sum(0), "everything": lambda x: x.sum(), "largest": lambda x: x.amax(), "norm": lambda x: (x * x).sum().sqrt()}.items():
        yield f"split {name}", lambda i, f=function: f(big * 0.5)
    yield "split with a store", lambda i: torch.cat([(y := torch.tanh(big[:, :64])), y.sum(0, keepdim=True)])
    view = big.view(-1)[1 : 1 + 1024 * 64]
    yield "not aligned", lambda i: view * 2 + 1
    weight, bias = torch.rand(1024, device=device), torch.rand(1024, device=device)
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]

    def on_a_stream(i):  # a trace's intermediates lie in the same memory on whatever stream it runs
        stream = streams[i % 2]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            out = torch.softmax(big @ big.t() * 0.01, -1) @ big
        torch.cuda.current_stream().wait_stream(stream)
        return out.sum(0)

    yield "streams in turn", on_a_stream
    yield "bias gradient", lambda i: (torch.sigmoid(big) * (1 - torch.sigmoid(big))).sum(0) * weight + bias
    yield from attentions(device)
    yield from products_of_one_row(device)
    yield from layers_of_images(device)
    yield from scans(device)
    yield from reads_by_indexes(device)
    yield from writes_by_indexes(device)


def attentions(device):
    """Of f32, without gradients: one kernel of its own; with heads of other sizes, masks, and as a decoding loop asks."""
    for batch, heads, queries, keys, size in ((2, 3, 37, 50, 64), (1, 4, 128, 128, 32), (3, 1, 1, 70, 64), (1, 2, 33, 5, 40), (1, 12, 1, 600, 64)):
        q, k, v = (torch.randn(batch, length, heads, size, device=device).transpose(1, 2) for length in (queries, keys, keys))
        mask = torch.zeros(batch, 1, queries, (keys + 7) // 8 * 8, device=device)
        mask[..., keys // 2 :] = float("-inf")
        mask[:, :, queries // 2] = float("-inf")
        mask = mask[..., :keys].expand(batch, heads, queries, keys)
        for name, options in {"": {}, " causal": {"is_causal": True}, " masked": {"attn_mask": mask}, " scaled": {"scale": 0.3}}.items():
            def attend(i, q=q, k=k, v=v, options=options):
                with torch.no_grad(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION):
                    return F.scaled_dot_product_attention(q, k, v, **options) + 1
            yield f"attention {batch} {heads} {queries} {keys} {size}{name}", attend


def products_of_one_row(device):
    """A vector by a matrix that lies either way, with and without a bias."""
    for dtype in FLOATS:
        for rows, columns in ((768, 512), (33, 77), (4000, 16), (64, 3000)):
            x, weight, bias = (torch.rand(*sizes, device=device).sub(0.5).to(dtype) for sizes in ((1, rows), (rows, columns), (columns,)))
            across = weight.t().contiguous().t()
            for layout, matrix in (("rows", weight), ("columns", across)):
                yield f"mm {dtype} {rows} {columns} {layout}", lambda i, x=x, m=matrix: x @ m
                yield f"addmm {dtype} {rows} {columns} {layout}", lambda i, x=x, m=matrix, b=bias: torch.sigmoid(torch.addmm(b, x, m))


IMAGE_LAYERS = {
    "group norm": lambda x, w: F.group_norm(x, 3), "group norm weights": lambda x, w: F.group_norm(x, 4, w, w), "instance norm": lambda x, w: F.group_norm(x, 12, w, w),
    "group norm silu": lambda x, w: F.silu(F.group_norm(x + 1, 4, w, w)) + x,
    "max pool 2": lambda x, w: F.max_pool2d(x, 2), "max pool 3 2 1": lambda x, w: F.relu(F.max_pool2d(x, 3, 2, 1)), "max pool 3 1": lambda x, w: F.max_pool2d(x, 3, 1),
    "max pool 5 1 2": lambda x, w: F.max_pool2d(x, 5, 1, 2), "max pool ceil": lambda x, w: F.max_pool2d(x, 2, 2, ceil_mode=True), "max pool dilated": lambda x, w: F.max_pool2d(x, 2, 1, 1, 2),
    "avg pool 2": lambda x, w: F.avg_pool2d(x, 2), "avg pool 3 1 1": lambda x, w: F.avg_pool2d(x, 3, 1, 1) * 2, "avg pool 3 2": lambda x, w: F.avg_pool2d(x, 3, 2),
    "avg pool ceil": lambda x, w: F.avg_pool2d(x, (2, 3), 2, (1, 0), True, False), "avg pool divisor": lambda x, w: F.avg_pool2d(x, 2, 1, 1, divisor_override=3),
    "avg pool all": lambda x, w: F.avg_pool2d(x, (12, 16)), "adaptive": lambda x, w: F.adaptive_avg_pool2d(x, (4, 8)), "adaptive reduced": lambda x, w: F.adaptive_avg_pool2d(x, (2, 2)),
}


def gradient_of(function, x, w):
    x = x.detach().clone().requires_grad_()
    y = function(x, w)
    y.backward(torch.cos(torch.arange(y.numel(), device=x.device)).to(y.dtype).view(y.shape))
    return x.grad


def batch_norm_step(x, w):
    """Results, running statistics and all gradients in training. The sums of many elements are brought to the size of one."""
    x, w = x.detach().clone().requires_grad_(), w.clone().requires_grad_()
    bias, mean, variance = w.detach().sub(0.5).requires_grad_(), torch.zeros_like(w.detach()), torch.ones_like(w.detach())
    y = torch.tanh(F.batch_norm(x, mean, variance, w, bias, training=True))
    y.backward(torch.cos(torch.arange(y.numel(), device=x.device)).to(y.dtype).view(y.shape))
    of_one = (x.numel() / len(w)) ** -0.5
    return torch.cat([part.flatten().double() for part in (y.detach(), x.grad, w.grad * of_one, bias.grad * of_one, mean, variance)]).to(x.dtype)


def layers_of_images(device):
    """Normalisation and pooling with their gradients, contiguous and channels last; where the largest elements are, of equal ones, infinities and what is no number too."""
    for dtype in FLOATS:
        weight = torch.rand(12, device=device).to(dtype)
        for layout in (torch.contiguous_format, torch.channels_last):
            x = torch.randn(3, 12, 12, 16, device=device).to(dtype).contiguous(memory_format=layout)
            for name, function in IMAGE_LAYERS.items():
                yield f"{name} {dtype} {layout}", lambda i, f=function, x=x, w=weight: f(x, w)
                yield f"{name} gradient {dtype} {layout}", lambda i, f=function, x=x, w=weight: gradient_of(f, x, w)
            for sizes in ((3, 12, 12, 16), (16, 8, 128, 128), (5, 100, 40, 40)):  # few channels of many pixels: each pass is a kernel of its own
                x_norm, w_norm = torch.randn(*sizes, device=device).to(dtype).contiguous(memory_format=layout), torch.rand(sizes[1], device=device).to(dtype if dtype == torch.float64 else torch.float32)
                yield f"batch norm training {sizes} {dtype} {layout}", lambda i, x=x_norm, w=w_norm: batch_norm_step(x, w)
            special = (x * 2).round().contiguous(memory_format=layout)
            special[:, :, ::5, ::7] = float("nan")
            special[:, 1:, 3:6, 4:9] = float("-inf")
            for arguments in ((2,), (3, 2, 1), (3, 1, 1)):
                yield f"max pool indices {arguments} {dtype} {layout}", lambda i, x=special, a=arguments: F.max_pool2d(x, *a, return_indices=True)[1]
    volume = torch.randn(2, 3, 6, 7, 8, device=device)
    for name, function in {"max": lambda x, w: F.max_pool3d(x, 3, 2, 1), "avg": lambda x, w: F.avg_pool3d(x, 2), "avg padded": lambda x, w: F.avg_pool3d(x, 3, 2, 1)}.items():
        yield f"{name} pool of volumes", lambda i, f=function: f(volume, None)
        yield f"{name} pool of volumes gradient", lambda i, f=function: gradient_of(f, volume, None)


def scans(device):
    """Along rows and down columns, of one chunk and of many; of 16 bits only short ones, as eager rounds each sum."""
    for dtype in FLOATS + INTEGERS + (torch.bool,):
        for rows, columns in ((48, 64), (7, 33)) if dtype in (torch.bfloat16, torch.float16) else ((48, 64), (7, 33), (3, 5000), (3000, 5), (1, 30000)):
            x = torch.rand(rows, columns, device=device).to(dtype) if dtype.is_floating_point else torch.randint(0, 100, (rows, columns), device=device).to(dtype)
            for dim in (0, 1):
                yield f"cumsum {dim} {dtype} {rows} {columns}", lambda i, x=x, dim=dim: x.cumsum(dim)
                yield f"cumsum of a transposed one {dim} {dtype} {rows} {columns}", lambda i, x=x, dim=dim: (x.t() + 0).cumsum(dim) * 2
                if dtype != torch.bool:
                    yield f"cumsum in place {dim} {dtype} {rows} {columns}", lambda i, x=x, dim=dim: (x.t() + 0).cumsum_(dim) * 2
                yield f"cumprod {dim} {dtype} {rows} {columns}", lambda i, x=x * 0.01 + 0.995 if dtype.is_floating_point else x, dim=dim: x.cumprod(dim)
                if dtype.is_floating_point:
                    yield f"logcumsumexp {dim} {dtype} {rows} {columns}", lambda i, x=x, dim=dim: (x * 3).logcumsumexp(dim)
                    yield f"probabilities {dim} {dtype} {rows} {columns}", lambda i, x=x, dim=dim: x.softmax(dim).cumsum(dim) + x
def reads_by_indexes(device):
    """Rows and elements of tensors of each dtype and layout, by indexes of both dtypes, from the end too, alone and among other work."""
    for k, dtype in enumerate((*FLOATS, *INTEGERS, torch.bool)):
        of_index = (torch.int64, torch.int32)[k % 2]
        for layout, x, _ in layouts(lambda *sizes, dtype=dtype: torch.randint(0, 100, sizes, device=device).to(dtype)):
            if layout != "dense" and k > 2 and (k + len(layout)) % 3 > 0:
                continue
            rows, columns = x.shape
            index = (torch.arange(40, device=device) * 7 % rows).to(of_index)
            few = (index % 3).view(8, 5)
            across = torch.arange(rows * 5, device=device).view(5, rows).t() * 11 % columns
            half, third = few[:4, :1], across.t()[:4] % 3
            first, last, low, even, one = half * 0, half - 1, across[:3] % 3, x[:, : columns // 2 * 2], x[None]
            for name, function in {
                "embedding": lambda index=index, x=x: F.embedding(index, x), "embedding of pairs": lambda index=few[::2], x=even: F.embedding(index, x, padding_idx=1),
                "index_select 0": lambda index=index, x=x: x.index_select(0, index), "index_select 1": lambda index=few[0], x=x: x.index_select(-1, index),
                "gather 1": lambda index=across, x=x: x.gather(1, index), "gather 0": lambda index=low, x=x: x.gather(0, index),
                "index rows": lambda index=-index, x=x: x[index], "index columns": lambda index=few - 3, x=x: x[:, index],
                "index both": lambda index=half, other=third, x=x: x[index, other], "index apart": lambda index=first, other=last, x=one: x[index, :, other],
            }.items():
                yield f"{name} {dtype} {layout}", lambda i, f=function: f()
                yield f"{name} {dtype} {layout} with more", lambda i, f=function: f().to(torch.float32) * 2 + 1
    big, words, places = torch.randn(500, 768, device=device), torch.randint(0, 500, (16, 128), device=device), torch.arange(128, device=device)
    norm = torch.nn.LayerNorm(768, device=device)

    def embed(i):
        with torch.no_grad():
            return norm(F.embedding(words, big) + F.embedding(places, big)[None] * 0.5)

    yield "embedding and norm", embed
    yield "rows that are written between", lambda i: (big.index_select(0, words[0]) + big.mul(2).index_select(0, words[1])).sum(0)
    yield "columns of rows", lambda i: big[words].sum((0, 1))


def writes_by_indexes(device):
    """Rows and elements to where indexes say, into copies and in place, of each dtype and layout; additions of whole numbers, whose order nobody sees."""
    for k, dtype in enumerate((*FLOATS, *INTEGERS, torch.bool)):
        of_index = (torch.int64, torch.int32)[k % 2]
        number = True if dtype == torch.bool else 3
        for layout, x, _ in layouts(lambda *sizes, dtype=dtype: torch.randint(0, 100, sizes, device=device).to(dtype)):
            if layout == "broadcast" or (layout != "dense" and k > 2 and (k + len(layout)) % 3 > 0):
                continue
            rows, columns = x.shape
            index, many = torch.arange(rows - 1, max(rows - 6, -1), -1, device=device), torch.arange(300, device=device) * 7 % rows
            across = (torch.arange(rows, device=device)[:, None] + torch.arange(5, device=device) * 2) % columns
            source, values, one = (torch.randint(0, 100, (n, columns), device=device).to(dtype) for n in (len(index), rows, 1))
            added = torch.randint(0, 100, (300, columns), device=device).to(dtype)
            cases = {
                "index_copy 0": lambda x=x, i=index, s=source: x.index_copy(0, i, s), "index_copy_ 1": lambda x=x, i=across[0], s=values[:, :5]: x.clone().index_copy_(1, i, s),
                "index_fill": lambda x=x, i=index - rows, n=number: x.index_fill(0, i, n), "scatter": lambda x=x, i=across, s=values: x.scatter(1, i, s),
                "scatter_ of a number": lambda x=x, i=across[:3] % columns, n=number: x.clone().scatter_(1, i, n), "index_put rows": lambda x=x, i=index.to(of_index) - rows, s=source: x.index_put((i,), s),
                "index_put elements": lambda x=x, i=index[:, None], j=across[0], s=one[0, :1]: x.clone().index_put_((i, j), s),
            }
            if dtype in (torch.float32, torch.float64, torch.int64, torch.int32):
                cases |= {"index plus": lambda x=x, i=many.to(of_index), s=added: x.index_add(0, i, s, alpha=2), "index plus in place": lambda x=x, i=across[0].repeat(3), s=added[:rows, :15] if rows <= 300 else None: x.clone().index_add_(1, i, s),
                          "scatter plus": lambda x=x, i=across // 2, s=values: x.scatter_add(1, i, s), "scatter plus in place": lambda x=x, i=(many[:, None] + torch.arange(columns, device=device)) % rows, s=added: x.clone().scatter_add_(0, i, s)}
            for name, function in cases.items():
                yield f"{name} {dtype} {layout}", lambda i, f=function: f()
    nodes, edges, weight = torch.randint(-50, 50, (400, 96), device=device).float(), torch.randint(0, 400, (2, 3000), device=device), torch.randint(0, 4, (3000, 1), device=device).float()
    yield "messages", lambda i: torch.zeros(400, 96, device=device).index_add_(0, edges[1], nodes[edges[0]] * weight) + nodes
    yield "sums of messages", lambda i: torch.zeros(400, device=device).index_add_(0, edges[1], (nodes[edges[0]] * weight).sum(1))


def close(first, last, rounding=None):
    if first.dtype != last.dtype or first.shape != last.shape:
        return False
    if first.dtype not in ROUNDING:
        return torch.equal(first, last)
    rounding = rounding or ROUNDING[first.dtype]
    a, b = first.double(), last.double()
    finite = a[a.isfinite()].abs()
    scale = a.abs() + 0.05 * (finite.max() if finite.numel() else 1)  # sums cancel
    same = ((a - b).abs() <= 8 * rounding * scale) | (a == b) | (a.isnan() & b.isnan())
    return bool(same.all())


def main(names):
    if not torch.cuda.is_available():
        sys.exit(77)
    part, parts = 0, 1
    if names[:1] == ["--part"]:
        part, parts = map(int, names[1].split("/"))
        names = names[2:]
    wanted = (case for case in cases() if not names or any(name in case[0] for name in names))
    # Called from C, so that each case's loop is the outermost one.
    outcomes = list(map(check, itertools.islice(wanted, part, None, parts)))
    print(f"{sum(outcomes)} passed, {len(outcomes) - sum(outcomes)} failed")
    sys.exit(not all(outcomes))


def check(case):
    name, function = case
    space = {"STEPS": STEPS}  # a loop of its own for each case: traces of others would leave no room
    exec(compile(LOOP, name, "exec"), space)
    results = space["run"](function)
    rounding = 2e-8 if name.startswith("hardswish torch.float64") else None  # eager's 1 / 6 is a float
    wrong = [result for result in results if not close(results[0], result, rounding)]
    if wrong:
        a, b = results[0].double(), wrong[0].double()
        print(f"FAILED {name}: largest difference {(a - b).abs().max().item():.3g} of {a.abs().max().item():.3g}")
    else:
        print(f"passed {name}")
    return not wrong


LOOP = """
def run(function):
    results = []
    for i in range(STEPS):
        results.append(function(i))
    return results
"""

if __name__ == "__main__":
    main(sys.argv[1:])
