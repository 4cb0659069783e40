"""Small whole programs that mix everything in hot loops."""
def sieve(n):
    a = [True] * (n + 1); a[0] = a[1] = False
    for i in range(2, int(n ** 0.5) + 1):
        if a[i]:
            for j in range(i * i, n + 1, i): a[j] = False
    return [i for i, p in enumerate(a) if p]
print(sum(sieve(5000)))
def queens(n):
    out = 0
    def place(r, cols, d1, d2):
        nonlocal out
        if r == n: out += 1; return
        for c in range(n):
            if c in cols or r + c in d1 or r - c in d2: continue
            place(r + 1, cols | {c}, d1 | {r + c}, d2 | {r - c})
    place(0, frozenset(), frozenset(), frozenset())
    return out
print(queens(6))
class Vec:
    __slots__ = ("x", "y")
    def __init__(self, x, y): self.x = x; self.y = y
    def __add__(self, o): return Vec(self.x + o.x, self.y + o.y)
    def __mul__(self, k): return Vec(self.x * k, self.y * k)
    def norm(self): return (self.x * self.x + self.y * self.y) ** 0.5
p = Vec(0.0, 0.0); v = Vec(1.0, 0.5)
for i in range(2000): p = p + v * 0.01; v = v * 0.999
print(p.norm())
def mandel(w, h):
    rows = []
    for j in range(h):
        row = ""
        for i in range(w):
            z = 0j; c = complex(i / w * 3 - 2, j / h * 2 - 1); n = 0
            while abs(z) < 2 and n < 30: z = z * z + c; n += 1
            row += " .:-=+*#%@"[n // 3 - (n == 30)]
        rows.append(row)
    return rows
print("\n".join(mandel(30, 10)))
def lex(text):
    pos = 0
    while pos < len(text):
        c = text[pos]
        if c.isspace(): pos += 1
        elif c.isdigit():
            e = pos
            while e < len(text) and text[e].isdigit(): e += 1
            yield "num", int(text[pos:e]); pos = e
        else: yield "op", c; pos += 1
def parse(text):
    toks = list(lex(text)) + [("end", None)]; i = 0
    def peek(): return toks[i]
    def take():
        nonlocal i
        i += 1
        return toks[i - 1]
    def expr():
        v = term()
        while peek() in (("op", "+"), ("op", "-")): v = v + term() if take()[1] == "+" else v - term()
        return v
    def term():
        v = atom()
        while peek() in (("op", "*"), ("op", "/")): v = v * atom() if take()[1] == "*" else v // atom()
        return v
    def atom():
        k, v = take()
        if k == "num": return v
        if v == "(":
            r = expr(); take(); return r
        if v == "-": return -atom()
        raise SyntaxError(v)
    return expr()
print(parse("1 + 2 * (3 - 4) * -5 / 2"), [parse(f"{i}*({i}+1)") for i in range(5)])
words = "the quick brown fox jumps over the lazy dog the end".split()
count = {}
for w in words * 50: count[w] = count.get(w, 0) + 1
print(sorted(count.items(), key=lambda kv: (-kv[1], kv[0]))[:3])
def collatz(n):
    s = 0
    while n != 1: n = n // 2 if n % 2 == 0 else 3 * n + 1; s += 1
    return s
print(max(range(1, 2000), key=collatz))
memo = {}
def edit(a, b):
    if (a, b) in memo: return memo[a, b]
    r = len(a) or len(b) if not a or not b else min(edit(a[1:], b) + 1, edit(a, b[1:]) + 1, edit(a[1:], b[1:]) + (a[0] != b[0]))
    memo[a, b] = r
    return r
print(edit("kitten", "sitting"))
mat = [[i * j + 0.5 for j in range(8)] for i in range(8)]
print(sum(sum(a * b for a, b in zip(r, c)) for r in mat for c in zip(*mat)))
