# Warnings, caught errors, seeds, files: what stands between tensor operations without being one.
import io
import warnings

model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
x = torch.randn(4, 8)

# %% warning_in_forward
class Old(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = model

    def forward(self, x):
        warnings.warn("Old is deprecated", stacklevel=2)
        return self.inner(x)


net = Old()
warnings.simplefilter("ignore")
for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.no_grad():
            x = torch.tanh(net(x) + 0.1)
    mark()
print(x.sum())

# %% warning_shown_once
def old(x):
    warnings.warn("old() is deprecated", DeprecationWarning)
    return model(x)


for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.no_grad():
            x = torch.tanh(old(x) + 0.1)
    mark()
print(x.sum())

# %% caught_operator_error
def safe(x, w):
    try:
        return x @ w
    except RuntimeError:
        return x @ w.t()


w = torch.randn(6, 8)
for epoch in range(EPOCHS):
    for i in range(STEPS):
        x = torch.tanh(safe(safe(x, w), w) * 0.5 + 0.1)
    mark()
print(x.sum())

# %% seed_in_loop
for epoch in range(EPOCHS):
    for i in range(STEPS):
        torch.manual_seed(i)
        noise = torch.randn(4, 8)
        with torch.no_grad():
            x = torch.tanh(model(x + 0.1 * noise))
    mark()
print(x.sum())

# %% quantile
for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.no_grad():
            y = model(x)
            low, high = torch.quantile(y, 0.1), torch.quantile(y, 0.9)
            x = torch.tanh(y.clamp(low, high))
    mark()
print(x.sum())

# %% one_hot
index = torch.arange(4) % 3
for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.no_grad():
            label = F.one_hot((index + i) % 8, 8).float()
            x = torch.tanh(model(x) + 0.1 * label)
    mark()
print(x.sum())

# %% save_in_loop
sizes = []
for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.no_grad():
            x = torch.tanh(model(x))
        if i % 10 == 9:
            buffer = io.BytesIO()
            torch.save(model.state_dict(), buffer)
            sizes.append(buffer.tell() > 100)
    mark()
print(x.sum(), len(sizes))

# %% assert_finite
for epoch in range(EPOCHS):
    for i in range(STEPS):
        with torch.no_grad():
            x = torch.tanh(model(x))
        assert torch.isfinite(x).all(), "not finite"
    mark()
print(x.sum())

# %% raise_out_of_loop
class Stop(Exception):
    pass


def guarded(x, i):
    if i % 25 == 24:
        raise Stop(f"step {i}")
    with torch.no_grad():
        return torch.tanh(model(x))


stops = 0
for epoch in range(EPOCHS):
    for i in range(STEPS):
        try:
            x = guarded(x, i)
        except Stop as stop:
            stops += 1
    mark()
print(x.sum(), stops)
