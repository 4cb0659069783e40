// See sizes.h.
#include "tracer/sizes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "tracer/object_parts.h"
#include "tracer/open_sizes.h"
#include "tracer/size_walk.h"

namespace dynvm::tracer {

using ir::AtenArg;
using ir::Number;
using ir::Ref;
using ir::TensorMeta;
using IrOp = ir::Op;

// The strides of a tensor of these sizes, after the geometries that it had: each stride is constant, or a constant times the product of some of
// the other dimensions' sizes. False: of neither form.
bool GenericTrace::strides_for(const std::vector<TensorMeta>& seen, const std::vector<int64_t>& sizes, std::vector<int64_t>* strides) {
  const size_t rank = sizes.size();
  if (rank > 8) return false;
  auto product = [&](const std::vector<int64_t>& of, size_t subset) {
    int64_t n = 1;
    for (size_t d = 0; d < rank; d++)
      if (subset >> d & 1) n *= of[d];
    return n;
  };
  strides->assign(rank, 0);
  for (size_t d = 0; d < rank; d++) {
    bool found = false;
    for (size_t subset = 0; subset < size_t{1} << rank && !found; subset++) {
      if (subset >> d & 1) continue;
      const int64_t unit = product(seen[0].sizes, subset);
      if (unit == 0 || seen[0].strides[d] % unit != 0) continue;
      const int64_t times = seen[0].strides[d] / unit;
      found = std::all_of(seen.begin(), seen.end(), [&](const TensorMeta& meta) { return meta.strides[d] == times * product(meta.sizes, subset); });
      if (found) (*strides)[d] = times * product(sizes, subset);
    }
    if (!found) return false;
  }
  return true;
}

SizeSample sample_of(const Recording& recording) {
  if (!recording.backwards.empty()) {
    Recording joined;
    joined.trace = recording.trace;
    joined.sizes = recording.sizes;
    JoinedBackwards().join(&joined.trace, recording.backwards, &joined.sizes);
    return sample_of(joined);
  }
  const ir::Trace& recorded = recording.trace;
  SizeSample sample;
  for (const SizeFacts::Free& free : recording.sizes.free)
    if (free.ref < recorded.insts.size()) sample.free.push_back(free.value);
  for (const ir::Inst& inst : recorded.insts) {
    if (inst.op == IrOp::k_unbox_tensor) sample.inputs.push_back(recorded.metas[inst.meta]);
    if (inst.op != IrOp::k_aten) continue;
    SizeSample::Call call;
    call.call = recorded.calls[inst.imm];
    for (int32_t result : call.call.results) call.results.push_back(result < 0 ? TensorMeta{} : recorded.metas[result]);
    sample.calls.push_back(std::move(call));
  }
  return sample;
}

GenericTrace::GenericTrace(Recording recording, bridge::Bridge* bridge) : recording_(std::move(recording)), bridge_(bridge) {
  backwards_.join(&recording_.trace, std::exchange(recording_.backwards, {}), &recording_.sizes);
  const ir::Trace& trace = recording_.trace;
  for (Ref ref = 0; ref < trace.insts.size(); ref++) {
    const ir::Inst& inst = trace.insts[ref];
    if (inst.op == IrOp::k_unbox_tensor) inputs_.push_back(ref);
    if (inst.op == IrOp::k_aten) {
      calls_.push_back(ref);
      results_.emplace_back(trace.calls[inst.imm].results.size(), -1);
    }
    if (inst.op == IrOp::k_result && !calls_.empty() && trace.arg(inst, 0) == calls_.back()) results_.back()[static_cast<size_t>(inst.imm)] = static_cast<int32_t>(ref);
  }
  for (const SizeFacts::Free& free : recording_.sizes.free)
    if (free.ref < trace.insts.size()) free_order_.push_back(free.ref), free_[free.ref] = free.value;
  used_.assign(trace.metas.size(), false);
  for (Ref ref = 0; ref < trace.insts.size(); ref++)
    for (uint32_t k = 0; k < trace.insts[ref].count; k++)
      if (const int32_t meta = trace.insts[trace.arg(ref, k)].meta; meta >= 0) used_[meta] = true;
  unlearn();
}

void GenericTrace::unlearn() {
  learned_ = false;
  fits_.assign(calls_.size(), {});
  steady_.assign(calls_.size(), {});
  seen_.assign(inputs_.size(), {});
  geometries_.assign(inputs_.size(), {});
  defined_.clear();
  defined_geometries_.clear();
  laid_out_.clear();
  free_seen_.clear();
}

GenericTrace::~GenericTrace() {
  for (PyObject* object : recording_.owned) Py_DECREF(object);
}

bool is_constant_input(const ir::Trace& trace, Ref ref) {
  return trace.insts[ref].op == IrOp::k_unbox_tensor && trace.insts[trace.arg(ref, 0)].op == IrOp::k_const_obj;
}

// What an argument of this operation may depend on, nearest first. *of_operands: how many belong to its operands.
std::vector<GenericTrace::Source> GenericTrace::sources(Ref aten, size_t* of_operands) const {
  const ir::Trace& trace = recording_.trace;
  const ir::Inst& inst = trace.insts[aten];
  std::vector<Source> found;
  std::vector<Ref> tensors;
  auto add = [&](Ref tensor, bool layout) {
    if (tensor == ir::kNoRef || trace.insts[tensor].type != ir::Type::kTensor || std::count(tensors.begin(), tensors.end(), tensor)) return;
    tensors.push_back(tensor);
    const int32_t rank = static_cast<int32_t>(trace.metas[trace.insts[tensor].meta].sizes.size());
    for (int32_t d = 0; d < rank; d++) found.push_back({Source::kSize, tensor, d});
    found.push_back({Source::kElements, tensor, 0});
    if (!layout) return;
    for (int32_t d = 0; d < rank; d++) found.push_back({Source::kStride, tensor, d});
    found.push_back({Source::kOffset, tensor, 0});
  };
  const SizeFacts::TorchCall& call = torch_call(inst);
  for (Ref number : call.numbers) found.push_back({Source::kNumber, number, 0});
  for (uint32_t k = 0; k < inst.count; k++) add(trace.arg(inst, k), true);
  *of_operands = found.size();
  for (Ref tensor : call.tensors)
    if (tensor < aten) add(tensor, false);
  // What data decide, and what is made for numbers of Python's.
  for (size_t k = 0; k < calls_.size() && calls_[k] < aten; k++)
    if (const ir::AtenCall& made = trace.calls[trace.insts[calls_[k]].imm]; made.defines_sizes || trace.insts[calls_[k]].count == 0)
      for (int32_t result : results_[k])
        if (result >= 0) add(static_cast<Ref>(result), false);
  for (Ref input : inputs_)
    if (input < aten && !is_constant_input(trace, input)) add(input, false);
  return found;
}

// How the arguments of an operation depend on sizes, where they do.
std::string GenericTrace::fit(Ref aten, const Walk& own, std::vector<std::unique_ptr<Walk>>& walks, const std::vector<SizeSample>& samples, size_t number) {
  const ir::AtenCall& recorded = recording_.trace.calls[recording_.trace.insts[aten].imm];
  std::vector<Source> known;
  size_t of_operands = 0;
  auto holds = [&](const Expression& e, const std::vector<Number>& wanted) {
    for (size_t w = 0; w < walks.size(); w++)
      if (walks[w]->value(e) != wanted[w]) return false;
    return own.value(e) == wanted.back();
  };
  auto find = [&](const std::vector<Number>& wanted, bool is_float, Expression* out) {
    Expression e;
    e.is_float = is_float;
    for (const Source& source : known) {
      e.a = source;
      if (holds(e, wanted)) return *out = e, true;
    }
    if (is_float) return false;
    e.product = true;
    for (size_t i = 0; i < of_operands; i++)
      for (size_t k = i + 1; k < of_operands; k++) {
        e.a = known[i];
        e.b = known[k];
        if (holds(e, wanted)) return *out = e, true;
      }
    e.product = false;
    const int64_t target = wanted.back().bits;
    for (const Source& source : known) {
      const std::optional<Number> here = own.value(source);
      if (source.kind == Source::kNumber) continue;  // an operation that computes with a number of Python's does more with it than to scale it
      if (!here || here->type != ir::Type::kInt || here->bits == 0 || target == 0) continue;
      Expression scaled = e;
      scaled.a = source;
      if (target % here->bits == 0) scaled.times = target / here->bits;
      else if (here->bits % target == 0) scaled.by = here->bits / target;
      else continue;
      if (holds(scaled, wanted)) return *out = scaled, true;
    }
    for (const Source& source : known) {
      const std::optional<Number> here = own.value(source);
      if (!here || here->type != ir::Type::kInt) continue;
      e.a = source;
      e.plus = target - here->bits;
      if (holds(e, wanted)) return *out = e, true;
    }
    return false;
  };
  auto steady = [&](const Source& source) {
    const std::optional<Number> here = own.value(source);
    const bool same = here && std::all_of(walks.begin(), walks.end(), [&](const auto& walk) { return walk->value(source) == here; });
    if (same) steady_[number].push_back({source, *here});
  };
  known = sources(aten, &of_operands);
  for (const Source& source : known)
    if (source.kind == Source::kNumber) steady(source);
  for (size_t a = 0; a < recorded.args.size(); a++) {
    const AtenArg& arg = recorded.args[a];
    for (size_t i = 0; i < numbers_of(arg); i++) {
      std::vector<Number> wanted;
      for (const SizeSample& sample : samples) wanted.push_back(number_of(sample.calls[number].call.args[a], i));
      wanted.push_back(number_of(arg, i));
      if (std::all_of(wanted.begin(), wanted.end(), [&](const Number& v) { return v == wanted.back(); })) {
        if (is_float_number(arg) || wanted.back().bits <= 1) continue;  // sizes 0 and 1 do not become others, see run()
        for (const Source& source : known)
          if (source.kind != Source::kNumber && own.value(source) == wanted.back()) steady(source);
        continue;
      }
      if (!bridge_->may_change(recorded, a)) return recorded.name + ": an argument changes that is no size";
      Fit fit{static_cast<int32_t>(a), arg.kind == AtenArg::kIntList ? static_cast<int32_t>(i) : -1, {}};
      if (!find(wanted, is_float_number(arg), &fit.value)) {
        if (const int32_t before = recording_.trace.insts[aten].snapshot; before >= 0) {
          const ir::SnapshotFrame& caller = recording_.trace.frames[recording_.trace.snapshots[static_cast<size_t>(before)].frames.back()];
          not_known_ = {static_cast<PyCodeObject*>(caller.code), caller.unit};
        }
        return recorded.name + ": an argument depends on sizes in a way that is not known";
      }
      fits_[number].push_back(fit);
    }
  }
  return "";
}

// With the sizes that it was made with.
std::string GenericTrace::walk_own(Walk* walk) const {
  size_t number = 0;
  for (Ref ref = 0; ref < recording_.trace.insts.size(); ref++) {
    const ir::Inst& inst = recording_.trace.insts[ref];
    std::string why = inst.op == IrOp::k_aten ? walk->run(number++, recording_.trace.calls[inst.imm]) : walk->step(ref);
    if (!why.empty()) return why;
  }
  return "";
}

std::string GenericTrace::own_sizes(Recording* out) {
  Walk walk(*this, nullptr);
  if (std::string why = walk_own(&walk); !why.empty()) return why;
  Classes now;  // what changes with the sizes of inputs is not open
  for (size_t k = 0; learned_ && k < inputs_.size(); k++)
    for (const std::vector<int64_t>& seen : seen_[k])
      if (varies(seen)) now.emplace(seen, seen.back());
  return instance(walk, now, false, out);
}

std::string GenericTrace::open(Recording* out) {
  Walk walk(*this, nullptr);
  if (std::string why = walk_own(&walk); !why.empty()) return why;
  return instance(walk, {}, true, out);
}

// Sizes change no argument but numbers: the rest must have been the same.
bool GenericTrace::same_but_numbers(const AtenArg& a, const AtenArg& b) const {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case AtenArg::kBool: return a.i == b.i;
    case AtenArg::kBoolList: return a.ints == b.ints;
    case AtenArg::kString: return a.s == b.s;
    case AtenArg::kFloatList: return a.floats == b.floats;
    case AtenArg::kOpaque: {
      std::string here, there;
      return a.i == b.i || (bridge_->opaque_text(a.i, &here) && bridge_->opaque_text(b.i, &there) && here == there);
    }
    default: return true;
  }
}

