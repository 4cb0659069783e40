// The recorder's frame work: guards, stack, the main switch. Purpose and invariants: recorder.h.
#include "tracer/recorder.h"

#include <algorithm>

#include "runtime/base/dump.h"
#include "runtime/base/heuristics.h"
#include "runtime/base/log.h"
#include "runtime/base/profile.h"
#include "runtime/exec/execute.h"
#include "tracer/dead_objects.h"
#include "tracer/decisions.h"
#include "tracer/side.h"
#include "vm/objects.h"

namespace dynvm::tracer {

using ir::kNoRef;
using ir::Ref;
using ir::Type;
using vm::HookResult;
using IrOp = ir::Op;

Recorder::Recorder(const std::vector<LiveFrame>& live, int header_unit, bridge::Bridge* bridge, Lessons& lessons, std::unordered_set<PyObject*> ending, int trace_id, bool sizes_are_numbers, bool function, GoneRound gone_round)
    : bridge_(bridge), lessons_(lessons), ending_(std::move(ending)), sizes_are_numbers_(sizes_are_numbers), function_(function), gone_round_(gone_round), start_(Clock::now()) {
  if (bridge_ != nullptr) aten_ = bridge_->recorder();
  trace_.id = trace_id;
  root_code_ = vm::FrameView::code(live[0].frame);
  root_unit_ = header_unit;
  PyCodeObject* first = vm::FrameView::code(live.back().frame);
  const char* path = PyUnicode_AsUTF8(first->co_filename);
  const char* slash = path ? strrchr(path, '/') : nullptr;
  const char* name = PyUnicode_AsUTF8(first->co_name);
  trace_.name = std::string(slash ? slash + 1 : (path ? path : "?")) + ":" +
                std::to_string(PyCode_Addr2Line(first, vm::lasti_of(first, live.back().at) * 2)) + " " + (name ? name : "?");
  PyErr_Clear();
  Value null;
  null.kind = Value::kNull;
  null_ = add_value(std::move(null));

  side_ = live.size() > 1 || vm::unit_of(root_code_, live[0].at) != header_unit;
  int input = 0;
  for (const LiveFrame& from : live) {
    ShadowFrame frame;
    frame.frame = from.frame;
    frame.code = vm::FrameView::code(from.frame);
    frame.function = reinterpret_cast<PyObject*>(vm::FrameView::function(from.frame));
    frame.nlocals = vm::FrameView::local_count(from.frame);
    frame.continuation = from.continuation;
    if (!frames_.empty()) {
      const LiveFrame& caller = live[frames_.size() - 1];
      frame.call_unit = vm::unit_of(frames_.back().code, caller.at);
      frame.function_value = object(trace_.add(IrOp::k_slot, Type::kObject, {}, input++), frame.function, false);
      if (!lessons_.changing_values.count({frame.code, kOwnFunction})) {
        sites_.push_back({Site::kValue, reinterpret_cast<PyObject*>(frame.code), nullptr, kOwnFunction});
        became_stable(frame.function_value, static_cast<int32_t>(sites_.size()) - 1);
      }
    }
    PyObject** base = vm::FrameView::locals(from.frame);
    int count = static_cast<int>(from.sp - base);
    for (int i = 0; i < count; i++) {
      V v = object(trace_.add(IrOp::k_slot, Type::kObject, {}, input++), base[i], false);
      // What lies on the stack in the middle of an expression is a result, unless it is going to be called.
      bool lasting = !side_ || i < frame.nlocals || (base[i] != nullptr && PyCallable_Check(base[i]) && !is_tensor(base[i]));
      // A tensor that comes in other sizes is another one each time.
      lasting = lasting && !(sizes_are_numbers_ && base[i] != nullptr && is_tensor(base[i]) && strcmp(Py_TYPE(base[i])->tp_name, "Parameter") != 0);
      if (base[i] != nullptr && lasting && !ending_.count(base[i]) && !lessons_.changing_slots.count({frame.code, i})) {
        sites_.push_back({Site::kSlot, reinterpret_cast<PyObject*>(frame.code), nullptr, i});
        became_stable(v, static_cast<int32_t>(sites_.size()) - 1);
      }
      frame.slots.push_back(v);
    }
    follow(std::move(frame));
  }
}

Recorder::~Recorder() {
  for (Value& value : values_) Py_XDECREF(value.concrete);
  for (PyObject* object : owned_) Py_DECREF(object);
  Py_XDECREF(raw_result_);
}

Recording Recorder::take() {
  Recording recording;
  forget_early();
  if (cut_at_ > 0) {
    trace_.insts.resize(cut_at_);  // what came after belongs to an instruction that the trace does not hold
    recording.cut = abort_;
    tensor_ops_ = 0;
    for (const ir::Inst& inst : trace_.insts) tensor_ops_ += inst.op == IrOp::k_aten || inst.op == IrOp::k_read_scalar;
  }
  drop_computed_sizes();
  recording.trace = std::move(trace_);
  recording.backwards = std::move(backwards_);
  recording.sizes_are_numbers = sizes_are_numbers_;
  recording.sizes = std::move(sizes_);
  recording.sites = std::move(sites_);
  for (const auto& [place, use] : dict_uses_) recording.uses.push_back(use);
  recording.made = std::move(made_objects_);
  recording.owned = std::move(owned_);
  owned_.clear();
  recording.tensor_ops = tensor_ops_;
  recording.whole = cut_at_ == 0 && !side_ && !graph_alive();
  recording.trains = recording.whole && !freed_.empty();
  recording.ms = ms_since(start_);
  return recording;
}

// The frame is the innermost one from here on.
void Recorder::follow(ShadowFrame frame) {
  if (codes_.insert(frame.code).second && base::dump_on(base::DumpStage::kBytecode)) {
    std::string text;
    const vm::Inst* inst = vm::first_inst(frame.code, true);
    for (int i = 0; i < vm::inst_count(frame.code); i++, inst++) {
      text += fmt::format("{:5} {} {}", vm::unit_of(frame.code, inst), vm::op_name(vm::opcode(inst)), vm::oparg(inst));
      if (const vm::Inst* target = vm::jump_target(inst)) text += fmt::format(" to {}", vm::unit_of(frame.code, target));
      text += '\n';
    }
    base::dump(base::DumpStage::kBytecode, PyUnicode_AsUTF8(frame.code->co_qualname), text);
  }
  frame.long_loops = long_loops(frame.code, !frames_.empty() || function_, gone_round_);
  frames_.push_back(std::move(frame));
}

// The instruction, its line, and the lines of the calls that led there.
std::string Recorder::where() const {
  std::string text;
  for (size_t i = frames_.size(); i-- > 0 && i + 4 > frames_.size();) {
    const char* name = PyUnicode_AsUTF8(frames_[i].code->co_qualname);
    int unit = i + 1 == frames_.size() ? current_unit_ : frames_[i + 1].call_unit;
    text += std::string(text.empty() ? "in " : ", called by ") + (name ? name : "?") + " line " + std::to_string(PyCode_Addr2Line(frames_[i].code, unit * 2));
    if (i + 1 == frames_.size() && previous_ip_) text += " at " + std::string(vm::op_name(vm::opcode(previous_ip_)));
  }
  return text;
}

std::pair<std::string, int> Recorder::place_now() const {
  if (frames_.empty()) return {};
  const char* file = PyUnicode_AsUTF8(frames_.back().code->co_filename);
  return {file != nullptr ? file : "", PyCode_Addr2Line(frames_.back().code, current_unit_ * 2)};
}

void Recorder::doom(Abort reason, std::string detail) {
  if (done_ || doomed_ != Abort::kNone) return;
  doomed_ = reason;
  doomed_at_ = trace_.insts.size();
  abort_place_ = place_now();
  const std::string place = where();
  detail_ = detail + (detail.empty() || place.empty() ? "" : ", ") + place;
}

void Recorder::give_up(Abort reason, std::string detail) {
  if (done_) return;
  done_ = true;
  if (doomed_ != Abort::kNone) {
    abort_ = doomed_;
    return;
  }
  if (rounds_ > 1 && after_abort(reason) != AfterAbort::again) {
    lessons_.one_round = true;
    reason = Abort::k_further_iteration;
  }
  abort_ = reason;
  detail_ = std::move(detail);
  abort_place_ = place_now();
  for (const Consumer& consumer : consumers_) {
    if (consumer.kind != Consumer::kScript && consumer.kind != Consumer::kTorch) continue;
    if (abort_ == Abort::k_graph_escaped) continue;  // it is not what was called that cannot be followed
    if (!needs_early_ && abort_ != Abort::k_dict_changes) {
      // A torch call may have been met in a rare iteration: it gets other chances.
      if (consumer.kind == Consumer::kScript || ++lessons_.failed_callbacks[consumer.place] > base::heuristics().callback_chances) lessons_.opaque_consumers.insert(consumer.place);
      forget_early();
    }
    const Abort reason = consumer.kind == Consumer::kScript ? Abort::k_script_function : Abort::k_torch_callback;
    if (abort_ != reason) detail_ = std::string(abort_name(abort_)) + (detail_.empty() ? "" : ": ") + detail_;
    abort_ = reason;
  }
  const auto asked = std::find_if(frames_.rbegin(), frames_.rend(), [](const ShadowFrame& frame) { return frame.continuation == vm::Continuation::kAsked; });
  const bool of_graph = abort_ == Abort::k_graph_escaped || abort_ == Abort::k_graph_from_outside;
  if (asked != frames_.rend() && !of_graph && after_abort(abort_) != AfterAbort::again) {
    lessons_.opaque_consumers.insert({asked->code, 0});
    detail_ = std::string(abort_name(abort_)) + (detail_.empty() ? "" : ": ") + detail_;
    abort_ = Abort::k_generator_asked;
  }
  const std::string place = where();
  detail_ += (detail_.empty() || place.empty() ? "" : ", ") + place;
  if (!frames_.empty() && cut()) detail_ += "; the trace ends there";
}

// The trace ends before the current instruction: nothing but guards and makings may be kept of what has been recorded for it.
bool Recorder::cut() {
  if (after_abort(abort_) != AfterAbort::cut) return false;
  if (handling_.open) {  // before the raise
    std::swap(frames_, handling_.frames);
    step_begin_ = handling_.begin;
    step_depth_ = frames_.size();
    step_slots_ = top().slots.size();
    current_snapshot_ = handling_.snapshot;
    const bool cut_there = cut_here();
    std::swap(frames_, handling_.frames);
    return cut_there;
  }
  return cut_here();
}

bool Recorder::cut_here() {
  if (abort_ == Abort::k_loop_left && (!side_ || tensor_ops_ == 0)) return false;
  if (!started_ || step_begin_ == 0 || !consumers_.empty() || frames_.size() != step_depth_ || top().slots.size() != step_slots_) return false;
  const bool alive = graph_alive();
  size_t keep = trace_.insts.size();
  for (size_t i = trace_.insts.size(); i-- > step_begin_;) {
    uint32_t effects = ir::op_info(trace_.insts[i].op).effects;
    bool makes = trace_.insts[i].sunk || (effects & ir::kNew);
    if (!makes && (effects & (ir::kWrite | ir::kBarrier | ir::kTensorMemory))) keep = i;
  }
  if (keep == trace_.insts.size()) keep = SIZE_MAX;
  if (keep != SIZE_MAX && (current_snapshot_ < 0 || keep < snapshot_end_)) return false;
  Abort reason = abort_;
  bool effect_done = effect_done_;
  if (current_snapshot_ < 0) snapshot();
  if (current_snapshot_ < 0 || abort_ != reason) return false;
  if (keep != SIZE_MAX) trace_.insts.resize(keep);
  effect_done_ = effect_done;
  trace_.add(IrOp::k_leave, Type::kVoid, {}, 0, current_snapshot_);
  if (!fill_wraps()) return false;
  const std::string why = add_graph_nodes();
  if (!why.empty()) detail_ += ", " + why;
  if (!why.empty() && alive) return false;
  cut_at_ = trace_.insts.size();
  return true;
}

// ---------------------------------------------------------------------------------------------------------------------
// Guards

bool Recorder::known(uint64_t kind, const void* a, uint64_t b) { return !known_.insert({kind, a, b}).second; }

bool Recorder::promote(V v, ir::TruthGuard tells) {
  Value& value = at(v);
  switch (value.kind) {
    case Value::kNull:
    case Value::kConst: return true;
    case Value::kScalar: {
      PyObject* concrete = value.concrete;
      if (value.scalar == Type::kBool) {
        guard(concrete == Py_True ? IrOp::k_guard_true : IrOp::k_guard_false, {value.ref});
      } else if (value.scalar == Type::kInt) {
        Ref same = emit(IrOp::k_eq_int, Type::kBool, {value.ref, as_int(constant(concrete))});
        guard(IrOp::k_guard_true, {same}, tells);
      } else {
        Ref same = emit(IrOp::k_same_float, Type::kBool, {value.ref, as_float(constant(concrete))});
        guard(IrOp::k_guard_true, {same});
      }
      at(v).kind = Value::kConst;
      return true;
    }
    case Value::kObject: {
      if (!value.stable || value.concrete == nullptr) return false;
      if (is_watched(value.concrete) && !is_tensor(value.concrete) && !is_module(Py_TYPE(value.concrete))) return false;  // these are watched by torch itself
      Ref ref = value.ref;
      int32_t site = value.site;
      guard(IrOp::k_guard_is, {ref, const_ref(value.concrete)}, site);
      at(v).kind = Value::kConst;
      return true;
    }
    default: return false;
  }
}

bool Recorder::know_type(V v) {
  Value& value = at(v);
  PyTypeObject* type = value.concrete ? Py_TYPE(value.concrete) : nullptr;
  if (type == nullptr) return false;
  if (value.kind == Value::kConst) {
    if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) && !PyType_Check(value.concrete) && !known('t', value.concrete))
      guard(IrOp::k_guard_type, {const_ref(value.concrete), const_ref(reinterpret_cast<PyObject*>(type))});
    return true;
  }
  if (value.kind == Value::kObject && !value.type_known) {
    guard(IrOp::k_guard_type, {value.ref, const_ref(reinterpret_cast<PyObject*>(type))});
    at(v).type_known = true;
  }
  return true;
}

