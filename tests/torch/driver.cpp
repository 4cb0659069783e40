// bridge_driver: a Python module through which the suites in this folder use the torch bridge as the tracer and generated code do.
//
// Inputs: the path of libdynvm_torch.so, torch calls to record, tensors. Outputs: what was recorded; programs built from it mechanically:
// every recorded operation is a call, nothing is fused, each storage that an operation makes lies in the arena (no memory is used twice), is a
// fresh one when the suite says that it escapes, or is left to the call where the bridge has no planned form.
// Invariants: indexes of a program's tensors and storages are the recorder's own numbers. It includes no torch header.
#include <Python.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "runtime/bridge/bridge.h"

namespace {

using namespace dynvm;
using bridge::OpRecord;
using ir::AtenArg;

bridge::Bridge* torch_bridge = nullptr;

void set_item(PyObject* dict, const char* key, PyObject* value) {
  PyDict_SetItemString(dict, key, value);
  Py_DECREF(value);
}
PyObject* text(const std::string& s) { return PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size())); }
PyObject* int_list(const auto& values) {
  PyObject* list = PyList_New(0);
  for (const auto& v : values) {
    PyObject* item = PyLong_FromLongLong(static_cast<long long>(v));
    PyList_Append(list, item);
    Py_DECREF(item);
  }
  return list;
}
PyObject* float_list(const std::vector<double>& values) {
  PyObject* list = PyList_New(0);
  for (double v : values) {
    PyObject* item = PyFloat_FromDouble(v);
    PyList_Append(list, item);
    Py_DECREF(item);
  }
  return list;
}

PyObject* describe_argument(const AtenArg& arg, const OpRecord& record) {
  static const char* const kKinds[] = {"none",  "tensor",   "tensors",    "int",       "float",  "bool",          "string",
                                       "ints",  "floats",   "bools",      "scalar",    "scalar_tensor", "number", "opaque"};
  PyObject* dict = PyDict_New();
  set_item(dict, "kind", text(kKinds[arg.kind]));
  std::vector<int32_t> ids;
  for (int32_t operand : arg.operands) ids.push_back(operand < 0 ? -1 : record.tensors[static_cast<size_t>(operand)]);
  set_item(dict, "ids", int_list(ids));
  set_item(dict, "i", PyLong_FromLongLong(arg.i));
  set_item(dict, "f", PyFloat_FromDouble(arg.f));
  set_item(dict, "s", text(arg.s));
  set_item(dict, "ints", int_list(arg.ints));
  set_item(dict, "floats", float_list(arg.floats));
  set_item(dict, "dtype", text(std::string(ir::dtype_name(arg.dtype))));
  return dict;
}

PyObject* describe_record(const OpRecord& record) {
  PyObject* dict = PyDict_New();
  set_item(dict, "name", text(record.call.overload.empty() ? record.call.name : record.call.name + "." + record.call.overload));
  PyObject* args = PyList_New(0);
  for (const AtenArg& arg : record.call.args) {
    PyObject* item = describe_argument(arg, record);
    PyList_Append(args, item);
    Py_DECREF(item);
  }
  set_item(dict, "args", args);
  set_item(dict, "results", int_list(record.call.results));
  set_item(dict, "alias", int_list(record.call.result_alias));
  set_item(dict, "mutates", int_list(record.call.mutates));
  set_item(dict, "random", PyBool_FromLong(record.call.is_random));
  set_item(dict, "stream", PyBool_FromLong(record.call.stream.threads != 0));
  set_item(dict, "note", text(record.note));
  set_item(dict, "defines_sizes", PyBool_FromLong(record.call.defines_sizes));
  set_item(dict, "grad_mode", PyBool_FromLong(record.call.grad_mode));
  set_item(dict, "in_backward", PyBool_FromLong(record.call.in_backward));
  set_item(dict, "raised", PyBool_FromLong(record.raised));
  set_item(dict, "unsupported", text(record.unsupported));
  if (record.number == OpRecord::kFloatNumber) set_item(dict, "number", PyFloat_FromDouble(record.float_value));
  if (record.number == OpRecord::kIntNumber) set_item(dict, "number", PyLong_FromLongLong(record.int_value));
  if (record.number == OpRecord::kBoolNumber) set_item(dict, "number", PyBool_FromLong(record.int_value != 0));
  return dict;
}

