// Python tensor objects and autograd metadata; see python_tensor.h.
#include "runtime/torch/python_tensor.h"

#include <ATen/SavedTensorHooks.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>

#include "runtime/torch/block_pool.h"
#include "runtime/torch/shown_node.h"

namespace dynvm::torch_bridge {
namespace {

PyTypeObject* parameter_class = nullptr;
PyTypeObject* tensor_class = nullptr;

}  // namespace

bool load_python_classes() {
  PyObject* module = PyImport_ImportModule("torch.nn.parameter");
  if (!module) return false;
  PyObject* type = PyObject_GetAttrString(module, "Parameter");
  Py_DECREF(module);
  if (!type) return false;
  parameter_class = reinterpret_cast<PyTypeObject*>(type);  // lives as long as torch
  tensor_class = reinterpret_cast<PyTypeObject*>(THPVariableClass);
  return true;
}

// By its type: what only says that it is one, as a mock does, cannot be unpacked.
bool is_tensor_object(PyObject* object) { return object != nullptr && (is_plain_tensor(object) || is_plain_parameter(object) || PyType_IsSubtype(Py_TYPE(object), tensor_class)); }
bool is_plain_tensor(PyObject* object) { return Py_TYPE(object) == tensor_class; }
bool is_plain_parameter(PyObject* object) { return Py_TYPE(object) == parameter_class; }
bool dies_quietly(PyObject* object) {
  if (!is_plain_tensor(object)) return false;
  const at::Tensor& tensor = THPVariable_Unpack(object);
  if (tensor.requires_grad() || tensor.layout() != at::kStrided || !tensor.has_storage() || is_foreign(tensor.storage().data_ptr())) return false;
  PyObject** attributes = _PyObject_GetDictPtr(object);
  PyObject** references = PyObject_GET_WEAKREFS_LISTPTR(object);
  return (attributes == nullptr || *attributes == nullptr || PyDict_GET_SIZE(*attributes) == 0) && (references == nullptr || *references == nullptr);
}
const at::Tensor& unpack(PyObject* tensor) { return THPVariable_Unpack(tensor); }
PyObject* to_python(const at::Tensor& tensor) { return THPVariable_Wrap(tensor); }

static bool accumulator_has_hooks(const torch::autograd::AutogradMeta& meta) {
  if (meta.grad_accumulator_.expired()) return false;
  const auto accumulator = meta.grad_accumulator_.lock();
  return accumulator && (!accumulator->pre_hooks().empty() || !accumulator->post_hooks().empty());
}

bool has_hooks(const at::Tensor& tensor) {
  const torch::autograd::AutogradMeta* meta = torch::autograd::impl::get_autograd_meta(tensor);
  if (!meta) return false;
  return !meta->hooks_.empty() || meta->post_acc_grad_hooks_ || meta->retains_grad_ || accumulator_has_hooks(*meta);
}

bool has_python_hooks_only(PyObject* object) {
  const auto* python = reinterpret_cast<const THPVariable*>(object);
  const at::Tensor& tensor = unpack(object);
  const torch::autograd::AutogradMeta* meta = torch::autograd::impl::get_autograd_meta(tensor);
  if (!meta || !tensor.is_leaf() || meta->cpp_hooks_list_ || accumulator_has_hooks(*meta)) return false;
  if (meta->hooks_.size() != (python->backward_hooks ? 1u : 0u)) return false;
  return (meta->post_acc_grad_hooks_ != nullptr) == (python->post_accumulate_grad_hooks != nullptr);
}

std::string grad_fn_name(const at::Tensor& tensor) {
  const auto& function = tensor.grad_fn();
  return function ? function->name() : std::string();
}

bridge::TensorObject describe_tensor(PyObject* object) {
  const at::Tensor& tensor = unpack(object);
  bridge::TensorObject out;
  out.exact_type = is_plain_tensor(object) || is_plain_parameter(object);
  try {
    out.grad_fn = grad_fn_name(tensor);  // first: a view's node is made anew here where its base has been written, and it is a leaf until then
    out.is_leaf = tensor.is_leaf();
  } catch (const c10::Error&) {  // one of several views that a function gave, and another has been written: nobody can use its graph
    out.is_leaf = false;
  }
  out.requires_grad = tensor.requires_grad();
  out.has_hooks = has_hooks(tensor);
  out.python_hooks = out.has_hooks && has_python_hooks_only(object);
  out.is_view = tensor.is_view();
  out.output_nr = static_cast<int32_t>(tensor.output_nr());
  out.version = tensor.is_inference() ? 0 : static_cast<uint32_t>(tensor._version());
  return out;
}

PyObject* get_grad_object(PyObject* object) {
  const at::Tensor& tensor = unpack(object);
  // A non-leaf without a retained gradient makes the attribute's getter warn.
  if (!tensor.is_leaf() && !tensor.retains_grad()) return PyObject_GetAttrString(object, "grad");
  const at::Tensor& grad = tensor.grad();
  if (!grad.defined()) Py_RETURN_NONE;
  return THPVariable_Wrap(grad);
}

namespace {
// Since torch 2.13 a tensor may ask for gradients of another type.
template <class Meta>
bool has_own_grad_type(const Meta* meta) {
  if constexpr (requires { meta->grad_dtype_; }) {
    return meta && (meta->grad_dtype_ || meta->allow_grad_dtype_mismatch_);
  } else {
    return false;
  }
}
}  // namespace

int set_grad_object(PyObject* object, PyObject* grad_object) {
  const bool plain = (is_plain_tensor(object) || is_plain_parameter(object)) && grad_object != object;
  if (plain && grad_object == Py_None) {
    unpack(object).mutable_grad().reset();
    return 0;
  }
  if (plain && is_plain_tensor(grad_object)) {
    const at::Tensor& tensor = unpack(object);
    const at::Tensor& grad = unpack(grad_object);
    // Only where the setter's checks hold by inspection; it raises or converts otherwise.
    if (tensor.key_set() == grad.key_set() && tensor.dtype() == grad.dtype() && tensor.device() == grad.device() &&
        tensor.sizes() == grad.sizes() && c10::isFloatingType(tensor.scalar_type()) &&
        !has_own_grad_type(torch::autograd::impl::get_autograd_meta(tensor))) {
      tensor.mutable_grad() = grad;
      return 0;
    }
  }
  return PyObject_SetAttrString(object, "grad", grad_object);
}

void attach_freed_graph(const at::Tensor& tensor, const std::string& name, int32_t output_nr) {
  NodePointer node = new_shown_node(name, true);
  for (int32_t i = 0; i < output_nr; ++i) node->add_input_metadata(torch::autograd::Node::undefined_input());
  const uint32_t number = node->add_input_metadata(tensor);
  torch::autograd::impl::set_gradient_edge(tensor, {std::move(node), number});
}

void take_graph(PyObject* tensor, PyObject* from) {
  torch::autograd::impl::set_gradient_edge(unpack(tensor), torch::autograd::impl::gradient_edge(unpack(from)));
}

at::Tensor copy_with_graph(const at::Tensor& tensor) {
  const c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
  at::Tensor copy = tensor.clone();
  if (tensor.requires_grad()) torch::autograd::impl::set_gradient_edge(copy, torch::autograd::impl::gradient_edge(tensor));
  return copy;
}

void take_contents(PyObject* tensor, PyObject* from, int writes) {
  {
    const c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset_with_ADInplaceOrView);
    unpack(tensor).copy_(unpack(from));
  }
  for (int k = 0; k < writes; ++k) unpack(tensor).unsafeGetTensorImpl()->bump_version();
  take_graph(tensor, from);
}

bool autograd_engine_is_running() { return torch::autograd::get_current_graph_task_id() != -1; }

bool saved_tensor_hooks_active() { return !at::SavedTensorDefaultHooks::get_tls_state().stack.empty(); }

void set_python_error(const std::exception_ptr& error) { torch::translate_exception_to_python(error); }

// The macros that torch's bindings use need symbols that torch does not export; this is what they do.
int guarded(int (*function)(void*), void* argument) {
  try {
    torch::PyWarningHandler warnings;  // collects warnings, and issues them as Python's when it goes
    try {
      return function(argument);
    } catch (...) {
      warnings.set_in_exception();
      throw;
    }
  } catch (...) {
    set_python_error(std::current_exception());
    return -1;
  }
}

}  // namespace dynvm::torch_bridge
