# Layers of torch.nn and the containers people put them in.
images = torch.randn(10, 2, 3, 12, 12)


def descend(net, loss, lr=0.01):
    for p in net.parameters():
        p.grad = None
    loss.backward()
    with torch.no_grad():
        for p in net.parameters():
            if p.grad is not None:
                p.add_(p.grad, alpha=-lr)

# %% batch_norm_train_and_eval
net = nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
x, t = torch.randn(STEPS, 12, 10), torch.randn(STEPS, 12, 2)
held = []
for epoch in range(EPOCHS):
    net.train()
    for i in range(STEPS):
        opt.zero_grad()
        F.mse_loss(net(x[i]), t[i]).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        held.append(F.mse_loss(net(x[0]), t[0]).item())
    mark()
print(held[-1], net[1].running_mean.sum(), net[1].num_batches_tracked)

# %% conv_net_2d
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3)
        self.conv2 = nn.Conv2d(6, 8, 3, stride=2, padding=1)
        self.fc1 = nn.Linear(8 * 3 * 3, 16)
        self.fc2 = nn.Linear(16, 4)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2, ceil_mode=True)
        x = torch.flatten(x, 1)
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.5)
labels = torch.randint(0, 4, (10, 2))
for epoch in range(EPOCHS):
    for i in range(STEPS):
        optimizer.zero_grad()
        loss = F.nll_loss(net(images[i % 10]), labels[i % 10])
        loss.backward()
        optimizer.step()
    mark()
print(loss.item(), net(images[0]).argmax(1))

# %% conv_1d_dilated_stack
class Residual(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.conv = nn.Conv1d(channels, 2 * channels, 3, padding=dilation, dilation=dilation)
        self.out = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        gate, value = self.conv(x).chunk(2, dim=1)
        return x + self.out(torch.sigmoid(gate) * torch.tanh(value))


net = nn.Sequential(*[Residual(6, 2 ** k) for k in range(3)])
x = torch.randn(2, 6, 20)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        y = net(x)
        descend(net, (y[..., :-1] - x[..., 1:]).pow(2).mean())
    mark()
print(y.shape, y.sum().item())

# %% conv_3d_and_pool
net = nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.ELU(), nn.MaxPool3d(2),
                    nn.Conv3d(4, 4, (1, 3, 3)), nn.AdaptiveAvgPool3d(1), nn.Flatten())
volume = torch.randn(2, 1, 6, 6, 6)
with torch.inference_mode():
    for epoch in range(EPOCHS):
        for i in range(STEPS):
            features = net(volume)
            volume = torch.tanh(volume + 0.01 * features.mean())
        mark()
print(features.shape, volume.std().item())

# %% transposed_decoder
decoder = nn.Sequential(nn.Unflatten(1, (4, 3, 3)), nn.ConvTranspose2d(4, 4, 4, 2, 1),
                        nn.LeakyReLU(0.2), nn.ConvTranspose2d(4, 3, 4, 2, 1, bias=False), nn.Tanh())
opt = torch.optim.Adam(decoder.parameters(), lr=1e-3)
z = torch.randn(2, 36)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        loss = F.mse_loss(decoder(z), images[i % 10].clamp(-1, 1))
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(decoder(z).shape, loss.item())

# %% grouped_and_depthwise
def separable(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cin, 3, padding=1, groups=cin, bias=False),
                         nn.BatchNorm2d(cin), nn.ReLU6(inplace=True),
                         nn.Conv2d(cin, cout, 1, bias=False), nn.BatchNorm2d(cout), nn.Hardswish())


net = nn.Sequential(separable(3, 8), separable(8, 8))
for epoch in range(EPOCHS):
    for i in range(STEPS):
        y = net(images[i % len(images)])
        descend(net, y.square().mean() - y.mean())
    mark()
print(y.mean().item(), sum(p.numel() for p in net.parameters()))

