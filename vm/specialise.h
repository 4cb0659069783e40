// Choosing specialised forms for instructions of fast code.
//
// Purpose: looks at the operands of a generic instruction that has run a few times and rewrites its handler and cache.
// Inputs: an Inst of fast code and the operands it is about to see (borrowed). Outputs: the Inst, its handler changed when a form
//   fits, its state set to the number of misses that the form may have, or else to the executions until the next look.
// Invariants: a form checks everything that it relies on; nothing is written outside the code object's own instructions.
// Tests: tests/vm/scripts/.
#pragma once

#include "runtime/base/heuristics.h"
#include "vm/decode.h"

namespace dynvm::vm {

inline uint16_t misses() { return static_cast<uint16_t>(base::heuristics().vm_misses); }
inline uint16_t look_again() { return static_cast<uint16_t>(base::heuristics().vm_look_again); }
inline uint16_t after_giving_up() { return static_cast<uint16_t>(base::heuristics().vm_after_giving_up); }
inline constexpr int kMostMapped = 7;          // keywords of a specialised call

// `name`: the instruction's.
void specialise_load_global(Inst* inst, PyObject* name, PyObject* globals, PyObject* builtins);
void specialise_load_attr(Inst* inst, PyObject* name, PyObject* owner, Code* code);
void specialise_load_method(Inst* inst, PyObject* name, PyObject* owner, Code* code);
void specialise_store_attr(Inst* inst, PyObject* name, PyObject* owner);
void specialise_binary_op(Inst* inst, PyObject* left, PyObject* right, PyObject** locals);
void specialise_binary_locals(Inst* inst, PyObject* left, PyObject* right, int op, bool constant);
void specialise_compare_locals(Inst* inst, PyObject* left, PyObject* right, bool constant);
void specialise_subscr_locals(Inst* inst, PyObject* container, PyObject* key, bool constant);
void specialise_compare(Inst* inst, PyObject* left, PyObject* right, bool jump);
void specialise_subscr(Inst* inst, PyObject* container, PyObject* key);
void specialise_store_subscr(Inst* inst, PyObject* container, PyObject* key);
void specialise_unpack(Inst* inst, PyObject* sequence);
void specialise_for_iter(Inst* inst, PyObject* iterator);
void specialise_contains(Inst* inst, PyObject* container);
// A call of `code`; base is the lower of the two slots below the arguments (cpython::Callee).
void specialise_call(Inst* inst, PyCodeObject* code, PyObject** base);

// Types of iterators that have no public name.
extern PyTypeObject *g_range_iterator, *g_list_iterator, *g_tuple_iterator;
// Builtins that calls are specialised for (borrowed).
extern PyObject *g_len, *g_isinstance, *g_list_append;
extern PyObject* g_empty_tuple;
[[nodiscard]] bool prepare_specialisation();

}  // namespace dynvm::vm
