"""Whole loops on a GPU: `python tests/cuda/whole.py [NAME ...]` prints, for each case, the numbers that its iterations gave, as JSON.

tests/cuda/test_whole.py runs it under python and under dynvm, where the numbers must agree within rounding. A case appends a number or a tensor to its list
in each iteration; its loop is what gets compiled. Exit status 77 without a GPU.
"""
import json
import sys
import threading

import torch
import torch.nn as nn
import torch.nn.functional as F

STEPS = 40
D = "cuda"


def mlp(width=64):
    return nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 10)).to(D)


def train(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def adam(out):
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, y = torch.randn(32, 64, device=D), torch.randint(0, 10, (32,), device=D)
    for _ in range(STEPS):
        out.append(train(model, optimizer, x, y).detach())


def batches_of_a_pool(out):
    """Inputs lie elsewhere in each iteration."""
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    xs, ys = torch.randn(STEPS * 2, 32, 64, device=D), torch.randint(0, 10, (STEPS * 2, 32), device=D)
    for x, y in zip(xs, ys):
        out.append(train(model, optimizer, x, y).detach())


def losses_as_lists(out):
    """tolist() of what is on the GPU: other numbers each time."""
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    x, y = torch.randn(32, 64, device=D), torch.randint(0, 10, (32,), device=D)
    for _ in range(STEPS):
        loss = train(model, optimizer, x, y)
        out.append(loss.detach().reshape(1).double().tolist()[0] + loss.detach().cpu().numpy().item())


def convolutions(out):
    model = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3), nn.Flatten(), nn.Linear(8 * 5 * 5, 10)).to(D)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    x, y = torch.randn(8, 3, 16, 16, device=D), torch.randint(0, 10, (8,), device=D)
    for _ in range(STEPS):
        out.append(train(model, optimizer, x, y).detach())
    for _ in range(STEPS):
        with torch.no_grad():
            out.append(model(x).sum())


def convolutions_eval(out):
    model = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Flatten(), nn.Linear(8 * 12 * 12, 10)).to(D).eval()
    kept = []
    for k in range(STEPS):
        with torch.no_grad():
            kept.append(model(torch.full((4, 3, 16, 16), k / STEPS, device=D)))
        out.append(sum(t.mean() for t in kept[-3:]))
    for t in kept:  # what was handed out stays what it was
        out.append(t.abs().sum())


class Residual(nn.Module):
    """As a ResNet's block, wide enough for tensor cores."""

    def __init__(self, width, norm):
        super().__init__()
        self.first, self.second = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm1, self.norm2, self.relu = norm(width), norm(width), nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.norm2(self.second(self.relu(self.norm1(self.first(x)))))
        y += x
        return self.relu(y)


def residual(norm=nn.BatchNorm2d, width=32):
    return nn.Sequential(nn.Conv2d(3, width, 5, 2, 2, bias=False), norm(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1), Residual(width, norm), nn.Conv2d(width, width, 1), Residual(width, norm),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10)).to(D)


def layouts_eval(out, dtype=torch.float32):
    """What lies channels last in the trace: variables between the layers, and results, have the script's strides."""
    model = residual().eval().to(dtype)
    body, head = model[:6], model[6:]
    base, kept = torch.randn(4, 3, 32, 32, device=D, dtype=dtype), []
    for k in range(3 * STEPS):
        with torch.no_grad():
            y = body(base * (0.1 + k / STEPS))
            z = head(y)
            if k % 9 == 8:
                y = y + y.mean()
                out.extend(y.stride())
                out.append(y.view(-1)[1000].float())
            if z.float().amax().item() < -100:
                out.append(y.sum().float())
        kept.append(y if k % 5 == 0 else z)
        out.append(sum(t.float().abs().mean() for t in kept[-3:]))
    for t in kept:
        out.extend(t.stride())
        out.append(t.float().abs().mean())


def layouts_eval_bf16(out):
    layouts_eval(out, torch.bfloat16)


def layouts_training(out, norm=nn.BatchNorm2d, dtype=None):
    """Gradients too; what autograd saved between forward and backward is looked at by exits, as are gradients' strides by the script."""
    model = residual(norm)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    x, y = torch.randn(8, 3, 32, 32, device=D), torch.randint(0, 10, (8,), device=D)
    for k in range(2 * STEPS):
        optimizer.zero_grad()
        with torch.autocast(D, dtype=torch.bfloat16, enabled=dtype is not None):
            loss = F.cross_entropy(model(x * (1 + k % 3 / 8)), y)
        if k % 7 == 6:
            loss = loss * 0.5
        loss.backward()
        optimizer.step()
        out.append(loss.detach().float())
    for p in model.parameters():
        out.extend(p.grad.stride())


