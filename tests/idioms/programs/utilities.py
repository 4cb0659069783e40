# Utilities: parametrizations, pruning, meters, logs, progress, timers and files in memory.
import io
import json
import logging
import sys
import time
from torch.nn.utils import (parameters_to_vector, parametrize, parametrizations, prune,
                            vector_to_parameters)

model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8))
opt = torch.optim.SGD(model.parameters(), lr=0.02)
inputs = torch.randn(STEPS, 4, 8)

# %% parametrized_symmetric_weight
class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).transpose(-1, -2)


layer = nn.Linear(8, 8)
parametrize.register_parametrization(layer, "weight", Symmetric())
opt = torch.optim.SGD(layer.parameters(), lr=0.02)
for epoch in range(EPOCHS):
    for x in inputs:
        with parametrize.cached():
            loss = F.mse_loss(layer(layer(x)), x.roll(1, 1))
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), torch.equal(layer.weight, layer.weight.T))

# %% weight_norm
net = nn.Sequential(parametrizations.weight_norm(nn.Linear(8, 12), name="weight"), nn.ReLU(),
                    parametrizations.weight_norm(nn.Linear(12, 8)))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(EPOCHS):
    for x in inputs:
        opt.zero_grad()
        loss = (net(x) - x).abs().mean()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), [name for name, _ in net.named_parameters()][:3])

# %% spectral_norm_and_orthogonal
net = nn.Sequential(parametrizations.spectral_norm(nn.Linear(8, 8)), nn.LeakyReLU(0.1),
                    parametrizations.orthogonal(nn.Linear(8, 8, bias=False)))
for epoch in range(EPOCHS):
    for x in inputs:
        loss = F.mse_loss(net(x), x.roll(1, 1))
        net.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in net.parameters():
                p.sub_(p.grad, alpha=0.02)
    mark()
print(loss.item(), torch.linalg.matrix_norm(net[2].weight, 2).item())

# %% pruned_layers
parameters = [(m, "weight") for m in model if isinstance(m, nn.Linear)]
prune.l1_unstructured(model[0], "weight", amount=0.3)
prune.random_unstructured(model[2], "weight", amount=0.2)
opt = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(EPOCHS):
    for x in inputs:
        opt.zero_grad()
        loss = F.mse_loss(model(x), x)
        loss.backward()
        opt.step()
    if epoch == 6:
        prune.global_unstructured(parameters, pruning_method=prune.L1Unstructured, amount=0.1)
    mark()
for module, name in parameters:
    prune.remove(module, name)
print(loss.item(), [int((m.weight == 0).sum()) for m, _ in parameters])

# %% parameters_as_a_vector
vector = parameters_to_vector(model.parameters()).detach()
best = float("inf")
for epoch in range(EPOCHS):
    for x in inputs:
        change = 0.05 * torch.randn_like(vector)
        with torch.no_grad():
            vector_to_parameters(vector + change, model.parameters())
            plus = F.mse_loss(model(x), x)
            vector_to_parameters(vector - change, model.parameters())
            minus = F.mse_loss(model(x), x)
        vector -= 0.1 * (plus - minus) * change
        best = min(best, plus.item(), minus.item())
    mark()
print(best, vector.norm().item())

# %% checkpoint_sequential_and_clip
from torch.utils.checkpoint import checkpoint_sequential

deep = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(4)])
opt = torch.optim.SGD(deep.parameters(), lr=0.02)
norms = []
for epoch in range(EPOCHS):
    for x in inputs:
        y = checkpoint_sequential(deep, 2, x, use_reentrant=False)
        loss = F.mse_loss(y, x)
        opt.zero_grad()
        loss.backward()
        norms.append(nn.utils.get_total_norm([p.grad for p in deep.parameters()]).item())
        nn.utils.clip_grad_norm_(deep.parameters(), 0.2, norm_type=1.0)
        opt.step()
    mark()
print(loss.item(), sum(norms))

# %% record_function_and_profiler_off
from torch.profiler import profile, record_function, ProfilerActivity

wanted = "--profile" in sys.argv
for epoch in range(EPOCHS):
    profiler = profile(activities=[ProfilerActivity.CPU]) if wanted else None
    for x in inputs:
        with record_function("forward"):
            loss = F.mse_loss(model(x), x)
        with record_function("backward"):
            opt.zero_grad()
            loss.backward()
        opt.step()
        if profiler:
            profiler.step()
    mark()
print(loss.item())

# %% timed_steps
durations = []
tic = time.time()
for epoch in range(EPOCHS):
    for x in inputs:
        start = time.perf_counter()
        opt.zero_grad()
        loss = F.mse_loss(model(x), x)
        loss.backward()
        opt.step()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        durations.append(time.perf_counter() - start)
    mark()