template <class T>
void destroy_capsule(PyObject* capsule) {
  delete static_cast<T*>(PyCapsule_GetPointer(capsule, nullptr));
}
template <class T>
PyObject* capsule(std::unique_ptr<T> value) {
  return PyCapsule_New(value.release(), nullptr, destroy_capsule<T>);
}
template <class T>
T* get(PyObject* object) {
  return static_cast<T*>(PyCapsule_GetPointer(object, nullptr));
}

struct Records {
  std::vector<OpRecord> ops;
};
struct RecorderBox {
  std::unique_ptr<bridge::Recorder> recorder;
};
struct Scalar {
  int op, arg, element;
};
struct Running {
  std::unique_ptr<bridge::Program> program;
  bridge::Session* session = nullptr;
  std::vector<int32_t> fresh;
  size_t calls = 0, storages = 0;
  ~Running() {
    if (session) program->release(session);
  }
};

PyObject* load(PyObject*, PyObject* args) {
  const char* path;
  int version = bridge::kBridgeVersion;
  if (!PyArg_ParseTuple(args, "s|i", &path, &version)) return nullptr;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return PyErr_Format(PyExc_ImportError, "%s", dlerror());
  const auto create = reinterpret_cast<bridge::CreateBridge>(dlsym(library, "dynvm_torch_bridge"));
  bridge::Bridge* loaded = create(version);
  if (!loaded) return nullptr;
  torch_bridge = loaded;
  return text(torch_bridge->torch_version());
}

PyObject* make_recorder(PyObject*, PyObject*) { return capsule(std::make_unique<RecorderBox>(RecorderBox{torch_bridge->recorder()})); }
PyObject* enable(PyObject*, PyObject* recorder) {
  get<RecorderBox>(recorder)->recorder->enable();
  Py_RETURN_NONE;
}
PyObject* disable(PyObject*, PyObject* recorder) {
  get<RecorderBox>(recorder)->recorder->disable();
  Py_RETURN_NONE;
}
PyObject* take(PyObject*, PyObject* recorder) { return capsule(std::make_unique<Records>(Records{get<RecorderBox>(recorder)->recorder->take()})); }
PyObject* list_records(PyObject*, PyObject* records) {
  PyObject* list = PyList_New(0);
  for (const OpRecord& record : get<Records>(records)->ops) {
    PyObject* item = describe_record(record);
    PyList_Append(list, item);
    Py_DECREF(item);
  }
  return list;
}
PyObject* tensor_id(PyObject*, PyObject* args) {
  PyObject *recorder, *tensor;
  if (!PyArg_ParseTuple(args, "OO", &recorder, &tensor)) return nullptr;
  return PyLong_FromLong(get<RecorderBox>(recorder)->recorder->tensor_id(tensor));
}
PyObject* tensor_meta(PyObject*, PyObject* args) {
  PyObject* recorder;
  int id;
  if (!PyArg_ParseTuple(args, "Oi", &recorder, &id)) return nullptr;
  const ir::TensorMeta& meta = get<RecorderBox>(recorder)->recorder->meta(id);
  PyObject* dict = PyDict_New();
  set_item(dict, "dtype", text(std::string(ir::dtype_name(meta.dtype))));
  set_item(dict, "sizes", int_list(meta.sizes));
  set_item(dict, "strides", int_list(meta.strides));
  set_item(dict, "offset", PyLong_FromLongLong(meta.offset));
  set_item(dict, "storage", PyLong_FromLong(meta.storage));
  set_item(dict, "requires_grad", PyBool_FromLong(meta.requires_grad));
  set_item(dict, "is_leaf", PyBool_FromLong(meta.is_leaf));
  set_item(dict, "is_parameter", PyBool_FromLong(meta.is_parameter));
  return dict;
}