def layouts_training_without_cudnn_norm(out):
    layouts_training(out, lambda width: nn.GroupNorm(4, width))


def layouts_training_bf16(out):
    layouts_training(out, dtype=torch.bfloat16)


def layouts_joined(out):
    """Branches that are joined, transposed convolutions, interpolation, a depthwise convolution, images of one channel."""
    a, b, c, d = nn.Conv2d(3, 16, 1), nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.ConvTranspose2d(48, 16, 2, 2)
    e, f = nn.Conv2d(16, 1, 3, padding=1), nn.Conv2d(1, 8, 3)
    for layer in (a, b, c, d, e, f):
        layer.to(D)
    x = torch.randn(2, 3, 16, 16, device=D)
    for k in range(STEPS):
        with torch.no_grad():
            y = F.silu(a(x * (1 + k / 8)))
            joined = torch.cat([y, F.hardtanh(b(x)), c(y)], 1)
            up = F.interpolate(d(joined), scale_factor=2, mode="bilinear", align_corners=False)
            one = e(F.relu(up))
            out.append(f(one).square().mean() + up.amax() + F.adaptive_avg_pool2d(up, 3).sum())


def group_norm_and_pooling(out):
    """Images contiguous, then channels last."""
    for layout in (torch.contiguous_format, torch.channels_last):
        model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.SiLU(), nn.MaxPool2d(3, 2, 1), nn.Conv2d(16, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU(),
                              nn.MaxPool2d(2), nn.AvgPool2d(3, 1, 1), nn.Flatten(), nn.Linear(16 * 4 * 4, 10)).to(D).to(memory_format=layout)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
        x, y = torch.randn(8, 3, 16, 16, device=D).contiguous(memory_format=layout), torch.randint(0, 10, (8,), device=D)
        for _ in range(STEPS):
            out.append(train(model, optimizer, x, y).detach())


class Block(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.qkv, self.out, self.norm, self.dropout = nn.Linear(64, 192), nn.Linear(64, 64), nn.LayerNorm(64), dropout

    def forward(self, x):
        q, k, v = (t.view(t.shape[0], -1, 4, 16).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        attended = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0)
        return x + F.dropout(self.out(attended.transpose(1, 2).flatten(2)), self.dropout, self.training)


def attention_training(out, dropout=0.0, dtype=None):
    model = nn.Sequential(Block(dropout), Block(dropout), nn.Flatten(), nn.Linear(64 * 16, 10)).to(D)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = torch.randn(8, 16, 64, device=D), torch.randint(0, 10, (8,), device=D)
    for _ in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast(D, dtype=torch.bfloat16, enabled=dtype is not None):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        out.append(loss.detach())


def attention(out):
    attention_training(out)


def attention_bf16(out):
    attention_training(out, dtype=torch.bfloat16)


def attention_dropout_bf16(out):
    attention_training(out, 0.1, torch.bfloat16)


def attention_eval(out):
    model = nn.Sequential(Block(0.0), Block(0.0)).to(D).eval()
    x = torch.randn(2, 16, 64, device=D)
    y = x
    for k in range(STEPS):
        with torch.no_grad():
            y = model(x if k % 7 == 0 else y * 0.5)
        out.append(y.abs().mean())


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places, self.norm, self.head = nn.Embedding(50, 64, padding_idx=0), nn.Embedding(16, 64), nn.LayerNorm(64), nn.Linear(64, 10)
        self.register_buffer("positions", torch.arange(16)[None])

    def forward(self, tokens):
        return self.head(F.gelu(self.norm(self.words(tokens) + self.places(self.positions))))


def embeddings(out):
    """Rows of tables that each step writes; then elements, columns and places by indexes that are computed."""
    model = Tagger().to(D)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = torch.randint(0, 50, (STEPS, 8, 16), device=D)
    for tokens in batches:
        optimizer.zero_grad()
        loss = -model(tokens).log_softmax(-1).gather(-1, (tokens % 10).unsqueeze(-1)).mean()
        loss.backward()
        optimizer.step()
        out.append(loss.detach())
    for tokens in batches:
        with torch.no_grad():
            scores = model(tokens)
            some = scores[:, tokens[0] % 16 - 16, tokens[1] % 10] + scores.index_select(1, tokens[2] % 16).amax(-1)
            out.append(some.sum() + model.words.weight[tokens].mean())


def messages(out):
    """What goes along the edges of a graph is added up where it goes, forward and backward."""
    x, edges = torch.randn(100, 32, device=D), torch.randint(0, 100, (2, 1000), device=D)
    model = nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 32)).to(D)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        optimizer.zero_grad()
        sums = torch.zeros(100, 32, device=D).index_add(0, edges[1], model(x)[edges[0]])
        loss = (torch.tanh(sums) - x).square().mean()
        loss.backward()
        optimizer.step()
        out.append(loss.detach())


