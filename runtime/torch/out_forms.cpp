// Running a call by its operator's out form, into planned memory. See session.h.
//
// Some forms use the memory that they are given for what they compute on the way, in another size than the result's: a loss with a reduction puts the
// losses of all elements there first. No schema says so, and it differs with the arguments (`reduction`), so the first run of each call shows it: planned memory cannot be resized,
// so such a form raises, or leaves another geometry. Its call is run by the operator itself from then on. Tests: tests/traces/cases/resizing_out_forms.py.
#include "runtime/base/defects.h"
#include "runtime/torch/session.h"

namespace dynvm::torch_bridge {

namespace {

// Keeps warnings back, for what may be done again in another way.
class HeldWarnings final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override { held_.push_back(warning); }
  void show() {
    for (const c10::Warning& warning : held_) c10::warn(warning);
  }

 private:
  std::vector<c10::Warning> held_;
};

}  // namespace

// False: it is no way to run this call, and the operator itself has to be run.
bool SessionImpl::run_out(const CallPlan& plan, CallState& state) {
  torch::jit::Stack stack;
  stack.reserve(state.arguments.size() + state.results.size());
  for (size_t i = 0; i < state.arguments.size(); ++i)
    if (!plan.out->dropped[i]) stack.push_back(state.arguments[i]);
  for (const at::Tensor& result : state.results) stack.push_back(result);
  if (state.out_form == CallState::kFits || base::seeded(base::Defect::kOutResizes)) {
    plan.out->handle.callBoxed(&stack);
    return true;
  }
  std::vector<std::vector<int64_t>> planned;  // sizes and strides of each result
  for (const at::Tensor& result : state.results) {
    planned.push_back(result.sizes().vec());
    planned.push_back(result.strides().vec());
  }
  HeldWarnings warnings;
  try {
    const c10::WarningUtils::WarningHandlerGuard held(&warnings);
    plan.out->handle.callBoxed(&stack);
    state.out_form = CallState::kFits;
  } catch (const c10::Error&) {  // it may be the script's own: the operator raises it again
    state.out_form = CallState::kRefused;
  }
  for (size_t i = 0; i < plan.results.size(); ++i) {
    if (plan.results[i] < 0 || (state.results[i].sizes() == planned[2 * i] && state.results[i].strides() == planned[2 * i + 1])) continue;
    state.out_form = CallState::kRefused;
    state.results[i].unsafeGetTensorImpl()->set_sizes_and_strides(planned[2 * i], planned[2 * i + 1], state.results[i].storage_offset());
  }
  if (state.out_form == CallState::kRefused) return false;
  warnings.show();
  return true;
}

}  // namespace dynvm::torch_bridge
