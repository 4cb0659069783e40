"""A mode of torch that gives the results of inexact operations an error of about one rounding step.

Purpose: how much a program's results depend on rounding is measured, not guessed: judge.py accepts a difference to python only below a multiple of
  what python itself shows under this noise. Inputs: a number that seeds it; 0: no error, which shows whether the mode changes anything else.
Invariants: torch's own generators, version counters and shapes stay as they are. Operations that only move, compare or choose are exact.
Tests: test_training.py.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

EXACT = {"abs", "neg", "relu", "clamp", "clamp_min", "clamp_max", "where", "maximum", "minimum", "clone", "hardtanh", "masked_fill", "_to_copy", "copy",
         "fill", "zero", "leaky_relu", "threshold", "threshold_backward", "lift_fresh", "ones_like", "zeros_like", "sign", "floor", "ceil", "round", "full",
         "bernoulli", "dropout", "native_dropout", "detach", "positive", "eq", "ne", "lt", "le", "gt", "ge", "isnan", "logical_not", "randint", "embedding"}
SUMS = {"mm", "bmm", "addmm", "baddbmm", "addmv", "mv", "dot", "sum", "mean", "_softmax", "_log_softmax", "native_layer_norm", "var", "std", "linalg_vector_norm",
        "cumsum", "logsumexp", "norm", "_softmax_backward_data", "_log_softmax_backward_data", "native_layer_norm_backward", "native_batch_norm",
        "native_batch_norm_backward", "native_group_norm", "native_group_norm_backward", "convolution", "convolution_backward", "var_mean", "prod",
        "embedding_dense_backward", "nll_loss_forward", "mse_loss", "linear", "_native_batch_norm_legit", "avg_pool2d", "upsample_bilinear2d", "uniform", "normal",
        "cross", "addr", "index_add", "scatter_add", "_fused_rms_norm", "rand", "randn", "_ctc_loss", "_transformer_encoder_layer_fwd", "_native_multi_head_attention", "_cdist_forward", "_pdist_forward"}
STEP = {torch.float32: 6e-8, torch.float64: 1.1e-16, torch.bfloat16: 4e-3, torch.float16: 5e-4}


def changed(func, args, out):
    """The tensors that the operation has computed."""
    results = [out] if isinstance(out, torch.Tensor) else list(out) if isinstance(out, (tuple, list)) else []
    if not results:
        for argument, value in zip(func._schema.arguments, args):
            if argument.alias_info is not None and argument.alias_info.is_write:
                results += value if isinstance(value, (tuple, list)) else [value]
    return [t for t in results if isinstance(t, torch.Tensor) and t.dtype in STEP and not t.is_sparse]


class Noise(TorchDispatchMode):
    def __init__(self, seed):
        super().__init__()
        self.seed, self.generator = seed, torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if not self.seed:
            return out
        base = func.overloadpacket.__name__.removeprefix("_foreach_").rstrip("_")
        name = func.overloadpacket.__name__
        if base not in EXACT and (torch.Tag.pointwise in func.tags or base in SUMS or name.startswith(("_foreach", "_fused"))):
            for t in changed(func, args, out):
                if t.numel():
                    error = torch.randn(t.shape, generator=self.generator, dtype=torch.float64)
                    t.mul_((1 + STEP[t.dtype] * error).to(torch.float64 if t.dtype == torch.float64 else torch.float32))
        return out
