// Views whose place a changing number says (`x[i]`, `x[i:i + n]`). To the trace such a view is memory of its own, moved to where it looks when it runs, so
// that kernels read it with constant strides; nobody may write what it looks at meanwhile. Where somebody does, the loop is recorded again with
// that view as an open one of its base's memory (Lessons::written_views). A slice of which only the end changes, and its size with it, does not move. Inputs that share memory, but not in the same way each time, are memory of their own in the same manner. See recorder.h.
#include <algorithm>
#include <string>

#include "runtime/base/switches.h"
#include "tracer/dead_objects.h"
#include "tracer/recorder.h"

namespace dynvm::tracer {

using ir::AtenArg;
using ir::kNoRef;
using ir::Ref;
using ir::Type;
using IrOp = ir::Op;

// Does an int argument change nothing but the result's contents, or the memory that it looks at?
bool Recorder::takes_any_int(const ir::AtenCall& call, size_t argument) {
  return (is_index(call) && argument >= 2) || (call.name == "aten::full" && argument == 1) || bridge_->takes_number(call, argument);
}

// Is it a method that tells of a tensor's offset, which nothing guards, or of strides that a changing number decides? These are asked of the object.
bool Recorder::asks_moving_layout(PyObject* callee, const std::vector<V>& args) {
  if (args.empty() || !is_tensor(concrete(args[0]))) return false;
  const std::string name = callable_name(callee);
  if (name == "Tensor.storage_offset") return true;
  if (name != "Tensor.stride" && name != "Tensor.is_contiguous") return false;
  const Ref ref = as_tensor(args[0]);
  if (done_) return false;
  const ir::TensorMeta& meta = trace_.metas[static_cast<size_t>(trace_.insts[ref].meta)];
  return (meta.open & ir::kOpenLayout) != 0 || moved_storages_.count(meta.storage) != 0;
}

// The view becomes memory of its own.
void Recorder::move_to_own(ir::TensorMeta* view, const std::pair<PyCodeObject*, int>& place) {
  const int32_t looked_at = view->storage;
  view->storage = trace_.num_storages++;
  moved_storages_[view->storage] = looked_at;
  for (int32_t storage : {looked_at, view->storage}) moving_storages_[storage].push_back(place);
}

// An input on memory that another input looks at: where the two have not looked at it in the same way each time, as rows drawn from a table, it is to the trace memory of its own, which nobody
// may write meanwhile. Gives the index of its meta.
int32_t Recorder::place_apart(int32_t id, int32_t index) {
  const std::pair<PyCodeObject*, int> place{top().code, current_unit_};
  const int32_t storage = trace_.metas[index].storage;
  if (!lessons_.inputs_apart || input_storages_.count(storage) == 0 || lessons_.written_views.count(place) != 0 || written_storages_.count(storage) != 0) return index;
  ir::TensorMeta meta = trace_.metas[index];
  move_to_own(&meta, place);
  trace_.metas.push_back(std::move(meta));
  return metas_[id] = static_cast<int32_t>(trace_.metas.size()) - 1;
}

// Gives the results of a view call, with numbers of the trace or not, their memory. ids: the recorder's, of the results.
void Recorder::place_views(ir::AtenCall* call, const std::vector<int32_t>& ids, const std::vector<Ref>& compact) {
  if (is_index(*call) && has_run_time_numbers(*call) && ir::is_moved(*call)) {
    // A view whose offset is known only when it runs: to the trace it is memory of its own, which nobody may write meanwhile, or, where somebody does,
    // an open view of that memory.
    const std::pair<PyCodeObject*, int> place{top().code, current_unit_};
    ir::TensorMeta meta = trace_.metas[call->results[0]];
    if (base::left_out(base::Part::kMoving) || lessons_.written_views.count(place) != 0 || written_storages_.count(meta.storage) != 0) {
      meta.open = ir::kOpenLayout;
    } else {
      move_to_own(&meta, place);
    }
    trace_.metas.push_back(meta);
    call->results[0] = static_cast<int32_t>(trace_.metas.size()) - 1;
    metas_[ids[0]] = call->results[0];
  }
  // A view of such a view lies in its memory, where that is.
  for (size_t i = 0; i < ids.size(); i++) {
    const int32_t alias = ids[i] < 0 || !call->mutates.empty() ? -1 : call->result_alias[i];
    if (alias < 0 || call->args[alias].operands.empty() || call->args[alias].operands[0] < 0) continue;
    const int32_t base = trace_.insts[compact[call->args[alias].operands[0]]].meta;
    if (base < 0) continue;
    const bool moved = moved_storages_.count(trace_.metas[base].storage) != 0 && moved_storages_.count(trace_.metas[call->results[i]].storage) == 0;
    const bool open = trace_.metas[base].open != 0 && trace_.metas[call->results[i]].open == 0;
    if (!moved && !open) continue;
    ir::TensorMeta meta = trace_.metas[call->results[i]];
    meta.storage = trace_.metas[base].storage;
    if (open) meta.open = ir::kOpenLayout;
    trace_.metas.push_back(meta);
    call->results[i] = static_cast<int32_t>(trace_.metas.size()) - 1;
    metas_[ids[i]] = call->results[i];
  }
}

// C++ code that computes where a view begins (fill_diagonal_) counts from where its operand does: that begins elsewhere each time, if it moves. False: given up.
bool Recorder::follow_offset(ir::AtenCall* call, int32_t id) {
  constexpr size_t kOffset = 3;
  if (id < 0 || !call->name.starts_with("aten::as_strided") || call->args.size() <= kOffset || call->args[kOffset].kind != AtenArg::kInt) return true;
  const ir::TensorMeta& meta = trace_.metas[static_cast<size_t>(meta_of(id))];
  if (moved_storages_.count(meta.storage) == 0 && meta.open == 0) return true;
  if (torch_call_ != nullptr && torch_call_->what.ends_with("as_strided")) return true;  // the script's own number
  if (call->args[kOffset].i != meta.offset) return give_up(Abort::k_unsupported_operation, call->name + " of a view that moves"), false;
  call->args[kOffset] = {};
  call->args[kOffset].kind = AtenArg::kNone;
  return true;
}

// Is memory written that a moving view looks at? Then recording is given up.
bool Recorder::moving_view_written(const std::vector<Ref>& written, const std::string& name) {
  for (Ref ref : written) {
    const int32_t meta = trace_.insts[ref].meta;
    if (meta >= 0) written_storages_.insert(trace_.metas[meta].storage);
    auto moving = meta < 0 ? moving_storages_.end() : moving_storages_.find(trace_.metas[meta].storage);
    if (moving == moving_storages_.end()) continue;
    const size_t known = lessons_.written_views.size();
    for (;;) {  // what the memory is a view of is written too
      lessons_.written_views.insert(moving->second.begin(), moving->second.end());
      const auto from = moved_storages_.find(moving->first);
      if (from == moved_storages_.end()) break;
      moving = moving_storages_.find(from->second);
    }
    give_up(lessons_.written_views.size() > known ? Abort::k_written_view : Abort::k_unsupported_operation, name);
    return true;
  }
  return false;
}

// Are these numbers computed, or views made, in the same way? depth: how far that is followed.
bool Recorder::made_alike(Ref a, Ref b, int depth) const {
  if (a == b || same_numbers_.count({a, b}) != 0) return true;
  const ir::Inst *x = &trace_.insts[a], *y = &trace_.insts[b];
  if (depth == 0 || x->op != y->op || x->imm != y->imm || x->count != y->count) return false;
  if (x->op == IrOp::k_result) {
    x = &trace_.insts[trace_.arg(a, 0)];
    y = &trace_.insts[trace_.arg(b, 0)];
    const ir::AtenCall &one = trace_.calls[x->imm], &other = trace_.calls[y->imm];
    bool alike = one.name == other.name && one.mutates.empty() && other.mutates.empty() && !one.is_random && x->count == y->count && one.args.size() == other.args.size();
    for (size_t i = 0; alike && i < one.args.size(); i++)
      alike = one.args[i].kind == other.args[i].kind && one.args[i].i == other.args[i].i && one.args[i].ints == other.args[i].ints;
    if (!alike) return false;
  } else {
    const uint16_t effects = ir::op_info(x->op).effects;  // of what is read, another reading may give something else
    const bool value = x->op == IrOp::k_box_int || x->op == IrOp::k_unbox_tensor || x->op == IrOp::k_slot || x->op == IrOp::k_const_obj || x->type != Type::kObject;
    if (!value || (effects & ~(ir::kPure | ir::kGuard | ir::kNew)) != 0) return false;
  }
  for (uint32_t k = 0; k < x->count; k++)
    if (!made_alike(trace_.arg(*x, k), trace_.arg(*y, k), depth - 1)) return false;
  return true;
}

// Are all tensors of this id gone but for what the recorder holds?
bool Recorder::nobody_has(int32_t id) {
  std::vector<PyObject*> held;
  std::set<PyObject*> of_id;
  for (const Value& value : values_) {
    if (value.concrete == nullptr) continue;
    held.push_back(value.concrete);
    if (!is_tensor(value.concrete) || aten_->tensor_id(value.concrete) != id) continue;
    if (value.kind == Value::kConst) return false;
    of_id.insert(value.concrete);
  }
  if (of_id.empty()) return true;
  for (const ShadowFrame& frame : frames_)  // most are in somebody's variable
    for (const V v : frame.slots)
      if (v != kNoValue && of_id.count(concrete(v)) != 0) return false;
  const std::unordered_set<PyObject*> dead = dead_objects({&held, &owned_});
  return std::all_of(of_id.begin(), of_id.end(), [&](PyObject* each) { return dead.count(each) != 0; });
}

// Does this view call look where `other`, one of the same name, does, if these pairs of numbers are the same?
bool Recorder::look_alike(const ir::Inst& other, const ir::AtenCall& call, const std::vector<Ref>& operands, std::vector<std::pair<Ref, Ref>>* numbers) {
  const ir::AtenCall made = trace_.calls[other.imm];
  const auto number = [&](const AtenArg& arg, const Ref* refs) { return arg.kind == AtenArg::kScalar ? refs[arg.operands[0]] : trace_.add(IrOp::k_const_int, Type::kInt, {}, arg.i); };
  bool alike = true;
  for (size_t i = 0; alike && i < call.args.size(); i++) {
    const AtenArg &before = made.args[i], &now = call.args[i];
    if (now.kind == AtenArg::kTensor && before.kind == AtenArg::kTensor) {
      const Ref was = trace_.arg(other, static_cast<uint32_t>(before.operands[0])), is = operands[static_cast<size_t>(now.operands[0])];
      if (made_alike(was, is, 8)) continue;
      // Views of views: the numbers of these too.
      const auto maker = [this](Ref view) -> const ir::Inst* { return trace_.insts[view].op == IrOp::k_result ? &trace_.insts[trace_.arg(view, 0)] : nullptr; };
      const ir::Inst *first = maker(was), *second = maker(is);
      alike = first != nullptr && second != nullptr && trace_.calls[first->imm].name == trace_.calls[second->imm].name && is_index(trace_.calls[first->imm]);
      if (!alike) break;
      const ir::AtenCall base = trace_.calls[second->imm];
      const std::vector<Ref> of(trace_.operands.begin() + second->first, trace_.operands.begin() + second->first + second->count);
      alike = look_alike(ir::Inst(*first), base, of, numbers);
    } else if (now.kind == AtenArg::kScalar || before.kind == AtenArg::kScalar) {
      const Ref was = number(before, trace_.operands.data() + other.first), is = number(now, operands.data());
      if (!made_alike(was, is, 8)) numbers->emplace_back(was, is);
    } else {
      alike = before.kind == now.kind && before.i == now.i;
    }
  }
  return alike;
}

// A view looks where another one of the trace looks, but only this time: one of them is where a number that changes says.
bool Recorder::coincides(int32_t id, const ir::AtenCall& call, const std::vector<Ref>& operands, const ir::TensorMeta& meta) {
  const Ref known = tensor_of_id(id);
  // All of what it is a view of: with other numbers it would have other sizes, and leave the trace.
  if (known == kNoRef || std::find(operands.begin(), operands.end(), known) != operands.end()) return false;
  const ir::TensorMeta& there = trace_.metas[trace_.insts[known].meta];
  // What the trace does with that look from here on is done with this view, whose meta is that of the other one or was made from it: one of the same memory.
  const auto takes_over = [&] { return !is_differentiated(call) && moved_storages_.count(there.storage) == 0 && (there.open == 0 || there.storage == meta.storage) && nobody_has(id); };
  for (Ref at = known; trace_.insts[at].op == IrOp::k_result;) {
    const ir::Inst made = trace_.insts[trace_.arg(at, 0)];
    const ir::AtenCall& other = trace_.calls[made.imm];
    if (other.name == call.name && other.args.size() == call.args.size()) {
      // Numbers that only are the same now, as one that was read again behind a call: the guard tells of them (ops.def, guard_true).
      std::vector<std::pair<Ref, Ref>> numbers;
      if (look_alike(made, call, operands, &numbers)) {
        if (!numbers.empty() && takes_over()) return false;
        if (!numbers.empty() && lessons_.looked_alike.insert({top().code, current_unit_}).second) return true;
        for (const auto& [before, now] : numbers) guard(IrOp::k_guard_true, {emit(IrOp::k_eq_int, Type::kBool, {before, now})}, ir::kSameIndex);
        same_numbers_.insert(numbers.begin(), numbers.end());
        return false;
      }
    }
    const int32_t alias = other.result_alias[trace_.insts[at].imm];
    if (alias < 0 || other.args[alias].operands.empty()) break;
    at = trace_.arg(made, other.args[alias].operands[0]);  // what it was before it was written, or what it is a view of
  }
  if (takes_over()) return false;
  return there.storage != meta.storage || there.open != meta.open || (is_index(call) && has_run_time_numbers(call));
}

}  // namespace dynvm::tracer
