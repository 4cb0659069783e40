// channels_last: images between convolutions lie with their channels innermost.
//
// The library's fast convolutions work on memory with channels innermost (NHWC). Scripts' tensors mostly have them outermost (NCHW), so the library converts the input and the result in
// each call. A trace lays out what it makes itself: kernels take any strides, and so do the calls of layouts.def, whose results lie as torch's own rules say. Weights stay as they are.
//
// It decides for whole storages, so that what looks at one memory stays alike. A storage may change when the trace makes it, all that looks at it is an image of two dims, dense in
// row-major order, and nothing cares: only calls of the table, operations that become kernels, detach(), exits. A tensor that the script really gets, another view or another
// library call pin it. Where channels or pixels are one, both layouts are the same memory, and nothing needs to change.
//
// Storages that one kernel operation touches change together or not at all: a kernel that reads both layouts walks one of them badly. Such a group pays where the elements of
// its images that convolutions take and give are more than those of pinned images that its operations touch.
//
// Where the two layouts meet at a convolution stands a copy: in front of one whose result changes and whose input is pinned, as a batch that the script gives (unless that has
// many more elements than the result), and behind one whose input changed and whose result is pinned. The library would convert there too, so it costs nothing more.
//
// For the script all is as recorded: a changed tensor's meta has both strides (TensorMeta::shown), and an exit converts what it makes an object of. Graphs that exits rebuild do not know of the
// copies (is_relayout).
//
// Each round that changes its mind pins a storage or takes back a group, so it ends; then one walk rewrites.
// Tests: tests/ir/passes/channels_last, tests/ir/layouts.cpp, tests/traces/test_layouts.py, tests/cuda/whole.py.
#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ir/effects.h"
#include "ir/lower/lower.h"
#include "ir/passes/pass.h"
#include "ir/passes/rewrite.h"

namespace dynvm::ir {
namespace {

// Elements of an input that is copied in front of its convolution for each of the result, which the library need not convert then. Its copies may be faster than ours.
constexpr int64_t kLargestCopy = 4;

enum class Rule { kConvolves, kGradients, kFollows };
struct Row {
  Rule rule;
  uint32_t argument;
};

const Row* row_of(const AtenCall& call) {
  static const std::unordered_map<std::string_view, Row> table = {
#define X(name, rule, argument, sentence) {"aten::" #name, {Rule::k##rule, argument}},
#include "ir/passes/layouts.def"
#undef X
  };
  const auto row = table.find(call.name);
  return row == table.end() || call.overload.find("out") != std::string::npos ? nullptr : &row->second;
}

std::vector<int64_t> channels_last_strides(const std::vector<int64_t>& sizes) {
  return {sizes[1] * sizes[2] * sizes[3], 1, sizes[1] * sizes[3], sizes[1]};
}

// What torch takes for channels last, of four dims (c10/core/MemoryFormat.h).
bool is_channels_last(const TensorMeta& meta) {
  if (meta.sizes.size() != 4 || meta.open != 0 || meta.strides[1] == 0) return false;
  int64_t least = 0;
  for (size_t d : {1, 3, 2, 0}) {
    if (meta.sizes[d] == 0 || meta.strides[d] < least || (d == 0 && least == meta.strides[1])) return false;
    least = meta.strides[d] * std::max<int64_t>(meta.sizes[d], 1);
  }
  return true;
}

// An image in memory of its own whose layout makes a difference.
bool has_layouts(const TensorMeta& meta) { return meta.sizes.size() == 4 && meta.open == 0 && meta.sizes[0] > 0 && meta.sizes[1] > 1 && meta.sizes[2] * meta.sizes[3] > 1; }
bool is_plain_image(const TensorMeta& meta) {
  return has_layouts(meta) && meta.offset == 0 && meta.shown.empty() && meta.device_type <= 1 && is_contiguous(meta);
}

class ChannelsLast {
 public:
  ChannelsLast(Trace& trace, const PassOptions& options) : trace_(trace), options_(options) {}

