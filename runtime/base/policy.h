// Policies: who answers where the JIT decides something that is not a matter of being right.
//
// Purpose: each such place calls decide() with its usual answer and the facts that this comes from. Without a policy that is the answer, and costs the
//   test of a null pointer; the facts are not put together then.
//     if (!decide(Decision::kInline, true, [&] { return Facts{{"depth", depth}}; })) ...
// Inputs: set_policy(), before the script runs. Outputs: answers; their counts in report().policy; one event (kPolicy) for each that the policy gave.
// Invariants: an answer steers speed, never results: where code relies on something, it is tested beside the answer. Decisions are made with the GIL
//   held, by the thread that records or compiles, never in the machine code of a trace.
// Tests: tests/base/policy_test.cpp, tests/lab/test_policy.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace dynvm::base {

enum class Decision : uint8_t {
#define X(enumerator, name, text) enumerator,
#include "runtime/base/decisions.def"
#undef X
  kCount,
};

// The method's name.
std::string_view decision_name(Decision decision);

struct Fact {
  const char* name;
  std::variant<bool, int64_t, std::string> value;
};
using Facts = std::vector<Fact>;

class Policy {
 public:
  virtual ~Policy() = default;
  // Is there anything to ask? What is never asked needs no facts.
  virtual bool asks(Decision decision) const = 0;
  // Nothing: the usual answer, which is among the facts as "default".
  virtual std::optional<bool> answer(Decision decision, const Facts& facts) = 0;
};

namespace detail {
inline Policy* policy = nullptr;
bool ask(Decision decision, bool usual, Facts facts);
}  // namespace detail

// Null: none. Set once.
inline Policy* policy() { return detail::policy; }
inline void set_policy(Policy* policy) { detail::policy = policy; }

template <class MakeFacts>
bool decide(Decision decision, bool usual, MakeFacts facts) {
  if (__builtin_expect(policy() == nullptr, 1) || !policy()->asks(decision)) return usual;
  return detail::ask(decision, usual, facts());
}

}  // namespace dynvm::base