void Recorder::guard_type_unchanged(PyTypeObject* type) {
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return;  // static types cannot change
  uint32_t version = vm::type_version(type);
  if (version == 0) {
    give_up(Abort::k_shadow_mismatch, "type without a version");
    return;
  }
  if (!known('T', type)) guard(IrOp::k_guard_type_version, {const_ref(reinterpret_cast<PyObject*>(type))}, version);
}

bool Recorder::guard_dict_unchanged(PyObject* dict, PyObject* key) {
  if (lessons_.changing_dicts.count(dict)) return false;
  if (key != nullptr && !PyUnicode_CheckExact(key)) key = nullptr;
  if (const auto [use, is_new] = dict_uses_.try_emplace({dict, key}); is_new) {
    use->second = use_of(dict, key, &owned_);
    if (key != nullptr) owned_.push_back(Py_NewRef(key));
  }
  guarded_dicts_.insert(dict);
  if (!known('d', dict)) {
    uint64_t version = vm::dict_version(dict);
    guard(IrOp::k_guard_dict_version, {const_ref(dict)}, static_cast<int64_t>(version));
  }
  return true;
}

// The instance keeps the dict that it has.
void Recorder::guard_dict_of(PyObject* o) {
  owned_dicts_[vm::instance_dict(o)] = Py_TYPE(o);
  if (!known('D', o)) guard(IrOp::k_guard_is, {emit(IrOp::k_load_dict_of, Type::kObject, {const_ref(o)}), const_ref(vm::instance_dict(o))}, -1);
}

