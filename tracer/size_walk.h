// One way through a recording whose sizes are numbers, for tensors of certain sizes: what each number, each argument and each tensor's geometry is
// then. See sizes.h.
//
// Inputs: `metas` of the inputs, set before the first step; `defined`. Outputs: metas, numbers, calls. torch itself (bridge::Shapes) says what
// operations give for sizes other than those recorded.
// Tests: tests/traces/cases/sizes_*.py.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tracer/sizes.h"

namespace dynvm::tracer {

// The numbers of an argument that may depend on sizes.
size_t numbers_of(const ir::AtenArg& arg);
bool is_float_number(const ir::AtenArg& arg);
ir::Number number_of(const ir::AtenArg& arg, size_t i);
void set_number(ir::AtenArg* arg, size_t i, const ir::Number& value);
// The dimension of an operand of this rank that it works on.
size_t indexed_dim(const ir::AtenCall& index, size_t rank);
// Were these sizes of a dimension, or numbers, not all the same?
bool varies(const std::vector<int64_t>& seen);
// What a size was of another one in all recordings: so much more, as the length of a cache and that of what it was filled from; so many times it, as the tokens of a batch and its length; or that part of it.
struct SizeRelation {
  int64_t times = 1, by = 1, plus = 0;
  std::optional<int64_t> operator()(int64_t size) const { return size % by == 0 ? std::optional(size / by * times + plus) : std::nullopt; }
};
std::optional<SizeRelation> steady_relation(const std::vector<int64_t>& seen, const std::vector<int64_t>& other);
bool same_geometry(const ir::TensorMeta& a, const ir::TensorMeta& b);
// The same but for strides of sizes of 1, which lead nowhere: torch's meta functions say others than its kernels.
bool same_places(const ir::TensorMeta& a, const ir::TensorMeta& b);

class GenericTrace::Walk {
 public:
  // Without `shapes` the sizes are the recording's own.
  Walk(const GenericTrace& generic, std::unique_ptr<bridge::Shapes> shapes);

  // Any instruction but aten. Empty, or why the recording does not hold for these sizes.
  std::string step(ir::Ref ref);
  // An aten instruction, the `number`th, as `call`.
  std::string run(size_t number, ir::AtenCall call);
  // Its result lies like this.
  void lies(size_t number, size_t result, const ir::TensorMeta& as);
  std::optional<ir::Number> value(const Source& source) const;
  std::optional<ir::Number> value(const Expression& e) const;

  std::vector<ir::TensorMeta> metas;
  std::vector<std::optional<ir::Number>> numbers;          // by instruction
  std::map<ir::Ref, std::vector<int64_t>> shape_objects;   // of build_size
  std::vector<ir::AtenCall> calls;                         // of aten, in order, as far as walked
  std::map<size_t, std::vector<ir::TensorMeta>> defined;   // by call: what operations give whose data decides sizes; else what was recorded
  std::map<ir::Ref, int64_t> free;                         // numbers of Python's that may decide sizes
  bool any_way = false;                                    // decisions about sizes may be others than recorded

 private:
  const GenericTrace& generic_;
  const ir::Trace& trace_;
  std::unique_ptr<bridge::Shapes> shapes_;
  std::vector<bool> settled_;                              // metas that this walk has come to
};

}  // namespace dynvm::tracer
