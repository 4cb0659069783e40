# Tensors: indexing, shapes, sorting, counting, types, and the ways between tensors and Python.
import numpy as np

layer = nn.Linear(8, 8)
x = torch.randn(6, 8)
clock, phase = torch.zeros(()), 6 * torch.rand(64, 8)


@torch.no_grad()
def stir(x):
    clock.add_(0.1)
    return 0.5 * torch.tanh(layer(x)) + torch.sin(clock + phase[:len(x)])

# %% index_by_ints_and_slices
for epoch in range(EPOCHS):
    for i in range(STEPS):
        y = x[1:5:2] + x[-1] - x[i % 6, None, :]
        z = x[..., ::2].sum(-1)[:2, None] * x[:2, 3:4]
        x = stir(x)
        x[0] = y[0] * 0.1
        x[2, 3] = z[0, 0]
        x[:, -1] *= 0.5
    mark()
print(x.sum().item(), y.shape, z.shape)

# %% boolean_masks
kept = 0
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = stir(x)
        positive = x > 0
        kept += positive.sum().item()
        values = x[positive]
        x[~positive] *= 0.9
        x[x.abs() > 0.95] = 0.5
        x = x + values.mean() * 0.01
    mark()
print(x.abs().sum().item(), kept, values.dim())

# %% index_by_lists_and_tensors
order = torch.tensor([3, 1, 5, 0, 4, 2])
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = stir(x[order])
        rows, cols = [0, 2, 4], [1, 3, 5]
        corner = x[rows][:, cols]
        diagonal = x[rows, cols]
        x[[1, 3]] = x[[3, 1]]
        x[torch.arange(6), order] += diagonal.mean() * 0.1
    mark()
print(corner.sum().item(), diagonal.tolist(), x.shape)

# %% none_ellipsis_broadcast
weights = torch.rand(3, 1, 8)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        outer = x[:, None, :] - x[None, :, :]
        distance = outer.pow(2).sum(dim=-1)
        gated = weights * x[None, ...]
        x = stir(x - 0.01 * distance.mean(1, keepdim=True) + gated.mean(0))
    mark()
print(distance[0, 1].item(), distance.sum().item(), gated.size())

# %% index_put_accumulate
table = torch.zeros(5, 8)
where = torch.tensor([0, 1, 1, 4, 0, 2])
for epoch in range(EPOCHS):
    table.zero_()
    for i in range(STEPS):
        x = stir(x)
        table.index_put_((where,), x, accumulate=True)
        table.index_put_((torch.tensor([3]),), x[:1], accumulate=False)
        table[where.roll(i)] = 0.9 * table[where.roll(i)]
    mark()
print(table.sum(1))

# %% gather_and_scatter
labels = torch.tensor([2, 0, 7, 3, 3, 1])
for epoch in range(EPOCHS):
    for i in range(STEPS):
        logp = torch.log_softmax(stir(x), dim=1)
        picked = logp.gather(1, labels.unsqueeze(1)).squeeze(1)
        hot = torch.zeros_like(logp).scatter_(1, labels[:, None], 1.0)
        best = logp.argmax(dim=1, keepdim=True)
        x = x.scatter_add(1, best, 0.05 * torch.ones_like(picked[:, None])) * 0.9 + 0.1 * hot
        labels = (labels + 1) % 8
    mark()
print(picked.sum().item(), hot.argmax(1).tolist(), x.std().item())

# %% views_and_reshapes
for epoch in range(EPOCHS):
    for i in range(STEPS):
        a = x.view(2, 3, 8).transpose(0, 1).contiguous().view(3, 16)
        b = x.t().reshape(4, -1).unsqueeze(0).expand(2, -1, -1)
        c = x.unflatten(1, (2, 4)).movedim(2, 0).flatten(1)
        d = torch.atleast_3d(x).permute(2, 1, 0).squeeze(0)
        x = stir(x + a.mean() * b[1].sum() * 0.01 + c.std() * d.T * 0.1)
    mark()
print(a.shape, b.stride(), c.shape, x.sum().item())

