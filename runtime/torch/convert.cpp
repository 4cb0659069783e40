// Conversions between torch's types and those of ir/trace.h; see convert.h.
#include "runtime/torch/convert.h"

// Torch 2.13 has no named tensors any more.
#if __has_include(<ATen/core/NamedTensor.h>)
#include <ATen/core/NamedTensor.h>
#define DYNVM_HAS_NAMES(tensor) at::impl::has_names((tensor).unsafeGetTensorImpl())
#else
#define DYNVM_HAS_NAMES(tensor) false
#endif

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>

#include "runtime/base/heuristics.h"

namespace dynvm::torch_bridge {

static_assert(static_cast<int>(c10::ScalarType::BFloat16) == ir::dtype_info(ir::DType::kBF16).number);
static_assert(static_cast<int>(c10::ScalarType::Bool) == ir::dtype_info(ir::DType::kBool).number);
static_assert(static_cast<int>(c10::ScalarType::ComplexDouble) == ir::dtype_info(ir::DType::kC128).number);

ir::DType to_dtype(c10::ScalarType type) { return ir::dtype_from_number(static_cast<int>(type)); }

c10::ScalarType to_scalar_type(ir::DType type) {
  const int number = ir::dtype_info(type).number;
  return number < 0 ? c10::ScalarType::Undefined : static_cast<c10::ScalarType>(number);
}

ir::TensorMeta to_meta(const at::Tensor& tensor) {
  ir::TensorMeta meta;
  meta.dtype = to_dtype(tensor.scalar_type());
  meta.device_type = static_cast<int8_t>(tensor.device().type());
  meta.device_index = tensor.device().index();
  meta.wrapped_number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  meta.inference = tensor.is_inference();
  meta.offset = tensor.storage_offset();
  meta.sizes = tensor.sizes().vec();
  meta.strides = tensor.strides().vec();
  return meta;
}

const char* refuse_tensor(const at::Tensor& tensor) {
  const c10::DispatchKeySet keys = tensor.key_set();
  if (keys.has(c10::DispatchKey::Python)) return "tensor subclass with its own dispatch";
  if (keys.has(c10::DispatchKey::FuncTorchBatched) || keys.has(c10::DispatchKey::FuncTorchGradWrapper)) return "functorch wrapper tensor";
  if (keys.has(c10::DispatchKey::Functionalize)) return "functionalization wrapper tensor";
  if (tensor.is_nested()) return "nested tensor";
  if (tensor.is_meta()) return "meta tensor";
  if (tensor.is_quantized()) return "quantized tensor";
  if (tensor.layout() != c10::Layout::Strided) return tensor.is_mkldnn() ? "mkldnn tensor" : "sparse tensor";
  if (!tensor.has_storage()) return "tensor without storage";
  if (tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) return "tensor of symbolic size";
  if (tensor.is_neg() || tensor.is_conj() || tensor._is_zerotensor()) return "lazily negated, conjugated or zero tensor";
  if (DYNVM_HAS_NAMES(tensor)) return "named tensor";
  if (to_dtype(tensor.scalar_type()) == ir::DType::kOther) return "unknown dtype";
  return nullptr;
}

namespace {
struct OpaqueTable {
  std::mutex mutex;
  std::deque<c10::IValue> values;
};

OpaqueTable& opaque_table() {
  static auto* table = new OpaqueTable;  // never destroyed: tensors in it must not die after torch
  return *table;
}
}  // namespace

int64_t intern_opaque(c10::IValue value) {
  OpaqueTable& table = opaque_table();
  std::lock_guard lock(table.mutex);
  if (value.isDevice()) {
    for (size_t i = 0; i < table.values.size(); ++i) {
      if (table.values[i].isDevice() && table.values[i].toDevice() == value.toDevice()) return static_cast<int64_t>(i);
    }
  }
  table.values.push_back(std::move(value));
  return static_cast<int64_t>(table.values.size()) - 1;
}

const c10::IValue& opaque(int64_t handle) {
  OpaqueTable& table = opaque_table();
  std::lock_guard lock(table.mutex);
  return table.values.at(static_cast<size_t>(handle));
}

bool opaque_text(int64_t handle, std::string* bytes) {
  const c10::IValue& value = opaque(handle);
  if (value.isDevice()) {
    *bytes = "D" + value.toDevice().str();
    return true;
  }
  if (!value.isTensor()) return false;
  const at::Tensor& tensor = value.toTensor();
  if (!tensor.defined() || !tensor.device().is_cpu() || tensor.layout() != c10::kStrided || !tensor.is_contiguous() || tensor.nbytes() > static_cast<size_t>(base::heuristics().cache_constant) << 10) return false;
  *bytes = "T";
  auto number = [&](int64_t n) { bytes->append(reinterpret_cast<const char*>(&n), sizeof n); };
  number(static_cast<int64_t>(tensor.scalar_type()));
  number(tensor.dim());
  for (int64_t size : tensor.sizes()) number(size);
  bytes->append(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  return true;
}

bool opaque_of(const std::string& bytes, int64_t* handle) {
  if (bytes.empty()) return false;
  try {
    if (bytes[0] == 'D') {
      *handle = intern_opaque(c10::Device(bytes.substr(1)));
      return true;
    }
    size_t position = 1;
    auto number = [&]() {
      int64_t n = -1;
      if (position + sizeof n <= bytes.size()) std::memcpy(&n, bytes.data() + position, sizeof n);
      position += sizeof n;
      return n;
    };
    const int64_t type = number(), dims = number();
    if (bytes[0] != 'T' || type < 0 || type >= static_cast<int64_t>(c10::ScalarType::NumOptions) || dims < 0 || dims > 64) return false;
    std::vector<int64_t> sizes;
    for (int64_t d = 0; d < dims; d++) sizes.push_back(number());
    for (int64_t size : sizes)
      if (size < 0 || size > static_cast<int64_t>(bytes.size())) return false;
    at::Tensor tensor = at::empty(sizes, static_cast<c10::ScalarType>(type));
    if (position + tensor.nbytes() != bytes.size()) return false;
    std::memcpy(tensor.mutable_data_ptr(), bytes.data() + position, tensor.nbytes());
    *handle = intern_opaque(std::move(tensor));
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

ByteExtent byte_extent(const ir::TensorMeta& meta) {
  const int64_t item = ir::dtype_size(meta.dtype);
  int64_t last = meta.offset, first = meta.offset;
  for (size_t d = 0; d < meta.sizes.size(); ++d) {
    if (meta.sizes[d] == 0) return {0, 0};
    last += (meta.sizes[d] - 1) * meta.strides[d];
  }
  return {first * item, (last + 1) * item};
}

}  // namespace dynvm::torch_bridge
