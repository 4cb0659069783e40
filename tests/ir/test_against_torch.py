"""Lowered ATen operations against PyTorch's own: dtypes exactly, values to rounding.

Small torch programs run under a dispatch mode that records each operation with its arguments, the memory it starts from and the memory
it leaves (recorded.py). lower_run (DYNVM_LOWER_RUN) lowers each of them and runs the kernels, interpreted and compiled. An operation that does not lower
must be in NOT_LOWERED; a result that differs by more than a few roundings fails with the operation's text.
"""

import struct
import unittest
from collections import Counter

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    raise unittest.SkipTest("needs torch")

from recorded import Recorder, WholeRecorder, run, view

# Operations of these programs that stay library calls, each for its reason.
NOT_LOWERED = {
    "aten::mm", "aten::addmm", "aten::bmm", "aten::convolution", "aten::convolution_backward",  # libraries
    "aten::bernoulli_", "aten::native_dropout", "aten::randn", "aten::rand", "aten::randint",  # random
    "aten::nll_loss_forward", "aten::embedding_dense_backward", "aten::one_hot",  # indexing
    "aten::_scaled_dot_product_flash_attention_for_cpu", "aten::linspace", "aten::_local_scalar_dense",
    "aten::new_empty_strided",  # nothing is computed
}
BY_INDEXES = {f"aten::{name}" for name in ("embedding", "index", "gather", "index_select", "scatter", "scatter_add", "index_add", "index_copy", "index_fill", "index_put",
                                           "scatter_", "scatter_add_", "index_add_", "index_copy_", "index_fill_", "index_put_")}
FASTER_ON_CPUS = {"aten::max_pool2d_with_indices_backward", "aten::max_pool3d_with_indices_backward", "aten::native_group_norm_backward"}  # the library's
NOT_LOWERED |= BY_INDEXES | FASTER_ON_CPUS
ON_GPUS = {"aten::mm", "aten::addmm"} | BY_INDEXES | FASTER_ON_CPUS  # products of one row


def tolerance(dtype, name):
    if not dtype.is_floating_point or "pool" in name:  # sums in eager's order
        return 0, 0
    eps = torch.finfo(dtype).eps
    wide = any(word in name for word in ("sum", "cumprod", "mean", "norm", "softmax", "var", "std", "loss", "backward"))
    return (64 if wide else 8) * eps, (64 if wide else 4) * eps


def inputs(shape=(4, 6), dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point:
        return (torch.randn(shape, generator=generator) * 1.5).to(dtype)
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) > 0.5
    return torch.randint(-5 if dtype != torch.uint8 else 0, 6, shape, generator=generator).to(dtype)


