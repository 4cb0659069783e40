# A variational autoencoder: reparameterised samples, a KL term with annealing, and decoding of new samples at the end.
# expect: compiled>=0.45, traces>=1
import torch
import torch.nn.functional as F
from torch import nn


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(6, 4)
        self.decode = nn.Linear(2, 6)

    def forward(self, x):
        mean, log_var = self.encode(x).chunk(2, dim=-1)
        z = mean + torch.randn_like(mean) * (0.5 * log_var).exp()
        return self.decode(z), mean, log_var


torch.manual_seed(168)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
data = (torch.rand(16, 6) > 0.5).float()
for step in range(60):
    logits, mean, log_var = model(data)
    reconstruction = F.binary_cross_entropy_with_logits(logits, data, reduction="sum") / len(data)
    divergence = -0.5 * (1 + log_var - mean.pow(2) - log_var.exp()).sum(-1).mean()
    loss = reconstruction + min(1.0, step / 30) * divergence
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    samples = torch.sigmoid(model.decode(torch.randn(3, 2)))
print(f"{reconstruction.item():.4f} {divergence.item():.4f} {samples.sum().item():.4f}")
