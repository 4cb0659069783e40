// See bridge_file.h.
#include "tracer/bridge_file.h"

#include <Python.h>
#include <dlfcn.h>

#include "runtime/base/report.h"

namespace dynvm::tracer {

bridge::Bridge* BridgeFile::load() {
  if (bridge_ != nullptr || hopeless()) return bridge_;
  PyObject* torch = PyDict_GetItemString(PyImport_GetModuleDict(), "torch");
  if (torch == nullptr || !PyObject_HasAttrString(torch, "compile") || !PyObject_HasAttrString(torch, "nn")) return nullptr;
  void* library = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    failed_ = true;
    base::report().notes["torch bridge"] = dlerror();
    return nullptr;
  }
  auto create = reinterpret_cast<bridge::CreateBridge>(dlsym(library, "dynvm_torch_bridge"));
  bridge_ = create != nullptr ? create(bridge::kBridgeVersion) : nullptr;
  if (bridge_ != nullptr) return bridge_;
  failed_ = true;
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* text = value != nullptr ? PyObject_Str(value) : nullptr;
  base::report().notes["torch bridge"] = text != nullptr ? PyUnicode_AsUTF8(text) : "refused";
  Py_XDECREF(text);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return nullptr;
}

}  // namespace dynvm::tracer
