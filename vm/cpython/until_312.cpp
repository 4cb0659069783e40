// What CPython 3.11 and 3.12 have in common: values of asynchronous generators.
//
// Purpose, inputs, outputs, invariants: see cpython.h. Tests: tests/vm/.
#include "vm/cpython/cpython.h"

namespace dynvm::vm::cpython {

namespace {
struct WrappedValue {  // layout of _PyAsyncGenWrappedValue
  PyObject_HEAD
  PyObject* value;
};
}  // namespace

PyObject* async_gen_wrap(PyObject* value) {
  _Py_async_gen_state& free = PyThreadState_Get()->interp->async_gen;
  WrappedValue* wrapped;
  if (free.value_numfree > 0) {  // where CPython's own destructor puts them
    wrapped = reinterpret_cast<WrappedValue*>(free.value_freelist[--free.value_numfree]);
    _Py_NewReference(reinterpret_cast<PyObject*>(wrapped));
  } else {
    wrapped = PyObject_GC_New(WrappedValue, &_PyAsyncGenWrappedValue_Type);
    if (wrapped == nullptr) return nullptr;
  }
  wrapped->value = Py_NewRef(value);
  PyObject_GC_Track(reinterpret_cast<PyObject*>(wrapped));
  return reinterpret_cast<PyObject*>(wrapped);
}

}  // namespace dynvm::vm::cpython
