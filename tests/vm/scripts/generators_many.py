"""Generators as coroutines of a scheduler, pipelines, recursion and re-entrance, many alive at once."""
from collections import deque
def task(n, k):
    for i in range(k):
        got = yield (n, i)
        if got == "stop": return n * 100
    return n
def run(tasks):
    q = deque((t, None) for t in tasks); out = []
    while q:
        t, v = q.popleft()
        try: r = t.send(v); out.append(r); q.append((t, "stop" if r[1] == 3 else r))
        except StopIteration as e: out.append(("done", e.value))
    return out
print(run([task(1, 2), task(2, 6), task(3, 0)]))
def ints(n):
    for i in range(n): yield i
def square(it):
    for x in it: yield x * x
def odd(it):
    for x in it:
        if x % 2: yield x
def pairs(it):
    it = iter(it)
    for a in it:
        for b in it:
            yield a, b
            break
print(list(pairs(odd(square(ints(12))))), sum(square(odd(ints(1000)))))
def permutations(l):
    if len(l) < 2: yield l
    else:
        for i in range(len(l)):
            for p in permutations(l[:i] + l[i + 1:]): yield [l[i]] + p
print(len(list(permutations(list(range(6))))), list(permutations([1, 2, 3]))[3])
def walk(t):
    if isinstance(t, list):
        for x in t: yield from walk(x)
    else: yield t
print(list(walk([1, [2, [3, [4, []], 5]], 6])))
gens = [ints(50) for _ in range(100)]
print(sum(next(g) for g in gens for _ in range(3)), sum(sum(g) for g in gens))
def deep(n):
    if n: 
        for v in deep(n - 1): yield v
    yield n
print(sum(deep(120)))
def early(g):
    for v in g:
        if v == 2: break
    return list(g)
print(early(ints(6)), early(v for v in ints(5)))
def nestedbreak():
    for a in ints(4):
        for b in ints(4):
            if b == a: break
            yield a, b
print(list(nestedbreak()))
class Tree:
    def __init__(self, v, l=None, r=None): self.v, self.l, self.r = v, l, r
    def __iter__(self):
        if self.l: yield from self.l
        yield self.v
        if self.r: yield from self.r
print(list(Tree(4, Tree(2, Tree(1), Tree(3)), Tree(6))))
def w():
    with open(__file__) as f:
        for line in f: yield len(line)
print(next(w()) > 0)
import itertools
print(list(itertools.islice(itertools.chain.from_iterable(ints(i) for i in itertools.count()), 10)), list(itertools.zip_longest(ints(2), ints(3))))
