// What iterating runs, by the types of C.
#pragma once

#include <Python.h>

#include <cstddef>
#include <string>

namespace dynvm::tracer {

// An iterator of C's that runs no Python code, all the way down.
bool plain_iterator(PyObject* it);

// Do objects of this type make their iterator as a container of C's does, without Python code? So does a subclass that has no __iter__ of its own.
bool iterates_natively(PyTypeObject* type);

// The __iter__ of such objects where it is a function in Python; else null. Borrowed.
PyObject* python_iter(PyTypeObject* type);

// Is it one of torch.nn's own generators, as that of Module.parameters()? They end, and what they give depends on nothing that a loop over them does.
bool is_of_modules(PyCodeObject* generator);

// A builtin that asks its last argument for all of its items, and runs no code of the script's in between but comparisons.
bool takes_all_items(const std::string& name, size_t arguments);

}  // namespace dynvm::tracer