# %% einsum_forms
a, b = torch.randn(4, 6, 8) * 0.1, torch.randn(8, 5) * 0.3
for epoch in range(EPOCHS):
    for i in range(STEPS):
        trace = torch.einsum("ii->i", x[:, :6])
        product = torch.einsum("bij,jk->bik", a, b)
        outer = torch.einsum("i,j->ij", trace, x[0])
        total = torch.einsum("bij,ij->b", a, x)
        x = stir(x + 0.1 * outer + 0.01 * product.sum())
    mark()
print(trace.sum().item(), product.shape, total.sum().item())

# %% sort_and_topk
for epoch in range(EPOCHS):
    for i in range(STEPS):
        values, index = x.sort(dim=1, descending=True)
        top, at = torch.topk(x.flatten(), k=5)
        middle = x.median(dim=0).values
        third = x.kthvalue(3, dim=1)[0]
        x = stir(values.flip(1) + 0.1 * middle - third[:, None] * 0.1)
        ranks = index.argsort(dim=1)
    mark()
print(top.tolist(), ranks.sum().item(), x.sum().item())

# %% unique_and_nonzero
counts = {}
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = stir(x)
        digits = (x * 3).round().long()
        values, inverse, number = torch.unique(digits, return_inverse=True, return_counts=True)
        spots = torch.nonzero(digits == 0)
        rows, cols = (digits > 0).nonzero(as_tuple=True)
        for v, n in zip(values.tolist(), number.tolist()):
            counts[v] = counts.get(v, 0) + n
    mark()
print(sum(counts.values()), inverse.shape, len(spots) + len(rows), len(counts))

# %% where_and_clamp
for epoch in range(EPOCHS):
    for i in range(STEPS):
        y = stir(x)
        x = torch.where(y > 0, y, 0.1 * y)
        x = torch.where(x.abs() < 1e-3, torch.zeros(()), x)
        x = x.clamp(-0.8, 0.8) + y.clip(min=0.1).log() * 0.01
        x = torch.maximum(x, y.amin(1, keepdim=True)).nan_to_num(0.0)
    mark()
print(x.sum().item(), torch.where(x > 10))

# %% cumulative_operations
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = stir(x)
        sums = x.cumsum(dim=1)
        best, at = x.cummax(dim=0)
        products = (1 + 0.1 * x).cumprod(-1)
        x = 0.5 * x + 0.1 * sums.diff(dim=1, prepend=sums[:, :1]) + 0.1 * products.log()
        x = x + 0.1 * torch.logcumsumexp(x, 1) * torch.tril(torch.ones(6, 8))
    mark()
print(sums[:, -1], best.shape, at.dtype)

# %% counting_histograms
grid = torch.linspace(-1, 1, 9)
total = torch.zeros(10, dtype=torch.long)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = stir(x)
        bins = torch.searchsorted(grid, x.flatten().contiguous())
        total += torch.bincount(bins, minlength=10)
        same = torch.bucketize(x, grid).flatten()
        spread = torch.histc(x, bins=8, min=-1, max=1)
    mark()
print(total.sum().item(), (bins == same).all().item(), spread)

# %% in_place_chains
buffer = torch.empty(6, 8)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        buffer.copy_(x).mul_(0.9).add_(0.1).sub_(x, alpha=0.05)
        buffer.addcmul_(x, x, value=0.01).clamp_(-1, 1).tanh_()
        buffer[1:3].fill_(i / STEPS)
        buffer.masked_fill_(buffer < -0.9, 0.0)
        x += stir(buffer)
        x /= 2
        x **= 1
    mark()
print(x.sum().item(), buffer[1, 0].item())

# %% out_arguments
y, z = torch.empty(6, 8), torch.empty(6, 6)
total = torch.zeros(())
for epoch in range(EPOCHS):
    for i in range(STEPS):
        torch.add(x, 0.1, out=y)
        torch.mm(y, y.t(), out=z)
        torch.sum(z, dim=(0, 1), out=total)
        torch.sin(y, out=x)
        torch.cat([x[3:], x[:3]], out=y)
        torch.where(y > 0, y, total * 0.01, out=x)
        x = stir(x)
    mark()
