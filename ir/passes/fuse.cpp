// fuse: turns elementwise operations and reductions into kernels.
//
// One walk over the trace with a set of *open groups*, each a kernel that grows (fusion_group.h). An operation that lowers (lower.h) joins
// an open group or opens one; its aten instruction stays, marked sunk: it still names its results and says what they look like, and an
// exit may run it again under autograd, but kernels compute the values. A group is emitted when it is *closed*: operations therefore move
// down, to the place of the closing, past everything that neither needs nor disturbs them. That is why a group is closed before
//
//   an operation that stays a library call, or read_scalar     if it reads what the group writes, or writes what the group touches;
//   a guard, a residual call, anything that can leave          if the group writes memory that is visible outside, or that an object of the
//                                                              snapshot shows: an exit must find what eager would have written, no less
//                                                              (no more is sure: what is not emitted has not happened);
//   a tensor object that is really made                        if the group writes its memory;
//   a barrier                                                  also if the group reads visible memory, which Python code may write;
//   the end of the trace                                       always.
//
// Visible are the storages of inputs, and those of tensor objects made so far that are not sunk. Closing a group closes first the groups
// on which it depends. Dependence is by storage: an operation depends on the open groups that write what it reads, or that read or write
// what it writes. It joins the latest of them that allows it (no other group between, no conflict); if it depends on several independent
// ones over one space, these are joined too. An operation that depends on none joins a group over the same space that reads the same
// memory, or any such group when the space is small: one launch less (but not what a _foreach_ operation does to many tensors on a GPU, is_one_of_many).
//
// An operation that draws random numbers and lowers leaves draw_seed and draw_offset in its place, which move the generator on as it would; its kernels, wherever they are,
// are given these numbers.
//
// A tensor that one operation filled with a constant is that constant to later readers (ones_like at the head of every backward).
//
// A store is left out when the memory is not visible, no tensor object of the trace shares it, and all who read it afterwards are in the
// group.
//
// Snapshots name values, not kernels, so they stay; what they need in memory is emitted before the instruction that has them. Those of the
// calls that become kernels go first, and with them, as dead code, the tensor objects that only they showed. Each operation is visited
// once and groups only grow up to their limits, so the pass ends.
//
// Tests: tests/ir/passes/fuse, tests/ir/fuse_fuzz.cpp.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include "ir/drawing.h"
#include "ir/effects.h"
#include "ir/kernel/simplify.h"
#include "ir/kernel/symbols.h"
#include "ir/lower/lower.h"
#include "ir/passes/fusion_group.h"
#include "ir/passes/pass.h"
#include "ir/passes/rewrite.h"
#include "runtime/base/defects.h"
#include "runtime/base/check.h"
#include "runtime/base/heuristics.h"
#include "runtime/base/policy.h"

namespace dynvm::ir {
namespace {

constexpr int kNoDevice = -2, kOtherDevice = -3;
constexpr size_t kGathered = 64;  // a concatenation of many tensors is many parts that depend on each other

// A part of an operation, in the order of the trace: one operation can be several kernels.
struct Place {
  Ref ref;
  int part;
  friend auto operator<=>(const Place&, const Place&) = default;
};

struct Open {
  FusionGroup group;
  int device;
  std::set<int> before;             // groups that must be emitted before this one
  std::vector<uint64_t> all_before;  // a bit for each of these, of those before them and so on; also of some that were emitted or joined to others
  std::set<int32_t> reads, writes;  // storages
  std::map<int32_t, Place> first_write;  // by storage: where the group first writes it
  int count = 0;                    // eager operations
  std::set<int32_t> origins = {};   // of these
  std::set<int64_t> calls = {};     // in Trace::calls: of these
  bool emitted = false;
  int joined_to = -1;
};

class Fuse {
 public:
  // kept: calls, in Trace::calls, that become no kernel.
  Fuse(Trace& trace, const PassOptions& options, const std::set<int64_t>& kept)
      : trace_(trace),
        options_(options),
        kept_(kept),
        limits_{options.max_kernel_operands, options.max_kernel_nodes},
        results_(trace.insts.size()),
        visible_(trace.num_storages, false),
        shared_(trace.num_storages, false),
        readers_(trace.num_storages),
        writers_(trace.num_storages, 0),
        part_readers_(trace.num_storages),
        open_writers_(trace.num_storages),
        open_readers_(trace.num_storages),
        frame_shows_(trace.frames.size()),
        frame_known_(trace.frames.size(), false) {
    if (!trace.symbols.empty()) recoded_ = recoded_for_lowering(trace);
  }