# %% group_layer_instance_norm
class Norms(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.group = nn.GroupNorm(2, c)
        self.instance = nn.InstanceNorm2d(c, affine=True)
        self.layer = nn.LayerNorm([c, 12, 12])
        self.local = nn.LocalResponseNorm(2)

    def forward(self, x):
        return self.group(x) + self.instance(x) * 0.5 + self.layer(x) + self.local(x)


lift, norms = nn.Conv2d(3, 4, 1), Norms(4)
net = nn.ModuleList([lift, norms])
for epoch in range(EPOCHS):
    for i in range(STEPS):
        y = norms(lift(images[i % 10]))
        descend(net, (y - images[i % 10].mean(1, keepdim=True)).square().mean(), lr=0.002)
    mark()
print(y.sum().item(), norms.layer.bias.sum())

# %% rms_norm_and_swiglu
class SwiGLU(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.norm = nn.RMSNorm(dim, eps=1e-6)
        self.w1, self.w3 = nn.Linear(dim, hidden, bias=False), nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        h = self.norm(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


layers = nn.ModuleList(SwiGLU(12, 24) for _ in range(3))
x = torch.randn(2, 5, 12)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        h = x
        for layer in layers:
            h = layer(h)
        descend(layers, F.mse_loss(h, x.flip(1)))
    mark()
print(h.norm().item())

# %% rms_norm_by_hand
class RMSNorm(torch.nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        return self._norm(x.float()).type_as(x) * self.weight


norm, proj = RMSNorm(16), nn.Linear(16, 16)
x = torch.randn(4, 7, 16)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.no_grad():
            x = 0.9 * x + 0.1 * proj(norm(x))
    mark()
print(x.sum().item(), x.dtype)

# %% pooling_forms
pools = {"max": nn.MaxPool2d(3, 2, padding=1), "avg": nn.AvgPool2d(2), "lp": nn.LPPool2d(2, 2),
         "adaptive": nn.AdaptiveMaxPool2d((4, 5)), "global": lambda x: x.mean((-2, -1))}
totals = dict.fromkeys(pools, 0.0)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = images[i % 10].sigmoid()
        for name, pool in pools.items():
            totals[name] += pool(x).sum().item()
    mark()
print({k: round(v, 1) for k, v in totals.items()})

# %% max_unpool_autoencoder
pool, unpool = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)
net = nn.Conv2d(3, 3, 3, padding=1)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = images[i % 10]
        small, where = pool(net(x))
        y = unpool(small, where, output_size=x.shape[-2:])
        descend(net, F.mse_loss(y, x))
    mark()
print(y.shape, where.sum().item(), y.abs().sum().item())

# %% pads
pads = [nn.ZeroPad2d(1), nn.ReflectionPad2d((1, 0, 1, 0)), nn.ReplicationPad2d(1),
        nn.ConstantPad2d(1, 0.5), nn.CircularPad2d(1)]
conv = nn.Conv2d(3, 3, 3)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.no_grad():
            x = images[i % 10]
            for pad in pads:
                x = torch.tanh(conv(pad(x)))
            x = F.pad(x, (1, 2), mode="constant", value=-1.0)
    mark()
print(x.shape, x.sum().item())

# %% upsample_unet
class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 4, 3, padding=1)
        self.middle = nn.Conv2d(4, 4, 3, padding=1)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        d = F.relu(self.down(x))
        m = F.relu(self.middle(F.avg_pool2d(d, 2)))
        return self.out(torch.cat([self.up(m), d], dim=1))


net = UNet()
target = images.mean(2, keepdim=True)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        y = net(images[i % 10])
        descend(net, F.l1_loss(y, target[i % 10]), lr=0.02)
    mark()
print(y.shape, y.mean().item())

# %% interpolate_pyramid
levels = []
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = images[i % 10]
        levels = [x]
        while levels[-1].size(-1) > 3:
            levels.append(F.interpolate(levels[-1], scale_factor=0.5, mode="area"))
        y = sum(F.interpolate(each, size=(12, 12), mode="nearest") for each in levels)
        images[i % 10] = torch.tanh(y * 0.5)
    mark()
print([tuple(each.shape[2:]) for each in levels], images.abs().sum().item())

# %% grid_sample_spatial_transformer
class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.localize = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 6))
        self.localize[-1].weight.data.mul_(0.1)
        self.localize[-1].bias.data.copy_(torch.tensor([0.9, 0.07, 0.03, -0.05, 0.93, 0.02]))

    def forward(self, x):
        theta = self.localize(x).view(-1, 2, 3)
        grid = F.affine_grid(theta, x.size(), align_corners=False)
        return F.grid_sample(x, grid, padding_mode="border", align_corners=False)


net = Transformer()
for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.no_grad():
            y = net(images[i % 10])
            images[i % 10] = torch.sin(images[i % 10] + 0.5 * y)
    mark()
print(net.localize(y).mean(0), y.sum().item())

# %% embedding_average_classifier
vocabulary, dim = 30, 10
embedding = nn.Embedding(vocabulary, dim, padding_idx=0)
head = nn.Linear(dim, 3)
opt = torch.optim.Adagrad([*embedding.parameters(), *head.parameters()], lr=0.02)
tokens = torch.randint(0, vocabulary, (STEPS, 4, 7))
labels = torch.randint(0, 3, (STEPS, 4))
for epoch in range(EPOCHS):
    for words, label in zip(tokens, labels):
        mask = (words != 0).unsqueeze(-1)
        mean = (embedding(words) * mask).sum(1) / mask.sum(1).clamp_min(1)
        loss = F.cross_entropy(head(mean), label)
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), embedding.weight[0].sum().item())

# %% embedding_bag_with_offsets
bag = nn.EmbeddingBag(40, 8, mode="sum")
head = nn.Linear(8, 2)
net = nn.ModuleDict({"bag": bag, "head": head})
flat = torch.randint(0, 40, (25,))
offsets = torch.tensor([0, 4, 9, 15, 16])
weights = torch.rand(25)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        scores = head(bag(flat, offsets, per_sample_weights=weights))
        loss = F.cross_entropy(scores, torch.tensor([0, 1, 0, 1, 1]))
        descend(net, loss, lr=0.05)
    mark()
