# A hierarchy of exception classes with attributes decides how training goes on: skip, halve the rate, or stop.
# expect: compiled>=0.35, traces>=1
import torch
from torch import nn


class TrainingError(Exception):
    def __init__(self, step, **details):
        super().__init__(step, details)
        self.step, self.details = step, details


class Skip(TrainingError):
    pass


class Diverged(TrainingError):
    def __str__(self):
        return f"diverged at {self.step}: {self.details['loss']:.1f}"


class Stop(TrainingError):
    pass


def check(step, loss):
    if step in (12, 13):
        raise Skip(step)
    if loss > 3:
        raise Diverged(step, loss=loss)
    if step == 50:
        raise Stop(step, reason="budget")


torch.manual_seed(33)
model = nn.Linear(3, 1)
x = torch.randn(12, 3)
y = x.sum(1, keepdim=True)
rate, log = 1.3, []
for step in range(100):
    model.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    try:
        check(step, loss.item())
    except Skip as skip:
        log.append(("skip", skip.step))
        continue
    except Diverged as error:
        log.append(str(error))
        rate /= 2
        model.load_state_dict({"weight": torch.zeros(1, 3), "bias": torch.zeros(1)})
        continue
    except TrainingError as error:
        log.append((type(error).__name__, error.details))
        break
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= rate * p.grad
print(*log, sep="\n")
print(step, rate, f"{loss.item():.5f}")