print(total, x.sum(), z.diagonal().sum().item())

# %% dtype_conversions
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = stir(x)
        n = (x * 100).to(torch.int32)
        flags = n.bool()
        small = x.half().double()
        bytes_ = (x.sigmoid() * 255).byte()
        back = bytes_.float().div(255).to("cpu", torch.float64)
        x = 0.5 * x + 0.1 * (n.float() / 100 + small.float() + flags.type(torch.float32))
    mark()
print(n.dtype, small.dtype, bytes_.dtype, f"{x.sum().item():.2f}", (n + flags).dtype, back.dtype)

# %% item_and_tolist
history, best = [], (-1.0, None)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = stir(x)
        mean, first = x.mean().item(), x[0].tolist()
        history.append(mean + sum(first) / len(first))
        if float(x.max()) > best[0]:
            best = float(x.max()), int(x.argmax())
        row = torch.tensor([mean, *first[:7]])
        x = x - row / 2
        low, high = x.min().item(), max(map(max, x.tolist()))
    mark()
print(low, high, len(history), sum(history), best)

# %% numpy_bridges
shared = np.zeros((6, 8), dtype=np.float32)
view = torch.from_numpy(shared)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = stir(x)
        array = x.numpy()
        shared[...] = np.tanh(array) * 0.5
        x = x + view * 0.1 + torch.as_tensor(array.mean(axis=0, keepdims=True))
        x = x - torch.tensor(np.float32(0.1))
    mark()
print(x.sum().item(), shared.shape, view.data_ptr() == shared.ctypes.data, type(array).__name__)

# %% meshgrid_coordinates
class Field:
    def __init__(self, h, w):
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing="ij")
        self.coords = torch.stack((xs, ys), dim=-1).reshape(-1, 2)
        self.net = nn.Sequential(nn.Linear(2, 12), nn.SiLU(), nn.Linear(12, 1))

    def __call__(self, shift):
        return self.net(self.coords + shift).view(7, 9)


field, shift = Field(7, 9), torch.zeros(2)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.no_grad():
            image = field(shift)
            pair = torch.cartesian_prod(image[0, :2], image[1, :2])
            shift = torch.tanh(shift + pair.mean(0))
    mark()
print(image.sum().item(), shift)

# %% roll_flip_rotate
alive = []
for epoch in range(EPOCHS):
    board = (torch.rand(12, 12) > 0.6).int()
    for i in range(STEPS):
        around = sum(torch.roll(board, (a, b), dims=(0, 1))
                     for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0))
        board = ((around == 3) | ((board == 1) & (around == 2))).int()
        if i % 25 == 0:
            board = torch.rot90(board, 1, (0, 1)).flip(0) | (board.fliplr() & board.flipud())
    alive.append(board.sum().item())
    mark()
print(alive)

# %% stack_cat_split_chunk
for epoch in range(EPOCHS):
    for i in range(STEPS):
        a, b = x.chunk(2, dim=1)
        first, *rest = torch.split(x, [1, 2, 3], dim=0)
        y = torch.cat([b, a], dim=1)
        z = torch.stack([part.mean(0) for part in rest])
        w = torch.vstack((first, z, torch.hstack([a[0], b[0]])))
        x = stir(y + 0.1 * torch.cat((w, w[:2])))
        p, q = x.tensor_split(2), x.unbind(0)
    mark()
print(x.sum().item(), w.shape, len(p), len(q))

# %% as_strided_and_unfold
signal = torch.randn(40)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        windows = signal.unfold(0, 8, 4)
        spectrum = stir(windows)
        hankel = signal.as_strided((6, 10), (1, 2))
        patches = F.unfold(x.view(1, 1, 6, 8), 3)
        folded = F.fold(patches, (6, 8), 3)
        signal = torch.tanh(signal + 0.01 * spectrum.mean() + hankel.mean() + 0.01 * folded.mean())
    mark()
print(windows.shape, hankel.shape, patches.shape, signal.sum().item())

