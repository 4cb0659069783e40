// Which of the objects that some owners, traces or frames, keep alive does nothing else refer to?
//
// A trace owns the objects that it compares with. What a script makes anew in each call is gone for the script when the call is over, and no guard on it can hold again: then only traces
// refer to it, and before only the frames of the call.
//
// Inputs: lists of owned objects, one reference each. Output: those among them that only the lists reach, by references among themselves or through what only they refer to.
// Method: trial deletion (Christopher, Reference count garbage collection, 1984), as Python's collector does it: references from inside are subtracted, and what has some
// left, with all that it refers to, is alive.
// Invariants: no reference changes, no Python code runs. What cannot be traversed (types of C), or is large (modules), counts as alive and as referring from outside.
// Tests: tests/traces/cases/made_anew.py.
#pragma once

#include <Python.h>

#include <unordered_set>
#include <vector>

namespace dynvm::tracer {

std::unordered_set<PyObject*> dead_objects(const std::vector<const std::vector<PyObject*>*>& lists);

// Is somebody to be told when this object goes, as a WeakValueDictionary that holds it, or a finalizer? A trace that knew it would keep it.
bool is_watched(PyObject* object);

}  // namespace dynvm::tracer
