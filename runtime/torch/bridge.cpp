// The Bridge object that libdynvm_torch.so exports; see runtime/bridge/bridge.h.
//
// Inputs: none but the running torch. Outputs: dynvm_torch_bridge(). Invariants: one Bridge for the life of the process.
// Tests: tests/torch.
#include "runtime/bridge/bridge.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/version.h>

#include <cstdio>

#include "runtime/torch/capture.h"
#include "runtime/torch/convert.h"
#include "runtime/torch/function_nodes.h"
#include "runtime/torch/gemm.h"
#include "runtime/torch/graph_nodes.h"
#include "runtime/torch/operator_facts.h"
#include "runtime/torch/outside_graphs.h"
#include "runtime/torch/overrides.h"
#include "runtime/torch/program.h"
#include "runtime/torch/python_tensor.h"
#include "runtime/torch/recorder.h"
#include "runtime/torch/rehearsal.h"
#include "runtime/torch/session.h"
#include "runtime/torch/shapes.h"
#include "runtime/torch/shortcuts.h"
#include "runtime/torch/torch_symbol.h"
#include "runtime/torch/torch_state.h"
#include "runtime/torch/watched_functions.h"

namespace dynvm::torch_bridge {
namespace {

class BridgeImpl final : public bridge::Bridge {
 public:
  std::string torch_version() override { return TORCH_VERSION; }

  bool is_tensor(PyObject* object) override { return is_tensor_object(object); }
  bool dies_quietly(PyObject* object) override { return torch_bridge::dies_quietly(object); }
  bridge::TensorObject describe(PyObject* tensor) override { return describe_tensor(tensor); }
  bool overrides(PyObject* object) override { return torch_bridge::overrides(object); }
  PyObject* ask_override(const std::function<PyObject*()>& function, PyObject** asked) override { return torch_bridge::ask_override(function, asked); }
  PyObject* get_grad(PyObject* tensor) override { return get_grad_object(tensor); }
  int set_grad(PyObject* tensor, PyObject* grad) override { return set_grad_object(tensor, grad); }
  void take_graph(PyObject* tensor, PyObject* from) override { torch_bridge::take_graph(tensor, from); }
  void take_contents(PyObject* tensor, PyObject* from, int writes) override { torch_bridge::take_contents(tensor, from, writes); }
  std::unique_ptr<bridge::GraphCut> cut_graph(const std::vector<PyObject*>& roots, const std::vector<PyObject*>& outsiders) override { return torch_bridge::cut_graph(roots, outsiders); }
  std::unique_ptr<bridge::Rehearsal> rehearsal() override { return make_rehearsal(); }
  uint64_t storage_key(PyObject* tensor) override {
    const at::Tensor& t = unpack(tensor);
    return t.has_storage() ? reinterpret_cast<uint64_t>(t.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()) : 0;
  }
  PyObject* shortcut(PyObject* callee) override { return shortcut_of(callee); }
  std::string shortcut_name(PyObject* object) override { return torch_bridge::shortcut_name(object); }
  PyObject* shortcut_named(const std::string& name) override { return torch_bridge::shortcut_named(name); }
  bool opaque_text(int64_t handle, std::string* bytes) override { return torch_bridge::opaque_text(handle, bytes); }
  bool opaque_of(const std::string& bytes, int64_t* handle) override { return torch_bridge::opaque_of(bytes, handle); }
  ir::TorchState torch_state() override {
    ir::TorchState state = read_torch_state();
    state.cuda_device = current_gpu();
    return state;
  }

  std::unique_ptr<bridge::Recorder> recorder() override { return make_recorder(); }
  void set_counting(bool on) override { torch_bridge::set_counting(on); }
  void tell_of_kernels(void (*listener)()) override { torch_bridge::tell_of_kernels(listener); }
  std::string replaced_kernels() override { return torch_bridge::replaced_kernels(); }
  uint64_t ops_counted() override { return torch_bridge::ops_counted(); }
  uint64_t differentiated_ops_counted() override { return torch_bridge::differentiated_ops_counted(); }
  uint64_t backward_ops_counted() override { return torch_bridge::backward_ops_counted(); }

  std::unique_ptr<bridge::Program> build(const bridge::ProgramSpec& spec, std::string* error) override { return ProgramImpl::build(spec, error); }
  const bridge::SessionFunctions& functions() override { return session_functions(); }

  std::string last_refusal() override { return SessionImpl::last_refusal().reason; }
  bool refused_sharing() override { return SessionImpl::last_refusal().by_sharing; }
  bool refused_geometry(std::vector<int64_t>* sizes, std::vector<int64_t>* strides) override {
    const SessionImpl::Refusal& refusal = SessionImpl::last_refusal();
    *sizes = refusal.sizes;
    *strides = refusal.strides;
    return refusal.by_geometry;
  }
  bool has_other_geometry(PyObject* object, const ir::TensorMeta& meta, std::vector<int64_t>* sizes, std::vector<int64_t>* strides) override {
    if (meta.symbolic || meta.open != 0 || !is_tensor_object(object) || refuse_tensor(unpack(object)) != nullptr) return false;
    ir::TensorMeta now = to_meta(unpack(object));
    if (now.dtype != meta.dtype || now.device_type != meta.device_type || now.device_index != meta.device_index || now.sizes.size() != meta.sizes.size()) return false;
    if (now.sizes == meta.sizes && now.strides == meta.strides) return false;
    *sizes = std::move(now.sizes);
    *strides = std::move(now.strides);
    return true;
  }
  std::unique_ptr<bridge::Shapes> shapes() override { return make_shapes(); }

