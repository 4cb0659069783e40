// Traces for tensors of changing sizes: one recording, compiled for each combination of sizes that comes.
//
// The first recording of a loop takes all sizes for constants. When a tensor comes in another size, the loop is recorded again with sizes as
// numbers (size_numbers.cpp), so that everything Python computes or decides from them stands in the trace. That recording is a GenericTrace:
// with the recordings of other sizes as samples it learns which arguments of ATen operations depend on sizes, and how; then it can be
// *specialised* for sizes that nobody has recorded, in the time that compiling takes. What a specialised trace computes is what recording
// would have given: guards on numbers of sizes must hold, and torch itself says what each operation gives (bridge::Shapes).
//
// How an argument depends on sizes. Where it differs between the recordings it must be, in all of them, one of these, simplest first: a number
// that the torch call was given, a size, stride or number of elements of the operation's operands, of the call's tensors, of the loop's inputs;
// a product of two of an operand's; one of these times, by or plus a constant. Whatever is the same in all recordings is a constant; so only
// sizes that have differed between recordings may change, and a number that was the same in all of them and that an argument may come from must
// stay what it was. Sizes 0 and 1 are cases of their own, for torch too.
//
// For all sizes there is one trace with *open* sizes (ir::TensorMeta::open): the recording is walked twice, with two numbers in the place of each size that
// differed between the recordings, and whatever differs between the walks is computed when the trace runs, by kernels where it is made of symbols
// (size_symbols.h), else by the library's operations. Sizes that were always equal must be so then.
//
// Sizes that an operation defines (nonzero, an index by a mask, a slice whose ends are numbers of the run) differ from run to run, so nothing is compiled for them: where they differed between
// the recordings they are open in each trace. Those that were always equal to an input's size, or the same each time, are not: with others the trace is left.
//
// The backwards of a recording's graph nodes are learnt with it (size_backwards.h).
//
// Inputs: recordings, the geometry of the tensor that an entry guard refused. Outputs: recordings with constant sizes.
// Invariant: a wrong guess about an input's size costs an entry: its guard refuses the tensor.
// Tests: tests/traces/cases/sizes_*.py.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/numbers.h"
#include "runtime/bridge/bridge.h"
#include "tracer/recorder.h"
#include "tracer/size_backwards.h"

namespace dynvm::tracer {

// The part of a recording that tells how numbers depend on sizes.
struct SizeSample {
  struct Call {
    ir::AtenCall call;
    std::vector<ir::TensorMeta> results;
  };
  std::vector<ir::TensorMeta> inputs;  // of unbox_tensor, in order
  std::vector<int64_t> free;           // numbers of Python's that may decide sizes
  std::vector<Call> calls;             // of aten, in order
};
SizeSample sample_of(const Recording& recording);

// Is it the tensor of an object that is always the same, a parameter?
bool is_constant_input(const ir::Trace& trace, ir::Ref ref);

// A tensor that came with another geometry than a trace's input has.
struct RefusedInput {
  size_t input = 0;  // the how many'th unbox_tensor of the recording
  std::vector<int64_t> sizes, strides;
  friend auto operator<=>(const RefusedInput&, const RefusedInput&) = default;
};

class GenericTrace {
 public:
  const std::vector<PyObject*>& owned() const { return recording_.owned; }
  GenericTrace(Recording recording, bridge::Bridge* bridge);
  ~GenericTrace();
  GenericTrace(const GenericTrace&) = delete;
  GenericTrace& operator=(const GenericTrace&) = delete;

  // From those of the samples that went the same way. Empty, or why sizes cannot change.
  std::string learn(const std::vector<SizeSample>& samples);
  // The recording with the sizes that it was made with; after learn, with open ones. Empty, or what is not known even of those.
  std::string own_sizes(Recording* out);
  void unlearn();
  // After learn: with all sizes open that differed between the recordings, also those of inputs. Empty, or why not.
  std::string open(Recording* out);
  // After learn: for the sizes of this input, and those that change with it. Empty, or why not.
  std::string specialise(const RefusedInput& refused, Recording* out);
  // Does it refuse the input for a size that was the same in all recordings?
  bool is_new(const RefusedInput& refused) const;
  SizeSample sample() const { return sample_of(recording_); }

  bool opened = false;                                 // a trace for all sizes has been made, or could not be
  // The instruction, with its code, that called an operation an argument of which depends on sizes in a way that is not known; null: there is none.
  const std::pair<PyCodeObject*, int>& not_known() const { return not_known_; }

