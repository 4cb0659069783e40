"""Standard-library code that leans on odd calls: itertools, sorting keys, heapq, re callbacks, json hooks, contextvars."""
import itertools, heapq, re, json, contextvars, operator, bisect, string, textwrap, copy, pickle, random, collections
print(list(itertools.accumulate([1, 2, 3], lambda a, b: a * b)), [(k, list(g)) for k, g in itertools.groupby("aabbc")], list(itertools.starmap(pow, [(2, 3)])), list(itertools.takewhile(lambda x: x < 3, itertools.count())))
print(sorted([(2, "b"), (1, "c")], key=lambda t: t[1]), heapq.nsmallest(2, [5, 1, 4], key=lambda v: -v), re.sub(r"\d+", lambda m: str(int(m[0]) * 2), "a1b22"), json.loads('{"a": [1]}', object_hook=lambda d: list(d.items())))
class Enc(json.JSONEncoder):
    def default(self, o): return "enc"
print(json.dumps({"o": object()}, cls=Enc), json.dumps([1, "é", None, 1.5, {"k": True}], indent=1))
v = contextvars.ContextVar("v", default=0)
def inctx(): v.set(5); return v.get()
print(contextvars.copy_context().run(inctx), v.get())
class P:
    def __init__(self, a): self.a = a
    def __getstate__(self): return {"a": self.a + 1}
    def __setstate__(self, s): self.a = s["a"]
    def __copy__(self): return P("copied")
    def __deepcopy__(self, memo): return P("deep")
    def __reduce__(self): return (P, (self.a,))
    def __lt__(self, o): return self.a < o.a
    def __hash__(self): return hash(self.a)
    def __eq__(self, o): return self.a == o.a
print(copy.copy(P(1)).a, copy.deepcopy([P(1)])[0].a, pickle.loads(pickle.dumps(P(3))).a, min(P(2), P(1)).a, [p.a for p in sorted([P(3), P(1)])], len({P(1), P(1)}), {P(1): 2}[P(1)])
d = collections.defaultdict(list); [d[k].append(i) for i, k in enumerate("abca")]; print(dict(d), collections.Counter("hello").most_common(1), collections.ChainMap({"a": 1}, {"b": 2})["b"])
od = collections.OrderedDict(a=1, b=2); od.move_to_end("a"); print(list(od), textwrap.fill("some words to wrap", 8), string.Template("$x").substitute(x=1))
random.seed(1); print(random.random(), random.choice("abc"), random.sample(range(10), 3))
def outer(*args, sep="-", **kw): return sep.join(map(str, args)) + str(sorted(kw.items()))
print(outer(1, 2, sep="+", z=1), operator.attrgetter("a")(P(9)), operator.methodcaller("upper")("x"), list(filter(None, [0, 1, "", "a"])), list(zip(*[(1, 2), (3, 4)])), next(iter([]), "default"), iter(lambda c=itertools.count(): next(c), 3).__next__())