  void run() {
    if (std::none_of(trace_.insts.begin(), trace_.insts.end(), [&](const Inst& inst) { return inst.op == Op::k_aten && convolves(inst); })) return;
    look();
    for (;;) {
      while (!weigh()) {}
      lay_out();
      const std::vector<Ref> others = other_calls();
      if (others.empty()) break;
      take_back();
      for (Ref ref : others) pin_all(ref);
    }
    if (std::find(changed_.begin(), changed_.end(), true) != changed_.end()) rewrite();
  }

 private:
  // --- facts
  const AtenCall& call_of(Ref aten) const { return trace_.calls[trace_.insts[aten].imm]; }
  const TensorMeta& meta_of(Ref tensor) const { return trace_.metas[trace_.insts[tensor].meta]; }

  // The tensor that the call has as argument; kNoRef: none.
  Ref tensor(const Inst& inst, uint32_t argument) const {
    const AtenCall& call = trace_.calls[inst.imm];
    if (argument >= call.args.size() || call.args[argument].kind != AtenArg::kTensor || call.args[argument].operands[0] < 0) return kNoRef;
    return trace_.arg(inst, static_cast<uint32_t>(call.args[argument].operands[0]));
  }

  // A convolution of two dims that is faster with channels last.
  bool convolves(const Inst& inst) const {
    const AtenCall& call = trace_.calls[inst.imm];
    const Row* row = row_of(call);
    if (row == nullptr || row->rule == Rule::kFollows || inst.sunk) return false;
    const Ref input = tensor(inst, row->argument), weight = tensor(inst, row->argument + 1);
    const size_t at = row->rule == Rule::kConvolves ? 8 : 9;
    if (input == kNoRef || weight == kNoRef || at >= call.args.size() || call.args[at].kind != AtenArg::kInt || call.results.empty()) return false;
    const TensorMeta &image = meta_of(input), &filter = meta_of(weight);
    const int64_t groups = call.args[at].i;
    if (image.sizes.size() != 4 || filter.sizes.size() != 4 || image.open != 0 || filter.open != 0 || image.dtype != filter.dtype) return false;
    if (groups != 1 && (image.sizes[1] / groups < 4 || filter.sizes[0] / groups < 4)) return false;  // depthwise, or nearly
    if (is_channels_last(image) || is_channels_last(filter)) return false;  // then its result was recorded as it comes
    if (image.dtype != DType::kF32 && !is_reduced_floating(image.dtype)) return false;
    if (image.device_type == 1) return options_.fast_convolutions >= (image.dtype == DType::kF32 ? 2 : 1);
    return options_.channels_last == 2;
  }

  void pin(int32_t storage) {
    if (storage >= 0) changed_[storage] = false;
  }
  void pin_tensor(Ref value) {
    if (value != kNoRef) pin(storage_of(trace_, value));
  }
  void pin_all(Ref call) {
    for (int32_t storage : storages_of(call)) pin(storage);
  }

  // All that the call's tensors look at.
  std::vector<int32_t> storages_of(Ref ref) const {
    std::vector<int32_t> out;
    for (const TensorMeta* meta : metas_of(ref)) out.push_back(meta->storage);
    return out;
  }
  std::vector<const TensorMeta*> metas_of(Ref ref) const {
    std::vector<const TensorMeta*> out;
    const Inst& inst = trace_.insts[ref];
    for (uint32_t k = 0; k < inst.count; ++k)
      if (const Inst& operand = trace_.insts[trace_.arg(inst, k)]; operand.type == Type::kTensor && operand.meta >= 0) out.push_back(&trace_.metas[operand.meta]);
    if (inst.op == Op::k_aten)
      for (int32_t result : trace_.calls[inst.imm].results)
        if (result >= 0) out.push_back(&trace_.metas[result]);
    return out;
  }

