# Losses with reductions, and other operators whose out form uses the memory that it is given for more than its result.
# expect: traces>=5
import warnings

import torch
import torch.nn.functional as F

warnings.simplefilter("error")
warnings.filterwarnings("ignore", message="reduction: 'mean' divides")
torch.manual_seed(8)
x, y = torch.rand(6, 5) * 0.8 + 0.1, torch.rand(6, 5) * 0.8 + 0.1
sign, classes = (y > 0.5).float() * 2 - 1, torch.arange(6) % 5
LOSSES = {
    "binary_cross_entropy": lambda p, r: F.binary_cross_entropy(p, y, reduction=r),
    "weighted binary_cross_entropy": lambda p, r: F.binary_cross_entropy(p, y, weight=x, reduction=r),
    "binary_cross_entropy_with_logits": lambda p, r: F.binary_cross_entropy_with_logits(p, y, reduction=r),
    "smooth_l1_loss": lambda p, r: F.smooth_l1_loss(p, y, reduction=r),
    "huber_loss": lambda p, r: F.huber_loss(p, y, reduction=r, delta=0.3),
    "soft_margin_loss": lambda p, r: F.soft_margin_loss(p, sign, reduction=r),
    "multilabel_margin_loss": lambda p, r: F.multilabel_margin_loss(p, torch.tensor([[0, 2, -1, -1, -1]] * 6), reduction=r),
    "multi_margin_loss": lambda p, r: F.multi_margin_loss(p, classes, reduction=r),
    "hinge_embedding_loss": lambda p, r: F.hinge_embedding_loss(p, sign, reduction=r),
    "kl_div": lambda p, r: F.kl_div(p.log(), y, reduction=r),
    "mse_loss": lambda p, r: F.mse_loss(p, y, reduction=r),
    "nll_loss": lambda p, r: F.nll_loss(p.log_softmax(1), classes, reduction=r),
    "cross_entropy": lambda p, r: F.cross_entropy(p, classes, reduction=r),
    "poisson_nll_loss": lambda p, r: F.poisson_nll_loss(p, y, reduction=r),
    "gaussian_nll_loss": lambda p, r: F.gaussian_nll_loss(p, y, x, reduction=r),
    "triplet_margin_loss": lambda p, r: F.triplet_margin_loss(p, y, x, reduction=r),
    "cosine_embedding_loss": lambda p, r: F.cosine_embedding_loss(p, y, sign[:, 0], reduction=r),
    "margin_ranking_loss": lambda p, r: F.margin_ranking_loss(p, y, sign, reduction=r),
    "l1_loss": lambda p, r: F.l1_loss(p, y, reduction=r),
}


def train(loss, reduction, steps):
    weight, losses = torch.ones(5, requires_grad=True), []
    for step in range(steps):
        value = loss(x * weight.clamp(0.1, 1.1), reduction)
        value.sum().backward()
        losses.append(value.sum().item())
        with torch.no_grad():
            weight -= 1e-3 * weight.grad
            weight.grad = None
    return losses[-1], weight.sum().item()


for name, loss in LOSSES.items():
    for reduction in ("mean", "sum", "none"):
        print(name, reduction, "%.4f %.4f" % train(loss, reduction, 14))


def orders():
    """Where the order alone is used, what the sort gives too goes to memory of the run's size: torch warns where it has another one."""
    total = 0.0
    weight = torch.randn(3, 3)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for i in range(120):
            x = torch.randn(20 + i % 3, 3)
            order = torch.randperm(x.size(0))
            y = torch.tanh(x @ weight) * 0.5
            total += y[order][torch.argsort(order)][0].sum().item()
    print("orders", f"{total:.4f}", len(seen))


orders()
