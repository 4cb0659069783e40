// See learn.h.
#include "tracer/learn.h"

#include <algorithm>
#include <utility>

#include "runtime/base/heuristics.h"
#include "runtime/base/log.h"
#include "tracer/dead_objects.h"
#include "tracer/dict_uses.h"
#include "tracer/loop_state.h"
#include "tracer/penalties.h"
#include "vm/objects.h"

namespace dynvm::tracer {
namespace {

// Other callable objects may be made anew each time, as the list of processors that a call of generate() makes: their class says what they do.
bool is_function_or_module(PyObject* object) {
  return PyFunction_Check(object) || PyCFunction_Check(object) || PyMethod_Check(object) || is_module(Py_TYPE(object));
}

// Functions and modules that take turns in a local variable are each assumed by a trace of their own, up to a number of them: what they do
// cannot be followed else. So are the few values that a flag has, which ways are chosen by.
bool takes_turns(vm::ThreadView& view, LoopState& loop, const ir::Trace& ir, const ir::Inst& inst, const Site& site) {
  const ir::Inst& wanted = ir.insts[ir.arg(inst, 1)];
  if (site.kind != Site::kSlot || inst.op != ir::Op::k_guard_is || wanted.op != ir::Op::k_const_obj) return false;
  auto* object = static_cast<PyObject*>(ir.objects[wanted.imm].pointer);
  if (object == Py_None || (object != nullptr && PyBool_Check(object))) return true;
  if (object == nullptr || !is_function_or_module(object)) return false;
  auto* code = reinterpret_cast<PyCodeObject*>(site.a);
  if (code != vm::FrameView::code(view.frame)) return false;
  LoopState::Turns& turns = loop.turns[{code, site.index}];
  turns.seen.insert(object);
  PyObject* const now = vm::FrameView::locals(view.frame)[site.index];
  const bool same_arrival = std::exchange(turns.arrival, loop.iterations) == loop.iterations;  // each trace at the header tells of it
  if (std::exchange(turns.now, now) != now) turns.changes++;
  else if (!same_arrival) turns.changes = 0;
  // Functions made from one code can be followed without being assumed (Recorder::know_by_code).
  const bool are_alike = now != nullptr && PyFunction_Check(now) && PyFunction_Check(object) && PyFunction_GET_CODE(now) == PyFunction_GET_CODE(object);
  const int most = are_alike ? base::heuristics().max_closures : base::heuristics().max_callees;
  return static_cast<int>(turns.seen.size()) < most && turns.changes < base::heuristics().max_changes;
}

// Calls visit(site, object) for each object that the trace assumes at a site.
template <class Visit>
void for_each_assumed(const LoopTrace& trace, const Visit& visit) {
  const ir::Trace& ir = trace.compiled->ir();
  for (const ir::Inst& inst : ir.insts) {
    const bool sited = inst.op == ir::Op::k_guard_is && inst.imm >= 0 && inst.imm < static_cast<int64_t>(trace.sites.size());
    if (!sited || ir.insts[ir.arg(inst, 1)].op != ir::Op::k_const_obj) continue;
    visit(trace.sites[inst.imm], static_cast<PyObject*>(ir.objects[ir.insts[ir.arg(inst, 1)].imm].pointer));
  }
}

// Does the trace guard one of these objects, or compare with it? A guard on the path to such a constant has held once.
bool guards_any(const LoopTrace& trace, const std::unordered_set<PyObject*>& objects) {
  const ir::Trace& ir = trace.compiled->ir();
  return std::any_of(ir.insts.begin(), ir.insts.end(), [&](const ir::Inst& inst) {
    if (inst.op < ir::Op::k_guard_is || inst.op > ir::Op::k_unbox_tensor) return false;
    for (uint32_t k = 0; k < inst.count; ++k) {
      const ir::Inst& operand = ir.insts[ir.arg(inst, k)];
      if (operand.op == ir::Op::k_const_obj && objects.count(static_cast<PyObject*>(ir.objects[operand.imm].pointer)) != 0) return true;
    }
    return false;
  });
}
static_assert(ir::Op::k_guard_is < ir::Op::k_guard_list_items && ir::Op::k_guard_list_items < ir::Op::k_unbox_tensor, "the guards of objects stand together");

// What the frames hold that end before the outermost loop around this call of the root's function goes round again; empty where there is no such loop.
std::vector<std::vector<PyObject*>> held_by_call(const vm::ThreadView& view, const _PyInterpreterFrame* root) {
  std::vector<std::vector<PyObject*>> held;
  const auto hold = [&](_PyInterpreterFrame* frame, PyObject** sp) {
    held.emplace_back(vm::FrameView::locals(frame), sp);
    std::erase(held.back(), nullptr);
  };
  bool inside = view.frame != root;
  size_t ending = 0;  // of them the first so many
  hold(view.frame, view.sp);
  for (vm::Callers callers(view); callers.next();) {
    PyCodeObject* code = vm::FrameView::code(callers.frame);
    if (!inside && vm::enclosing_loop(code, vm::unit_of(code, callers.at)) != nullptr) ending = held.size();
    inside = inside && callers.frame != root;
    hold(callers.frame, callers.sp);
  }
  held.resize(ending);
  return held;
}

// Lists of all objects that traces own.
std::vector<const std::vector<PyObject*>*> owned_by_traces() {
  std::vector<const std::vector<PyObject*>*> lists;
  for (const auto& [key, each] : all_loops()) {
    each->roots.owned(&lists);
    for (const auto& [place, side] : each->sides) side.group.owned(&lists);
  }
  return lists;
}

// What the trace assumes of objects that only traces know any more, as those that each call of a function makes, is learned from too, or each would cost a recording. True: something is new.
bool learn_from_the_dead(LoopState& loop, const LoopTrace& trace, const std::unordered_set<PyObject*>& dead) {
  bool is_new = false;
  if (dead.empty()) return is_new;
  for_each_assumed(trace, [&](const Site& site, PyObject* wanted) {
    if (site.kind != Site::kCode && dead.count(wanted) != 0 && !is_function_or_module(wanted)) is_new |= note_changing(loop.lessons, site);
  });
  return is_new;
}

// Drops what is over of a group, which is the loop's, and has it recorded again at the next arrival, `arrivals` of `hot`. How many recorded traces have gone.
int forget_the_dead(LoopState& loop, TraceGroup& group, const std::unordered_set<PyObject*>& dead, int& overs, int& waits, int& arrivals, int hot) {
  const int recorded = group.recorded();
  const std::vector<TraceGroup::Trace> traces = group.traces();
  for (const TraceGroup::Trace& trace : traces) {
    if (!guards_any(*trace, dead) || !group.holds(trace)) continue;  // it may have gone with the one before, whose recording it was made from
    DYNVM_EVENT(kTrace, about(loop, trace->id, "dropped"), "trace {} dropped: only traces know what it assumes", trace->id);
    if (learn_from_the_dead(loop, *trace, dead)) wait_after(loop.changes, base::heuristics().max_lessons, waits);
    else wait_after(overs, base::heuristics().free_endings, waits);
    group.drop(trace);
    arrivals = std::max(arrivals, hot);
  }
  return recorded - group.recorded();
}

}  // namespace

bool note_changing(Lessons& lessons, const Site& site) {
  auto* code = reinterpret_cast<PyCodeObject*>(site.a);
  switch (site.kind) {
    case Site::kSlot: return lessons.changing_slots.insert({code, site.index}).second;
    case Site::kDictItem: return lessons.changing_items.insert({site.a, site.b}).second;
    case Site::kList: return lessons.changing_lists.insert(site.a).second;
    case Site::kValue: return lessons.changing_values.insert({code, site.index}).second;
    case Site::kCode: return lessons.changing_codes.insert({code, site.index}).second;
    case Site::kCoincidence: return lessons.coincidences.insert({code, site.index}).second;
  }
  return false;
}

void forget_the_dead() {
  const std::unordered_set<PyObject*> dead = dead_objects(owned_by_traces());
  if (dead.empty()) return;
  for (const auto& [key, loop] : all_loops()) {
    forget_the_dead(*loop, loop->roots, dead, loop->overs, loop->waits, loop->consecutive, base::heuristics().hot_loop);
    for (auto& [place, side] : loop->sides) loop->num_sides -= forget_the_dead(*loop, side.group, dead, side.overs, side.waits, side.arrivals, base::heuristics().hot_exit);
  }
}

std::unordered_set<PyObject*> ending_with_call(const vm::ThreadView& view, const _PyInterpreterFrame* root) {
  const std::vector<std::vector<PyObject*>> held = held_by_call(view, root);
  if (held.empty()) return {};
  std::vector<const std::vector<PyObject*>*> lists = owned_by_traces();
  for (const std::vector<PyObject*>& objects : held) lists.push_back(&objects);
  std::unordered_set<PyObject*> ending = dead_objects(lists);
  std::erase_if(ending, is_function_or_module);
  return ending;
}

Learned learn(vm::ThreadView& view, LoopState& loop, LoopTrace& trace, ir::Ref inst_ref, bool at_entry) {
  const ir::Trace& ir = trace.compiled->ir();
  if (inst_ref >= ir.insts.size()) return Learned::kNothing;
  const ir::Inst& inst = ir.insts[inst_ref];
  // A lesson that is known already: the trace is older than it. At the entry it is only in the way; further down a side trace may go on from it.
  const auto learned = [&](bool is_new) {
    if (is_new) learn_from_the_dead(loop, trace, dead_objects(owned_by_traces()));
    return is_new || at_entry ? Learned::kLesson : Learned::kNothing;
  };
  if (inst.op == ir::Op::k_guard_dict_version || inst.op == ir::Op::k_guard_type_version || inst.op == ir::Op::k_guard_func_version) {
    const ir::Inst& guarded = ir.insts[ir.arg(inst, 0)];
    if (guarded.op != ir::Op::k_const_obj) return Learned::kNothing;
    void* object = ir.objects[guarded.imm].pointer;
    if (inst.op == ir::Op::k_guard_dict_version) {
      if (static_cast<int64_t>(vm::dict_version(static_cast<PyObject*>(object))) == inst.imm) return Learned::kNothing;  // with DYNVM_STRESS=exit
      const std::vector<PyObject*> changed = renew_guards(trace);
      if (std::find(changed.begin(), changed.end(), object) == changed.end()) return Learned::kRenewed;
      bool is_new = false;  // each of them would cost a recording
      for (PyObject* dict : changed) is_new |= loop.lessons.changing_dicts.insert(dict).second;
      return learned(is_new);
    }
    const bool holds = inst.op == ir::Op::k_guard_type_version && vm::type_version(static_cast<PyTypeObject*>(object)) == static_cast<uint32_t>(inst.imm);  // with DYNVM_STRESS=exit
    return at_entry && !holds ? Learned::kOver : Learned::kNothing;
  }
  bool sited = inst.op == ir::Op::k_guard_is || inst.op == ir::Op::k_guard_list_items;
  if (!sited || inst.imm < 0 || inst.imm >= static_cast<int64_t>(trace.sites.size())) return Learned::kNothing;
  const Site& site = trace.sites[inst.imm];
  if (takes_turns(view, loop, ir, inst, site)) return Learned::kNothing;
  switch (site.kind) {
    case Site::kCode: {
      auto* code = reinterpret_cast<PyCodeObject*>(site.a);
      const ir::Inst& wanted = ir.insts[ir.arg(inst, 1)];
      LoopState::Turns& turns = loop.turns[{code, -2 - site.index}];
      if (wanted.op == ir::Op::k_const_obj) turns.seen.insert(static_cast<PyObject*>(ir.objects[wanted.imm].pointer));
      if (static_cast<int>(turns.seen.size()) < base::heuristics().max_callees) return Learned::kNothing;
      return learned(note_changing(loop.lessons, site));
    }
    default: return learned(note_changing(loop.lessons, site));
  }
}

void learn_from_slots(vm::ThreadView& view, LoopState& loop, const LoopTrace& trace) {
  auto* code = reinterpret_cast<PyObject*>(vm::FrameView::code(view.frame));
  for_each_assumed(trace, [&](const Site& site, PyObject* wanted) {
    if (site.kind != Site::kSlot || site.a != code || site.index >= vm::FrameView::local_count(view.frame)) return;
    PyObject* now = vm::FrameView::locals(view.frame)[site.index];
    if (now != nullptr && wanted != nullptr && Py_TYPE(now) == Py_TYPE(wanted) && !is_function_or_module(wanted) && now != wanted) note_changing(loop.lessons, site);
  });
}

static bool left_often(LoopTrace& trace, uint64_t allowed) { return ++trace.size_exits >= static_cast<uint64_t>(base::heuristics().hot_size_exit) + allowed; }

bool learn_from_input(TraceGroup& group, LoopTrace& trace, ir::Ref inst, bridge::Bridge* bridge) {
  const std::optional<RefusedInput> refused = trace.generic != nullptr ? refused_for_sizes(trace, inst, bridge) : std::nullopt;
  return refused && trace.generic->is_new(*refused) && left_often(trace, 0) && group.take_sizes_for_numbers();
}

bool learn_from_sizes(LoopState& loop, TraceGroup& group, LoopTrace& trace, ir::Ref inst_ref) {
  const ir::Trace& ir = trace.compiled->ir();
  if (inst_ref >= ir.insts.size()) return false;
  const ir::Inst& inst = ir.insts[inst_ref];
  if (inst.op == ir::Op::k_guard_true && inst.imm != ir::kTruth) {
    if (!left_often(trace, 0)) return false;
    trace.size_exits = 0;
    return inst.imm == ir::kSameIndex || group.take_sizes_for_numbers();
  }
  if (inst.op != ir::Op::k_aten) return false;
  const ir::AtenCall& call = ir.calls[inst.imm];
  const uint64_t opened = call.results.size() != 1 || call.results[0] < 0 ? 0 : ir.metas[call.results[0]].open & ~ir::kOpenLayout;
  if (call.name == "aten::slice" && has_run_time_numbers(call) && opened == 0) {  // with another size
    if (!left_often(trace, 0) || !group.take_sizes_for_numbers()) return false;
    return loop.lessons.sizes_by_slices = true;
  }
  if (!may_leave(ir, call)) return false;
  if (trace.for_all_sizes && !call.defines_sizes) return false;  // sizes on the other side of an end of a slice: a side trace has those
  // Open ones are left at sizes of 0 and 1 too, which is as it should be.
  const bool open = std::any_of(ir.calls.begin(), ir.calls.end(), [&](const ir::AtenCall& each) { return opens(ir, each); });
  if (!left_often(trace, open ? trace.compiled->iterations() / 8 : 0)) return false;
  if (!group.take_sizes_for_numbers()) loop.lessons.residual_sizes = true;
  return true;
}

bool learn_from_sharing(LoopState& loop, LoopTrace& trace, ir::Ref inst_ref, bridge::Bridge* bridge) {
  const ir::Trace& ir = trace.compiled->ir();
  if (loop.lessons.inputs_apart || inst_ref >= ir.insts.size() || ir.insts[inst_ref].op != ir::Op::k_unbox_tensor || !bridge->refused_sharing()) return false;
  loop.lessons.inputs_apart = ++trace.sharing_exits >= base::heuristics().hot_size_exit;
  return loop.lessons.inputs_apart;
}

}  // namespace dynvm::tracer