V Recorder::dict_item(PyObject* dict, PyObject* key) {
  auto cached = items_.find({dict, key});
  if (cached != items_.end()) return cached->second;
  PyObject* value = PyDict_GetItemWithError(dict, key);
  if (value == nullptr && PyErr_Occurred()) PyErr_Clear();
  if (guard_dict_unchanged(dict, key)) return value ? constant(value) : null_;
  Ref ref = emit(IrOp::k_dict_get, Type::kObject, {const_ref(dict), const_ref(key)});
  V v;
  if (value == nullptr) {
    guard(IrOp::k_guard_is, {ref, const_ref(nullptr)}, -1);
    v = null_;
  } else {
    guard(IrOp::k_guard_bound, {ref});
    v = object(ref, value, false);
    if (!ending_.count(value) && !lessons_.changing_items.count({dict, key})) {
      sites_.push_back({Site::kDictItem, dict, key, 0});
      became_stable(v, static_cast<int32_t>(sites_.size()) - 1);
    }
  }
  items_[{dict, key}] = v;
  return v;
}

// ---------------------------------------------------------------------------------------------------------------------
// Stack and control

void Recorder::pop(vm::ThreadView& view, int n) {
  shadow_pop(n);
  while (n-- > 0) {
    PyObject* object = *--view.sp;
    Py_XDECREF(object);
  }
}

