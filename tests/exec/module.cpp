// Test extension: compiles IR text and runs it on Python objects.
//
//   trace = _dynvm_exec.compile(text, namespace, stress=False, listing=False, count=False, storages=None, log=None, state=None)
//       text: ir/text.h; a const_obj's text is a Python expression, evaluated in namespace ("NULL": null). storages: (kind, bytes) pairs,
//       kind 0 input, 1 arena, 2 fresh, 3 result, for a trace with tensors, which then runs on the fake bridge with `log` and `state`.
//       torch=PATH of libdynvm_torch.so: on the real bridge instead, with make_plan's plan; passes=True: after all passes.
//   kind, inst, frames = trace.run(slots, breaker=False)
//       slots: a list, the root frame's, written back. frames: one (function, unit, continuation, value, slots) each; in slots NULL and
//       UNCHANGED stand for themselves. run.set_breaker() from within a call ends the run at the next loop.
//   torch_state(path): the guard_torch_state instruction that holds now.
//   execute(op, imm, args, names): runtime::execute.
#include <Python.h>

#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/passes/pass.h"
#include "ir/plan.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "runtime/exec/compiled_trace.h"
#include "runtime/exec/execute.h"
#include "tests/exec/fake_bridge.h"

namespace {

using namespace dynvm;

volatile int g_breaker = 0;
PyObject* g_null = nullptr;
PyObject* g_unchanged = nullptr;

struct TraceObject {
  PyObject_HEAD
  runtime::CompiledTrace* trace;
  bridge::Bridge* bridge;
  bool keeps_bridge;  // the real one: there is one for the process
  PyObject *log, *state;
};

void dealloc_trace(PyObject* self) {
  auto* object = reinterpret_cast<TraceObject*>(self);
  delete object->trace;
  if (!object->keeps_bridge) delete object->bridge;
  Py_XDECREF(object->log);
  Py_XDECREF(object->state);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* shown(PyObject* owned) {
  if (owned == nullptr) return Py_NewRef(g_null);
  if (owned == runtime::slot_unchanged()) return Py_NewRef(g_unchanged);
  return owned;
}

PyObject* run(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"slots", "breaker", nullptr};
  PyObject* slots;
  int breaker = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|p", const_cast<char**>(names), &PyList_Type, &slots, &breaker)) return nullptr;
  auto* object = reinterpret_cast<TraceObject*>(self);
  std::vector<PyObject*> root;
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(slots); ++k) {
    PyObject* item = PyList_GET_ITEM(slots, k);
    root.push_back(item == g_null ? nullptr : Py_NewRef(item));
  }
  // Like a frame's: the objects belong to the slots alone.
  PyList_SetSlice(slots, 0, PY_SSIZE_T_MAX, nullptr);
  g_breaker = breaker;
  runtime::RunResult result = object->trace->run(root.data(), &g_breaker);
  PyObject* frames = PyList_New(0);
  if (result.kind != runtime::RunResult::kLoopBreak) {
    for (runtime::FrameState& frame : object->trace->take_exit_state(result)) {
      PyObject* values = PyList_New(0);
      for (PyObject* slot : frame.slots) {
        PyObject* value = shown(slot);
        PyList_Append(values, value);
        Py_DECREF(value);
      }
      PyObject* entry = Py_BuildValue("(NiiNN)", shown(std::exchange(frame.function, nullptr)), frame.unit, frame.continuation,
                                      shown(std::exchange(frame.continuation_value, nullptr)), values);
      PyList_Append(frames, entry);
      Py_DECREF(entry);
    }
  }
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  for (PyObject* slot : root) {
    PyObject* item = slot == nullptr ? Py_NewRef(g_null) : slot;
    PyList_Append(slots, item);
    Py_DECREF(item);
  }
  PyErr_NormalizeException(&type, &value, &traceback);
  static const char* kinds[] = {"guard", "error", "break", "leave"};
  PyObject* answer = Py_BuildValue("(siNO)", kinds[result.kind], static_cast<int>(result.inst), frames, value ? value : Py_None);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return answer;
}

runtime::CompiledTrace* of(PyObject* self) { return reinterpret_cast<TraceObject*>(self)->trace; }
PyObject* get_iterations(PyObject* self, void*) { return PyLong_FromUnsignedLongLong(of(self)->iterations()); }
PyObject* get_exits(PyObject* self, void*) { return PyLong_FromUnsignedLongLong(of(self)->total_exits()); }
PyObject* get_stressed(PyObject* self, void*) { return PyLong_FromUnsignedLongLong(of(self)->stressed_guards()); }
PyObject* get_listing(PyObject* self, void*) { return PyUnicode_FromString(of(self)->listing().c_str()); }
PyObject* get_text(PyObject* self, void*) { return PyUnicode_FromString(ir::print_trace(of(self)->ir()).c_str()); }
PyObject* get_kernels(PyObject* self, void*) { return PyLong_FromLong(of(self)->num_kernels()); }
PyObject* get_residuals(PyObject* self, void*) {
  PyObject* dict = PyDict_New();
  for (auto& [name, residual] : of(self)->residuals()) {
    PyObject* pair = Py_BuildValue("Kd", static_cast<unsigned long long>(residual.calls), residual.ms);
    PyDict_SetItemString(dict, name.c_str(), pair);
    Py_DECREF(pair);
  }
  return dict;
}
PyObject* exits_at(PyObject* self, PyObject* inst) { return PyLong_FromUnsignedLongLong(of(self)->exits(PyLong_AsUnsignedLong(inst))); }

