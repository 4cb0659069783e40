# A segmentation step with convolutions, a dice loss, and intersection-over-union kept in a running confusion matrix.
# expect: compiled>=0.4, traces>=1
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(172)
net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.ReLU(), nn.Conv2d(4, 3, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
confusion = torch.zeros(3, 3, dtype=torch.long)
images = torch.rand(4, 2, 1, 8, 8)
masks = (images.squeeze(2) * 3).long().clamp(max=2)
for step in range(32):
    image, mask = images[step % 4], masks[step % 4]
    logits = net(image)
    p, truth = logits.softmax(1), F.one_hot(mask, 3).permute(0, 3, 1, 2).float()
    overlap = 2 * (p * truth).sum((0, 2, 3)) / (p + truth).sum((0, 2, 3))
    loss = F.cross_entropy(logits, mask) + 1 - overlap.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    pairs = mask.flatten() * 3 + logits.argmax(1).flatten()
    confusion += torch.bincount(pairs, minlength=9).view(3, 3)
correct = confusion.diagonal().double()
iou = correct / (confusion.sum(0) + confusion.sum(1) - correct)
print(f"{loss.item():.3f}", confusion.sum().item(), [f"{v:.2f}" for v in iou.tolist()])
