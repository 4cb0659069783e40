// Functions in Python that do what functions in C do which call Python code, so that a trace follows that code.
//
// They are functions of the module _dynvm. Tracebacks do not show their frames (vm::hide_frames_of). Tests: tests/traces/cases/function_modes.py, called_from_c.py.
#pragma once

#include <Python.h>

#include <cstddef>
#include <string>

namespace dynvm::tracer {

// The function of that name, borrowed, made by this source the first time; null: it cannot be made.
PyObject* own_function(const std::string& name, const std::string& source);

// The function, or generator function, that does what this builtin does with so many arguments, borrowed; null: there is none.
PyObject* in_python(const std::string& builtin, size_t arguments);

// What zip and the like do once they have asked their arguments for iterators, as a function that asks for them; borrowed.
PyObject* with_iterators(const std::string& builtin, size_t arguments);

}  // namespace dynvm::tracer