PyMethodDef trace_methods[] = {{"run", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(run)), METH_VARARGS | METH_KEYWORDS, nullptr},
                               {"exits_at", exits_at, METH_O, nullptr},
                               {nullptr, nullptr, 0, nullptr}};
PyGetSetDef trace_properties[] = {{"iterations", get_iterations, nullptr, nullptr, nullptr}, {"exits", get_exits, nullptr, nullptr, nullptr},
                                  {"stressed", get_stressed, nullptr, nullptr, nullptr},     {"listing", get_listing, nullptr, nullptr, nullptr},
                                  {"text", get_text, nullptr, nullptr, nullptr},             {"kernels", get_kernels, nullptr, nullptr, nullptr},
                                  {"residuals", get_residuals, nullptr, nullptr, nullptr},   {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot trace_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc_trace)},
                             {Py_tp_methods, trace_methods},
                             {Py_tp_getset, trace_properties},
                             {0, nullptr}};
PyType_Spec trace_spec = {"_dynvm_exec.Trace", sizeof(TraceObject), 0, Py_TPFLAGS_DEFAULT, trace_slots};
PyObject* g_trace_type = nullptr;

bridge::Bridge* real_bridge(const char* path) {
  static bridge::Bridge* bridge = nullptr;
  if (bridge != nullptr) return bridge;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  auto create = library == nullptr ? nullptr : reinterpret_cast<bridge::CreateBridge>(dlsym(library, "dynvm_torch_bridge"));
  if (create == nullptr) {
    PyErr_SetString(PyExc_ImportError, dlerror());
    return nullptr;
  }
  return bridge = create(bridge::kBridgeVersion);
}

PyObject* compile(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"text", "namespace", "stress", "listing", "count", "storages", "log", "state", "torch", "passes", nullptr};
  const char* text;
  const char* torch = nullptr;
  PyObject *space, *storages = nullptr, *log = nullptr, *state = nullptr;
  int stress = 0, listing = 0, count = 0, passes = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO!|pppOOOzp", const_cast<char**>(names), &text, &PyDict_Type, &space, &stress, &listing, &count,
                                   &storages, &log, &state, &torch, &passes)) {
    return nullptr;
  }
  ir::Trace trace;
  auto failed = [](const base::Status& status) -> PyObject* {
    PyErr_SetString(PyExc_ValueError, status.message().c_str());
    return nullptr;
  };
  if (base::Status status = ir::parse_trace(text, &trace); !status.ok()) return failed(status);
  if (base::Status status = ir::verify_trace(trace); !status.ok()) return failed(status);
  std::vector<PyObject*> owned;
  for (ir::Object& object : trace.objects) {
    object.pointer = nullptr;
    if (object.text == "NULL") continue;
    PyObject* value = PyRun_String(object.text.c_str(), Py_eval_input, space, space);
    if (value == nullptr) return nullptr;
    owned.push_back(value);
    object.pointer = value;
  }
  ir::Plan plan;
  for (Py_ssize_t k = 0; storages != nullptr && k < PyList_GET_SIZE(storages); ++k) {
    ir::StoragePlan& spec = plan.storages.emplace_back();
    int kind;
    long long bytes;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(storages, k), "iL", &kind, &bytes)) return nullptr;
    spec.kind = static_cast<ir::StoragePlan::Kind>(kind);
    spec.bytes = bytes;
    spec.offset = plan.arena_bytes;
    if (spec.kind == ir::StoragePlan::kArena) plan.arena_bytes += (bytes + 63) / 64 * 64;
  }
  auto* object = PyObject_New(TraceObject, reinterpret_cast<PyTypeObject*>(g_trace_type));
  if (object == nullptr) return nullptr;
  object->trace = nullptr;
  object->bridge = nullptr;
  object->keeps_bridge = false;
  object->log = Py_XNewRef(log);
  object->state = Py_XNewRef(state);
  if (log != nullptr) object->bridge = tests::make_fake_bridge(log, state).release();
  if (torch != nullptr) {
    object->bridge = real_bridge(torch);
    if (object->bridge == nullptr) {
      Py_DECREF(object);
      return nullptr;
    }
    object->keeps_bridge = true;
  }
  if (passes) {
    ir::PassOptions pass_options;
    pass_options.verify = true;
    if (base::Status status = ir::run_passes(trace, pass_options); !status.ok()) return failed(status);
  }
  if (storages == nullptr && object->bridge != nullptr)
    plan = ir::make_plan(trace, [&](const ir::AtenCall& call) { return object->bridge->has_planned_form(call); });
  runtime::CompileOptions options;
  options.stress_exits = stress;
  options.listing = listing;
  options.count_residuals = count;
  std::unique_ptr<runtime::CompiledTrace> compiled;
  base::Status status = runtime::CompiledTrace::compile(std::move(trace), plan, object->bridge, options, &compiled);
  if (!status.ok()) {
    for (PyObject* value : owned) Py_DECREF(value);
    Py_DECREF(object);
    return failed(status);
  }
  compiled->own(std::move(owned));
  object->trace = compiled.release();
  return reinterpret_cast<PyObject*>(object);
}