bool read_ints(PyObject* sequence, std::vector<int32_t>& out) {
  PyObject* fast = PySequence_Fast(sequence, "a sequence of ints");
  if (!fast) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast); ++i) out.push_back(static_cast<int32_t>(PyLong_AsLong(PySequence_Fast_GET_ITEM(fast, i))));
  Py_DECREF(fast);
  return !PyErr_Occurred();
}

// Turns the constant at `place` into a run-time scalar with number `scalar`.
void make_scalar(AtenArg& arg, const Scalar& place, int32_t scalar, std::vector<int32_t>& operands) {
  const auto add = [&](int32_t value) {
    operands.push_back(value);
    return static_cast<int32_t>(operands.size()) - 1;
  };
  if (arg.kind == AtenArg::kNumberTensor) {
    arg.kind = AtenArg::kScalarTensor;
    arg.operands = {add(scalar)};
  } else if (place.element < 0) {
    arg.dtype = arg.kind == AtenArg::kFloat ? ir::DType::kF64 : arg.kind == AtenArg::kBool ? ir::DType::kBool : ir::DType::kI64;
    arg.kind = AtenArg::kScalar;
    arg.operands = {add(scalar)};
  } else {
    if (arg.kind != AtenArg::kScalar) {
      arg.dtype = arg.kind == AtenArg::kFloatList ? ir::DType::kF64 : ir::DType::kI64;
      arg.operands.assign(arg.kind == AtenArg::kFloatList ? arg.floats.size() : arg.ints.size(), -1);
      arg.kind = AtenArg::kScalar;
    }
    arg.operands[static_cast<size_t>(place.element)] = add(scalar);
  }
}

// What one of the operations would give, as said from its operands' geometry alone: a sentence why it cannot be said, or a list of (sizes, strides) of its results.
PyObject* shapes(PyObject*, PyObject* args) {
  PyObject *recorder_object, *records_object;
  int index;
  if (!PyArg_ParseTuple(args, "OOi", &recorder_object, &records_object, &index)) return nullptr;
  bridge::Recorder& recorder = *get<RecorderBox>(recorder_object)->recorder;
  const OpRecord& op = get<Records>(records_object)->ops.at(static_cast<size_t>(index));
  const std::unique_ptr<bridge::Shapes> asked = torch_bridge->shapes();
  for (int32_t id : op.tensors) asked->input(id, recorder.meta(id));
  std::vector<ir::TensorMeta> before, made;
  for (int32_t id : op.call.results) before.push_back(id < 0 ? ir::TensorMeta{} : recorder.meta(id));
  const std::string why = asked->call(op.call, op.tensors, op.call.results, before, &made);
  if (!why.empty()) return text(why);
  PyObject* results = PyList_New(0);
  for (const ir::TensorMeta& meta : made) {
    PyObject* result = Py_BuildValue("(NN)", int_list(meta.sizes), int_list(meta.strides));
    PyList_Append(results, result);
    Py_DECREF(result);
  }
  return results;
}

