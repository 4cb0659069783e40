"""Code objects as lists of instructions, and back.

Purpose: what mutate.py changes and assemble.py makes. Inputs: a code object. Outputs: Body, and by build() a code object with its line
  and exception tables. Invariants: build(Body(code)) does what code does. Opcodes, caches and jumps come from opcode and dis, so each
  version has its own.
Tests: test_codes.py.
"""

import dis
import opcode
import sys

EXTENDED = opcode.opmap["EXTENDED_ARG"]
_CACHES = opcode._inline_cache_entries
JUMPS = {opcode.opname[op] for op in opcode.hasjrel}
# Instructions that stand directly behind another one: (name, names that may stand before it), or all of these names.
_GLUED = {"RESUME": ("YIELD_VALUE",), "CALL": ("KW_NAMES", "PRECALL"), "PRECALL": ("KW_NAMES",),
          "POP_TOP": ("END_FOR",) if sys.version_info >= (3, 13) else ()}


def caches(op):
    if isinstance(_CACHES, dict):
        return _CACHES.get(opcode.opname[op], 0)
    return _CACHES[op]


class Inst:
    """One instruction. target: the Inst that a jump goes to; handler: (Inst, depth, lasti) of an exception raised here; prefixes: how many
    EXTENDED_ARG it has at least; position: (line, end line, column, end column), any of them None."""

    def __init__(self, name, arg=0, target=None, handler=None, position=(None,) * 4):
        self.name, self.arg, self.target, self.handler, self.position = name, arg, target, handler, position
        self.prefixes = 0

    def like(self, name, arg=0, target=None):
        """Another instruction that stands where this one does."""
        return Inst(name, arg, target, self.handler, self.position)

    def is_jump(self):
        return self.name in JUMPS

    def ends_block(self):
        return self.name in ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD",
                             "JUMP_BACKWARD_NO_INTERRUPT")

    def __repr__(self):
        return f"{self.name} {self.arg}"


# How many values an instruction takes from the stack, pushed back ones too: (of any argument, and for each unit of it). Where an exception goes,
# fewer must be kept than are left then.
_POPS = {"NOP": (0, 0), "LOAD_FAST": (0, 0), "LOAD_FAST_CHECK": (0, 0), "LOAD_CONST": (0, 0), "LOAD_GLOBAL": (0, 0), "LOAD_DEREF": (0, 0),
         "PUSH_NULL": (0, 0), "DELETE_FAST": (0, 0), "JUMP_FORWARD": (0, 0), "JUMP_BACKWARD": (0, 0), "LOAD_FAST_LOAD_FAST": (0, 0),
         "POP_TOP": (1, 0), "STORE_FAST": (1, 0), "UNARY_NEGATIVE": (1, 0), "UNARY_NOT": (1, 0), "UNARY_INVERT": (1, 0), "TO_BOOL": (1, 0),
         "LOAD_ATTR": (1, 0), "LOAD_METHOD": (1, 0), "UNPACK_SEQUENCE": (1, 0), "GET_ITER": (1, 0), "RAISE_VARARGS": (0, 1), "BINARY_OP": (2, 0),
         "COMPARE_OP": (2, 0), "IS_OP": (2, 0), "CONTAINS_OP": (2, 0), "BINARY_SUBSCR": (2, 0), "STORE_ATTR": (2, 0), "STORE_SUBSCR": (3, 0),
         "BUILD_TUPLE": (0, 1), "BUILD_LIST": (0, 1), "BUILD_SET": (0, 1), "BUILD_STRING": (0, 1), "BUILD_MAP": (0, 2), "COPY": (0, 1),
         "SWAP": (0, 1), "PRECALL": (1, 1), "CALL": (1, 1) if sys.version_info >= (3, 12) else (1, 0), "RETURN_VALUE": (1, 0), "POP_EXCEPT": (1, 0), "PUSH_EXC_INFO": (1, 0)}


def pops(inst):
    """How many values an instruction takes, or None where it is not known."""
    fixed, each = _POPS.get(inst.name, (1, 0) if "POP_JUMP" in inst.name else (None, 0))
    return None if fixed is None else fixed + each * inst.arg


def is_glued(before, inst):
    return before is not None and before.name in _GLUED.get(inst.name, ())


def effect(inst, jump):
    """What an instruction does to the stack's depth. Behind RETURN_GENERATOR the value that was sent is on the stack."""
    if inst.name == "RETURN_GENERATOR":
        return 1
    return dis.stack_effect(opcode.opmap[inst.name], inst.arg if opcode.opmap[inst.name] >= opcode.HAVE_ARGUMENT else None, jump=jump)