// Torch's modes now, as guard_torch_state's text.
PyObject* torch_state(PyObject*, PyObject* path) {
  bridge::Bridge* bridge = real_bridge(PyUnicode_AsUTF8(path));
  if (bridge == nullptr) return nullptr;
  ir::Trace trace;
  trace.torch_states.push_back(bridge->torch_state());
  std::string text = ir::print_inst(trace, trace.add(ir::Op::k_guard_torch_state, ir::Type::kVoid, {}, 0));
  text = text.substr(text.find("guard_torch_state"));
  return PyUnicode_FromString(text.c_str());
}

PyObject* execute(PyObject*, PyObject* args) {
  const char* name;
  long long imm;
  PyObject *operands, *kwnames;
  if (!PyArg_ParseTuple(args, "sLO!O", &name, &imm, &PyList_Type, &operands, &kwnames)) return nullptr;
  for (int k = 0; k < static_cast<int>(ir::Op::kCount); ++k) {
    auto op = static_cast<ir::Op>(k);
    if (ir::op_info(op).name != name) continue;
    std::vector<PyObject*> values;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(operands); ++i) {
      PyObject* item = PyList_GET_ITEM(operands, i);
      values.push_back(item == g_null ? nullptr : item);
    }
    PyObject* result = nullptr;
    int truth = -1;
    if (!runtime::execute(op, imm, values.data(), static_cast<int>(values.size()), kwnames == Py_None ? nullptr : kwnames, &result, &truth))
      return nullptr;
    char kind = ir::op_info(op).result;
    return kind == 'b' ? PyBool_FromLong(truth) : kind == 'v' ? Py_NewRef(Py_None) : shown(result);
  }
  PyErr_Format(PyExc_ValueError, "no operation %s", name);
  return nullptr;
}

PyObject* set_breaker(PyObject*, PyObject*) {
  g_breaker = 1;
  Py_RETURN_NONE;
}

PyObject* dict_version(PyObject*, PyObject* dict) {
  return PyLong_FromUnsignedLongLong(reinterpret_cast<PyDictObject*>(dict)->ma_version_tag);
}
PyObject* type_version(PyObject*, PyObject* type) {
  PyObject* name = PyUnicode_FromString("__class__");
  _PyType_Lookup(reinterpret_cast<PyTypeObject*>(type), name);
  Py_DECREF(name);
  return PyLong_FromUnsignedLong(reinterpret_cast<PyTypeObject*>(type)->tp_version_tag);
}
PyObject* function_version(PyObject*, PyObject* function) {
  return PyLong_FromUnsignedLong(reinterpret_cast<PyFunctionObject*>(function)->func_version);
}
// Gives the type's cached keys a version of our own, as the evaluator does.
PyObject* keys_version(PyObject*, PyObject* type) {
  auto* keys = reinterpret_cast<char*>(reinterpret_cast<PyHeapTypeObject*>(type)->ht_cached_keys);
  uint32_t version;
  std::memcpy(&version, keys + 12, 4);
  if (version == 0) {
    static uint32_t next = 0xfffffff0u;
    version = next--;
    std::memcpy(keys + 12, &version, 4);
  }
  return PyLong_FromUnsignedLong(version);
}

PyMethodDef methods[] = {{"compile", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(compile)), METH_VARARGS | METH_KEYWORDS, nullptr},
                         {"execute", execute, METH_VARARGS, nullptr},
                         {"torch_state", torch_state, METH_O, nullptr},
                         {"set_breaker", set_breaker, METH_NOARGS, nullptr},
                         {"dict_version", dict_version, METH_O, nullptr},
                         {"type_version", type_version, METH_O, nullptr},
                         {"function_version", function_version, METH_O, nullptr},
                         {"keys_version", keys_version, METH_O, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyModuleDef module = {PyModuleDef_HEAD_INIT, "_dynvm_exec", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__dynvm_exec() {
  PyObject* self = PyModule_Create(&module);
  if (self == nullptr) return nullptr;
  g_trace_type = PyType_FromSpec(&trace_spec);
  PyObject* builtins = PyImport_ImportModule("builtins");
  PyObject* make = PyObject_GetAttrString(builtins, "object");
  g_null = PyObject_CallNoArgs(make);
  g_unchanged = PyObject_CallNoArgs(make);
  Py_DECREF(make);
  Py_DECREF(builtins);
  PyModule_AddObject(self, "NULL", Py_NewRef(g_null));
  PyModule_AddObject(self, "UNCHANGED", Py_NewRef(g_unchanged));
  return self;
}
