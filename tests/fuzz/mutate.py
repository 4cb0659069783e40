"""Changes code objects in ways that remain valid.

Purpose: instructions in orders, and tables in forms, that the compiler does not produce. Inputs: a code object, a seed, which
  changes. Outputs: a code object with its own and its nested code objects changed; what it does may differ from what it did, but is defined.
Invariants: stack depths agree on all paths (Body.depths), no instruction can see an empty stack slot or an unchecked empty local, and
  instructions that belong together (codes.is_glued) stay together.
Tests: run.py.
"""

import random
import sys
import types

import codes
from codes import Inst

SINCE_312, SINCE_313 = sys.version_info >= (3, 12), sys.version_info >= (3, 13)
# Instructions that leave one value on top, never NULL.
PUSHES_VALUE = {"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_CONST", "BINARY_OP", "COMPARE_OP", "BINARY_SUBSCR", "CALL", "IS_OP", "CONTAINS_OP",
                "UNARY_NEGATIVE", "BUILD_TUPLE", "BUILD_LIST", "BUILD_MAP", "GET_ITER", "LOAD_NAME", "FORMAT_VALUE", "CALL_KW"}
if sys.version_info < (3, 12):
    PUSHES_VALUE.add("LOAD_ATTR")
# Instructions that may stand out of line: nothing about them depends on what stands beside them.
MOVABLE = {"LOAD_CONST", "LOAD_FAST", "STORE_FAST", "LOAD_GLOBAL", "LOAD_ATTR", "STORE_ATTR", "BINARY_OP", "COMPARE_OP", "BINARY_SUBSCR",
           "STORE_SUBSCR", "POP_TOP", "BUILD_TUPLE", "BUILD_LIST", "SWAP", "COPY", "LOAD_DEREF", "STORE_DEREF", "UNPACK_SEQUENCE",
           "LOAD_METHOD", "PUSH_NULL", "TO_BOOL", "IS_OP", "CONTAINS_OP", "LIST_APPEND", "GET_ITER", "LOAD_FAST_LOAD_FAST",
           "STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST", "NOP", "PUSH_EXC_INFO", "POP_EXCEPT", "CHECK_EXC_MATCH", "UNARY_NOT"}
CONDITIONS = {"IF_TRUE": "IF_FALSE", "IF_FALSE": "IF_TRUE", "IF_NONE": "IF_NOT_NONE", "IF_NOT_NONE": "IF_NONE"}
PURE_LOADS = ("LOAD_CONST", "LOAD_FAST_CHECK") + (() if SINCE_312 else ("LOAD_FAST",))


def comparison(number):
    """The argument of COMPARE_OP for Py_LT ... Py_GE: from 3.12 on, its low bits say which outcomes are true, for specialised forms."""
    return number << (5 if SINCE_313 else 4) | (2, 10, 8, 7, 4, 12)[number] if SINCE_312 else number