void Recorder::push(vm::ThreadView& view, V v) {
  *view.sp++ = Py_XNewRef(at(v).concrete);
  shadow_push(v);
}

// The operand at this depth becomes another value.
void Recorder::replace_operand(vm::ThreadView& view, int depth, V v) {
  Py_XSETREF(view.sp[-depth], Py_XNewRef(concrete(v)));
  auto& slots = top().slots;
  slots[slots.size() - static_cast<size_t>(depth)] = v;
}

void Recorder::push_callable(vm::ThreadView& view, V v, bool alone) {
  if (alone && !vm::kLoneCallableFirst) push(view, null_);
  push(view, v);
  if (alone && vm::kLoneCallableFirst) push(view, null_);
}

HookResult Recorder::next(vm::ThreadView& view) {
  view.ip = vm::next(view.ip);  // also when given up: what the instruction does has been done
  return HookResult::kReload;
}

HookResult Recorder::jump(vm::ThreadView& view, const vm::Inst* target) {
  view.ip = target;
  return HookResult::kReload;
}

// The C API raised in the instruction itself: the evaluator unwinds from it.
// A step has come to no result: by an exception, or because recording was given up before anything was done, so that the evaluator does it.
HookResult Recorder::raised(vm::ThreadView& view) {
  if (PyErr_Occurred() == nullptr) {
    if (!done_) give_up(Abort::k_exception, "no result, and no exception");
    return HookResult::kContinue;
  }
  std::string what = vm::op_name(vm::opcode(view.ip)).data();
  PyObject *type = nullptr, *value = nullptr, *tb = nullptr;
  PyErr_Fetch(&type, &value, &tb);
  if (type != nullptr) what += std::string(" ") + reinterpret_cast<PyTypeObject*>(type)->tp_name;
  PyErr_Restore(type, value, tb);
  give_up(Abort::k_exception, what);
  return HookResult::kError;
}

