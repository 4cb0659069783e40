# A decoding loop that is too long to be part of the loop around it. What each call of generate() makes anew must not be assumed: layers of a cache that
# are filled in the first step, a bound method, a callable list of processors. The length of the cache is always one less than that of the text.
# expect: compiled>=0.7, traces>=1
import torch
from torch import nn

WINDOW, STEPS = 10, 140


class Layer:
    def __init__(self):
        self.filled = False

    def update(self, keys, values):
        if not self.filled:
            self.keys, self.values = torch.zeros(1, 0, 8), torch.zeros(1, 0, 8)
            self.filled = True
        self.keys = torch.cat([self.keys[:, -WINDOW:], keys], dim=1)
        self.values = torch.cat([self.values[:, -WINDOW:], values], dim=1)
        return self.keys, self.values


class Processors(list):
    def __call__(self, text, scores):
        for processor in self:
            scores = processor(text, scores)
        return scores


class NotTwice:
    def __init__(self, penalty):
        self.penalty = penalty

    def __call__(self, text, scores):
        return scores.scatter_add(1, text[:, -1:], torch.full((1, 1), -self.penalty))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(23, 8)
        self.qkv = nn.ModuleList(nn.Linear(8, 24) for _ in range(2))

    def forward(self, text, cache):
        x = self.words(text[:, -1:])
        for layer, qkv in zip(cache, self.qkv):
            query, keys, values = qkv(x).chunk(3, dim=-1)
            keys, values = layer.update(keys, values)
            x = x + torch.softmax(query @ keys.transpose(1, 2), dim=-1) @ values
        return x[:, -1] @ self.words.weight.t()

    def generate(self, text):
        cache, processors = [Layer(), Layer()], Processors([NotTwice(5.0), NotTwice(0.5)])
        forward = self.__call__
        count, out = 0, 0
        while count < STEPS:
            token = processors(text, forward(text, cache)).argmax(-1)
            text = torch.cat([text[:, -WINDOW:], token[:, None]], dim=1)
            out = out + token * (count % 7)
            count += 1
        return text, out


def main():
    torch.manual_seed(5)
    model = Decoder().eval()
    with torch.no_grad():
        for i in range(14):
            text, out = model.generate(torch.tensor([[i, i + 1, i + 2]]))
            print(text.tolist(), out.item())


main()