std::string GenericTrace::learn(const std::vector<SizeSample>& samples) {
  std::vector<SizeSample> of_this_way = samples;
  std::string why = "no other recording";
  while (!of_this_way.empty()) {
    size_t other = of_this_way.size();
    why = learn(of_this_way, &other);
    if (why.empty() || other == of_this_way.size()) break;
    of_this_way.erase(of_this_way.begin() + static_cast<ptrdiff_t>(other));
  }
  learned_ = why.empty();
  if (!learned_) unlearn();
  return why;
}

// *other: the sample that is to blame, as it went another way through the program, if one is.
std::string GenericTrace::learn(const std::vector<SizeSample>& samples, size_t* other) {
  const ir::Trace& trace = recording_.trace;
  unlearn();
  Walk own(*this, nullptr);
  std::vector<std::unique_ptr<Walk>> walks;
  for (const SizeSample& sample : samples) {
    *other = walks.size();
    if (sample.inputs.size() != inputs_.size() || sample.calls.size() != calls_.size() || sample.free.size() != free_order_.size()) return "the recordings differ";
    auto walk = std::make_unique<Walk>(*this, bridge_->shapes());
    for (size_t k = 0; k < inputs_.size(); k++) {
      const ir::Inst& inst = trace.insts[inputs_[k]];
      const TensorMeta &there = sample.inputs[k], &here = trace.metas[inst.meta];
      if (there.dtype != here.dtype || there.sizes.size() != here.sizes.size()) return "the recordings have other inputs";
      TensorMeta& meta = walk->metas[inst.meta];
      meta.sizes = there.sizes;
      meta.strides = there.strides;
      meta.offset = there.offset;
    }
    for (size_t k = 0; k < free_order_.size(); k++) walk->free[free_order_[k]] = sample.free[k];
    walks.push_back(std::move(walk));
  }
  *other = samples.size();
  bool change = false;
  for (size_t k = 0; k < inputs_.size(); k++) {
    const TensorMeta& here = trace.metas[trace.insts[inputs_[k]].meta];
    for (const SizeSample& sample : samples) geometries_[k].push_back(sample.inputs[k]);
    geometries_[k].push_back(here);
    for (size_t d = 0; d < here.sizes.size(); d++) {
      std::vector<int64_t> sizes;
      for (const SizeSample& sample : samples) sizes.push_back(sample.inputs[k].sizes[d]);
      sizes.push_back(here.sizes[d]);
      change = change || varies(sizes);
      seen_[k].push_back(std::move(sizes));
    }
  }
  for (size_t k = 0; k < calls_.size(); k++) {
    const ir::AtenCall& call = trace.calls[trace.insts[calls_[k]].imm];
    for (size_t w = 0; call.defines_sizes && w < samples.size(); w++) {
      const std::vector<TensorMeta>& there = samples[w].calls[k].results;
      *other = w;
      if (there.size() != call.results.size()) return call.name + ": the recordings differ";
      for (size_t i = 0; i < there.size(); i++)
        if (call.results[i] >= 0 && there[i].sizes.size() != trace.metas[call.results[i]].sizes.size()) return call.name + ": the recordings differ";
      walks[w]->defined[k] = there;
    }
  }
  *other = samples.size();
  note_defined(samples);
  for (size_t k = 0; k < free_order_.size(); k++) {
    std::vector<int64_t> seen;
    for (const SizeSample& sample : samples) seen.push_back(sample.free[k]);
    seen.push_back(free_.at(free_order_[k]));
    change = change || varies(seen);
    free_seen_[free_order_[k]] = std::move(seen);
  }
  if (!change && defined_.empty()) return "no size differs between the recordings";
  size_t number = 0;
  for (Ref ref = 0; ref < trace.insts.size(); ref++) {
    if (trace.insts[ref].op != IrOp::k_aten) {
      std::string why = own.step(ref);
      if (!why.empty()) return why;
      for (size_t w = 0; w < walks.size(); w++) {
        *other = w;
        why = walks[w]->step(ref);
        if (!why.empty()) return why;
      }
      *other = samples.size();
      continue;
    }
    const ir::AtenCall& recorded = trace.calls[trace.insts[ref].imm];
    for (size_t w = 0; w < samples.size(); w++) {
      const ir::AtenCall& there = samples[w].calls[number].call;
      bool alike = there.name == recorded.name && there.overload == recorded.overload && there.args.size() == recorded.args.size() && there.results.size() == recorded.results.size();
      for (size_t a = 0; alike && a < there.args.size(); a++)
        alike = numbers_of(there.args[a]) == numbers_of(recorded.args[a]) && same_but_numbers(there.args[a], recorded.args[a]);
      if (alike) continue;
      *other = w;
      return recorded.name + ": the recordings differ";
    }
    std::string why = fit(ref, own, walks, samples, number);
    if (why.empty()) why = own.run(number, recorded);
    for (size_t w = 0; w < walks.size() && why.empty(); w++) {
      const SizeSample::Call& there = samples[w].calls[number];
      ir::AtenCall call = recorded;
      for (size_t a = 0; a < call.args.size(); a++)
        for (size_t i = 0; i < numbers_of(call.args[a]); i++) set_number(&call.args[a], i, number_of(there.call.args[a], i));
      why = walks[w]->run(number, std::move(call));
      if (!why.empty()) *other = w;  // as with sizes of 0 and 1, which broadcast otherwise
      for (size_t i = 0; i < there.results.size() && why.empty(); i++)
        if (recorded.results[i] >= 0 && used_[recorded.results[i]] && !same_places(walks[w]->metas[recorded.results[i]], there.results[i])) {
          if (walks[w]->metas[recorded.results[i]].sizes != there.results[i].sizes || !note_layout(number, i, samples)) why = recorded.name + ": torch's meta function says otherwise";
          else walks[w]->lies(number, i, there.results[i]);
        }
    }
    if (!why.empty()) return why;
    number++;
  }
  // A number of Python's that no argument comes from decides what is done (`x.chunk(k)`), even if all recordings did the same.
  std::set<std::vector<int64_t>> used;
  for (const std::vector<Fit>& fits : fits_)
    for (const Fit& fit : fits) {
      if (fit.value.a.kind != Source::kNumber) continue;
      std::vector<int64_t> seen;
      for (const auto& walk : walks) seen.push_back(walk->value(fit.value.a)->bits);
      seen.push_back(own.value(fit.value.a)->bits);
      used.insert(std::move(seen));
    }
  for (const auto& [ref, seen] : free_seen_)
    if (varies(seen) && used.count(seen) == 0) return "a number decides what no argument shows";
  return "";
}

