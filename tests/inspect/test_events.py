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

    def test_never_in_a_trace_or_a_recording(self):
        """Callbacks run between iterations at the earliest: never between the two marks of one."""
        self.holds('''
inside, seen = [False], []
def callback(event):
    assert not inside[0], event
    seen.append(event["event"])
for name in ("trace", "exit", "guard", "compile", "abort"):
    dynvm.on(name, callback)
def touch(value):
    inside[0] = value
    for i in range(5): sorted([i, 3])
def f(n):
    x = torch.ones(4)
    for i in range(n):
        touch(True)
        x = x * 2 if i % 7 == 3 else x + 1
        x = x.clamp(max=9.0)
        touch(False)
    return x
f(300)
f(300)
for i in range(100): pass
assert {"trace", "exit", "guard", "compile"} <= set(seen), set(seen)
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
