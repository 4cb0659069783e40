"""Computes the coefficients in math.cpp: minimax polynomials and rationals by Remez exchange, in 60-digit arithmetic.

Usage: python minimax.py [name...]   Prints C++ initialisers, lowest power first, and the theoretical relative error.
Each approximation minimises the largest error weighted by 1/|f| (relative error). Source of the method: Remez' exchange algorithm as in
J.-M. Muller, Elementary Functions, chapter 3. Coefficients are rounded one after the other, lowest first, and the rest is fitted again
(S. Chevillard's observation that plain rounding of all coefficients loses bits).
"""
import sys

import mpmath as mp
import numpy as np

mp.mp.dps = 60


def remez(f, weight, basis, low, high, iterations=12):
    """Best c in max |weight(x) * (sum c[k] * basis[k](x) - f(x))| on [low, high]. Returns (c, error)."""
    n = len(basis)
    points = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * k / n) for k in range(n + 1)]
    for _ in range(iterations):
        matrix = mp.matrix(n + 1, n + 1)
        right = mp.matrix(n + 1, 1)
        for i, x in enumerate(points):
            for k in range(n):
                matrix[i, k] = basis[k](x)
            matrix[i, n] = (-1) ** i / weight(x)
            right[i] = f(x)
        solution = mp.lu_solve(matrix, right)
        c = [solution[k] for k in range(n)]

        def error(x):
            return weight(x) * (sum(c[k] * basis[k](x) for k in range(n)) - f(x))

        grid = [low + (high - low) * (1 - mp.cos(mp.pi * i / (60 * n))) / 2 for i in range(60 * n + 1)]
        values = [error(x) for x in grid]
        extrema = []
        for i, v in enumerate(values):
            if (i == 0 or abs(v) >= abs(values[i - 1]) or v * values[i - 1] < 0) and (i == len(values) - 1 or abs(v) >= abs(values[i + 1]) or v * values[i + 1] < 0):
                if extrema and extrema[-1][1] * v > 0:
                    if abs(v) > abs(extrema[-1][1]):
                        extrema[-1] = (grid[i], v)
                else:
                    extrema.append((grid[i], v))
        while len(extrema) > n + 1:
            extrema.pop(0 if abs(extrema[0][1]) < abs(extrema[-1][1]) else -1)
        if len(extrema) < n + 1:
            break
        points = [x for x, _ in extrema]
    worst = max(abs(v) for v in values)
    return c, worst


def to_single(x):
    return mp.mpf(float(np.float32(float(x))))


def to_double(x):
    return mp.mpf(float(x))


def polynomial(f, weight, powers, low, high, rounding):
    """Coefficients of x**p for p in powers, rounded lowest first, the rest fitted again each time."""
    fixed = []
    for step in range(len(powers)):
        rest = powers[step:]

        def remaining(x, fixed=tuple(fixed)):
            return f(x) - sum(c * x ** p for c, p in zip(fixed, powers))

        c, worst = remez(remaining, weight, [lambda x, p=p: x ** p for p in rest], low, high, 6)
        fixed.append(rounding(c[0]))
    return fixed, worst


