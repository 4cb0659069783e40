"""dynvm.zone(): counts and times, and that code with zones is traced as without."""

import json
import os
import unittest

from inspect_case import INSTALLED, InspectCase, PLAIN, run


class Zones(InspectCase):
    def test_counts_and_times(self):
        self.holds('''
import time
@dynvm.zone("decorated")
def f(x, *, y):
    "doc"
    time.sleep(0.002)
    return x + y
def main():
    for i in range(10):
        with dynvm.zone("outer") as z:
            assert z.name == "outer"
            time.sleep(0.001)
            assert f(i, y=1) == i + 1
main()
zones = dynvm.stats()["zones"]
outer, decorated = zones["outer"], zones["decorated"]
assert list(zones) == ["decorated", "outer"] and outer["count"] == decorated["count"] == 10, zones
assert outer["ms"] > decorated["ms"] >= 20 and outer["own_ms"] >= 10 and abs(outer["ms"] - outer["own_ms"] - decorated["ms"]) < 0.01 * outer["ms"], zones
assert (f.__name__, f.__doc__) == ("f", "doc") and repr(dynvm.zone("a")) == "dynvm.zone('a')"
''')

    def test_exceptions_leave_them(self):
        self.holds('''
@dynvm.zone("decorated")
def f():
    raise KeyError
for i in range(5):
    try:
        with dynvm.zone("with"):
            f()
    except KeyError:
        pass
with dynvm.zone("after"):
    pass
zones = dynvm.stats()["zones"]
assert [zones[name]["count"] for name in ("decorated", "with", "after")] == [5, 5, 1]
assert zones["with"]["ms"] > zones["decorated"]["ms"] > 0 and zones["after"]["own_ms"] == zones["after"]["ms"]
''')

    def test_threads_and_generators(self):
        self.holds('''
import threading, time
def f():
    with dynvm.zone("thread"):
        time.sleep(0.01)
threads = [threading.Thread(target=f) for i in range(4)]
with dynvm.zone("main"):
    for thread in threads: thread.start()
    for thread in threads: thread.join()
def generator():
    with dynvm.zone("generator"):
        yield 1
        yield 2
with dynvm.zone("caller"):
    items = generator()
    next(items)
next(items)
assert next(items, None) is None
zones = dynvm.stats()["zones"]
assert zones["thread"]["count"] == 4 and zones["thread"]["ms"] > 39 and zones["main"]["own_ms"] == zones["main"]["ms"]
assert zones["generator"]["count"] == zones["caller"]["count"] == 1
''')

    def test_one_trace_as_without(self):
        """A training step with zones is one trace; with two further calls for each zone, and no kernel more."""
        text = '''
class no_zone:
    def __init__(self, name): pass
    def __enter__(self): return self
    def __exit__(self, *_): pass
import sys
zone = dynvm.zone if sys.argv[1] == "with" else no_zone
layer = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(layer.parameters(), 0.01)
evaluate = zone("evaluate")
def train(n):
    x = torch.ones(4, 8)
    for i in range(n):
        with zone("forward"):
            with zone("layer"):
                y = layer(x)
            loss = torch.relu(y).pow(2).sum()
        with zone("backward"):
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
        with evaluate:
            last = loss.item()
    return last
import json
def twice():
    first = train(200)
    train(100)
    return first
first = twice()
trace, = dynvm.traces()
print(json.dumps([first, trace.tensor_ops, len(trace.kernels), trace.iterations, trace.residuals, trace.exits, dynvm.stats()["zones"]]))
'''
        script = self.script("import torch\nimport dynvm\ntorch.manual_seed(0)\ntorch.set_num_threads(1)\n" + text)
        results = []
        for way in ("with", "without"):
            outcome = run(INSTALLED, ["--heuristics=unroll_rounds=1", script, way])
            self.assertEqual((outcome.status, outcome.stderr), (0, ""), outcome)
            results.append(json.loads(outcome.stdout))
        (value, ops, kernels, iterations, residuals, exits, zones), plain = results
        self.assertEqual([value, ops, kernels, iterations, exits], plain[:4] + [plain[5]])
        self.assertGreater(iterations, 280)
        calls = {name: residuals.pop(f"call _dynvm.{name}", 0) for name in ("zone_number", "zone_enter", "zone_leave")}
        self.assertEqual(residuals, plain[4])
        self.assertEqual(calls, {"zone_number": 3, "zone_enter": 4, "zone_leave": 4})
        self.assertEqual({name: zone["count"] for name, zone in zones.items()}, dict.fromkeys(("evaluate", "forward", "layer", "backward"), 300))

    def test_left_inside(self):
        """A trace that is left in the middle of a zone: the interpreter leaves that."""
        self.holds('''
def f(n):
    x = torch.ones(4)
    for i in range(n):
        with dynvm.zone("a"):
            x = x + 1
            if x[0].item() % 7 == 0:
                with dynvm.zone("b"):
                    x = x + 0.5 - 0.5
    return x
assert f(300).tolist() == [301.0] * 4
zones = dynvm.stats()["zones"]
assert zones["a"]["count"] == 300 and zones["b"]["count"] == 43, zones
''')

    def test_report_and_stats(self):
        report = os.path.join(self.folder, "report.json")
        outcome = run(INSTALLED, ["--stats", "--report", report, "-c", "import dynvm\nwith dynvm.zone('a b'): pass"])
        self.assertRegex(outcome.stderr, r"(?m)^  zone              a b: 1 times, 0\.\d ms, 0\.\d ms without zones inside$")
        with open(report, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["zones"]["a b"]["count"], 1)

    def test_errors(self):
        self.holds('''
for name in (3, None, b"a"):
    try:
        dynvm.zone(name)
    except TypeError as error:
        assert str(error) == f"expected the name of a zone, got {type(name).__name__}"
    else:
        raise AssertionError
''')

    def test_installed_later(self):
        text = "import dynvm; old = dynvm.zone('old'); dynvm.install(); new = dynvm.zone('new')\nwith old, new: pass\nprint([(k, v['count']) for k, v in dynvm.stats()['zones'].items()])"
        self.assertEqual(run(PLAIN, ["-c", text]).stdout, "[('new', 1)]\n")

    def test_plain_python(self):
        text = "import dynvm\n@dynvm.zone('a')\ndef f(x): return x\nwith dynvm.zone('b') as z: print(f(1), z.name, dynvm.stats())"
        self.assertEqual(run(PLAIN, ["-c", text]).stdout, "1 b {}\n")


if __name__ == "__main__":
    unittest.main()
