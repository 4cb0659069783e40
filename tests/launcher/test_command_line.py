"""Command lines: whatever `python` accepts, `dynvm` does the same, to the byte and the exit status."""

import os
import re
import signal

from compare import CompareCase, run, DYNVM, PYTHON

SHOW = """
    import sys
    print(sys.argv, sys.executable, sys.orig_argv, sys.path, sys.flags, sys.prefix, sys.base_prefix, sys.warnoptions)
    print(__name__, __file__, __spec__, __builtins__, sorted(globals()))
    print(sys.stdin.encoding, sys.stdout.encoding, sys.getfilesystemencoding(), sys._xoptions)
"""


class Scripts(CompareCase):
    def test_arguments(self):
        self.same_script(SHOW, ["a", "--stats", "", "two words", "*", "-c", "ä€😀"])

    def test_daemon_threads_end_with_the_program(self):
        """They wake while Python finalizes, which ends them with pthread_exit() in the middle of our frames."""
        outcome = self.same_script("""
            import threading, time

            def wait():
                while True:
                    time.sleep(0.01)

            class Slow:
                def __del__(self):
                    time.sleep(0.2)

            for _ in range(4):
                threading.Thread(target=wait, daemon=True).start()
            time.sleep(0.05)
            kept = Slow()
            print("over")
        """)
        self.assertEqual(outcome.status, 0)

    def test_relative_path(self):
        self.script(SHOW)
        self.same(["script.py", "x"], cwd=self.folder)
        self.same(["./script.py"], cwd=self.folder)

    def test_folder_with_main(self):
        os.mkdir(os.path.join(self.folder, "app"))
        self.script(SHOW, "app/__main__.py")
        self.same(["app", "1"], cwd=self.folder)

    def test_name_with_blank_and_unicode(self):
        self.same([self.script(SHOW, "my script ü.py")])

    def test_missing_file(self):
        outcome = self.same([os.path.join(self.folder, "none.py")])
        self.assertEqual(outcome.status, 2)

    def test_syntax_error(self):
        outcome = self.same_script("x = 1\nif x\n    pass\n")
        self.assertEqual(outcome.status, 1)

    def test_not_utf8(self):
        path = os.path.join(self.folder, "latin.py")
        with open(path, "wb") as file:
            file.write(b"x = '\xe4'\n")
        self.same([path])

    def test_stdin_data(self):
        self.same_script("import sys; print(sum(len(line) for line in sys.stdin))", stdin="ab\ncd\n")


class Commands(CompareCase):
    def test_c(self):
        self.same(["-c", "import sys; print(sys.argv, __name__, sys.path)", "a", "--stats", "-x"])

    def test_c_attached(self):
        self.same(["-cimport sys; print(sys.argv)", "--help"])

    def test_m_module(self):
        self.script(SHOW, "mod.py")
        self.same(["-m", "mod", "--version"], cwd=self.folder)

    def test_m_package(self):
        os.mkdir(os.path.join(self.folder, "pack"))
        self.script("", "pack/__init__.py")
        self.script(SHOW, "pack/__main__.py")
        self.same(["-mpack", "1"], cwd=self.folder)

    def test_m_missing(self):
        self.same(["-m", "no_such_module"])

    def test_m_timeit_and_json(self):
        self.same(["-m", "json.tool", "--compact"], stdin='{"a": [1, 2]}')

    def test_dash(self):
        self.same(["-", "a", "b"], stdin="import sys\nprint(sys.argv, __name__)\n")

    def test_script_on_stdin(self):
        self.same([], stdin="print(1)\nraise ValueError('x')\n")

    def test_empty_stdin(self):
        self.same([], stdin="")

    def test_interactive(self):
        self.same(["-i", "-q", "-c", "x = 4"], stdin="x + 1\n")
        self.same(["-i", "-q"], stdin="import sys\nsys.ps1\ndef f():\n    return 1/0\n\nf()\n")

    def test_inspect_after_exception(self):
        self.same(["-i", "-c", "x = 4; y"], stdin="x\n")