def written_cache(out):
    """A cache of fixed size, of which each step writes a place that is on the GPU, and reads all that has been written."""
    cache, place, w = torch.zeros(2, 64, 16, device=D), torch.zeros(1, dtype=torch.int64, device=D), torch.randn(16, 16, device=D) / 4
    x, places = torch.linspace(-1, 1, 32, device=D).view(2, 1, 16), torch.arange(64, device=D)
    with torch.no_grad():
        for _ in range(STEPS):
            cache.index_copy_(1, place, torch.tanh(x @ w))
            weights = (x @ cache.transpose(1, 2)).masked_fill(places > place, float("-inf")).softmax(-1)
            x = torch.tanh(weights @ cache + x)
            cache[:, place, :2] = x[..., :2]
            place += 1
            out.append(x.sum() + cache.abs().amax())


def recurrent(out):
    cell = nn.LSTMCell(32, 32).to(D)
    xs = torch.randn(STEPS * 3, 4, 32, device=D)
    with torch.no_grad():
        for _ in range(6):
            h = c = torch.zeros(4, 32, device=D)
            for x in xs:
                h, c = cell(x, (h, c))
            out.append(h.sum())


def branches(out):
    layers = [nn.Linear(32, 32, device=D) for _ in range(6)]
    x0 = torch.randn(8, 32, device=D)
    for k in range(STEPS):
        x = x0 * (k % 5)
        with torch.no_grad():
            for layer in layers:
                x = layer(x)
                x = torch.relu(x) if x.mean().item() > 0 else torch.tanh(x)
        out.append(x.sum())


def dropout(out):
    model = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.3), nn.ReLU(), nn.Linear(64, 10)).to(D)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, y = torch.randn(32, 64, device=D), torch.randint(0, 10, (32,), device=D)
    for _ in range(STEPS):
        out.append(train(model, optimizer, x, y).detach())
    out.append(torch.rand(3, device=D).sum())


def dropout_exits(out):
    """Guards between forward and backward, and a graph that is handed out: the forward that runs again draws what it drew."""
    layers = [nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 10)]
    model = nn.Sequential(layers[0], nn.GELU(), nn.Dropout(0.3), layers[1], nn.ReLU(), nn.Dropout(0.2), layers[2]).to(D)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    x, y = torch.randn(32, 64, device=D), torch.randint(0, 10, (32,), device=D)
    for step in range(2 * STEPS):
        loss = F.cross_entropy(model(x), y)
        if step % 7 == 6:
            loss = loss * 0.5
        if step % 11 == 10:
            out.append(torch.autograd.grad(loss, layers[0].weight, retain_graph=True)[0].sum())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out.append(loss.detach())
    out.append(torch.rand(3, device=D).sum())


def streams(out):
    """The loop goes on on another stream."""
    model = mlp().eval()
    x = torch.randn(16, 64, device=D)
    other = torch.cuda.Stream()
    for k in range(STEPS):
        if k % 10 == 9:
            other.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(other), torch.no_grad():
                y = model(x)
            torch.cuda.current_stream().wait_stream(other)
        else:
            with torch.no_grad():
                y = model(x)
        x = y.mean() * 0.1 + x * 0.99
        out.append(y.sum())


def written_inputs(out):
    """Inputs that the loop itself writes in place, between products."""
    w = torch.randn(64, 64, device=D) * 0.1
    state = torch.randn(16, 64, device=D)
    for _ in range(STEPS):
        y = torch.tanh(state @ w)
        state.mul_(0.5).add_(y @ w.t())
        w.add_(state.t() @ y, alpha=1e-3)
        out.append(state.sum())