namespace {

// What a size is now that was seen in other sizes together with these. Sizes that were always in one relation still are; nothing: it does not change, or two of them
// say different things.
std::optional<int64_t> size_now(const std::map<std::vector<int64_t>, int64_t>& now, const std::vector<int64_t>& seen) {
  if (auto equal = now.find(seen); equal != now.end()) return equal->second;
  if (!varies(seen)) return std::nullopt;
  std::optional<int64_t> found;
  for (const auto& [other, size] : now) {
    const std::optional<SizeRelation> relation = steady_relation(seen, other);
    const std::optional<int64_t> related = relation ? (*relation)(size) : std::nullopt;
    if (!related) continue;
    if (found && *found != *related) return std::nullopt;
    found = related;
  }
  return found;
}

}  // namespace

bool GenericTrace::is_new(const RefusedInput& refused) const {
  if (!learned_ || refused.input >= inputs_.size()) return false;
  const std::vector<std::vector<int64_t>>& seen = seen_[refused.input];
  for (size_t d = 0; d < seen.size() && refused.sizes.size() == seen.size(); d++)
    if (!varies(seen[d]) && refused.sizes[d] != seen[d].back()) return true;
  return false;
}

std::string GenericTrace::specialise(const RefusedInput& refused, Recording* out) {
  const ir::Trace& trace = recording_.trace;
  if (refused.input >= inputs_.size()) return "another input";
  Walk walk(*this, bridge_->shapes());
  Classes now;  // sizes seen of a dimension -> its size now
  const TensorMeta& recorded = trace.metas[trace.insts[inputs_[refused.input]].meta];
  if (recorded.sizes.size() != refused.sizes.size()) return "another number of dimensions";
  for (size_t d = 0; d < recorded.sizes.size(); d++) {
    const std::vector<int64_t>& seen = seen_[refused.input][d];
    const bool changes = varies(seen);
    if (!changes && refused.sizes[d] != recorded.sizes[d]) return "a size that has not changed before";
    if (!changes) continue;
    if (refused.sizes[d] != recorded.sizes[d] && (refused.sizes[d] <= 1 || recorded.sizes[d] <= 1)) return "size 0 or 1";
    if (!now.emplace(seen, refused.sizes[d]).second && now[seen] != refused.sizes[d]) return "sizes that were equal are not";
  }
  for (size_t k = 0; k < inputs_.size(); k++) {
    const ir::Inst& inst = trace.insts[inputs_[k]];
    TensorMeta& meta = walk.metas[inst.meta];
    if (k == refused.input) {
      meta.sizes = refused.sizes;
      meta.strides = refused.strides;
      continue;
    }
    std::vector<int64_t> sizes = trace.metas[inst.meta].sizes;
    for (size_t d = 0; d < sizes.size(); d++) {
      const std::optional<int64_t> size = size_now(now, seen_[k][d]);
      if (!size) continue;
      if (*size != sizes[d] && (*size <= 1 || sizes[d] <= 1)) return "size 0 or 1";
      sizes[d] = *size;
    }
    if (sizes == trace.metas[inst.meta].sizes) continue;
    std::vector<int64_t> strides;
    if (!strides_for(geometries_[k], sizes, &strides)) return "strides of another input change in a way that is not known";
    meta.sizes = std::move(sizes);
    meta.strides = std::move(strides);
  }
  if (std::string why = defined_for(now, nullptr, &walk); !why.empty()) return why;
  if (std::string why = rewalk(&walk); !why.empty()) return why;
  for (const SizeFacts::Fold& fold : recording_.sizes.folds) {
    if (fold.tensor >= trace.insts.size()) continue;  // in what was cut off
    const int32_t index = trace.insts[fold.tensor].meta;
    const TensorMeta &before = trace.metas[index], &after = walk.metas[index];
    if (fold.kind == SizeFacts::Fold::kContiguous ? is_contiguous(before) != is_contiguous(after) : !same_geometry(before, after)) return "something was decided by a tensor's geometry";
  }
  return instance(walk, now, false, out);
}