class PythonOptions(CompareCase):
    def test_each(self):
        script = self.script(SHOW + "\n    assert False, 'asserts run'")
        for options in (["-O"], ["-OO"], ["-I"], ["-E"], ["-s"], ["-S"], ["-u"], ["-B"], ["-b"], ["-P"], ["-q"], ["-d"], ["-v", "-h"],
                        ["-W", "error"], ["-Wignore"], ["-X", "dev"], ["-Xutf8=0"], ["-X", "faulthandler"], ["-R"],
                        ["-X", "importtime", "-h"], ["-IOuB"], ["--check-hash-based-pycs", "never"], ["-x"], ["--"]):
            with self.subTest(options=options):
                self.same([*options, script, "arg"])

    def test_version_of_python(self):
        self.same(["-V"])
        self.same(["-VV"])

    def test_unknown(self):
        self.assertEqual(self.same(["--foo", "x.py"]).status, 2)
        self.assertEqual(self.same(["-Z"]).status, 2)
        self.same(["-c"])
        self.same(["-X"])
        self.same(["--check-hash-based-pycs", "odd", "x.py"])

    def test_help_of_python(self):
        self.same(["-h"])

    def test_warnings(self):
        self.same(["-W", "error", "-c", "import warnings; warnings.warn('w')"])
        self.same_script("import warnings; warnings.warn('w')")
        self.same_script("x = '\\d'; assert (1, 'a')")

    def test_pythons_variables(self):
        for name, value in (("PYTHONPATH", "/somewhere"), ("PYTHONOPTIMIZE", "1"), ("PYTHONHASHSEED", "3"), ("PYTHONWARNINGS", "error"),
                            ("PYTHONIOENCODING", "latin-1"), ("PYTHONUNBUFFERED", "1"), ("PYTHONUTF8", "1"), ("LC_ALL", "C"),
                            ("LC_ALL", "POSIX"), ("PYTHONCOERCECLOCALE", "0"), ("PYTHONNOUSERSITE", "1"), ("PYTHONSAFEPATH", "1"),
                            ("PYTHONDEVMODE", "1"), ("PYTHONHOME", "/nowhere")):
            with self.subTest(name=name, value=value):
                self.same_script(SHOW + "\n    print(hash('a') if 'PYTHONHASHSEED' in __import__('os').environ else 0)",
                                 env={name: value}, clean=lambda text: re.sub(r"0x[0-9a-f]+", "", text))


class Ends(CompareCase):
    def test_exit_statuses(self):
        for value in ("3", "0", "None", "'message'", "-1", "256 + 7", "True", "2.5", "[1]"):
            with self.subTest(value=value):
                self.same_script(f"import sys\nprint('out', end='')\nsys.exit({value})")

    def test_system_exit_in_function(self):
        self.same_script("""
            import atexit
            atexit.register(print, "atexit")
            def f():
                try:
                    raise SystemExit(5)
                finally:
                    print("finally")
            f()
        """)

    def test_os_exit(self):
        self.assertEqual(self.same_script("import os; print('x', flush=True); os._exit(9)").status, 9)

    def test_traceback(self):
        outcome = self.same_script("""
            class Odd(Exception):
                pass
            def f(n):
                if n == 0:
                    raise Odd("deep", n)
                return f(n - 1)
            def g():
                try:
                    f(3)
                except Odd as error:
                    raise RuntimeError("outer") from error
            try:
                g()
            except RuntimeError:
                [1, 2][
                    5]
        """)
        self.assertEqual(outcome.status, 1)

    def test_recursion_error(self):
        self.same_script("def f(): return f()\nf()")

    def test_exception_group_and_notes(self):
        self.same_script("""
            e = ValueError("x")
            e.add_note("a note")
            raise ExceptionGroup("many", [e, TypeError("y")])
        """)

    def test_excepthook(self):
        self.same_script("import sys\nsys.excepthook = lambda *a: print('hook', a)\n1/0")

    def test_abort_signal(self):
        self.assertEqual(self.same_script("import os; os.abort()").status, -signal.SIGABRT)

    def test_kill(self):
        self.same_script("import os, signal; os.kill(os.getpid(), signal.SIGTERM)")

    def test_closed_stdout(self):
        self.same_script("import os; os.close(1); print('x')")

    def test_ctrl_c(self):
        outcome = self.same_script("""
            import time
            def wait():
                print("ready", flush=True)
                while True:
                    time.sleep(10)
            wait()
        """, interrupt_after="ready")
        self.assertEqual(outcome.status, -signal.SIGINT)
        self.assertIn("KeyboardInterrupt", outcome.stderr)

    def test_ctrl_c_in_a_busy_loop(self):
        outcome = self.same_script("""
            try:
                print("ready", flush=True)
                while True: pass
            except KeyboardInterrupt:
                print("caught")
            raise KeyboardInterrupt
        """, interrupt_after="ready")
        self.assertEqual(outcome.status, -signal.SIGINT)

    def test_atexit_and_threads(self):
        self.same_script("""
            import atexit, threading, time
            atexit.register(lambda: print("atexit"))
            def work():
                time.sleep(0.2)
                print("thread done")
            threading.Thread(target=work).start()
            threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
            print("main done")
        """)

    def test_thread_exception(self):
        self.same_script("""
            import threading
            t = threading.Thread(target=lambda: 1/0, name="worker")
            t.start()
            t.join()
        """)


