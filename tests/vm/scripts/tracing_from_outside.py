"""Tools that begin while frames run: asked for by another thread and by a signal handler; every event is of the program's own code."""
import signal
import sys
import threading
import time

if hasattr(sys, "monitoring"):
    m = sys.monitoring
    TOOL = 3
    E = m.events
    KINDS = ("PY_START", "PY_RETURN", "PY_RESUME", "PY_YIELD", "PY_UNWIND", "RAISE", "LINE", "CALL", "C_RETURN", "JUMP", "BRANCH")
    files = set()
    asked = threading.Event()
    m.use_tool_id(TOOL, "outside")
    for kind in KINDS:
        m.register_callback(TOOL, getattr(E, kind), lambda code, *rest: files.add(code.co_filename) if asked.is_set() else None)
    # (C_RETURN comes with CALL.)
    ALL = 0
    for kind in KINDS:
        if kind != "C_RETURN": ALL |= getattr(E, kind)

    def switch(times):
        for i in range(times):
            m.set_events(TOOL, ALL)
            asked.set()
            time.sleep(0.002)
            m.set_events(TOOL, 0)
            time.sleep(0.002)

    def spin(until):
        count = 0
        while until():
            count += 1
        return count

    def wait(until):
        lock = threading.Lock()
        lock.acquire()
        while until():
            lock.acquire(timeout=0.001)

    for body in (spin, wait):
        threads = [threading.Thread(target=switch, args=(30,))]
        threads += [threading.Thread(target=spin, args=(threads[0].is_alive,)) for i in range(3)]
        for thread in threads: thread.start()
        body(threads[0].is_alive)
        for thread in threads: thread.join()
        asked.clear()

    left = 20
    def handler(number, frame):
        global left
        left -= 1
        m.set_events(TOOL, 0 if left % 2 else ALL)
        asked.set()
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    spin(lambda: left > 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    m.set_events(TOOL, 0)
    m.free_tool_id(TOOL)
    print(sorted(name for name in files if name not in (__file__, threading.__file__)), __file__ in files)
else:
    events = set()
    def tracer(frame, event, argument):
        events.add(frame.f_code.co_filename)
        return tracer
    left = 20
    def handler(number, frame):
        global left
        left -= 1
        sys.settrace(None if left % 2 else tracer)
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    def more(): return left > 0
    while more(): pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.settrace(None)
    print(sorted(events - {__file__}))