def rational(f, m, n, low, high, weight=None, samples=400):
    """p of degree m over q of degree n (q[0] = 1) with the least max |weight (p/q / f - 1)|: Loeb's iteration, then Lawson's weights."""
    xs = [low + (high - low) * (1 - mp.cos(mp.pi * (i + mp.mpf(1) / 2) / samples)) / 2 for i in range(samples)]
    fs = [f(x) for x in xs]
    ws = [weight(x) if weight else mp.mpf(1) for x in xs]
    q_old = [mp.mpf(1)] * samples
    lawson = [mp.mpf(1)] * samples
    best = None
    for iteration in range(60):
        rows = mp.matrix(samples, m + n + 1)
        right = mp.matrix(samples, 1)
        for i, (x, y) in enumerate(zip(xs, fs)):
            w = mp.sqrt(lawson[i]) * ws[i] / (y * q_old[i])
            for k in range(m + 1):
                rows[i, k] = w * x ** k
            for k in range(1, n + 1):
                rows[i, m + k] = -w * y * x ** k
            right[i] = w * y
        transposed = rows.T
        solution = mp.lu_solve(transposed * rows, transposed * right)
        p = [solution[k] for k in range(m + 1)]
        q = [mp.mpf(1)] + [solution[m + k] for k in range(1, n + 1)]
        q_old = [mp.polyval(q[::-1], x) for x in xs]
        errors = [abs(mp.polyval(p[::-1], x) / qx / y - 1) * w for x, qx, y, w in zip(xs, q_old, fs, ws)]
        worst = max(errors)
        if best is None or worst < best[0]:
            best = (worst, p, q)
        if iteration >= 4:
            mean = sum(errors) / samples
            lawson = [w * mp.sqrt(e / mean + mp.mpf(10) ** -4) for w, e in zip(lawson, errors)]
            total = sum(lawson)
            lawson = [w * samples / total for w in lawson]
    return best[1], best[2], best[0]


def show(name, c, single):
    digits = 9 if single else 17
    print(f"{name} = {{{', '.join(mp.nstr(x, digits) + ('f' if single else '') for x in c)}}}")


half_log2 = mp.log(2) / 2 * mp.mpf("1.0001")


def exp_single():
    # exp(r) = 1 + r + r^2 * p(r)
    f = lambda r: (mp.exp(r) - 1 - r) / r ** 2 if abs(r) > mp.mpf("1e-12") else mp.mpf(1) / 2 + r / 6
    c, e = polynomial(f, lambda r: r ** 2 / mp.exp(r) + mp.mpf(10) ** -30, list(range(5)), -half_log2, half_log2, to_single)
    show("exp_f32", c, True)
    print("  error", mp.nstr(e, 4))


def exp_double():
    f = lambda r: (mp.exp(r) - 1 - r) / r ** 2 if abs(r) > mp.mpf("1e-15") else mp.mpf(1) / 2 + r / 6
    c, e = polynomial(f, lambda r: r ** 2 / mp.exp(r) + mp.mpf(10) ** -40, list(range(10)), -half_log2, half_log2, to_double)
    show("exp_f64", c, False)
    print("  error", mp.nstr(e, 4))


def expm1_single():
    # expm1(r) = r + r^2 * p(r), relative to expm1
    f = lambda r: (mp.expm1(r) - r) / r ** 2 if abs(r) > mp.mpf("1e-12") else mp.mpf(1) / 2 + r / 6
    c, e = polynomial(f, lambda r: abs(r ** 2 / mp.expm1(r)) + mp.mpf(10) ** -30 if r else mp.mpf(10) ** -30, list(range(6)), -half_log2, half_log2, to_single)
    show("expm1_f32", c, True)
    print("  error", mp.nstr(e, 4))


def expm1_double():
    f = lambda r: (mp.expm1(r) - r) / r ** 2 if abs(r) > mp.mpf("1e-15") else mp.mpf(1) / 2 + r / 6
    c, e = polynomial(f, lambda r: abs(r ** 2 / mp.expm1(r)) + mp.mpf(10) ** -40 if r else mp.mpf(10) ** -40, list(range(11)), -half_log2, half_log2, to_double)
    show("expm1_f64", c, False)
    print("  error", mp.nstr(e, 4))


def log_single():
    # log(1 + f) = f - f^2/2 + f^3 * p(f)
    low, high = mp.sqrt(mp.mpf(1) / 2) - 1, mp.sqrt(2) - 1
    f = lambda x: (mp.log1p(x) - x + x ** 2 / 2) / x ** 3 if abs(x) > mp.mpf("1e-12") else mp.mpf(1) / 3 - x / 4
    c, e = polynomial(f, lambda x: abs(x ** 3 / mp.log1p(x)) + mp.mpf(10) ** -30 if x else mp.mpf(10) ** -30, list(range(9)), low * mp.mpf("1.0001"), high * mp.mpf("1.0001"), to_single)
    show("log_f32", c, True)
    print("  error", mp.nstr(e, 4))