// build(recorder, records, fresh ids, scalar places, wraps, [(id, dim that is open; -1: the layout)]) -> program
PyObject* build(PyObject*, PyObject* args) {
  PyObject *recorder_object, *records_object, *fresh_object, *scalars_object, *wraps_object, *open_object;
  if (!PyArg_ParseTuple(args, "OOOOOO", &recorder_object, &records_object, &fresh_object, &scalars_object, &wraps_object, &open_object)) return nullptr;
  bridge::Recorder& recorder = *get<RecorderBox>(recorder_object)->recorder;
  const std::vector<OpRecord>& ops = get<Records>(records_object)->ops;
  std::vector<int32_t> fresh_ids;
  if (!read_ints(fresh_object, fresh_ids)) return nullptr;
  std::vector<Scalar> places;
  for (Py_ssize_t i = 0; i < PyList_Size(scalars_object); ++i) {
    Scalar s;
    if (!PyArg_ParseTuple(PyList_GetItem(scalars_object, i), "iii", &s.op, &s.arg, &s.element)) return nullptr;
    places.push_back(s);
  }

  bridge::ProgramSpec spec;
  int32_t tensors = 0;
  for (const OpRecord& op : ops) {
    for (int32_t id : op.tensors) tensors = std::max(tensors, id + 1);
    for (int32_t id : op.call.results) tensors = std::max(tensors, id + 1);
  }
  for (int32_t id : fresh_ids) tensors = std::max(tensors, id + 1);
  int32_t storages = 0;
  for (int32_t t = 0; t < tensors; ++t) {
    spec.tensors.push_back(recorder.meta(t));
    storages = std::max(storages, spec.tensors.back().storage + 1);
  }
  spec.storages.resize(static_cast<size_t>(storages));
  for (bridge::StorageSpec& each : spec.storages) each.exclusive = true;  // whether anybody writes is not looked at here
  for (Py_ssize_t i = 0; i < PyList_Size(open_object); ++i) {
    int id, dim;
    if (!PyArg_ParseTuple(PyList_GetItem(open_object, i), "ii", &id, &dim)) return nullptr;
    spec.tensors.at(static_cast<size_t>(id)).open |= ir::kOpenLayout | (dim < 0 ? 0 : uint64_t{1} << dim);
  }
  std::set<int32_t> escaping;
  for (int32_t id : fresh_ids) escaping.insert(spec.tensors[static_cast<size_t>(id)].storage);
  for (const ir::TensorMeta& meta : spec.tensors) {
    int64_t last = meta.offset;
    for (size_t d = 0; d < meta.sizes.size(); ++d) last += (meta.sizes[d] - 1) * meta.strides[d];
    if (std::count(meta.sizes.begin(), meta.sizes.end(), 0)) last = -1;
    int64_t& bytes = spec.storages[static_cast<size_t>(meta.storage)].bytes;
    bytes = std::max(bytes, (last + 1) * ir::dtype_size(meta.dtype));
  }
  auto running = std::make_unique<Running>();
  std::set<int32_t> made;
  for (size_t i = 0; i < ops.size(); ++i) {
    const OpRecord& op = ops[i];
    bridge::CallSpec call;
    call.call = op.call;
    call.operands = op.tensors;
    call.results = op.call.results;
    for (int32_t id : call.results) call.result_types.push_back(id >= 0 ? spec.tensors[static_cast<size_t>(id)].dtype : ir::DType::kF32);
    bool has_scalars = false;
    for (size_t s = 0; s < places.size(); ++s) {
      if (places[s].op != static_cast<int>(i)) continue;
      has_scalars = true;
      make_scalar(call.call.args[static_cast<size_t>(places[s].arg)], places[s], static_cast<int32_t>(s), call.operands);
    }
    // A view with run-time numbers has a storage of its own, and so have the views of it.
    if (call.call.mutates.empty() && call.results.size() == 1 && call.results[0] >= 0 && op.call.result_alias[0] >= 0 && !made.count(call.results[0])) {
      const int32_t base = op.tensors[static_cast<size_t>(op.call.args[static_cast<size_t>(op.call.result_alias[0])].operands[0])];
      ir::TensorMeta& meta = spec.tensors[static_cast<size_t>(call.results[0])];
      if (has_scalars && meta.open == 0) {
        bridge::StorageSpec moved = spec.storages[static_cast<size_t>(meta.storage)];
        moved.kind = bridge::StorageSpec::kResult;
        meta.storage = static_cast<int32_t>(spec.storages.size());
        spec.storages.push_back(moved);
      } else {
        meta.storage = spec.tensors[static_cast<size_t>(base)].storage;
      }
    }
    for (int32_t id : op.tensors) made.insert(id);
    for (int32_t id : call.results) made.insert(id);
    const auto is_open = [&](int32_t id) { return id >= 0 && spec.tensors[static_cast<size_t>(id)].open != 0; };
    const bool planned = torch_bridge->has_planned_form(call.call) && std::none_of(call.results.begin(), call.results.end(), is_open);
    for (size_t r = 0; r < call.results.size(); ++r) {
      const int32_t id = call.results[r];
      if (id < 0) continue;
      const int32_t storage = spec.tensors[static_cast<size_t>(id)].storage;
      bridge::StorageSpec& s = spec.storages[static_cast<size_t>(storage)];
      if (op.call.result_alias[r] >= 0) continue;
      if (!planned) {
        s.kind = bridge::StorageSpec::kResult;
      } else if (escaping.count(storage)) {
        s.kind = bridge::StorageSpec::kFresh;
        running->fresh.push_back(storage);
      } else {
        s.kind = bridge::StorageSpec::kArena;
        s.arena_offset = spec.arena_bytes;
        spec.arena_bytes += (s.bytes + 63) / 64 * 64;
      }
    }
    spec.calls.push_back(std::move(call));
  }
  for (Py_ssize_t i = 0; i < PyList_Size(wraps_object); ++i) {
    bridge::WrapSpec wrap;
    int requires_grad, is_leaf, freed;
    const char* grad_fn;
    PyObject* forward;
    if (!PyArg_ParseTuple(PyList_GetItem(wraps_object, i), "ippsipO", &wrap.tensor, &requires_grad, &is_leaf, &grad_fn, &wrap.wrap.output_nr, &freed, &forward)) return nullptr;
    wrap.wrap.requires_grad = requires_grad;
    wrap.wrap.is_leaf = is_leaf;
    wrap.wrap.grad_fn = grad_fn;
    wrap.wrap.freed = freed;
    if (!read_ints(forward, wrap.forward)) return nullptr;
    spec.wraps.push_back(std::move(wrap));
  }
  spec.states = {torch_bridge->torch_state()};
  std::string error;
  running->program = torch_bridge->build(spec, &error);
  if (!running->program) return PyErr_Format(PyExc_ValueError, "%s", error.c_str());
  running->session = running->program->acquire();
  if (torch_bridge->functions().begin_run(running->session) < 0) return nullptr;
  running->calls = spec.calls.size();
  running->storages = spec.storages.size();
  return capsule(std::move(running));
}