class Changer:
    def __init__(self, body, rng):
        self.body, self.insts, self.rng = body, body.insts, rng
        self.first = next((k for k, inst in enumerate(self.insts) if inst.name == "RESUME"), 0) + 1
        self.replaced = {}
        self.spare = 0  # stack slots that changes need

    def place(self, fits=lambda inst: True, behind=False):
        """Index of an instruction behind the function's start, before which (or behind which) something may be put."""
        found = []
        for k in range(self.first, len(self.insts)):
            following = self.insts[k + 1] if k + 1 < len(self.insts) else None
            loose = not codes.is_glued(self.insts[k], following) if behind and following else not codes.is_glued(self.insts[k - 1], self.insts[k])
            if loose and fits(self.insts[k]) and not (behind and (following is None or self.insts[k].ends_block())):
                found.append(k)
        if not found:
            raise LookupError
        return self.rng.choice(found)

    def put(self, place, names, like=None):
        like = like or self.insts[place if place < len(self.insts) else -1]
        self.insts[place:place] = [like.like(*(name if isinstance(name, tuple) else (name,))) for name in names]

    def constant(self):
        return self.rng.randrange(len(self.body.code.co_consts))

    def insertable(self, inst):
        """END_FOR and END_SEND are part of the jumps to them; EXTENDED_ARG and CACHE are not seen here."""
        return inst.name not in ("END_FOR", "END_SEND")

    # ---- changes, each picked with equal chance

    def nop(self):
        self.put(self.place(self.insertable), ["NOP"] * self.rng.randint(1, 3))

    def many_nops(self):
        self.put(self.place(self.insertable), ["NOP"] * self.rng.choice((40, 130, 300)))

    def prefix(self):
        self.insts[self.place(lambda inst: inst.name not in ("RESUME", "NOP", "END_FOR", "END_SEND", "RETURN_GENERATOR"))].prefixes = self.rng.randint(1, 2)

    def push_and_pop(self):
        if not self.body.code.co_consts:
            raise LookupError
        push = ("LOAD_CONST", self.constant())
        ways = [[push, "POP_TOP"], [push, push, ("SWAP", 2), "POP_TOP", "POP_TOP"], [push, ("COPY", 1), "POP_TOP", "POP_TOP"],
                [push, push, push, ("SWAP", 3), "POP_TOP", ("SWAP", 2), "POP_TOP", "POP_TOP"], [push, ("BUILD_TUPLE", 1), "POP_TOP"],
                [push, push, ("BUILD_TUPLE", 2), ("UNPACK_SEQUENCE", 2), "POP_TOP", "POP_TOP"], [("BUILD_LIST", 0), "POP_TOP"],
                [push, push, ("IS_OP", 0), "POP_TOP"], [push, push, ("COMPARE_OP", comparison(2)), "POP_TOP"]]
        self.put(self.place(self.insertable), self.rng.choice(ways))

    def shuffle_top(self):
        place = self.place(lambda inst: inst.name in PUSHES_VALUE, behind=True)
        ways = [[("COPY", 1), "POP_TOP"], [("COPY", 1), ("SWAP", 2), "POP_TOP"], [("COPY", 1), ("COPY", 1), "POP_TOP", "POP_TOP"],
                [("SWAP", 1)], [("COPY", 1), ("COPY", 2), ("SWAP", 3), "POP_TOP", "POP_TOP"]]
        self.put(place + 1, self.rng.choice(ways), self.insts[place])

    def swap_twice(self):
        depths = self.body.depths()
        place = self.place(lambda inst: self.insertable(inst) and depths.get(id(inst), 0) > 1)
        count = self.rng.randint(2, depths[id(self.insts[place])])
        self.put(place, [("SWAP", count), ("SWAP", count)])

    def swap_loads(self):
        place = self.place(lambda inst: inst.name in PURE_LOADS, behind=True)
        if self.insts[place + 1].name not in PURE_LOADS or place + 2 >= len(self.insts):
            raise LookupError
        one, other = self.insts[place:place + 2]  # what jumps here, and where exceptions go, stays as it is
        one.name, one.arg, other.name, other.arg = other.name, other.arg, one.name, one.arg
        self.put(place + 2, [("SWAP", 2)], self.insts[place])

    def split(self):
        place = self.place(lambda inst: inst.name in ("LOAD_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST", "RETURN_CONST"))
        inst = self.insts[place]
        if inst.name == "RETURN_CONST":
            rest, inst.name = inst.like("RETURN_VALUE"), "LOAD_CONST"
        else:
            words = inst.name.split("_")
            rest = inst.like("_".join(words[2:]), inst.arg & 15)
            inst.name, inst.arg = "_".join(words[:2]), inst.arg >> 4
        self.insts.insert(place + 1, rest)

    def merge(self):
        place = self.place(lambda inst: inst.name in ("LOAD_FAST", "STORE_FAST", "LOAD_CONST"), behind=True)
        inst, after = self.insts[place:place + 2]
        if any(other.target is after for other in self.insts) or any(other.handler and other.handler[0] is after for other in self.insts):
            raise LookupError
        if inst.name == "LOAD_CONST" and after.name == "RETURN_VALUE" and SINCE_312:
            inst.name = "RETURN_CONST"
        elif SINCE_313 and f"{inst.name}_{after.name}" in codes.opcode.opmap and max(inst.arg, after.arg) < 16:
            inst.name, inst.arg = f"{inst.name}_{after.name}", inst.arg << 4 | after.arg
        else:
            raise LookupError
        del self.insts[place + 1]

    def checked(self):
        self.insts[self.place(lambda inst: SINCE_312 and inst.name == "LOAD_FAST")].name = "LOAD_FAST_CHECK"

    def unbind(self):
        """A local is deleted in the middle; all that read it look whether it is there."""
        code = self.body.code
        own = [k for k, name in enumerate(code.co_varnames) if name not in code.co_cellvars]
        if not own or any(inst.name == "LOAD_FAST_AND_CLEAR" for inst in self.insts):
            raise LookupError
        local = self.rng.choice(own)
        if local == 0 and any(inst.name == "LOAD_SUPER_ATTR" for inst in self.insts):  # as in other_local
            raise LookupError
        while True:
            pairs = [k for k, inst in enumerate(self.insts) if inst.name in ("LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST")]
            if not pairs:
                break
            inst = self.insts[pairs[0]]
            rest = inst.like("LOAD_FAST", inst.arg & 15)
            inst.name, inst.arg = inst.name[:-10], inst.arg >> 4
            self.insts.insert(pairs[0] + 1, rest)
        for inst in self.insts:
            if SINCE_312 and inst.name == "LOAD_FAST" and inst.arg == local:
                inst.name = "LOAD_FAST_CHECK"
        self.put(self.place(self.insertable), [("DELETE_FAST", local)])

    def other_local(self):
        inst = self.insts[self.place(lambda inst: inst.name in ("LOAD_FAST", "LOAD_FAST_CHECK"))]
        code = self.body.code
        own = [k for k, name in enumerate(code.co_varnames) if name not in code.co_cellvars]
        # super() itself takes the frame's first local, and CPython's specialised form what is on the stack.
        if inst.arg not in own or inst.arg == 0 and any(other.name == "LOAD_SUPER_ATTR" for other in self.insts):
            raise LookupError
        inst.name, inst.arg = "LOAD_FAST_CHECK" if SINCE_312 else "LOAD_FAST", self.rng.choice(own)

    def other_constant(self):
        inst = self.insts[self.place(lambda inst: inst.name in ("LOAD_CONST", "RETURN_CONST") and not self.is_special(inst.arg))]
        if any(after.name == "SEND" for after in self.insts[self.insts.index(inst):][1:2]):  # nothing but None starts a generator
            raise LookupError
        inst.arg = self.rng.choice([k for k in range(len(self.body.code.co_consts)) if not self.is_special(k)])

    def is_special(self, number):
        """Constants that only certain instructions may see: code and tuples of names."""
        return isinstance(self.body.code.co_consts[number], (types.CodeType, tuple))

    def other_operator(self):
        place = self.place(lambda inst: inst.name in ("BINARY_OP", "COMPARE_OP", "IS_OP", "CONTAINS_OP"))
        inst = self.insts[place]
        if inst.name == "BINARY_OP":  # not those that make big numbers
            inst.arg = self.rng.choice((0, 1, 2, 6, 7, 10, 11, 12, 13, 14, 15, 19, 20, 23, 25))
        elif inst.name == "COMPARE_OP":
            inst.arg = comparison(self.rng.randrange(6)) | (inst.arg & 16 if SINCE_313 else 0)
        else:
            inst.arg ^= 1

    def other_condition(self):
        # except* asks whether there is something left to raise: None must not be raised.
        star = any(inst.name == "PREP_RERAISE_STAR" or inst.name == "CALL_INTRINSIC_2" and inst.arg == 1 for inst in self.insts)
        inst = self.insts[self.place(lambda inst: inst.name.startswith("POP_JUMP") and not (star and inst.name.endswith("NONE")))]
        ending = inst.name[inst.name.index("IF_"):]
        inst.name = inst.name.replace(ending, CONDITIONS[ending])

    def trampoline(self):
        """A jump goes to the end of the code first."""
        inst = self.insts[self.place(lambda inst: inst.is_jump() and inst.name not in ("FOR_ITER", "SEND"))]
        if "BACKWARD" in inst.name and self.rng.random() < 0.5:
            raise LookupError
        middle = inst.like("JUMP_BACKWARD", 0, inst.target)
        inst.target = middle
        self.insts.append(middle)

    def out_of_line(self):
        """Some instructions go to the end of the code."""
        start = self.place(lambda inst: inst.name in MOVABLE)
        end = start
        while end < len(self.insts) and end - start < 5 and self.insts[end].name in MOVABLE and (end == start or self.rng.random() < 0.7):
            end += 1
        if end >= len(self.insts) or codes.is_glued(self.insts[end - 1], self.insts[end]) or not self.insertable(self.insts[end]):
            raise LookupError
        moved = self.insts[start:end]
        following = self.insts[end]
        self.insts[start:end] = [moved[0].like("JUMP_FORWARD", 0, moved[0])]
        self.insts += moved + [moved[-1].like("JUMP_BACKWARD", 0, following)]

    def jump_to_next(self):
        place = self.place(self.insertable)
        self.insts.insert(place, self.insts[place].like("JUMP_FORWARD", 0, self.insts[place]))

    def no_interrupt(self):
        self.insts[self.place(lambda inst: inst.name == "JUMP_BACKWARD")].name = "JUMP_BACKWARD_NO_INTERRUPT"

    def handler(self):
        """Instructions get a handler that raises again, in one of several ways."""
        depths = self.body.depths()
        def known(inst):
            return id(inst) in depths and codes.pops(inst) is not None
        start = self.place(known)
        outer = self.insts[start].handler
        end = start
        while end < len(self.insts) and end - start < 8 and self.insts[end].handler == outer and known(self.insts[end]):
            end += 1
        kept = min(depths[id(inst)] - codes.pops(inst) for inst in self.insts[start:end])
        if outer and kept < outer[1]:
            raise LookupError
        lasti = self.rng.random() < 0.5
        ways = [["RERAISE"], ["PUSH_EXC_INFO", ("SWAP", 2), "POP_EXCEPT", "RERAISE"], ["PUSH_EXC_INFO", ("COPY", 1), "POP_TOP", ("SWAP", 2), "POP_EXCEPT", "RERAISE"]]
        if lasti:
            ways = [[("RERAISE", 1)], ["PUSH_EXC_INFO", ("SWAP", 2), "POP_EXCEPT", ("RERAISE", 1)], [("SWAP", 2), "POP_TOP", "RERAISE"],
                    ["PUSH_EXC_INFO", ("COPY", 2), "POP_EXCEPT", ("RERAISE", 2)]]
        handler = [self.insts[start].like(*(name if isinstance(name, tuple) else (name,))) for name in self.rng.choice(ways)]
        for inst in handler:
            inst.handler = outer
        for inst in self.insts[start:end]:
            inst.handler = (handler[0], kept, lasti)
        self.insts += handler

    def positions(self):
        place = self.rng.randrange(len(self.insts))
        shift = self.rng.choice((None, 0, 1, -3, 100, 5000))
        for inst in self.insts[place:place + self.rng.randint(1, 6)]:
            line = inst.position[0]
            inst.position = (None,) * 4 if shift is None or line is None else (max(1, line + shift), None, None, None) if self.rng.random() < 0.3 \
                else (max(1, line + shift), max(1, line + shift) + 1, 3, 7)

    def header(self):
        code = self.body.code
        self.replaced.update(self.rng.choice([
            {"co_name": "renamed", "co_qualname": "X.renamed"}, {"co_firstlineno": code.co_firstlineno + self.rng.randint(0, 50)},
            {"co_flags": code.co_flags ^ 0x10}, {"co_flags": code.co_flags ^ 0x1000000}, {"co_filename": "<elsewhere>"},
            {"co_names": tuple(self.rng.sample(code.co_names, len(code.co_names)))} if self.rng.random() < 0.3 else {},
            {"co_consts": code.co_consts + (1.5, "more")}, {"co_names": code.co_names + ("more",)}]))


