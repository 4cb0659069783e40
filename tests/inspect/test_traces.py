"""dynvm.traces(), dynvm.explain(), dynvm.reset()."""

import unittest

from inspect_case import InspectCase, PLAIN, run

LOOP = '''
def train(n, limit=10**9):
    x = torch.ones(4)
    for i in range(n):
        x = torch.relu(x * 0.5 + 1.0)
        if x.sum().item() > limit:
            x = x - 1
    return x
'''


class Traces(InspectCase):
    def test_of_a_loop(self):
        self.holds(LOOP + '''
def later():
    """Module variables stay as they are: on 3.11 the trace wants that."""
    trace, = dynvm.traces()
    before = trace.iterations
    train(50)
    assert before + 48 <= trace.iterations <= before + 50, (before, trace.iterations)
assert dynvm.traces() == []
train(100)
later()
trace, = dynvm.traces()
assert (trace.kind, trace.function, trace.state, trace.cut, trace.parent, trace.sizes) == ("loop", "train", "compiled", False, None, "recorded")
assert trace.file == __file__
assert (trace.first_line, trace.last_line) == (7, 9), (trace.first_line, trace.last_line)
assert 130 < trace.iterations < 150 and trace.runs >= 2, (trace.iterations, trace.runs)
assert trace.tensor_ops >= 4 and trace.ir_insts > 5
assert "aten::relu" in trace.recorded_ir and "kernel k0" not in trace.recorded_ir, trace.recorded_ir
assert "kernel k0" in trace.ir
kernel, = trace.kernels
assert "relu" in kernel.name and kernel.text.startswith("kernel ") or "max f32" in kernel.text, kernel.text
assert kernel.name in repr(kernel) and trace.residuals == {} and trace.library_calls == {}
assert repr(trace) == f"<trace {trace.id} loop {__file__}:7-9 train>"
assert "iterations" in dir(trace)
try:
    trace.no_such
except AttributeError as error:
    assert str(error) == "a trace has no attribute 'no_such'"
else:
    raise AssertionError
''')

    def test_exits_and_side_traces(self):
        self.holds(LOOP + '''
def branchy(n):
    total = torch.zeros(())
    for i in range(n):
        x = torch.ones(3) * (i % 4)
        if x.sum().item() > 8:
            total = total + x.sum() * 2
        else:
            total = total + 1
    return total
branchy(300)
by_id = {trace.id: trace for trace in dynvm.traces()}
root, = [trace for trace in by_id.values() if trace.kind == "loop"]
side = [trace for trace in by_id.values() if trace.kind == "side"]
assert side and all(trace.parent == root.id for trace in side), side
taken = [exit for exit in root.exit_list if exit.trace is not None]
assert taken, root.exit_list
exit = max(taken, key=lambda exit: exit.count)
assert exit.count > 20 and exit.guard in ("guard_true", "guard_false") and exit.file == __file__, exit
assert exit.trace in by_id and exit.line in (17, 18, 20), exit
assert exit.guard in exit.instruction and exit.reason.endswith(".") and exit.guard in repr(exit)
assert [exit.count for exit in root.exit_list] == sorted((exit.count for exit in root.exit_list), reverse=True)
assert root.exits >= sum(exit.count for exit in root.exit_list)
''')

    def test_residual_and_library_operations(self):
        self.holds('''
import time
def f(n):
    x = torch.ones(8, 8)
    for i in range(n):
        x = (x @ x).softmax(0)
        time.perf_counter()
        time.perf_counter()
f(60)
trace, = dynvm.traces()
assert trace.residuals == {"call time.perf_counter": 2}, trace.residuals
assert trace.library_calls == {"aten::mm": 1}, trace.library_calls
''', "--heuristics=unroll_rounds=1")

    def test_functions_that_it_runs_through(self):
        self.holds('''
def inner(x):
    y = x * 2
    return y.sum().item()
def outer(n):
    x, total = torch.ones(4), 0.0
    for i in range(n):
        total += inner(x + i)
    return total
outer(100)
trace, = dynvm.traces()
rows = [(row["function"], row["file"], row["first_line"], row["last_line"]) for row in trace.functions]
assert rows[0] == ("outer", __file__, 10, 11) and rows[1][:2] == ("inner", __file__) and 6 <= rows[1][2] <= rows[1][3] <= 7, rows
''')

    def test_asked_in_the_middle_of_the_loop(self):
        self.holds('''
def f(n):
    x, seen = torch.ones(4), []
    for i in range(n):
        x = x + 1
        if i % 10 == 9:
            seen.append(len(dynvm.traces()))
    return x, seen
x, seen = f(200)
assert x.tolist() == [201.0] * 4 and seen[0] <= 1 and seen[-1] >= 1, seen
''')

    def test_plain_python(self):
        self.assertEqual(run(PLAIN, ["-c", "import dynvm; print(dynvm.traces(), dynvm.reset(), dynvm.stats())"]).stdout, "[] None {}\n")


