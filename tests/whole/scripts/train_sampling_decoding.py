# Sampling with temperature, top-k and nucleus cuts and a repetition penalty, from a seeded generator.
# expect: compiled>=0.4, traces>=1
import torch


def choose(logits, generator, seen, temperature=1.0, top_k=None, top_p=None):
    for token in seen[-3:]:
        logits[token] -= 1.0
    logits = logits / temperature
    if top_k is not None:
        logits[logits < logits.topk(top_k).values[-1]] = float("-inf")
    if top_p is not None:
        ordered, order = logits.sort(descending=True)
        outside = ordered.softmax(-1).cumsum(-1) > top_p
        outside[1:] = outside[:-1].clone()
        outside[0] = False
        logits[order[outside]] = float("-inf")
    return torch.multinomial(logits.softmax(-1), 1, generator=generator).item()


torch.manual_seed(155)
table = torch.randn(11, 11)
generator = torch.Generator().manual_seed(9)
for options in ({"top_k": 3}, {"top_p": 0.7}, {"temperature": 0.5}):
    text = [0]
    for step in range(30):
        text.append(choose(table[text[-1]].clone(), generator, text, **options))
    print(options, text)
