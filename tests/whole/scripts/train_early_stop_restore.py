# Early stopping as a class with callbacks: on_epoch_end may raise a signal that ends training, best weights are restored.
# expect: compiled>=0.6, traces>=1
import copy

import torch
from torch import nn


class StopTraining(Exception):
    pass


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.wait, self.weights = patience, float("inf"), 0, None

    def on_epoch_end(self, trainer, epoch, loss):
        if loss < self.best:
            self.best, self.wait, self.weights = loss, 0, copy.deepcopy(trainer.model.state_dict())
        else:
            self.wait += 1
            if self.wait > self.patience:
                raise StopTraining(epoch)


class Trainer:
    def __init__(self, model, callbacks):
        self.model, self.callbacks = model, callbacks
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def fit(self, train, held, epochs):
        for epoch in range(epochs):
            for x, y in train:
                self.optimizer.zero_grad()
                nn.functional.mse_loss(self.model(x), y).backward()
                self.optimizer.step()
            with torch.no_grad():
                loss = sum(nn.functional.mse_loss(self.model(x), y).item() for x, y in held) / len(held)
            for callback in self.callbacks:
                callback.on_epoch_end(self, epoch, loss)


torch.manual_seed(174)
data = [(x, x[:, :1] + 0.4 * torch.randn(4, 1)) for x in torch.randn(8, 4, 6)]
stopper = EarlyStopping(3)
trainer = Trainer(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1)), [stopper])
try:
    trainer.fit(data[:5], data[5:], 40)
    ended = None
except StopTraining as stop:
    ended = stop.args[0]
    trainer.model.load_state_dict(stopper.weights)
print(ended, f"{stopper.best:.4f}", f"{trainer.model[0].weight.sum().item():.4f}")
