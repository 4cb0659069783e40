// The textual form of a trace: what dumps show and what tests read.
//
// Inputs: a Trace, or text. Outputs: text, or a Trace. Invariant: print(parse(print(t))) == print(t); two traces with equal text mean the
// same. Instructions are numbered by position; a parser accepts any names and numbers them anew, so parsing then printing renames.
//
//     trace 3 "train.py:41 train" storages 12
//     %0:o = slot 3
//     %1:o = const_obj @0 "<class 'Tensor'>"
//     guard_type %0, %1 !snap0
//     %3:t = unbox_tensor %0 !snap0 -> f32[64,128]{128,1} s5
//     %4 = aten "aten::add.Tensor" (%3, #f64 2.0, 1) -> (f32[64,128]{128,1} s6) !snap0
//     %5:t = result %4 #0 -> f32[64,128]{128,1} s6
//     kernel k0 (%3, %5)
//     loop !snap1
//     snap0: root unit 14 [=, _, %0]
//     kernel k0 { ... }                       (kernel/text.h)
//
// Arguments of an aten call, by kind: `%3` tensor, `undef` undefined tensor, `[%3, undef]` tensor list (`?[..]` for Tensor?[]), `none`,
// `5`, `0.5`, `true`, `"text"`, `ints[1,2]`, `floats[0.5]`, `bools[1,0]`, `$%7` run-time scalar, `$f64 %7` run-time scalar in a
// wrapped-number tensor, `#f64 0.5` constant in a wrapped-number tensor, `opaque 3` bridge handle.
// A snapshot of the state on the other side of a branch starts with `elsewhere`. Snapshot slots: `_` null, `=` unchanged since entry, `%n` a value. Code objects print as `code n`, numbered by first appearance: a
// parsed trace has small integers for pointers. Comments run from `;` to the end of the line.
//
// Tests: tests/ir/text.cpp.
#pragma once

#include <string>
#include <string_view>

#include "ir/trace.h"
#include "runtime/base/status.h"

namespace dynvm::ir {

std::string print_trace(const Trace& trace);

// One instruction as in print_trace, without its line end.
std::string print_inst(const Trace& trace, Ref ref);

// "f32[64,128]{128,1} s5", then what is not the default: offset 4, device 1 0 (type, index), grad, nonleaf, wrapped, param.
std::string print_meta(const TensorMeta& meta);

// Replaces *trace. An error names the line and what was expected there; *trace is then unspecified.
base::Status parse_trace(std::string_view text, Trace* trace);

}  // namespace dynvm::ir
