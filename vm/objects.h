// Object internals that a recorder needs, behind plain functions so that it includes no CPython-internal header.
// All need the GIL; results are borrowed.
#pragma once

#include <Python.h>

#include <cstdint>

namespace dynvm::vm {

// The version tag that changes whenever the dict's contents do.
uint64_t dict_version(PyObject* dict);
// What a weak reference refers to, or null.
PyObject* referent(PyObject* reference);
// The type's version tag, assigned if it has none; 0 when CPython has run out of tags.
uint32_t type_version(PyTypeObject* type);
// What stands in the type's own dict, or null.
PyObject* own_attribute(PyTypeObject* type, PyObject* name);
PyObject* own_attribute(PyTypeObject* type, const char* name);
// The instance's dict, made from its inline values if need be; null when instances have none.
PyObject* instance_dict(PyObject* object);
// The same, where there is one already.
PyObject* existing_dict(PyObject* object);
// The type's own dict: a new reference, or null.
PyObject* type_dict(PyTypeObject* type);
// True when the instance could have a dict (so that an instance attribute can hide a class attribute).
bool may_have_dict(PyObject* object);
// Byte offset of the object slot that a __slots__ member descriptor reads, or -1 for any other descriptor.
Py_ssize_t slot_offset(PyObject* descriptor);
// Also of the object that another descriptor in C reads and gives as it is, where it is set: other members of objects, a function's names.
Py_ssize_t field_offset(PyObject* descriptor);
// Of the two slots below a call's arguments, whether a callable without self stands in the lower one.
extern const bool kLoneCallableFirst;
// What a super object stands for.
bool super_parts(PyObject* super, PyTypeObject** type, PyObject** self, PyTypeObject** self_type);
// Name of a getset, member or method descriptor's owner and whether it is written in C.
bool is_c_descriptor(PyObject* descriptor);

// Does the code handle exceptions. From 3.12 on, all of a generator's code stands under a handler that turns StopIteration into
// RuntimeError: that is none of its own.
bool has_handlers(PyCodeObject* code);

// Where an exception that a code unit raises goes on in its code: the handler's unit and the depth of the value stack there; push_lasti: the
// raising unit goes onto it below the exception. False: the frame is left.
struct Handler {
  int level = 0, unit = 0;
  bool push_lasti = false;
};
bool find_handler(PyCodeObject* code, int unit, Handler* handler);

// A suspended generator of a generator function, to go on at a code unit, with local variables and value stack (count slots, null allowed;
// those that are not given are null); below 0: one that has returned. A new reference, or null with an exception.
PyObject* suspended_generator(PyFunctionObject* function, int unit, PyObject* const* slots, int count);
// A generator that has not started: overwrites its local variables (one for each of the code's; new references are taken).
void set_generator_locals(PyObject* generator, PyObject* const* slots);

// Raises StopIteration with the value that a generator has returned (a reference is taken over), as next() does.
void raise_stop_iteration(PyObject* value);

// The word that is not zero when the evaluator must look after signals, the GIL or pending calls.
const volatile int* eval_breaker(PyThreadState* tstate);
// Looks after them, as CPython's evaluator does at a loop's end. -1: an exception is set.
[[nodiscard]] int handle_pending(PyThreadState* tstate);

// Is garbage being collected, by whomever it was begun?
bool is_collecting();
// Collections of the oldest generation so far, by whomever they were begun.
Py_ssize_t full_collections();

}  // namespace dynvm::vm
