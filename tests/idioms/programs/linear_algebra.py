# Linear algebra: products, decompositions, norms, transforms and complex numbers.
a = torch.randn(6, 6)
spd = a @ a.T / 6 + torch.eye(6)
drive = torch.randn(STEPS, 6, 6) * 0.1

# %% matmul_forms
batch, v = torch.randn(3, 6, 6) * 0.3, torch.randn(6)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        m = torch.mm(a, drive[i]) + a @ drive[i].mT
        v = torch.tanh(torch.mv(m, v) + torch.matmul(v, a) * 0.1 + drive[i, 0])
        b = torch.bmm(batch, batch.transpose(1, 2)) + torch.matmul(batch, m)
        outer = torch.outer(v, v) + torch.addmm(m, a, a, beta=0.5, alpha=0.1)
        total = torch.dot(v, v) + torch.baddbmm(b, batch, batch).sum() + v.inner(v) + outer.sum()
    mark()
print(v.sum().item(), total.item(), b.shape)

# %% batched_mlp_with_bmm
w1 = nn.Parameter(torch.randn(4, 6, 8) * 0.2)
w2 = nn.Parameter(torch.randn(4, 8, 1) * 0.2)
opt = torch.optim.SGD([w1, w2], lr=0.05)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = drive[i].expand(4, 6, 6) * 5
        y = torch.bmm(torch.relu(torch.bmm(x, w1)), w2).squeeze(-1)
        loss = (y - x.sum(-1)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), y.shape)

# %% inverse_and_pinv
for epoch in range(EPOCHS):
    for i in range(STEPS):
        m = spd + drive[i] @ drive[i].T
        inverse = torch.linalg.inv(m)
        wide = torch.linalg.pinv(m[:4])
        error = (inverse @ m - torch.eye(6)).abs().max() + (m[:4] @ wide - torch.eye(4)).abs().max()
        assert error < 1e-3
    mark()
print(inverse.trace().item(), wide.shape, torch.inverse(spd).sum().item())

# %% solve_and_least_squares
points = torch.randn(20, 3)
true = torch.tensor([1.0, -2.0, 0.5])
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = torch.linalg.solve(spd + drive[i] @ drive[i].T, drive[i][:, :2])
        y = points @ true + drive[i].flatten()[:20]
        fit = torch.linalg.lstsq(points, y.unsqueeze(1)).solution.squeeze(1)
        z = torch.linalg.solve_triangular(spd.tril(), x, upper=False)
    mark()
print(x.sum().item(), fit.tolist(), z.abs().sum().item())

# %% cholesky_gaussian_process
class GP:
    def __init__(self, x, y, noise=0.1):
        self.x, self.y, self.noise = x, y, noise

    def kernel(self, a, b, scale):
        return torch.exp(-0.5 * torch.cdist(a, b).pow(2) / scale ** 2)

    def likelihood(self, scale):
        k = self.kernel(self.x, self.x, scale) + self.noise * torch.eye(len(self.x))
        lower = torch.linalg.cholesky(k)
        alpha = torch.cholesky_solve(self.y[:, None], lower)
        return 0.5 * (self.y @ alpha).sum() + lower.diagonal().log().sum()


x = torch.linspace(0, 3, 10)[:, None] + 0.05 * torch.randn(10, 1)
gp, log_scale = GP(x, torch.sin(2 * x[:, 0])), torch.zeros((), requires_grad=True)
opt = torch.optim.SGD([log_scale], lr=1e-3)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        loss = gp.likelihood(log_scale.exp())
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), log_scale.exp().item())

# %% singular_values
low = torch.randn(8, 2) @ torch.randn(2, 6)
errors = []
for epoch in range(EPOCHS):
    for i in range(STEPS):
        noisy = low + 0.1 * drive[i].repeat(2, 1)[:8]
        u, s, vh = torch.linalg.svd(noisy, full_matrices=False)
        approx = (u[:, :2] * s[:2]) @ vh[:2]
        nuclear = torch.linalg.svdvals(noisy).sum()
        errors.append((approx - low).norm().item())
    mark()
print(s.tolist(), nuclear.item(), sum(errors) / len(errors))

