# Attention and transformers: layers, masks, positions, caches, and ways to generate.
import math

batch, length, dim, heads, vocabulary = 2, 8, 16, 2, 20

# %% multihead_self_attention
attention = nn.MultiheadAttention(dim, heads, batch_first=True)
norm = nn.LayerNorm(dim)
opt = torch.optim.SGD([*attention.parameters(), *norm.parameters()], lr=0.02)
x = torch.randn(batch, length, dim)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        h = norm(x)
        y, weights = attention(h, h, h)
        loss = F.mse_loss(x + y, x.flip(1))
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), weights.shape, weights.sum().item())

# %% multihead_cross_with_masks
attention = nn.MultiheadAttention(dim, heads, dropout=0.0, kdim=10, vdim=12)
q, k, v = (torch.randn(n, batch, d) for n, d in ((5, dim), (length, 10), (length, 12)))
padding = torch.tensor([[False] * 6 + [True] * 2, [False] * 8])
mask = torch.ones(5, length, dtype=torch.bool).triu(4)
attention.eval()
for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.no_grad():
            y, w = attention(q, k, v, key_padding_mask=padding, attn_mask=mask)
            q = torch.tanh(q + 0.1 * y)
    mark()
print(q.sum().item(), (w == 0).sum().item())

# %% transformer_encoder_classifier
layer = nn.TransformerEncoderLayer(dim, heads, dim_feedforward=24, dropout=0.0, batch_first=True)
net = nn.ModuleDict({"embed": nn.Embedding(vocabulary, dim),
                     "encoder": nn.TransformerEncoder(layer, num_layers=1),
                     "head": nn.Linear(dim, 3)})
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
tokens = torch.randint(1, vocabulary, (10, batch, length))
tokens[:, 0, 6:] = 0
labels = torch.randint(0, 3, (10, batch))
for epoch in range(EPOCHS):
    for i in range(STEPS):
        words = tokens[i % 10]
        h = net["encoder"](net["embed"](words), src_key_padding_mask=words == 0)
        loss = F.cross_entropy(net["head"](h.mean(1)), labels[i % 10])
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(f"{loss.item():.5f}", h.shape)

# %% transformer_decoder_causal
layer = nn.TransformerDecoderLayer(dim, heads, 24, dropout=0.0, activation="gelu", norm_first=True)
decoder = nn.TransformerDecoder(layer, 1, norm=nn.LayerNorm(dim))
memory, target = torch.randn(6, batch, dim), torch.randn(length, batch, dim)
causal = nn.Transformer.generate_square_subsequent_mask(length)
opt = torch.optim.SGD(decoder.parameters(), lr=0.01)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        y = decoder(target, memory, tgt_mask=causal, tgt_is_causal=True)
        loss = (y[:-1] - target[1:]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), y.sum().item())

