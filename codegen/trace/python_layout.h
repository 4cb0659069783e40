// Where CPython keeps what generated code looks at: byte offsets and addresses.
//
// Input: filled by runtime/exec/layout.cpp for the running CPython. Output: constants in generated code.
// Invariant: offsets are those of the release that dynvm was built for; they are equal within a minor version.
// Tests: tests/exec.
#pragma once

#include <cstdint>

namespace dynvm::codegen {

struct PythonLayout {
  // How an int keeps its digits.
  enum LongStyle : uint8_t {
    kSizedDigits,   // 3.11: ob_size is the signed number of digits
    kTaggedDigits,  // from 3.12 on: the number of digits times 8, and 0, 1 or 2 for positive, zero and negative
    kOther,         // anything else: the helper unboxes
  } long_style = kOther;
  int32_t ob_refcnt = 0, ob_type = 0;
  bool immortal_objects = false;                   // from 3.12 on: bit 31 of the count set: it does not change
  int32_t var_size = 0;                            // ob_size of tuples, lists
  int32_t long_size = 0;                           // of ints, see long_style
  int32_t type_flags = 0, type_version = 0;        // tp_flags, tp_version_tag
  uint64_t managed_dict_flag = 0;                  // bit in tp_flags
  int32_t managed_dict = 0, managed_values = 0;    // from the object: pointers to its dict and to its inline values
  // Where inline values are.
  enum Values : uint8_t {
    kValuesBehind,  // 3.11: behind a pointer of their own
    kValuesOdd,     // 3.12: one word for dict and values; their address less one, where they are there
    kValuesInside,  // 3.13: in the object, where a byte says that they are valid
  } values = kValuesBehind;
  int32_t values_valid = 0;                        // kValuesInside: that byte
  int32_t first_value = 0;                         // value 0 from what managed_values holds, or from the object
  int32_t heap_type_keys = 0, keys_version = 0;    // ht_cached_keys; dk_version in it
  int32_t dict_version = 0, dict_used = 0;         // ma_version_tag, ma_used
  int32_t function_version = 0;                    // func_version
  int32_t float_value = 0, long_digits = 0;
  int32_t tuple_items = 0, list_items = 0;         // list_items holds a pointer
  const void* none = nullptr;
  const void* true_object = nullptr;
  const void* false_object = nullptr;
  const void* long_type = nullptr;
  const void* float_type = nullptr;
  const void* dealloc = nullptr;                   // void(object): called when a reference count reaches zero
};

}  // namespace dynvm::codegen
