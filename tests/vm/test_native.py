"""Native runs: that they are made, where they give up, and that what they cannot know is noticed. Results are scripts/'s business."""
import os
import tempfile
import textwrap
import unittest

import vm_case


@unittest.skipUnless(vm_case.available(), "the test module of the evaluator is not built")
class Native(unittest.TestCase):
    maxDiff = None

    def stats(self, source):
        """What _dynvm_vm.stats() counts while the program runs, and its output."""
        program = "import _dynvm_vm as vm\nbefore = vm.stats()\n" + textwrap.dedent(source) + \
            "\nafter = vm.stats()\nprint(after['native_runs'] - before['native_runs'], after['native_given_up'] - before['native_given_up'])\n"
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(program)
            file.flush()
            status, out, err = vm_case.run([file.name], "native")
        self.assertEqual((status, err), (0, ""))
        *printed, counts = out.splitlines()
        runs, given_up = map(int, counts.split())
        return runs, given_up, printed

    def test_a_loop_is_compiled(self):
        runs, given_up, printed = self.stats("""
            def f(n):
                s = 0.0
                for i in range(n):
                    s = s * 0.5 + 1.5
                return s
            print(f(100))
            """)
        self.assertGreaterEqual(runs, 1)
        self.assertEqual((given_up, printed), (0, ["3.0"]))

    def test_a_function_is_compiled_after_calls(self):
        runs, _, printed = self.stats("""
            class P:
                def __init__(self): self.x, self.y = 3, 4
                def norm(self): return self.x * self.x + self.y * self.y
            p = P()
            print([p.norm() for _ in range(40)][-1])
            """)
        self.assertGreaterEqual(runs, 1)
        self.assertEqual(printed, ["25"])

    def test_lists_and_tuples_in_turn_are_unpacked(self):
        runs, given_up, printed = self.stats("""
            def f(rows):
                s = 0
                for _ in range(40):
                    for row in rows:
                        a, b, c, d, e = row
                        s += a - b + c + d + e
                return s
            print(f([(1, 2, 3, 4, 5), [5, 4, 3, 2, 1]]))
            """)
        self.assertGreaterEqual(runs, 1)
        self.assertEqual((given_up, printed), (0, ["720"]))

    def test_the_share_of_all_calls_decides(self):
        runs, _, printed = self.stats("""
            vm.uninstall()
            vm.install(20, 1000000, 50, 100000)
            space = {}
            def make(k):
                exec(f"def f{k}(x): return (x + {k}) * (x - 1) + x * x", space)
                return space[f"f{k}"]
            functions = [make(k) for k in range(200)]
            def everywhere(rounds):
                for _ in range(rounds):
                    for f in functions: f(3)
            everywhere(100)
            few = vm.stats()["native_runs"] - before["native_runs"]
            rare = make(1000)
            for _ in range(100): rare(3)
            print(few < 100, vm.stats()["native_runs"] - before["native_runs"] - few >= 1)
            """)
        self.assertEqual(printed, ["True True"])

    def test_failing_guards_end_runs_for_good(self):
        runs, given_up, printed = self.stats("""
            def f(values):
                s = 0
                for v in values:
                    s = s + v + 1
                return s
            print(f([1] * 60), f([1.5] * 60), f([2 ** 70] * 60) == 60 * 2 ** 70 + 60)
            """)
        self.assertGreaterEqual(runs, 1)
        self.assertGreaterEqual(given_up, 1)
        self.assertEqual(printed, ["120 150.0 True"])

    def test_tracing_ends_native_loops(self):
        _, _, printed = self.stats("""
            import sys
            lines = []
            class D:
                def __del__(self): sys.settrace(lambda frame, event, arg: lines.append(event))
            def f(n):
                d = None
                for i in range(n):
                    d = D() if i == 30 else None
                    s = i + i
                return s
            f(20), f(40)
            sys.settrace(None)
            def g(): return 1
            g()
            print(len(lines) <= 1)
            """)
        self.assertEqual(printed, ["True"])

    def test_native_runs_are_made_after_tracing(self):
        runs, _, printed = self.stats("""
            import sys
            def f(n):
                s = 0
                for i in range(n):
                    s = s + i
                return s
            def traced(n):
                sys.settrace(lambda frame, event, arg: None)
                f(n)
                sys.settrace(None)
                return f(n)
            print(traced(50), vm.stats()["native_runs"] - before["native_runs"])
            """)
        self.assertGreaterEqual(runs, 1)
        self.assertEqual(printed, ["1225 1"])

    def test_signals_reach_native_loops(self):
        _, _, printed = self.stats("""
            import signal
            class Stop(Exception): pass
            def handler(*_): raise Stop
            signal.signal(signal.SIGVTALRM, handler)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.05)
            def f():
                i = 0
                while True:
                    i = i + 1 & 1023
            try: f()
            except Stop: print("stopped")
            """)
        self.assertEqual(printed, ["stopped"])

    def test_other_threads_run_beside_native_loops(self):
        _, _, printed = self.stats("""
            import threading
            go = [True]
            def spin(go):
                i = 0
                while go[0]:
                    i = i + 1 & 1023
            thread = threading.Thread(target=spin, args=(go,))
            thread.start()
            total = sum(i for i in range(20000))
            go[0] = False
            thread.join(60)
            print(total, thread.is_alive())
            """)
        self.assertEqual(printed, ["199990000 False"])

    def test_a_recording_ends_native_code_of_its_loop(self):
        """A loop that a trace is attached to must ask at its header."""
        _, _, printed = self.stats("""
            def f(n):
                s = 0
                for i in range(n):
                    s = s + i
                return s
            f(200)
            vm.trace(3, 0, 7)
            f(50)
            print(len(vm.take_trace()) > 3)
            """)
        self.assertEqual(printed, ["True"])


if __name__ == "__main__":
    unittest.main()