print(loss.item(), scores.argmax(dim=-1).tolist())

# %% bilinear_and_activations
pair = nn.Bilinear(6, 4, 5)
acts = [nn.SELU(), nn.Mish(), nn.Softsign(), nn.PReLU(), nn.Hardtanh(-2, 2), nn.LogSigmoid()]
net = nn.Sequential(pair, *acts)
a, b = torch.randn(8, 6), torch.randn(8, 4)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        y = pair(a, b)
        for act in acts:
            y = act(y)
        descend(net, y.square().mean())
    mark()
print(y.sum().item(), net[4].weight.item())

# %% pixel_shuffle_super_resolution
class Upscaler(nn.Sequential):
    def __init__(self, factor):
        super().__init__(nn.Conv2d(3, 8, 3, padding="same"), nn.Tanh(),
                         nn.Conv2d(8, 3 * factor ** 2, 3, padding="same"), nn.PixelShuffle(factor))


net = Upscaler(2)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
small = F.avg_pool2d(images.flatten(0, 1), 2).view(10, 2, 3, 6, 6)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        opt.zero_grad()
        loss = F.mse_loss(net(small[i % 10]), images[i % 10])
        loss.backward()
        opt.step()
    mark()
print(loss.item(), F.pixel_unshuffle(images[0], 2).shape)

# %% module_list_with_skips
class Dense(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList()
        for a, b in zip(sizes[:-1], sizes[1:]):
            self.layers.append(nn.Linear(a, b))
        self.skips = {}

    def forward(self, x):
        self.skips.clear()
        for k, layer in enumerate(self.layers):
            x = F.gelu(layer(x)) if k < len(self.layers) - 1 else layer(x)
            if x.shape[-1] == 16 and k - 2 in self.skips:
                x = x + self.skips[k - 2]
            self.skips[k] = x
        return x


net, x = Dense([8, 16, 16, 16, 16, 1]), torch.randn(6, 8)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        y = net(x)
        descend(net, F.mse_loss(y.squeeze(1), x.prod(1)))
    mark()
print(y.flatten().tolist())

# %% module_dict_by_task
class MultiTask(nn.Module):
    def __init__(self, **outputs):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 16), nn.SiLU())
        self.heads = nn.ModuleDict({task: nn.Linear(16, n) for task, n in outputs.items()})

    def forward(self, x, tasks=None):
        h = self.trunk(x)
        return {task: head(h) for task, head in self.heads.items() if not tasks or task in tasks}


net, x = MultiTask(size=1, kind=3, place=2), torch.randn(6, 8)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        out = net(x, tasks=("size", "kind") if i % 2 else None)
        loss = out["size"].square().mean() + F.cross_entropy(out["kind"], torch.arange(6) % 3)
        if "place" in out:
            loss = loss + F.mse_loss(out["place"], x[:, :2])
        descend(net, loss)
    mark()
print(sorted(out), loss.item())

# %% sequential_from_config
from collections import OrderedDict

config = [("fc", 8, 16), ("act",), ("norm", 16), ("drop", 0.0), ("fc", 16, 4)]
make = {"fc": nn.Linear, "act": nn.Softplus, "norm": nn.LayerNorm, "drop": nn.Dropout}
net = nn.Sequential(OrderedDict((f"{k}_{kind}", make[kind](*args))
                                for k, (kind, *args) in enumerate(config)))
x = torch.randn(5, 8)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        y = net[:-1](x)
        y = net[-1](y)
        descend(net, (y - x[:, :4]).abs().mean())
    mark()
print([name for name, _ in net.named_children()], y.std().item())

# %% lazy_modules
net = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(),
                    nn.LazyLinear(6))
net(images[0])
opt = torch.optim.RMSprop(net.parameters(), lr=1e-4)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        loss = net(images[i % 10]).logsumexp(1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), net[-1].in_features)

# %% parameter_list_and_dict
class Polynomial(nn.Module):
    def __init__(self, degree):
        super().__init__()
        self.coefficients = nn.ParameterList([nn.Parameter(torch.zeros(1)) for _ in range(degree)])
        self.extra = nn.ParameterDict({"scale": nn.Parameter(torch.ones(())),
                                       "shift": nn.Parameter(torch.zeros(()))})

    def forward(self, x):
        y = sum(c * x ** k for k, c in enumerate(self.coefficients))
        return self.extra["scale"] * y + self.extra["shift"]

    def __str__(self):
        return " + ".join(f"{c.item():.4f} x^{k}" for k, c in enumerate(self.coefficients))


x = torch.linspace(-1, 1, 32)
net, target = Polynomial(4), torch.sin(2 * x)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        loss = F.mse_loss(net(x), target)
        descend(net, loss)
    mark()
print(net, loss.item())