def freed_between(out):
    """Other work takes the memory that the loop has freed."""
    model = mlp().eval()
    x = torch.randn(16, 64, device=D)
    for k in range(STEPS):
        with torch.no_grad():
            y = model(x)
            z = model(x + 1)
        total = (y + z).sum()
        if k % 3 == 0:
            junk = [torch.full((16, 10), float(k), device=D) for _ in range(8)]
            total = total + sum(j.sum() for j in junk)
        x = torch.roll(x, 1, 0)
        out.append(total)


def own_captures(out):
    """The script captures a graph of its own in the middle of iterations that draw."""
    x, static = torch.randn(64, 64, device=D), torch.randn(64, 64, device=D)
    for i in range(STEPS):
        y = F.dropout(x * (1 + i), 0.25)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            z = static * 2 + 1
        graph.replay()
        y = F.dropout(y + z, 0.5)
        out.append(y.abs().mean())


def exits(out):
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    x, y = torch.randn(32, 64, device=D), torch.randint(0, 10, (32,), device=D)
    for k in range(STEPS * 2):
        loss = F.cross_entropy(model(x), y)
        if loss.item() < 2.0:
            loss = loss * 0.5
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if k % 20 == 19:
            x = x + 0.1
        out.append(loss.detach())


NUMBERS = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.bool)


def numbers(out):
    """Of each dtype, read where a kernel has just computed them: of one point, of a row, of a row over many blocks. Exact in each dtype."""
    one, row, blocks = torch.ones((), device=D), torch.arange(100, device=D) / 4, torch.arange(1 << 20, device=D) / (1 << 14)
    for dtype in NUMBERS:
        for k in range(STEPS):
            point = (one * (k % 5) - 2).to(dtype).item()
            largest = (row * (k % 3 - 1)).amax().to(dtype).item()
            if (blocks - k % 4).amin().to(dtype):
                out.append(point + 2 * largest)
            else:
                out.append(-point - largest)
            out.append((blocks - k).floor().amin().to(dtype).item())


def numbers_of_one_kernel(out):
    """Two numbers of a row that is stored as well, which another stream reads once they are known."""
    x, other = torch.arange(5000, device=D) / 8, torch.cuda.Stream()
    for k in range(STEPS):
        y = x * (k % 7) - 100
        low, high = y.amin(), y.amax()
        low, high = low.item(), high.item()
        with torch.cuda.stream(other):
            total = y.sum()
        other.synchronize()
        out.append(low + high if k % 2 else total / 64)


def numbers_behind_long_work(out):
    """Longer than is spun for."""
    x = torch.eye(4096, device=D)
    for k in range(STEPS):
        out.append(((x @ x) * k).amax().item())


def numbers_of_the_library(out):
    x = torch.arange(60, device=D) / 4
    for k in range(STEPS):
        out.append((x + k).sort().values[-1].item())


def unused_results(out):
    """Of the library's operations, in a loop whose first tensors are the host's."""
    for batch in torch.randn(STEPS, 100):
        x = batch.to(D)
        out.append(x.topk(3).values.sum())
        out.append(x.sort().values[5])