bool Recorder::check_shadow(vm::ThreadView& view) {
  ShadowFrame& frame = top();
  if (view.frame != frame.frame) {
    mismatch_ = ": another frame";
    return false;
  }
  PyObject** base = vm::FrameView::locals(view.frame);
  if (view.sp - base != static_cast<ptrdiff_t>(frame.slots.size())) {
    mismatch_ = ": stack depth " + std::to_string(view.sp - base) + " instead of " + std::to_string(frame.slots.size());
    return false;
  }
  for (size_t i = 0; i < frame.slots.size(); i++)
    if (at(frame.slots[i]).concrete != base[i]) {
      mismatch_ = ": slot " + std::to_string(i) + " of " + std::to_string(frame.nlocals);
      return false;
    }
  return true;
}

// torch.compiler.is_exporting(), which each call of a ScriptFunction begins with: false wherever no mode of torch's is active.
static bool asks_for_export(_PyInterpreterFrame* frame) {
  PyCodeObject* code = vm::FrameView::code(frame);
  PyObject* module = PyDict_GetItemString(vm::FrameView::globals(frame), "__name__");
  return module != nullptr && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "torch.compiler") == 0 &&
         PyUnicode_CompareWithASCIIString(code->co_name, "is_exporting") == 0;
}

void Recorder::on_event(vm::ThreadView&, const vm::EventInfo& info) {
  switch (info.event) {
    case vm::Event::kNestedEntry:
      // Garbage is collected whenever memory is asked for, within a torch call too: what its finalizers do is no part of that call.
      if (in_torch_ && (finalizers_ != 0 || vm::is_collecting())) {
        if (finalizers_++ == 0) aten_->pause();
        break;
      }
      if (in_torch_ && !asks_for_export(info.frame) && !follow_callback(info.frame)) python_in_torch_ = true;
      break;
    case vm::Event::kNestedExit:
      if (finalizers_ != 0) {
        if (--finalizers_ == 0) aten_->resume();
      } else if (in_callback(info.frame)) {
        leave_callback(info.value);
      }
      break;
    case vm::Event::kFrameUnwound:
      if (!consumers_.empty() && consumers_.back().frame == info.frame) drop_consumer();
      break;
    case vm::Event::kUnwind:
      if (handling_.raised == kNoValue) give_up(Abort::k_exception);
      break;
    case vm::Event::kActivationEnd:
    case vm::Event::kHandover:
      give_up(info.event == vm::Event::kHandover ? Abort::k_tracing_active : Abort::k_recording_interrupted);
      break;
    default: break;
  }
}

// The loop's header has been reached.
void Recorder::finish() {
  flush_pending();
  effect_done_ = false;  // the end's snapshot is the state behind them
  current_snapshot_ = -1;
  // What a loop writes back is needed for good, so it is made now, before the snapshot.
  for (size_t i = 0; i < frames_[0].slots.size() && !side_ && !function_; i++) {
    V v = frames_[0].slots[i];
    if (i < root_initial_.size() && v == root_initial_[i]) continue;
    if (at(v).kind != Value::kNull) as_object(v);
  }
  if (!side_ && !function_) write_back();
  // A function that returns has no more use for its variables.
  if (function_ && one_dies_with_frame()) return give_up(Abort::k_finalizer);
  for (int i = 0; i < frames_[0].nlocals && function_; i++) frames_[0].slots[i] = root_initial_[i];
  emit(side_ || function_ ? IrOp::k_leave : IrOp::k_loop, Type::kVoid, {}, rounds_ - 1, true);
  step_begin_ = 0;  // from here on the trace is kept whole or not at all
  if (!fill_wraps()) give_up(Abort::k_graph_escaped, "a parameter that it was made of has been written");
  // Without nodes of its own, or a backward(), the trace would only make the interpreter run its operations again, for their graph.
  const bool needed = !done_ && freed_.empty() && (graph_alive() || late_.gives_graphs);
  const bool waits = needed && gone_round_.inside && lessons_.graphs_escaped++ < base::heuristics().node_patience;
  const std::string why = done_ ? "" : waits ? "a loop around it is waited for" : add_graph_nodes();
  if (needed && !why.empty()) give_up(Abort::k_graph_escaped, "the graph is needed behind the trace's end, " + why);
  if (tensor_ops_ < base::heuristics().min_tensor_ops) give_up(Abort::k_no_tensor_work);
  if (doomed_ != Abort::kNone) give_up(doomed_);
  settle_torch_states();
  done_ = true;
}

