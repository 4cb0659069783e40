"""A part of CPython's own test package has the same failures under dynvm's evaluator as under CPython's (normally none)."""
import os
import re
import sys
import unittest

import vm_case

MODULES = """test_grammar test_generators test_coroutines test_exceptions test_scope test_with test_class test_descr
test_dict test_list test_iter test_call test_extcall test_unpack test_unpack_ex test_patma test_except_star test_asyncgen
test_traceback test_sys_settrace test_sys_setprofile test_threading test_gc test_weakref test_dataclasses test_functools
test_contextlib test_super test_property test_inspect test_raise test_opcodes test_opcache test_compile test_frame
test_yield_from test_exception_group test_keywordonlyarg test_positional_only_arg test_named_expressions test_fstring
test_range test_augassign test_compare test_contains test_int test_float test_funcattrs test_decorators test_enum
test_metaclass test_module test_slice test_set test_string test_tuple test_typing test_userdict test_warnings test_operator
test_copy test_collections test_heapq test_itertools test_pdb test_bdb test_profile test_cprofile""".split()
# From 3.12 on.
NEWER = "test_monitoring test_type_params test_listcomps".split() if sys.version_info >= (3, 12) else []
QUICK = """test_grammar test_generators test_coroutines test_exceptions test_scope test_with test_class test_descr test_extcall
test_patma test_except_star test_asyncgen test_traceback test_sys_settrace test_sys_setprofile test_gc test_super
test_opcache test_frame test_dataclasses""".split()


# Tests that look for instructions which CPython's own evaluator has written over others.
SPECIALISER = ("test_no_unwind_for_shim_frame",)
if sys.version_info >= (3, 13):
    MODULES.remove("test_opcache")
    QUICK.remove("test_opcache")


@unittest.skipUnless(vm_case.available(), "the test module of the evaluator is not built")
class CPythonTests(unittest.TestCase):
    """One test for each module."""


def outcome(module, mode):
    status, out, err = vm_case.run(["-m", "test", "-v", module], mode, timeout=600)
    failures = sorted(set(re.findall(r"^(?:FAIL|ERROR): .*$", out + err, re.MULTILINE)))
    others = [line for line in failures if not any(name in line for name in SPECIALISER)]
    return (status if others or not failures else 0), others


def add(module):
    def test(self):
        got = outcome(module, "vm")
        if got != (0, []):  # only then is stock's result needed
            self.assertEqual(outcome(module, "stock"), got)

    setattr(CPythonTests, module, test)


for name in (MODULES if os.environ.get("DYNVM_TEST_FULL") == "1" else QUICK) + NEWER:
    add(name)
