"""A policy with LuaJIT's classic thresholds (lj_jit.h, JIT_PARAMDEF), which were chosen for traces that take microseconds to compile and save nanoseconds.

hotloop 56     a loop is recorded after 56 iterations; a function after 112 calls, as a call counts half
hotexit 10     a side trace is recorded at the tenth exit
loopunroll 15  an inner loop goes round 15 times inside a recording
maxrecord 4000, maxside 100, PENALTY_MIN, PENALTY_MAX   as numbers (docs/heuristics.md has what corresponds to what)

One thing differs: LuaJIT adds up a loop's iterations over all of its runs, dynvm those of one run.
    dynvm --policy examples/policies/luajit_classic.py script.py
"""


class Policy:
    heuristics = {"max_insts": 4000, "max_side": 100, "penalty_start": 36, "penalty_max": 30000}

    def record(self, facts):
        if facts.outer_first:
            return None
        return facts.arrivals >= (112 if facts.kind == "function" else 56)

    def side(self, facts):
        return facts.main_path or facts.arrivals >= 10

    def unroll(self, facts):
        return not facts.has_trace and facts.rounds <= 15
