// The running CPython's internals, by one set of names for all versions.
//
// Purpose: the only way for the rest of vm/ to reach CPython-internal headers; no other file knows which version it is compiled for.
// Inputs: PY_VERSION_HEX. Outputs: namespace dynvm::vm::cpython.
//
// What a version file (311.h, 312.h, 313.h with its .cpp and _opcodes.def) says, because versions differ in it:
//   encoding   the opcode table: number, internal instruction, inline cache, jump; instructions that depend on their argument
//              (the method bit of LOAD_ATTR, CALL_INTRINSIC_1), that are two internal ones (RETURN_CONST), that are prefixes
//              (EXTENDED_ARG, KW_NAMES); what CPython's specialiser and sys.monitoring have written over an instruction
//   position   what a frame keeps: the unit before the next one (prev_instr) or the present one (instr_ptr)
//   entry      what links an entry of the evaluator into the thread (cframe, current_frame), which recursion is counted, and who
//              clears the frame that the evaluator was entered with: kEvaluatorEndsFrames
//   breaker    where requests to look up are kept, and how tracing or monitoring of this thread is noticed
//   stack      which of the two slots below a call's arguments holds the callable: Callee
//   objects    reference counts (immortal ones), ints, floats and their free list, inline values of instances, range iterators
//   hidden     what libpython does not export: by public functions, of our own, or by code of one instruction that CPython's
//              evaluator runs (a hidden call: its frame counts as incomplete, so nobody sees it)
// common.h has what is the same for all of them, in terms of the above.
// Tests: tests/vm/, built for each version.
#pragma once

#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1  // before Python.h: internal headers refuse to be included without it
#endif
#ifndef Py_BUILD_CORE_MODULE
#define Py_BUILD_CORE_MODULE 1  // the thread state is asked for by a function: its variable is hidden
#endif
#include <Python.h>

#include <cstdint>
#include <utility>

struct _PyInterpreterFrame;
namespace dynvm::vm {
enum class Op : uint16_t;
}
namespace dynvm::vm::cpython {
using Frame = _PyInterpreterFrame;
}

#if PY_VERSION_HEX >> 16 == 0x030b
#include "vm/cpython/311.h"
#define DYNVM_CPYTHON_OPCODES "vm/cpython/311_opcodes.def"
#elif PY_VERSION_HEX >> 16 == 0x030c
#include "vm/cpython/312.h"
#define DYNVM_CPYTHON_OPCODES "vm/cpython/312_opcodes.def"
#elif PY_VERSION_HEX >> 16 == 0x030d
#include "vm/cpython/313.h"
#define DYNVM_CPYTHON_OPCODES "vm/cpython/313_opcodes.def"
#else
#error "dynvm's evaluator has no vm/cpython/ file for this CPython version yet"
#endif
#include "vm/cpython/common.h"