class AgainstTorch(unittest.TestCase):
    lowered = Counter()

    def check(self, program, *mode):
        with Recorder() as recorder:
            program()
        bad = []
        for case, code, message, memories in run(recorder.cases, *mode):
            if code == 1:
                if case.name not in (NOT_LOWERED - ON_GPUS if mode else NOT_LOWERED) and not message.startswith(("dtype", "integer", "bool", "floating")):
                    bad.append(f"not lowered ({message}): {case.text}")
                continue
            if code == 2:
                bad.append(f"broken: {message}\n{case.text}")
                continue
            AgainstTorch.lowered[case.name] += 1
            for output in case.outputs:
                want = view(case.after[output[0]], output)
                relative, absolute = tolerance(want.dtype, case.name)
                for kind, memory in zip(("interpreted", "compiled"), memories):
                    got = view(memory[output[0]], output)
                    if want.dtype == torch.bool:
                        same = torch.equal(want, got)
                    else:
                        scale = max(1.0, want[torch.isfinite(want)].abs().max().item() if torch.isfinite(want).any() else 1.0)
                        same = torch.allclose(got.double(), want.double(), rtol=relative, atol=absolute * scale, equal_nan=True)
                    if not same:
                        bad.append(f"{kind} differs:\n{case.text}\n{message}\nwant {want}\ngot  {got}")
                        break
        if bad:
            kinds = {}
            for text in bad:
                kinds.setdefault(text.split("(%t")[0].split("(ints")[0], text)
            self.fail(f"{len(bad)} of {len(recorder.cases)}:\n" + "\n".join(list(kinds.values())[:12]))

    def test_unary(self):
        def program():
            for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.bool, torch.uint8):
                x = inputs(dtype=dtype)
                for name in ("neg abs sign sgn floor ceil trunc round reciprocal sqrt rsqrt exp exp2 expm1 log log1p log2 log10 sin cos tan "
                             "asin acos atan sinh cosh tanh asinh acosh atanh sigmoid erf erfc isnan isinf logical_not bitwise_not relu").split():
                    try:
                        getattr(torch, name)(x)
                    except (RuntimeError, TypeError):
                        pass
                if dtype.is_floating_point:
                    for f in (F.gelu, F.silu, F.mish, F.softplus, F.hardswish, F.hardsigmoid, F.hardtanh, F.leaky_relu, F.elu, F.relu6,
                              F.softshrink, F.hardshrink, torch.frac, F.celu, F.selu, F.logsigmoid):
                        try:
                            f(x)
                        except RuntimeError:
                            pass
                    F.gelu(x, approximate="tanh")
                    F.threshold(x, 0.1, 20.0)
                    y = x.clone()
                    y.tanh_()
                    y.mul_(3).sigmoid_()
        self.check(program)

    def test_binary_promotion(self):
        types = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int32, torch.bool, torch.uint8)

        def program():
            for a in types:
                for b in types:
                    for x, y in ((inputs(dtype=a), inputs(dtype=b, seed=1)), (inputs(dtype=a), inputs((), b, 2)),
                                 (inputs((), a), inputs((6,), b, 3)), (inputs((4, 1), a), inputs((1, 6), b, 4))):
                        for name in "add sub mul div maximum minimum eq lt ge logical_and logical_xor remainder where".split():
                            try:
                                if name == "where":
                                    torch.where(inputs((4, 6), torch.bool), x, y)
                                else:
                                    getattr(torch, name)(x, y)
                            except RuntimeError:
                                pass
                    try:
                        x = inputs(dtype=a).clone()
                        x.add_(inputs(dtype=b, seed=5))
                        x.mul_(inputs((6,), b, 6))
                    except RuntimeError:
                        pass
        self.check(program)

    def test_numbers(self):
        def program():
            for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool, torch.uint8):
                x = inputs(dtype=dtype)
                for value in (2, -3, 0.5, 2.5, True, 0, 3):
                    for f in (lambda: x + value, lambda: value - x, lambda: x * value, lambda: x / value, lambda: x ** value, lambda: x > value,
                              lambda: torch.clamp(x, min=value), lambda: torch.clamp(x, max=value), lambda: torch.clamp(x, -1, value),
                              lambda: x.masked_fill(x > 0, value), lambda: torch.add(x, x, alpha=value), lambda: x // value, lambda: x % value,
                              lambda: value ** x, lambda: torch.fmod(x, value), lambda: torch.full_like(x, value), lambda: x.clone().fill_(value),
                              lambda: torch.div(x, value, rounding_mode="trunc"), lambda: torch.div(x, value, rounding_mode="floor"),
                              lambda: torch.rsub(x, value)):
                        try:
                            f()
                        except (RuntimeError, ZeroDivisionError):
                            pass
                for exponent in (2, 3, 0.5, -1, -0.5, -2, 1, 0, 4.0, 1.7):
                    try:
                        x.abs() ** exponent
                    except RuntimeError:
                        pass
        self.check(program)

    def test_layouts(self):
        def program():
            x, y = inputs((5, 7)), inputs((7, 5), seed=1)
            x + y.t()
            x[1:, 1::2] * y.t()[:-1, 1::2]
            x[:, 3] + y[2]
            x.t().contiguous()
            x.expand(3, 5, 7).clone()
            x.t().clone(memory_format=torch.preserve_format).mul_(2)
            z = torch.zeros(4, 6)
            z[1:3, 2:5] = inputs((2, 3))
            z[0].copy_(inputs((6,), torch.int64))
            z[:, 1].add_(1)
            torch.cat([x, y.t(), torch.zeros(2, 7)], 0)
            torch.cat([x.to(torch.float64), y.t()], 1)
            torch.stack([x, x])
            F.pad(x, (1, 2, 3, 0), value=1.5)
            torch.flip(x, (0, 1))
            torch.tril(x)
            torch.triu(x, 2)
            torch.arange(3, 20, 4)
            torch.arange(7, dtype=torch.int32)
            torch.ones(3, 3), torch.full((2, 3), 2.5), torch.zeros_like(x), torch.ones_like(x)
            x.to(torch.bfloat16), x.to(torch.int64), x.to(torch.bool), (x * 40).to(torch.int8)
            x.new_zeros(3), x.new_full((3,), 4)
            inputs((2, 3, 4, 5)).permute(0, 2, 3, 1).contiguous().view(2, -1)
            torch.repeat_interleave  # not called: data-dependent
            x.repeat(2, 3)
        self.check(program)

    def test_reductions(self):
        def program():
            for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool):
                x = inputs((4, 5, 6), dtype)
                for f in (torch.sum, torch.mean, torch.amax, torch.amin, torch.prod, torch.any, torch.all, torch.argmax, torch.argmin, torch.max,
                          torch.min, torch.var, torch.std, torch.logsumexp):
                    for arguments in ({}, {"dim": 1}, {"dim": -1, "keepdim": True}, {"dim": (0, 2)}, {"dim": 0}):
                        try:
                            f(x, **arguments)
                        except (RuntimeError, TypeError):
                            pass
                try:
                    torch.var_mean(x, dim=(0, 2), correction=0)
                    torch.linalg.vector_norm(x)
                    torch.linalg.vector_norm(x, 1, dim=1)
                    torch.linalg.vector_norm(x, float("inf"), dim=(0, 1), keepdim=True)
                    torch.linalg.vector_norm(x, 3)
                    torch._foreach_norm([x, x[0]])
                except RuntimeError:
                    pass
            for x in (inputs((4, 5), torch.int64), inputs((4, 5)).round(), inputs((), torch.int32)):
                for tests in (x.flatten()[:1] + 1, x.flatten()[0], torch.arange(-2, 4)[::2].to(x.dtype)):
                    torch.isin(x, tests), torch.isin(x, tests, invert=True)
            x = inputs((3, 4))
            x[1, 2] = float("nan")
            for f in (torch.amax, torch.amin, torch.argmax, torch.sum, torch.max):
                f(x, dim=1)
            x.t().sum(0)
            inputs((300, 70)).sum(0), inputs((3, 5000)).sum(1), inputs((7, 1111)).mean()
            torch.sum(inputs(dtype=torch.float32), dtype=torch.float64)
        self.check(program)

    def test_softmax_and_norms(self):
        def program():
            for dtype in (torch.float32, torch.float64, torch.bfloat16):
                x = inputs((4, 6, 5), dtype).requires_grad_()
                for dim in (0, 1, 2):
                    y = torch.softmax(x, dim)
                    y.backward(inputs((4, 6, 5), dtype, 1))
                    y = torch.log_softmax(x, dim)
                    y.backward(inputs((4, 6, 5), dtype, 2))
                w = inputs((5,), dtype, 3).requires_grad_()
                b = inputs((5,), dtype, 4).requires_grad_()
                F.layer_norm(x, (5,), w, b).backward(inputs((4, 6, 5), dtype, 5))
                F.layer_norm(x, (6, 5)).backward(inputs((4, 6, 5), dtype, 6))
                image = inputs((3, 4, 5, 2), dtype, 7).requires_grad_()
                if dtype != torch.bfloat16:
                    mean, var = torch.zeros(4, dtype=dtype), torch.ones(4, dtype=dtype)
                    weight, bias = (inputs((4,), dtype, k).requires_grad_() for k in (8, 9))
                    F.batch_norm(image, mean, var, weight, bias, True).backward(inputs((3, 4, 5, 2), dtype, 10))
                    F.batch_norm(image, mean, var, weight, bias, False).backward(inputs((3, 4, 5, 2), dtype, 11))
        self.check(program)

    def test_group_norm(self):
        def program():
            for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
                for shape in ((3, 6, 5, 4), (2, 6, 7), (4, 6), (2, 6, 2, 3, 2), (1, 6, 1, 40)):
                    image = inputs(shape, dtype, 7)
                    wide = torch.channels_last if len(shape) == 4 else torch.channels_last_3d if len(shape) == 5 else torch.contiguous_format
                    for x in (image, image.contiguous(memory_format=wide)):
                        for groups in (1, 2, 6) if len(shape) > 2 else (1, 2):  # gradients of one element are what rounding leaves
                            weight, bias = (inputs((6,), dtype, k).requires_grad_() for k in (8, 9))
                            x = x.detach().requires_grad_()
                            F.group_norm(x, groups, weight, bias).backward(inputs(shape, dtype, 10))
                            F.group_norm(x, groups, eps=0.1).backward(inputs(shape, dtype, 11))
                if dtype not in (torch.float32, torch.float64):  # weights of a wider dtype, as statistics are then
                    x, weight, bias = image.requires_grad_(), inputs((6,), seed=8).requires_grad_(), inputs((6,), seed=9).requires_grad_()
                    F.group_norm(x, 3, weight, bias).backward(inputs(shape, dtype, 10))
                    F.group_norm(x, 3, weight, None)
            F.group_norm(inputs((2, 12, 5))[:, ::2], 2), F.group_norm(inputs((2, 6, 5, 4)).transpose(2, 3), 3), F.group_norm(torch.full((2, 6, 5), 3.0), 2)
        for mode, least in (((), 60), (("cuda",), 90)):
            before = AgainstTorch.lowered["aten::native_group_norm_backward"]
            self.check(program, *mode)
            self.assertGreater(AgainstTorch.lowered["aten::native_group_norm_backward"] - before, least)

    def images(self, dtypes, *more):
        """Batches and single images, contiguous and channels last, with equal numbers, infinities and what is no number."""
        for dtype in dtypes:
            for shape in ((2, 3, 7, 8), (3, 6, 6), *more):
                image = (inputs(shape, dtype, 1) * 2).round() / 2
                image.view(-1)[::17], image.view(-1)[3::29] = float("nan"), float("-inf")
                for x in (image, image.contiguous(memory_format=torch.channels_last)) if len(shape) == 4 else (image, image.transpose(1, 2)):
                    yield x.detach().requires_grad_()

    @staticmethod
    def pool(function, x, *arguments, **options):
        out = function(x, *arguments, **options)
        out.backward(inputs(tuple(out.shape), out.dtype, 2).contiguous(memory_format=torch.channels_last if out.dim() == 4 and x.stride(1) == 1 else torch.contiguous_format))

    def test_pooling(self):
        def program():
            for x in self.images((torch.float32, torch.float64, torch.bfloat16, torch.float16)):
                for function in (F.max_pool2d, F.avg_pool2d):
                    for arguments in ((2,), ((1, 3),), (2, 3), ((3, 2), (4, 2)), (1,)):
                        self.pool(function, x, *arguments)
                    with torch.no_grad():
                        function(x, 3, 1), function(x, (2, 3), (1, 2)), function(x[..., 1:, ::2], 3)
                self.pool(F.avg_pool2d, x, 2, divisor_override=3)
                self.pool(F.max_pool2d, x, 2, 3, dilation=2)
                with torch.no_grad():
                    F.max_pool2d(x, 3, 1, dilation=(1, 2))
                self.pool(F.adaptive_avg_pool2d, x, (x.shape[-2], x.shape[-1] // 2))
                self.pool(F.adaptive_avg_pool2d, x, (1, 2))
            self.pool(F.avg_pool2d, inputs((2, 3, 13, 18)).round().requires_grad_(), 6)  # windows that are reduced: sums that are exact
            for shape in ((2, 2, 4, 5, 6), (2, 4, 4, 4)):
                for dtype in (torch.float32, torch.float64):  # eager has no others on CPUs
                    x = inputs(shape, dtype).requires_grad_()
                    for function in (F.max_pool3d, F.avg_pool3d):
                        self.pool(function, x, 2), self.pool(function, x, (1, 2, 2), (2, 2, 3))
                    self.pool(F.adaptive_avg_pool3d, x, (2, shape[-2], 2))
            self.pool(F.max_pool1d, inputs((3, 9)).requires_grad_(), 3), self.pool(F.avg_pool1d, inputs((2, 3, 9)).requires_grad_(), 2)
        before = AgainstTorch.lowered["aten::max_pool2d_with_indices_backward"]
        self.check(program)
        self.assertGreater(AgainstTorch.lowered["aten::max_pool2d_with_indices_backward"] - before, 20)

    def test_pooling_with_padding_on_gpus(self):
        """Gradients of 16 bits aside, which eager adds up in 16 bits on CPUs alone, and where windows of -inf have their largest element in images that lie channels last."""
        windows = ((3, 2, 1, False), (3, 1, 1, False), (2, 2, 0, True), (2, 2, 1, False), ((3, 2), (2, 3), (1, 0), True), (3, 2, 0, False), (3, 2, 0, True), ((2, 5), (1, 2), (1, 2), True))

        def program():
            for x in self.images((torch.float32, torch.bfloat16, torch.float16), (1, 2, 1, 9)):
                exact = x.dtype == torch.float32
                if x.stride(1) == 1:
                    x = x.detach().clamp(min=-9).requires_grad_()
                for size, step, padding, ceil in windows if exact else windows[:3]:
                    if x.shape[-2] == 1 and padding == 0:
                        continue
                    with torch.set_grad_enabled(exact):
                        outs = [F.max_pool2d(x, size, step, padding, ceil_mode=ceil), F.avg_pool2d(x, size, step, padding, ceil),
                                F.avg_pool2d(x, size, step, padding, ceil, False), F.avg_pool2d(x, size, step, padding, ceil, divisor_override=7)]
                    last = x.dim() == 4 and x.stride(1) == 1 and x.stride(3) == x.shape[1] and padding != 0  # their averages have the library's gradients
                    for out in outs[: 1 if last else None] if exact else ():
                        out.backward(inputs(tuple(out.shape), out.dtype, 2))
                if x.shape[-2] > 1:
                    outs = [F.max_pool2d(x, 2, 1, 1, dilation=2), F.max_pool2d(x, (3, 2), 2, (1, 1), dilation=(1, 3)), F.max_pool2d(x, 5, 1, 2)]
                    for out in outs if exact else ():
                        out.backward(inputs(tuple(out.shape), out.dtype, 2))
            x = inputs((2, 5, 6, 7)).requires_grad_()
            for out in (F.max_pool3d(x, 3, 2, 1), F.avg_pool3d(x, 3, 2, 1), F.avg_pool3d(x, 2, 2, 1, count_include_pad=False), F.max_pool3d(x, 2, 1), F.avg_pool3d(x, 2, (1, 2, 1))):
                out.backward(inputs(tuple(out.shape), seed=2))
        before = Counter(AgainstTorch.lowered)
        self.check(program, "cuda")
        for kind in ("max_pool2d_with_indices", "avg_pool2d"):
            for name in (kind, kind + "_backward"):
                self.assertGreater(AgainstTorch.lowered["aten::" + name] - before["aten::" + name], 40, name)

    def test_scans_on_gpus(self):
        def program():
            for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool):
                for x in (inputs((3, 7, 5), dtype), inputs((5, 3, 7), dtype).transpose(0, 2), inputs((), dtype), inputs((4, 1), dtype), inputs((2, 300), dtype)):
                    if dtype in (torch.bfloat16, torch.float16) and x.numel() > 300:
                        continue  # eager's own rounding is as large
                    for dim in range(-1, x.dim()):
                        x.cumsum(dim), (x * 0.5 if dtype.is_floating_point else x).cumprod(dim)
                        if dtype != torch.bool:
                            x.clone().cumsum_(dim), (x * 0.5 if dtype.is_floating_point else x.clone()).cumprod_(dim).add_(1)
                        x.cumsum(dim, dtype=torch.float32), x.cumsum(dim, dtype=torch.int16), x.cumsum(dim, dtype=torch.float16 if x.numel() < 200 else torch.float64)
                        if dtype.is_floating_point:
                            x.logcumsumexp(dim)
            x = inputs((3, 6))
            x[1, 2], x[2, 1], x[0, 3] = float("nan"), float("inf"), float("-inf")
            x.cumsum(1), x.cumprod(0), x.logcumsumexp(1)
        before = Counter(AgainstTorch.lowered)
        self.check(program, "cuda")
        for name, least in (("aten::cumsum", 200), ("aten::cumprod", 50), ("aten::logcumsumexp", 30), ("aten::cumsum_", 50), ("aten::cumprod_", 50)):
            self.assertGreater(AgainstTorch.lowered[name] - before[name], least, name)

    def test_losses(self):
        def program():
            x, y = inputs((6, 5)).requires_grad_(), inputs((6, 5), seed=1)
            for reduction in ("mean", "sum", "none"):
                for f in (F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.l1_loss, F.binary_cross_entropy_with_logits):
                    loss = f(x, y, reduction=reduction)
                    try:
                        loss.sum().backward()
                    except RuntimeError:
                        pass
            F.cross_entropy(x, torch.tensor([0, 1, 2, 3, 4, 0])).backward()
        self.check(program)

    def test_activation_gradients(self):
        def program():
            for dtype in (torch.float32, torch.bfloat16):
                for f in (F.gelu, F.silu, F.mish, F.softplus, F.hardswish, F.hardsigmoid, F.hardtanh, F.leaky_relu, F.elu, F.relu, torch.tanh,
                          torch.sigmoid, lambda t: F.gelu(t, approximate="tanh"), torch.sqrt, torch.abs, lambda t: t ** 3, torch.exp,
                          lambda t: t[1:, 2], lambda t: t[::2], lambda t: F.pad(t, (1, 1)), lambda t: torch.cat([t, t])):
                    x = inputs(dtype=dtype).requires_grad_()
                    y = f(x)
                    y.backward(torch.ones_like(y) * 0.7)
        self.check(program)

    def test_optimizers(self):
        def program():
            for make in (lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
                         lambda p: torch.optim.Adam(p, 0.01), lambda p: torch.optim.AdamW(p, 0.01, foreach=False),
                         lambda p: torch.optim.AdamW(p, 0.01, foreach=True), lambda p: torch.optim.Adam(p, 0.01, foreach=True, amsgrad=True),
                         lambda p: torch.optim.RMSprop(p, 0.01, foreach=True, momentum=0.5), lambda p: torch.optim.Adagrad(p, 0.01),
                         lambda p: torch.optim.SGD(p, 0.1, foreach=True, momentum=0.9)):
                parameters = [torch.nn.Parameter(inputs((3, 4))), torch.nn.Parameter(inputs((5,), seed=1))]
                optimizer = make(parameters)
                for step in range(3):
                    for k, parameter in enumerate(parameters):
                        parameter.grad = inputs(tuple(parameter.shape), seed=10 * step + k)
                    optimizer.step()
                torch.nn.utils.clip_grad_norm_(parameters, 0.5)
                optimizer.zero_grad()
        self.check(program)

    def check_whole(self, program, most_kernels, *mode):
        """program() gives the tensors to compare; its trace must become at most so many kernels."""
        with WholeRecorder() as recorder:
            left = program()
        recorder.finish(*left)
        (_, code, message, memories), = run([recorder], "whole", *mode)
        self.assertEqual(code, 0, message)
        for kind, memory in zip(("interpreted", "compiled"), memories):
            for output, want in zip(recorder.outputs, recorder.expected):
                got = view(memory[output[0]], output)
                self.assertTrue(torch.allclose(got, want, rtol=1e-4, atol=1e-5), f"{kind}:\nwant {want}\ngot  {got}\n{message}")
        kernels = message.count("\nkernel k") - message.count('\nkernel k', message.find("\nsnap"))
        self.assertLessEqual(kernels, most_kernels, message)
        return message

    def test_whole_training_step(self):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3))
        for make, most in ((lambda p: torch.optim.Adam(p, 0.01), 20), (lambda p: torch.optim.SGD(p, 0.01, momentum=0.9), 20),
                           (lambda p: torch.optim.AdamW(p, 0.01, foreach=True), 20)):
            optimizer = make(model.parameters())
            x, y = inputs((5, 6)), inputs((5, 3), seed=1)
            F.mse_loss(model(x), y).backward()
            optimizer.step()

            def step():
                optimizer.zero_grad()
                loss = F.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()
                return [loss, *model.parameters()]
            self.check_whole(step, most)

    def test_whole_attention(self):
        q, k, v = (inputs((2, 4, 6, 5), seed=s).requires_grad_() for s in range(3))

        def attention():
            scores = q @ k.transpose(-1, -2) * 0.3
            scores = scores.masked_fill(torch.triu(torch.ones(6, 6, dtype=torch.bool), 1), float("-inf"))
            out = torch.softmax(scores, -1) @ v
            out.square().mean().backward()
            return [out, q.grad, k.grad, v.grad]
        self.check_whole(attention, 12)

    def test_dropout_out_of_training(self):
        def program():
            for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
                x = inputs((4, 6, 5), dtype)
                for look in (x, x.permute(2, 0, 1), x[:, ::2], x[0, 0, 0]):
                    torch.native_dropout(look, 0.3, False)
        before = AgainstTorch.lowered["aten::native_dropout"]
        self.check(program)
        self.assertEqual(AgainstTorch.lowered["aten::native_dropout"] - before, 16)

    def test_products_of_one_row_on_gpus(self):
        def program():
            for dtype in (torch.float32, torch.float64, torch.bfloat16):
                x, weight, bias = inputs((1, 40), dtype), inputs((40, 7), dtype), inputs((7,), dtype)
                for matrix in (weight, weight.t().contiguous().t(), inputs((80, 14), dtype)[::2, ::2]):
                    torch.mm(x, matrix)
                    torch.addmm(bias, x, matrix), torch.addmm(bias[:1], x, matrix, beta=0.5, alpha=2), torch.addmm(bias.view(1, 7), x, matrix)
        self.check(program, "cuda")

    def test_reads_by_indexes_on_gpus(self):
        def program():
            for k, dtype in enumerate((torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)):
                of_index = (torch.int64, torch.int32)[k % 2]
                x = inputs((7, 6, 5), dtype)
                index = torch.tensor([3, 0, 6, 3, 1], dtype=of_index)
                pairs = torch.tensor([[4, 1, 0, 2], [2, 2, 4, 0]], dtype=of_index)
                for look in (x, x.permute(1, 2, 0).contiguous().permute(2, 0, 1), inputs((14, 6, 10), dtype)[::2, :, 1::2], x[:, :1].expand(7, 6, 5)):
                    for dim in (0, 1, -1):
                        torch.index_select(look, dim, index[:4] % look.shape[dim])
                        torch.index_select(look, dim, index[1])
                    for table in (look[0], look[:, 1], look[1].t()):
                        F.embedding(pairs, table), F.embedding(pairs[:, ::2], table, padding_idx=0), F.embedding(pairs[0, 0], table), F.embedding(pairs.t()[:0], table)
                    look[index], look[:, pairs], look[..., pairs[:, 1]], look[index[:4], pairs], look[index[:4], :, pairs], look[:, pairs[:1], pairs[:, :1]]
                    look[-index.to(of_index) - 1 if of_index == torch.int64 else index], look[index[0], pairs], look[pairs, pairs, -pairs], look[index[2]], look[index[2], :, index[3]]
                for dim in range(3):
                    where = torch.randint(0, x.shape[dim], (5, 4, 3))
                    torch.gather(x, dim, where), torch.gather(x.transpose(0, 2).contiguous().transpose(0, 2), dim, where.transpose(0, 1).contiguous().transpose(0, 1)[:, 1:])
                torch.gather(x[0, 0, 0], 0, torch.tensor(0)), torch.index_select(x[0, 0, 0], 0, torch.tensor([0]))
                torch.take_along_dim(x, torch.tensor([[[1], [0]]]), 1)
        before = AgainstTorch.lowered.copy()
        self.check(program, "cuda")
        for name, least in {"embedding": 350, "index_select": 200, "index": 350, "gather": 60}.items():
            self.assertGreater(AgainstTorch.lowered[f"aten::{name}"] - before[f"aten::{name}"], least, name)
        with Recorder() as recorder:
            program()
        self.assertEqual({code for _, code, _, _ in run([case for case in recorder.cases if case.name in BY_INDEXES])}, {1})  # CPUs raise an error

    def test_writes_by_indexes_on_gpus(self):
        several_of = {size: torch.stack([torch.randperm(size)[:3] for _ in range(8)]).view(2, 4, 3) for size in (5, 6, 7)}

        def program():
            for k, dtype in enumerate((torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)):
                adds, of_index = dtype in (torch.float32, torch.float64, torch.int64, torch.int32), (torch.int64, torch.int32)[k % 2]
                x, number = inputs((7, 6, 5), dtype), 1 if dtype == torch.bool else 3
                for look in (lambda: x.clone(), lambda: x.permute(1, 2, 0).contiguous().permute(2, 0, 1), lambda: torch.cat([x, x], 2)[:, :, ::2]):
                    dense = look().is_contiguous() or look().stride(2) > 2
                    for dim, several in ((0, (3, 0, 6, 5)), (1, (5, 1)), (-1, (4, 0, 2))):
                        index, y = torch.tensor(several), look()
                        source = inputs([len(several) if d == dim % 3 else n for d, n in enumerate(x.shape)], dtype, 1)
                        for to in ((y, torch.index_fill, torch.index_copy, torch.index_add) if dense else ()):
                            if to is torch.index_fill:
                                to(y, dim, index - y.shape[dim], number)
                            elif callable(to) and (adds or to is not torch.index_add):
                                to(y, dim, index, source)
                        look().index_fill_(dim, index, number), look().index_copy_(dim, index, source)
                        where = several_of[x.shape[dim]].movedim(2, dim)
                        values = inputs((5, 6, 7), dtype, 2)[: where.shape[0], : where.shape[1]]
                        look().scatter_(dim, where, values), look().scatter_(dim, where, number)
                        if dense:
                            look().scatter(dim, where, values), look().scatter(dim, where, number)
                        if adds:
                            look().index_add_(dim, index[:1].expand(len(several)).to(of_index), source, alpha=2), look().scatter_add_(dim, where // 2, values)
                            look().scatter_add_(dim, where[:1, :1, :1].expand(where.shape), values)
                    y = look()
                    y[torch.tensor([3, -1])] = inputs((2, 6, 5), dtype, 3)
                    y[:, torch.tensor([[4, 1, 0], [2, 5, 3]]), torch.tensor(1)] = inputs((2, 3), dtype, 4)
                    y[torch.tensor([[0], [2]]), :, torch.tensor([1, 3])] = inputs((1,), dtype, 5)
                    if dense:
                        torch.index_put(look(), [torch.tensor([0, 1]), torch.tensor([1, -1]), torch.tensor([2, 0])], inputs((), dtype))
        before = AgainstTorch.lowered.copy()
        self.check(program, "cuda")
        for name, least in {"index_fill": 50, "index_copy": 50, "index_add": 20, "scatter": 100, "index_put": 15, "index_fill_": 80, "index_copy_": 80, "index_add_": 30, "scatter_": 150, "scatter_add_": 60,
                            "index_put_": 80}.items():
            self.assertGreater(AgainstTorch.lowered[f"aten::{name}"] - before[f"aten::{name}"], least, name)
        with Recorder() as recorder:
            program()
        self.assertEqual({code for _, code, _, _ in run([case for case in recorder.cases if case.name in BY_INDEXES])}, {1})

    def test_writes_that_accumulate_in_order_stay_calls(self):
        with Recorder() as recorder:
            x, index = inputs((5, 3)), torch.tensor([1, 1])
            x.index_put_([index], inputs((2, 3)), accumulate=True), inputs((5, 3), torch.bfloat16).index_add_(0, index, inputs((2, 3), torch.bfloat16))
            x.scatter_(0, index[None], 1.5, reduce="add")
        writes = [case for case in recorder.cases if case.name in BY_INDEXES]
        self.assertEqual([code for _, code, _, _ in run(writes, "cuda")], [1, 1, 1])

    def test_whole_messages(self):
        """What goes along edges is added up in the kernel that computes it; the evaluator's own meaning of it all, where it stays calls."""
        torch.manual_seed(1)
        x, weight, cache, bias = inputs((6, 8)), inputs((20, 1), seed=1), inputs((9, 8), seed=2), inputs((6, 8), seed=3)
        source, target, place, choose = torch.randint(0, 6, (20,)), torch.randint(0, 6, (20,)), torch.tensor([7]), torch.randint(0, 8, (6, 3))

        def step():
            sums = torch.zeros(6, 8).index_add_(0, target, x[source - 6] * weight)
            count = torch.zeros(6).scatter_add_(0, target, torch.ones(20))
            mean = sums / count.clamp(min=1)[:, None] + bias
            cache.index_copy_(0, place, mean[:1])
            cache[place - 9, 2:4] = mean.gather(1, choose)[2, :2]
            return [mean, cache, F.embedding(source, cache), mean.scatter(1, choose[:, :1], 2.0), cache.index_select(1, place).index_fill(0, place, 3.0)]
        self.assertNotIn('"index', self.check_whole(step, 9))
        cache.copy_(inputs((9, 8), seed=2))
        self.assertIn("index_mul_index_add", self.check_whole(step, 16, "cuda"))

    def test_indexes_out_of_bounds_on_gpus(self):
        """A kernel fails where eager's raises here: only index counts from the end."""
        high, wide, one = inputs((5, 3)), inputs((3, 5)), torch.tensor([1])
        for program, bound in ((lambda i: F.embedding(i, high), (0, 5)), (lambda i: high.index_select(0, i), (0, 5)), (lambda i: wide.gather(1, i.view(1, 1)), (0, 5)),
                               (lambda i: high[i], (-5, 5)), (lambda i: wide[one, i], (-5, 5)), (lambda i: wide.scatter(1, i.view(1, 1), 2.0), (0, 5)), (lambda i: wide.index_add(1, i, high[:3, :1]), (0, 5)),
                               (lambda i: high.index_fill_(0, i, 2.0), (-5, 5)), (lambda i: high.index_put_([i], one.float()), (-5, 5)), (lambda i: high.index_copy_(0, i, wide[:1, :3]), (0, 5))):
            with Recorder() as recorder:
                program(torch.tensor([0]))
            case = recorder.cases[-1]
            memory = case.before
            at = next(k for k in reversed(range(len(memory))) if len(memory[k]) == 8 and case.before[k] == struct.pack("<q", 0))
            for index in (bound[0] - 1, bound[0], bound[1] - 1, bound[1], 2 ** 40, -2 ** 63):
                memory[at] = struct.pack("<q", index)
                ((_, code, message, _),) = run([case], "cuda")
                self.assertEqual(code, 0 if bound[0] <= index < bound[1] else 3, f"{case.text} {index} {message}")

    def test_whole_embeddings_on_gpus(self):
        """Rows of the tokens, the sum with those of positions, and its layer norm are one kernel."""
        words, places, tokens, positions = inputs((20, 16)), inputs((9, 16), seed=1), torch.randint(0, 20, (4, 9)), torch.arange(9)
        norm = torch.nn.LayerNorm(16)

        def step():
            x = F.embedding(tokens, words) + F.embedding(positions, places)
            y = norm(x)
            return [x, y]
        trace = self.check_whole(step, 2, "cuda")  # the positions' are of one sentence, in a kernel before
        self.assertIn('"embedding_add_layer_norm', trace)

    def test_attention_on_gpus(self):
        def attend(q, k, v, bias, logsumexp, dropout=0.0, causal=False, *, scale=None):
            scores = q.double() @ k.double().transpose(-1, -2) * (scale or q.shape[-1] ** -0.5)
            if bias is not None:
                scores = scores + bias
            if causal:
                scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
            out = torch.empty(q.shape[0], q.shape[2], q.shape[1], q.shape[3]).transpose(1, 2)
            out.copy_(torch.softmax(scores, -1).nan_to_num() @ v.double())
            return out, torch.empty(0), torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.int64)

        library = torch.library.Library("aten", "IMPL")  # there is none for CPUs
        library.impl("_scaled_dot_product_efficient_attention", attend, "CPU")
        operation = torch.ops.aten._scaled_dot_product_efficient_attention

        def program():
            q, k, v = (inputs((2, length, 3, 16), seed=length).transpose(1, 2) for length in (5, 9, 9))
            mask = inputs((2, 1, 5, 9), seed=1).masked_fill(inputs((2, 1, 5, 9), torch.bool), float("-inf"))
            mask[1, 0, 2] = float("-inf")
            operation(q, k, v, None, False), operation(q, k, v, None, False, 0.0, True), operation(q, k, v, None, False, scale=0.7)
            operation(q, k, v, mask.expand(2, 3, 5, 9), False), operation(q[:1, :, :1], k[:1], v[:1], None, False)
            operation(q, k[:, :1].expand(2, 3, 9, 16), v[:, :1].expand(2, 3, 9, 16), None, False)
        self.check(program, "cuda")
        library._destroy()

    def test_whole_cross_entropy_on_gpus(self):
        """Forward and backward are one kernel over the logits, one before it that counts the rows, and one behind it."""
        logits, target = inputs((9, 30)).requires_grad_(), torch.arange(9) * 3

        def step():
            loss = F.cross_entropy(logits, target, ignore_index=6)
            loss.backward()
            return [loss, logits.grad]
        names = [line.split('"')[1] for line in self.check_whole(step, 3, "cuda").splitlines() if line.startswith("kernel k") and '"' in line]
        self.assertTrue(any("nll_loss_rows" in name and "log_softmax_backward" in name for name in names), names)

    @classmethod
    def tearDownClass(cls):
        print(f"{sum(cls.lowered.values())} operations of {len(cls.lowered)} kinds lowered")


if __name__ == "__main__":
    unittest.main()
