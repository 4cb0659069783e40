// Changing numbers that backward() may use: they went into operations that autograd keeps, and are no arguments of backward() itself.
//
// note_graph_numbers remembers them when a call's operations are emitted; bind_graph_numbers finds them again, by value, among the
// operations that a backward() became. graph_numbers.def says what to expect of an operation's gradient. A number that may have been
// turned into another one, or that cannot be told from a constant, is frozen under a guard. Tests: tests/traces/cases/graph_numbers.py.
//
// find_numbers does the same for the nodes of a graph that outlives its trace (graph_nodes.cpp), and for indices, among the operations of one node.
//
// bind_lists finds lists of changing numbers that are arguments as a whole. Tests: tests/traces/cases/adam_foreach.py.
#include "tracer/graph_numbers.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

#include "tracer/recorder.h"

namespace dynvm::tracer {

using bridge::OpRecord;
using ir::AtenArg;
using ir::Ref;

namespace {

// Of a changing number: as it was when the call was recorded.
double recorded_number(const AtenArg& arg) { return ir::is_floating(arg.dtype) ? arg.f : static_cast<double>(arg.i); }

bool is_number(const AtenArg& arg) { return arg.kind == AtenArg::kScalar || arg.kind == AtenArg::kScalarTensor; }

bool same_numbers(const std::vector<const DifferentiatedIndex*>& indices) {
  return std::all_of(indices.begin(), indices.end(), [&](const DifferentiatedIndex* each) { return each->numbers == indices[0]->numbers; });
}

}  // namespace

NumberUse use_of_number(const ir::AtenCall& call, size_t argument) {
  if (is_index(call)) return NumberUse::kAtPlace;
  if (call.args[argument].kind != AtenArg::kNumberTensor && call.args[argument].kind != AtenArg::kScalarTensor) return NumberUse::kDerived;
  std::string name = call.name;
  if (name.back() == '_') name.pop_back();
#define N(operation, use, sentence) \
  if (name == #operation) return NumberUse::use;
#include "tracer/graph_numbers.def"
#undef N
  return NumberUse::kDerived;
}

ir::AtenCall with_constants(const ir::AtenCall& call) {
  ir::AtenCall constant = call;
  for (AtenArg& arg : constant.args) {
    if (!is_number(arg)) continue;
    arg.operands.clear();
    arg.kind = arg.kind == AtenArg::kScalarTensor ? AtenArg::kNumberTensor : ir::is_floating(arg.dtype) ? AtenArg::kFloat : AtenArg::kInt;
  }
  return constant;
}

std::vector<const DifferentiatedIndex*> GraphNumbers::spread_by(const ir::AtenCall& backward) const {
  static constexpr std::string_view kBackward = "_backward";
  std::vector<const DifferentiatedIndex*> found;
  if (!backward.name.ends_with(kBackward)) return found;
  const std::string_view spread(backward.name.data(), backward.name.size() - kBackward.size());
  for (const DifferentiatedIndex& index : indices) {
    const std::vector<AtenArg>& args = index.call.args;
    if (spread != index.call.name || backward.args.size() != args.size() + 1 || backward.args[1].ints != index.sizes) continue;
    bool same = true;
    for (size_t a = 1; a < args.size(); a++) same = same && (args[a].kind == AtenArg::kNone || args[a].i == backward.args[a + 1].i);
    if (same) found.push_back(&index);
  }
  return found;
}

std::string find_numbers(const ir::Trace& trace, const std::vector<Ref>& calls, const std::vector<OpRecord>& records, std::vector<ir::CallNumber>* numbers, std::vector<NumberRead>* reads) {
  GraphNumbers known;
  std::map<Ref, ir::CallNumber> of_value;  // any of the places where a call is given it
  for (Ref call : calls) {
    const ir::AtenCall& how = trace.calls[trace.insts[call].imm];
    if (!is_differentiated(how)) continue;
    std::map<size_t, Ref> places;
    for (size_t a = 0; a < how.args.size(); a++)
      if (is_number(how.args[a])) places[a] = trace.arg(call, static_cast<uint32_t>(how.args[a].operands[0]));
    for (const auto& [a, value] : places) {
      of_value.emplace(value, ir::CallNumber{call, static_cast<int32_t>(a)});
      if (use_of_number(how, a) == NumberUse::kItself) known.multipliers[value].uses++;
    }
    if (is_index(how)) known.indices.push_back({how, trace.metas[trace.insts[trace.arg(call, 0)].meta].sizes, std::move(places)});
  }
  const auto read = [&](size_t record, size_t argument, Ref value) {
    const ir::CallNumber& number = of_value.at(value);
    const auto first = std::find_if(numbers->begin(), numbers->end(), [&](const ir::CallNumber& other) { return other.call == number.call && other.argument == number.argument; });
    reads->push_back({record, argument, static_cast<size_t>(first - numbers->begin())});
    if (first == numbers->end()) numbers->push_back(number);
  };
  const auto recorded = [&](Ref value) { return recorded_number(trace.calls[trace.insts[of_value.at(value).call].imm].args[static_cast<size_t>(of_value.at(value).argument)]); };
  for (const auto& [value, multiplier] : known.multipliers) {
    int places = 0;
    for (size_t r = 0; r < records.size(); r++)
      for (size_t a = 0; a < records[r].call.args.size(); a++)
        if (records[r].call.args[a].kind == AtenArg::kNumberTensor && recorded_number(records[r].call.args[a]) == recorded(value)) read(r, a, value), places++;
    const bool other = std::any_of(known.multipliers.begin(), known.multipliers.end(), [&](const auto& each) { return each.first != value && recorded(each.first) == recorded(value); });
    if (places > multiplier.uses || (places > 0 && other)) return "a number in it that looks like another";
  }
  for (size_t r = 0; r < records.size(); r++) {
    const std::vector<const DifferentiatedIndex*> indices = known.spread_by(records[r].call);
    if (indices.empty()) continue;
    if (!same_numbers(indices)) return "an index in it that looks like another";
    for (const auto& [a, value] : indices[0]->numbers) read(r, a + 1, value);
  }
  return "";
}

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
  std::map<size_t, std::map<size_t, V>> in_index;
  for (const BoundNumber& number : bound) {
    const ir::AtenCall& call = records[number.record].call;
    if (!is_differentiated(call)) continue;
    switch (use_of_number(call, number.arg)) {
      case NumberUse::kUnused: break;
      case NumberUse::kItself: graph_numbers_.multipliers[number.value].uses++; break;
      case NumberUse::kAtPlace: in_index[number.record][number.arg] = number.value; break;
      case NumberUse::kDerived: graph_numbers_.multipliers[number.value].derived = true; break;
    }
  }
  for (size_t r = 0; r < records.size(); r++)
    if (const ir::AtenCall& call = records[r].call; is_index(call) && is_differentiated(call)) graph_numbers_.indices.push_back({call, aten_->meta(records[r].tensors[0]).sizes, in_index[r]});
}

bool Recorder::bind_graph_numbers(const std::vector<OpRecord>& records, std::vector<BoundNumber>* bound) {
  const auto changes = [&](V v) { return at(v).kind == Value::kScalar; };  // it has not been frozen since
  for (auto& [v, number] : graph_numbers_.multipliers) {
    if (!changes(v)) continue;
    std::vector<BoundNumber> places;
    bool ambiguous = number.derived;
    for (size_t r = 0; r < records.size(); r++)
      for (size_t a = 0; a < records[r].call.args.size(); a++)
        if (records[r].call.args[a].kind == AtenArg::kNumberTensor && holds_number(records[r].call.args[a], concrete(v))) places.push_back({v, r, a});
    for (auto& [other, unused] : graph_numbers_.multipliers)
      if (other != v && PyObject_RichCompareBool(concrete(other), concrete(v), Py_EQ) == 1) ambiguous = ambiguous || !places.empty();
    if (ambiguous || places.size() > static_cast<size_t>(number.uses)) promote(v);
    else bound->insert(bound->end(), places.begin(), places.end());
    if (done_) return false;
  }
  for (size_t r = 0; r < records.size(); r++) {
    const std::vector<const DifferentiatedIndex*> indices = graph_numbers_.spread_by(records[r].call);
    const bool known = same_numbers(indices);
    for (const DifferentiatedIndex* index : indices)
      for (const auto& [a, v] : index->numbers) {
        if (!changes(v)) continue;
        if (!known) promote(v);
        else if (index == indices[0]) bound->push_back({v, r, a + 1});
        if (done_) return false;
      }
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
