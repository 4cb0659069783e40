// Bodies of instructions that need no view of the evaluator's registers.
//
// Purpose: the parts of instructions that are plain functions of their operands. Inputs: borrowed objects unless said otherwise.
// Outputs: new references; nullptr, -1 or false with an exception set. Invariants: error texts are CPython's.
// Tests: tests/vm/scripts/.
#pragma once

#include "vm/cpython/cpython.h"

namespace dynvm::vm {

extern const binaryfunc kBinaryOperators[26];  // by NB_ number

// Unpacks into stack slots below `top` (first item highest). after < 0: exactly `before` items; else a starred target between.
[[nodiscard]] bool unpack_iterable(PyObject* sequence, int before, int after, PyObject** top);

[[nodiscard]] PyObject* dict_from_items(PyObject* const* keys, Py_ssize_t key_step, PyObject* const* values,
                                        Py_ssize_t value_step, Py_ssize_t count);

void raise_unbound(PyCodeObject* code, int local);              // for LoadFast and cells
void raise_name_error(PyObject* name);                          // name '...' is not defined
// Item of a mapping, new reference; nullptr without exception when absent.
[[nodiscard]] PyObject* load_from_mapping(PyObject* mapping, PyObject* name);
[[nodiscard]] PyObject* load_name(cpython::Frame* frame, PyObject* name);
[[nodiscard]] PyObject* load_global(cpython::Frame* frame, PyObject* name);
[[nodiscard]] PyObject* load_classderef(cpython::Frame* frame, int local);
[[nodiscard]] PyObject* load_build_class(cpython::Frame* frame);
[[nodiscard]] bool setup_annotations(cpython::Frame* frame);

[[nodiscard]] PyObject* import_name(PyThreadState* tstate, cpython::Frame* frame, PyObject* name, PyObject* fromlist, PyObject* level);
[[nodiscard]] PyObject* import_from(PyObject* module, PyObject* name);
[[nodiscard]] bool import_star(cpython::Frame* frame, PyObject* module);

[[nodiscard]] Py_ssize_t as_length(PyObject* given);  // what __len__ gave; -1 with an exception where it is no length
[[nodiscard]] PyObject* format_value(PyObject* value, int conversion, PyObject* spec);  // takes value and spec
[[nodiscard]] PyObject* convert_value(PyObject* value, int conversion);  // takes value
[[nodiscard]] bool print_expression(PyThreadState* tstate, PyObject* value);

// One character of an exact str, counted from its end where the index is negative; nullptr without an exception outside of it or
// where there is no memory.
[[nodiscard]] PyObject* str_item(PyObject* str, Py_ssize_t index);
// Is it a look-up of an exact str in a dict that has only such keys: it runs no Python code and cannot fail.
inline bool is_quiet_lookup(PyObject* dict, PyObject* key) {
  return PyDict_CheckExact(dict) && PyUnicode_CheckExact(key) && reinterpret_cast<PyDictObject*>(dict)->ma_keys->dk_kind != DICT_KEYS_GENERAL;
}
// `item in container` where that runs no Python code and cannot fail: 1 or 0, else -1 without an exception.
int contains_quietly(PyObject* container, PyObject* item);
// The same for isinstance(); cls: a class, or a tuple of classes.
int is_instance_quietly(PyObject* object, PyObject* cls);
// What sq_contains of exact lists and tuples gives.
int items_contain(PyObject* sequence, PyObject* item);

void fix_extend_error(PyObject* iterable);                      // LIST_EXTEND
void fix_update_error(PyObject* update);                        // DICT_UPDATE
void fix_merge_error(PyObject* function, PyObject* kwargs);     // DICT_MERGE and CALL_FUNCTION_EX
[[nodiscard]] bool check_star_arguments(PyObject* function, PyObject* arguments);

[[nodiscard]] PyObject* get_aiter(PyObject* object);
[[nodiscard]] PyObject* get_anext(PyObject* iterator);
[[nodiscard]] PyObject* get_awaitable(PyObject* object, int where);

// raise: takes exc and cause (may be nullptr). true: an exception is raised again with its traceback untouched.
[[nodiscard]] bool raise_exception(PyObject* exc, PyObject* cause);
[[nodiscard]] bool check_except_type(PyObject* type);
[[nodiscard]] bool check_except_star_type(PyObject* type);
[[nodiscard]] bool match_exception_group(PyObject* exc, PyObject* type, PyObject** match, PyObject** rest);

// Tuple of values, None for no match.
[[nodiscard]] PyObject* match_keys(PyObject* subject, PyObject* keys);
// Tuple of attributes; nullptr without exception for no match.
PyObject* match_class(PyObject* subject, PyObject* type, Py_ssize_t positional, PyObject* names);

// What a binary operator does after the left operand's Python method returned NotImplemented.
[[nodiscard]] PyObject* binary_after_not_implemented(int op, PyObject* left, PyObject* right);
[[nodiscard]] PyObject* compare_after_not_implemented(int op, PyObject* left, PyObject* right);

// LOAD_SUPER_ATTR; `method`: a method descriptor is not bound but marked there. New reference.
[[nodiscard]] PyObject* load_super(PyObject* super, PyObject* type, PyObject* self, PyObject* name, bool with_arguments, bool* method);

// bound = descriptor.__get__(object, type), new reference.
[[nodiscard]] inline PyObject* bind_descriptor(PyObject* descriptor, PyObject* object, PyTypeObject* type) {
  return Py_TYPE(descriptor)->tp_descr_get(descriptor, object, reinterpret_cast<PyObject*>(type));
}

// Tells an AttributeError that is set which object and name it is about, if it does not know yet (for suggestions).
void describe_attribute_error(PyObject* object, PyObject* name);

}  // namespace dynvm::vm
