// Conversions between torch's types and those of ir/trace.h.
//
// Inputs: tensors and IValues. Outputs: TensorMeta, DType, opaque handles.
// Invariants: nothing here touches a Python object, so it may run while torch has released the GIL.
// Tests: tests/torch.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>

#include "ir/trace.h"

namespace dynvm::torch_bridge {

// kOther when the rest of dynvm does not know the type.
ir::DType to_dtype(c10::ScalarType type);
c10::ScalarType to_scalar_type(ir::DType type);

// Geometry, type and device of `tensor`; `storage` and the autograd flags are left at their defaults.
ir::TensorMeta to_meta(const at::Tensor& tensor);

// Dispatch modes and functorch levels. A trace may end inside of one: what is made for it then is nothing that they should see.
constexpr c10::DispatchKeySet kModeKeys({c10::DispatchKey::FuncTorchDynamicLayerFrontMode, c10::DispatchKey::FuncTorchDynamicLayerBackMode, c10::DispatchKey::Python,
                                         c10::DispatchKey::PythonTLSSnapshot});

// Why `tensor` cannot be part of a trace, or null when it can.
const char* refuse_tensor(const at::Tensor& tensor);

// Values that only the bridge understands (devices, generators, constant tensors) travel through the IR as handles. They live as long as
// the process: a trace that holds one may outlive its recorder.
int64_t intern_opaque(c10::IValue value);
const c10::IValue& opaque(int64_t handle);
// The same as bytes: devices, and dense tensors in the CPU's memory of up to 1 MiB. False for others, and for bytes that are not such.
bool opaque_text(int64_t handle, std::string* bytes);
bool opaque_of(const std::string& bytes, int64_t* handle);

// Bytes from the storage's start that a tensor of this geometry reads or writes: [first, last).
struct ByteExtent {
  int64_t first = 0, last = 0;
};
ByteExtent byte_extent(const ir::TensorMeta& meta);

}  // namespace dynvm::torch_bridge
