// The generators of GPUs, as far as kernels draw in the place of native_dropout: how it draws here, and drawing for it.
//
// Versions of torch differ in how many neighbours a thread takes at a time. So that is measured, once for each dtype and device: native_dropout of ones runs with a known
// seed, for sizes that are divisible by much and by little and for one that needs several rounds, and what it has dropped, its scale and how far it has moved the generator
// on are compared with what drawing.h says. Where nothing fits, the operation stays the library's. The generator is afterwards as it was.
//
// Inputs: a recorded call; the default generator of a device. Outputs: how the call draws; seed and offset.
// Invariants: nothing of this is recorded, and nothing is measured while a stream is captured. A generator is a seed and an offset, so two numbers bring it back.
// Tests: tests/cuda/test_dropout.py, tests/torch/test_cuda.py.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

#include <string>

#include "ir/trace.h"
#include "runtime/torch/operator_facts.h"

namespace dynvm::torch_bridge {

struct GeneratorPlace {
  c10::Device device{c10::kCPU};
  uint64_t seed = 0, offset = 0;
};

// The default generator of a device goes there, and back at the end: for as long as this lives.
class GeneratorAt {
 public:
  explicit GeneratorAt(const GeneratorPlace& place);
  ~GeneratorAt();
  GeneratorAt(const GeneratorAt&) = delete;

 private:
  GeneratorPlace before_;
};

// Can the default generator be read and moved on? Not while the current stream is captured.
bool can_draw(c10::Device device);

// How a call that is about to run draws, where that is known. *note: why it is not, where torch is the reason. Takes the GIL where it measures.
ir::RandomStream stream_of_call(const OperatorFacts& facts, const torch::jit::Stack& stack, size_t base, std::string* note);

}  // namespace dynvm::torch_bridge
