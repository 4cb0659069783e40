// CPython 3.13: generators.
//
// Purpose, inputs, outputs: see cpython.h. Invariants: each function has the effects of the CPython function that its comment in common.h
// names. Tests: tests/vm/.
#include "vm/cpython/cpython.h"

#include "vm/vm.h"

#ifdef Py_GIL_DISABLED
#error "dynvm's evaluator needs a CPython with the GIL"
#endif

namespace dynvm::vm::cpython {

bool own_items(PyObject* object) {
  auto* dict = reinterpret_cast<PyDictObject*>(object);
  if (!PyDict_CheckExact(object) || dict->ma_values == nullptr || !dict->ma_values->embedded) return true;
  // Stores to the instance's inline values leave the version alone. popitem() gives a dict a table of its own.
  PyObject* last = PyDict_GET_SIZE(object) != 0 ? PyObject_CallMethod(object, "popitem", nullptr) : nullptr;
  const bool done = last != nullptr && PyDict_SetItem(object, PyTuple_GET_ITEM(last, 0), PyTuple_GET_ITEM(last, 1)) == 0;
  Py_XDECREF(last);
  PyErr_Clear();
  return done && dict->ma_values == nullptr;
}

PyObject* make_generator(PyThreadState*, Frame* frame) {
  auto* generator = reinterpret_cast<PyGenObject*>(_Py_MakeCoro(function_of(frame)));
  if (generator == nullptr) return nullptr;
  return with_frame(generator, frame);
}

void mark_position(PyGenObject* generator) {
  const Frame* frame = frame_of(generator);
  const Decoded next = decode_unit(code_of(frame), next_unit(frame), 0);
  if (next.info.op != Op::kResume) return;
  generator->gi_frame_state = static_cast<int8_t>((next.arg & 3) >= 2 ? FRAME_SUSPENDED_YIELD_FROM : FRAME_SUSPENDED);
}

PyCodeObject* code_of_generator(PyGenObject* generator) { return code_of(frame_of(generator)); }

bool delegates(PyGenObject* generator) { return generator->gi_frame_state == FRAME_SUSPENDED_YIELD_FROM; }

PyObject* async_gen_wrap(PyObject* value) {
  return _PyIntrinsics_UnaryFunctions[INTRINSIC_ASYNC_GEN_WRAP].func(PyThreadState_Get(), value);
}

}  // namespace dynvm::vm::cpython
