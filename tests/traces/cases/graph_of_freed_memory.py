# A recording is given up where backward() is to run a graph from before it, with a graph of its own alive whose intermediate values it has freed already: the rehearsal for a node computes them anew.
import torch
import torch.nn as nn

torch.manual_seed(0)


class Quantiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.code = torch.randn(32, 16)
        self.w = nn.Parameter(torch.randn(32, 16), requires_grad=False)

    def forward(self, x):
        flat = x.view(-1, 16)
        near = nn.functional.one_hot((flat @ self.code.t()).argmin(1), 32).float()
        q = (near @ self.code).view(x.shape)
        self.w = nn.Parameter(self.w * 0.9 + 0.1 * (near.t() @ flat), requires_grad=False)
        return x + (q - x).detach(), x.sum()


encoder, quantise, decoder = nn.Conv2d(1, 16, 4, 2, 1), Quantiser(), nn.ConvTranspose2d(16, 1, 4, 2, 1)
data, total = torch.randn(320, 1, 16, 16), 0.0
for epoch in range(12):
    for x in data.split(32):
        q, s = quantise(encoder(x).permute(0, 2, 3, 1).contiguous())
        loss = (decoder(q.permute(0, 3, 1, 2).contiguous()) - 0.5).pow(2).mean()
        loss.backward()
        total += loss.item()
print(f"{total:.3f}", f"{encoder.weight.grad.norm():.3f}", f"{quantise.w.norm():.3f}")
