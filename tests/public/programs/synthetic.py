"""Data that the programs learn from, made from seeds where the public originals download theirs.

Digits: images of moved, noisy seven-segment digits, used as MNIST is. Shapes: coloured squares and discs. sentences(): a text of a small grammar. Corpus: its
words as numbers, in splits. community_graph(): a graph whose nodes and features tell their group, used as Cora is. Pole: a pole on a cart, as gym's CartPole.
Invariants: everything depends on arguments and seeds alone, and draws from generators of its own: torch's random state stays as it is.
Tests: ../test_public.py.
"""

import math
import random

import torch
from torch.utils.data import Dataset

# Rows and columns of a 7 x 5 grid that the segments a to g fill.
SEGMENTS = {"a": (0, 1, 0, 5), "b": (0, 4, 4, 5), "c": (3, 7, 4, 5), "d": (6, 7, 0, 5), "e": (3, 7, 0, 1), "f": (0, 4, 0, 1), "g": (3, 4, 0, 5)}
DIGITS = ("abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcdfg")


class Digits(Dataset):
    def __init__(self, count=512, size=28, noise=0.15, seed=0, transform=None, channels=1):
        generator = torch.Generator().manual_seed(seed)
        self.targets = torch.randint(0, 10, (count,), generator=generator)
        self.data = noise * torch.rand(count, channels, size, size, generator=generator)
        self.transform = transform
        scale = max(1, size // 9)
        height, width = 7 * scale, 5 * scale
        tops = torch.randint(0, size - height + 1, (count,), generator=generator).tolist()
        lefts = torch.randint(0, size - width + 1, (count,), generator=generator).tolist()
        for image, digit, top, left in zip(self.data, self.targets.tolist(), tops, lefts):
            for name in DIGITS[digit]:
                first, last, begin, end = (scale * k for k in SEGMENTS[name])
                image[:, top + first:top + last, left + begin:left + end] += 0.8
        self.data.clamp_(0, 1)

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        image = self.data[index]
        return (image if self.transform is None else self.transform(image)), int(self.targets[index])


class Shapes(Dataset):
    """Images [3, size, size] with one square or disc; the target is 3 * colour + kind for two kinds, masks say where it is."""

    def __init__(self, count=256, size=32, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.images = 0.2 * torch.rand(count, 3, size, size, generator=generator)
        self.masks = torch.zeros(count, 1, size, size)
        self.targets = torch.randint(0, 6, (count,), generator=generator)
        places = torch.randint(size // 4, 3 * size // 4, (count, 2), generator=generator).tolist()
        rows, columns = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        for k, (row, column) in enumerate(places):
            colour, disc = divmod(int(self.targets[k]), 2)
            down, right = rows - row, columns - column
            inside = down * down + right * right <= (size // 5) ** 2 if disc else torch.maximum(down.abs(), right.abs()) <= size // 6
            self.masks[k, 0] = inside.float()
            self.images[k, colour] += 0.7 * inside
        self.images.clamp_(0, 1)

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        return self.images[index], self.masks[index], self.targets[index]


SUBJECTS = "the king|the old queen|a small bird|my brother|every sailor|the doctor|nobody|a tired horse".split("|")
VERBS = "sees|never finds|wants|carries|hides|sells|paints|follows".split("|")
OBJECTS = "a ship|the red house|three apples|his own shadow|the river|an empty box|a letter|the moon".split("|")
TAILS = "|at night|in spring|without a word|again and again|for the child".split("|")


def sentences(count, seed=0):
    """A text of `count` sentences, one a line."""
    draw = random.Random(seed)
    lines = []
    for _ in range(count):
        words = [draw.choice(SUBJECTS), draw.choice(VERBS), draw.choice(OBJECTS), draw.choice(TAILS)]
        lines.append(" ".join(filter(None, words)) + " .")
    return "\n".join(lines) + "\n"


class Corpus:
    """Words as numbers: train, valid, test (one-dimensional tensors of int64) and the vocabulary."""

    def __init__(self, train=300, valid=40, seed=0):
        self.words = []
        self.numbers = {}
        self.train, self.valid, self.test = (self.tokenize(sentences(count, seed + k)) for k, count in enumerate((train, valid, valid)))

    def tokenize(self, text):
        ids = []
        for line in text.splitlines():
            for word in [*line.split(), "<eos>"]:
                if word not in self.numbers:
                    self.numbers[word] = len(self.words)
                    self.words.append(word)
                ids.append(self.numbers[word])
        return torch.tensor(ids)

    def __len__(self):
        return len(self.words)


def community_graph(nodes=120, groups=4, features=32, inside=0.12, outside=0.01, seed=0):
    """(features [nodes, features], edges [2, E] in both directions, groups [nodes])."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(nodes) % groups
    chance = torch.where(labels[:, None] == labels[None, :], inside, outside)
    links = torch.triu(torch.rand(nodes, nodes, generator=generator) < chance, diagonal=1)
    edges = links.nonzero().t()
    centres = torch.rand(groups, features, generator=generator)
    x = (torch.rand(nodes, features, generator=generator) < 0.6 * centres[labels]).float()
    return x, torch.cat([edges, edges.flip(0)], dim=1), labels


class Pole:
    """A cart that is pushed to the left or right under a pole: reset() and step(action), as gym's CartPole-v1."""

    def __init__(self, seed=0, limit=60):
        self.draw, self.limit = random.Random(seed), limit

    def reset(self):
        self.state = [self.draw.uniform(-0.05, 0.05) for _ in range(4)]
        self.steps = 0
        return list(self.state)

    def step(self, action):
        """(state, reward, whether it fell or left, whether the time is over)."""
        x, speed, angle, turn = self.state
        force = 10.0 if action == 1 else -10.0
        push = (force + 0.05 * turn * turn * math.sin(angle)) / 1.1
        pull = (9.8 * math.sin(angle) - math.cos(angle) * push) / (0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1))
        moved = push - 0.05 * pull * math.cos(angle) / 1.1
        self.state = [x + 0.02 * speed, speed + 0.02 * moved, angle + 0.02 * turn, turn + 0.02 * pull]
        self.steps += 1
        return list(self.state), 1.0, abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21, self.steps >= self.limit