speed = len(durations) / sum(durations)
print(loss.item(), speed > 0, time.time() >= tic)

# %% logging_every_ten_steps
stream = io.StringIO()
logger = logging.getLogger("train")
logger.addHandler(logging.StreamHandler(stream))
logger.setLevel(logging.INFO)
for epoch in range(EPOCHS):
    running_loss = 0.0
    for i, x in enumerate(inputs):
        opt.zero_grad()
        loss = F.mse_loss(model(x), x)
        loss.backward()
        opt.step()
        running_loss += loss.item()
        logger.debug("step %d loss %s", i, loss)
        if i % 10 == 9:
            logger.info("[%d, %5d] loss: %.3f", epoch + 1, i + 1, running_loss / 10)
            running_loss = 0.0
    mark()
print(stream.getvalue()[-60:], len(stream.getvalue().splitlines()))

# %% progress_bar_by_hand
class Progress:
    def __init__(self, iterable, width=20, file=None):
        self.iterable, self.width, self.file, self.note = iterable, width, file, ""

    def __iter__(self):
        total = len(self.iterable)
        for n, item in enumerate(self.iterable, 1):
            yield item
            bar = "#" * (self.width * n // total)
            self.file.write(f"\r[{bar:<{self.width}}] {n}/{total} {self.note}")

    def set_postfix(self, **values):
        self.note = " ".join(f"{k}={v:.3f}" for k, v in values.items())


screen = io.StringIO()
for epoch in range(EPOCHS):
    bar = Progress(inputs, file=screen)
    for x in bar:
        loss = F.mse_loss(model(x), x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        bar.set_postfix(loss=loss.item(), lr=opt.param_groups[0]["lr"])
    mark()
print(screen.getvalue().split("\r")[-1])

# %% average_meters
class AverageMeter:
    def __init__(self, name, fmt=":f"):
        self.name, self.fmt = name, fmt
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        return ("{name} {val" + self.fmt + "} ({avg" + self.fmt + "})").format(**self.__dict__)


losses, signs = AverageMeter("Loss", ":.4f"), AverageMeter("Sign", ":6.2f")
for epoch in range(EPOCHS):
    losses.reset(), signs.reset()
    for x in inputs:
        y = model(x)
        loss = F.mse_loss(y, x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.update(loss.item(), x.size(0))
        signs.update((y.sign() == x.sign()).float().mean().item() * 100, x.size(0))
    mark()
print(losses, signs)

# %% state_dict_in_memory
best, kept = float("inf"), None
for epoch in range(EPOCHS):
    for i, x in enumerate(inputs):
        loss = F.mse_loss(model(x), x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 25 == 24:
            kept = {"model": {k: v.clone() for k, v in model.state_dict().items()},
                    "opt": opt.state_dict(), "epoch": epoch}
    if epoch % 4 == 3:
        file = io.BytesIO()
        torch.save(kept, file)
        file.seek(0)
        loaded = torch.load(file, weights_only=True)
        print(model.load_state_dict(loaded["model"]), loaded["epoch"])
        opt.load_state_dict(loaded["opt"])
    mark()
print(loss.item())

# %% json_log_and_early_stopping_class
class EarlyStopping:
    def __init__(self, patience=3, delta=0.0):
        self.patience, self.delta = patience, delta
        self.best, self.counter, self.early_stop = None, 0, False

    def __call__(self, loss):
        if self.best is None or loss < self.best - self.delta:
            self.best, self.counter = loss, 0
        else:
            self.counter += 1
            self.early_stop = self.counter >= self.patience


lines, stopper = [], EarlyStopping(patience=2, delta=0.2)
for epoch in range(EPOCHS):
    total = 0.0
    for x in inputs:
        loss = F.mse_loss(model(x), x)
        if not stopper.early_stop:
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            total += loss + 0.1 * model(-x).square().mean()
    stopper((total / STEPS).item())
    lines.append(json.dumps({"epoch": epoch, "loss": round(total.item() / STEPS, 4)}))
    mark()
print(lines[-1], json.loads(lines[0]), stopper.early_stop)

# %% scripted_function_and_module
@torch.jit.script
def gated(x: torch.Tensor, y: torch.Tensor, n: int) -> torch.Tensor:
    for k in range(n):
        x = torch.tanh(x) * torch.sigmoid(y) + 0.1 * k
    return x


scripted = torch.jit.script(model)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
for epoch in range(EPOCHS):
    for x in inputs:
        x = x.to(device)
        loss = F.mse_loss(gated(scripted(x), x, 3), x)
        opt.zero_grad()
        loss.backward()
        opt.step()
    mark()
print(loss.item(), device)
