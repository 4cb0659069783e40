"""Decoded instructions against dis, for every function of a part of the standard library and of the test scripts."""
import dis
import glob
import importlib
import os
import sys
import types
import unittest

import vm_case

sys.path.insert(0, vm_case.MODULE)
if vm_case.available():
    import _dynvm_vm as vm
FOLDED = {"EXTENDED_ARG", "KW_NAMES", "PRECALL", "CACHE"}
# What a version's instructions are here where it is not the same name: ((name, argument), ...), more than one where it is decoded to
# several.
RENAMED = {
    "LOAD_FAST_CHECK": lambda arg: (("LoadFast", arg),),
    "LOAD_ATTR": lambda arg: (("LoadMethod" if arg & 1 else "LoadAttr", arg >> 1),),
    "COMPARE_OP": lambda arg: (("CompareOp", arg >> 4),),
    "RETURN_CONST": lambda arg: (("LoadConst", arg), ("ReturnValue", 0)),
    "BINARY_SLICE": lambda arg: (("BuildSlice", 2), ("BinarySubscr", 0)),
    "STORE_SLICE": lambda arg: (("BuildSlice", 2), ("StoreSubscr", 0)),
    "END_FOR": lambda arg: (("Nop", arg),),
    "CALL_INTRINSIC_1": lambda arg: (({4: "AsyncGenWrap", 5: "UnaryPositive", 6: "ListToTuple"}.get(arg, "CallIntrinsic1"),
                                      0 if arg in (4, 5, 6) else arg),),
    "CALL_INTRINSIC_2": lambda arg: (("PrepReraiseStar", 0) if arg == 1 else ("CallIntrinsic2", arg),),
} if sys.version_info >= (3, 12) else {}
if sys.version_info >= (3, 13):
    RENAMED.update({
        "COMPARE_OP": lambda arg: (("CompareOp", arg >> 5), ("ToBool", 0)) if arg & 16 else (("CompareOp", arg >> 5),),
        "END_FOR": lambda arg: (("PopTop", arg),),
        "FORMAT_SIMPLE": lambda arg: (("FormatValue", 0),),
        "FORMAT_WITH_SPEC": lambda arg: (("FormatValue", 4),),
        "LOAD_FAST_LOAD_FAST": lambda arg: (("LoadFast", arg >> 4), ("LoadFast", arg & 15)),
        "STORE_FAST_LOAD_FAST": lambda arg: (("StoreFast", arg >> 4), ("LoadFast", arg & 15)),
        "STORE_FAST_STORE_FAST": lambda arg: (("StoreFast", arg >> 4), ("StoreFast", arg & 15)),
        "CALL_KW": lambda arg: (("Call", arg),),
    })
# Jumps go beyond what stands at their targets: that is part of them.
SKIPS = {"FOR_ITER": 2 if sys.version_info >= (3, 13) else 1, "SEND": 1} if sys.version_info >= (3, 12) else {}
SECOND_HALF = 1 << 28


def names_of(instruction):
    name, arg = instruction.opname, instruction.arg or 0
    if name in RENAMED:
        return RENAMED[name](arg)
    if name.startswith("POP_JUMP_"):
        name = name.replace("_FORWARD", "").replace("_BACKWARD", "")
    return (("".join(word.capitalize() for word in name.split("_")), arg),)


def all_codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from all_codes(constant)


@unittest.skipUnless(vm_case.available(), "the test module of the evaluator is not built")
class Decode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        vm.install()

    def check(self, code):
        expected, starts, start, names = [], {}, None, None
        instructions = [i for i in dis.get_instructions(code, adaptive=False) if i.opname != "CACHE"]
        for place, instruction in enumerate(instructions):
            if start is None:
                start = instruction.offset // 2
            following = [i.opname for i in instructions[place + 1:place + 5] if i.opname != "EXTENDED_ARG"]
            names_call = instruction.opname == "LOAD_CONST" and following[:1] == ["CALL_KW"]
            if instruction.opname == "KW_NAMES" or names_call:
                names = code.co_consts[instruction.arg]
            if instruction.opname in FOLDED or names_call:
                continue
            target = instruction.argval // 2 + SKIPS.get(instruction.opname, 0) if instruction.opcode in dis.hasjrel else -1
            starts[instruction.offset // 2] = start
            for unit in range(start, instruction.offset // 2):
                starts[unit] = start
            is_call = instruction.opname in ("CALL", "CALL_KW")
            for half, (name, arg) in enumerate(names_of(instruction)):
                expected.append((instruction.offset // 2 | SECOND_HALF if half else start, name, arg, instruction.offset // 2,
                                 target, names if is_call else None, True))
            if is_call:
                names = None
            start = None
        expected = [row[:4] + (starts.get(row[4], -1),) + row[5:] for row in expected]
        for plain in (0, 1):
            got = vm.decode(code, plain)
            self.assertEqual([row[1].lower() for row in got], [row[1].lower() for row in expected], code)
            self.assertEqual([row[:1] + row[2:] for row in got], [row[:1] + row[2:] for row in expected], code)

    def test_standard_library(self):
        for name in ("argparse", "asyncio.base_events", "collections", "dataclasses", "inspect", "typing", "unittest.mock",
                     "contextlib", "re._parser", "tarfile", "_pydecimal"):
            with open(importlib.import_module(name).__file__) as file:
                for code in all_codes(compile(file.read(), name, "exec")):
                    self.check(code)

    def test_scripts(self):
        for path in glob.glob(os.path.join(vm_case.FOLDER, "scripts", "*.py")):
            with open(path) as file:
                for code in all_codes(compile(file.read(), path, "exec")):
                    self.check(code)

    def test_extended_arguments(self):
        source = "def f(n):\n" + "".join(f"  v{i} = {i}\n" for i in range(300)) + "  while n:\n" + \
                 "".join(f"    v{i} += n\n" for i in range(300)) + "    n -= 1\n"
        for code in all_codes(compile(source, "extended", "exec")):
            self.check(code)

    def test_loops(self):
        def f(n):
            for i in range(n):
                while i:
                    i -= 1
                    if i == 3:
                        continue
            return n
        code = f.__code__
        headers = {row[4] for row in vm.decode(code, 0) if row[1].startswith(("JumpBackward", "PopJump")) and row[4] <= row[0] and row[4] >= 0}
        found = {vm.enclosing_loop(code, row[0]) for row in vm.decode(code, 0)}
        self.assertEqual(found, headers | {-1})
