"""dynvm.on(): which events come, when, and what goes wrong in callbacks."""

import unittest

from inspect_case import InspectCase, PLAIN, run

LOOP = '''
def train(n):
    x = torch.ones(4)
    for i in range(n):
        x = torch.relu(x * 0.5 + 1.0)
    return x
'''


class Events(InspectCase):
    def test_of_a_loop(self):
        self.holds(LOOP + '''
events = []
handles = [dynvm.on(name, events.append) for name in ("trace", "exit", "guard", "compile")]
train(100)
for i in range(10): pass
kinds = [(event["event"], event.get("what")) for event in events]
assert kinds[0] == ("trace", "recording") and ("guard", "recorded") in kinds and ("trace", "finished") in kinds and ("compile", "compiled") in kinds, kinds
assert kinds[-1] == ("exit", "left"), kinds
assert [event["time"] for event in events] == sorted(event["time"] for event in events)
finished = [event for event in events if event.get("what") == "finished"][0]
trace, = dynvm.traces()
assert (finished["trace"], finished["file"], finished["line"]) == (trace.id, __file__, 7), finished
assert finished["text"].startswith(f"trace {trace.id} ") and finished["ms"] > 0
left = events[-1]
assert (left["trace"], left["file"], left["reason"], left["times"]) == (trace.id, __file__, "guard_bound", 1), left
count = len(events)
for handle in handles:
    handle.remove()
    handle.remove()
train(100)
assert len(events) == count
''')

    def test_exits_with_their_place_and_reason(self):
        self.holds('''
left = []
dynvm.on("exit", left.append)
def f(n):
    x = torch.ones(4)
    for i in range(n):
        x = x + 1
        if i % 7 == 3:
            x = x * 0.5
    return x
f(100)
branches = [event for event in left if event["reason"] == "guard_false"]
assert branches and {(event["file"], event["line"]) for event in branches} == {(__file__, 11)}, left
assert branches[0]["detail"] == "i % 7 == 3 holds this time", branches[0]
assert branches[0]["text"].startswith(f"{__file__}:11: trace {branches[0]['trace']} is left, guard_false %"), branches[0]
assert branches[0]["text"].endswith(": i % 7 == 3 holds this time, 1 times"), branches[0]
''')

    def test_aborts_with_their_place(self):
        self.holds('''
import sys
aborts = []
dynvm.on("abort", aborts.append)
def f(n):
    x = torch.ones(4)
    for i in range(n):
        x = x + 1
        sys._getframe()
f(100)
assert aborts and (aborts[0]["reason"], aborts[0]["file"], aborts[0]["line"]) == ("frame_introspection", __file__, 12), aborts
assert aborts[0]["detail"].startswith("A call that looks at Python frames"), aborts
''')

    def test_never_while_a_trace_runs(self):
        """A function that C code calls from inside the outer loop's trace leaves a trace of its own each time: that is told when the outer one is left."""
        self.holds('''
dynvm.set_heuristics(hot_call=10**9)  # key() stays with the interpreter, which sees to what is pending
inside, compiled, early, seen = [False], [False], [], []
def callback(event):
    seen.append(event["trace"])
    if inside[0] and compiled[0]:
        early.append(event)
def count(n):
    y = torch.zeros(3)
    for i in range(n):
        y = y + 1
    for i in range(20):
        sorted([i, 3])
    return y
def key(item):
    inside[0] = True
    count(12)
    inside[0] = False
    return item
def outer(n, hot):
    x = torch.ones(4)
    for i in range(n):
        compiled[0] = hot and i > 5
        x = x * 2 + i
        sorted([1], key=key)
    compiled[0] = False
    return x
def main():
    count(100)
    outer(60, False)
    handle = dynvm.on("exit", callback)
    outer(60, True)
    for i in range(20):
        sorted([i, 3])
    handle.remove()
    return [trace for trace in dynvm.traces() if trace.function == "outer" and trace.kind == "loop"], [trace.id for trace in dynvm.traces() if trace.function in ("count", "key")]
root, inner = main()
assert root and root[0].iterations > 45 and "call builtins.sorted" in root[0].residuals, [(trace, trace.iterations, trace.residuals) for trace in root]
assert sum(trace in inner for trace in seen) > 40, (seen, inner)
assert not early, early
''', "--heuristics=unroll_rounds=1")

    def test_never_while_something_is_recorded(self):
        """Guards that are recorded are told of when the recording is over, though it goes through loops, where the interpreter sees to what is pending."""
        self.holds('''
import time
seen = []
def f(n):
    x = torch.ones(4)
    for i in range(n):
        for k in range(20):
            x = x * 0.5 + k
        x = x.clamp(max=9.0)
    return x
def main():
    handles = [dynvm.on(name, lambda event: seen.append((time.monotonic(), event))) for name in ("guard", "trace")]
    f(60)
    for i in range(20):
        sorted([i, 3])
    for handle in handles:
        handle.remove()
main()
ended = {event["trace"]: event["time"] for _, event in seen if event.get("what") == "finished"}
guards = [(at, event["trace"]) for at, event in seen if event["event"] == "guard" and event["trace"] in ended]
assert len(guards) > 5 and {event["file"] for _, event in seen if event["event"] == "guard"} == {__file__}, seen
assert all(at > ended[trace] for at, trace in guards), seen
''')

    def test_what_callbacks_do_is_not_traced(self):
        self.holds(LOOP + '''
seen = []
def work():
    x = torch.ones(4)
    for i in range(50):
        x = x + 1
    return x.sum().item()
def callback(event):
    seen.append(work())
dynvm.on("exit", callback)
train(100), train(100), train(100)
assert seen and set(seen) == {204.0}
assert {trace.function for trace in dynvm.traces()} == {"train"}, dynvm.traces()
''')

    def test_an_exception_in_a_callback(self):
        self.holds(LOOP + '''
import sys
hooked, seen = [], []
sys.unraisablehook = lambda unraisable: hooked.append((unraisable.exc_type, unraisable.object))
def bad(event):
    raise KeyError(event["event"])
dynvm.on("compile", bad)
dynvm.on("compile", seen.append)
train(100)
for i in range(10): pass
assert hooked and set(hooked) == {(KeyError, bad)}, hooked
assert len(seen) == len(hooked)
''')

    def test_the_usual_hook_shows_it(self):
        outcome = run_script(self, LOOP + '''
def bad(event):
    raise KeyError("mine")
dynvm.on("compile", bad)
train(100)
for i in range(10): pass
print("goes on")
''')
        self.assertEqual((outcome.status, outcome.stdout), (0, "goes on\n"), outcome)
        self.assertIn("KeyError: 'mine'", outcome.stderr)

    def test_those_of_the_end_come_at_the_end(self):
        self.assertIn("left\n", self.shown(LOOP + '''
dynvm.on("exit", lambda event: print(event["what"]))
train(100)'''))

    def test_other_threads(self):
        self.holds(LOOP + '''
import threading
where = set()
dynvm.on("trace", lambda event: where.add(threading.current_thread() is threading.main_thread()))
thread = threading.Thread(target=train, args=(200,))
thread.start()
thread.join()
for i in range(10): pass
assert where == {True}, where
''')

    def test_reset_and_settings_in_callbacks(self):
        self.holds(LOOP + '''
done = []
def callback(event):
    dynvm.set_heuristics(max_side=7)
    dynvm.reset()
    done.append(len(dynvm.traces()))
dynvm.on("exit", callback)
for k in range(5): train(100)
for i in range(10): pass
assert done and dynvm.heuristics()["max_side"] == 7
''')

    def test_removed_in_a_callback_and_as_a_context_manager(self):
        self.holds(LOOP + '''
first, second = [], []
def once(event):
    first.append(event)
    handle.remove()
handle = dynvm.on("compile", once)
with dynvm.on("trace", second.append):
    train(100)
    for i in range(10): pass
count = len(second)
dynvm.reset()
train(100)
for i in range(10): pass
assert len(first) == 1 and len(second) == count > 0, (first, second)
''')

    def test_errors(self):
        self.holds('''
for arguments, error, message in ((("odd", print), ValueError, "there is no event 'odd'; there are trace, exit, abort, guard, compile, cache, policy"),
                                  (("exit", 3), TypeError, "expected a callable, got int")):
    try:
        dynvm.on(*arguments)
    except error as caught:
        assert str(caught) == message, caught
    else:
        raise AssertionError(error)
''')

    def test_plain_python(self):
        text = "import dynvm; h = dynvm.on('exit', print); h.remove(); h.remove()\nwith dynvm.on('anything', print): print(1)"
        outcome = run(PLAIN, ["-c", text])
        self.assertEqual((outcome.stdout, outcome.stderr), ("1\n", ""))


def run_script(case, text):
    from inspect_case import INSTALLED
    return run(INSTALLED, [case.script("import torch\nimport dynvm\n" + text)])


if __name__ == "__main__":
    unittest.main()
