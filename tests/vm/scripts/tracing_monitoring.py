"""sys.monitoring (3.12 and later): events before, during and after, global and of one code object; the evaluator is taken back."""
import sys
def work(n):
    total = 0
    for i in range(n):
        total += helper(i)
    return total
def helper(i):
    if i == 2: return len(str(i))
    return i
def gen():
    yield 1
    yield 2
def fails():
    raise KeyError("k")
if hasattr(sys, "monitoring"):
    m = sys.monitoring
    TOOL = 3
    seen = []
    def name(code): return code.co_name
    # (An offset may be any unit of the calling instruction.)
    def record(kind):
        return lambda code, *rest: seen.append((kind, name(code), *[r for r in rest[kind != "LINE":] if isinstance(r, (int, str))]))
    def inside():
        m.set_events(TOOL, m.events.PY_START | m.events.PY_RETURN | m.events.RAISE | m.events.PY_UNWIND | m.events.PY_YIELD | m.events.PY_RESUME)
        work(3)
        list(gen())
        try: fails()
        except KeyError: pass
        m.set_events(TOOL, 0)
        return work(2)
    def nested():
        inside_raises()
    def inside_raises():
        m.set_events(TOOL, m.events.RAISE | m.events.PY_UNWIND)
        fails()
    work(50)
    m.use_tool_id(TOOL, "test")
    for event in ("PY_START", "PY_RETURN", "RAISE", "PY_UNWIND", "PY_YIELD", "PY_RESUME", "LINE", "CALL", "C_RETURN"):
        m.register_callback(TOOL, getattr(m.events, event), record(event))
    for i in range(2):
        print(inside(), seen); seen.clear()
    try: nested()
    except KeyError: pass
    m.set_events(TOOL, 0)
    print(seen); seen.clear()
    m.set_local_events(TOOL, helper.__code__, m.events.LINE)
    work(4)
    print(seen); seen.clear()
    m.set_local_events(TOOL, helper.__code__, 0)
    m.set_events(TOOL, m.events.CALL | m.events.C_RETURN)
    work(3)
    m.set_events(TOOL, 0)
    print(seen); seen.clear()
    for event in ("PY_START", "PY_RETURN", "RAISE", "PY_UNWIND", "PY_YIELD", "PY_RESUME", "LINE", "CALL", "C_RETURN"):
        m.register_callback(TOOL, getattr(m.events, event), None)
    m.free_tool_id(TOOL)
    print(work(50), seen)