class Body:
    """The instructions of a code object."""

    def __init__(self, code):
        self.code = code
        self.insts = []
        raw, positions = code.co_code, list(code.co_positions())
        starts, jumps, place, start, extended = {}, [], 0, 0, 0
        while place < len(raw):
            op, arg = raw[place], raw[place + 1] | extended
            if op == EXTENDED:
                extended = arg << 8
                place += 2
                continue
            behind = place + 2 + 2 * caches(op)
            inst = Inst(opcode.opname[op], arg, position=positions[place // 2])
            for unit in range(start, behind, 2):
                starts[unit] = inst
            if inst.is_jump():
                jumps.append((inst, behind + 2 * arg * (-1 if "BACKWARD" in inst.name else 1)))
            self.insts.append(inst)
            place = start = behind
            extended = 0
        for inst, target in jumps:
            inst.target = starts[target]
        for entry in dis._parse_exception_table(code):
            for place in range(entry.start, entry.end, 2):
                starts[place].handler = (starts[entry.target], entry.depth, entry.lasti)

    def depths(self):
        """id of an instruction -> stack depth before it, for those that can be reached; ValueError when paths disagree."""
        places = {id(inst): place for place, inst in enumerate(self.insts)}
        found, work = {}, [(self.insts[0], 0)]
        while work:
            inst, depth = work.pop()
            if id(inst) in found:
                if found[id(inst)] != depth:
                    raise ValueError(f"depth {depth} or {found[id(inst)]} at {inst}")
                continue
            if depth < (pops(inst) or 0):
                raise ValueError(f"too little on the stack at {inst}")
            found[id(inst)] = depth
            if inst.handler is not None:
                target, kept, lasti = inst.handler
                if kept > depth:
                    raise ValueError(f"handler of {inst} keeps {kept} of {depth}")
                work.append((target, kept + lasti + 1))
            if inst.is_jump():
                work.append((inst.target, depth + effect(inst, True)))
            if not inst.ends_block():
                following = self.insts[places[id(inst)] + 1] if places[id(inst)] + 1 < len(self.insts) else None
                if following is None:
                    raise ValueError("the code runs over its end")
                work.append((following, depth + effect(inst, False)))
        return found

    def build(self, rng=None, **replaced):
        """The code object. rng: entries of tables are cut and written in one of their forms, as it says."""
        offsets, units = self._layout()
        raw = bytearray()
        for inst in self.insts:
            name, arg, prefixes = self._encoding(inst, offsets)
            for shift in range(prefixes, 0, -1):
                raw += bytes((EXTENDED, arg >> 8 * shift & 255))
            raw += bytes((opcode.opmap[name], arg & 255)) + bytes(2 * caches(opcode.opmap[name]))
        return self.code.replace(co_code=bytes(raw), co_linetable=self._line_table(units, rng, replaced.get("co_firstlineno")),
                                 co_exceptiontable=self._exception_table(offsets, units, rng), **replaced)

    # ---- layout

    def _layout(self):
        """(id -> first unit, id -> units) with as many prefixes as the jumps need."""
        units = {id(inst): 1 + inst.prefixes + caches(opcode.opmap[inst.name]) for inst in self.insts}
        while True:
            offsets, place = {}, 0
            for inst in self.insts:
                offsets[id(inst)] = place
                place += units[id(inst)]
            self.offsets, self.units, grown = offsets, units, False
            for inst in self.insts:
                name, _, prefixes = self._encoding(inst, offsets)
                size = 1 + prefixes + caches(opcode.opmap[name])
                if size > units[id(inst)]:
                    units[id(inst)] = size
                    grown = True
            if not grown:
                return offsets, units

    def _encoding(self, inst, offsets):
        """(name, argument, prefixes) of an instruction; jumps take the form of their direction."""
        name, arg = inst.name, inst.arg
        if inst.is_jump():
            distance = offsets[id(inst.target)] - offsets[id(inst)] - self.units[id(inst)]
            backward = distance < 0
            if "BACKWARD" in name and not backward:
                name = "JUMP_FORWARD" if name.startswith("JUMP_") else name.replace("BACKWARD", "FORWARD")
            elif "FORWARD" in name and backward:
                name = name.replace("FORWARD", "BACKWARD")
            elif backward and "BACKWARD" not in name:
                raise ValueError(f"{name} cannot go back")
            arg = abs(distance)
        needed = (arg > 0xff) + (arg > 0xffff) + (arg > 0xffffff)
        # An instruction never gets smaller: else the layout might not settle.
        return name, arg, max(needed, inst.prefixes, self.units[id(inst)] - 1 - caches(opcode.opmap[name]))

    # ---- tables

    def _exception_table(self, offsets, units, rng):
        entries = []
        for inst in self.insts:
            if inst.handler is None:
                continue
            target, depth, lasti = inst.handler
            start, size = offsets[id(inst)], units[id(inst)]
            last = entries[-1] if entries else None
            if last and last[0] + last[1] == start and last[2:] == [target, depth, lasti] and not (rng and rng.random() < 0.2):
                last[1] += size
            else:
                entries.append([start, size, target, depth, lasti])
        table = bytearray()
        for start, size, target, depth, lasti in entries:
            for number, value in enumerate((start, size, offsets[id(target)], depth << 1 | lasti)):
                pieces = [value & 63]
                while value := value >> 6:
                    pieces.append(value & 63 | 64)
                pieces.reverse()
                # The high bits come first; all but the last have the mark that more follow.
                pieces = [piece & 63 | (64 if k + 1 < len(pieces) else 0) for k, piece in enumerate(pieces)]
                pieces[0] |= 128 if number == 0 else 0
                table += bytes(pieces)
        return bytes(table)

    def _line_table(self, units, rng, first):
        line = first or self.code.co_firstlineno
        table = bytearray()
        for inst in self.insts:
            size = units[id(inst)]
            brief = rng and size <= 8 and inst.name not in ("PRECALL", "CALL", "KW_NAMES") and rng.random() < 0.05
            while size > 0:
                part = min(size, 8)
                size -= part
                here, end, column, end_column = inst.position
                if here is None:
                    table.append(0x80 | 15 << 3 | part - 1)
                elif column is None or end is None or end_column is None or brief:
                    table.append(0x80 | 13 << 3 | part - 1)
                    table += _signed(here - line)
                else:
                    table.append(0x80 | 14 << 3 | part - 1)
                    table += _signed(here - line) + _unsigned(end - here) + _unsigned(column + 1) + _unsigned(end_column + 1)
                if here is not None:
                    line = here
        return bytes(table)


def _unsigned(value):
    out = bytearray()
    while value >= 64:
        out.append(value & 63 | 64)
        value >>= 6
    out.append(value)
    return out


def _signed(value):
    return _unsigned(-value << 1 | 1 if value < 0 else value << 1)