PyObject* bind(PyObject*, PyObject* args) {
  PyObject *program, *tensor;
  int id;
  if (!PyArg_ParseTuple(args, "OiO", &program, &id, &tensor)) return nullptr;
  return PyLong_FromLong(torch_bridge->functions().bind_input(get<Running>(program)->session, id, tensor));
}

std::vector<int64_t> scalar_bits(PyObject* list) {
  std::vector<int64_t> bits;
  for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
    PyObject* item = PyList_GetItem(list, i);
    if (PyFloat_Check(item)) {
      const double d = PyFloat_AsDouble(item);
      int64_t b;
      std::memcpy(&b, &d, sizeof b);
      bits.push_back(b);
    } else {
      bits.push_back(PyLong_AsLongLong(item));
    }
  }
  return bits;
}

bool run_calls(Running& running, const std::vector<int64_t>& bits, int32_t first, int32_t last) {
  const bridge::SessionFunctions& f = torch_bridge->functions();
  if (first == 0) {
    for (int32_t storage : running.fresh) {
      if (f.allocate(running.session, storage) < 0) return false;
    }
  }
  for (int32_t c = first; c < last; ++c) {
    const int status = f.call(running.session, c, bits.data());
    if (status > 0) PyErr_SetString(PyExc_RuntimeError, "a view of another geometry than recorded: the trace would be left");
    if (status != 0) return false;
  }
  return true;
}

