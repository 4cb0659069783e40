# Who takes a part of a generator leaves the rest in it: unpacking into fewer names asks for one item more and not for all of them, be they without end;
# any and all stop at their answer. A generator that a variable holds goes on from there.
# expect: compiled>=0.3, traces>=6
import itertools

import torch


def counted(n, x, log):
    for k in range(n):
        log.append(k)
        yield x + k
    log.append("end")


def endless(x, log):
    for k in itertools.count():
        log.append(k)
        yield x * k


def plain(x, n):
    k = 0
    while k < n:
        yield x + k
        k += 1


def unpacked(x, log, step):
    for made in (counted(5, x, log), counted(2, x, log), counted(1, x, log), endless(x, log)):
        try:
            a, b = made
        except ValueError as error:
            log.append(str(error))
        else:
            x = a + b
    return x


def unpacked_and_held(x, log, step):
    rows = plain(x, 5)
    try:
        a, b = rows
    except ValueError:
        x = x + 0.5
    for row in rows:
        x = x + row
    log.append(len(list(rows)))
    return x


def unpacked_in_part(x, log, step):
    rows = plain(x, 3 - step % 2)
    a = next(rows)
    try:
        b, c = rows
    except ValueError:
        b = c = a
    return a + b - c


def any_held(x, log, step):
    rows = (k == 2 for k in range(6))
    x = x + any(rows)
    log.append(next(rows))
    log.append(len(list(rows)))
    return x


def all_held(x, log, step):
    rows = (k < 3 for k in range(step % 4 + 3))
    if not all(rows):
        x = x + 1
    for row in rows:
        x = x * 0.5
    return x


def any_of_tensors(x, log, step):
    rows = (row.sum() > 2 for row in (x * 0, x * 0 + 1, x * 0 + 2))
    if any(rows):
        x = x + 1
    for row in rows:
        x = torch.where(row, x, -x)
    return x


def twice(x, log, step):
    rows = (log.append(k) or k % 3 == 2 for k in range(9))
    log.append((any(rows), any(rows), all(rows), list(rows)))
    return x + 1


def over(x, log, step):
    """Left after a generator that somebody still holds has returned: it gives nothing more."""
    first, second, third = plain(x, 2), (row * 2 for row in plain(x, 3)), delegating(x, 2)
    x = sum(list(first))
    for row in second:
        x = x + row
    x = x + sum(tuple(third))
    held = [first, (second, third)]
    if x.sum() + step % 5 > 30:
        x = x * 0.25
    log.append((len(list(held[0])), len(list(held[1][0])), next(third, "over")))
    return x


def delegating(x, n):
    yield x
    yield from plain(x, n)


def over_in_callers(x, log, step):
    return outer(log, x * 0 + step, plain(x, 3))


def outer(log, number, *arguments):
    x = inner(number, *arguments)
    if x is None:  # what only an exit sees
        x = number * 0.1
        log.append(list(arguments[0]))
    return x


def inner(number, rows):
    x = 0
    for row in rows:
        x = x + row
    if number.sum() % 28 == 24:
        return None
    return x * 0.2


for body in (unpacked, unpacked_and_held, unpacked_in_part, any_held, all_held, any_of_tensors, twice, over, over_in_callers):
    x, logs = torch.ones(4), []
    for step in range(40):
        logs.append([])
        x = torch.tanh(body(x * 0.5, logs[-1], step))
    print(body.__name__, f"{x.sum().item():.4f}", sorted({str(log) for log in logs}))
