// Replaces torch.compile once torch is there, and puts off what torch imports for its own compiler (torch_compile.py and lazy_dynamo.py, which are parts of this library).
#include "main/torch_compile.h"

#include <Python.h>
#include <fmt/core.h>

#include "main/torch_compile_source.h"
#include "runtime/base/options.h"
#include "runtime/base/report.h"
#ifdef DYNVM_HAS_VM
#include "vm/vm.h"
#endif

namespace dynvm::main {

#ifdef DYNVM_HAS_VM
namespace {

// Its code has run, to the end.
bool is_complete(PyObject* module) {
  PyObject* spec = PyObject_GetAttrString(module, "__spec__");
  PyObject* begun = spec != nullptr ? PyObject_GetAttrString(spec, "_initializing") : nullptr;
  PyErr_Clear();
  const bool complete = begun == nullptr || begun == Py_False;
  Py_XDECREF(begun);
  Py_XDECREF(spec);
  return complete && PyObject_HasAttrString(module, "compile") == 1;
}

// Calls install(torch) of this source.
bool install(const char* source, const char* name, PyObject* torch) {
  PyObject* code = Py_CompileString(source, name, Py_file_input);
  PyObject* space = PyDict_New();
  bool fine = code != nullptr && space != nullptr && PyDict_SetItemString(space, "__builtins__", PyEval_GetBuiltins()) == 0;
  PyObject* done = fine ? PyEval_EvalCode(code, space, space) : nullptr;
  PyObject* result = done != nullptr ? PyObject_CallOneArg(PyDict_GetItemString(space, "install"), torch) : nullptr;
  fine = result != nullptr;
  Py_XDECREF(result);
  Py_XDECREF(done);
  Py_XDECREF(space);
  Py_XDECREF(code);
  return fine;
}

// A module of this name has been imported.
void imported(PyObject* name) {
  static PyObject* const torch_name = PyUnicode_InternFromString("torch");
  if (PyUnicode_Tailmatch(name, torch_name, 0, PY_SSIZE_T_MAX, -1) != 1) return PyErr_Clear();
  PyObject* torch = PyDict_GetItem(PyImport_GetModuleDict(), torch_name);
  if (torch == nullptr || !is_complete(torch)) return;
  vm::set_import_hook(nullptr);
  Py_INCREF(torch);
  if (!install(kTorchCompile, "<dynvm: torch.compile>", torch)) {
    base::report().notes["torch.compile"] = "it could not be replaced, and runs torch's own compiler";
    PyErr_Clear();
  }
  if (!install(kLazyDynamo, "<dynvm: torch._dynamo>", torch)) {
    base::report().notes["torch._dynamo"] = "it could not be put off, and is imported at once";
    PyErr_Clear();
  }
  Py_DECREF(torch);
}

}  // namespace
#endif

base::Status check_torch_compile() {
  const std::string& how = base::options().torch_compile;
  if (how.empty() || how == "hint" || how == "real") return {};
  return base::Status::failure(fmt::format("--torch-compile: expected hint or real, got '{}'", how));
}

void hint_torch_compile() {
#ifdef DYNVM_HAS_VM
  if (base::options().torch_compile != "real") vm::set_import_hook(imported);
#endif
}

}  // namespace dynvm::main
