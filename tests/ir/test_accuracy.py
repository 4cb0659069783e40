"""Rounding of compiled kernels beside that of PyTorch's own.

Two claims. Operations that PyTorch computes in one obvious order, element by element, give the same bits: a training loop amplifies each
other bit by a factor of a thousand in some hundred steps. (The square root is none of them: PyTorch's is MKL's, which is not correctly
rounded.) All other floating results have at most the error of PyTorch's, both measured against the same operation in f64.
"""

import struct
import unittest

from test_against_torch import F, Recorder, run, torch, view

COMPILED = 1  # of the memories that run() gives


def values(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def compiled(function, *mode):
    """(case, [(eager's, the kernel's) for each output]) of each operation that the function consists of."""
    with Recorder() as recorder:
        function()
    for case, code, message, memories in run(recorder.cases, *mode):
        if code != 0:
            raise AssertionError(f"{case.text}: {message}")
        yield case, [(view(case.after[o[0]], o), view(memories[COMPILED][o[0]], o)) for o in case.outputs]


def error(tensor, exact):
    """Root mean square and largest error in units of 2^-24, of the value or, near zero, of a quarter of the values' mean magnitude."""
    scale = exact.abs().clamp_min(exact.abs().mean() / 4)
    relative = (tensor.double() - exact).abs() / scale * 2**24
    return relative.square().mean().sqrt().item(), relative.max().item()


class Accuracy(unittest.TestCase):
    def test_same_bits(self):
        x, y, z = (values(33, 131, seed=seed) for seed in range(3))
        positive, one = z.abs() + 0.1, torch.ones(())
        cases = {
            "sgd": lambda: x.clone().mul_(0.9).add_(y, alpha=0.1),
            "add alpha": lambda: torch.add(x, y, alpha=-0.02),
            "sub alpha": lambda: torch.sub(x, y, alpha=0.3),
            "rsub alpha": lambda: torch.rsub(x, y, alpha=0.3),
            "addcmul": lambda: (torch.addcmul(x, y, z), torch.addcmul(x, y, z, value=-0.37)),
            "addcdiv": lambda: (torch.addcdiv(x, y, positive), torch.addcdiv(x, y, positive, value=-1e-3)),
            "lerp": lambda: (torch.lerp(x, y, 0.1), torch.lerp(x, y, 0.9), torch.lerp(x, y, positive)),
            "foreach": lambda: (torch._foreach_add([x, y], [y, z], alpha=-0.02), torch._foreach_addcmul([x], [y], [z], value=0.001),
                                torch._foreach_lerp([x], [y], 0.1)),
            "arithmetic": lambda: (x * y, x / positive, x - y, x * 1.7, x / 3.0, positive.rsqrt(), positive.reciprocal()),
            "powers": lambda: (x ** 2, x ** 3, positive ** -1),
            "limits": lambda: (torch.relu(x), x.clamp(-0.5, 0.5), torch.maximum(x, y), torch.where(x > 0, x, y)),
            "tanh backward": lambda: torch.ops.aten.tanh_backward(x, y),
            "sigmoid backward": lambda: torch.ops.aten.sigmoid_backward(x, y),
            "mse backward": lambda: torch.ops.aten.mse_loss_backward(one, x, y, 1),
            "nll backward": lambda: [torch.ops.aten.nll_loss_backward(grad, x[:, :8], torch.arange(x.shape[0]) % 9 - 1, None, reduction, -1, one * 3)
                                     for reduction, grad in enumerate((x[:, 0].contiguous(), one, one))],
        }
        for name, function in cases.items():
            for case, outputs in compiled(function):
                for eager, kernel in outputs:
                    with self.subTest(name, call=case.text[:200]):
                        different = int((eager != kernel).sum())
                        self.assertEqual(different, 0, f"of {eager.numel()}; largest difference {(eager.double() - kernel.double()).abs().max()}")

    def test_negative_log_likelihood_on_gpus(self):
        """In one kernel for the rows' losses, with one before and one behind it."""
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            for reduction in (1, 2):
                for ignored in (-100, 3):
                    x, target = values(37, 11).log_softmax(1).to(dtype), torch.arange(37) % 11
                    for case, outputs in compiled(lambda: torch.ops.aten.nll_loss_forward(x, target, None, reduction, ignored), "cuda"):
                        exact = torch.ops.aten.nll_loss_forward(x.double(), target, None, reduction, ignored)
                        for (_, kernel), wanted in zip(outputs, exact):
                            with self.subTest(case.text[:200]):
                                torch.testing.assert_close(kernel, wanted.to(dtype))

    def test_a_class_that_does_not_exist(self):
        x = values(3, 5).log_softmax(1)
        with Recorder() as recorder:
            torch.ops.aten.nll_loss_forward(x, torch.tensor([1, 0, 4]), None, 1, -100)
        (case,) = recorder.cases
        case.before[1] = struct.pack("<3q", 1, 0, 5)
        ((_, code, message, memories),) = run([case], "cuda")
        self.assertEqual(code, 0, message)
        self.assertTrue(view(memories[COMPILED][case.outputs[0][0]], case.outputs[0]).isnan().item())

    def test_no_larger_errors(self):
        one, weight = values(130), values(130, seed=9)
        cases = {
            "sum": (lambda x: x.sum(), lambda x: x.sum(0), lambda x: x.sum(1), lambda x: x.mean(0)),
            "squares": (lambda x: x.square().sum(0), lambda x: x.square().sum(1)),
            "variance": (lambda x: x.var(0), lambda x: x.var(1), lambda x: x.std(0)),
            "norm": (lambda x: x.norm(dim=0), lambda x: x.norm(dim=1), lambda x: x.norm()),
            "softmax": (lambda x: x.softmax(0), lambda x: x.softmax(1), lambda x: x.log_softmax(0), lambda x: x.log_softmax(1)),
            "logsumexp": (lambda x: x.logsumexp(0), lambda x: x.logsumexp(1)),
            "gradient of softmax": (lambda x: torch.ops.aten._log_softmax_backward_data(x, x, 1, x.dtype),
                                    lambda x: torch.ops.aten._softmax_backward_data(x, x, 0, x.dtype)),
            "layer norm": (lambda x: F.layer_norm(x, (130,), one.to(x.dtype), weight.to(x.dtype)),),
            "activations": (F.silu, torch.sigmoid, torch.tanh, F.mish, lambda x: F.gelu(x, approximate="tanh"), F.softplus, F.elu, F.gelu),
            "functions": (torch.exp, torch.expm1, lambda x: x.abs().log1p(), lambda x: x.abs().sqrt()),
        }
        for name, functions in cases.items():
            for number, function in enumerate(functions):
                with self.subTest(name, function=number):
                    mean = [0.0, 0.0]
                    for seed in range(8):
                        for rows in (48, 300):
                            x = values(rows, 130, seed=seed)
                            exact = function(x.double())
                            *_, (case, outputs) = compiled(lambda: function(x))
                            for which, tensor in enumerate(outputs[0]):
                                mean[which] += error(tensor, exact)[0] / 16
                    self.assertLess(mean[1], max(1.1 * mean[0], 1), "the kernel's mean error in units of 2^-24, then eager's")


if __name__ == "__main__":
    unittest.main()