void Recorder::begin_step() {
  current_snapshot_ = -1;
  effect_done_ = false;
  step_begin_ = trace_.insts.size();
  step_depth_ = frames_.size();
  step_slots_ = top().slots.size();
}

HookResult Recorder::step(vm::ThreadView& view) {
  if (doomed_ != Abort::kNone && trace_.insts.size() > doomed_at_ + static_cast<size_t>(base::heuristics().max_doomed)) give_up(doomed_);
  if (!done_) {
    const HookResult result = record_next(view);
    if (!done_ || result != HookResult::kContinue) return result;
  }
  return drain(view);  // also the instruction at which it was given up: it may be the consumer's
}

// Records the instruction that comes next.
HookResult Recorder::record_next(vm::ThreadView& view) {
  begin_step();
  if (!mortals_.empty() && one_has_died()) {
    give_up(Abort::k_finalizer);
    return HookResult::kContinue;
  }
  if (view.entered_handler && !enter_handler(view)) {
    give_up(Abort::k_exception);
    return HookResult::kContinue;
  }
  if (handling_.open && all_handled()) handling_ = Handling{};
  if (!check_shadow(view)) {
    std::string where = previous_ip_ ? std::string(vm::op_name(vm::opcode(previous_ip_))) : "start";
    give_up(Abort::k_shadow_mismatch, "after " + where + mismatch_);
    return HookResult::kContinue;
  }
  if (!vm::has_slot()) {
    give_up(Abort::k_foreign_evaluation);
    return HookResult::kContinue;
  }
  previous_ip_ = view.ip;
  current_unit_ = vm::unit_of(top().code, view.ip);
  if (base::profile::on() || base::is_told(base::LogCategory::kExit)) note_origin();
  if (!started_) {
    started_ = true;
    root_initial_ = frames_[0].slots;
    snapshot();  // snapshot 0 is the entry
    if (bridge_ != nullptr && !bridge_->torch_state().clean) {
      give_up(Abort::k_torch_state);
      return HookResult::kContinue;
    }
    if (bridge_ != nullptr) guard_torch_state();
    if (side_) guard_frames();
    root_initial_ = frames_[0].slots;
  } else if (frames_.size() == 1 && current_unit_ == root_unit_) {
    if (!goes_round_alike()) return HookResult::kContinue;
    if (!goes_round_again()) {
      if (handling_.open) give_up(Abort::k_exception, "the iteration ends while it is handled");
      else finish();
      return HookResult::kContinue;
    }
    rounds_++;
    frames_[0].loops.clear();
  }
  if (ends_before_loop()) return HookResult::kContinue;
  // What was entered may have said which mode: the state is guarded even where it is the same as before.
  if (!callbacks_.empty()) follow_grad_mode();
  if (bridge_ != nullptr && (std::exchange(mode_entered_, false) || !(bridge_->torch_state() == torch_state_))) guard_torch_state();
  if (done_) return HookResult::kContinue;
  return record(view);
}

HookResult Recorder::residual(vm::ThreadView& view, IrOp op, std::vector<V> args, int64_t imm, int pops, bool pushes) {
  bool ok = true;
  V result = run_residual(op, args, imm, &ok);
  if (!ok) return raised(view);
  pop(view, pops);
  if (pushes) push(view, result);
  return next(view);
}

// BaseException.__init__, which keeps nothing but the arguments behind the exception.
static PyObject* exception_init() {
  static PyObject* const method = vm::own_attribute(reinterpret_cast<PyTypeObject*>(PyExc_BaseException), "__init__");
  return method;
}