// Through the whole recording, with the arguments that follow from the walk's sizes.
std::string GenericTrace::rewalk(Walk* walk) const {
  const ir::Trace& trace = recording_.trace;
  size_t number = 0;
  for (Ref ref = 0; ref < trace.insts.size(); ref++) {
    std::string why;
    if (trace.insts[ref].op == IrOp::k_aten) {
      ir::AtenCall call = trace.calls[trace.insts[ref].imm];
      for (const Steady& steady : steady_[number])
        if (walk->value(steady.source) != steady.value) return call.name + ": an argument may come from a number that has not changed before";
      for (const Fit& fit : fits_[number]) {
        const std::optional<Number> value = walk->value(fit.value);
        if (!value) return call.name + ": no argument for these sizes";
        set_number(&call.args[static_cast<size_t>(fit.argument)], static_cast<size_t>(std::max(fit.element, 0)), *value);
      }
      why = walk->run(number++, std::move(call));
    } else {
      why = walk->step(ref);
    }
    if (!why.empty()) return why;
  }
  return "";
}

// Has the result of this call, which makes it, strides that follow from its sizes as in all recordings?
bool GenericTrace::note_layout(size_t number, size_t result, const std::vector<SizeSample>& samples) {
  const ir::AtenCall& call = recording_.trace.calls[recording_.trace.insts[calls_[number]].imm];
  std::vector<TensorMeta> seen;
  for (const SizeSample& sample : samples) seen.push_back(sample.calls[number].results[result]);
  seen.push_back(recording_.trace.metas[call.results[result]]);
  std::vector<int64_t> strides;
  if (call.result_alias[result] >= 0 || !strides_for(seen, seen.back().sizes, &strides)) return false;
  laid_out_[{number, result}] = std::move(seen);
  return true;
}

