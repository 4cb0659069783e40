// Changing numbers among what autograd differentiates: see graph_numbers.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/trace.h"
#include "runtime/bridge/bridge.h"

namespace dynvm::tracer {

// What the gradient of an operation does with a changing number that it was given.
enum class NumberUse {
  kUnused,
  kItself,   // once for each time it is computed
  kAtPlace,  // says where the gradient goes (DifferentiatedIndex)
  kDerived,  // perhaps another number, made of it
};
NumberUse use_of_number(const ir::AtenCall& call, size_t argument);

// `x[i]`, `x[i:j]`: the operation of backward() that spreads its gradient has each of its arguments, one place further.
struct DifferentiatedIndex {
  ir::AtenCall call;                   // with the numbers as they were recorded
  std::vector<int64_t> sizes;          // of what it looks at
  std::map<size_t, uint32_t> numbers;  // by argument, those that change: values of who asks
};

// Numbers that went into operations that autograd keeps.
struct GraphNumbers {
  struct Multiplier {
    int uses = 0;
    bool derived = false;
  };
  std::map<uint32_t, Multiplier> multipliers;
  std::vector<DifferentiatedIndex> indices;

  // Those whose gradient this operation may spread.
  std::vector<const DifferentiatedIndex*> spread_by(const ir::AtenCall& backward) const;
};

// A number is that argument of that operation.
struct NumberRead {
  size_t record, argument, number;
};

// Finds the changing numbers of a trace's calls, which `records` differentiate, among the arguments of these. *numbers: those that are read. Empty, or why one may be another than it looks.
std::string find_numbers(const ir::Trace& trace, const std::vector<ir::Ref>& calls, const std::vector<bridge::OpRecord>& records, std::vector<ir::CallNumber>* numbers, std::vector<NumberRead>* reads);

// The call with its changing numbers as they were recorded.
ir::AtenCall with_constants(const ir::AtenCall& call);

}  // namespace dynvm::tracer