  // A call that becomes a kernel, or that nothing runs for, leaves the trace no more, so its snapshot is dropped. True when one was.
  // What is there to raise alone keeps it and stays a call: with no result to compute, a kernel of it would be nothing.
  bool drop_snapshots() {
    look();
    std::vector<bool> quiet(trace_.insts.size(), false);
    std::vector<Ref> raising;  // of these
    bool dropped = false;
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      const Inst& inst = trace_.insts[ref];
      if (inst.op != Op::k_aten || inst.sunk || inst.snapshot == kNoSnapshot) continue;
      if (!is_known_view(trace_, inst)) {
        std::vector<Lowered> lowered;
        if (is_view_call(trace_, inst) || !wanted(ref)) continue;
        if (!temporary_of(trace_, ref) && !lower(ref, &lowered, {})) continue;
      }
      quiet[ref] = true;
      if (tensor_effects(trace_, ref).may_raise) raising.push_back(ref);
    }
    if (!raising.empty()) {
      const std::vector<bool> live = live_instructions(trace_, quiet);
      for (Ref ref : raising) quiet[ref] = live[ref];
    }
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      if (!quiet[ref]) continue;
      trace_.insts[ref].snapshot = kNoSnapshot;
      dropped = true;
    }
    return dropped;
  }

  const std::set<int64_t>& left_out() const { return left_out_; }

  void run() {
    look();
    auto count = static_cast<Ref>(trace_.insts.size());
    std::vector<bool> placed(count, false);
    for (at_ = 0; at_ < count; ++at_) {
      if (placed[at_]) continue;
      visit(at_);
      order_.push_back(at_);
      // Results follow their call at once: a kernel may be emitted before the trace would have named the last of them.
      for (Ref result : results_[at_]) {
        if (result == kNoRef) continue;
        order_.push_back(result);
        placed[result] = true;
      }
      order_.insert(order_.end(), behind_.begin(), behind_.end());
      behind_.clear();
    }
    for (Kernel& kernel : trace_.kernels) kernel.num_pointers = trace_.num_storages;  // temporaries may have come since
    Replacements none(trace_.insts.size());
    rebuild(&trace_, order_, &none);
  }