class Processes(CompareCase):
    def test_environment_is_the_users(self):
        hide = lambda text: re.sub(r"('_': '[^']*')", "", text)
        self.same_script("import os; print(sorted(os.environ.items()))", clean=hide)
        self.same_script("import os, subprocess; print(subprocess.run(['env'], capture_output=True, text=True).stdout)",
                         clean=lambda text: re.sub(r"^_=.*$", "", text, flags=re.M))

    def test_users_preload(self):
        # libm is harmless and loaded anyway.
        self.same_script("import os; print(os.environ.get('LD_PRELOAD'))", env={"LD_PRELOAD": "libm.so.6"})
        self.same_script("import os; print(repr(os.environ.get('LD_PRELOAD')))", env={"LD_PRELOAD": ""})

    def test_subprocess(self):
        self.same_script("""
            import subprocess, sys
            done = subprocess.run([sys.executable, "-c", "import sys; print(sys.argv); sys.exit(4)", "x"], capture_output=True)
            print(done)
        """)

    def test_fork(self):
        self.same_script("""
            import os, sys
            print("parent", flush=True)
            pid = os.fork()
            if pid == 0:
                print("child", flush=True)
                sys.exit(6)
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """)

    def test_multiprocessing(self):
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method=method):
                self.same_script(f"""
                    import multiprocessing as mp, sys
                    def double(n):
                        return 2 * n
                    def fail():
                        sys.exit(3)
                    if __name__ == "__main__":
                        mp.set_start_method("{method}")
                        with mp.Pool(2) as pool:
                            print(pool.map(double, range(5)))
                        p = mp.Process(target=fail)
                        p.start()
                        p.join()
                        print(p.exitcode)
                """)

    def test_concurrent_futures(self):
        self.same_script("""
            from concurrent.futures import ProcessPoolExecutor
            if __name__ == "__main__":
                with ProcessPoolExecutor(2) as pool:
                    print(list(pool.map(abs, [-1, -2])))
                    try:
                        pool.submit(divmod, 1, 0).result()
                    except ZeroDivisionError as error:
                        print(repr(error))
        """)

    def test_exec(self):
        self.same_script("import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'print(1)'])")


class Interpreter(CompareCase):
    def test_debugger(self):
        self.same_script("""
            def f(x):
                breakpoint()
                return x + 1
            print(f(1))
        """, stdin="p x\nn\nc\n")

    def test_settrace(self):
        self.same_script("""
            import sys
            def trace(frame, event, arg):
                print(event, frame.f_code.co_name, frame.f_lineno)
                return trace
            def f(n):
                for i in range(n):
                    n -= i
                return n
            sys.settrace(trace)
            f(3)
            sys.settrace(None)
            f(2)
        """)

    def test_asyncio(self):
        self.same_script("""
            import asyncio
            async def work(n):
                await asyncio.sleep(0.01 * n)
                return n
            async def main():
                print(await asyncio.gather(*(work(i) for i in range(3))))
                async with asyncio.timeout(0.01):
                    await asyncio.sleep(5)
            asyncio.run(main())
        """)

    def test_garbage_and_destructors_at_exit(self):
        self.same_script("""
            class D:
                def __init__(self, name): self.name = name
                def __del__(self): print("del", self.name)
            a = D("a")
            b = D("b"); b.self = b
            print("end")
        """)


if __name__ == "__main__":
    import unittest
    unittest.main()