CHANGES = [getattr(Changer, name) for name, value in list(vars(Changer).items())
           if isinstance(value, types.FunctionType) and name not in ("__init__", "place", "put", "constant", "insertable", "is_special")]


def mutate(code, seed, only=None, made=None):
    """The code object with changes to it and those nested in it. only: the changes to make, as [name of the code object, number];
    made: a list that gets those that were made."""
    made = [] if made is None else made
    nested = [mutate(value, seed, only, made) if isinstance(value, types.CodeType) else value for value in code.co_consts]
    code = code.replace(co_consts=tuple(nested))
    changer, before = Changer(codes.Body(code), None), len(made)
    for number in range(random.Random(f"{seed} {code.co_qualname}").choice((0, 1, 2, 4, 8, 16))):
        if only is not None and [code.co_qualname, number] not in only:
            continue
        # Each change has a generator of its own, so that it stays the same when others are left out.
        changer.rng = random.Random(f"{seed} {code.co_qualname} {number}")
        try:
            changer.rng.choice(CHANGES)(changer)
            made.append([code.co_qualname, number])
        except LookupError:  # nothing that it fits
            pass
        except ValueError:
            break
    if len(made) == before:
        return code
    for inst, after in zip(changer.insts, changer.insts[1:]):
        if after.name in ("PRECALL", "CALL") and codes.is_glued(inst, after):  # either may be the one that makes the call
            after.position = inst.position
    try:
        depth = max(changer.body.depths().values())
    except ValueError:  # changes that do not go together
        return code
    return changer.body.build(changer.rng, co_stacksize=max(code.co_stacksize, depth + 4) + changer.rng.choice((0, 0, 1, 20)), **changer.replaced)


def planned(text, seed):
    """The changes that a program's code objects get, as `only` wants them."""
    made = []
    mutate(compile(text, "<program>", "exec", dont_inherit=True), seed, None, made)
    return made
