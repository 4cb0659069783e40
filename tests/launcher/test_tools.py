"""Tools that look into a running program, and interpreters within it: debugger, profilers, stack dumps, sub-interpreters."""

import textwrap

from compare import CompareCase

PROGRAM = """
    def inner(a, b):
        c = a + b
        for i in range(3):
            c += i
        return c

    def gen():
        for i in range(3):
            yield inner(i, 1)

    def main():
        total = 0
        for v in gen():
            total += v
        return total

    for _ in range(20): main()
    print(main())
    x = [inner(k, k) for k in range(2)]
    raise KeyError("end")
    """

DEBUGGING = """
    b inner
    commands 1
    p a, b
    end
    c
    w
    n
    s
    up
    p v, i if 'i' in dir() else 0
    up
    p total
    !total = 100
    down
    r
    p c
    args
    ll
    until
    tbreak 16
    cl 1
    c
    j 14
    n
    b 5, i == 2
    c
    p i, c
    cl 2
    c
    w
    q
    """

PROFILED = """
    import cProfile, profile, pstats, io
    def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
    def gen(n):
        for i in range(n): yield i
    class A:
        def __init__(self, x): self.x = x
        def __len__(self): return self.x
        @property
        def p(self): return self.x
    def work():
        fib(10); sum(gen(20)); [len(A(i)) for i in range(10)]; sorted(range(5), key=lambda v: -v); A(3).p
        try: int("x")
        except ValueError: pass
        list(map(str, range(3)))
    for profiler in (cProfile.Profile(), profile.Profile()):
        profiler.runcall(work)
        for key, (calls, primitive, _, _, callers) in sorted(pstats.Stats(profiler, stream=io.StringIO()).stats.items(), key=str):
            print(key[1:], calls, primitive, sorted((k[1:], v[:2] if isinstance(v, tuple) else v) for k, v in callers.items()))
    """

DUMPED = """
    import faulthandler, os, signal, sys
    faulthandler.enable()
    def f(n):
        if n: return f(n - 1)
        faulthandler.dump_traceback(file=sys.stderr)
        def g():
            faulthandler.dump_traceback(all_threads=False); yield 1
        return list(g())
    for _ in range(3): f(4)
    sorted([1, 2], key=lambda v: f(0))
    faulthandler.register(signal.SIGUSR1, all_threads=True, chain=False)
    def h(): os.kill(os.getpid(), signal.SIGUSR1)
    for i in range(2): h()
    class C:
        def __del__(self): f(1)
    C()
    def end(): os.kill(os.getpid(), signal.SIGSEGV)
    end()
    """

INTERPRETERS = '''
    import threading
    try: import _xxsubinterpreters as interpreters
    except ImportError: import _interpreters as interpreters
    TEXT = """
    def f(n): return n if n < 2 else f(n - 1) + f(n - 2)
    def g():
        for k in range(200): yield f(5) + k
    print(sum(g()))
    class A:
        x = 1
        def m(self): return self.x
    print([A().m() for _ in range(300)][-1])
    try: 1 / 0
    except Exception as e: print(repr(e), e.__traceback__.tb_lineno)
    """
    for _ in range(3):
        one = interpreters.create()
        print(interpreters.run_string(one, TEXT))
        try: print(type(interpreters.run_string(one, "def f(): raise ValueError('inner')" + chr(10) + "f()")).__name__)
        except Exception as error: print(type(error).__name__, error)
        interpreters.destroy(one)
    def work():
        one = interpreters.create()
        interpreters.run_string(one, "def f(n): return n if n < 2 else f(n - 1) + f(n - 2)" + chr(10) + "assert f(15) == 610")
        interpreters.destroy(one)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    '''


class Tools(CompareCase):
    def test_debugger(self):
        self.same(["-m", "pdb", self.script(PROGRAM)], stdin=textwrap.dedent(DEBUGGING).lstrip())

    def test_profilers(self):
        self.same_script(PROFILED, env={"PYTHONHASHSEED": "0"})

    def test_stack_dumps(self):
        self.same_script(DUMPED)

    def test_interpreters(self):
        self.same_script(INTERPRETERS)
