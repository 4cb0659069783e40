// Running a recorded call again: its arguments, its results, the random numbers that it drew.
#pragma once

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <mutex>
#include <vector>

#include "runtime/base/defects.h"
#include "runtime/torch/program.h"

namespace dynvm::torch_bridge {

inline void replace_tensor(std::vector<c10::IValue>& stack, const TensorPlace& place, at::Tensor value) {
  c10::IValue& argument = stack[static_cast<size_t>(place.argument)];
  if (place.element < 0) {
    argument = std::move(value);
  } else {
    argument.toList().set(static_cast<size_t>(place.element), c10::IValue(std::move(value)));
  }
}

inline std::vector<c10::IValue> copy_arguments(const std::vector<c10::IValue>& arguments) {
  std::vector<c10::IValue> stack = arguments;
  for (c10::IValue& argument : stack) {
    if (argument.isList()) argument = c10::IValue(argument.toList().copy());
  }
  return stack;
}

inline std::vector<at::Tensor> flat_results(const std::vector<c10::IValue>& stack) {
  std::vector<at::Tensor> out;
  for (const c10::IValue& value : stack) {
    if (value.isTensorList()) {
      for (const c10::IValue& element : value.toListRef()) out.push_back(element.toTensor());
    } else {
      out.push_back(value.isTensor() ? value.toTensor() : at::Tensor());
    }
  }
  return out;
}

// The default generator of a device, set to another state for as long as this lives.
class GeneratorState {
 public:
  explicit GeneratorState(const at::Generator& earlier) : generator_(at::globalContext().defaultGenerator(earlier.device())) {
    const std::lock_guard lock(generator_.mutex());
    if (base::seeded(base::Defect::kGeneratorMoves)) return;
    now_ = generator_.get_state();
    generator_.set_state(earlier.get_state());
  }
  ~GeneratorState() {
    if (base::seeded(base::Defect::kGeneratorMoves)) return;
    const std::lock_guard lock(generator_.mutex());
    generator_.set_state(now_);
  }

 private:
  at::Generator generator_;
  at::Tensor now_;
};

}  // namespace dynvm::torch_bridge
