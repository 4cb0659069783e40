// See open_sizes.h.
#include "tracer/open_sizes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "ir/kernel/symbols.h"
#include "ir/passes/rewrite.h"
#include "runtime/base/options.h"
#include "runtime/base/report.h"

namespace dynvm::tracer {

using ir::AtenArg;
using ir::kNoRef;
using ir::Number;
using ir::Ref;
using ir::TensorMeta;
using ir::Type;
using IrOp = ir::Op;

GenericTrace::Opening::Opening(const GenericTrace& generic, const Walk& a, const Walk& b, bool related, Recording* made)
    : generic_(generic), old_(generic.recording_.trace), a_(a), b_(b), related_(related), made_(*made), trace_(made->trace), renamed_(old_.insts.size(), kNoRef) {
  trace_.origins = old_.origins;
  // By instruction: is it a number of Python's that may decide sizes, or computed from such ones?
  std::vector<bool> from_free(old_.insts.size(), false);
  for (Ref ref = 0; ref < old_.insts.size(); ref++) {
    from_free[ref] = generic_.free_.count(ref) != 0;
    for (uint32_t k = 0; k < old_.insts[ref].count; k++)
      if (const Ref part = old_.arg(ref, k); old_.insts[part].type == Type::kInt && from_free[part]) from_free[ref] = true;
  }
  std::set<Ref> met, given;
  const auto add_free = [&](const auto& self, Ref number, std::vector<Ref>* free) -> void {
    if (!from_free[number] || !met.insert(number).second) return;
    if (generic_.free_.count(number) != 0) return free->push_back(number);
    for (uint32_t k = 0; k < old_.insts[number].count; k++)
      if (const Ref part = old_.arg(number, k); old_.insts[part].type == Type::kInt) self(self, part, free);
  };
  for (Ref call : generic_.calls_) {
    Given& first = given_first_.emplace_back();
    for (Ref number : generic_.torch_call(old_.insts[call]).numbers) {
      add_free(add_free, number, &first.free);
      if (from_free[number] && given.insert(number).second) first.numbers.push_back(number);
    }
  }
}

std::string GenericTrace::Opening::run() {
  trace_ = old_;
  made_.backwards.clear();
  trace_.metas = a_.metas;
  mark();
  const std::vector<TensorMeta> metas = trace_.metas;
  const std::vector<CallFacts> facts = call_facts();
  trace_.insts.resize(generic_.backwards_.ends()[0]);
  const bool on_gpu = std::any_of(trace_.metas.begin(), trace_.metas.end(), [](const TensorMeta& meta) { return meta.device_type != 0; });
  const bool symbolic = !on_gpu || base::options().cuda_symbols;
  if (symbolic) give_symbols(b_.metas, facts, &trace_);
  symbol_sizes_.assign(trace_.symbols.size(), {kNoRef, 0});
  if (std::string why = check(); !why.empty()) return why;
  trace_.insts.clear();
  trace_.operands.clear();
  size_t number = 0, input = 0;
  std::vector<Ref> ends;
  for (Ref old = 0; old < old_.insts.size(); old++) {
    const ir::Inst& inst = old_.insts[old];
    while (ends.size() < generic_.backwards_.ends().size() && old == generic_.backwards_.ends()[ends.size()]) ends.push_back(static_cast<Ref>(trace_.insts.size()));
    if (inst.snapshot != ir::kNoSnapshot) snapshot_ = inst.snapshot;
    if (inst.op == IrOp::k_aten) {
      if (std::string why = call(old, number++); !why.empty()) return why;
      continue;
    }
    if (inst.op == IrOp::k_build_size) {
      renamed_[old] = shape(old);
      continue;
    }
    if (inst.op == IrOp::k_tensor_size && numbers_[old] == kConstant) {
      renamed_[old] = constant(a_.numbers[old]->bits);
      continue;
    }
    std::vector<Ref> operands;
    for (uint32_t k = 0; k < inst.count; k++) operands.push_back(renamed_[old_.arg(inst, k)]);
    renamed_[old] = copy(old, operands);
    if (inst.op == IrOp::k_result || inst.op == IrOp::k_unbox_tensor) note_symbols(old);
    if (inst.op == IrOp::k_result) {
      for (const Defined& defined : generic_.defined_)
        if (generic_.calls_[defined.call] == old_.arg(old, 0) && static_cast<size_t>(inst.imm) == defined.result) same_class(old, defined.dim, defined.seen);
    }
    if (inst.op == IrOp::k_unbox_tensor) {
      const std::vector<std::vector<int64_t>>& seen = generic_.seen_[input++];
      for (size_t d = 0; d < seen.size(); d++) same_class(old, d, seen[d]);
    }
  }
  const auto rename = [&](Ref& ref) { ref = renamed_[ref]; };
  for (ir::SnapshotFrame& frame : trace_.frames) ir::for_each_value(frame, rename);
  for (ir::Snapshot& each : trace_.snapshots) ir::for_each_store_value(each, rename);
  for (ir::Wrap& wrap : trace_.wraps) ir::for_each_value(wrap, rename);
  while (ends.size() < generic_.backwards_.ends().size()) ends.push_back(static_cast<Ref>(trace_.insts.size()));
  if (std::string why = generic_.backwards_.part({&trace_, renamed_, ends, metas, symbolic ? &b_.metas : nullptr, facts}, &made_.backwards); !why.empty()) return why;
  base::report().sizes.open++;
  return "";
}

GenericTrace::Opening::Dependence GenericTrace::Opening::depends(const Source& source) const {
  if (source.kind == Source::kNumber) return numbers_[source.ref];
  const TensorMeta& meta = trace_.metas[static_cast<size_t>(old_.insts[source.ref].meta)];
  bool open = a_.value(source) != b_.value(source);
  if (source.kind == Source::kSize) open = (meta.open >> source.dim & 1) != 0;
  if (source.kind == Source::kElements) open = (meta.open & ~ir::kOpenLayout) != 0;
  return open ? kDepends : kConstant;
}

GenericTrace::Opening::Dependence GenericTrace::Opening::depends(const Expression& e) const {
  return e.product ? std::max(depends(e.a), depends(e.b)) : depends(e.a);
}

// Of the numbers, as far as they can be said from what is open of tensors so far.
void GenericTrace::Opening::find_dependences() {
  numbers_.assign(old_.insts.size(), kConstant);
  for (Ref ref = 0; ref < old_.insts.size(); ref++) {
    const ir::Inst& inst = old_.insts[ref];
    if (generic_.free_.count(ref) != 0) {
      numbers_[ref] = is_free(ref) ? kDepends : kConstant;
      continue;
    }
    if (inst.op == IrOp::k_tensor_size) {
      numbers_[ref] = depends(Source{inst.imm < 0 ? Source::kElements : Source::kSize, old_.arg(inst, 0), static_cast<int32_t>(inst.imm)});
      continue;
    }
    if (inst.type != Type::kInt && inst.type != Type::kFloat && inst.type != Type::kBool) continue;
    for (uint32_t k = 0; k < inst.count; k++)
      if (old_.insts[old_.arg(inst, k)].type != Type::kTensor) numbers_[ref] = std::max(numbers_[ref], numbers_[old_.arg(inst, k)]);
    const bool smooth = inst.op == IrOp::k_add_int || inst.op == IrOp::k_sub_int || inst.op == IrOp::k_mul_int || inst.op == IrOp::k_neg_int ||
                        inst.op == IrOp::k_int_to_float;
    if (numbers_[ref] == kDepends && !smooth) numbers_[ref] = kBySteps;
  }
}

// Says of each tensor what of its geometry is open.
void GenericTrace::Opening::mark() {
  for (size_t m = 0; m < trace_.metas.size(); m++) {
    const TensorMeta &a = a_.metas[m], &b = b_.metas[m];
    for (size_t d = 0; d < a.sizes.size(); d++)
      if (a.sizes[d] != b.sizes[d]) trace_.metas[m].open |= uint64_t{1} << d;
    if (trace_.metas[m].open != 0 || a.strides != b.strides || a.offset != b.offset) trace_.metas[m].open |= ir::kOpenLayout;
  }
  find_dependences();
  for (size_t k = 0; k < generic_.calls_.size(); k++) {
    const ir::Inst& inst = old_.insts[generic_.calls_[k]];
    const ir::AtenCall& call = old_.calls[inst.imm];
    const bool by_steps = std::any_of(generic_.fits_[k].begin(), generic_.fits_[k].end(), [&](const Fit& fit) { return depends(fit.value) == kBySteps; });
    for (size_t i = 0; i < call.results.size(); i++) {
      if (call.results[i] < 0) continue;
      TensorMeta& result = trace_.metas[call.results[i]];
      if (by_steps && call.mutates.empty()) result.open |= ((uint64_t{1} << result.sizes.size()) - 1) | ir::kOpenLayout;
      if (call.result_alias[i] < 0) continue;
      for (int32_t operand : call.args[static_cast<size_t>(call.result_alias[i])].operands) {
        if (operand < 0) continue;
        const TensorMeta& base = trace_.metas[old_.insts[old_.arg(inst, static_cast<uint32_t>(operand))].meta];
        if (base.storage == result.storage && base.open != 0) result.open |= ir::kOpenLayout;
      }
    }
  }
  find_dependences();
}

// Is it a view of run-time numbers that is not memory of its own to the trace, as somebody writes it?
static bool moves_in_place(const ir::Trace& trace, const ir::AtenCall& index) {
  return has_run_time_numbers(index) && index.results[0] >= 0 && (trace.metas[static_cast<size_t>(index.results[0])].open & ir::kOpenLayout) != 0;
}

std::vector<CallFacts> GenericTrace::Opening::call_facts() const {
  std::vector<CallFacts> facts(old_.calls.size());
  for (size_t k = 0; k < generic_.calls_.size(); k++) {
    const size_t call = static_cast<size_t>(old_.insts[generic_.calls_[k]].imm);
    const std::vector<Fit>& fits = generic_.fits_[k];
    std::vector<int32_t> named;
    const auto name = [&](const Source& source) {  // what is closed is a constant
      if (depends(source) != kConstant) named.push_back(old_.insts[source.ref].meta);
      return source.kind == Source::kSize || source.kind == Source::kElements;
    };
    for (const Fit& fit : fits) {
      const Expression& e = fit.value;
      if (depends(e) == kConstant) continue;
      if (e.plus == 0 && name(e.a) && (!e.product || name(e.b))) continue;
      named.clear();
      break;
    }
    facts[call] = {generic_.recording_.sizes.after_effect[call], std::any_of(fits.begin(), fits.end(), [&](const Fit& fit) { return depends(fit.value) == kBySteps; }),
                   ir::is_index(old_.calls[call]) && (!fits.empty() || moves_in_place(old_, old_.calls[call])), std::move(named)};
  }
  return facts;
}

// Empty, or why the trace cannot be run with what is open.
std::string GenericTrace::Opening::check() const {
  for (size_t k = 0; k < generic_.calls_.size(); k++)
    if (std::string why = allowed(k); !why.empty()) return why;
  for (size_t k = 0; k < generic_.inputs_.size(); k++) {
    const std::vector<std::vector<int64_t>>& seen = generic_.seen_[k];
    if (std::none_of(seen.begin(), seen.end(), varies) && opened(old_.insts[generic_.inputs_[k]].meta) != 0) return "a tensor of open sizes comes back from Python";
  }
  for (const SizeFacts::Fold& fold : generic_.recording_.sizes.folds) {
    if (fold.tensor >= old_.insts.size()) continue;
    const int32_t meta = old_.insts[fold.tensor].meta;
    if (opened(meta) == 0) continue;
    if (fold.kind != SizeFacts::Fold::kContiguous || is_contiguous(a_.metas[meta]) != is_contiguous(b_.metas[meta])) return "something was decided by an open geometry";
  }
  return "";
}

// Has a number of Python's been another one in another recording? Else what depends on it is not known.
bool GenericTrace::Opening::is_free(Ref number) const {
  const auto seen = generic_.free_seen_.find(number);
  return generic_.learned_ && seen != generic_.free_seen_.end() && varies(seen->second);
}

// Of a tensor, what is open because sizes are: a view that moves had its layout open before.
uint64_t GenericTrace::Opening::opened(int32_t meta) const { return trace_.metas[static_cast<size_t>(meta)].open & ~old_.metas[static_cast<size_t>(meta)].open; }

// Empty, or why this call cannot be run where sizes are open.
std::string GenericTrace::Opening::allowed(size_t number) const {
  const ir::Inst& inst = old_.insts[generic_.calls_[number]];
  const ir::AtenCall& call = trace_.calls[inst.imm];
  const std::vector<Steady>& steady = generic_.steady_[number];
  const std::vector<Fit>& fits = generic_.fits_[number];
  const bool guarded = !given_first_[number].numbers.empty() ||
                       std::any_of(steady.begin(), steady.end(), [&](const Steady& each) { return depends(each.source) != kConstant; }) ||
                       std::any_of(fits.begin(), fits.end(), [&](const Fit& fit) { return fit.value.by != 1 && depends(fit.value) != kConstant; });
  if ((guarded || may_leave(trace_, call)) && generic_.recording_.sizes.after_effect[static_cast<size_t>(inst.imm)]) return call.name + ": it may be left behind an effect";
  if (!opens(trace_, call)) return "";
  const int32_t first = inst.count > 0 ? old_.insts[old_.arg(inst, 0)].meta : -1;
  if (!call.mutates.empty())
    for (size_t i = 0; i < call.results.size(); i++)
      if (call.results[i] >= 0 && call.result_alias[i] < 0 && trace_.metas[call.results[i]].open != 0) return call.name + ": it writes, and makes a tensor of open sizes";
  if (const uint64_t open = call.name == "aten::squeeze" ? trace_.metas[first].open & ~ir::kOpenLayout : 0; open != 0) {
    const auto rank = static_cast<int64_t>(old_.metas[first].sizes.size());
    const auto is_open = [&](int64_t dim) { return (open >> (dim < 0 ? dim + rank : dim) & 1) != 0; };
    const bool touched = call.args.size() < 2 || (call.args[1].kind == AtenArg::kInt ? is_open(call.args[1].i) : std::any_of(call.args[1].ints.begin(), call.args[1].ints.end(), is_open));
    if (touched) return call.name + ": whether it removes a dimension is open";
  }
  return "";
}

std::string GenericTrace::Opening::call(Ref old, size_t number) {
  const ir::Inst& inst = old_.insts[old];
  ir::AtenCall now = a_.calls[number];
  now.follows = trace_.calls[static_cast<size_t>(inst.imm)].follows;
  std::vector<Ref> operands;
  for (uint32_t k = 0; k < inst.count; k++) operands.push_back(renamed_[old_.arg(inst, k)]);
  for (Ref free : given_first_[number].free) {
    if (!is_free(free)) {
      guard(trace_.add(IrOp::k_eq_int, Type::kBool, {renamed_[free], constant(generic_.free_.at(free))}));
      continue;
    }
    same_size(renamed_[free], generic_.free_seen_.at(free));
  }
  for (Ref each : given_first_[number].numbers)
    if (numbers_[each] != kConstant) guard(trace_.add(IrOp::k_ge_int, Type::kBool, {renamed_[each], constant(2)}));
  for (const Steady& steady : generic_.steady_[number]) {
    if (depends(steady.source) == kConstant) continue;
    const Ref value = emit(steady.source);
    if (value == kNoRef || trace_.insts[value].type != Type::kInt) return now.name + ": an argument may depend on what is open";
    guard(trace_.add(IrOp::k_eq_int, Type::kBool, {value, constant(steady.value.bits)}));
  }
  for (const Fit& fit : generic_.fits_[number]) {
    const size_t argument = static_cast<size_t>(fit.argument);
    const AtenArg& known = a_.calls[number].args[argument];
    const size_t element = static_cast<size_t>(std::max(fit.element, 0));
    if (depends(fit.value) == kConstant) continue;
    AtenArg& arg = now.args[argument];
    const Ref value = emit(fit.value);
    if (value == kNoRef) return now.name + ": an argument depends on a layout that is open";
    if (arg.kind == known.kind) {  // the argument's first open number
      arg.operands.clear();
      if (known.kind == AtenArg::kIntList) {
        for (int64_t constant_element : known.ints) {
          arg.operands.push_back(static_cast<int32_t>(operands.size()));
          operands.push_back(constant(constant_element));
        }
      } else {
        arg.operands.push_back(static_cast<int32_t>(operands.size()));
        operands.push_back(kNoRef);
      }
      if (known.kind != AtenArg::kNumberTensor) arg.dtype = known.kind == AtenArg::kFloat ? ir::DType::kF64 : ir::DType::kI64;
      arg.kind = known.kind == AtenArg::kNumberTensor ? AtenArg::kScalarTensor : AtenArg::kScalar;
      arg.ints.clear();
    }
    operands[static_cast<size_t>(arg.operands[element])] = value;
  }
  renamed_[old] = copy(old, operands);
  trace_.calls[static_cast<size_t>(inst.imm)] = std::move(now);
  return "";
}

// Sizes that were always equal have to be: what depends on one of them may have been taken to depend on another.
void GenericTrace::Opening::same_class(Ref old, size_t dim, const std::vector<int64_t>& seen) {
  if ((trace_.metas[old_.insts[old].meta].open >> dim & 1) == 0) return;
  same_size(size_of(renamed_[old], static_cast<int64_t>(dim)), seen);
}

void GenericTrace::Opening::same_size(Ref size, const std::vector<int64_t>& seen) {
  if (const auto first = class_sizes_.find(seen); first != class_sizes_.end()) return guard(trace_.add(IrOp::k_eq_int, Type::kBool, {size, first->second}));
  for (auto other = class_sizes_.begin(); related_ && other != class_sizes_.end(); ++other) {
    const std::optional<SizeRelation> relation = steady_relation(seen, other->first);
    if (!relation) continue;
    const auto times = [&](Ref value, int64_t factor) { return factor == 1 ? value : trace_.add(IrOp::k_mul_int, Type::kInt, {value, constant(factor)}, 0, snapshot_); };
    Ref related = times(other->second, relation->times);
    if (relation->plus != 0) related = trace_.add(IrOp::k_add_int, Type::kInt, {related, constant(relation->plus)}, 0, snapshot_);
    guard(trace_.add(IrOp::k_eq_int, Type::kBool, {times(size, relation->by), related}));
    break;
  }
  class_sizes_.emplace(seen, size);
}

void GenericTrace::Opening::guard(Ref truth) { trace_.add(IrOp::k_guard_true, Type::kVoid, {truth}, 0, snapshot_); }

Ref GenericTrace::Opening::copy(Ref old, const std::vector<Ref>& operands) {
  ir::Inst inst = old_.insts[old];
  inst.first = static_cast<uint32_t>(trace_.operands.size());
  inst.count = static_cast<uint32_t>(operands.size());
  trace_.operands.insert(trace_.operands.end(), operands.begin(), operands.end());
  trace_.insts.push_back(inst);
  return static_cast<Ref>(trace_.insts.size() - 1);
}

Ref GenericTrace::Opening::constant(int64_t value) { return trace_.add(IrOp::k_const_int, Type::kInt, {}, value); }

Ref GenericTrace::Opening::object(PyObject* taken, const char* text) {
  made_.owned.push_back(taken);
  trace_.objects.push_back({taken, text});
  return trace_.add(IrOp::k_const_obj, Type::kObject, {}, static_cast<int64_t>(trace_.objects.size()) - 1);
}

// A torch.Size object.
Ref GenericTrace::Opening::shape(Ref old) {
  const std::vector<int64_t>& sizes = a_.shape_objects.at(old);
  bool open = false;
  for (uint32_t k = 0; k < old_.insts[old].count; k++) open = open || numbers_[old_.arg(old, k)] != kConstant;
  if (!open) return object(shape_object(sizes), "torch.Size");
  std::vector<Ref> items;
  for (uint32_t k = 0; k < old_.insts[old].count; k++) items.push_back(trace_.add(IrOp::k_box_int, Type::kObject, {renamed_[old_.arg(old, k)]}));
  const Ref tuple = trace_.add(IrOp::k_build_tuple, Type::kObject, items);
  const Ref type = object(Py_NewRef(size_type()), "torch.Size");
  return trace_.add(IrOp::k_call_pure, Type::kObject, {type, tuple}, -1, snapshot_);
}

void GenericTrace::Opening::note_symbols(Ref old) {
  const TensorMeta& meta = trace_.metas[static_cast<size_t>(old_.insts[old].meta)];
  for (size_t d = 0; meta.symbolic && d < meta.sizes.size(); d++) {
    const auto symbol = std::find(trace_.symbols.begin(), trace_.symbols.end(), meta.sizes[d]);
    if (symbol == trace_.symbols.end()) continue;
    auto& [tensor, dim] = symbol_sizes_[static_cast<size_t>(symbol - trace_.symbols.begin())];
    if (tensor == kNoRef) tensor = renamed_[old], dim = static_cast<int64_t>(d);
  }
}

Ref GenericTrace::Opening::emit(int64_t number) {
  ir::Product product;
  if (!ir::Product::of(number, trace_.symbols, &product)) return kNoRef;
  Ref value = constant(product.factor);
  for (uint8_t k = 0; k < product.count; k++) {
    const auto& [tensor, dim] = symbol_sizes_[product.symbols[k]];
    if (tensor == kNoRef) return kNoRef;
    value = trace_.add(IrOp::k_mul_int, Type::kInt, {value, size_of(tensor, dim)}, 0, snapshot_);
  }
  return value;
}

Ref GenericTrace::Opening::size_of(Ref tensor, int64_t dim) { return trace_.add(IrOp::k_tensor_size, Type::kInt, {tensor}, dim); }

Ref GenericTrace::Opening::emit(const Source& source) {
  if (source.kind == Source::kNumber) return renamed_[source.ref];
  if (depends(source) == kConstant) {
    const std::optional<Number> here = a_.value(source);
    return here ? constant(here->bits) : kNoRef;
  }
  if (source.kind != Source::kSize && source.kind != Source::kElements) {
    const TensorMeta& meta = trace_.metas[static_cast<size_t>(old_.insts[source.ref].meta)];
    if (!meta.symbolic) return kNoRef;
    return emit(source.kind == Source::kStride ? meta.strides[static_cast<size_t>(source.dim)] : meta.offset);
  }
  return size_of(renamed_[source.ref], source.kind == Source::kSize ? source.dim : -1);
}

Ref GenericTrace::Opening::emit(const Expression& e) {
  Ref value = emit(e.a);
  if (value == kNoRef || trace_.insts[value].type == Type::kFloat) return value;
  const auto apply = [&](IrOp op, Ref with) { value = trace_.add(op, Type::kInt, {value, with}, 0, snapshot_); };
  if (e.product) {
    const Ref b = emit(e.b);
    if (b == kNoRef) return b;
    apply(IrOp::k_mul_int, b);
  }
  if (e.times != 1) apply(IrOp::k_mul_int, constant(e.times));
  if (e.by != 1) {  // without a remainder, as in all recordings
    const Ref by = constant(e.by);
    const Ref rest = trace_.add(IrOp::k_mod_int, Type::kInt, {value, by}, 0, snapshot_);
    guard(trace_.add(IrOp::k_eq_int, Type::kBool, {rest, constant(0)}));
    apply(IrOp::k_floordiv_int, by);
  }
  if (e.plus != 0) apply(IrOp::k_add_int, constant(e.plus));
  return e.is_float ? trace_.add(IrOp::k_int_to_float, Type::kFloat, {value}, 0, snapshot_) : value;
}

}  // namespace dynvm::tracer
