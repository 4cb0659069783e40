// What compiled traces call: the operations of ir/ops.def that run Python or the C API, one function each.
//
// Inputs: borrowed operands. Outputs: new references. Semantics and error texts are those of the bytecode instruction that the op stands
// for. Null or -1 with a Python exception, unless said otherwise.
// Tests: tests/exec/test_objects.py.
#pragma once

#include <Python.h>

#include <cstdint>

#include "codegen/trace/helper_table.h"

namespace dynvm::runtime {

namespace helpers {

// --- numbers.cpp
PyObject* box_int(int64_t value);
PyObject* box_float(int64_t bits);
int pow_float(int64_t base, int64_t exponent, int64_t* result);   // 1: leave
int unbox_int(PyObject* exact_int, int64_t* result);              // 1: does not fit

// --- operators.cpp
PyObject* call(PyObject** callable_and_arguments, int64_t count, PyObject* names);
PyObject* call_ex(PyObject* callable, PyObject* arguments, PyObject* keywords);
PyObject* binary(PyObject* left, PyObject* right, int64_t oparg);
PyObject* unary(PyObject* operand, int64_t which);
PyObject* compare(PyObject* left, PyObject* right, int64_t op);
int contains(PyObject* container, PyObject* value);
int is_true(PyObject* object);
PyObject* get_attr(PyObject* object, PyObject* name);
int set_attr(PyObject* object, PyObject* name, PyObject* value);
PyObject* get_item(PyObject* object, PyObject* key);
int set_item(PyObject* object, PyObject* key, PyObject* value);
PyObject* get_iter(PyObject* object);
int iter_next(PyObject* iterator, PyObject** item);               // 0 and null at the end
PyObject* format_value(PyObject* value, PyObject* spec, int64_t conversion);

// --- containers.cpp
PyObject* build_tuple(PyObject** items, int64_t count);
PyObject* build_list(PyObject** items, int64_t count);
PyObject* build_map(PyObject** pairs, int64_t count);
PyObject* build_set(PyObject** items, int64_t count);
PyObject* build_string(PyObject** items, int64_t count);
PyObject* build_slice(PyObject* start, PyObject* stop, PyObject* step);
PyObject* build_cell(PyObject* content);
PyObject* bind_method(PyObject* function, PyObject* self);
// code, globals, defaults, kwdefaults, annotations, closure; the last four may be null or missing.
PyObject* make_function(PyObject** parts, int64_t count);
PyObject* generator_at(PyObject** parts, int64_t count);
// The evaluator's, set by its client: function, code unit to go on at, local variables and value stack, their number (vm/objects.h).
using SuspendedGenerator = PyObject* (*)(PyFunctionObject*, int, PyObject* const*, int);
extern SuspendedGenerator suspended_generator;
PyObject* tensor_instance(PyObject** parts, int64_t count);
PyObject* build_instance(PyObject** parts, int64_t count);
PyObject* dict_view(PyObject* dict, int64_t which);
PyObject* iter_at(PyObject** parts, int64_t count);
int dict_has_keys(PyObject* dict, PyObject* keys);               // raises nothing
PyObject* dict_get(PyObject* dict, PyObject* key);                // null: missing, no exception
int dict_set(PyObject* dict, PyObject* key, PyObject* value);
int dict_merge(PyObject* dict, PyObject* other);
int list_append(PyObject* list, PyObject* item);
int list_extend_list(PyObject* list, PyObject* items);
PyObject* unpack(PyObject* iterable, int64_t count);
PyObject* dict_of(PyObject* object);                              // borrowed; null without a dict, no exception

// --- imports.cpp
PyObject* import_name(PyObject* name, PyObject* globals, PyObject* from_list, PyObject* level);
PyObject* import_from(PyObject* module, PyObject* name);

}  // namespace helpers

// Addresses and shapes by op; the entries of the torch bridge are left null.
const codegen::HelperTable& helper_table();

}  // namespace dynvm::runtime