  // Which storages may change; who touches them.
  void look() {
    const auto storages = static_cast<size_t>(trace_.num_storages);
    changed_.assign(storages, true);
    meta_.assign(storages, -1);
    results_.assign(trace_.insts.size(), {});
    std::vector<bool> made(storages, false);
    const auto see = [&](int32_t number) {
      if (number < 0) return;
      const TensorMeta& meta = trace_.metas[number];
      int32_t& first = meta_[meta.storage];
      if (first < 0) first = number;
      const TensorMeta& known = trace_.metas[first];
      if (!is_plain_image(meta) || meta.sizes != known.sizes || meta.strides != known.strides || meta.dtype != known.dtype || meta.device_type != known.device_type) pin(meta.storage);
    };
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      const Inst& inst = trace_.insts[ref];
      see(inst.meta);
      if (inst.op == Op::k_result) {
        std::vector<Ref>& values = results_[trace_.arg(inst, 0)];
        if (values.size() <= static_cast<size_t>(inst.imm)) values.resize(static_cast<size_t>(inst.imm) + 1, kNoRef);
        if (values[inst.imm] == kNoRef) values[inst.imm] = ref;
      }
      if (inst.op != Op::k_aten) continue;
      const AtenCall& call = trace_.calls[inst.imm];
      for (size_t k = 0; k < call.results.size(); ++k) {
        see(call.results[k]);
        if (call.results[k] >= 0 && call.result_alias[k] < 0) made[trace_.metas[call.results[k]].storage] = true;
      }
    }
    for (size_t storage = 0; storage < storages; ++storage)
      if (!made[storage] || meta_[storage] < 0) changed_[storage] = false;
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) visit(ref);
  }

  void visit(Ref ref) {
    const Inst& inst = trace_.insts[ref];
    switch (inst.op) {
      case Op::k_aten: return visit_call(ref);
      case Op::k_unbox_tensor: return pin_tensor(ref);
      case Op::k_wrap:
        if (!inst.sunk) pin_all(ref);
        return;
      case Op::k_result:
      case Op::k_tensor_size:
      case Op::k_bump_version:
      case Op::k_graph_freed: return;
      default: return pin_all(ref);
    }
  }

  void visit_call(Ref ref) {
    const Inst& inst = trace_.insts[ref];
    const AtenCall& call = trace_.calls[inst.imm];
    if (is_view_call(trace_, inst) && (call.name == "aten::detach" || call.name == "aten::alias")) return;
    if (const Row* row = row_of(call); row != nullptr && row->rule != Rule::kFollows) {
      if (!convolves(inst)) return pin_all(ref);
      for (uint32_t k = 0; k < call.args.size(); ++k)
        if (k != row->argument && !(row->rule == Rule::kGradients && k == 0)) pin_tensor(tensor(inst, k));
      for (size_t k = 1; k < call.results.size(); ++k)
        if (call.results[k] >= 0) pin(trace_.metas[call.results[k]].storage);
      convolutions_.push_back(ref);
      return;
    }
    if (!any_changed(ref)) return;
    if (row_of(call) != nullptr && !inst.sunk && !is_kernel(ref)) {
      calls_.insert(ref);
    } else if (!may_be_kernel(ref)) {
      return pin_all(ref);
    }
    touching_.push_back(ref);
  }

  bool any_changed(Ref ref) const {
    const std::vector<int32_t> storages = storages_of(ref);
    return std::any_of(storages.begin(), storages.end(), [&](int32_t storage) { return changed_[storage]; });
  }

  // As far as its kind says: is_kernel says the rest.
  bool may_be_kernel(Ref ref) const {
    const Inst& inst = trace_.insts[ref];
    const AtenCall& call = trace_.calls[inst.imm];
    if (inst.sunk || call.is_random || is_view_call(trace_, inst) || call.name.substr(0, 6) != "aten::" || call.name.substr(0, 14) == "aten::_foreach") return false;
    if (gives_unwritten(call) || temporary_of(trace_, ref)) return false;
    const std::vector<const TensorMeta*> metas = metas_of(ref);
    return std::all_of(metas.begin(), metas.end(), [&](const TensorMeta* meta) {
      return meta->device_type == metas[0]->device_type && meta->device_index == metas[0]->device_index;
    });
  }

