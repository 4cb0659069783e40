"""A random search over optimizers and sizes with copied models, early stopping, successive halving and resumed checkpoints, as tutorials on tuning do."""

import copy
import io
import itertools
import random
from collections import OrderedDict

import torch
from torch import nn

from synthetic import Digits

OPTIMIZERS = {
    "sgd": lambda params, lr: torch.optim.SGD(params, lr=lr, momentum=0.9),
    "adam": lambda params, lr: torch.optim.Adam(params, lr=lr),
    "adamax": lambda params, lr: torch.optim.Adamax(params, lr=lr),
    "nadam": lambda params, lr: torch.optim.NAdam(params, lr=lr),
    "rmsprop": lambda params, lr: torch.optim.RMSprop(params, lr=lr / 3, centered=True),
    "adagrad": lambda params, lr: torch.optim.Adagrad(params, lr=3 * lr),
}


class EarlyStopping:
    def __init__(self, patience=2, delta=0.0):
        self.patience, self.delta = patience, delta
        self.best, self.counter, self.state = None, 0, None

    def __call__(self, value, model):
        if self.best is None or value < self.best - self.delta:
            self.best, self.counter, self.state = value, 0, copy.deepcopy(model.state_dict())
        else:
            self.counter += 1
        return self.counter >= self.patience


def build(width, depth, activation, dropout):
    layers = OrderedDict()
    for k, (inputs, outputs) in enumerate(itertools.pairwise([196] + [width] * depth)):
        layers[f"linear{k}"] = nn.Linear(inputs, outputs)
        layers[f"act{k}"] = getattr(nn, activation)()
        if dropout:
            layers[f"drop{k}"] = nn.Dropout(dropout)
    layers["out"] = nn.Linear(width, 10)
    return nn.Sequential(layers)


class Trial:
    def __init__(self, number, config, data):
        self.number, self.config, self.data = number, config, data
        torch.manual_seed(number)
        self.model = build(config["width"], config["depth"], config["activation"], config["dropout"])
        self.optimizer = OPTIMIZERS[config["optimizer"]](self.model.parameters(), config["lr"])
        self.stopping, self.epoch, self.stopped = EarlyStopping(), 0, False

    def run(self, epochs):
        (x, y), (valid_x, valid_y) = self.data
        criterion = nn.CrossEntropyLoss()
        for _ in range(epochs):
            self.model.train()
            for batch in torch.randperm(len(x)).split(32):
                self.optimizer.zero_grad()
                criterion(self.model(x[batch]), y[batch]).backward()
                self.optimizer.step()
            self.model.eval()
            with torch.no_grad():
                valid = criterion(self.model(valid_x), valid_y).item()
            self.epoch += 1
            if self.stopping(valid, self.model):
                self.stopped = True
                break
        return self.stopping.best

    def checkpoint(self):
        buffer = io.BytesIO()
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "epoch": self.epoch, "rng": torch.get_rng_state()}, buffer)
        return buffer.getvalue()

    def resume(self, content):
        state = torch.load(io.BytesIO(content), weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epoch = state["epoch"]
        torch.set_rng_state(state["rng"])


def main():
    random.seed(22)
    train, valid = Digits(192, size=14, seed=1), Digits(96, size=14, seed=2)
    data = ((train.data.flatten(1), train.targets), (valid.data.flatten(1), valid.targets))
    names = list(OPTIMIZERS)
    trials = []
    for number in range(8):
        config = {"optimizer": names[number % len(names)], "lr": 10 ** random.uniform(-2.7, -1.9), "width": random.choice([24, 48]),
                  "depth": random.choice([1, 2]), "activation": random.choice(["ReLU", "GELU", "Tanh", "ELU"]), "dropout": random.choice([0.0, 0.1])}
        trials.append(Trial(number, config, data))
    rung, epochs = trials, 3
    while len(rung) > 1:
        scored = [(trial.run(epochs), trial) for trial in rung]
        scored.sort(key=lambda pair: (pair[0], pair[1].number))
        for score, trial in scored:
            print(f"trial {trial.number} {trial.config['optimizer']:<8} width {trial.config['width']} depth {trial.config['depth']} epochs {trial.epoch} best {score:.4f}"
                  + (" (stopped)" if trial.stopped else ""))
        kept = [trial for _, trial in scored[:len(scored) // 2]]
        saved = [trial.checkpoint() for trial in kept]
        rung = [Trial(trial.number, trial.config, data) for trial in kept]
        for trial, content in zip(rung, saved):
            trial.resume(content)
        print("kept", [trial.number for trial in rung])
        epochs *= 2
    winner = rung[0]
    winner.run(6)
    twin = copy.deepcopy(winner.model)
    twin.load_state_dict(winner.stopping.state)
    with torch.no_grad():
        twin.out.weight.mul_(0.5)
        same = winner.model(data[1][0]).argmax(1).eq(data[1][1]).float().mean().item()
        halved = twin(data[1][0]).argmax(1).eq(data[1][1]).float().mean().item()
    print(f"winner {winner.number} after {winner.epoch} epochs: accuracy {same:.3f}, with halved weights {halved:.3f}")


if __name__ == "__main__":
    main()
