# Sparse and nested tensors, and the dense ways of doing the same.
nodes, dim = 12, 6
edges = torch.randint(0, nodes, (2, 30))
weights = torch.rand(30)
x = torch.randn(nodes, dim)

# %% coo_matrix_product
adjacency = torch.sparse_coo_tensor(edges, weights, (nodes, nodes)).coalesce()
conv1, conv2 = nn.Linear(dim, 8), nn.Linear(8, 3)
opt = torch.optim.SGD([*conv1.parameters(), *conv2.parameters()], lr=0.05)
labels = torch.arange(nodes) % 3
for epoch in range(EPOCHS):
    for i in range(STEPS):
        h = torch.relu(torch.sparse.mm(adjacency, conv1(x)))
        loss = F.cross_entropy(torch.sparse.mm(adjacency, conv2(h)), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), adjacency._nnz() <= 30, adjacency.is_coalesced())

# %% csr_propagation
dense = torch.zeros(nodes, nodes).index_put_((edges[0], edges[1]), weights)
rows = (dense + torch.eye(nodes)) / (dense.sum(1, keepdim=True) + 1)
matrix = rows.to_sparse_csr()
for epoch in range(EPOCHS):
    y = x
    for i in range(STEPS):
        y = 0.8 * (matrix @ y) + 0.2 * torch.sin(x + 0.1 * i)
        size = (matrix @ torch.ones(nodes, 1)).sum()
    mark()
print(y.sum().item(), size.item(), matrix.layout, matrix.values().numel())

# %% sparse_embedding_gradients
words, out = nn.Embedding(30, 8, sparse=True), nn.Linear(8, 2)
sparse = torch.optim.SparseAdam(words.parameters(), lr=1e-3)
usual = torch.optim.Adam(out.parameters(), lr=1e-3)
tokens, labels = torch.randint(0, 30, (STEPS, 4, 5)), torch.randint(0, 2, (STEPS, 4))
for epoch in range(EPOCHS):
    for t, label in zip(tokens, labels):
        loss = F.cross_entropy(out(words(t).mean(1)), label)
        sparse.zero_grad()
        usual.zero_grad()
        loss.backward()
        sparse.step()
        usual.step()
    mark()
print(loss.item(), words.weight.grad.is_sparse, words.weight.sum().item())

# %% conversions_and_values
for epoch in range(EPOCHS):
    for i in range(STEPS):
        thin = torch.where(x.abs() > 0.7, x, 0.0)
        s = thin.to_sparse()
        doubled = torch.sparse_coo_tensor(s.indices(), s.values() * 2, s.shape)
        total = torch.sparse.sum(doubled, dim=1).to_dense()
        x = torch.sin(x + 0.1 * (s + doubled).to_dense() + 0.01 * total[:, None] + 0.1 * i)
    mark()
print(x.sum().item(), s.sparse_dim(), s._nnz() > 0)

# %% nested_tensor_of_ragged_rows
lengths = [3, 5, 2]
head = nn.Linear(dim, 4)
rows = [torch.randn(n, dim) for n in lengths]
for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.no_grad():
            ragged = torch.nested.nested_tensor(rows)
            y = torch.nested.to_padded_tensor(F.gelu(head(ragged)), padding=0.0)
            first = ragged.unbind()[i % 3]
        rows[i % 3] = torch.tanh(first + 0.1 * y[i % 3, :1, :1])
    mark()
print(y.shape, y.sum().item(), [len(r) for r in rows], ragged.is_nested)

# %% jagged_offsets_by_hand
values = torch.randn(10, dim)
offsets = torch.tensor([0, 3, 8, 10])
owner = torch.repeat_interleave(torch.arange(3), offsets.diff())
score = nn.Linear(dim, 1)
opt = torch.optim.SGD(score.parameters(), lr=0.05)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        s = score(values).squeeze(1)
        e = (s - torch.zeros(3).scatter_reduce(0, owner, s.detach(), "amax")[owner]).exp()
        attention = e / torch.zeros(3).index_add(0, owner, e)[owner]
        pooled = torch.zeros(3, dim).index_add(0, owner, attention[:, None] * values)
        loss = (pooled.sum(1) - 1).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), attention.sum().item(), owner.tolist())

# %% segment_reductions_of_messages
source, target = edges
net = nn.Sequential(nn.Linear(2 * dim, 8), nn.ReLU(), nn.Linear(8, dim))
for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.no_grad():
            message = net(torch.cat([x[source], x[target]], dim=1)) * weights[:, None]
            index = target[:, None].expand_as(message)
            mean = torch.zeros_like(x).scatter_reduce_(0, index, message, reduce="mean")
            high = torch.zeros_like(x).scatter_reduce(0, index, message, "amax", include_self=False)
            x = torch.tanh(x + mean) + 0.1 * high + 0.1 * torch.sin(x + i)
            degree = torch.zeros(nodes).scatter_add_(0, target, torch.ones(30))
    mark()
print(x.sum().item(), degree.tolist())

# %% masked_select_patterns
kept = 0
for epoch in range(EPOCHS):
    for i in range(STEPS):
        mask = torch.rand(nodes, dim) < 0.4
        chosen = torch.masked_select(x, mask)
        if chosen.numel() == 0:
            continue
        filled = x.masked_fill(mask, 0.0)
        spread = torch.zeros_like(x).masked_scatter_(mask, torch.sort(chosen).values)
        x = 0.3 * torch.sin(filled + spread + chosen.mean() + 0.1 * i)
        kept += chosen.numel()
        rows = x[mask.any(dim=1).nonzero().squeeze(1)]
    mark()
print(x.sum().item(), kept, rows.shape[1])