class Reset(InspectCase):
    def test_drops_all(self):
        self.holds(LOOP + '''
train(100)
trace, = dynvm.traces()
dynvm.reset()
assert dynvm.traces() == [] and trace.state == "dropped" and trace.ir == "" and trace.kernels == [] and trace.iterations > 0
train(100)
again, = dynvm.traces()
assert again.id != trace.id and 80 < again.iterations < 100
''')

    def test_in_the_middle_of_a_loop_with_a_trace(self):
        self.holds('''
def f(n):
    x, seen = torch.ones(4), []
    for i in range(n):
        x = x + 1
        if i in (60, 61, 130):
            seen.append(len(dynvm.traces()))
            dynvm.reset()
            seen.append(len(dynvm.traces()))
    return x, seen
x, seen = f(200)
assert x.tolist() == [201.0] * 4
assert seen[0] >= 1 and seen[1] == 0 and seen[4] >= 1 and seen[5] == 0, seen
assert len(dynvm.traces()) == 1
''')

    def test_in_each_iteration(self):
        """Also inside the recording: what runs goes on, and nothing is left behind."""
        self.holds('''
class Always:
    def __init__(self):
        self.total = torch.zeros(3)
    def step(self, i):
        self.total = self.total + i
        if i > 30:
            dynvm.reset()
always = Always()
for i in range(150):
    always.step(i)
assert always.total.tolist() == [float(sum(range(150)))] * 3
dynvm.reset()
assert dynvm.traces() == []
''')

    def test_from_another_thread(self):
        self.holds('''
import threading, time
stop = []
def disturb():
    while not stop:
        dynvm.reset()
        dynvm.traces()
        time.sleep(0.0005)
thread = threading.Thread(target=disturb)
thread.start()
layer = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(layer.parameters(), 0.01)
def f(n):
    for i in range(n):
        loss = layer(torch.ones(2 + i % 3, 4)).pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()
try:
    for k in range(5):
        f(200)
finally:
    stop.append(1)
    thread.join()
''')

    def test_penalties_and_lessons(self):
        self.holds('''
dynvm.set_heuristics(penalty_start=4000, penalty_max=4000)
def loop(n):  # loops whose iterations may suspend their generator are not recorded
    x = torch.ones(4)
    for i in range(n):
        x = x + 1
        if i < 0:
            yield i
    yield x
def f(n):
    return next(loop(n))
f(60)
aborts = dict(dynvm.stats()["aborts"])
assert aborts.get("generator_frame") == 1, aborts
f(60)
assert dynvm.stats()["aborts"] == aborts  # it waits
dynvm.reset()
f(60)
assert dynvm.stats()["aborts"]["generator_frame"] == 2, dynvm.stats()["aborts"]
''')