# %% comparisons
inside = 0
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = stir(x)
        band = (x > -0.5) & (x < 0.5) | x.eq(0)
        odd = ~band ^ (x >= 0.9).logical_not()
        inside += int(band.all(dim=1).sum()) + int(odd.any())
        close = torch.isclose(x, x + 1e-9).all() and torch.allclose(x, x.clone())
        equal = torch.equal(x, x.clone())
    mark()
print(inside, close, equal, (x == x).all(), x.ne(x).any())

# %% bool_of_tensors
steps, flips = 0, 0
limit = torch.tensor(3.0)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = stir(x)
        if x.sum() > 0:
            x = x - 0.1
            flips += 1
        elif not (x.abs() > 2).any():
            x = x + 0.05
        while x.norm() > limit:
            x = x * 0.8
            steps += 1
        assert x.numel() and bool(torch.isfinite(x).all())
    mark()
print(x.sum().item(), flips, steps)

# %% len_and_iteration
for epoch in range(EPOCHS):
    for i in range(STEPS):
        total = 0
        for row in x:
            total = total + row.max() * row[0]
        a, b, *others = x
        pairs = [u @ v for u, v in zip(x, reversed(others))]
        x = stir(x + total / len(x)) + 0.01 * torch.stack(pairs).sum()
    mark()
print(x.sum().item(), len(x), len(others), sum(1 for _ in x.flatten()))

# %% tensor_attributes
facts = set()
for epoch in range(EPOCHS):
    for i in range(STEPS):
        y = x[i % 3:].t()
        facts.add((tuple(y.shape), y.stride(), y.is_contiguous(), y.storage_offset()))
        n, scale = y.numel(), 1.0 / y.size(0) ** 0.5
        x = stir(x) + scale * y.sum() / n
        x = x.to(device=x.device, dtype=x.dtype) * y.ndim / 2.0
    mark()
print(sorted(facts), x.sum().item(), x.is_floating_point(), x.requires_grad, x.device.type)

# %% formatting_in_f_strings
lines = []
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = stir(x) + 0.1 * x.roll(1, 0)
        mean = x.mean()
        if i % 25 == 0:
            lines.append(f"{epoch:2d}/{i:<3} mean={mean:.4f} max={x.max().item():>8.3f} {x.shape}")
        if i == STEPS - 1:
            lines.append(str(x[0, :3]) + " " + repr(x.argmax()))
    mark()
print("\n".join(lines[-6:]))

# %% printing_every_step
torch.set_printoptions(precision=3, sci_mode=False)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = stir(x - 0.1 * x.mean(0))
        x = stir(x.flip(0) + 0.01 * x.std())
        if epoch % 5 == 4 and i % 25 == 24:
            print("step", i, x[:2, :3], x.sum(), sep=" | ")
    mark()
print(x[:, 0], x > 0.5)

# %% arange_zeros_like_factories
for epoch in range(EPOCHS):
    for i in range(STEPS):
        steps = torch.arange(1, 9, dtype=x.dtype) / 8
        mask = torch.triu(torch.full((6, 6), -1.0), diagonal=1) + torch.eye(6)
        bias = x.new_zeros(6, 8) + torch.ones_like(x) * 0.01
        extra = torch.empty_like(x).fill_(0.1) + x.new_tensor([0.0] * 7 + [1.0])
        x = stir(torch.lerp(x, mask @ x, 0.1) * steps + bias + extra * 0.1)
    mark()
print(x.sum().item(), mask[0].tolist(), steps[-1].item())

# %% reductions_and_repeats
for epoch in range(EPOCHS):
    for i in range(STEPS):
        std, mean = torch.std_mean(x, dim=1, keepdim=True)
        low, high = torch.aminmax(x)
        z = (x - mean) / (std + 1e-3)
        wide = z.repeat(1, 2).view(6, 2, 8).mean(1) + z.repeat_interleave(2, dim=0)[::2]
        x = stir(wide * 0.5 + (high - low) * 0.01 + x.norm(dim=0) * 0.1 + x.logsumexp(0) * 0.1)
    mark()
print(std.mean().item(), x.sum().item(), x.var(unbiased=False).item())
