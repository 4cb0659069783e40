// See fake_bridge.h.
#include "tests/exec/fake_bridge.h"

#include <cstring>
#include <vector>

namespace dynvm::tests {
namespace {

struct FakeProgram;

struct FakeSession : bridge::Session {
  FakeProgram* program = nullptr;
  std::vector<void*> data;
  std::vector<PyObject*> inputs;              // by storage, borrowed while bound
  std::vector<std::vector<char>> memory;      // by storage
};

struct FakeProgram : bridge::Program {
  bridge::ProgramSpec spec;
  PyObject *log = nullptr, *state_ok = nullptr;
  std::vector<std::unique_ptr<FakeSession>> sessions;
  std::vector<FakeSession*> free;

  bridge::Session* acquire() override {
    if (!free.empty()) {
      FakeSession* session = free.back();
      free.pop_back();
      return session;
    }
    auto session = std::make_unique<FakeSession>();
    size_t n = spec.storages.size();
    session->program = this;
    session->data.resize(n, nullptr);
    session->inputs.resize(n, nullptr);
    session->memory.resize(n);
    for (size_t k = 0; k < n; ++k) {
      if (spec.storages[k].kind == bridge::StorageSpec::kInput || spec.storages[k].kind == bridge::StorageSpec::kFresh) continue;
      session->memory[k].resize(spec.storages[k].bytes);
      session->data[k] = session->memory[k].data();
    }
    session->storage_data = session->data.data();
    session->impl = session.get();
    sessions.push_back(std::move(session));
    return sessions.back().get();
  }
  void release(bridge::Session* session) override { free.push_back(static_cast<FakeSession*>(session)); }