V Recorder::run_residual(IrOp op, const std::vector<V>& args, int64_t imm, bool* ok) {
  const ir::OpInfo& info = ir::op_info(op);
  const bool looks_at_modes = op == IrOp::k_call_known && PyFunction_Check(concrete(args[0])) && !modes_.off.empty();
  if ((info.effects & ir::kBarrier) || looks_at_modes) flush_pending();
  std::vector<Ref> refs;
  std::vector<PyObject*> concretes;
  // What is only kept is as it was; what it is put into is not.
  const bool keeps = !args.empty() && only_keeps(op, concrete(args[0]));
  const V receiver = args.empty() ? kNoValue : args[op == IrOp::k_call_known && args.size() > 1 ? 1 : 0];
  for (V v : args) {
    refs.push_back(as_object(v));
    const bool own_attribute = (op == IrOp::k_set_attr_known || op == IrOp::k_get_attr_known) && v == args[0];
    const bool initialised = args.size() > 1 && v == args[1] && concrete(args[0]) == exception_init();
    const bool of_super = op == IrOp::k_call_pure && concrete(args[0]) == reinterpret_cast<PyObject*>(&PySuper_Type);  // known to whom that is known
    const bool of_instance = op == IrOp::k_call_known && args.size() > 1 && v == args[1] && at(v).fresh && keeps_instance(concrete(args[0]));
    if (!own_attribute && !initialised && !of_super && !of_instance) {
      escape(v);
      if (v == receiver || !keeps) at(v).escaped_at = -1;
    }
    if (op != IrOp::k_iter_next_known) iterators_.erase(v);
    concretes.push_back(at(v).concrete);
  }
  look_at_graphs(op, args);
  Type type = info.result == 'o' ? Type::kObject : info.result == 'b' ? Type::kBool : Type::kVoid;
  Ref ref = emit(op, type, refs, imm, (info.effects & (ir::kRaises | ir::kBarrier)) != 0);
  const bool makes = op == IrOp::k_call_known && args.size() == 1 && PyType_Check(concretes[0]);  // an object that nobody knows
  if (info.effects & (ir::kBarrier | ir::kWrite) && !makes) effect();
  PyObject* result = nullptr;
  int truth = 0;
  PyObject* names = (op == IrOp::k_call || op == IrOp::k_call_known || op == IrOp::k_call_apart || op == IrOp::k_call_pure || op == IrOp::k_call_new) && imm >= 0
                        ? static_cast<PyObject*>(trace_.objects[imm].pointer)
                        : nullptr;
  *ok = runtime::execute(op, imm, concretes.data(), static_cast<int>(concretes.size()), names, &result, &truth);
  if (info.effects & ir::kBarrier) barrier();
  if (!*ok) return null_;
  if (type == Type::kBool) return scalar(Type::kBool, ref, truth ? Py_True : Py_False);
  if (type == Type::kVoid) return null_;
  V v = object(ref, result, true);
  at(v).type_known = makes && reinterpret_cast<PyObject*>(Py_TYPE(result)) == concretes[0];
  Py_XDECREF(result);
  return v;
}

// The object is now known to code outside the trace.
void Recorder::escape(V v) {
  if (at(v).escaped) return;
  at(v).escaped = true;
  at(v).escaped_at = barriers_;
  if (at(v).kind == Value::kView || (concrete(v) != nullptr && Py_TYPE(concrete(v)) == &PySuper_Type))
    for (V self : std::vector<V>(at(v).items)) escape(self);
  if (const auto of = dict_of_.find(v); of != dict_of_.end()) {
    escape(of->second);
    at(of->second).escaped_at = -1;  // others may change its attributes
  }
  if (!at(v).fresh) return;
  for (auto& [key, field] : fields_)  // what it holds is reachable now
    if (key.first == v) escape(field);
}

