// A recording with open sizes (sizes.h): the trace in which what depends on them is read off or computed when it runs.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tracer/size_symbols.h"
#include "tracer/size_walk.h"

namespace dynvm::tracer {

// From two walks that differ in the open sizes alone.
class GenericTrace::Opening {
 public:
  // made: has everything but the trace. a: the walk whose sizes stand in the trace as examples. related: sizes that were always in one relation have to be.
  Opening(const GenericTrace& generic, const Walk& a, const Walk& b, bool related, Recording* made);
  // Empty, or why the trace cannot be made.
  std::string run();

 private:
  // Numbers that were given to no call before: free ones (SizeFacts::Free), and those that are, or are computed from, such ones.
  struct Given {
    std::vector<ir::Ref> free, numbers;
  };
  // Whether a number depends on open sizes, and whether by steps (a remainder), so that two examples may agree by chance.
  enum Dependence : uint8_t { kConstant, kDepends, kBySteps };
  void find_dependences();
  Dependence depends(const Source& source) const;
  Dependence depends(const Expression& e) const;
  void mark();
  std::vector<CallFacts> call_facts() const;
  std::string check() const;
  std::string allowed(size_t number) const;
  std::string call(ir::Ref old, size_t number);
  void same_class(ir::Ref old, size_t dim, const std::vector<int64_t>& seen);
  void same_size(ir::Ref size, const std::vector<int64_t>& seen);
  void guard(ir::Ref truth);
  bool is_free(ir::Ref number) const;
  uint64_t opened(int32_t meta) const;
  ir::Ref copy(ir::Ref old, const std::vector<ir::Ref>& operands);
  ir::Ref constant(int64_t value);
  ir::Ref object(PyObject* taken, const char* text);  // takes the reference
  ir::Ref shape(ir::Ref old);
  ir::Ref emit(const Source& source);                 // kNoRef: nothing gives it
  ir::Ref emit(const Expression& e);
  ir::Ref size_of(ir::Ref tensor, int64_t dim);       // tensor: in the trace that is made
  void note_symbols(ir::Ref old);
  ir::Ref emit(int64_t product);                      // of symbols

  const GenericTrace& generic_;
  const ir::Trace& old_;
  const Walk &a_, &b_;
  const bool related_;
  Recording& made_;
  ir::Trace& trace_;
  std::vector<Dependence> numbers_;                   // by instruction of the recording
  std::vector<ir::Ref> renamed_;
  int32_t snapshot_ = ir::kNoSnapshot;                // of the instruction at hand, or the last one that has one
  std::vector<Given> given_first_;                    // by call
  std::vector<std::pair<ir::Ref, int64_t>> symbol_sizes_;  // by symbol: a tensor of the trace that is made, and its dimension of that size
  std::map<std::vector<int64_t>, ir::Ref> class_sizes_;  // of sizes that were always equal: the first one's
};

}  // namespace dynvm::tracer