  bool is_kernel(Ref ref) const {
    if (!may_be_kernel(ref) || (metas_of(ref)[0]->device_type != 0 && !options_.fuse_cuda)) return false;
    if (stays_aten(options_, call_of(ref).name)) return false;
    std::optional<Trace> recoded;
    const std::vector<const TensorMeta*> metas = metas_of(ref);
    if (std::any_of(metas.begin(), metas.end(), [](const TensorMeta* meta) { return meta->symbolic; })) recoded = recoded_for_lowering(trace_);
    std::vector<Lowered> lowered;
    std::string why;
    return lower_call(trace_, ref, results_[ref], &lowered, &why, {}, recoded ? &*recoded : nullptr);
  }

  // Of the operations that touch what changes, with the new strides: those that become no kernel and follow no rule.
  std::vector<Ref> other_calls() const {
    std::vector<Ref> out;
    std::copy_if(touching_.begin(), touching_.end(), std::back_inserter(out), [&](Ref ref) { return any_changed(ref) && calls_.count(ref) == 0 && !is_kernel(ref); });
    return out;
  }

  // --- what pays

  int32_t group_of(int32_t storage) {
    while (group_[storage] != storage) storage = group_[storage] = group_[group_[storage]];
    return storage;
  }

  int64_t size_of(int32_t storage) const { return elements(trace_.metas[meta_[storage]]); }

  // What follows a rule changes as a whole, with the image that decides, or not at all.
  bool breaks_rule(Ref ref) const {
    if (calls_.count(ref) == 0 || !any_changed(ref)) return false;
    const Ref decides = tensor(trace_.insts[ref], row_of(call_of(ref))->argument);
    if (decides == kNoRef || !changed_[storage_of(trace_, decides)]) return true;
    const std::vector<const TensorMeta*> metas = metas_of(ref);
    return std::any_of(metas.begin(), metas.end(), [&](const TensorMeta* meta) { return !changed_[meta->storage] && has_layouts(*meta); });
  }

  // One round. False: something was pinned or taken back.
  bool weigh() {
    group_.resize(changed_.size());
    std::iota(group_.begin(), group_.end(), 0);
    bool settled = true;
    for (Ref ref : touching_) {
      if (breaks_rule(ref)) {
        pin_all(ref);
        settled = false;
      }
      int32_t first = -1;
      for (const TensorMeta* meta : metas_of(ref)) {
        if (!changed_[meta->storage]) continue;
        if (first < 0) first = meta->storage;
        group_[group_of(meta->storage)] = group_of(first);
      }
    }
    if (!settled) return false;
    std::vector<int64_t> gain(changed_.size(), 0);
    for (Ref ref : convolutions_)
      for (int32_t storage : storages_of(ref))
        if (changed_[storage]) gain[group_of(storage)] += size_of(storage);
    std::set<std::pair<int32_t, int32_t>> counted;  // group, pinned storage
    for (Ref ref : touching_) {
      const std::vector<const TensorMeta*> metas = metas_of(ref);
      const auto changed = std::find_if(metas.begin(), metas.end(), [&](const TensorMeta* meta) { return changed_[meta->storage]; });
      if (changed == metas.end()) continue;
      const int32_t group = group_of((*changed)->storage);
      for (const TensorMeta* meta : metas)
        if (!changed_[meta->storage] && has_layouts(*meta) && !is_channels_last(*meta) && counted.emplace(group, meta->storage).second) gain[group] -= elements(*meta);
    }
    for (int32_t storage = 0; storage < static_cast<int32_t>(changed_.size()); ++storage) {
      if (!changed_[storage] || gain[group_of(storage)] > 0) continue;
      pin(storage);
      settled = false;
    }
    for (Ref ref : convolutions_) {
      const Inst& inst = trace_.insts[ref];
      const Row* row = row_of(call_of(ref));
      const int32_t result = call_of(ref).results[0];
      if (row->rule != Rule::kConvolves || result < 0 || !changed_[trace_.metas[result].storage]) continue;
      const TensorMeta& input = meta_of(tensor(inst, row->argument));
      if (changed_[input.storage] || elements(input) <= kLargestCopy * elements(trace_.metas[result])) continue;
      pin(trace_.metas[result].storage);
      settled = false;
    }
    return settled;
  }