  bool has_planned_form(const ir::AtenCall& call) override {
    const auto handle = c10::Dispatcher::singleton().findSchema(c10::OperatorName(call.name, call.overload));
    if (!handle) return false;
    std::optional<OutOverload> out;
    Direct direct;
    // A call does not say where its tensors are. On a GPU some forms planned here turn out to run functionally; their results are then copied.
    const CallHow how = classify(call, operator_facts(*handle), /*on_cpu=*/true, &out, &direct);
    return how != CallHow::kFunctional && how != CallHow::kMovedView;
  }

  bool takes_number(const ir::AtenCall& call, size_t argument) override {
    const auto handle = c10::Dispatcher::singleton().findSchema(c10::OperatorName(call.name, call.overload));
    return handle && operator_facts(*handle).numbers.count(static_cast<int>(argument)) != 0;
  }

  bool may_change(const ir::AtenCall& call, size_t argument) override {
    const auto handle = c10::Dispatcher::singleton().findSchema(c10::OperatorName(call.name, call.overload));
    if (!handle || argument >= handle->schema().arguments().size()) return false;
    c10::TypePtr type = handle->schema().arguments()[argument].real_type();
    while (type->kind() == c10::TypeKind::OptionalType || type->kind() == c10::TypeKind::ListType) type = type->containedType(0);
    if (type->kind() != c10::TypeKind::IntType) return true;
    return std::none_of(call.args.begin(), call.args.end(), [](const ir::AtenArg& arg) { return arg.kind == ir::AtenArg::kTensor || arg.kind == ir::AtenArg::kTensorList; });
  }

  bool sizes_by_numbers(const ir::AtenCall& call) override {
    const auto handle = c10::Dispatcher::singleton().findSchema(c10::OperatorName(call.name, call.overload));
    return handle && operator_facts(*handle).sizes_by_numbers;
  }

  int fast_convolutions() override {
    if (!at::globalContext().userEnabledCuDNN()) return 0;
    try {
      return at::globalContext().allowTF32CuDNN() ? 2 : 1;
    } catch (const c10::Error&) {  // the script has set it for some operations only
      return 2;
    }
  }

  bridge::ParallelForFunction parallel_for() override {
    return [](int64_t size, int64_t grain, bridge::ParallelBody body, void* context) {
      at::parallel_for(0, size, grain, [&](int64_t begin, int64_t end) { body(context, begin, end); });
    };
  }
  int cuda_device() override { return current_gpu(); }
  void* (*cuda_stream())(int device) override { return cuda_stream_function(); }
  int num_threads() override { return at::get_num_threads(); }
  bridge::Captures* captures() override { return cuda_captures(); }
  void set_heuristics(const base::Heuristics& numbers) override { base::detail::store(numbers); }
  void set_switches(const base::AskedSwitches& asked, uint64_t defects) override {
    base::set_asked_switches(asked);
    base::set_seeded_defects(defects);
  }
  std::vector<std::string> operators() override {
    std::vector<std::string> names;
    for (const c10::OperatorName& each : c10::Dispatcher::singleton().getAllOpNames()) names.push_back(each.name);
    return names;
  }
  void set_matmul(codegen::MatmulFunction function) override { torch_bridge::set_matmul(function); }
};

// The torch in this process must be the one that the layouts in this library come from.
bool torch_is_the_one_built_for() {
  PyObject* module = PyImport_ImportModule("torch.version");
  if (!module) return false;
  PyObject* version = PyObject_GetAttrString(module, "__version__");
  Py_DECREF(module);
  if (!version) return false;
  const char* text = PyUnicode_AsUTF8(version);
  const std::string running = text ? text : "";
  Py_DECREF(version);
  if (!text) return false;
  if (running.rfind(TORCH_VERSION, 0) == 0) return true;
  PyErr_Format(PyExc_ImportError, "dynvm was built for torch %s, but torch %s is running", TORCH_VERSION, running.c_str());
  return false;
}

}  // namespace
}  // namespace dynvm::torch_bridge

extern "C" __attribute__((visibility("default"))) dynvm::bridge::Bridge* dynvm_torch_bridge(int version) {
  using namespace dynvm::torch_bridge;
  static BridgeImpl* instance = nullptr;
  if (version != dynvm::bridge::kBridgeVersion) {
    PyErr_Format(PyExc_ImportError, "dynvm's torch bridge has version %d, but version %d is asked for", dynvm::bridge::kBridgeVersion, version);
    return nullptr;
  }
  if (instance) return instance;
  if (!torch_is_the_one_built_for() || !load_python_classes()) return nullptr;
  try {
    register_recording_fallback();
    register_function_output();
    watch_functions();
  } catch (...) {
    set_python_error(std::current_exception());
    return nullptr;
  }
  instance = new BridgeImpl;
  return instance;
}
