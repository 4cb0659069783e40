// Operations that are called without the dispatcher: the functions behind direct.def.
//
// Invariants: called below autograd with every tensor on the CPU, or all on one device for an ANYWHERE row, and every result in planned storage of the recorded geometry.
// Tests: tests/torch (bitwise against eager).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string_view>

namespace dynvm::torch_bridge {

// arguments: in schema order; results: the operation's result tensors (for an in-place operation: undefined, it writes its argument).
using DirectFunction = void (*)(const c10::IValue* arguments, at::Tensor* results);

struct Direct {
  DirectFunction function = nullptr;
  bool product = false;   // a PRODUCT row
  bool anywhere = false;  // an ANYWHERE row
};

// Function null when direct.def has no such row.
Direct find_direct(std::string_view name, std::string_view overload);

}  // namespace dynvm::torch_bridge