  void note(PyObject* entry) {
    PyList_Append(log, entry);
    Py_DECREF(entry);
  }
};

FakeSession& of(bridge::Session* session) { return *static_cast<FakeSession*>(session); }

double as_double(int64_t bits) {
  double value;
  std::memcpy(&value, &bits, 8);
  return value;
}

int bind_input(bridge::Session* s, int32_t tensor, PyObject* object) {
  FakeSession& session = of(s);
  int32_t storage = session.program->spec.tensors[tensor].storage;
  if (!PyByteArray_CheckExact(object) || PyByteArray_GET_SIZE(object) != session.program->spec.storages[storage].bytes) return 1;
  session.data[storage] = PyByteArray_AS_STRING(object);
  session.inputs[storage] = object;
  session.program->note(Py_BuildValue("(si)", "bind", tensor));
  return 0;
}

int check_state(bridge::Session* s, int32_t) {
  PyObject* flag = PyList_GET_ITEM(of(s).program->state_ok, 0);
  return PyObject_IsTrue(flag) ? 0 : 1;
}

int allocate(bridge::Session* s, int32_t storage) {
  FakeSession& session = of(s);
  session.memory[storage].assign(session.program->spec.storages[storage].bytes, 0);
  session.data[storage] = session.memory[storage].data();
  session.program->note(Py_BuildValue("(si)", "allocate", storage));
  return 0;
}

// The bits of the call's run-time numbers, in the order of its arguments.
PyObject* numbers_of(const bridge::CallSpec& spec, const int64_t* scalars) {
  PyObject* numbers = PyList_New(0);
  for (const ir::AtenArg& arg : spec.call.args) {
    if (arg.kind != ir::AtenArg::kScalar && arg.kind != ir::AtenArg::kScalarTensor) continue;
    PyObject* number = PyLong_FromLongLong(scalars[spec.operands[arg.operands[0]]]);
    PyList_Append(numbers, number);
    Py_DECREF(number);
  }
  return numbers;
}

int set_numbers(bridge::Session* s, int32_t index, const int64_t* scalars) {
  const bridge::CallSpec& spec = of(s).program->spec.calls[index];
  of(s).program->note(Py_BuildValue("(ssN)", "numbers", spec.call.name.c_str(), numbers_of(spec, scalars)));
  return 0;
}

int call(bridge::Session* s, int32_t index, const int64_t* scalars) {
  FakeSession& session = of(s);
  const bridge::CallSpec& spec = session.program->spec.calls[index];
  session.program->note(Py_BuildValue("(ssN)", "call", spec.call.name.c_str(), numbers_of(spec, scalars)));
  if (spec.call.name == "test::raise") {
    PyErr_SetString(PyExc_ValueError, "raised by test::raise");
    return -1;
  }
  if (spec.call.name == "test::fill") {
    int32_t storage = session.program->spec.tensors[spec.operands[spec.call.args[0].operands[0]]].storage;
    auto* elements = static_cast<float*>(session.data[storage]);
    for (int64_t k = 0; k < session.program->spec.storages[storage].bytes / 4; ++k)
      elements[k] = static_cast<float>(as_double(scalars[spec.operands[spec.call.args[1].operands[0]]]));
  }
  return 0;
}

int read_scalar(bridge::Session* s, int32_t tensor, int64_t* value) {
  FakeSession& session = of(s);
  const ir::TensorMeta& meta = session.program->spec.tensors[tensor];
  const void* data = session.data[meta.storage];
  if (meta.dtype == ir::DType::kF32) {
    double wide = *static_cast<const float*>(data);
    std::memcpy(value, &wide, 8);
  } else if (meta.dtype == ir::DType::kBool) {
    *value = *static_cast<const unsigned char*>(data);
  } else {
    *value = *static_cast<const int64_t*>(data);
  }
  return 0;
}

int bump_version(bridge::Session* s, int32_t tensor, int32_t by) {
  of(s).program->note(Py_BuildValue("(sii)", "bump", tensor, by));
  return 0;
}

int rebuild(bridge::Session*, const int32_t*, const int32_t*, int32_t) { return 0; }

PyObject* wrap(bridge::Session* s, int32_t index) {
  FakeSession& session = of(s);
  int32_t storage = session.program->spec.tensors[session.program->spec.wraps[index].tensor].storage;
  session.program->note(Py_BuildValue("(si)", "wrap", index));
  if (session.program->spec.wraps[index].wrap.grad_fn == "Raises") {
    PyErr_SetString(PyExc_RuntimeError, "raised by wrap");
    return nullptr;
  }
  if (session.inputs[storage] != nullptr) return Py_NewRef(session.inputs[storage]);
  return PyByteArray_FromStringAndSize(static_cast<const char*>(session.data[storage]), session.program->spec.storages[storage].bytes);
}

void end_iteration(bridge::Session* s) {
  FakeSession& session = of(s);
  for (PyObject*& input : session.inputs) input = nullptr;
  session.program->note(Py_BuildValue("(s)", "end"));
}

int64_t seed(bridge::Session* s, int32_t index) {
  of(s).program->note(Py_BuildValue("(ss)", "seed", of(s).program->spec.calls[index].call.name.c_str()));
  return 77;
}

int draw(bridge::Session* s, int32_t index, int64_t increment, int64_t* offset) {
  of(s).program->note(Py_BuildValue("(ssL)", "draw", of(s).program->spec.calls[index].call.name.c_str(), static_cast<long long>(increment)));
  *offset = 12;
  return 0;
}

constexpr bridge::SessionFunctions kFunctions = [] {
  bridge::SessionFunctions functions = {bind_input, check_state, allocate, call, read_scalar, bump_version, set_numbers, rebuild, wrap, end_iteration};
  functions.seed = seed;
  functions.draw = draw;
  return functions;
}();

class FakeBridge : public bridge::Bridge {
 public:
  FakeBridge(PyObject* log, PyObject* state_ok) : log_(log), state_ok_(state_ok), grads_(PyDict_New()) {}
  ~FakeBridge() override { Py_DECREF(grads_); }
  std::string torch_version() override { return "none"; }
  bool is_tensor(PyObject* object) override { return PyByteArray_CheckExact(object); }
  bridge::TensorObject describe(PyObject*) override { return {}; }
  PyObject* get_grad(PyObject* tensor) override {
    PyObject* key = PyLong_FromVoidPtr(tensor);
    PyObject* grad = PyDict_GetItem(grads_, key);
    Py_DECREF(key);
    return Py_NewRef(grad != nullptr ? grad : Py_None);
  }
  int set_grad(PyObject* tensor, PyObject* grad) override {
    if (PyUnicode_CheckExact(grad)) {
      PyErr_SetString(PyExc_TypeError, "assigned grad has to be a Tensor or None");
      return -1;
    }
    PyObject* key = PyLong_FromVoidPtr(tensor);
    int status = PyDict_SetItem(grads_, key, grad);
    Py_DECREF(key);
    return status;
  }
  uint64_t storage_key(PyObject* tensor) override { return reinterpret_cast<uint64_t>(tensor); }
  ir::TorchState torch_state() override { return {}; }
  std::unique_ptr<bridge::Recorder> recorder() override { return nullptr; }
  void set_counting(bool) override {}
  uint64_t ops_counted() override { return 0; }
  uint64_t backward_ops_counted() override { return 0; }
  uint64_t differentiated_ops_counted() override { return 0; }
  std::unique_ptr<bridge::Program> build(const bridge::ProgramSpec& spec, std::string* error) override {
    for (const bridge::CallSpec& call : spec.calls) {
      if (call.call.name == "test::unknown") {
        *error = "no operation test::unknown";
        return nullptr;
      }
    }
    auto program = std::make_unique<FakeProgram>();
    program->spec = spec;
    program->log = log_;
    program->state_ok = state_ok_;
    return program;
  }
  const bridge::SessionFunctions& functions() override { return kFunctions; }
  std::string last_refusal() override { return {}; }
  bool has_planned_form(const ir::AtenCall&) override { return true; }
  bridge::ParallelForFunction parallel_for() override { return nullptr; }
  int num_threads() override { return 1; }
  int cuda_device() override { return -1; }

 private:
  PyObject *log_, *state_ok_, *grads_;
};

}  // namespace

std::unique_ptr<bridge::Bridge> make_fake_bridge(PyObject* log, PyObject* state_ok) {
  return std::make_unique<FakeBridge>(log, state_ok);
}

}  // namespace dynvm::tests