 private:
  struct Source {
    enum Kind : uint8_t { kNumber, kSize, kStride, kElements, kOffset } kind;
    ir::Ref ref;    // the number, or the tensor
    int32_t dim;
  };
  // a [* b] * times / by + plus, without a remainder
  struct Expression {
    Source a, b;
    bool product = false, is_float = false;
    int64_t times = 1, by = 1, plus = 0;
  };
  struct Fit {
    int32_t argument, element;  // element: of a list, else -1
    Expression value;
  };
  // What an argument may come from, though both have been the same in all recordings.
  struct Steady {
    Source source;
    ir::Number value;
  };
  // A size that an operation defines.
  struct Defined {
    size_t call;     // in calls_
    size_t result;
    size_t dim;
    std::vector<int64_t> seen;
  };
  class Walk;
  class Opening;
  std::pair<PyCodeObject*, int> not_known_{nullptr, 0};

  std::string learn(const std::vector<SizeSample>& samples, size_t* other);
  bool note_layout(size_t number, size_t result, const std::vector<SizeSample>& samples);
  static bool strides_for(const std::vector<ir::TensorMeta>& seen, const std::vector<int64_t>& sizes, std::vector<int64_t>* strides);
  bool same_but_numbers(const ir::AtenArg& a, const ir::AtenArg& b) const;
  // That of torch's which an aten instruction is a part of.
  const SizeFacts::TorchCall& torch_call(const ir::Inst& aten) const {
    return recording_.sizes.torch_calls[static_cast<size_t>(recording_.sizes.torch_call_of[static_cast<size_t>(aten.imm)])];
  }
  std::vector<Source> sources(ir::Ref aten, size_t* of_operands) const;
  std::string fit(ir::Ref aten, const Walk& own, std::vector<std::unique_ptr<Walk>>& walks, const std::vector<SizeSample>& samples, size_t number);
  void note_defined(const std::vector<SizeSample>& samples);
  // What a class of sizes is that were equal in all recordings, by those sizes.
  using Classes = std::map<std::vector<int64_t>, int64_t>;
  struct OtherSizes {
    int64_t step;
    bool related;  // those that were always in one relation still are
    Classes sizes;
  };
  static int64_t other_size(const std::vector<int64_t>& seen, OtherSizes* others);
  std::string instance(Walk& walk, const Classes& now, bool open_inputs, Recording* out) const;
  std::string defined_for(const Classes& now, OtherSizes* others, Walk* walk) const;
  std::string inputs_for(OtherSizes* others, Walk* walk) const;
  std::string walk_own(Walk* walk) const;
  std::string walk_other(const Walk& walk, const Classes& now, bool open_inputs, OtherSizes others, Walk* other) const;
  std::string rewalk(Walk* walk) const;
  static PyObject* size_type();
  static PyObject* shape_object(const std::vector<int64_t>& sizes);  // a new torch.Size

  Recording recording_;                                // behind its end, what its nodes' backwards do
  JoinedBackwards backwards_;
  bridge::Bridge* bridge_;
  std::vector<ir::Ref> inputs_, calls_;                // unbox_tensor and aten instructions
  std::vector<std::vector<int32_t>> results_;          // of each of calls_: its result instructions, -1
  std::vector<bool> used_;                             // by meta: something reads such a tensor
  std::vector<std::vector<Steady>> steady_;            // of each of calls_
  std::vector<std::vector<Fit>> fits_;                 // of each of calls_
  bool learned_ = false;
  std::vector<ir::Ref> free_order_;
  std::map<ir::Ref, int64_t> free_;                    // numbers of Python's that may decide sizes, and what they were
  std::map<ir::Ref, std::vector<int64_t>> free_seen_;  // what they were in each sample, then here
  std::vector<Defined> defined_;                       // those that differed between the recordings
  std::map<std::pair<size_t, size_t>, std::vector<ir::TensorMeta>> defined_geometries_;  // of (call, result): in each sample, then here
  std::map<std::pair<size_t, size_t>, std::vector<ir::TensorMeta>> laid_out_;  // likewise, where torch's meta function says other strides than its kernel
  std::vector<std::vector<ir::TensorMeta>> geometries_;  // of each input: in each sample, then here
  std::vector<std::vector<std::vector<int64_t>>> seen_;  // of each input and dimension: the sizes of those
};

}  // namespace dynvm::tracer
