// See backward.h.
#include "tracer/backward.h"

#include "runtime/base/report.h"
#include "tracer/compile.h"

namespace dynvm::tracer {

CompiledBackward::CompiledBackward(std::unique_ptr<LoopTrace> trace) : trace_(std::move(trace)) {}

CompiledBackward::~CompiledBackward() {
  if (Py_IsInitialized() == 0) {
    (void)trace_.release();  // its objects are gone with the interpreter
    return;
  }
  const PyGILState_STATE state = PyGILState_Ensure();
  trace_.reset();
  PyGILState_Release(state);
}

bool CompiledBackward::run(const std::vector<PyObject*>& inputs, std::vector<PyObject*>* gradients) {
  bool waits = false;
  if (!trace_->checked && !check_kernels(*trace_, &waits)) return false;
  std::vector<PyObject*> slots = inputs;
  for (PyObject* slot : slots) Py_INCREF(slot);
  static constexpr int kNever = 0;
  const runtime::RunResult result = trace_->compiled->run(slots.data(), &kNever);
  const bool fine = result.kind == runtime::RunResult::kLeave;
  if (result.activation != nullptr) {
    for (runtime::FrameState& frame : trace_->compiled->take_exit_state(result))
      for (size_t i = 0; i < frame.slots.size(); ++i) {
        if (frame.slots[i] == runtime::slot_unchanged()) continue;
        if (fine && i >= inputs.size()) gradients->push_back(frame.slots[i]);
        else Py_XDECREF(frame.slots[i]);
      }
  }
  for (PyObject* slot : slots) Py_XDECREF(slot);
  if (fine && !PyErr_Occurred()) {
    trace_->entry->runs++;
    base::report().tensor_ops_compiled += static_cast<uint64_t>(trace_->entry->tensor_ops);
    return true;
  }
  PyErr_Clear();
  for (PyObject*& gradient : *gradients) Py_CLEAR(gradient);
  gradients->clear();
  return false;
}

}  // namespace dynvm::tracer