  void lay_out() {
    for (TensorMeta& meta : trace_.metas) {
      if (meta.storage < 0 || !changed_[meta.storage] || !is_plain_image(meta)) continue;
      meta.shown = channels_last_strides(meta.sizes);
      std::swap(meta.shown, meta.strides);
    }
  }
  void take_back() {
    for (TensorMeta& meta : trace_.metas) {
      if (meta.storage < 0 || !changed_[meta.storage] || meta.shown.empty()) continue;
      meta.strides = std::move(meta.shown);
      meta.shown.clear();
    }
  }

  // --- copies

  void rewrite() {
    const auto count = static_cast<Ref>(trace_.insts.size());
    const std::set<Ref> convolutions(convolutions_.begin(), convolutions_.end());
    std::vector<bool> dead(count, false);
    std::vector<Ref> order;
    Replacements replacements(count);
    for (Ref ref = 0; ref < count; ++ref) {
      if (dead[ref]) continue;
      if (convolutions.count(ref) != 0) {
        convolution(ref, &order, &dead, &replacements);
      } else {
        order.push_back(ref);
      }
      if (has_effect(trace_.insts[ref], kWrite | kBarrier)) copies_.clear();
      for (int32_t storage : tensor_effects(trace_, ref).writes) std::erase_if(copies_, [&](const auto& copy) { return storage_of(trace_, copy.first.first) == storage; });
    }
    for (Kernel& kernel : trace_.kernels) kernel.num_pointers = trace_.num_storages;
    rebuild(&trace_, order, &replacements);
  }

  void convolution(Ref ref, std::vector<Ref>* order, std::vector<bool>* dead, Replacements* replacements) {
    AtenCall call = call_of(ref);
    const Row row = *row_of(call);
    const auto changes = [&](int32_t meta) { return meta >= 0 && changed(trace_.metas[meta].storage); };
    const Ref input = tensor(trace_.insts[ref], row.argument);
    bool last = changes(trace_.insts[input].meta);
    const bool wanted = changes(call.results[0]) || (row.rule == Rule::kGradients && changes(trace_.insts[tensor(trace_.insts[ref], 0)].meta));
    if (wanted && !last) {
      use(ref, call.args[row.argument].operands[0], copy_in_front(ref, input, row.rule, order));
      last = true;
    }
    order->push_back(ref);
    if (!last) return;
    for (size_t k = 0; k < call.results.size() && k < 2; ++k) {
      if (k >= results_[ref].size() || results_[ref][k] == kNoRef || changes(call.results[k])) continue;
      const TensorMeta& recorded = trace_.metas[call.results[k]];
      if (!has_layouts(recorded) || is_channels_last(recorded)) continue;
      copy_behind(ref, k, order, dead, replacements);
    }
  }

  bool changed(int32_t storage) const { return static_cast<size_t>(storage) < changed_.size() && changed_[storage]; }

  // A tensor of its own that lies channels last and looks like `recorded` to the script. The meta's number.
  int32_t new_image(const TensorMeta& recorded) {
    TensorMeta meta = recorded;
    meta.is_parameter = meta.is_subclass = meta.has_hooks = false;
    meta.offset = 0;
    meta.shown = recorded.strides;
    meta.strides = channels_last_strides(recorded.sizes);
    meta.storage = trace_.num_storages++;
    trace_.metas.push_back(std::move(meta));
    return static_cast<int32_t>(trace_.metas.size()) - 1;
  }