def forked(out):
    """A child process, which cannot use the device that its parent uses, has loops on the host."""
    class OnHost(torch.utils.data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            x = torch.linspace(0, 1, 1000)
            for k in range(STEPS):
                x = torch.tanh(x * (1 + index)) + k / STEPS
            return x.sum()

    x = torch.linspace(0, 1, 1000, device=D)
    for _ in range(STEPS):
        x = torch.tanh(x) + 0.1
        out.append(x.sum())
    out.extend(torch.utils.data.DataLoader(OnHost(), num_workers=1, multiprocessing_context="fork"))


def numbers_in_threads(out):
    """Both run the traces of one loop, in turns."""
    def work(kept, x):
        for k in range(10 * STEPS):
            largest = (x * (k % 9)).amax().item()
            kept.append(largest if (x - k % 30).sum() > 0 else -largest)
            kept.append(((x + k % 7).amin() > 6).item())

    for _ in range(3):  # which of its objects change is known before
        work([], torch.arange(30, device=D) / 2)
    parts = [[], []]
    threads = [threading.Thread(target=work, args=(kept, torch.arange(60, device=D)[30 * which : 30 * which + 30] / 2)) for which, kept in enumerate(parts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    out.extend(parts[0] + parts[1])


def sizes(out):
    """Batches and lengths that change: rows, columns and points of kernels are as many as each run says."""
    model = nn.Sequential(Block(0.0), Block(0.0)).to(D).eval()
    shapes = [(2, 16) if k < 12 else (2, 5 + 7 * k % 40) if k < 40 else (2 + k % 5, 5 + 3 * k % 37) for k in range(3 * STEPS)]
    with torch.no_grad():
        for x in [torch.linspace(-1, 1, rows * length * 64, device=D).view(rows, length, 64) for rows, length in shapes]:
            y = model(x)
            weights = torch.softmax(y @ y.transpose(1, 2) / 8, -1)
            out.append((weights.sum((0, 2)) * y.amax(-1)).sum() + y.sum(0).square().sum() + (y > 0).sum() + F.log_softmax(y, 1).sum())


def sizes_training(out):
    """The same with gradients: biases' are sums over as many rows as there are."""
    model = nn.Sequential(nn.Linear(64, 48), nn.LayerNorm(48), nn.GELU(), nn.Linear(48, 10)).to(D)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batches = [(torch.randn(rows, 64, device=D), torch.arange(rows, device=D) % 10) for rows in [32] * 12 + [20 + 13 * k % 61 for k in range(2 * STEPS)]]
    for x, y in batches:
        out.append(train(model, optimizer, x, y).detach())


def sizes_large(out):
    """Of few rows and of many, of vectors and what is left over."""
    with torch.no_grad():
        for x in [torch.linspace(-2, 2, 1 << 16 if k < 10 else (1 << 15) + 4097 * k, device=D) for k in range(STEPS)]:
            out.append((torch.sigmoid(x) * x - torch.tanh(x)).sum() / x.numel() + (x.view(-1, 1) * torch.ones(3, device=D)).abs().sum(0).sum() + torch.logsumexp(x, 0))


def sizes_scans(out):
    """Rows and columns that are as long as each run says: what of a distribution comes before half, and positions of tokens that count."""
    for x in [torch.linspace(-1, 1, rows * length, device=D).view(rows, length) for rows, length in [(3, 40) if k < 12 else (2 + k % 5, 5 + 37 * k % 1500) for k in range(2 * STEPS)]]:
        before = torch.softmax(x * 5, -1).cumsum(-1)
        positions = (x > -0.5).cumsum(-1) - 1
        out.append((before < 0.5).sum() + positions.sum() + (x + 2).log().cumsum(0).sum() / x.numel())


def sizes_grow(out):
    """A cache that is longer with each step."""
    keys = torch.zeros(2, 4, 1, 16, device=D)
    w = torch.linspace(-1, 1, 64 * 64, device=D).view(64, 64)
    x = torch.linspace(-1, 1, 2 * 64, device=D).view(2, 1, 64)
    with torch.no_grad():
        for _ in range(2 * STEPS):
            q = (x @ w).view(2, 1, 4, 16).transpose(1, 2)
            keys = torch.cat([keys, q], 2)
            weights = torch.softmax(q @ keys.transpose(2, 3) / 4, -1)
            x = torch.tanh((weights @ keys).transpose(1, 2).reshape(2, 1, 64) + x)
            out.append(x.sum() + weights.amax())


CASES = {f.__name__: f for f in (adam, batches_of_a_pool, losses_as_lists, convolutions, convolutions_eval, layouts_eval, layouts_eval_bf16, layouts_training, layouts_training_without_cudnn_norm,
                                 layouts_training_bf16, layouts_joined, group_norm_and_pooling, attention, attention_bf16, attention_dropout_bf16,
                                 attention_eval, embeddings, messages, written_cache, recurrent, branches, dropout, dropout_exits, streams, written_inputs, freed_between, exits,
                                 numbers, numbers_of_one_kernel, numbers_behind_long_work, numbers_of_the_library, unused_results, numbers_in_threads, own_captures, forked,
                                 sizes, sizes_training, sizes_large, sizes_scans, sizes_grow)}


def main(cases, names, devices=1):
    """devices: how many there must be."""
    if torch.cuda.device_count() < devices:
        return 77
    torch.backends.cudnn.deterministic = True
    for name in names or cases:
        torch.manual_seed(0)
        numbers = []
        cases[name](numbers)
        print(json.dumps([name, [float(n) for n in numbers]]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(CASES, sys.argv[1:]))