// The sizes that operations define and that differed between the recordings.
void GenericTrace::note_defined(const std::vector<SizeSample>& samples) {
  const ir::Trace& trace = recording_.trace;
  for (size_t k = 0; k < calls_.size(); k++) {
    const ir::AtenCall& call = trace.calls[trace.insts[calls_[k]].imm];
    for (size_t i = 0; call.defines_sizes && i < call.results.size(); i++) {
      if (call.results[i] < 0) continue;
      std::vector<TensorMeta>& geometries = defined_geometries_[{k, i}];
      for (const SizeSample& sample : samples) geometries.push_back(sample.calls[k].results[i]);
      geometries.push_back(trace.metas[call.results[i]]);
      for (size_t d = 0; d < geometries.back().sizes.size(); d++) {
        if (ir::is_index(call) && d != indexed_dim(call, geometries.back().sizes.size())) continue;  // it has its operand's
        std::vector<int64_t> seen;
        for (const TensorMeta& geometry : geometries) seen.push_back(geometry.sizes[d]);
        if (varies(seen)) defined_.push_back({k, i, d, std::move(seen)});
      }
    }
  }
}

// How far other sizes are from those of a walk: an odd prime times the step, so that what they differ by is no sum of two others, and no multiple of another. Each is
// as divisible as before, by 1 to 8 or most of these. The shorter steps are for programs that can do no more than so much, such as a table of positions has rows.
static constexpr int64_t kOtherSteps[] = {280, 40, 8, -8};
static constexpr int64_t kOddPrimes[] = {3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73};

