# Exceptions that are raised and caught in the loop: of C and Python classes, through inlined calls, finally, with names and attributes that are read.
# expect: compiled>=0.45, traces>=2
import torch
class Stop(Exception):
    pass
class Coded(Exception):
    def __init__(self, code, why):
        super().__init__(code)
        self.code, self.why = code, why
class Box:
    def __init__(self): self.items = {"a": 1.0}
    def __getattr__(self, name):
        raise AttributeError(f"{type(self).__name__} has no {name}")
def check(i):
    if i % 3 == 0: raise ValueError(f"bad {i}")
    if i % 3 == 1: raise Stop
    return 2.0
def coded(i):
    if i % 2: raise Coded(i, "odd")
    return 1.0
def main():
    x = torch.ones(4); total = torch.zeros(4); box = Box(); log = []
    for i in range(60):
        try:
            f = check(i)
        except ValueError:
            f = 3.0
        except Stop as e:
            f = 4.0
        total = total + x * f
        try:
            try:
                g = coded(i)
            finally:
                x = x * 1.01
        except Coded as e:
            g = float(e.code) * 0.1
        total = total + g
        h = 1.0 if not hasattr(box, "missing") else 2.0
        try:
            box.other
        except AttributeError:
            h += 1.0
        try:
            assert i % 2 == 0, "odd"
        except AssertionError:
            h += 0.5
        total = total * h / 2
        try:
            if i == 50: log.append(str(coded(i + 1)))
        except Coded as e:
            log.append((e.code, e.why, e.__traceback__ is not None))
    print(total.tolist(), log)
main()