// run(program, scalars, first = 0, last = all)
PyObject* run(PyObject*, PyObject* args) {
  PyObject *program, *scalars;
  int first = 0, last = -1;
  if (!PyArg_ParseTuple(args, "OO|ii", &program, &scalars, &first, &last)) return nullptr;
  Running& running = *get<Running>(program);
  if (!run_calls(running, scalar_bits(scalars), first, last < 0 ? static_cast<int32_t>(running.calls) : last)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* wrap(PyObject*, PyObject* args) {
  PyObject* program;
  int number;
  if (!PyArg_ParseTuple(args, "Oi", &program, &number)) return nullptr;
  return torch_bridge->functions().wrap(get<Running>(program)->session, number);
}

PyObject* read_number(PyObject*, PyObject* args) {
  PyObject* program;
  int id, is_float;
  if (!PyArg_ParseTuple(args, "Oip", &program, &id, &is_float)) return nullptr;
  int64_t bits;
  if (torch_bridge->functions().read_scalar(get<Running>(program)->session, id, &bits) < 0) return nullptr;
  if (!is_float) return PyLong_FromLongLong(bits);
  double d;
  std::memcpy(&d, &bits, sizeof d);
  return PyFloat_FromDouble(d);
}

PyObject* tensor_size(PyObject*, PyObject* args) {
  PyObject* program;
  int id, dim;
  if (!PyArg_ParseTuple(args, "Oii", &program, &id, &dim)) return nullptr;
  return PyLong_FromLongLong(torch_bridge->functions().tensor_size(get<Running>(program)->session, id, dim));
}

PyObject* bump(PyObject*, PyObject* args) {
  PyObject* program;
  int id, by;
  if (!PyArg_ParseTuple(args, "Oii", &program, &id, &by)) return nullptr;
  return PyLong_FromLong(torch_bridge->functions().bump_version(get<Running>(program)->session, id, by));
}

PyObject* end_iteration(PyObject*, PyObject* program) {
  torch_bridge->functions().end_iteration(get<Running>(program)->session);
  Py_RETURN_NONE;
}

PyObject* begin_run(PyObject*, PyObject* program) {
  if (torch_bridge->functions().begin_run(get<Running>(program)->session) < 0) return nullptr;
  Py_RETURN_NONE;
}

PyObject* end_run(PyObject*, PyObject* program) {
  torch_bridge->functions().end_run(get<Running>(program)->session);
  Py_RETURN_NONE;
}

// The addresses of the program's storages, 0 for those that have none now.
PyObject* addresses(PyObject*, PyObject* program) {
  const Running& running = *get<Running>(program);
  PyObject* list = PyList_New(0);
  for (size_t s = 0; s < running.storages; ++s) {
    PyObject* address = PyLong_FromVoidPtr(running.session->storage_data[s]);
    PyList_Append(list, address);
    Py_DECREF(address);
  }
  return list;
}

PyObject* check_state(PyObject*, PyObject* program) { return PyLong_FromLong(torch_bridge->functions().check_state(get<Running>(program)->session, 0)); }

// A second session of the program takes the first one's place.
PyObject* change_session(PyObject*, PyObject* program) {
  Running& running = *get<Running>(program);
  bridge::Session* other = running.program->acquire();
  running.program->release(running.session);
  running.session = other;
  if (torch_bridge->functions().begin_run(other) < 0) return nullptr;
  Py_RETURN_NONE;
}

// time_program(program, inputs [(id, tensor)], scalars, repeats, grads [(wrap number, parameter)]) -> microseconds of the fastest iteration, all of
// it in C++, as (whole, bind, run, wrap and set grads, end).
PyObject* time_program(PyObject*, PyObject* args) {
  PyObject *program, *inputs, *scalars, *grads;
  int repeats;
  if (!PyArg_ParseTuple(args, "OOOiO", &program, &inputs, &scalars, &repeats, &grads)) return nullptr;
  Running& running = *get<Running>(program);
  const bridge::SessionFunctions& f = torch_bridge->functions();
  std::vector<std::pair<int32_t, PyObject*>> bound, set;
  const auto read_pairs = [](PyObject* list, std::vector<std::pair<int32_t, PyObject*>>& out) {
    for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
      int number;
      PyObject* tensor;
      if (!PyArg_ParseTuple(PyList_GetItem(list, i), "iO", &number, &tensor)) return false;
      out.emplace_back(number, tensor);
    }
    return true;
  };
  if (!read_pairs(inputs, bound) || !read_pairs(grads, set)) return nullptr;
  const std::vector<int64_t> bits = scalar_bits(scalars);
  using Clock = std::chrono::steady_clock;
  const auto us = [](Clock::time_point a, Clock::time_point b) { return std::chrono::duration<double, std::micro>(b - a).count(); };
  double best[5] = {1e30, 0, 0, 0, 0};
  for (int i = 0; i < repeats; ++i) {
    const auto start = Clock::now();
    for (const auto& [id, tensor] : bound) {
      if (f.bind_input(running.session, id, tensor) != 0) return PyErr_Format(PyExc_ValueError, "input %d does not fit", id);
    }
    const auto after_bind = Clock::now();
    if (!run_calls(running, bits, 0, static_cast<int32_t>(running.calls))) return nullptr;
    const auto after_run = Clock::now();
    for (const auto& [number, tensor] : set) {
      PyObject* grad = f.wrap(running.session, number);
      if (!grad || torch_bridge->set_grad(tensor, grad) < 0) return nullptr;
      Py_DECREF(grad);
    }
    const auto after_wrap = Clock::now();
    f.end_iteration(running.session);
    const auto end = Clock::now();
    const double now[5] = {us(start, end), us(start, after_bind), us(after_bind, after_run), us(after_run, after_wrap), us(after_wrap, end)};
    if (now[0] < best[0]) std::copy(now, now + 5, best);
  }
  return Py_BuildValue("ddddd", best[0], best[1], best[2], best[3], best[4]);
}

// time_call(program, call, repeats) -> nanoseconds a call, the fastest of ten rounds; inputs stay bound.
PyObject* time_call(PyObject*, PyObject* args) {
  PyObject* program;
  int call, repeats;
  if (!PyArg_ParseTuple(args, "Oii", &program, &call, &repeats)) return nullptr;
  Running& running = *get<Running>(program);
  const bridge::SessionFunctions& f = torch_bridge->functions();
  const int64_t none[16] = {};
  double best = 1e30;
  for (int round = 0; round < 10; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) {
      if (f.call(running.session, call, none) < 0) return nullptr;
    }
    best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / repeats);
  }
  return PyFloat_FromDouble(best);
}

