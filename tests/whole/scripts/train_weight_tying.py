# An embedding whose weight is the output layer's too, weight norm and spectral norm on others, trained on a cyclic text.
# expect: compiled>=0.8, traces>=1
import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm


class Tied(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.mix = weight_norm(nn.Linear(width, width))
        self.smooth = spectral_norm(nn.Linear(width, width))
        self.out = nn.Linear(width, words, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, ids):
        return self.out(torch.tanh(self.smooth(torch.tanh(self.mix(self.embed(ids))))))


torch.manual_seed(173)
model = Tied(7, 6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
text = torch.tensor([0, 3, 1, 6, 2, 5, 4] * 3)
for step in range(40):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(text[:-1]), text[1:])
    loss.backward()
    optimizer.step()
print(len(list(model.parameters())), model.out.weight is model.embed.weight, f"{loss.item():.4f}", f"{model.embed.weight.sum().item():.3f}")
