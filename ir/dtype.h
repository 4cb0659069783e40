// Element types of tensors and of kernel values, derived from the table ir/dtypes.def.
//
// Inputs and outputs: plain functions over an enumeration; no state. `number` is the c10::ScalarType value, so that the torch
// bridge converts by table and nobody else needs torch headers.
// Tests: tests/kernel/text_test.cpp.
#pragma once

#include <cstdint>
#include <string_view>

namespace dynvm::ir {

enum class DType : uint8_t {
#define X(name, text, bytes, kind, number, sentence) k##name,
#include "ir/dtypes.def"
#undef X
  kCount,
};

struct DTypeInfo {
  std::string_view name;
  uint8_t bytes;
  char kind;      // as in dtypes.def
  int8_t number;  // c10::ScalarType, -1 for kOther
};

inline constexpr DTypeInfo kDTypeInfos[] = {
#define X(name, text, bytes, kind, number, sentence) {text, bytes, #kind[0], number},
#include "ir/dtypes.def"
#undef X
};

constexpr const DTypeInfo& dtype_info(DType dtype) { return kDTypeInfos[static_cast<int>(dtype)]; }
constexpr std::string_view dtype_name(DType dtype) { return dtype_info(dtype).name; }
// Bytes of one element; 0 for kOther.
constexpr int dtype_size(DType dtype) { return dtype_info(dtype).bytes; }
constexpr bool is_floating(DType dtype) { return dtype_info(dtype).kind == 'F'; }
// f16 and bf16: held as f32 in registers, rounded after each operation.
constexpr bool is_reduced_floating(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }
// Signed and unsigned integers, not bool.
constexpr bool is_integer(DType dtype) { return dtype_info(dtype).kind == 'I' || dtype_info(dtype).kind == 'U'; }
constexpr bool is_bool(DType dtype) { return dtype == DType::kBool; }
// Whether kernels can compute with it.
constexpr bool is_computable(DType dtype) { return dtype < DType::kCount && dtype_info(dtype).kind != 'M'; }

// False, and *dtype unchanged, where no type has that name.
constexpr bool dtype_from_name(std::string_view name, DType* dtype) {
  for (int i = 0; i < static_cast<int>(DType::kCount); ++i)
    if (kDTypeInfos[i].name == name) return *dtype = static_cast<DType>(i), true;
  return false;
}

// The type with that c10::ScalarType number; kOther where there is none.
constexpr DType dtype_from_number(int number) {
  for (int i = 0; i < static_cast<int>(DType::kOther); ++i)
    if (kDTypeInfos[i].number == number) return static_cast<DType>(i);
  return DType::kOther;
}

}  // namespace dynvm::ir
