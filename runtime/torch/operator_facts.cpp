// Facts about ATen operators; see operator_facts.h.
#include "runtime/torch/operator_facts.h"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace dynvm::torch_bridge {
namespace {

struct Quirk {
  enum Kind { kUnsupported, kSupported, kMutates, kOwnSize, kUnwritten, kDefinesSizes, kNumber, kSizesByNumbers } kind;
  std::string_view name;
  int argument, when;
  std::string_view sentence;
};

constexpr Quirk kQuirks[] = {
#define UNSUPPORTED(name, sentence) {Quirk::kUnsupported, name, -1, -1, sentence},
#define SUPPORTED(name, sentence) {Quirk::kSupported, name, -1, -1, sentence},
#define MUTATES(name, argument, when, sentence) {Quirk::kMutates, name, argument, when, sentence},
#define OWN_SIZE(name, result, sentence) {Quirk::kOwnSize, name, result, -1, sentence},
#define UNWRITTEN(name, sentence) {Quirk::kUnwritten, name, -1, -1, sentence},
#define DEFINES_SIZES(name, sentence) {Quirk::kDefinesSizes, name, -1, -1, sentence},
#define NUMBER(name, argument, sentence) {Quirk::kNumber, name, argument, -1, sentence},
#define SIZES_BY_NUMBERS(name, sentence) {Quirk::kSizesByNumbers, name, -1, -1, sentence},
#include "runtime/torch/quirks.def"
#undef SIZES_BY_NUMBERS
#undef NUMBER
#undef DEFINES_SIZES
#undef UNWRITTEN
#undef OWN_SIZE
#undef UNSUPPORTED
#undef SUPPORTED
#undef MUTATES
};

bool share_a_set(const c10::AliasInfo& a, const c10::AliasInfo& b) {
  for (const auto& set : a.beforeSets()) {
    if (b.beforeSets().count(set)) return true;
  }
  return false;
}

// The alias sets of an argument or return; for a list they may stand with its elements.
std::vector<const c10::AliasInfo*> alias_infos(const c10::Argument& argument) {
  std::vector<const c10::AliasInfo*> out;
  if (const c10::AliasInfo* info = argument.alias_info()) {
    out.push_back(info);
    for (const c10::AliasInfo& inner : info->containedTypes()) out.push_back(&inner);
  }
  return out;
}

c10::TypePtr without_optional(const c10::TypePtr& type) {
  const auto optional = type->cast<c10::OptionalType>();
  return optional ? optional->getElementType() : type;
}

// A `Scalar`, to be precise: dims and sizes that are plain `int` are subtypes of it.
bool is_scalar(const c10::TypePtr& type) { return without_optional(type)->kind() == c10::TypeKind::NumberType; }

bool is_integer(const std::vector<c10::Argument>& arguments, int argument) {
  return static_cast<size_t>(argument) < arguments.size() && without_optional(arguments[static_cast<size_t>(argument)].real_type())->kind() == c10::TypeKind::IntType;
}

std::unique_ptr<OperatorFacts> derive(const c10::OperatorHandle& handle) {
  auto facts = std::make_unique<OperatorFacts>(handle);
  facts->name = handle.operator_name().name;
  facts->overload = handle.operator_name().overload_name;
  const std::string_view name = facts->name;
  facts->ignored = name.starts_with("profiler::");
  facts->lift_fresh = name == "aten::lift_fresh" || name == "aten::lift";
  facts->checks_index = name == "aten::index" || name == "aten::_unsafe_index";
  if (!handle.hasSchema()) {
    facts->unsupported = "operator without schema";
    return facts;
  }
  const c10::FunctionSchema& schema = handle.schema();
  const auto& arguments = schema.arguments();

  bool exempt = false, untagged = false;
  for (const Quirk& quirk : kQuirks) {
    if (quirk.name != name) continue;
    if (quirk.kind == Quirk::kUnsupported) facts->unsupported = std::string(quirk.sentence);
    if (quirk.kind == Quirk::kSupported) exempt = true;
    if (quirk.kind == Quirk::kUnwritten) facts->unwritten = true;
    if (quirk.kind == Quirk::kDefinesSizes) untagged = true;
    if (quirk.kind == Quirk::kOwnSize) facts->own_size = quirk.argument;
    if (quirk.kind == Quirk::kNumber && is_integer(arguments, quirk.argument)) facts->numbers.insert(quirk.argument);
    if (quirk.kind == Quirk::kSizesByNumbers) facts->sizes_by_numbers = true;
    if (quirk.kind == Quirk::kMutates) facts->conditional_writes.push_back({quirk.argument, quirk.when});
  }
  facts->defines_sizes = untagged || (!exempt && handle.hasTag(at::Tag::dynamic_output_shape));
  if (!exempt && handle.hasTag(at::Tag::data_dependent_output)) facts->unsupported = "data-dependent result";
  if (!name.starts_with("aten::") && !name.starts_with("prims::")) facts->unsupported = "operator of another library";

  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument_name = arguments[i].name();
    for (const c10::AliasInfo* info : alias_infos(arguments[i])) {
      if (info->isWrite()) {
        facts->writes.push_back(static_cast<int>(i));
        break;
      }
    }
    if (is_scalar(arguments[i].real_type())) facts->numbers.insert(static_cast<int>(i));
    if (argument_name == "p" || argument_name == "dropout_p" || argument_name == "dropout") facts->probability_arguments.push_back(static_cast<int>(i));
    if (argument_name == "train" || argument_name == "training") facts->training_arguments.push_back(static_cast<int>(i));
  }
  const bool has_tensors = std::any_of(arguments.begin(), arguments.end(), [](const c10::Argument& argument) {
    return argument.real_type()->isSubtypeOf(*c10::OptionalType::ofTensor()) || argument.real_type()->isSubtypeOf(*c10::ListType::ofTensors());
  });
  if (!has_tensors) facts->numbers.clear();  // arange(end)
  facts->reads_data = !name.ends_with("_like") && !name.starts_with("aten::new_");
  for (const c10::Argument& result : schema.returns()) {
    int alias = -1;
    for (const c10::AliasInfo* result_info : alias_infos(result)) {
      for (size_t i = 0; i < arguments.size() && alias < 0; ++i) {
        for (const c10::AliasInfo* info : alias_infos(arguments[i])) {
          if (share_a_set(*result_info, *info)) alias = static_cast<int>(i);
        }
      }
    }
    facts->return_alias.push_back(alias);
  }
  facts->random = handle.hasTag(at::Tag::nondeterministic_seeded);
  return facts;
}

}  // namespace

