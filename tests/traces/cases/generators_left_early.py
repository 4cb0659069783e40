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


for body in (unpacked, unpacked_and_held, unpacked_in_part, any_held, all_held, any_of_tensors, twice):
    x, logs = torch.ones(4), []
    for step in range(40):
        logs.append([])
        x = torch.tanh(body(x * 0.5, logs[-1], step))
    print(body.__name__, f"{x.sum().item():.4f}", sorted({str(log) for log in logs}))
