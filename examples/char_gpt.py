"""Train a small GPT, character by character, on the source text of Python's standard library.

Usage:    python examples/char_gpt.py [--steps N] [--layers N] [--width N] [--seed N]
Reads:    a few modules of the standard library of the Python that runs it; no download.
Prints:   the training loss every 20 steps, the loss on held-out text, and a greedy sample.
Fixed:    the same seed and the same Python version give the same numbers from run to run.
Tests:    tests/traces/run.py --examples
"""

import argparse
import os
import sysconfig

import torch
import torch.nn.functional as F
from torch import nn

MODULES = ("argparse.py", "ast.py", "dataclasses.py", "datetime.py", "enum.py", "inspect.py", "typing.py")
CONTEXT = 64
BATCH_SIZE = 16


class CausalSelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).split(width, dim=2)
        q = q.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        k = k.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        v = v.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Pre-norm transformer block: x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = CausalSelfAttention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        x = x + self.mlp(self.norm2(x))
        return x


class CharGpt(nn.Module):
    def __init__(self, vocabulary, width, heads, layers):
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary, width)
        self.position_embedding = nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.apply(self.initialise)

    @staticmethod
    def initialise(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, tokens, targets=None):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.token_embedding(tokens) + self.position_embedding(positions)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))

    @torch.no_grad()
    def generate(self, tokens, count):
        """Append `count` tokens to `tokens` [1, length], each time the most likely one."""
        for _ in range(count):
            logits, _ = self(tokens[:, -CONTEXT:])
            tokens = torch.cat((tokens, logits[:, -1].argmax(dim=-1, keepdim=True)), dim=1)
        return tokens


def load_text():
    """The chosen modules' source, ASCII only, one after the other."""
    folder = sysconfig.get_paths()["stdlib"]
    parts = []
    for name in MODULES:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            parts.append(file.read())
    return "".join(c for c in "\n".join(parts) if c == "\n" or " " <= c <= "~")


def make_batch(data, generator):
    """Random excerpts of `data`: inputs and the same moved on by one character, both [batch, context]."""
    starts = torch.randint(len(data) - CONTEXT - 1, (BATCH_SIZE,), generator=generator)
    windows = starts[:, None] + torch.arange(CONTEXT + 1)
    excerpts = data[windows]
    return excerpts[:, :-1], excerpts[:, 1:]


@torch.no_grad()
def evaluate(model, data, batches):
    """The mean loss over `batches` random batches of `data`."""
    model.eval()
    generator = torch.Generator().manual_seed(1)
    total = 0.0
    for _ in range(batches):
        inputs, targets = make_batch(data, generator)
        total += model(inputs, targets)[1].item()
    model.train()
    return total / batches


def main():
    parser = argparse.ArgumentParser(description="Train a small GPT on the standard library's source text.")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--sample", type=int, default=200, help="characters to generate at the end")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    text = load_text()
    alphabet = sorted(set(text))
    index = {c: i for i, c in enumerate(alphabet)}
    data = torch.tensor([index[c] for c in text])
    split = int(0.9 * len(data))
    train_data, test_data = data[:split], data[split:]

    model = CharGpt(len(alphabet), args.width, args.heads, args.layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    generator = torch.Generator().manual_seed(args.seed)
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{len(text)} characters, {len(alphabet)} distinct, {parameters} parameters")

    for step in range(1, args.steps + 1):
        inputs, targets = make_batch(train_data, generator)
        _, loss = model(inputs, targets)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0 or step == 1:
            print(f"step {step:4d}  loss {loss.item():.6f}")

    print(f"held-out loss {evaluate(model, test_data, 10):.6f}")
    start = torch.tensor([[index[c] for c in "    def "]])
    sample = model.generate(start, args.sample)[0].tolist()
    print("".join(alphabet[i] for i in sample))


if __name__ == "__main__":
    main()