 private:
  // --- facts about the whole trace
  void look() {
    bytes_.assign(trace_.num_storages, 0);
    for (const TensorMeta& meta : trace_.metas) {
      int64_t last = meta.offset;
      for (size_t k = 0; k < meta.sizes.size(); ++k) last += (meta.sizes[k] - 1) * meta.strides[k];
      bytes_[meta.storage] = std::max(bytes_[meta.storage], (last + 1) * dtype_size(meta.dtype));
    }
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      const Inst& inst = trace_.insts[ref];
      switch (inst.op) {
        case Op::k_unbox_tensor: visible_[storage_of(trace_, ref)] = true; break;
        case Op::k_wrap:
          wrap_storages_[ref] = wrap_storages(trace_, ref);
          shown_storages_[ref] = wrap_storages(trace_, ref, false);
          for (int32_t storage : wrap_storages_[ref]) shared_[storage] = true;
          break;
        case Op::k_result: {
          std::vector<Ref>& values = results_[trace_.arg(inst, 0)];
          if (values.size() <= static_cast<size_t>(inst.imm)) values.resize(inst.imm + 1, kNoRef);
          if (values[inst.imm] == kNoRef) values[inst.imm] = ref;
          break;
        }
        default: break;
      }
      TensorEffects effects = tensor_effects(trace_, ref);
      for (int32_t storage : effects.reads) readers_[storage].push_back(ref);
      for (int32_t storage : effects.writes) ++writers_[storage];
    }
  }

  // Adds the storages whose memory these objects show.
  void add_shown(std::vector<Ref> objects, std::set<int32_t>* shown) {
    std::set<Ref> seen;
    while (!objects.empty()) {
      Ref value = objects.back();
      objects.pop_back();
      const Inst& inst = trace_.insts[value];
      if (inst.op != Op::k_wrap && !inst.sunk) continue;
      if (!seen.insert(value).second) continue;
      if (inst.op == Op::k_wrap) shown->insert(shown_storages_[value].begin(), shown_storages_[value].end());
      for (uint32_t k = 0; k < inst.count; ++k) objects.push_back(trace_.arg(inst, k));
    }
  }

  // Do the objects of a snapshot show the memory of one of these storages?
  bool shows(int32_t number, const std::set<int32_t>& storages) {
    const Snapshot& snapshot = trace_.snapshots[number];
    auto among = [&](const std::set<int32_t>& shown) {
      return std::any_of(shown.begin(), shown.end(), [&](int32_t storage) { return storages.count(storage) != 0; });
    };
    for (uint32_t frame : snapshot.frames) {
      if (!frame_known_[frame]) {
        frame_known_[frame] = true;
        std::vector<Ref> objects;
        for_each_value(trace_.frames[frame], [&](Ref value) { objects.push_back(value); });
        add_shown(std::move(objects), &frame_shows_[frame]);
      }
      if (among(frame_shows_[frame])) return true;
    }
    std::vector<Ref> objects;
    for_each_store_value(snapshot, [&](Ref value) { objects.push_back(value); });
    std::set<int32_t> stored;
    add_shown(std::move(objects), &stored);
    return among(stored);
  }

  // --- the walk
  void visit(Ref ref) {
    const Inst inst = trace_.insts[ref];  // a copy: emitting kernels adds instructions
    if (inst.sunk) return;
    switch (inst.op) {
      case Op::k_aten: return visit_call(ref);
      case Op::k_kernel:
      case Op::k_read_scalar: return close_conflicts(tensor_effects(trace_, ref));
      case Op::k_wrap:
        for (int32_t storage : wrap_storages_[ref]) close_all(open_writers_[storage]);  // the object is made of memory that has its value
        visible_[storage_of(trace_, trace_.arg(inst, 0))] = true;
        return;
      default: break;
    }
    if (has_effect(inst, kEnd)) {
      for (size_t g = 0; g < open_.size(); ++g) close(static_cast<int>(g));
    } else if (can_leave(inst)) {
      if (is_barrier(inst) || inst.op == Op::k_call_known) std::erase_if(constants_, [&](const auto& known) { return visible_[known.first]; });  // may write what it can reach
      close_for_exit(inst);
    }
  }

  // Leaves the trace in practice. What only runs out of memory is not among these.
  static bool can_leave(const Inst& inst) {
    if (has_effect(inst, kGuard | kBarrier)) return true;
    switch (inst.op) {
      case Op::k_call_known:
      case Op::k_call_apart:
      case Op::k_call_pure:
      case Op::k_call_new:
      case Op::k_get_attr_known:
      case Op::k_set_attr_known:
      case Op::k_list_extend_list:
      case Op::k_dict_merge: return true;
      default: return false;
    }
  }

  void close_for_exit(const Inst& inst) {
    bool barrier = is_barrier(inst);
    auto concerns = [&](const Open& open) {
      for (int32_t storage : open.writes)
        if (visible_[storage]) return true;
      if (inst.snapshot != kNoSnapshot && shows(inst.snapshot, open.writes)) return true;
      if (barrier)
        for (int32_t storage : open.reads)
          if (visible_[storage]) return true;
      return false;
    };
    for (size_t g = 0; g < open_.size(); ++g)
      if (is_open(static_cast<int>(g)) && concerns(*open_[g])) close(static_cast<int>(g));
  }

  void close_conflicts(const TensorEffects& effects) {
    if (!base::seeded(base::Defect::kFuseForgetsReads))
      for (int32_t storage : effects.reads) close_all(open_writers_[storage]);
    for (int32_t storage : effects.writes) {
      close_all(open_writers_[storage]);
      close_all(open_readers_[storage]);
    }
  }

  void visit_call(Ref ref) {
    const Inst inst = trace_.insts[ref];
    if (is_view_call(trace_, inst)) {
      if (tensor_effects(trace_, ref).may_raise) close_for_exit(inst);
      return;
    }
    // What is there to raise is run for that, though nothing reads what it gives: lowered, it would be nothing.
    const bool only_raises = std::all_of(results_[ref].begin(), results_[ref].end(), [](Ref result) { return result == kNoRef; }) &&
                             trace_.calls[inst.imm].mutates.empty() && tensor_effects(trace_, ref).may_raise;
    std::vector<Lowered> lowered;
    if (!only_raises && wanted(ref) && lower(ref, &lowered, provided(ref))) {
      trace_.insts[ref].sunk = true;
      trace_.insts[ref].snapshot = kNoSnapshot;
      int count = trace_.calls[inst.imm].count;
      for (const Lowered& part : lowered) {
        place(ref, part, count);
        count = 0;
      }
      return;
    }
    TensorEffects effects = tensor_effects(trace_, ref);
    for (int32_t storage : effects.writes) constants_.erase(storage);
    close_conflicts(effects);
    if (effects.may_raise) close_for_exit(inst);
  }

  bool lower(Ref ref, std::vector<Lowered>* lowered, const Provided& provided) {
    std::string why;
    return lower_call(trace_, ref, results_[ref], lowered, &why, provided, recoded_ ? &*recoded_ : nullptr);
  }

  Provided provided(Ref ref) {
    Provided made{temporary(ref)};
    std::vector<Lowered> lowered;
    if (trace_.calls[trace_.insts[ref].imm].is_random && lower(ref, &lowered, made)) draw(ref, &made);
    return made;
  }

  // What the operation's kernels draw is decided in its own place, wherever they are emitted.
  void draw(Ref ref, Provided* made) {
    const AtenCall& call = trace_.calls[trace_.insts[ref].imm];
    const std::optional<Drawing> drawing = drawing_of(call.stream, trace_.metas[trace_.insts[trace_.arg(ref, call.args[0].operands[0])].meta]);
    trace_.origin = trace_.insts[ref].origin;
    made->seed = trace_.add(Op::k_draw_seed, Type::kInt, {ref});
    made->offset = trace_.add(Op::k_draw_offset, Type::kInt, {ref}, drawing->increment);
    behind_ = {made->seed, made->offset};
  }

  // Memory that the operation's kernels hand from one to the next: a value of the trace, of empty memory, which nothing runs for.
  Ref temporary(Ref ref) {
    std::optional<TensorMeta> meta = temporary_of(trace_, ref);
    if (!meta) return kNoRef;
    bytes_.push_back(elements(*meta) * dtype_size(meta->dtype));
    const Ref memory = add_empty(&trace_, std::move(*meta), &order_);
    if (recoded_) recoded_->num_storages = trace_.num_storages;
    const auto storages = static_cast<size_t>(trace_.num_storages);
    visible_.resize(storages);
    shared_.resize(storages);
    readers_.resize(storages);
    writers_.resize(storages);
    part_readers_.resize(storages);
    open_writers_.resize(storages);
    open_readers_.resize(storages);
    return memory;
  }

  bool wanted(Ref ref) const {
    const Inst& inst = trace_.insts[ref];
    const AtenCall& call = trace_.calls[inst.imm];
    if (stays_aten(options_, call.name) || kept_.count(inst.imm) != 0) return false;
    // Memory that is only allocated, and handed out as it is, needs the call: no kernel would write it.
    if (gives_unwritten(call))
      for (int32_t result : call.results)
        if (result >= 0 && shared_[trace_.metas[result].storage] && writers_[trace_.metas[result].storage] < 2) return false;
    // All on one device, which kernels can be made for.
    int device = kNoDevice;
    bool symbolic = false;
    auto fits = [&](int32_t meta) {
      if (meta < 0) return true;
      symbolic = symbolic || trace_.metas[meta].symbolic;
      const int here = device_of(trace_.metas[meta]);
      if (device == kNoDevice) device = here;
      return here == device;
    };
    for (size_t k = 0; k < call.results.size(); ++k)
      if (k < results_[ref].size() && results_[ref][k] != kNoRef && !fits(call.results[k])) return false;
    for (uint32_t k = 0; k < inst.count; ++k)
      if (!fits(trace_.insts[trace_.arg(inst, k)].meta)) return false;
    if (symbolic && !options_.fuse_symbols) return false;
    return device >= 0 ? options_.fuse_cuda : device != kOtherDevice;
  }

  // --- groups
  bool is_open(int g) const { return !open_[g]->emitted && open_[g]->joined_to < 0; }
  int find(int g) const {
    while (open_[g]->joined_to >= 0) g = open_[g]->joined_to;
    return g;
  }

  // Whether `later`, an open group, must be emitted after `earlier`, another.
  bool depends(int later, int earlier) const {
    const std::vector<uint64_t>& all = open_[later]->all_before;
    const auto word = static_cast<size_t>(earlier) / 64;
    return word < all.size() && (all[word] >> (earlier % 64) & 1) != 0;
  }
  // What is emitted before `earlier`, and that itself, is before `later` too.
  void put_behind(int later, int earlier) {
    std::vector<uint64_t>& all = open_[later]->all_before;
    const std::vector<uint64_t>& more = open_[earlier]->all_before;
    all.resize(std::max({all.size(), more.size(), static_cast<size_t>(earlier) / 64 + 1}));
    for (size_t word = 0; word < more.size(); ++word) all[word] |= more[word];
    all[static_cast<size_t>(earlier) / 64] |= uint64_t{1} << (earlier % 64);
  }
  // g has come behind others: so have those that are behind it, or behind `merged`, which is part of it now.
  void spread(int g, int merged) {
    std::erase_if(live_, [&](int other) { return !is_open(other); });
    for (const int other : live_)
      if (other != g && (depends(other, g) || depends(other, merged))) put_behind(other, g);
  }

  // Memory that one fill wrote and nothing else has written since is a constant to all who read it, in whatever shape.
  void use_constants(Lowered* part) const {
    if (attends(part->kernel)) return;
    for (KernelNode& node : part->kernel.nodes) {
      if (node.op != KOp::k_load) continue;
      const KernelOperand& operand = part->kernel.operands[node.operand];
      auto constant = constants_.find(operand.pointer);
      if (constant != constants_.end() && constant->second.dtype == operand.dtype) node = constant->second;
    }
  }

  void note_writes(const Lowered& part) {
    const Kernel& kernel = part.kernel;
    for (const KernelStore& store : kernel.stores) {
      const KernelOperand& operand = kernel.operands[store.operand];
      constants_.erase(operand.pointer);
      const KernelNode& node = kernel.nodes[store.node];
      if (node.op != KOp::k_const || kernel.reduce_dims != 0 || store.has_place()) continue;
      if (kernel.num_points() * dtype_size(operand.dtype) == bytes_[operand.pointer] && operand.offset == 0)
        constants_[operand.pointer] = node;
    }
  }

  void place(Ref ref, Lowered part, int count) {
    use_constants(&part);
    note_writes(part);
    std::set<int32_t> reads, writes;
    for (const KernelNode& node : part.kernel.nodes)
      if (reads_memory(node.op)) reads.insert(part.kernel.operands[node.operand].pointer);
    for (const KernelStore& store : part.kernel.stores) {
      if (store.adds) reads.insert(part.kernel.operands[store.operand].pointer);
      writes.insert(part.kernel.operands[store.operand].pointer);
    }
    if (writes.empty()) return;

    std::set<int> depends_on;
    auto add = [&](const std::vector<int>& groups) {
      for (int g : groups)
        if (!open_[find(g)]->emitted) depends_on.insert(find(g));
    };
    for (int32_t storage : reads) add(open_writers_[storage]);
    for (int32_t storage : writes) {
      add(open_writers_[storage]);
      add(open_readers_[storage]);
    }

    int home = -1;
    std::vector<int> candidates(depends_on.rbegin(), depends_on.rend());  // latest first
    if (fusible(part)) {
      if (candidates.size() > 1) depends_on = gather(candidates);
      for (auto g = depends_on.rbegin(); g != depends_on.rend() && home < 0; ++g)
        if (wanted_together(*g, part, true, true) && joins(*g, part, depends_on)) home = *g;
      if (home < 0) home = beside(part, depends_on, !is_one_of_many(ref, part));
    }
    const bool is_new = home < 0;
    if (is_new) {
      home = static_cast<int>(open_.size());
      open_.push_back(std::make_unique<Open>(Open{.group = FusionGroup(part), .device = device_of(part)}));
      live_.push_back(home);
      recent_[part.kernel.sizes].push_back(home);
    }
    Open& open = *open_[home];
    for (int g : depends_on) {
      if (g == home) continue;
      open.before.insert(g);
      put_behind(home, g);
    }
    if (!is_new) spread(home, home);
    open.count += count;
    if (const int32_t origin = trace_.insts[ref].origin; origin >= 0) open.origins.insert(origin);
    open.calls.insert(trace_.insts[ref].imm);
    open.reads.insert(reads.begin(), reads.end());
    open.writes.insert(writes.begin(), writes.end());
    Place here{ref, parts_++};
    for (int32_t storage : writes) open.first_write.emplace(storage, here);
    for (int32_t storage : reads) part_readers_[storage].push_back({here, home});
    for (int32_t storage : reads) open_readers_[storage].push_back(home);
    for (int32_t storage : writes) open_writers_[storage].push_back(home);
  }

  bool fusible(const Lowered& part) const { return options_.fuse_reductions || part.kernel.reduce_dims == 0; }

  // -1: the CPU; 0 and above: a CUDA device.
  static int device_of(const TensorMeta& meta) { return meta.device_type == 0 ? -1 : meta.device_type == 1 ? std::max<int>(meta.device_index, 0) : kOtherDevice; }
  int device_of(const Lowered& part) const { return part.tensors.empty() ? kNoDevice : device_of(trace_.metas[trace_.insts[part.tensors[0]].meta]); }

  bool joins(int g, const Lowered& part, const std::set<int>& depends_on) {
    if (open_[g]->device != device_of(part)) return false;
    for (auto other = depends_on.rbegin(); other != depends_on.rend(); ++other)  // the latest are the likeliest
      if (*other != g && depends(*other, g)) return false;
    return open_[g]->group.join(part, limits_);
  }

  // Usually all that may be fused is, but for neighbours that share no data (beside()).
  bool wanted_together(int g, const Lowered& part, bool shares_data, bool usual) const {
    return base::decide(base::Decision::kFuse, usual, [&] {
      const Kernel& into = open_[g]->group.body().kernel;
      return base::Facts{{"trace", trace_.name},
                         {"kernel", into.name},
                         {"operation", part.kernel.name},
                         {"nodes", static_cast<int64_t>(into.nodes.size())},
                         {"operation_nodes", static_cast<int64_t>(part.kernel.nodes.size())},
                         {"points", has_symbols(part.kernel) ? int64_t{0} : part.kernel.num_points()},
                         {"reduces", part.kernel.reduce_dims != 0},
                         {"shares_data", shares_data}};
    });
  }

  // An operation that needs several independent groups over one space makes them one (the latest kGathered of them). Gives the groups that are left.
  std::set<int> gather(const std::vector<int>& groups) {
    const size_t count = std::min(groups.size(), kGathered);
    for (size_t k = 0; k < count; ++k)
      for (size_t other = k + 1; other < count; ++other)
        if (!absorb(find(groups[k]), find(groups[other]))) absorb(find(groups[other]), find(groups[k]));
    std::set<int> left;
    for (const int g : groups) left.insert(find(g));
    return left;
  }

  // Joins two groups that do not depend on each other.
  bool absorb(int g, int other) {
    if (g == other || !is_open(g) || !is_open(other) || open_[g]->device != open_[other]->device) return false;
    if (depends(g, other) || depends(other, g)) return false;
    const Lowered& part = open_[other]->group.body();
    if (!wanted_together(g, part, true, true) || !open_[g]->group.join(part, limits_)) return false;
    Open& into = *open_[g];
    Open& from = *open_[other];
    from.joined_to = g;
    into.before.insert(from.before.begin(), from.before.end());
    put_behind(g, other);
    spread(g, other);
    into.reads.insert(from.reads.begin(), from.reads.end());
    into.writes.insert(from.writes.begin(), from.writes.end());
    for (auto [storage, place] : from.first_write) {
      Place& first = into.first_write.emplace(storage, place).first->second;
      first = std::min(first, place);
    }
    into.count += from.count;
    into.origins.insert(from.origins.begin(), from.origins.end());
    into.calls.insert(from.calls.begin(), from.calls.end());
    for (int32_t storage : from.reads) open_readers_[storage].push_back(g);
    for (int32_t storage : from.writes) open_writers_[storage].push_back(g);
    return true;
  }

  // One launch on a GPU does many kernels that are alike (codegen/cuda/batch.h): what a _foreach_ operation does to one tensor joins what else is done to that one, not its neighbours.
  bool is_one_of_many(Ref ref, const Lowered& part) const { return device_of(part) >= 0 && trace_.calls[trace_.insts[ref].imm].name.substr(0, 15) == "aten::_foreach_"; }

  // A group over the same space that the part does not depend on.
  int beside(const Lowered& part, const std::set<int>& depends_on, bool may_share_launch) {
    auto found = recent_.find(part.kernel.sizes);
    if (found == recent_.end()) return -1;
    std::vector<int>& groups = found->second;
    groups.erase(std::remove_if(groups.begin(), groups.end(), [&](int g) { return !is_open(g); }), groups.end());
    size_t tries = 0;
    bool small = may_share_launch && part.kernel.num_points() <= options_.small_space;
    for (size_t k = groups.size(); k-- > 0 && tries < static_cast<size_t>(base::heuristics().fuse_tries);) {
      int g = groups[k];
      if (depends_on.count(g)) continue;
      const bool shares = open_[g]->group.shares_load(part);
      if (!wanted_together(g, part, shares, small || shares)) continue;
      // Nor may it come to depend on more: what waits for it may be what that waits for.
      if (!std::all_of(depends_on.begin(), depends_on.end(), [&](int before) { return depends(g, before); })) continue;
      ++tries;
      if (joins(g, part, depends_on)) return g;
    }
    return -1;
  }

  // --- emitting
  void close_all(const std::vector<int>& groups) {
    std::vector<int> copy = groups;
    for (int g : copy) close(find(g));
  }

  void close(int g) {
    if (!is_open(g)) return;
    Open& open = *open_[g];
    open.emitted = true;  // first, so that the recursion ends
    for (int before : open.before) close(find(before));
    emit(g);
  }

  bool needed_outside(int32_t storage, int g) const {
    if (visible_[storage] || shared_[storage]) return true;
    Place first = open_[g]->first_write.at(storage);
    for (Ref reader : readers_[storage])
      if (reader > at_ || (reader > first.ref && !trace_.insts[reader].sunk)) return true;  // still to come, or no kernel's
    for (const auto& [place, group] : part_readers_[storage])
      if (place > first && find(group) != g) return true;
    return false;
  }

  void emit(int g) {
    Open& open = *open_[g];
    if (!open.group.prune([&](int32_t storage) { return needed_outside(storage, g); })) return;
    const Lowered& body = open.group.body();
    Kernel kernel = body.kernel;
    if (base::left_out(base::SwitchKind::kKernel, kernel.name)) {
      left_out_.insert(open.calls.begin(), open.calls.end());
    }
    if (!base::left_out(base::Part::kSimplify)) simplify_kernel(&kernel);
    if (!has_symbols(kernel)) kernel.symbols.clear();
    base::Status status = verify_kernel(kernel);
    DYNVM_CHECK(status.ok(), "fuse made a kernel that does not verify: {}", status.message());
    auto number = static_cast<int64_t>(trace_.kernels.size());
    trace_.kernels.push_back(std::move(kernel));
    trace_.kernel_op_counts.resize(trace_.kernels.size(), 0);
    trace_.kernel_op_counts.back() = open.count;
    trace_.kernel_origins.resize(trace_.kernels.size());
    trace_.kernel_origins.back().assign(open.origins.begin(), open.origins.end());
    trace_.origin = open.origins.empty() ? -1 : *open.origins.rbegin();
    std::vector<Ref> operands = body.tensors;
    operands.insert(operands.end(), body.scalars.begin(), body.scalars.end());
    order_.push_back(trace_.add(Op::k_kernel, Type::kVoid, operands, number));
  }

  Trace& trace_;
  std::optional<Trace> recoded_;           // with other codes, where there are symbols
  const PassOptions& options_;
  const std::set<int64_t>& kept_;
  std::set<int64_t> left_out_;             // calls of kernels that are not to be made
  GroupLimits limits_;
  std::vector<std::vector<Ref>> results_;  // by aten instruction: the value of each result
  std::vector<bool> visible_;              // by storage: memory that outlives the trace, as far as the walk has come
  std::vector<bool> shared_;               // by storage: a tensor object of the trace, sunk or not, looks at it
  std::vector<std::vector<Ref>> readers_;  // by storage
  std::vector<int> writers_;               // by storage: how many instructions write it
  std::vector<std::vector<std::pair<Place, int>>> part_readers_;  // by storage: parts that load from it, and their groups
  std::vector<int64_t> bytes_;             // by storage: as much as its tensors show
  std::unordered_map<int32_t, KernelNode> constants_;  // by storage: the constant that all of it is, now
  int parts_ = 0;
  Ref at_ = 0;                             // the instruction of the walk
  std::vector<std::vector<int>> open_writers_, open_readers_;  // by storage: groups, perhaps joined or emitted since
  std::unordered_map<Ref, std::vector<int32_t>> wrap_storages_, shown_storages_;  // by wrap: with its value, and what an exit has to find
  std::vector<std::set<int32_t>> frame_shows_;  // by frame of snapshots
  std::vector<bool> frame_known_;
  std::vector<std::unique_ptr<Open>> open_;
  std::vector<int> live_;  // those that are open, and some that were
  std::map<std::vector<int64_t>, std::vector<int>> recent_;
  std::vector<Ref> order_, behind_;  // behind_: instructions that come next behind the one of the walk and its results
};

}  // namespace

// Kernels that are left out by name are known only when they are made: then it is done once more, and their operations are kept. Each time there are more of
// these, so that ends.
void pass_fuse(Trace& trace, const PassOptions& options) {
  const bool any_left_out = base::any_left_out(base::SwitchKind::kKernel);
  std::set<int64_t> kept;
  for (;;) {
    Trace before;
    if (any_left_out) before = trace;
    if (Fuse(trace, options, kept).drop_snapshots()) pass_dce(trace, options);
    Fuse fuse(trace, options, kept);
    fuse.run();
    if (fuse.left_out().empty()) return;
    kept.insert(fuse.left_out().begin(), fuse.left_out().end());
    trace = std::move(before);
  }
}

}  // namespace dynvm::ir
