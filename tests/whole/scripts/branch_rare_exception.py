# A KeyError once in seventeen iterations inside an inlined look-up: the word is unknown and gets a vector of its own.
# expect: compiled>=0.85, traces>=1
import torch

torch.manual_seed(98)
vectors = {word: torch.randn(4) for word in ("red", "green", "blue")}
unknown = []


def embed(word, step):
    try:
        return vectors[word]
    except KeyError:
        unknown.append((word, step))
        return torch.full((4,), 0.01 * step)


def score(words, step):
    total = torch.zeros(4)
    for word in words:
        total = total + embed(word, step)
    return torch.softmax(total, 0)


history = torch.zeros(4)
for step in range(100):
    words = ("red", "blue" if step % 2 else "green", "mauve" if step % 17 == 16 else "red")
    history = 0.9 * history + score(words, step)
print(unknown, [f"{v:.4f}" for v in history.tolist()])