namespace {

std::mutex facts_mutex;
auto& facts_table = *new std::unordered_map<c10::OperatorName, std::unique_ptr<OperatorFacts>>;

}  // namespace

const OperatorFacts& operator_facts(const c10::OperatorHandle& handle) {
  std::lock_guard lock(facts_mutex);
  std::unique_ptr<OperatorFacts>& entry = facts_table[handle.operator_name()];
  if (!entry) entry = derive(handle);
  return *entry;
}

bool has_operator_facts(std::string_view name) {
  std::lock_guard lock(facts_mutex);
  return std::any_of(facts_table.begin(), facts_table.end(), [name](const auto& entry) {
    const std::string& known = entry.first.name;
    return std::string_view(known).substr(known.find("::") + 2) == name;
  });
}

std::optional<OutOverload> find_out_overload(const c10::OperatorHandle& handle) {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  static std::mutex mutex;
  static auto* by_name = new std::unordered_map<std::string, std::vector<c10::OperatorName>>;
  std::lock_guard lock(mutex);
  if (by_name->empty()) {
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) (*by_name)[name.name].push_back(name);
  }
  if (!handle.hasSchema()) return std::nullopt;
  const c10::FunctionSchema& schema = handle.schema();
  if (schema.returns().empty() || schema.is_mutable()) return std::nullopt;
  for (const c10::Argument& result : schema.returns()) {
    if (result.type()->kind() != c10::TypeKind::TensorType) return std::nullopt;
  }
  const auto is_option = [](const std::string& name) { return name == "dtype" || name == "layout" || name == "device" || name == "pin_memory"; };
  for (const c10::OperatorName& name : (*by_name)[schema.name()]) {
    const auto candidate = dispatcher.findSchema(name);
    if (!candidate || candidate->hasTag(at::Tag::generated)) continue;
    const auto& theirs = candidate->schema().arguments();
    const size_t outputs = schema.returns().size();
    if (theirs.size() < outputs || candidate->schema().returns().size() != outputs) continue;
    const size_t inputs = theirs.size() - outputs;
    bool fits = true;
    for (size_t i = 0; i < theirs.size(); ++i) fits &= (i >= inputs) == theirs[i].is_out();
    if (!fits) continue;
    OutOverload out{*candidate, {}};
    size_t at = 0;
    for (const c10::Argument& mine : schema.arguments()) {
      if (at < inputs && theirs[at].name() == mine.name() && *theirs[at].real_type() == *mine.real_type()) {
        out.dropped.push_back(false);
        ++at;
      } else if (is_option(mine.name())) {
        out.dropped.push_back(true);
      } else {
        fits = false;
        break;
      }
    }
    if (fits && at == inputs) return out;
  }
  return std::nullopt;
}

}  // namespace dynvm::torch_bridge
