# The names of a call's keywords need not be the constant that stands before it: instructions in between, other producers, jumps to the call.
import opcode
import sys


def show(*positional, **named):
    return positional, sorted(named.items())


class Callable:
    def __call__(self, x, *, key):
        return x, key


class Made:
    def __init__(self, x, key):
        self.x, self.key = x, key


def plain(g, x, names):
    return g(x, key=2)


def wrong(g, x, names):
    return g(x, other=2)


def unit(name, arg=0):
    return bytes((opcode.opmap[name], arg))


def between(call, load):
    yield "nop", load + unit("NOP") + call
    yield "nops and prefixes", load + unit("NOP") * 3 + unit("EXTENDED_ARG") + call
    yield "copied", load + unit("COPY", 1) + unit("POP_TOP") + call
    yield "copied and swapped", load + unit("COPY", 1) + unit("SWAP", 2) + unit("POP_TOP") + call
    yield "local", unit("LOAD_FAST", 2) + call
    yield "two locals", unit("LOAD_FAST_LOAD_FAST", 2 << 4 | 2) + unit("POP_TOP") + call
    yield "packed", unit("LOAD_FAST", 2) + unit("UNPACK_SEQUENCE", 1) + bytes(2) + unit("BUILD_TUPLE", 1) + call
    yield "jump to the call", unit("LOAD_FAST", 2) + unit("JUMP_FORWARD", 1) + load + call
    yield "jump to the call's prefix", unit("LOAD_FAST", 2) + unit("JUMP_FORWARD", 1) + load + unit("EXTENDED_ARG") + call
    yield "a call before", load + unit("NOP") + unit("POP_TOP") + load + call


def changed(function):
    code = function.__code__
    raw, place = code.co_code, 0
    while raw[place] != opcode.opmap["CALL_KW"]:
        place += 2
    for title, units in between(raw[place:place + 2], raw[place - 2:place]):
        new = raw[:place - 2] + units + raw[place + 2:]
        yield title, type(function)(code.replace(co_code=new, co_linetable=b"", co_stacksize=code.co_stacksize + 3), globals())


def run(function, g):
    try:
        result = function(g, 1, ("key",))
        return (result.x, result.key) if isinstance(result, Made) else result
    except TypeError as error:
        return str(error)


for original in (plain, wrong) if sys.version_info >= (3, 13) else ():
    for title, function in changed(original):
        for g in (show, Callable(), Made, dict, Callable().__call__, lambda x, key=3: (x, key), lambda x, **rest: rest):
            for repetition in range(20):
                found = run(function, g)
            print(original.__name__, title, found)
print("done")
