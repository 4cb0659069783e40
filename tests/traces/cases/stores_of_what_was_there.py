# Attributes and items are stored that in most iterations are what was there before: True over True. What is read behind the store is the stored
# object in each iteration, also in the first one that has another.
# expect: compiled>=0.5, traces>=3
import torch


class Mode:
    def __init__(self):
        self.flag = True


class ByObject(Mode):
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)


class BySuper(Mode):
    def __setattr__(self, name, value):
        super().__setattr__(name, value)


class Counted:
    def __init__(self):
        self.__dict__["value"], self.__dict__["stores"] = True, 0

    flag = property(lambda self: self.value, lambda self, value: self.__dict__.update(value=value, stores=self.stores + 1))

    def __setattr__(self, name, value):
        super().__setattr__(name, value)


def attributes(holder, steps, period):
    x, seen = torch.ones(3), []
    for step in range(steps):
        holder.flag = step % period != period - 1
        x = x * 1.5 if step % 4 == 0 else x - 0.5
        seen.append((holder.flag, vars(holder).get("flag"), getattr(holder, "stores", None)))
    return seen, x.tolist()


def items(table, steps, period):
    x, seen = torch.ones(3), []
    for step in range(steps):
        table["flag"] = step % period != period - 1
        x = x * 0.75 + 1
        seen.append((table["flag"], dict(table), list(table.values()), "flag" in table))
    return seen, x.tolist()


def dropouts(module, steps, period):
    x, weight, losses = torch.randn(6, 8), torch.randn(8, 8, requires_grad=True), []
    for step in range(steps):
        module.train(step % period != period - 1)
        y = module((x @ weight).view(6, 2, 2, 2)).pow(2).mean()
        y.backward()
        losses.append(y.item())
        weight.grad = None
    return losses, torch.get_rng_state().sum().item()


for period in (3, 7, 11):
    for holder in (Mode(), ByObject(), BySuper(), Counted()):
        print(type(holder).__name__, period, attributes(holder, 36, period))
    print(items({"flag": True, "other": 1}, 36, period))
nn = torch.nn
for module in (nn.Dropout(0.5), nn.AlphaDropout(0.1), nn.FeatureAlphaDropout(0.1), nn.Dropout2d(0.3), nn.Dropout3d(0.3), nn.RReLU(), nn.Sequential(nn.ReLU(), nn.Dropout(0.25))):
    torch.manual_seed(0)
    losses, state = dropouts(module, 40, 7)
    print(type(module).__name__, *[f"{loss:.3f}" for loss in losses], state)