  // A copy with the strides of `meta`, in the place of the call `at`.
  Ref copy(Ref source, int32_t meta, Ref at, std::vector<Ref>* order) {
    AtenCall clone;
    clone.name = "aten::clone";
    clone.args.resize(2);
    clone.args[0].kind = AtenArg::kTensor;
    clone.args[0].operands = {0};
    clone.args[1].kind = AtenArg::kInt;
    clone.args[1].i = trace_.metas[meta].shown.empty() ? 0 : 2;  // c10::MemoryFormat: contiguous, channels last
    clone.results = {meta};
    clone.result_alias = {-1};
    clone.inference_mode = call_of(at).inference_mode;
    clone.in_backward = call_of(at).in_backward;
    clone.count = 0;
    trace_.calls.push_back(std::move(clone));
    trace_.origin = trace_.insts[at].origin;
    const Ref made = trace_.add(Op::k_aten, Type::kVoid, {source}, static_cast<int64_t>(trace_.calls.size()) - 1, trace_.insts[at].snapshot);
    const Ref result = trace_.add(Op::k_result, Type::kTensor, {made}, 0);
    trace_.insts[result].meta = meta;
    order->insert(order->end(), {made, result});
    return result;
  }

  // One serves all convolutions that read it; what a backward reads is copied again, so that no copy lives from the forward to there.
  Ref copy_in_front(Ref ref, Ref input, Rule rule, std::vector<Ref>* order) {
    const auto [known, added] = copies_.try_emplace({input, rule}, kNoRef);
    if (added) known->second = copy(input, new_image(meta_of(input)), ref, order);
    return known->second;
  }

  void use(Ref ref, int32_t position, Ref value) {
    const Inst inst = trace_.insts[ref];
    const auto first = static_cast<uint32_t>(trace_.operands.size());
    for (uint32_t k = 0; k < inst.count; ++k) trace_.operands.push_back(static_cast<int32_t>(k) == position ? value : trace_.operands[inst.first + k]);
    trace_.insts[ref].first = first;
  }

  void copy_behind(Ref ref, size_t number, std::vector<Ref>* order, std::vector<bool>* dead, Replacements* replacements) {
    AtenCall call = call_of(ref);
    const int32_t recorded = call.results[number];
    call.results[number] = new_image(trace_.metas[recorded]);
    const Ref given = trace_.add(Op::k_result, Type::kTensor, {ref}, static_cast<int64_t>(number));
    trace_.insts[given].meta = call.results[number];
    trace_.insts[ref].imm = static_cast<int64_t>(trace_.calls.size());
    trace_.calls.push_back(std::move(call));
    order->push_back(given);
    const Ref result = copy(given, recorded, ref, order);
    for (Ref later = ref + 1; later < dead->size(); ++later) {
      const Inst& inst = trace_.insts[later];
      if (inst.op != Op::k_result || trace_.arg(inst, 0) != ref || inst.imm != static_cast<int64_t>(number)) continue;
      (*dead)[later] = true;
      replacements->set(later, result);
    }
  }

  Trace& trace_;
  const PassOptions& options_;
  std::vector<bool> changed_;                // by storage: it lies channels last; at first: it may
  std::vector<int32_t> meta_;                // by storage: of the first tensor on it
  std::vector<std::vector<Ref>> results_;    // by call: the values of its results
  std::vector<Ref> convolutions_, touching_;  // calls that touch images: those that gain, and the others
  std::set<Ref> calls_;                      // of the others: those that stay calls and follow a rule
  std::vector<int32_t> group_;               // by storage: one that changes with it, itself at the end of the chain
  std::map<std::pair<Ref, Rule>, Ref> copies_;  // in front of convolutions, while what they copy has not been written
};

}  // namespace

void pass_channels_last(Trace& trace, const PassOptions& options) {
  if (options.channels_last != 0) ChannelsLast(trace, options).run();
}

}  // namespace dynvm::ir
