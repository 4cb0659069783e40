// What the bridge must know of an ATen operator, derived once from its schema, tags and quirks.def.
//
// Inputs: an operator handle. Outputs: OperatorFacts, cached for the life of the process.
// Invariants: thread safe; touches no Python object. Tests: tests/torch.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace dynvm::torch_bridge {

struct OperatorFacts {
  explicit OperatorFacts(c10::OperatorHandle h) : handle(std::move(h)) {}

  struct ConditionalWrite {
    int argument, when;
  };

  c10::OperatorHandle handle;
  std::string name, overload;                       // "aten::add", "Tensor"
  bool ignored = false;                             // not a tensor operation (profiler marks): passed on unrecorded
  bool lift_fresh = false;                          // tensor made from Python values
  bool defines_sizes = false;                       // its data decides the sizes of its results
  bool checks_index = false;                        // that is so when it is indexed by a mask
  std::string unsupported;                          // why no call of it can be part of a trace
  std::vector<int> writes;                          // arguments written in place
  std::vector<ConditionalWrite> conditional_writes;
  std::set<int> numbers;                            // Scalars beside tensors, and integers that quirks.def has: their values change no shape and no dtype
  bool sizes_by_numbers = false;                    // Scalars and floats that it is given, or that what calls it is given, decide the sizes of its results
  bool unwritten = false;                           // its result's memory holds nothing yet
  bool reads_data = true;                           // of its operands: not their geometry alone, as zeros_like
  int own_size = -1;                                // the result of which only the library knows the size (quirks.def)
  std::vector<int> return_alias;                    // per schema return: argument it aliases, or -1
  bool random = false;                              // may draw from a generator
  std::vector<int> probability_arguments;           // a zero here means that nothing is drawn
  std::vector<int> training_arguments;              // a false here means that nothing is drawn
};

const OperatorFacts& operator_facts(const c10::OperatorHandle& handle);
// Has an operator of this name, without namespace and overload, been met so far?
bool has_operator_facts(std::string_view name);

// The overload that writes the results of `handle` into given tensors and computes as `handle` does; nothing when there is none, or
// only a generated one that computes elsewhere and copies. Its arguments are those of `handle` without the ones in `dropped`, then the
// outputs.
struct OutOverload {
  c10::OperatorHandle handle;
  std::vector<bool> dropped;      // per argument of the functional overload: not passed on (dtype, layout, device, pin_memory)
};
std::optional<OutOverload> find_out_overload(const c10::OperatorHandle& handle);

}  // namespace dynvm::torch_bridge