// In the place of a size, for the whole class.
int64_t GenericTrace::other_size(const std::vector<int64_t>& seen, OtherSizes* others) {
  for (auto other = others->sizes.begin(); others->related && other != others->sizes.end(); ++other)
    if (const auto relation = steady_relation(seen, other->first))
      if (const auto related = (*relation)(other->second)) return others->sizes.emplace(seen, *related).first->second;
  const size_t number = others->sizes.size(), primes = std::size(kOddPrimes);
  const int64_t times = kOddPrimes[number % primes] + 72 * static_cast<int64_t>(number / primes);
  return others->sizes.emplace(seen, seen.back() + others->step * times).first->second;
}

// What operations that define sizes give in this walk: what they gave here, or what an input's size is now that they were always equal to. others: in
// the place of the rest, other sizes.
std::string GenericTrace::defined_for(const Classes& now, OtherSizes* others, Walk* walk) const {
  const ir::Trace& trace = recording_.trace;
  for (const Defined& each : defined_) {
    const ir::AtenCall& call = trace.calls[trace.insts[calls_[each.call]].imm];
    auto& metas = walk->defined[each.call];
    if (metas.empty())
      for (int32_t result : call.results) metas.push_back(result < 0 ? TensorMeta{} : trace.metas[result]);
    int64_t& size = metas[each.result].sizes[each.dim];
    if (const auto equal = now.find(each.seen); equal != now.end()) size = equal->second;
    else if (others != nullptr) size = other_size(each.seen, others);
  }
  for (const Defined& each : defined_) {
    if (ir::is_index(trace.calls[trace.insts[calls_[each.call]].imm])) continue;  // it has its operand's
    TensorMeta& meta = walk->defined[each.call][each.result];
    const auto& geometries = defined_geometries_.at({each.call, each.result});
    if (!strides_for(geometries, meta.sizes, &meta.strides)) return "an operation's strides change in a way that is not known";
  }
  return "";
}

