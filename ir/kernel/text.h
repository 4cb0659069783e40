// The textual form of kernels: printing then parsing gives an equal kernel, so any dump is a test input.
//
//     {name} sizes [64, 128] reduce [1] pointers 3 scalars (f64, i64) {
//       o0 = f32 p0 + 0 {128, 1}
//       o1 = f32 p2 + 16 {1, 0}
//       n0 = load f32 o0
//       n1 = const f32 0.5
//       n2 = mul f32 n0, n1
//       n3 = reduce_sum f32 n2
//       store o1, n3
//     }
//
// The name is a double-quoted string; `symbols [1009]` before the sizes, `reduce` and `scalars` are left out where empty. Where there are symbols, a size, stride
// or offset is a product such as 768*s0. A `#` starts a comment that ends with the line.
// Floating constants print with all digits, or as `nan`, `inf`, `-inf`; a NaN's payload is not kept.
// Tests: tests/kernel/text_test.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "ir/kernel/kernel.h"

namespace dynvm::ir {

// Ends without a newline after `}`.
std::string print_kernel(const Kernel& kernel);

// Parses one kernel at the start of `text` (leading white space skipped) and puts the number of characters read into *length (where not
// null). The result is not verified. An error's message holds line and column within `text`.
base::Status parse_kernel(std::string_view text, Kernel* kernel, size_t* length = nullptr);

}  // namespace dynvm::ir
