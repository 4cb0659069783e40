# Version counters of what batch norm in training writes are eager's, which goes by the schema: it advances none but the number of batches'.
# expect: traces>=3
import torch
from torch import nn

torch.manual_seed(0)
for model, x in ((nn.BatchNorm1d(3), torch.randn(5, 3)), (nn.BatchNorm2d(3), torch.randn(2, 3, 4, 4)), (nn.InstanceNorm1d(3, track_running_stats=True), torch.randn(2, 3, 5))):
    seen = []
    for step in range(30):
        model.train(step % 5 != 4)
        model(x).sum().backward()
        seen.append([(name, buffer._version) for name, buffer in model.named_buffers()])
    print(seen[-1], f"{model.running_mean.sum().item():.4f} {model.running_var.sum().item():.4f}")
