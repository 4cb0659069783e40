// Changing numbers that backward() may use: they went into operations that autograd keeps, and are no arguments of backward() itself.
//
// note_graph_numbers remembers them when a call's operations are emitted; bind_graph_numbers finds them again, by value, among the
// operations that a backward() became. graph_numbers.def says what to expect of an operation's gradient. A number that may have been
// turned into another one, or that cannot be told from a constant, is frozen under a guard. Tests: tests/traces/cases/graph_numbers.py.
//
// bind_lists finds lists of changing numbers that are arguments as a whole. Tests: tests/traces/cases/adam_foreach.py.
#include <algorithm>
#include <cstring>

#include "tracer/recorder.h"

namespace dynvm::tracer {

using bridge::OpRecord;
using ir::AtenArg;

namespace {

enum Use { kUnused, kItself, kDerived };

Use use_of(const ir::AtenCall& call, size_t argument) {
  if (call.args[argument].kind != AtenArg::kNumberTensor) return kDerived;
  std::string name = call.name;
  if (name.back() == '_') name.pop_back();
#define N(operation, use, sentence) \
  if (name == #operation) return use;
#include "tracer/graph_numbers.def"
#undef N
  return kDerived;
}

}  // namespace

// An argument's `ints` say which of its tensors required grad.
std::vector<int32_t> differentiated_operands(const ir::AtenCall& call) {
  std::vector<int32_t> found;
  if (!call.grad_mode) return found;
  for (const AtenArg& arg : call.args) {
    if (arg.kind != AtenArg::kTensor && arg.kind != AtenArg::kTensorList) continue;
    for (size_t k = 0; k < arg.operands.size(); k++)
      if (arg.operands[k] >= 0 && (k >= arg.ints.size() || arg.ints[k] != 0)) found.push_back(arg.operands[k]);
  }
  return found;
}

bool is_differentiated(const ir::AtenCall& call) { return !differentiated_operands(call).empty(); }

void Recorder::note_graph_numbers(const std::vector<OpRecord>& records, const std::vector<BoundNumber>& bound) {
  for (const BoundNumber& number : bound) {
    const ir::AtenCall& call = records[number.record].call;
    if (!is_differentiated(call)) continue;
    switch (use_of(call, number.arg)) {
      case kUnused: break;
      case kItself: graph_numbers_[number.value].uses++; break;
      case kDerived: graph_numbers_[number.value].derived = true; break;
    }
  }
}

bool Recorder::bind_graph_numbers(const std::vector<OpRecord>& records, std::vector<BoundNumber>* bound) {
  for (auto& [v, number] : graph_numbers_) {
    if (at(v).kind != Value::kScalar) continue;  // frozen since
    std::vector<BoundNumber> places;
    bool ambiguous = number.derived;
    for (size_t r = 0; r < records.size(); r++)
      for (size_t a = 0; a < records[r].call.args.size(); a++)
        if (records[r].call.args[a].kind == AtenArg::kNumberTensor && holds_number(records[r].call.args[a], concrete(v))) places.push_back({v, r, a});
    for (auto& [other, unused] : graph_numbers_)
      if (other != v && PyObject_RichCompareBool(concrete(other), concrete(v), Py_EQ) == 1) ambiguous = ambiguous || !places.empty();
    if (ambiguous || places.size() > static_cast<size_t>(number.uses)) promote(v);
    else bound->insert(bound->end(), places.begin(), places.end());
    if (done_) return false;
  }
  return true;
}

// Lists of floats that are given as they are to an operation on lists of tensors (a ScalarList: torch's optimizers have one for each tensor's correction of
// its bias).
std::vector<Recorder::BoundList> Recorder::bind_lists(const std::vector<OpRecord>& records, const std::vector<V>& inputs) {
  std::vector<BoundList> bound;
  for (V list : inputs) {
    const std::vector<V> items = at(list).items_known && (at(list).kind == Value::kList || at(list).kind == Value::kTuple) ? at(list).items : std::vector<V>{};
    const auto is_float = [&](V v) { return concrete(v) != nullptr && PyFloat_CheckExact(concrete(v)); };
    const auto changes = [&](V v) { return at(v).kind == Value::kScalar; };
    if (!std::all_of(items.begin(), items.end(), is_float) || std::none_of(items.begin(), items.end(), changes)) continue;
    std::vector<double> values;
    for (V v : items) values.push_back(PyFloat_AS_DOUBLE(concrete(v)));
    std::vector<BoundList> places;
    for (size_t r = 0; r < records.size(); r++)
      for (size_t a = 0; a < records[r].call.args.size(); a++) {
        const AtenArg& arg = records[r].call.args[a];
        if (arg.kind == AtenArg::kFloatList && arg.floats == values && records[r].call.name.rfind("aten::_foreach_", 0) == 0) places.push_back({r, a, items});
      }
    if (places.size() == 1) bound.push_back(std::move(places[0]));
  }
  return bound;
}

}  // namespace dynvm::tracer
