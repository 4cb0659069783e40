// See size_walk.h.
#include "tracer/size_walk.h"

#include <algorithm>
#include <utility>

#include "ir/effects.h"

namespace dynvm::tracer {

using ir::AtenArg;
using ir::Number;
using ir::Ref;
using ir::TensorMeta;
using IrOp = ir::Op;

bool same_geometry(const TensorMeta& a, const TensorMeta& b) { return a.sizes == b.sizes && a.strides == b.strides; }

bool same_places(const TensorMeta& a, const TensorMeta& b) {
  bool same = a.sizes == b.sizes;
  for (size_t d = 0; same && d < a.sizes.size(); d++) same = a.sizes[d] == 1 || a.strides[d] == b.strides[d];
  return same;
}

size_t numbers_of(const AtenArg& arg) {
  switch (arg.kind) {
    case AtenArg::kInt:
    case AtenArg::kFloat:
    case AtenArg::kNumberTensor: return 1;
    case AtenArg::kIntList: return arg.ints.size();
    default: return 0;
  }
}

bool is_float_number(const AtenArg& arg) { return arg.kind == AtenArg::kFloat || (arg.kind == AtenArg::kNumberTensor && ir::is_floating(arg.dtype)); }

Number number_of(const AtenArg& arg, size_t i) {
  if (is_float_number(arg)) return Number::of_float(arg.f);
  return Number::of_int(arg.kind == AtenArg::kIntList ? arg.ints[i] : arg.i);
}

void set_number(AtenArg* arg, size_t i, const Number& value) {
  if (is_float_number(*arg)) arg->f = value.as_float();
  else if (arg->kind == AtenArg::kIntList) arg->ints[i] = value.bits;
  else arg->i = value.bits;
}

size_t indexed_dim(const ir::AtenCall& index, size_t rank) { return static_cast<size_t>(index.args[1].i < 0 ? index.args[1].i + static_cast<int64_t>(rank) : index.args[1].i); }

bool varies(const std::vector<int64_t>& seen) {
  return std::any_of(seen.begin(), seen.end(), [&](int64_t size) { return size != seen.back(); });
}

std::optional<SizeRelation> steady_relation(const std::vector<int64_t>& seen, const std::vector<int64_t>& other) {
  const int64_t a = seen.front(), b = other.front();
  SizeRelation found[2] = {{1, 1, a - b}, {}};
  if (b != 0 && a != 0 && a % b == 0) found[1].times = a / b;
  else if (b != 0 && a != 0 && b % a == 0) found[1].by = b / a;
  for (const SizeRelation& relation : found) {
    bool steady = other.size() == seen.size();
    for (size_t i = 0; steady && i < seen.size(); i++) steady = relation(other[i]) == seen[i];
    if (steady) return relation;
  }
  return std::nullopt;
}

GenericTrace::Walk::Walk(const GenericTrace& generic, std::unique_ptr<bridge::Shapes> shapes)
    : metas(generic.recording_.trace.metas), numbers(generic.recording_.trace.insts.size()), free(generic.free_), generic_(generic),
      trace_(generic.recording_.trace), shapes_(std::move(shapes)), settled_(metas.size(), false) {}

std::string GenericTrace::Walk::step(Ref ref) {
  const ir::Inst& inst = trace_.insts[ref];
  if (const auto known = free.find(ref); known != free.end()) {
    numbers[ref] = Number::of_int(known->second);
    return "";
  }
  switch (inst.op) {
    case IrOp::k_unbox_tensor:
      settled_[inst.meta] = true;
      if (shapes_) shapes_->input(static_cast<int32_t>(ref), metas[inst.meta]);
      return "";
    case IrOp::k_tensor_size: {
      const TensorMeta& meta = metas[trace_.insts[trace_.arg(inst, 0)].meta];
      numbers[ref] = Number::of_int(inst.imm < 0 ? elements(meta) : meta.sizes.at(static_cast<size_t>(inst.imm)));
      return "";
    }
    case IrOp::k_build_size:
      for (uint32_t k = 0; k < inst.count; k++) {
        if (!numbers[trace_.arg(inst, k)]) return "a shape that is not computed from sizes";
        shape_objects[ref].push_back(numbers[trace_.arg(inst, k)]->bits);
      }
      shape_objects[ref];
      return "";
    case IrOp::k_guard_true:
    case IrOp::k_guard_false: {
      const std::optional<Number>& truth = numbers[trace_.arg(inst, 0)];
      if (!any_way && truth && (truth->bits != 0) != (inst.op == IrOp::k_guard_true)) return "a decision about sizes is another one";
      return "";
    }
    default: break;
  }
  numbers[ref] = ir::constant_number(inst);
  if (numbers[ref] || inst.count == 0 || inst.count > 2 || (inst.type != ir::Type::kInt && inst.type != ir::Type::kFloat && inst.type != ir::Type::kBool)) return "";
  Number operands[2];
  for (uint32_t k = 0; k < inst.count; k++) {
    const Ref operand = trace_.arg(inst, k);
    if (!numbers[operand]) return "";
    operands[k] = *numbers[operand];
  }
  numbers[ref] = ir::compute(inst.op, operands, inst.count);
  return "";
}

// Where an index whose numbers a run tells looks, of a tensor of this geometry. given: what it gives, where it is an operation that defines a size. *view: what was recorded.
static std::string place_index(const ir::AtenCall& call, const TensorMeta& of, const TensorMeta* given, TensorMeta* view) {
  const size_t dim = indexed_dim(call, of.sizes.size());
  TensorMeta geometry = of;
  if (call.name == "aten::select") {
    geometry.sizes.erase(geometry.sizes.begin() + static_cast<ptrdiff_t>(dim));
    geometry.strides.erase(geometry.strides.begin() + static_cast<ptrdiff_t>(dim));
  } else {
    const AtenArg &start = call.args[2], &step = call.args[4];
    if (step.kind != AtenArg::kInt) return call.name + ": its step changes";
    geometry.sizes[dim] = (given != nullptr ? *given : *view).sizes[dim];
    geometry.strides[dim] *= step.i;
    if (!is_moved(call) && start.kind == AtenArg::kInt) geometry.offset += std::min(start.i, of.sizes[dim]) * of.strides[dim];
  }
  view->sizes = std::move(geometry.sizes);
  view->strides = std::move(geometry.strides);
  if (!is_moved(call)) view->offset = geometry.offset;
  return "";
}

std::string GenericTrace::Walk::run(size_t number, ir::AtenCall call) {
  const Ref ref = generic_.calls_[number];
  const ir::Inst& inst = trace_.insts[ref];
  const ir::AtenCall& recorded = trace_.calls[inst.imm];
  calls.push_back(std::move(call));
  if (!shapes_) return "";
  const ir::AtenCall& now = calls.back();
  std::vector<int32_t> operands;
  bool same = true;
  for (uint32_t k = 0; k < inst.count; k++) {
    const Ref operand = trace_.arg(inst, k);
    operands.push_back(static_cast<int32_t>(operand));
    const int32_t meta = trace_.insts[operand].meta;
    if (trace_.insts[operand].type != ir::Type::kTensor) continue;
    const TensorMeta &geometry = metas[meta], &before = trace_.metas[meta];
    same = same && same_geometry(geometry, before) && geometry.offset == before.offset;
    for (size_t d = 0; d < geometry.sizes.size(); d++)
      if (geometry.sizes[d] != before.sizes[d] && (geometry.sizes[d] <= 1 || before.sizes[d] <= 1)) return now.name + ": a size becomes or was 0 or 1";
  }
  for (size_t a = 0; a < now.args.size(); a++)
    for (size_t i = 0; i < numbers_of(now.args[a]); i++) same = same && number_of(now.args[a], i) == number_of(recorded.args[a], i);
  const std::vector<int32_t>& results = generic_.results_[number];
  std::vector<TensorMeta> made, before;
  if (ir::is_index(now) && has_run_time_numbers(now) && results.size() == 1 && recorded.results[0] >= 0) {
    const auto given = defined.find(number);
    if (std::string why = place_index(now, metas[trace_.insts[trace_.arg(inst, 0)].meta], given != defined.end() ? &given->second[0] : nullptr, &made.emplace_back(trace_.metas[recorded.results[0]])); !why.empty()) return why;
    same = false;
    if (results[0] >= 0) shapes_->input(results[0], made[0]);
  } else if (now.defines_sizes) {
    same = false;
    const auto given = defined.find(number);
    for (size_t i = 0; i < results.size(); i++) {
      made.push_back(recorded.results[i] < 0 ? TensorMeta{} : trace_.metas[recorded.results[i]]);
      if (results[i] < 0) continue;
      if (given != defined.end()) {
        made[i].sizes = given->second[i].sizes;
        made[i].strides = given->second[i].strides;
        made[i].offset = given->second[i].offset;
      }
      shapes_->input(results[i], made[i]);
    }
  } else if (!same) {
    for (int32_t result : recorded.results) before.push_back(result < 0 ? TensorMeta{} : trace_.metas[result]);
    const std::string why = shapes_->call(now, operands, results, before, &made);
    if (!why.empty()) return why;
    for (size_t i = 0; i < results.size(); i++) {
      const auto known = generic_.laid_out_.find({number, i});
      if (results[i] < 0 || known == generic_.laid_out_.end()) continue;
      if (!strides_for(known->second, made[i].sizes, &made[i].strides)) return now.name + ": strides change in a way that is not known";
      shapes_->input(results[i], made[i]);
    }
  }
  for (size_t i = 0; i < results.size(); i++) {
    if (results[i] < 0) continue;
    TensorMeta& meta = metas[recorded.results[i]];
    const TensorMeta& result = same ? trace_.metas[recorded.results[i]] : made[i];
    if (settled_[recorded.results[i]] && (!same_geometry(meta, result) || meta.offset != result.offset)) return now.name + ": one tensor of two sizes";
    settled_[recorded.results[i]] = true;
    meta.sizes = result.sizes;
    meta.strides = result.strides;
    meta.offset = result.offset;
    if (same) shapes_->input(results[i], meta);
  }
  return "";
}

void GenericTrace::Walk::lies(size_t number, size_t result, const TensorMeta& as) {
  const Ref ref = static_cast<Ref>(generic_.results_[number][result]);
  TensorMeta& meta = metas[trace_.insts[ref].meta];
  meta.strides = as.strides;
  meta.offset = as.offset;
  if (shapes_) shapes_->input(static_cast<int32_t>(ref), meta);
}

std::optional<Number> GenericTrace::Walk::value(const Source& source) const {
  if (source.kind == Source::kNumber) return numbers[source.ref];
  const TensorMeta& meta = metas[trace_.insts[source.ref].meta];
  switch (source.kind) {
    case Source::kSize: return Number::of_int(meta.sizes[static_cast<size_t>(source.dim)]);
    case Source::kStride: return Number::of_int(meta.strides[static_cast<size_t>(source.dim)]);
    case Source::kElements: return Number::of_int(elements(meta));
    default: return Number::of_int(meta.offset);
  }
}

std::optional<Number> GenericTrace::Walk::value(const Expression& e) const {
  std::optional<Number> a = value(e.a);
  if (!a) return std::nullopt;
  if (a->type == ir::Type::kFloat) return e.is_float ? a : std::nullopt;
  int64_t v = a->bits;
  if (e.product) {
    const std::optional<Number> b = value(e.b);
    if (!b || __builtin_mul_overflow(v, b->bits, &v)) return std::nullopt;
  }
  if (__builtin_mul_overflow(v, e.times, &v) || v % e.by != 0 || __builtin_add_overflow(v / e.by, e.plus, &v)) return std::nullopt;
  return e.is_float ? Number::of_float(static_cast<double>(v)) : Number::of_int(v);
}

}  // namespace dynvm::tracer