// The same for inputs.
std::string GenericTrace::inputs_for(OtherSizes* others, Walk* walk) const {
  for (size_t k = 0; k < inputs_.size(); k++) {
    TensorMeta& meta = walk->metas[recording_.trace.insts[inputs_[k]].meta];
    bool changes = false;
    for (size_t d = 0; d < meta.sizes.size(); d++) {
      if (!varies(seen_[k][d])) continue;
      if (meta.sizes[d] <= 1) return "size 0 or 1";
      meta.sizes[d] = other_size(seen_[k][d], others);
      changes = true;
    }
    if (changes && !strides_for(geometries_[k], meta.sizes, &meta.strides)) return "strides of an input change in a way that is not known";
  }
  return "";
}

// As `walk`, with other sizes where they are open.
std::string GenericTrace::walk_other(const Walk& walk, const Classes& now, bool open_inputs, OtherSizes others, Walk* other) const {
  other->any_way = true;
  for (Ref input : inputs_) other->metas[recording_.trace.insts[input].meta] = walk.metas[recording_.trace.insts[input].meta];
  if (open_inputs)
    if (std::string why = inputs_for(&others, other); !why.empty()) return why;
  if (std::string why = defined_for(now, &others, other); !why.empty()) return why;
  for (const auto& [ref, seen] : free_seen_)
    if (varies(seen)) other->free[ref] = other_size(seen, &others);
  if (std::any_of(others.sizes.begin(), others.sizes.end(), [](const auto& size) { return size.second <= 1; })) return "no other size";
  return rewalk(other);
}