def log_double():
    # log(1 + f) = 2 atanh(s), s = f / (2 + f): s * (2 + z * p(z)), z = s^2
    high = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2
    def f(z):
        if z < mp.mpf("1e-20"):
            return mp.mpf(2) / 3 + z * 2 / 5
        s = mp.sqrt(z)
        return (2 * mp.atanh(s) / s - 2) / z
    c, e = polynomial(f, lambda z: z / 2 + mp.mpf(10) ** -40, list(range(8)), mp.mpf(0), high * mp.mpf("1.0001"), to_double)
    show("log_f64", c, False)
    print("  error", mp.nstr(e, 4))


def half_angle(f, slope, limit, degrees, name, scale):
    """f = 2 t / (1 + t^2), t = x p(x^2) / q(x^2): an error of t counts (1 - t^2) / (1 + t^2) in f, nothing where f is 1.

    p and q are multiplied by `scale`, found by trial: it gives the least error of the evaluation in f32. The last bits in math.cpp are
    those of a random search for the same."""
    def t(z):
        if z < mp.mpf("1e-16"):
            return slope / 2 * mp.sqrt(z)
        y = f(mp.sqrt(z))
        return y / (1 + mp.sqrt((1 - y) * (1 + y)))

    for m, n in degrees:
        p, q, e = rational(lambda z: t(z) / mp.sqrt(z), m, n, mp.mpf("1e-18"), mp.mpf(limit) ** 2, lambda z: (1 - t(z) ** 2) / (1 + t(z) ** 2))
        print(name, m, n)
        show("  p", [scale * c for c in p], True)
        show("  q", [scale * c for c in q], True)
        print("  error", mp.nstr(e, 4))


def tanh_single():
    # On [0, 0.8]: tanh(x) = x + x^3 * p(x^2), relative to tanh
    f = lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z if z > mp.mpf("1e-20") else -mp.mpf(1) / 3 + 2 * z / 15
    weight = lambda z: z * mp.sqrt(z) / mp.tanh(mp.sqrt(z)) if z > mp.mpf("1e-20") else z + mp.mpf(10) ** -30
    c, e = polynomial(f, weight, list(range(6)), mp.mpf(0), mp.mpf("0.6401"), to_single)
    show("tanh_f32", c, True)
    print("  error", mp.nstr(e, 4))


def erf_single():
    half_angle(mp.erf, 2 / mp.sqrt(mp.pi), 3.93, ((3, 3), (3, 4)), "erf_f32", mp.mpf("1.6625"))


def sin_single():
    # On [-pi/4, pi/4]: sin(r) = r + r^3 * p(r^2); cos(r) = 1 - r^2/2 + r^4 * q(r^2)
    high = (mp.pi / 4 * mp.mpf("1.0005")) ** 2
    f = lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z if z > mp.mpf("1e-20") else -mp.mpf(1) / 6 + z / 120
    c, e = polynomial(f, lambda z: z + mp.mpf(10) ** -30, list(range(4)), mp.mpf(0), high, to_single)
    show("sin_f32", c, True)
    print("  error", mp.nstr(e, 4))
    g = lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z ** 2 if z > mp.mpf("1e-12") else mp.mpf(1) / 24 - z / 720
    c, e = polynomial(g, lambda z: z ** 2 + mp.mpf(10) ** -30, list(range(4)), mp.mpf(0), high, to_single)
    show("cos_f32", c, True)
    print("  error", mp.nstr(e, 4))


ALL = dict(exp_single=exp_single, exp_double=exp_double, expm1_single=expm1_single, expm1_double=expm1_double, log_single=log_single,
           log_double=log_double, tanh_single=tanh_single, erf_single=erf_single, sin_single=sin_single)

if __name__ == "__main__":
    for name in sys.argv[1:] or ALL:
        ALL[name]()
        sys.stdout.flush()