PyObject* describe(PyObject*, PyObject* tensor) {
  const bridge::TensorObject t = torch_bridge->describe(tensor);
  PyObject* dict = PyDict_New();
  set_item(dict, "exact_type", PyBool_FromLong(t.exact_type));
  set_item(dict, "requires_grad", PyBool_FromLong(t.requires_grad));
  set_item(dict, "is_leaf", PyBool_FromLong(t.is_leaf));
  set_item(dict, "has_hooks", PyBool_FromLong(t.has_hooks));
  set_item(dict, "is_view", PyBool_FromLong(t.is_view));
  set_item(dict, "grad_fn", text(t.grad_fn));
  set_item(dict, "output_nr", PyLong_FromLong(t.output_nr));
  set_item(dict, "version", PyLong_FromLong(t.version));
  return dict;
}
PyObject* is_tensor(PyObject*, PyObject* object) { return PyBool_FromLong(torch_bridge->is_tensor(object)); }
PyObject* get_grad(PyObject*, PyObject* tensor) { return torch_bridge->get_grad(tensor); }
PyObject* set_grad(PyObject*, PyObject* args) {
  PyObject *tensor, *grad;
  if (!PyArg_ParseTuple(args, "OO", &tensor, &grad)) return nullptr;
  if (torch_bridge->set_grad(tensor, grad) < 0) return nullptr;
  Py_RETURN_NONE;
}
PyObject* storage_key(PyObject*, PyObject* tensor) { return PyLong_FromUnsignedLongLong(torch_bridge->storage_key(tensor)); }
PyObject* torch_state(PyObject*, PyObject*) {
  const ir::TorchState s = torch_bridge->torch_state();
  PyObject* dict = PyDict_New();
  set_item(dict, "grad_mode", PyBool_FromLong(s.grad_mode));
  set_item(dict, "inference_mode", PyBool_FromLong(s.inference_mode));
  set_item(dict, "autocast_cpu", PyBool_FromLong(s.autocast_cpu));
  set_item(dict, "deterministic", PyBool_FromLong(s.deterministic));
  set_item(dict, "default_dtype", text(std::string(ir::dtype_name(s.default_dtype))));
  set_item(dict, "overrides", PyBool_FromLong(s.overrides));
  set_item(dict, "function_modes", PyLong_FromLong(s.function_modes));
  set_item(dict, "clean", PyBool_FromLong(s.clean));
  return dict;
}
PyObject* overrides(PyObject*, PyObject* object) { return PyBool_FromLong(torch_bridge->overrides(object)); }
PyObject* ask_override(PyObject*, PyObject* function) {
  PyObject* asked = nullptr;
  PyObject* result = torch_bridge->ask_override([function] { return PyObject_CallNoArgs(function); }, &asked);
  if (result == nullptr && PyErr_Occurred() != nullptr) return nullptr;
  return Py_BuildValue("NN", result != nullptr ? result : Py_NewRef(Py_NotImplemented), asked != nullptr ? asked : Py_NewRef(Py_None));
}
PyObject* last_refusal(PyObject*, PyObject*) { return text(torch_bridge->last_refusal()); }
PyObject* set_counting(PyObject*, PyObject* on) {
  torch_bridge->set_counting(PyObject_IsTrue(on) == 1);
  Py_RETURN_NONE;
}
PyObject* ops_counted(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(torch_bridge->ops_counted()); }

