# Memory that nothing has written is handed out where a trace is left in front of the first write, as AdaptiveLogSoftmaxWithLoss's indices are: it is the script's then, with a
# version counter of its own.
# expect: traces>=1
import torch

torch.manual_seed(110369)
criterion = torch.nn.AdaptiveLogSoftmaxWithLoss(6, 8, [2, 5], div_value=2.0)
layer = torch.nn.Linear(6, 6)
parameters = [*layer.parameters(), *criterion.parameters()]


def loss_of(y, t):
    return criterion(y, t).loss


def train():
    for i in range(60):
        x, t = torch.randn(5, 6), torch.randint(0, 8, (5,))
        one, two = layer(x), layer(x + 0.5)
        loss = loss_of(one, t) + loss_of(torch.cat([one[:1], two[1:]]), t) * 0.5
        loss.backward()
        with torch.no_grad():
            for p in parameters:
                if p.grad is not None:
                    p.sub_(0.01 * p.grad)
                p.grad = None
        yield loss.item()


print(list(train()))
