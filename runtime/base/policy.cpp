// Asking a policy, with log and counts: see policy.h.
#include "runtime/base/policy.h"

#include <fmt/core.h>

#include "runtime/base/log.h"
#include "runtime/base/report.h"

namespace dynvm::base {

namespace {

constexpr std::string_view kNames[] = {
#define X(enumerator, name, text) name,
#include "runtime/base/decisions.def"
#undef X
};
static_assert(std::size(kNames) == static_cast<size_t>(Decision::kCount));

// "depth 2, name relu"
std::string text_of(const Facts& facts) {
  std::string text;
  for (const Fact& fact : facts) {
    const std::string value = std::holds_alternative<bool>(fact.value)      ? (std::get<bool>(fact.value) ? "yes" : "no")
                              : std::holds_alternative<int64_t>(fact.value) ? fmt::format("{}", std::get<int64_t>(fact.value))
                                                                            : std::get<std::string>(fact.value);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", fact.name, value);
  }
  return text;
}

}  // namespace

std::string_view decision_name(Decision decision) { return kNames[static_cast<size_t>(decision)]; }

bool detail::ask(Decision decision, bool usual, Facts facts) {
  facts.push_back({"default", usual});
  PolicyReport& counts = report().policy[std::string(decision_name(decision))];
  counts.asked++;
  const std::optional<bool> answer = policy->answer(decision, facts);
  if (!answer) return usual;
  (*answer ? counts.yes : counts.no)++;
  if (*answer != usual) counts.against++;
  if (is_told(LogCategory::kPolicy)) {
    EventFields fields{.what = kNames[static_cast<size_t>(decision)].data(), .reason = *answer ? "yes" : "no", .detail = text_of(facts)};
    for (const Fact& fact : facts) {
      if (std::string_view(fact.name) == "file") fields.file = std::get<std::string>(fact.value);
      if (std::string_view(fact.name) == "line") fields.line = static_cast<int>(std::get<int64_t>(fact.value));
    }
    log(LogCategory::kPolicy, fields, "{}: {} ({})", decision_name(decision), fields.reason, fields.detail);
  }
  return *answer;
}

}  // namespace dynvm::base
