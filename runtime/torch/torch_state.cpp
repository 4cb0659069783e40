// Torch's thread-local modes.
//
// `clean` is decided by the thread's dispatch key sets: every mode that intercepts operations (torch dispatch modes, functorch levels,
// functionalization, tracing) does so by changing them, so what is neither the default, autocast, inference mode nor the recorder's own key
// makes a state unclean. Modes that work above the dispatcher are asked for one by one. Tests: tests/torch.
#include "runtime/torch/torch_state.h"

#include <ATen/Context.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/autocast_mode.h>
#include <ATen/record_function.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <pthread.h>

#include <atomic>

#include "runtime/torch/convert.h"
#include "runtime/torch/python_tensor.h"
#include "runtime/torch/recorder.h"

namespace dynvm::torch_bridge {

ir::TorchState read_torch_state() {
  using c10::DispatchKeySet;
  ir::TorchState state;
  state.grad_mode = c10::GradMode::is_enabled();
  state.inference_mode = c10::InferenceMode::is_enabled();
  state.autocast_cpu = at::autocast::is_autocast_enabled(at::kCPU);
  state.autocast_cuda = at::autocast::is_autocast_enabled(at::kCUDA);
  state.deterministic = at::globalContext().deterministicAlgorithms();
  state.default_dtype = to_dtype(c10::typeMetaToScalarType(c10::get_default_dtype()));
  state.autocast_cpu_dtype = static_cast<int8_t>(at::autocast::get_autocast_dtype(at::kCPU));
  state.autocast_cuda_dtype = static_cast<int8_t>(at::autocast::get_autocast_dtype(at::kCUDA));

  state.overrides = at::impl::PythonTorchFunctionTLS::get_disabled_state() == at::impl::TorchFunctionDisabledState::ENABLED;

  constexpr DispatchKeySet kRecorder({kRecordKey, kRecordedMark});
  const c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  const DispatchKeySet included = keys.included_ - c10::default_included_set - kRecorder;
  DispatchKeySet excluded = keys.excluded_ - c10::default_excluded_set - c10::autocast_dispatch_keyset - kRecorder;
  if (state.inference_mode) excluded = excluded - c10::autograd_dispatch_keyset;
  state.function_modes = static_cast<uint16_t>(at::impl::PythonTorchFunctionTLS::stack_len());
  state.clean = included.empty() && excluded.empty() &&
                at::impl::PythonTorchFunctionTLS::get_disabled_state() != at::impl::TorchFunctionDisabledState::ALL_DISABLED &&
                !saved_tensor_hooks_active();
  return state;
}

namespace {

enum class Gpus { kNotYet, kUsed, kNone };
std::atomic<Gpus> gpus = Gpus::kNotYet;  // operations are recorded on autograd's threads, too

// A child process cannot use what its parent has begun to use.
Gpus look_for_gpus() {
  if (!c10::impl::hasDeviceGuardImpl(c10::kCUDA)) return Gpus::kNone;
  static PyObject *const package = PyUnicode_InternFromString("torch.cuda"), *const initialized = PyUnicode_InternFromString("_initialized");
  [[maybe_unused]] static const int watched = pthread_atfork(nullptr, nullptr, [] { gpus = Gpus::kNotYet; });
  PyObject* module = PyImport_GetModule(package);  // null, with an error, where Python ends and has no modules any more
  const bool begun = module != nullptr && PyModule_Check(module) && PyDict_GetItem(PyModule_GetDict(module), initialized) == Py_True;
  PyObject* forked = begun ? PyObject_CallMethod(module, "_is_in_bad_fork", nullptr) : nullptr;
  if (module == nullptr || (begun && forked == nullptr)) PyErr_Clear();
  Py_XDECREF(module);
  Py_XDECREF(forked);
  return !begun ? Gpus::kNotYet : forked == Py_False ? Gpus::kUsed : Gpus::kNone;
}

}  // namespace

int8_t current_gpu() {
  Gpus now = gpus;
  if (now == Gpus::kNotYet) gpus = now = look_for_gpus();
  return now == Gpus::kUsed ? c10::impl::VirtualGuardImpl(c10::kCUDA).getDevice().index() : int8_t{-1};
}

}  // namespace dynvm::torch_bridge