PyObject* GenericTrace::size_type() {
  static PyObject* const type = Py_XNewRef(parts::qualified("torch", "Size"));
  return type;
}

PyObject* GenericTrace::shape_object(const std::vector<int64_t>& sizes) {
  PyObject* items = PyTuple_New(static_cast<Py_ssize_t>(sizes.size()));
  for (size_t d = 0; d < sizes.size(); d++) PyTuple_SET_ITEM(items, static_cast<Py_ssize_t>(d), PyLong_FromLongLong(sizes[d]));
  PyObject* shape = PyObject_CallOneArg(size_type(), items);
  Py_DECREF(items);
  return shape;
}

// The recording with what the walk has found in the place of numbers and shapes.
std::string GenericTrace::instance(Walk& walk, const Classes& now, bool open_inputs, Recording* out) const {
  Recording& made = *out;
  made = {};
  const auto dropped = [&](std::string why) {
    for (PyObject* object : made.owned) Py_DECREF(object);
    made = {};
    return why;
  };
  made.sites = recording_.sites;
  made.uses = recording_.uses;
  made.made = recording_.made;
  made.cut = recording_.cut;
  made.whole = recording_.whole;
  made.trains = recording_.trains;
  made.tensor_ops = recording_.tensor_ops;
  made.ms = recording_.ms;
  for (PyObject* object : recording_.owned) made.owned.push_back(Py_NewRef(object));
  const auto is_open = [&](const Defined& each) { return now.count(each.seen) == 0; };
  if (!free_.empty() || open_inputs || std::any_of(defined_.begin(), defined_.end(), is_open)) {
    std::string why;
    if (learned_) {
      bool made_it = false;
      for (const bool related : {false, true})
        for (size_t k = 0; k < std::size(kOtherSteps) && !made_it; k++) {
          Walk other(*this, bridge_->shapes());
          std::string refused = walk_other(walk, now, open_inputs, {kOtherSteps[k], related, {}}, &other);
          if (refused.empty()) refused = Opening(*this, walk, other, related, &made).run();
          made_it = refused.empty();
          if (made_it || why.empty()) why = refused;
        }
    } else {
      why = Opening(*this, walk, walk, false, &made).run();  // numbers of Python's are what they were
    }
    return why.empty() ? why : dropped(why);
  }
  made.trace = recording_.trace;
  made.trace.metas = std::move(walk.metas);
  for (size_t k = 0; k < calls_.size(); k++) made.trace.calls[static_cast<size_t>(made.trace.insts[calls_[k]].imm)] = std::move(walk.calls[k]);
  for (Ref ref = 0; ref < made.trace.insts.size(); ref++) {
    ir::Inst& inst = made.trace.insts[ref];
    if (inst.op == IrOp::k_tensor_size) {
      inst.op = IrOp::k_const_int;
      inst.imm = walk.numbers[ref]->bits;
      inst.count = 0;
    } else if (inst.op == IrOp::k_build_size) {
      PyObject* shape = shape_object(walk.shape_objects[ref]);
      inst.op = IrOp::k_const_obj;
      inst.imm = static_cast<int64_t>(made.trace.objects.size());
      inst.count = 0;
      inst.sunk = false;
      made.trace.objects.push_back({shape, "torch.Size"});
      made.owned.push_back(shape);
    }
  }
  if (backwards_.empty()) return "";
  std::vector<Ref> same(made.trace.insts.size());
  std::iota(same.begin(), same.end(), Ref{0});
  const std::vector<TensorMeta> metas = made.trace.metas;
  std::string why = backwards_.part({&made.trace, same, backwards_.ends(), metas, nullptr, {}}, &made.backwards);
  return why.empty() ? why : dropped(why);
}

}  // namespace dynvm::tracer
