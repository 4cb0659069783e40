// A Python extension module around the evaluator, for its own tests: _dynvm_vm.install(), uninstall(), stats().
//
// Purpose: lets `python -c` switch the evaluator on without the launcher. Inputs, outputs: as vm.h. Invariants: none of its own.
// Tests: used by tests/vm/run_scripts.py and tests/vm/cpython_suite.py.
#include "vm/vm.h"

namespace {

PyObject* install(PyObject*, PyObject*) {
  if (!dynvm::vm::install()) return nullptr;
  Py_RETURN_NONE;
}

PyObject* uninstall(PyObject*, PyObject*) {
  dynvm::vm::uninstall();
  Py_RETURN_NONE;
}

PyObject* stats(PyObject*, PyObject*) {
  const dynvm::vm::Stats& stats = dynvm::vm::stats();
  return Py_BuildValue("{sK sK sK sK sK sK}", "decoded_codes", stats.decoded_codes, "activations", stats.activations,
                       "inlined_frames", stats.inlined_frames, "resumed_generators", stats.resumed_generators, "handovers",
                       stats.handovers, "reinstalls", stats.reinstalls);
}

PyMethodDef kMethods[] = {{"install", install, METH_NOARGS, "Makes dynvm's evaluator the interpreter's."},
                          {"uninstall", uninstall, METH_NOARGS, "Gives frames back to CPython's evaluator."},
                          {"stats", stats, METH_NOARGS, "The evaluator's counters as a dict."},
                          {nullptr, nullptr, 0, nullptr}};
PyModuleDef kModule = {PyModuleDef_HEAD_INIT, "_dynvm_vm", nullptr, -1, kMethods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__dynvm_vm() { return PyModule_Create(&kModule); }
