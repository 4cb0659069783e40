# Classes with operators of their own beside tensors: their methods come first where Python says so, also in place and reflected.
# expect: compiled>=0.7
import torch


class Pair:
    def __init__(self, value, slope=0.0):
        self.value, self.slope = value, slope

    def __add__(self, other):
        return Pair(self.value + getattr(other, "value", other), self.slope)

    def __mul__(self, other):
        return Pair(self.value * getattr(other, "value", other), self.slope + 1)

    __rmul__ = __mul__

    def __rsub__(self, other):
        return Pair(other - self.value, -self.slope)

    def __matmul__(self, matrix):
        return Pair(matrix @ self.value, self.slope)

    def __ifloordiv__(self, n):
        self.value = self.value / n
        return self

    def __rpow__(self, base):
        return Pair(base + 2 * self.value, "rpow")

    def __rtruediv__(self, other):
        return Pair(other / (1 + self.value * self.value), "rtruediv")


class Marked(Pair):
    def __radd__(self, other):
        return ("Marked first", round(float(other.value.sum()), 4))


matrix = torch.eye(4) + 0.1
total, kinds = torch.zeros(4), []
for step in range(60):
    x = torch.full((4,), step / 60)
    y = (2.0 * Pair(x) * 3 + Pair(x) + 1) @ matrix
    y //= 2
    z = 1 - y
    total = total + z.value
    if step % 20 == 19:
        p, q = x ** Pair(x), x / Pair(x)
        kinds += [z.slope, p.slope, q.slope, round(p.value.sum().item(), 4), round(q.value.sum().item(), 4), Pair(x) + Marked(x), "%.3f" % x[0]]
        try:
            Pair(x) - x
        except TypeError as error:
            kinds.append(str(error))
print([f"{v:.4f}" for v in total.tolist()], kinds)