HookResult Recorder::record(vm::ThreadView& view) {
  using vm::Op;
  Op op = vm::opcode(view.ip);
  int arg = vm::oparg(view.ip);
  switch (op) {
    case Op::kNop:
    case Op::kResume: return HookResult::kContinue;
    case Op::kPopTop:
      if (would_run_handlers(concrete(peek(1)))) {
        give_up(Abort::k_generator_closes);
        return HookResult::kContinue;
      }
      shadow_pop(1);
      return HookResult::kContinue;
    case Op::kPushNull: shadow_push(null_); return HookResult::kContinue;
    case Op::kCopy: shadow_push(peek(arg)); return HookResult::kContinue;
    case Op::kSwap: {
      auto& slots = top().slots;
      std::swap(slots[slots.size() - 1], slots[slots.size() - arg]);
      return HookResult::kContinue;
    }
    case Op::kLoadConst: shadow_push(constant(PyTuple_GET_ITEM(top().code->co_consts, arg))); return HookResult::kContinue;
    case Op::kLoadFast:
      if (at(slot(arg)).concrete == nullptr) {
        give_up(Abort::k_exception, "unbound local");
        return HookResult::kContinue;
      }
      if (may_be_unbound(slot(arg)) && !known('b', &values_, slot(arg)))
        guard(IrOp::k_guard_bound, {at(slot(arg)).ref});
      shadow_push(slot(arg));
      return HookResult::kContinue;
    case Op::kStoreFast:
      slot(arg) = peek(1);
      shadow_pop(1);
      return HookResult::kContinue;
    case Op::kDeleteFast: slot(arg) = null_; return HookResult::kContinue;
    case Op::kLoadFastAndClear: {
      V v = slot(arg);
      if (may_be_unbound(v) && v != null_) {
        // Whether the variable is bound decides what the stack holds.
        if (concrete(v) == nullptr) {
          guard(IrOp::k_guard_is, {at(v).ref, const_ref(nullptr)}, -1);
          v = null_;
        } else if (!known('b', &values_, v)) {
          guard(IrOp::k_guard_bound, {at(v).ref});
        }
      }
      shadow_push(v);
      slot(arg) = null_;
      return HookResult::kContinue;
    }
    case Op::kEndSend: {
      V value = peek(1);
      shadow_pop(2);
      shadow_push(value);
      return HookResult::kContinue;
    }

    case Op::kLoadGlobal:
    case Op::kLoadName:
    case Op::kStoreName:
    case Op::kDeleteName:
    case Op::kStoreGlobal:
    case Op::kDeleteGlobal:
    case Op::kMakeCell:
    case Op::kLoadClosure:
    case Op::kLoadDeref:
    case Op::kStoreDeref:
    case Op::kDeleteDeref:
    case Op::kCopyFreeVars:
    case Op::kImportName:
    case Op::kImportFrom:
    case Op::kMakeFunction:
    case Op::kSetFunctionAttribute:
    case Op::kLoadAssertionError: return record_names(view, op, arg);
    case Op::kRaiseVarargs:
    case Op::kReraise:
    case Op::kPushExcInfo:
    case Op::kCheckExcMatch:
    case Op::kPopExcept: return record_exceptions(view, op, arg);

    case Op::kLoadAttr:
    case Op::kLoadMethod:
    case Op::kLoadSuperAttr:
    case Op::kStoreAttr:
    case Op::kDeleteAttr: return record_attributes(view, op, arg);

    case Op::kBinaryOp:
    case Op::kCompareOp:
    case Op::kIsOp:
    case Op::kContainsOp:
    case Op::kToBool:
    case Op::kUnaryNot:
    case Op::kUnaryNegative:
    case Op::kUnaryPositive:
    case Op::kUnaryInvert:
    case Op::kBinarySubscr:
    case Op::kStoreSubscr:
    case Op::kDeleteSubscr: return record_operators(view, op, arg);

    case Op::kJumpForward:
    case Op::kJumpBackward:
    case Op::kJumpBackwardNoInterrupt:
    case Op::kPopJumpIfFalse:
    case Op::kPopJumpIfTrue:
    case Op::kPopJumpIfNone:
    case Op::kPopJumpIfNotNone:
    case Op::kJumpIfFalseOrPop:
    case Op::kJumpIfTrueOrPop:
    case Op::kGetIter:
    case Op::kForIter: return record_loops(view, op, arg);

    case Op::kCall:
    case Op::kCallFunctionEx:
    case Op::kReturnValue:
    case Op::kBeforeWith: return record_calls(view, op, arg);

    case Op::kYieldValue:
      if (in_consumer(view)) return consumer_yield(view);
      if (top().generator == kNoValue) break;
      suspend(view);
      return HookResult::kContinue;
    case Op::kGetYieldFromIter:
      if (at(peek(1)).kind != Value::kGenerator) break;
      return HookResult::kContinue;
    case Op::kSend: {
      V receiver = peek(2);
      if (at(receiver).kind != Value::kGenerator || concrete(peek(1)) != Py_None) break;
      pop(view, 1);
      if (resume(view, receiver, vm::Continuation::kSendGenerator)) return HookResult::kReload;
      if (entered_error_) return HookResult::kError;
      PyObject* none = Py_NewRef(Py_None);  // given up: the instruction as it was
      *view.sp++ = none;
      return HookResult::kContinue;
    }

    case Op::kGetLen:
    case Op::kBuildTuple:
    case Op::kBuildList:
    case Op::kBuildSet:
    case Op::kBuildMap:
    case Op::kBuildConstKeyMap:
    case Op::kBuildString:
    case Op::kBuildSlice:
    case Op::kFormatValue:
    case Op::kConvertValue:
    case Op::kListAppend:
    case Op::kListExtend:
    case Op::kListToTuple:
    case Op::kMapAdd:
    case Op::kDictUpdate:
    case Op::kDictMerge:
    case Op::kSetAdd:
    case Op::kSetUpdate:
    case Op::kUnpackEx:
    case Op::kUnpackSequence: return record_containers(view, op, arg);

    case Op::kMatchMapping:
    case Op::kMatchSequence:
    case Op::kMatchKeys:
    case Op::kMatchClass: return record_matching(view, op, arg);

    default: break;
  }
  give_up(Abort::k_opcode, std::string(vm::op_name(op)));
  return HookResult::kContinue;
}

}  // namespace dynvm::tracer
