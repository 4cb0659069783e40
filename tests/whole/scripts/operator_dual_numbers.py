# Forward-mode differentiation by operator overloading: dual numbers with tensors, reflected and in-place operators.
# expect: compiled>=0.7, traces>=1
import torch


class Dual:
    def __init__(self, value, slope):
        self.value, self.slope = value, slope

    @staticmethod
    def of(other):
        return other if isinstance(other, Dual) else Dual(other, 0.0)

    def __add__(self, other):
        other = Dual.of(other)
        return Dual(self.value + other.value, self.slope + other.slope)

    __radd__ = __add__

    def __mul__(self, other):
        other = Dual.of(other)
        return Dual(self.value * other.value, self.value * other.slope + self.slope * other.value)

    __rmul__ = __mul__

    def __neg__(self):
        return -1.0 * self

    def __rsub__(self, other):
        return other + (-self)

    def __pow__(self, n):
        return Dual(self.value ** n, n * self.value ** (n - 1) * self.slope)

    def __truediv__(self, other):
        return self * Dual.of(other) ** -1

    def __imatmul__(self, matrix):
        self.value, self.slope = matrix @ self.value, matrix @ self.slope
        return self

    def __lt__(self, other):
        return bool((self.value < Dual.of(other).value).all())


torch.manual_seed(57)
x = torch.rand(4) + 1
matrix = torch.eye(4) + 0.1
flips = 0
for step in range(40):
    d = Dual(x, torch.ones(4))
    y = 1.0 - (d ** 3 + 2 * d) / (d * d + 1.5)
    y @= matrix
    flips += y < 0
    x = (x - 0.05 * y.slope).clamp(0.5, 3)
print(flips, [f"{v:.4f}" for v in y.value.tolist()], [f"{v:.4f}" for v in y.slope.tolist()])
