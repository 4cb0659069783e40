// What a trace leaves behind where it has asked a generator with next() (Recorder::call_next): the call that comes is one of `given_by_next`, with what the generator has
// given, or with what stands for its end. Tests: tests/traces/cases/context_managers_of_generators.py.
#pragma once

#include <Python.h>

namespace dynvm::tracer {

// The function: gives its argument, or raises StopIteration for what stands for the end. Borrowed.
PyObject* given_by_next();
// What stands for the end. Borrowed; no generator yields it.
PyObject* end_of_generator();

}  // namespace dynvm::tracer