# %% gpt_block_with_sdpa
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 32), nn.GELU(), nn.Linear(32, dim))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(self.ln1(x)).split(C, dim=2)
        q, k, v = (z.view(B, T, heads, C // heads).transpose(1, 2) for z in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).contiguous().view(B, T, C))
        return x + self.mlp(self.ln2(x))


embed, block, head = nn.Embedding(vocabulary, dim), Block(), nn.Linear(dim, vocabulary)
opt = torch.optim.AdamW(nn.ModuleList([embed, block, head]).parameters(), lr=5e-4)
text = torch.randint(0, vocabulary, (200,))
for epoch in range(EPOCHS):
    for i in range(STEPS):
        at = torch.tensor([3 * i, 2 * i + 1])
        words = torch.stack([text[a:a + length + 1] for a in at])
        logits = head(block(embed(words[:, :-1])))
        loss = F.cross_entropy(logits.view(-1, vocabulary), words[:, 1:].reshape(-1))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    mark()
print(loss.item())

# %% causal_attention_by_hand
class Head(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(dim, size, bias=False) for _ in range(3))
        self.register_buffer("tril", torch.tril(torch.ones(length, length)))

    def forward(self, x):
        T = x.shape[1]
        k, q = self.key(x), self.query(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        return F.softmax(wei, dim=-1) @ self.value(x)


many = nn.ModuleList([Head(dim // heads) for _ in range(heads)])
opt = torch.optim.SGD(many.parameters(), lr=0.05)
x = torch.randn(batch, length, dim)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        part = x[:, :length - i % 3]
        y = torch.cat([h(part) for h in many], dim=-1)
        loss = F.mse_loss(y, part.cumsum(1) / 4)
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), y.shape)

# %% kv_cache_with_cat
class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x, past=None):
        q, k, v = (z.unflatten(-1, (heads, -1)).transpose(1, 2) for z in self.qkv(x).chunk(3, -1))
        if past is not None:
            k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        att = F.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.size(-1)), dim=-1)
        return (att @ v).transpose(1, 2).flatten(2), (k, v)


layers = nn.ModuleList([Cached() for _ in range(2)]).eval()
for epoch in range(EPOCHS):
    x, past = torch.ones(1, 1, dim), [None, None]
    for i in range(STEPS):
        with torch.no_grad():
            for k, layer in enumerate(layers):
                y, past[k] = layer(x, past[k])
                x = torch.tanh(x + 0.5 * y)
    mark()
print(x.sum().item(), past[0][0].shape)

# %% kv_cache_preallocated
class Cache:
    def __init__(self, size):
        self.k = torch.zeros(1, heads, size, dim // heads)
        self.v = torch.zeros_like(self.k)
        self.length = 0

    def update(self, k, v):
        n = k.size(2)
        self.k[:, :, self.length:self.length + n] = k
        self.v[:, :, self.length:self.length + n] = v
        self.length += n
        return self.k[:, :, :self.length], self.v[:, :, :self.length]


qkv, cache = nn.Linear(dim, 3 * dim), Cache(STEPS)
with torch.inference_mode():
    for epoch in range(EPOCHS):
        cache.length, x = 0, torch.ones(1, 1, dim)
        for i in range(STEPS):
            q, k, v = qkv(x).view(1, 1, 3, heads, -1).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, *cache.update(k, v))
            x = torch.tanh(x + y.transpose(1, 2).reshape(1, 1, dim))
        mark()
print(x.sum().item(), cache.k.abs().sum().item())

# %% rotary_positions
def rotary_tables(size, count, base=10000.0):
    frequency = 1.0 / base ** (torch.arange(0, size, 2).float() / size)
    angles = torch.outer(torch.arange(count).float(), frequency)
    return torch.cat((angles, angles), dim=-1).cos(), torch.cat((angles, angles), dim=-1).sin()


def rotate_half(x):
    a, b = x[..., :x.shape[-1] // 2], x[..., x.shape[-1] // 2:]
    return torch.cat((-b, a), dim=-1)


cos, sin = rotary_tables(dim // heads, length)
wq, wk = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
x = torch.randn(batch, length, dim)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.no_grad():
            q, k = (w(x).view(batch, length, heads, -1).transpose(1, 2) for w in (wq, wk))
            q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
            att = torch.softmax(q @ k.mT / math.sqrt(dim // heads), -1).mean(1)
            x = 0.5 * x + 0.5 * F.layer_norm(att @ x + x, (dim,))
    mark()
print(x.abs().sum().item(), att.diagonal(dim1=1, dim2=2).mean().item())

# %% rotary_as_complex_numbers
frequencies = 1.0 / 1000 ** (torch.arange(0, dim // heads, 2) / (dim // heads))
turns = torch.polar(torch.ones(40, dim // heads // 2), torch.outer(torch.arange(40.0), frequencies))


def turn(x, start):
    z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    f = turns[start:start + x.shape[1]].view(1, x.shape[1], 1, -1)
    return torch.view_as_real(z * f).flatten(3).type_as(x)


proj = nn.Linear(dim, dim)
x = torch.randn(batch, length, dim)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.no_grad():
            q = turn(proj(x).view(batch, length, heads, -1), i % 30)
            score = torch.einsum("bqhd,bkhd->bhqk", q, q).softmax(-1)
            x = torch.tanh(torch.einsum("bhqk,bkhd->bqhd", score, q).reshape_as(x) + 0.5 * x)
    mark()
print(x.sum().item(), score[0, 0, 0])

# %% alibi_and_relative_bias
class Relative(nn.Module):
    def __init__(self, span=4):
        super().__init__()
        distance = torch.arange(length) - torch.arange(length)[:, None]
        slopes = torch.tensor([2.0 ** -(h + 1) for h in range(heads)]).view(heads, 1, 1)
        self.register_buffer("alibi", -slopes * distance.abs(), persistent=False)
        self.register_buffer("bucket", distance.clamp(-span, span) + span)
        self.table = nn.Embedding(2 * span + 1, heads)
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x):
        q, k, v = self.qkv(x).view(batch, length, 3, heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        bias = self.alibi + self.table(self.bucket).permute(2, 0, 1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.unsqueeze(0))
        return y.transpose(1, 2).flatten(2)


net, x = Relative(), torch.randn(batch, length, dim)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        loss = F.smooth_l1_loss(net(x), x.roll(1, 1))
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), net.table.weight[4].tolist())

# %% greedy_generation
class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, dim), nn.Embedding(64, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, 24, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, t):
        h = self.words(t) + self.places(torch.arange(t.size(1), device=t.device))
        mask = nn.Transformer.generate_square_subsequent_mask(t.size(1))
        return self.body(h, mask=mask) @ self.words.weight.T


net = Tiny().eval()
for epoch in range(EPOCHS):
    words = torch.tensor([[1, 2, 3]])
    for i in range(STEPS):
        with torch.no_grad():
            logits = net(words[:, -16:])
        words = torch.cat([words, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    mark()
print(words.shape, words[0, :12].tolist())

# %% top_k_top_p_sampling
def sample(logits, temperature=0.8, top_k=8, top_p=0.9):
    logits = logits / temperature
    v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
    logits[logits < v[:, [-1]]] = -float("inf")
    ordered, index = torch.sort(logits, descending=True)
    drop = ordered.softmax(-1).cumsum(-1) > top_p
    drop[..., 1:] = drop[..., :-1].clone()
    drop[..., 0] = False
    logits = logits.masked_fill(drop.scatter(1, index, drop), -float("inf"))
    return torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)


table = nn.Embedding(vocabulary, vocabulary)
counts = torch.zeros(vocabulary, dtype=torch.long)
for epoch in range(EPOCHS):
    word = torch.zeros(3, 1, dtype=torch.long)
    for i in range(STEPS):
        with torch.no_grad():
            word = sample(table(word[:, 0]))
        counts += torch.bincount(word.flatten(), minlength=vocabulary)
    mark()
print(counts.sum(), counts.count_nonzero() > 3)

# %% beam_search
cell = nn.Sequential(nn.Embedding(vocabulary, dim), nn.Tanh(), nn.Linear(dim, vocabulary)).eval()


def beam_search(start, width=3, steps=5):
    beams = [([start], 0.0)]
    for _ in range(steps):
        scores = F.log_softmax(cell(torch.tensor([words[-1] for words, _ in beams])), dim=-1)
        grown = []
        for (words, total), row in zip(beams, scores):
            best, at = row.topk(width)
            grown += [(words + [w], total + s) for s, w in zip(best.tolist(), at.tolist())]
        beams = sorted(grown, key=lambda beam: beam[1], reverse=True)[:width]
    return beams[0]


found = {}
with torch.no_grad():
    for epoch in range(EPOCHS):
        for i in range(STEPS):
            found[i % vocabulary] = beam_search(i % vocabulary)
        mark()
print(found[0], sum(score for _, score in found.values()))