class Explain(InspectCase):
    def test_page(self):
        page = self.shown('''
import time
layer = torch.nn.Linear(8, 8)
def step(x, scale=1.0):
    y = torch.relu(layer(x)) * scale
    time.perf_counter()
    return y.sum().item()
explanation = dynvm.explain(step, torch.ones(4, 8), scale=2.0)
print(explanation)
assert explanation.function == "step" and explanation.calls >= 24 and isinstance(explanation.result, float)
assert explanation.compiled > 0.9, explanation.compiled
assert explanation.residuals == {"call time.perf_counter": 1}, explanation.residuals
trace, = explanation.traces
assert dynvm.stats()["heuristics"] == {}
''')
        self.assertRegex(page, r"\Astep: called \d+ times\ncompiled: \d+ % of the tensor operations of the last 12 calls\ntraced:\n  trace \d+, loop, ")
        self.assertIn("library aten::", page)
        self.assertRegex(page, r"(?m)^    kernel \w*relu\w*$")
        self.assertIn("\nresidual (run as Python does, in one iteration of each trace):\n  call time.perf_counter once\ngiven up: nothing\n", page)

    def test_what_was_given_up_and_where(self):
        page = self.shown('''
import sys
def step(x):
    y = x * 2
    sys._getframe()
    return y + 1
explanation = dynvm.explain(step, torch.ones(4))
print(explanation)
abort = [row for row in explanation.aborts if row["reason"] == "frame_introspection"][0]
assert (abort["file"], abort["line"]) == (__file__, 8), abort
assert abort["times"] >= 1 and abort["detail"].startswith("A call that looks at Python frames"), abort
''')
        self.assertRegex(page, r"(?m)^  frame_introspection (once|\d+ times) at .*script\.py:8: A call that looks at Python frames")

    def test_each_time_anew(self):
        self.holds('''
def f(x):
    return x + 1
def g(x):
    return x * 2 + 1
assert [len(dynvm.explain(each, torch.ones(4)).traces) for each in (f, g, f)] == [1, 1, 1]
assert "call print" not in str(dynvm.explain(f, torch.ones(4)))
''')

    def test_errors(self):
        self.holds('''
def bad(x):
    raise KeyError(x)
for call, error in ((lambda: dynvm.explain(3), TypeError), (lambda: dynvm.explain(bad, 3), KeyError)):
    try:
        call()
    except error:
        pass
    else:
        raise AssertionError(error)
assert dynvm.stats()["heuristics"] == {}
''')

    def test_plain_python(self):
        text = "import dynvm; e = dynvm.explain(sorted, [2, 1]); print(e, e.calls, e.result, e.traces, e.aborts, e.residuals, e.compiled)"
        self.assertEqual(run(PLAIN, ["-c", text]).stdout, "sorted: called once; dynvm does not run here, so nothing is traced 1 [1, 2] [] [] {} None\n")


class Plain(InspectCase):
    """Under plain python every function of the package does nothing."""

    CALLS = {
        "explain": "dynvm.explain(sorted, [2, 1]).result == [1, 2]",
        "heuristics": "dynvm.heuristics() == dynvm.heuristics(full=True) == {}",
        "library_folder": "dynvm.library_folder().endswith('dynvm')",
        "on": "dynvm.on('exit', print).remove() is None and dynvm.on('no such', print) is not None",
        "reset": "dynvm.reset() is None",
        "set_heuristics": "dynvm.set_heuristics('/nowhere/none.toml', no_such=-1) == {}",
        "stats": "dynvm.stats() == {}",
        "traces": "dynvm.traces() == []",
        "zone": "dynvm.zone('a')(len)([1]) == 1 and dynvm.zone('a').__enter__().name == 'a'",
    }
    LOADS = {"install", "version"}  # which are asked to
    TYPES = {"Exit", "Explanation", "Kernel", "Trace"}

    def test_each_function(self):
        lines = ["import sys", "import dynvm", f"assert set(dynvm.__all__) == {set(self.CALLS) | self.LOADS | self.TYPES!r}, dynvm.__all__"]
        lines += [f"assert {call}, {name!r}" for name, call in self.CALLS.items()]
        lines += ["assert 'libdynvm' not in open('/proc/self/maps').read()", "assert 'torch' not in sys.modules", "print('to the end')"]
        outcome = run(PLAIN, ["-c", "\n".join(lines)])
        self.assertEqual((outcome.status, outcome.stdout, outcome.stderr), (0, "to the end\n", ""))


if __name__ == "__main__":
    unittest.main()
