// One aten instruction as lowering reads it: arguments by position, for one element of the tensor lists of a _foreach_ operation.
//
// Inputs: a trace, an instruction, the element's index (0 for ordinary operations). Outputs: tensors, numbers, dtypes.
// Invariant: a number that only a run tells is never taken for the one that was recorded: what asks for it as a constant makes the view `misread`, and the operation is not lowered.
// Tests: tests/ir/lower_run.cpp.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "ir/trace.h"

namespace dynvm::ir {

// Does it write its first argument and give that?
inline bool is_in_place(const AtenCall& call) { return call.name.back() == '_' && (call.name.size() < 2 || call.name[call.name.size() - 2] != '_'); }
// Does it write anything beside what is_in_place says?
inline bool writes_others(const AtenCall& call) { return is_in_place(call) ? call.mutates != std::vector<int32_t>{0} : !call.mutates.empty(); }

class CallView {
 public:
  CallView(const Trace& trace, Ref inst, size_t element)
      : trace_(trace), inst_(trace.insts[inst]), call_(trace.calls[inst_.imm]), element_(element) {}

  const Trace& trace() const { return trace_; }
  const AtenCall& call() const { return call_; }
  const Inst& inst() const { return inst_; }

  bool has(size_t i) const {
    if (i >= call_.args.size() || call_.args[i].kind == AtenArg::kNone) return false;
    return call_.args[i].kind != AtenArg::kTensor || call_.args[i].operands[0] >= 0;
  }
  const AtenArg& arg(size_t i) const { return call_.args[i]; }

  // The tensor of argument i, kNoRef where it is none.
  Ref tensor(size_t i) const {
    if (!has(i)) return kNoRef;
    const AtenArg& arg = call_.args[i];
    size_t k = arg.kind == AtenArg::kTensorList ? element_ : 0;
    if (arg.kind != AtenArg::kTensor && arg.kind != AtenArg::kTensorList) return kNoRef;
    if (k >= arg.operands.size() || arg.operands[k] < 0) return kNoRef;
    return trace_.arg(inst_, arg.operands[k]);
  }
  const TensorMeta& meta(Ref tensor) const { return trace_.metas[trace_.insts[tensor].meta]; }
  // Metadata of result i.
  const TensorMeta& result(size_t i) const { return trace_.metas[call_.results[i]]; }

  // A number: constant or run-time.
  bool is_number(size_t i) const {
    if (!has(i)) return false;
    switch (call_.args[i].kind) {
      case AtenArg::kInt:
      case AtenArg::kFloat:
      case AtenArg::kBool:
      case AtenArg::kScalar:
      case AtenArg::kScalarTensor:
      case AtenArg::kNumberTensor: return true;
      case AtenArg::kIntList: return element_ < call_.args[i].ints.size();
      case AtenArg::kFloatList: return element_ < call_.args[i].floats.size();
      default: return false;
    }
  }
  // The run-time scalar of argument i, or of this element where it is a list, kNoRef where it is a constant.
  Ref runtime_scalar(size_t i) const {
    const AtenArg& arg = call_.args[i];
    bool runtime = arg.kind == AtenArg::kScalar || arg.kind == AtenArg::kScalarTensor;
    return runtime ? trace_.arg(inst_, arg.operands[arg.operands.size() > 1 ? element_ : 0]) : kNoRef;
  }
  bool is_constant(size_t i) const { return is_number(i) && runtime_scalar(i) == kNoRef; }
  // Has a number of the trace been read as a constant (a dim, a size, a list of them)?
  bool misread() const { return misread_; }
  // Of a constant number.
  double real(size_t i) const {
    const AtenArg& arg = constant(i);
    switch (arg.kind) {
      case AtenArg::kFloat: return arg.f;
      case AtenArg::kFloatList: return arg.floats[element_];
      case AtenArg::kIntList: return static_cast<double>(arg.ints[element_]);
      case AtenArg::kNumberTensor: return is_floating(arg.dtype) ? arg.f : static_cast<double>(arg.i);
      default: return static_cast<double>(arg.i);
    }
  }
  int64_t integer(size_t i) const {
    const AtenArg& arg = constant(i);
    switch (arg.kind) {
      case AtenArg::kFloat: return static_cast<int64_t>(arg.f);
      case AtenArg::kFloatList: return static_cast<int64_t>(arg.floats[element_]);
      case AtenArg::kIntList: return arg.ints[element_];
      case AtenArg::kNumberTensor: return is_floating(arg.dtype) ? static_cast<int64_t>(arg.f) : arg.i;
      default: return arg.i;
    }
  }
  // Kind of number for type promotion: f64, i64 or bool.
  DType number_kind(size_t i) const {
    const AtenArg& arg = call_.args[i];
    switch (arg.kind) {
      case AtenArg::kFloat:
      case AtenArg::kFloatList: return DType::kF64;
      case AtenArg::kBool: return DType::kBool;
      case AtenArg::kScalarTensor:
      case AtenArg::kNumberTensor: return is_floating(arg.dtype) ? DType::kF64 : arg.dtype;
      case AtenArg::kScalar: {
        Type type = trace_.insts[trace_.arg(inst_, arg.operands[0])].type;
        return type == Type::kFloat ? DType::kF64 : type == Type::kInt ? DType::kI64 : DType::kBool;
      }
      default: return DType::kI64;
    }
  }
  std::string_view text(size_t i) const {
    return has(i) && call_.args[i].kind == AtenArg::kString ? std::string_view(call_.args[i].s) : std::string_view();
  }
  bool flag(size_t i) const { return has(i) && constant(i).i != 0; }
  // A list of constant integers.
  const std::vector<int64_t>& integers(size_t i) const { return constant(i).ints; }

  DType default_dtype() const { return trace_.torch_states.empty() ? DType::kF32 : trace_.torch_states[0].default_dtype; }

  // Argument i is a list of dims: normalised to 0..rank-1, sorted; all dims when absent or empty.
  std::vector<int64_t> dims(size_t i, int64_t rank) const {
    std::vector<int64_t> out;
    if (has(i)) {
      out = call_.args[i].kind == AtenArg::kIntList ? call_.args[i].ints : std::vector<int64_t>{constant(i).i};
      if (rank == 0) out.clear();
      for (int64_t& dim : out)
        if (dim < 0) dim += rank;
      std::sort(out.begin(), out.end());
    }
    if (out.empty())
      for (int64_t dim = 0; dim < rank; ++dim) out.push_back(dim);
    return out;
  }

 private:
  const AtenArg& constant(size_t i) const {
    misread_ = misread_ || call_.args[i].kind == AtenArg::kScalar || call_.args[i].kind == AtenArg::kScalarTensor;
    return call_.args[i];
  }

  const Trace& trace_;
  const Inst& inst_;
  const AtenCall& call_;
  size_t element_;
  mutable bool misread_ = false;
};

}  // namespace dynvm::ir
