# Tensors that are objects already, in a result of several or in a list, when autograd sees them written in place: where the trace is left they have the graph that they have then.
# expect: traces>=5, compiled>=0.5
import torch
import torch.nn as nn

torch.manual_seed(0)


def best_two(h):
    values, places = torch.topk(h.softmax(1), 2, dim=-1)
    values /= values.sum(dim=-1, keepdim=True)
    rows, columns = torch.where(places > 0)  # as many as there are: a trace ends here
    return values[rows].sum() * 0.1 + values.pow(2).mean() + columns.float().mean()


def of_result(h):
    result = h.max(1)
    result.values.mul_(2.0)
    kept = result[0] if result[0].sum().item() > 1e9 else result.values
    return kept.pow(2).mean()


def in_list(h):
    kept = [h * 2.0]
    seen.append(kept[0])
    kept[0].mul_(1.5)
    if seen[-1].sum().item() > 0:
        kept[0].add_(h[0])
    return kept[0].sum() * 0.1 + seen.pop().pow(2).mean()


def twice(h):
    values, places = h.sort(1)
    values += 1.0
    values *= values.detach().abs().mean()
    return values[:, ::2].exp().mean() + places.float().mean()


seen = []


def run(how):
    w = nn.Parameter(torch.randn(6, 5) * 0.3)
    optimizer = torch.optim.SGD([w], lr=0.05)
    lines = []
    for i in range(60):
        loss = how(torch.randn(4, 6) @ w)
        if i % 9 == 4:
            lines.append(f"{torch.autograd.grad(loss, w, retain_graph=True)[0].abs().sum().item():.4f}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 20 == 19:
            lines.append(f"{loss.item():.4f} {w.sum().item():.4f}")
    return lines


for how in (best_two, of_result, in_list, twice):
    print(how.__name__, type(run)(run.__code__.replace(), globals())(how))
