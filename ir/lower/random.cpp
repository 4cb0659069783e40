// Lowering of operations that draw random numbers.
//
// Inputs, outputs, invariants: builder.h (Request). The numbers are eager's, to the bit (drawing.h), so an operation is lowered only where the place of its operand is known
// as it would be in eager: not that of a view which moves from run to run.
// Tests: tests/ir/passes/fuse, tests/ir/drawing.cpp, tests/cuda/test_dropout.py.
#include "ir/drawing.h"
#include "ir/effects.h"
#include "ir/lower/structured.h"

namespace dynvm::ir {
namespace {

// Is it, or is it a view of, what a number of the run places?
bool moves(const Trace& trace, Ref tensor) {
  for (Ref view : views_behind(trace, tensor)) {
    const AtenCall& call = trace.calls[trace.insts[view].imm];
    for (size_t k = 0; k < call.results.size(); ++k) {
      if (call.results[k] < 0 || call.result_alias[k] < 0) continue;
      if (trace.metas[call.results[k]].storage != storage_of(trace, trace.arg(view, static_cast<uint32_t>(call.args[call.result_alias[k]].operands[0])))) return true;
    }
  }
  return false;
}

}  // namespace

// native_dropout(input, p, train)
bool lower_dropout(const Request& request) {
  const CallView& call = request.call;
  const Ref self = call.tensor(0), result = request.result(0), mask = request.result(1);
  if (self == kNoRef) return request.refuse("no tensor");
  const TensorMeta& meta = call.meta(self);
  if (!is_floating(meta.dtype)) return request.refuse("dtype");
  Builder b(call, meta.sizes);
  b.set_type(meta.dtype);
  if (!call.call().is_random) {
    if (!call.has(2) || call.flag(2)) return request.refuse("a probability that needs no numbers");
    if (result != kNoRef) b.store(result, b.load(self));
    if (mask != kNoRef) b.store(mask, b.constant(1));
    request.out->push_back(b.finish("dropout"));
    return true;
  }
  if (!call.is_constant(1)) return request.refuse("the probability changes");
  const double p = call.real(1);
  if (!(p > 0 && p < 1)) return request.refuse("a probability that needs no numbers");
  if (moves(call.trace(), self)) return request.refuse("its place changes");
  const std::optional<Drawing> drawing = drawing_of(call.call().stream, meta);
  if (!drawing || !drawing->form.sound()) return request.refuse("random");
  if (result == kNoRef && mask == kNoRef) return true;
  // As torch computes: the probability of keeping in the compute dtype, and one over that.
  const double keep = b.type() == DType::kF32 ? static_cast<float>(1 - p) : 1 - p;
  const Value number = b.cast(b.draw(request.provided, result != kNoRef ? result : mask, drawing->strides, drawing->form), b.type());
  const Value kept = number < b.constant(keep);
  if (result != kNoRef) b.store(result, b.load(self) * b.cast(kept, b.type()) * b.constant(1 / keep));
  if (mask != kNoRef) b.store(mask, kept);
  request.out->push_back(b.finish("dropout"));
  return true;
}

}  // namespace dynvm::ir
