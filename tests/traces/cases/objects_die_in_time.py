# Objects whose death shows (`__del__`, a suspended `finally`, a weak reference) die where the script drops them; where they live on, or end by themselves, the loop has a trace.
# expect: compiled>=0.05
import contextlib
import weakref

import torch


class Loud:
    def __init__(self, log, name):
        self.log, self.name = log, name

    def __del__(self):
        self.log.append(self.name)

    def __len__(self):
        return 3


def guarded(t, log):
    try:
        for k in range(6):
            log.append(k)
            yield (t[0] > 100) if k < 2 else k == 2
    finally:
        log.append("end")


@contextlib.contextmanager
def scope(log):
    log.append("in")
    try:
        yield
    finally:
        log.append("out")


def temporary(t, log):
    len(Loud(log, "len"))


def overwritten(t, log):
    a = Loud(log, "a")
    a = None


def deleted(t, log):
    a = Loud(log, "a")
    del a


def popped(t, log):
    a = [Loud(log, "a")]
    a.pop()


def returned(t, log):
    def inner():
        a = Loud(log, "a")
        return t + len(a)
    inner()


def generator_overwritten(t, log):
    g = guarded(t, log)
    next(g)
    g = None


def generator_in_any(t, log):
    any(guarded(t, log))


def generator_deleted(t, log):
    g = guarded(t, log)
    next(g)
    del g


def generator_of_call(t, log):
    next(guarded(t, log))


def generator_left(t, log):
    def inner():
        g = guarded(t, log)
        next(g)
        return t * 2
    inner()


def generator_popped(t, log):
    g = [guarded(t, log)]
    next(g[0])
    g.pop()


def generator_cleared(t, log):
    d = {"x": guarded(t, log)}
    next(d["x"])
    d.clear()


def weakly_held(t, log):
    x = t * 2
    w = weakref.ref(x)
    x = None
    log.append(w() is None)


kept, current = Loud([], "kept"), None


def living_on(t, log):
    log.append(len(kept))


def ending(t, log):
    for _ in guarded(t, log):
        pass
    with scope(log):
        log.append(1)


def replaced(t, log):
    global current
    current = Loud(log, "current")
    current = None


# Those that live on come first: a loop whose recordings were given up waits.
for drop in (living_on, ending, temporary, overwritten, deleted, popped, returned, generator_overwritten, generator_in_any, generator_deleted, generator_of_call, generator_left, generator_popped,
             generator_cleared, weakly_held, replaced):
    t, seen = torch.zeros(3), []
    for i in range(40):
        log = []
        t = t * 0.5 + 1
        drop(t, log)
        log.append("after")
        seen.append(str(log))
    print(drop.__name__, t.tolist(), seen[-1], [(i, s) for i, s in enumerate(seen) if s != seen[-1]], len(seen))