// parallel_sum(n): 0 + 1 + ... + n - 1 on torch's threads.
PyObject* parallel_sum(PyObject*, PyObject* n) {
  struct Sum {
    std::atomic<int64_t> value{0};
  } sum;
  torch_bridge->parallel_for()(PyLong_AsLongLong(n), 1000, [](void* context, int64_t begin, int64_t end) {
    int64_t part = 0;
    for (int64_t i = begin; i < end; ++i) part += i;
    static_cast<Sum*>(context)->value += part;
  }, &sum);
  return PyLong_FromLongLong(sum.value);
}

PyMethodDef methods[] = {
    {"load", load, METH_VARARGS, "load(path, version): loads the bridge; torch's version"},
    {"recorder", make_recorder, METH_NOARGS, nullptr},
    {"enable", enable, METH_O, nullptr},
    {"disable", disable, METH_O, nullptr},
    {"take", take, METH_O, nullptr},
    {"list_records", list_records, METH_O, nullptr},
    {"tensor_id", tensor_id, METH_VARARGS, nullptr},
    {"tensor_meta", tensor_meta, METH_VARARGS, nullptr},
    {"build", build, METH_VARARGS, "build(recorder, records, escaping ids, scalar places, wraps, open dims)"},
    {"shapes", shapes, METH_VARARGS, "shapes(recorder, records, index): what an operation gives, from its operands' geometry"},
    {"bind", bind, METH_VARARGS, nullptr},
    {"run", run, METH_VARARGS, nullptr},
    {"wrap", wrap, METH_VARARGS, nullptr},
    {"read_number", read_number, METH_VARARGS, nullptr},
    {"tensor_size", tensor_size, METH_VARARGS, nullptr},
    {"bump", bump, METH_VARARGS, nullptr},
    {"end_iteration", end_iteration, METH_O, nullptr},
    {"begin_run", begin_run, METH_O, "a program that was built is in a run already"},
    {"end_run", end_run, METH_O, nullptr},
    {"addresses", addresses, METH_O, nullptr},
    {"check_state", check_state, METH_O, nullptr},
    {"change_session", change_session, METH_O, nullptr},
    {"time_program", time_program, METH_VARARGS, nullptr},
    {"time_call", time_call, METH_VARARGS, nullptr},
    {"describe", describe, METH_O, nullptr},
    {"is_tensor", is_tensor, METH_O, nullptr},
    {"get_grad", get_grad, METH_O, nullptr},
    {"set_grad", set_grad, METH_VARARGS, nullptr},
    {"storage_key", storage_key, METH_O, nullptr},
    {"torch_state", torch_state, METH_NOARGS, nullptr},
    {"overrides", overrides, METH_O, nullptr},
    {"ask_override", ask_override, METH_O, nullptr},
    {"last_refusal", last_refusal, METH_NOARGS, nullptr},
    {"set_counting", set_counting, METH_O, nullptr},
    {"ops_counted", ops_counted, METH_NOARGS, nullptr},
    {"parallel_sum", parallel_sum, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyModuleDef module = {PyModuleDef_HEAD_INIT, "bridge_driver", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_bridge_driver() { return PyModule_Create(&module); }
