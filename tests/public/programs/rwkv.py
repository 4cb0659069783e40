"""An RNN with a Transformer's training: time mixing with decays and channel mixing; trained in parallel form as a loop over time, then generating with a
state, after RWKV in 150 lines."""

import types

import torch
import torch.nn as nn
import torch.nn.functional as F

from synthetic import sentences


class TimeMix(nn.Module):
    def __init__(self, n_embd, layer_id, n_layer):
        super().__init__()
        ratio = layer_id / max(1, n_layer - 1)
        self.time_decay = nn.Parameter(-5 + 8 * (torch.arange(n_embd) / (n_embd - 1)) ** (0.7 + 1.3 * ratio))
        self.time_first = nn.Parameter(torch.ones(n_embd) * 0.3 + (torch.arange(n_embd) % 3 - 1) * 0.1)
        curve = torch.arange(n_embd) / n_embd
        self.time_mix_k, self.time_mix_v, self.time_mix_r = (nn.Parameter(curve ** power) for power in (1.0, 0.8, 0.5))
        self.key, self.value, self.receptance, self.output = (nn.Linear(n_embd, n_embd, bias=False) for _ in range(4))

    def mixed(self, x, xx):
        k = self.key(x * self.time_mix_k + xx * (1 - self.time_mix_k))
        v = self.value(x * self.time_mix_v + xx * (1 - self.time_mix_v))
        r = torch.sigmoid(self.receptance(x * self.time_mix_r + xx * (1 - self.time_mix_r)))
        return k, v, r

    def advance(self, k, v, state):
        """The weighted mean at one time and the state behind it: numerators, denominators and the largest exponent so far."""
        aa, bb, pp = state
        ww = self.time_first + k
        qq = torch.maximum(pp, ww)
        e1, e2 = torch.exp(pp - qq), torch.exp(ww - qq)
        wkv = (e1 * aa + e2 * v) / (e1 * bb + e2)
        ww = pp - torch.exp(self.time_decay)
        qq = torch.maximum(ww, k)
        e1, e2 = torch.exp(ww - qq), torch.exp(k - qq)
        return wkv, (e1 * aa + e2 * v, e1 * bb + e2, qq)

    def empty(self, batch, width):
        return torch.zeros(batch, width), torch.zeros(batch, width), torch.full((batch, width), -1e30)

    def forward(self, x):
        B, T, C = x.size()
        k, v, r = self.mixed(x, F.pad(x, (0, 0, 1, -1)))
        state, out = self.empty(B, C), []
        for t in range(T):
            wkv, state = self.advance(k[:, t], v[:, t], state)
            out.append(wkv)
        return self.output(r * torch.stack(out, dim=1))

    def step(self, x, state):
        k, v, r = self.mixed(x, state.last)
        wkv, state.sums = self.advance(k, v, state.sums)
        state.last = x
        return self.output(r * wkv)


class ChannelMix(nn.Module):
    def __init__(self, n_embd):
        super().__init__()
        self.time_mix_k = nn.Parameter(torch.linspace(0, 1, n_embd))
        self.time_mix_r = nn.Parameter(torch.linspace(0, 1, n_embd))
        self.key, self.value = nn.Linear(n_embd, 3 * n_embd, bias=False), nn.Linear(3 * n_embd, n_embd, bias=False)
        self.receptance = nn.Linear(n_embd, n_embd, bias=False)

    def mixed(self, x, xx):
        k = torch.square(torch.relu(self.key(x * self.time_mix_k + xx * (1 - self.time_mix_k))))
        return torch.sigmoid(self.receptance(x * self.time_mix_r + xx * (1 - self.time_mix_r))) * self.value(k)

    def forward(self, x):
        return self.mixed(x, F.pad(x, (0, 0, 1, -1)))

    def step(self, x, state):
        out = self.mixed(x, state.before)
        state.before = x
        return out


class RWKV(nn.Module):
    def __init__(self, vocab, n_embd=24, n_layer=2):
        super().__init__()
        self.emb = nn.Embedding(vocab, n_embd)
        nn.init.uniform_(self.emb.weight, -0.1, 0.1)
        self.blocks = nn.ModuleList()
        for k in range(n_layer):
            self.blocks.append(nn.ModuleDict({"ln1": nn.LayerNorm(n_embd), "att": TimeMix(n_embd, k, n_layer), "ln2": nn.LayerNorm(n_embd), "ffn": ChannelMix(n_embd)}))
        self.ln_in, self.ln_out = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, vocab, bias=False)

    def forward(self, idx):
        x = self.ln_in(self.emb(idx))
        for block in self.blocks:
            x = x + block["att"](block["ln1"](x))
            x = x + block["ffn"](block["ln2"](x))
        return self.head(self.ln_out(x))

    def states(self):
        width = self.emb.weight.shape[1]
        return [types.SimpleNamespace(last=torch.zeros(1, width), before=torch.zeros(1, width), sums=block["att"].empty(1, width)) for block in self.blocks]

    @torch.no_grad()
    def step(self, token, states):
        x = self.ln_in(self.emb(torch.tensor([token])))
        for block, state in zip(self.blocks, states):
            x = x + block["att"].step(block["ln1"](x), state)
            x = x + block["ffn"].step(block["ln2"](x), state)
        return self.head(self.ln_out(x))[0]


def sample_logits(out, temperature=1.0, top_p=0.8):
    probs = F.softmax(out, dim=-1)
    sorted_probs = torch.sort(probs, descending=True)[0]
    cumulative_probs = torch.cumsum(sorted_probs, dim=-1)
    cutoff = float(sorted_probs[torch.argmax((cumulative_probs > top_p).float())])
    probs[probs < cutoff] = 0
    if temperature != 1.0:
        probs = probs.pow(1.0 / temperature)
    return torch.multinomial(probs, num_samples=1).item()


def main():
    torch.manual_seed(31)
    text = sentences(150, seed=7)
    letters = sorted(set(text))
    data = torch.tensor([letters.index(c) for c in text])
    model = RWKV(len(letters))
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-3, betas=(0.9, 0.99))
    for step in range(70):
        ix = torch.randint(len(data) - 21, (8,))
        x, y = torch.stack([data[i:i + 20] for i in ix]), torch.stack([data[i + 1:i + 21] for i in ix])
        loss = F.cross_entropy(model(x).transpose(1, 2), y)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 9:
            print(f"step {step + 1} loss {loss.item():.4f}")
    model.eval()
    states = model.states()
    context = "the old queen "
    for c in context[:-1]:
        out = model.step(letters.index(c), states)
    token, result = letters.index(context[-1]), context
    for _ in range(80):
        out = model.step(token, states)
        token = sample_logits(out, temperature=0.8)
        result += letters[token]
    print(repr(result))
    both = model(torch.tensor([[letters.index(c) for c in result[:20]]]))[0, -1]
    states = model.states()
    for c in result[:20]:
        out = model.step(letters.index(c), states)
    print("both forms agree:", torch.allclose(both, out, atol=1e-4))


if __name__ == "__main__":
    main()
