# Changing numbers that say where a gradient goes, or what it is multiplied by: in a backward() of the trace, and in graphs that outlive one.
# expect: traces>=8, compiled>=0.6
import torch
import torch.nn as nn

torch.set_default_dtype(torch.float64)


def show(title, total, *tensors):
    print(title, f"{float(total):.6f}", [f"{float(t.grad.double().norm()):.6f}" for t in tensors])


def leaves(*sizes):
    torch.manual_seed(2)
    return [torch.randn(*size, requires_grad=True) for size in sizes]


def factors():
    """Rows of tables, each by an int of the script's, and a backward() of each."""
    left, right = leaves((7, 4), (5, 4))
    total = 0.0
    for k in range(60):
        loss = ((left[k % 7] * right[k * 3 % 5]).sum() - 0.1 * k) ** 2
        loss.backward()
        with torch.no_grad():
            for table in (left, right):
                table -= 0.01 * table.grad
                table.grad.mul_(0.5)
        total += loss.item()
    show("factors", total, left, right)


def same_table():
    """Two rows of one table, now and then the same one; from its end too."""
    (table,) = leaves((6, 3))
    total = 0.0
    for k in range(60):
        loss = (table[k % 6] * table[k % 4].exp() * table[-1 - k % 3]).sum() + table[0].sum()
        loss.backward()
        total += loss.item()
    show("same_table", total, table)


def windows():
    """Slices that move."""
    (signal,) = leaves((40, 2))
    weight = torch.linspace(0.5, 1.5, 8).unsqueeze(1).repeat(1, 2)
    total = 0.0
    for k in range(60):
        loss = (signal[k % 30 : k % 30 + 8] * weight).tanh().sum() * (1 + 0.01 * k)
        loss.backward()
        total += loss.item()
    show("windows", total, signal)


def forward_scores():
    """The forward algorithm of a chain: its inner loop's graph is that of another length each time."""
    emit, move = leaves((30, 4), (4, 4))
    total = 0.0
    for k in range(110):
        length = 8 + k * 7 % 20
        scores = emit * 1.5
        alpha = scores[0]
        for t in range(1, length):
            alpha = torch.logsumexp(alpha.unsqueeze(1) + move, 0) + scores[t]
        loss = torch.logsumexp(alpha, 0)
        loss.backward()
        total += loss.item()
    show("forward_scores", total, emit, move)


def states():
    """A recurrent cell over columns of a sequence with a graph, weighed by how late they are."""
    torch.manual_seed(3)
    cell, enter = nn.GRUCell(3, 4), nn.Linear(2, 3)
    total = 0.0
    for k in range(110):
        length = 5 + k * 5 % 17
        sequence = enter(torch.linspace(-1, 1, 2 * 2 * length).view(2, length, 2))
        h, weighed = torch.zeros(2, 4), torch.zeros(())
        for t in range(length):
            h = cell(sequence[:, t], h)
            weighed = weighed + (h * (0.5 * t)).sum() / (1 + t)
        loss = weighed + h.square().sum()
        loss.backward()
        total += loss.item()
    show("states", total, *cell.parameters(), *enter.parameters())


def differences():
    """Neighbours: two indices that differ by one, and a slice between them, in one graph; the graph is kept and used twice."""
    (path,) = leaves((40, 3))
    total = 0.0
    for k in range(40):
        moved = path * 2.0
        energy = torch.zeros(())
        for t in range(1, 12 + k % 9):
            energy = energy + (moved[t] - moved[t - 1]).square().sum() + moved[t - 1 : t + 1].tanh().sum()
        energy.backward(retain_graph=True)
        (again,) = torch.autograd.grad(energy, moved, create_graph=k % 10 == 9)
        total += energy.item() + again.sum().item()
    show("differences", total, path)


def powers():
    """A number of which a gradient makes another one."""
    (x,) = leaves((6,))
    total = 0.0
    for k in range(40):
        value = torch.zeros(())
        for t in range(2, 14 + k % 5):
            value = value + (x.abs() ** t).sum().log() + (x * t).sum() * t
        value.backward()
        total += value.item()
    show("powers", total, x)


for part in (factors, same_table, windows, forward_scores, states, differences, powers):
    part()
