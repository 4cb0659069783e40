# unique with counts and inverse groups rows by label: means for each cluster, as in k-means with empty clusters.
# expect: compiled>=0.6, traces>=1
import torch

torch.manual_seed(125)
points = torch.cat([torch.randn(8, 2) * 0.3 + centre for centre in torch.tensor([[0.0, 0.0], [2.0, 1.0], [-1.0, 2.0]])])
centres = points[[0, 1, 2, 3]].clone()
used = []
for step in range(40):
    labels = torch.cdist(points, centres).argmin(1)
    present, inverse, counts = labels.unique(return_inverse=True, return_counts=True)
    sums = torch.zeros(len(present), 2).index_add_(0, inverse, points)
    centres[present] = sums / counts.unsqueeze(1)
    used.append(len(present))
    if step % 10 == 9:
        points = points + 0.2 * torch.randn(24, 2)
    order = torch.bincount(labels, minlength=4).argsort(descending=True)
print(used[::8], counts.tolist(), order[0].item() == counts.argmax().item() or len(present) < 4, f"{centres.sum().item():.4f}")
