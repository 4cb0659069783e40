// Lowering: what an ATen operation computes, as kernels of its own.
//
// Inputs: a trace and one of its aten instructions. Outputs: kernels, in order, that compute the same from the same memory; or "no".
// The fuse pass joins such kernels into larger ones; nothing else knows what an operation means.
//
// Types are eager's: operands are promoted as c10::result_type does (dimensions, then 0-dim tensors, then Python numbers), f16 and bf16 are
// computed in f32 within one operation and rounded at its end, results have the recorded dtype. Formulas keep the order of ATen's CPU
// kernels. Kernel pointers are the trace's storages; dims of size 1 are left out of the space, reduced dims excepted.
//
// Where sizes are symbols (TensorMeta::symbolic), so are those of the kernels. What a rule makes of sizes by adding or dividing, or takes for a value, holds for no
// other sizes than the codes: so an operation on such tensors is lowered twice, with two sets of codes, and has to give the same.
//
// Invariant: an operation is lowered only if the kernels do what eager does for all data; what may raise depending on data (integer
// division by a tensor) is not, but where eager stops the device instead, as kernels can (within).
// Tests: tests/ir/lower_run.cpp (against eval.h), tests/ir/test_against_torch.py (against PyTorch).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/trace.h"

namespace dynvm::ir {

struct Lowered {
  Kernel kernel;
  std::vector<Ref> tensors;  // for each kernel operand, a tensor value that looks at that storage
  std::vector<Ref> scalars;  // for each kernel scalar
};

// Values that the fuse pass makes for an operation's kernels, where they need some: kNoRef while there are none.
struct Provided {
  Ref temporary = kNoRef;             // memory that looks like temporary_of
  Ref seed = kNoRef, offset = kNoRef; // draw_seed and draw_offset
};

// `results`: the value that reads each result, kNoRef where nothing does. False: not lowered, and *why says so in a few words. True with
// no kernels: nothing is to be computed (empty tensors, uninitialised memory). An operation that draws can be lowered without its numbers, to see whether that can be done. recoded: recoded_for_lowering(trace); without it, and with a temporary, tensors
// of symbolic sizes are not lowered.
bool lower_call(const Trace& trace, Ref aten, const std::vector<Ref>& results, std::vector<Lowered>* out, std::string* why,
                const Provided& provided = {}, const Trace* recoded = nullptr);

// A row of pointwise.def, in place, of lists or not: each element is computed from elements, and of floating ones for any number.
bool is_elementwise(const AtenCall& call);

// Do the sizes of its results follow from those of its operands alone, whatever these are? Of an elementwise operation, or one of follows.def.
bool sizes_follow(const Trace& trace, const Inst& aten);
// Has its result the sizes that an argument names?
bool names_sizes(const AtenCall& call);

// Does the call put its operands one behind the other (cat), alike in all other dimensions? Along which, and how long each is there, in their order.
bool adds_sizes(const Trace& trace, const Inst& aten, size_t* dim, std::vector<int64_t>* terms);

// What lowering reads of a trace, with other codes for its symbols.
Trace recoded_for_lowering(const Trace& trace);

// What memory of its own the kernels of an operation hand from one to the next, storage aside; nothing for most. Where there is something lower_call
// wants a value that looks like it.
std::optional<TensorMeta> temporary_of(const Trace& trace, Ref aten);

// The dtype in which eager computes with these categories; kOther stands for "none of that kind".
DType promote(DType a, DType b);

// The same kernel over a space of other sizes and the same number of points, where its operands allow it (no reduction, no index).
bool reshape_kernel(Kernel* kernel, const std::vector<int64_t>& sizes);

}  // namespace dynvm::ir
