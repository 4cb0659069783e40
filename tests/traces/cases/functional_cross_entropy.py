# Cross entropy with label smoothing, class weights, ignored labels and each reduction.
import torch
import torch.nn.functional as F

torch.manual_seed(0)
w = torch.randn(6, 4, requires_grad=True)
x = torch.randn(12, 6)
y = torch.randint(4, (12,))
y[3] = -100
weights = torch.tensor([1.0, 2.0, 0.5, 1.5])
for i in range(40):
    logits = x @ w
    loss = F.cross_entropy(logits, y, label_smoothing=0.1) + F.cross_entropy(logits, y, weight=weights)
    loss = loss + F.cross_entropy(logits, y, reduction="sum") / 12 + F.cross_entropy(logits, y, reduction="none").mean()
    loss = loss + F.nll_loss(F.log_softmax(logits, -1), y) + F.binary_cross_entropy_with_logits(logits[:, 0], (y > 1).float())
    (grad,) = torch.autograd.grad(loss, w)
    with torch.no_grad():
        w -= 0.1 * grad
print(f"{loss.item():.6f}", [f"{v:.5f}" for v in w[0].tolist()])