# %% symmetric_eigen_whitening
basis = torch.tensor([[2.0, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1.5, 0], [0, 0, 0, 1]])
data = torch.randn(STEPS, 12, 4) @ basis
whitened = []
for epoch in range(EPOCHS):
    for x in data:
        x = x - x.mean(0)
        covariance = x.T @ x / (len(x) - 1)
        values, vectors = torch.linalg.eigh(covariance)
        root = vectors @ torch.diag(values.clamp_min(1e-3).rsqrt()) @ vectors.T
        whitened.append(torch.cov((x @ root).T).diagonal().sum().item())
    mark()
print(values.tolist(), sum(whitened) / len(whitened), root.trace().item())

# %% qr_orthogonal_iteration
for epoch in range(EPOCHS):
    q = torch.eye(6)[:, :3]
    for i in range(STEPS):
        q, r = torch.linalg.qr((spd + drive[i] @ drive[i].T) @ q)
        sign = r.diagonal().sign()
        q, r = q * sign, r * sign[:, None]
        rayleigh = (q * (spd @ q)).sum(0)
        angle = torch.linalg.svdvals(q[:3])
    mark()
print(r.diagonal().tolist(), rayleigh.tolist(), angle[0].item(), (q.T @ q).sum().item())

# %% determinants
values = torch.zeros(3)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        m = spd + drive[i]
        sign, logdet = torch.linalg.slogdet(m)
        det = torch.linalg.det(m)
        power = torch.linalg.matrix_power(m * 0.3, 3)
        values += torch.stack([logdet * sign, det.log(), torch.logdet(power @ power.T + m @ m.T)])
        e = torch.linalg.matrix_exp(drive[i])
    mark()
print(values / (EPOCHS * STEPS), e.trace().item(), torch.linalg.cond(spd).item())

# %% norms_and_distances
x = torch.zeros(6, 6)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        y = drive[i] + 0.5 * x
        sizes = torch.stack([y.norm(), y.norm(p=1), torch.linalg.norm(y, ord="fro"),
                             torch.linalg.matrix_norm(y, ord=1), torch.linalg.vector_norm(y, ord=3),
                             y.norm(dim=0).max(), torch.linalg.norm(y, float("inf"))])
        d = torch.cdist(y, drive[i - 1], p=2) + torch.cdist(y, y, p=1)
        x = F.normalize(y, p=2, dim=1) + 0.1 * torch.renorm(y, 2, 0, 0.5) + 0.01 * d
        x = x + torch.trace(y) * 0.01 + F.pairwise_distance(y, x) * 0.01
    mark()
print(sizes.tolist(), x.sum().item())

# %% fourier_filter
signal = torch.sin(torch.arange(64) * 0.3) + 0.1 * torch.randn(64)
window = torch.hann_window(16)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        spectrum = torch.fft.rfft(signal)
        frequencies = torch.fft.rfftfreq(64)
        spectrum = spectrum * torch.exp(-10 * frequencies)
        signal = 0.9 * torch.fft.irfft(spectrum, n=64) + 0.1 * torch.cos(torch.arange(64) * 0.1 * i)
        short = torch.stft(signal, 16, 8, window=window, return_complex=True)
        image = torch.fft.fftshift(torch.fft.fft2(drive[i])).abs()
    mark()
print(signal.sum().item(), short.shape, short.abs().sum().item(), image.sum().item())

# %% complex_numbers
z = torch.complex(a[0], a[1])
u = torch.linalg.qr(torch.randn(6, 6, dtype=torch.cfloat)).Q
for epoch in range(EPOCHS):
    for i in range(STEPS):
        z = u @ z + 1j * drive[i, 0] + torch.polar(drive[i, 1].abs(), drive[i, 2])
        z = z / (1 + z.abs().pow(2).mean().sqrt())
        energy = (z.conj() * z).real.sum()
        parts = torch.view_as_real(z * torch.exp(1j * z.angle())).sum(0)
        w = torch.roll(z.imag, 1) - z.real + energy
    mark()
print(energy.item(), parts.tolist(), w.sum().item(), z.dtype, z.is_complex())
