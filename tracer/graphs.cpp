// Autograd graphs at a trace's borders: what backward() did, which graphs it may not reach, and how a tensor that a trace hands out gets its
// graph. See recorder.h.
#include <algorithm>
#include <functional>

#include "ir/effects.h"
#include "tracer/dead_objects.h"
#include "tracer/recorder.h"
#include "tracer/saved_tensors.h"
#include "tracer/trace_writes.h"

namespace dynvm::tracer {

using ir::kNoRef;
using ir::Ref;
using ir::Type;
using IrOp = ir::Op;

// The tensors that backward() from these goes through: along the operands that required gradients when they were used.
std::set<Ref> Recorder::graph_of(const std::vector<V>& tensors) {
  std::set<Ref> needed;
  for (V v : tensors) needed.insert(as_tensor(v));
  return graph_of(std::move(needed));
}

std::set<Ref> Recorder::graph_of(std::set<Ref> needed) const {
  std::set<Ref> reached;
  while (!needed.empty()) {
    const Ref ref = *needed.rbegin();
    needed.erase(ref);
    if (ref == kNoRef || !reached.insert(ref).second || trace_.insts[ref].op != IrOp::k_result) continue;
    const Ref made = trace_.arg(ref, 0);
    for (int32_t operand : differentiated_operands(trace_.calls[trace_.insts[made].imm])) needed.insert(trace_.arg(made, static_cast<uint32_t>(operand)));
  }
  return reached;
}

// What the autograd engine runs, and frees, when it is called with these arguments: the tensors that backward() is from, their gradients, and behind `retains`, that says
// whether the graph stays, and create_graph, the tensors whose gradients are asked for. Where there are none, it runs the whole graph, else the nodes between.
std::set<Ref> Recorder::run_by_engine(const std::vector<V>& inputs, size_t retains) {
  std::vector<V> roots, ends, numbers;
  for (size_t i = 0; i < retains && roots.empty(); i++) collect(inputs[i], &roots, &numbers);
  for (size_t i = retains; i < inputs.size() && ends.empty(); i++) collect(inputs[i], &ends, &numbers);
  std::set<Ref> graph = graph_of(roots);
  if (ends.empty()) return graph;
  const auto node_of = [this](Ref ref) { return trace_.insts[ref].op == IrOp::k_result ? trace_.arg(ref, 0) : ref; };
  std::set<Ref> asked, run;  // nodes
  for (V v : ends) asked.insert(node_of(as_tensor(v)));
  std::erase_if(graph, [&](Ref ref) {  // operands stand before what they are used for
    const Ref node = node_of(ref);
    if (node == ref) return true;
    const std::vector<int32_t> operands = differentiated_operands(trace_.calls[trace_.insts[node].imm]);
    const bool runs = std::any_of(operands.begin(), operands.end(), [&](int32_t operand) {
      const Ref behind = node_of(trace_.arg(node, static_cast<uint32_t>(operand)));
      return asked.count(behind) != 0 || run.count(behind) != 0;
    });
    if (runs) run.insert(node);
    return !runs;
  });
  return graph;
}

// Does this call give a tensor object that was there before the trace another graph? Autograd hangs what an operation in place computes at the object that it
// writes, and at all views of its memory: no trace can, as it runs no autograd.
bool Recorder::graph_of_outsider(const ir::AtenCall& call, const std::vector<Ref>& operands) const {
  if (call.mutates.empty() || !is_differentiated(call)) return false;
  return std::any_of(call.mutates.begin(), call.mutates.end(), [&](int32_t argument) {
    if (std::find(call.result_alias.begin(), call.result_alias.end(), argument) == call.result_alias.end()) return false;  // running statistics
    const std::vector<int32_t>& written = call.args[static_cast<size_t>(argument)].operands;
    return std::any_of(written.begin(), written.end(), [&](int32_t operand) {
      if (operand < 0) return false;
      const ir::TensorMeta& meta = trace_.metas[trace_.insts[operands[static_cast<size_t>(operand)]].meta];
      return ir::is_floating(meta.dtype) && input_storages_.count(meta.storage) != 0;
    });
  });
}

// What backward() has done to `.grad` so far.
void Recorder::note_new_grads() {
  for (const auto& [o, v] : differentiated_leaves()) {
    PyObject* grad = bridge_->get_grad(o);
    V before = known_grad(v);
    if (grad == concrete(before)) {
      Py_XDECREF(grad);
      continue;
    }
    if (grad == nullptr || grad == Py_None) {
      Py_XDECREF(grad);
      continue;
    }
    int32_t id = aten_->tensor_id(grad);
    auto found = tensors_.find(id);
    if (found == tensors_.end()) {
      Py_DECREF(grad);
      give_up(Abort::k_unknown_tensor, "gradient");
      return;
    }
    V g = tensor_value(grad, id);
    Py_DECREF(grad);
    set_grad(v, g);
  }
}

// What exits make of tensors with graphs from here on is made in another way.
void Recorder::forget_graphs() {
  epoch_++;
  for (Value& value : values_)
    if (value.kind == Value::kTensor ? value.wrap.requires_grad : value.kind == Value::kContext || !value.items.empty()) value.snap = kNoRef;
}

// The objects that nothing refers to but the recording and the owner of these references, one each.
std::unordered_set<PyObject*> Recorder::held_alone(std::vector<PyObject*> held) const {
  for (const Value& value : values_)
    if (value.concrete != nullptr) held.push_back(value.concrete);
  return dead_objects({&held, &owned_});
}

// Tensors that were handed out, have a graph beside this one, which ends in it maybe, and are gone: the recording alone holds them, as what a model has put into an object beside
// the result that was asked for. Nobody can look at their graph any more, so that it is as good as freed.
std::set<V> Recorder::dead_beside(const std::set<Ref>& graph) {
  std::set<V> beside;
  for (V v : live_graph_)
    if (at(v).object != kNoRef && at(v).escaped && !at(v).looked_at && graph.count(at(v).ref) == 0 && twins_.count(v) != 0) beside.insert(v);
  if (beside.empty()) return beside;
  const std::unordered_set<PyObject*> dead = held_alone({});
  std::erase_if(beside, [&](V v) { return dead.count(concrete(v)) == 0; });
  return beside;
}

// Of what a backward() will free: without the tensors that somebody can still look at and whose graphs keep nothing that could be freed.
void Recorder::leave_what_keeps_nothing(std::set<Ref>* freed) {
  std::vector<V> seen = live_graphs();
  for (V v : live_graph_)
    if (at(v).object != kNoRef && at(v).escaped) seen.push_back(v);
  for (V v : seen) {
    const Ref ref = at(v).ref;
    if (freed->count(ref) == 0 || concrete(v) == nullptr || keeps_tensors(concrete(v))) continue;
    for (Ref behind : graph_of(std::set<Ref>{ref})) freed->erase(behind);
  }
}

void Recorder::free_graph(const std::set<Ref>& graph) {
  // It is freed (retain_graph is seen by the second backward not failing; its values stay the same).
  std::vector<Ref> freed;
  for (Ref ref : graph)
    if (requires_graph_.count(ref)) freed.push_back(ref);
  const std::set<V> dead = dead_beside(graph);
  const auto is_apart = [&](Ref ref) {
    const std::set<Ref> behind = graph_of(std::set<Ref>{ref});
    return std::none_of(freed.begin(), freed.end(), [&](Ref gone) { return behind.count(gone) != 0; });
  };
  for (V v : dead) freed.push_back(at(v).ref);
  emit(IrOp::k_graph_freed, Type::kVoid, freed);
  forget_graphs();  // exits from here on find none
  std::vector<V> beside;   // their graphs end in what is freed here
  std::set<V> written;     // objects that have another graph than they were made with
  for (V v : live_graph_) {
    if (at(v).object == kNoRef || !at(v).escaped) continue;
    const auto twin = twins_.find(v);
    const bool ends = graph.count(at(v).ref) != 0 || dead.count(v) != 0;
    if (twin != twins_.end() && !ends && is_apart(at(v).ref)) continue;  // it keeps its graph, and its twin
    if (twin == twins_.end() || at(v).looked_at)
      return give_up(Abort::k_graph_escaped, (stored_at_.empty() ? "" : "stored " + stored_at_) + (looked_by_.empty() ? "" : ", before " + looked_by_));  // the graphs live on, to cut()
    if (ends && late_.own.count(at(v).object) != 0) written.insert(v);
    if (ends) freed_early_.emplace(at(v).object, kNoRef);
    else beside.push_back(v);
  }
  for (V v : beside) {
    hand_out_graph(v);
    freed_early_.emplace(at(v).object, twins_[v]);
  }
  std::erase_if(twins_, [&](const auto& each) { return graph.count(at(each.first).ref) != 0 || dead.count(each.first) != 0; });
  freed_.insert(freed.begin(), freed.end());
  for (V v : written) emit(IrOp::k_take_graph, Type::kVoid, {at(v).object, make(v, false)});
}

// A tensor with a live graph has become a Python object, to be kept somewhere. Should backward() free the graph before anybody looks at it, the object has a freed one
// from the start, and an exit in between gives it the graph of its twin, which only exits make.
void Recorder::hand_out_graph(V v) {
  if (at(v).cls != nullptr) return;
  const Ref twin = make(v, true);
  trace_.insts[twin].sunk = true;
  twins_[v] = twin;
}

// Before this residual operation: whom may it show graphs?
void Recorder::look_at_graphs(IrOp op, const std::vector<V>& args) {
  if (twins_.empty() && late_.of.empty()) return;
  const bool computes = op == IrOp::k_binary || op == IrOp::k_compare || op == IrOp::k_contains || op == IrOp::k_get_item;
  const bool of_values = computes && std::all_of(args.begin(), args.end(), [this](V v) { return is_immutable(concrete(v)) && !PyType_Check(concrete(v)); });
  if (of_values && std::all_of(args.begin(), args.end(), [this](V v) { return know_type(v); })) return;  // sums of shapes and the like run no code
  for (V v : args) {
    late_.hidden.erase(v);
    for (V item : at(v).items) late_.hidden.erase(item);
  }
  if (!only_keeps(op, concrete(args[0])) && sees_late(op, args)) return give_up(Abort::k_graph_from_outside, "a tensor that is written where the trace ends is looked at by " + callable_name(concrete(args[0])));
  bool looks = false;
  const std::function<void(V)> look = [&](V v) {
    if (at(v).has_graph()) looks = at(v).looked_at = true;
    if (at(v).kind == Value::kTuple || at(v).kind == Value::kList || at(v).kind == Value::kDict)
      for (V item : at(v).items) look(item);
  };
  if (ir::op_info(op).effects & ir::kBarrier) {  // any code may run
    for (const auto& [v, twin] : twins_)
      if (at(v).escaped) look(v);
  }
  if (!only_keeps(op, concrete(args[0])))
    for (V v : args) look(v);
  if (looks && looked_by_.empty()) looked_by_ = std::string(ir::op_info(op).name) + " " + callable_name(concrete(args[0])) + " " + where();
}

// Does this operation do nothing with the objects that it is given but to keep them?
bool Recorder::only_keeps(IrOp op, PyObject* callee) {
  switch (op) {
    case IrOp::k_dict_set:
    case IrOp::k_dict_merge:
    case IrOp::k_list_append:
    case IrOp::k_list_set:
    case IrOp::k_list_extend_list:
    case IrOp::k_set_attr_known: return true;
    case IrOp::k_call_pure: return callee == reinterpret_cast<PyObject*>(&PySuper_Type);
    case IrOp::k_call_known: {
      const std::string name = callable_name(callee);
      return is_of_container(name) || name == "object.__setattr__";
    }
    default: return false;
  }
}

// Tensors that variables hold and whose graph a coming backward() may need.
std::vector<V> Recorder::live_graphs() {
  std::vector<V> found;
  seen_.clear();
  const auto look = [&](const auto& self, V v) -> void {
    if (!seen_.insert(static_cast<size_t>(v))) return;
    const Value& value = at(v);
    if (value.has_graph() && freed_.count(value.ref) == 0) found.push_back(v);
    for (const V item : value.items) self(self, item);
  };
  for (const ShadowFrame& frame : frames_)
    for (V v : frame.slots) look(look, v);
  for (const auto& [place, v] : pending_) look(look, v);
  for (const auto& [object, late] : late_.of) look(look, late.value);
  return found;
}

// A trace that ends here would have to build it.
bool Recorder::graph_alive() { return !live_graphs().empty(); }

// These tensors are about to be written. A graph that goes back to one of them could not be built any more later: the Python tensor is made now.
void Recorder::before_write(const std::vector<Ref>& written) {
  std::set<int32_t> storages;
  for (Ref ref : written)
    if (trace_.insts[ref].op == IrOp::k_unbox_tensor && trace_.metas[trace_.insts[ref].meta].requires_grad) storages.insert(trace_.metas[trace_.insts[ref].meta].storage);
  if (storages.empty()) return;
  for (V v : live_graphs()) {
    if (at(v).object != kNoRef) continue;
    for (Ref ref : graph_of({v})) {
      if (trace_.insts[ref].op != IrOp::k_unbox_tensor || storages.count(trace_.metas[trace_.insts[ref].meta].storage) == 0) continue;
      as_object(v);
      break;
    }
  }
}

// Of each instruction: the last one that it is needed for, as an operand or where the trace is left.
static std::vector<Ref> last_uses(const ir::Trace& trace) {
  const size_t count = trace.insts.size();
  std::vector<Ref> last(count), left_at(trace.snapshots.size(), 0);
  for (Ref r = 0; r < count; r++) {
    last[r] = r;
    if (trace.insts[r].snapshot >= 0) left_at[static_cast<size_t>(trace.insts[r].snapshot)] = r;
  }
  const auto needed = [&](Ref ref, Ref at) {
    if (ref < count) last[ref] = std::max(last[ref], at);  // no empty slot
  };
  std::vector<Ref> shown_at(trace.frames.size(), 0);
  for (size_t s = 0; s < trace.snapshots.size(); s++) {
    for (uint32_t frame : trace.snapshots[s].frames) shown_at[frame] = std::max(shown_at[frame], left_at[s]);
    for (const ir::SnapshotStore& store : trace.snapshots[s].stores) needed(store.value, left_at[s]);
  }
  for (size_t f = 0; f < trace.frames.size(); f++)
    for (Ref slot : trace.frames[f].slots) needed(slot, shown_at[f]);
  for (Ref r = static_cast<Ref>(count); r-- > 0;) {
    const ir::Inst& inst = trace.insts[r];
    for (uint32_t k = 0; k < inst.count; k++) needed(trace.arg(r, k), inst.sunk ? last[r] : r);
  }
  return last;
}

void set_operands(ir::Trace* trace, Ref ref, const std::vector<Ref>& operands) {
  trace->insts[ref].first = static_cast<uint32_t>(trace->operands.size());
  trace->insts[ref].count = static_cast<uint32_t>(operands.size());
  trace->operands.insert(trace->operands.end(), operands.begin(), operands.end());
}

// What this call is made of again where this wrap is; kNoRef: it is an operation of torch's.
Ref Recorder::recipe_at(Ref call, Ref wrap) const {
  const auto known = recipes_.find(call);
  Ref found = kNoRef;
  if (known != recipes_.end())
    for (Ref recipe : known->second)
      if (recipe < wrap) found = recipe;
  return found;
}

// Of the calls of torch.autograd.Function, and of tensors with hooks, that a tensor's graph goes through, in order.
std::vector<Ref> Recorder::recipes_of(Ref tensor, Ref wrap) const {
  std::vector<Ref> found;
  std::set<Ref> calls;
  for (Ref ref : graph_of(std::set<Ref>{tensor}))
    if (trace_.insts[ref].op == IrOp::k_result) calls.insert(trace_.arg(ref, 0));
  for (Ref call : calls)
    if (const Ref recipe = recipe_at(call, wrap); recipe != kNoRef) found.push_back(recipe);
  return found;
}

// Is this what a call has written that autograd did not see, to a tensor of a graph?
static bool written_unseen(const ir::Trace& trace, Ref written) {
  const Ref before = ir::written_operand(trace, written);
  if (before == kNoRef || trace.insts[before].op != IrOp::k_result) return false;
  const ir::AtenCall &call = trace.calls[trace.insts[trace.arg(written, 0)].imm], &made = trace.calls[trace.insts[trace.arg(before, 0)].imm];
  const ir::AtenArg& operand = call.args[static_cast<size_t>(call.result_alias[trace.insts[written].imm])];
  return !call.grad_mode && !call.is_random && !operand.ints.empty() && operand.ints[0] != 0 && (is_differentiated(made) || written_unseen(trace, before));
}

// Is this result written in place, and not the continuation of a graph that what is written had?
static bool fills_result(const ir::AtenCall& call, int64_t result) {
  const int32_t argument = call.result_alias[static_cast<size_t>(result)];
  if (std::find(call.mutates.begin(), call.mutates.end(), argument) == call.mutates.end()) return false;
  const ir::AtenArg& written = call.args[static_cast<size_t>(argument)];
  return written.ints.empty() || written.ints[0] == 0;  // whether it required gradients
}

// Graphs that are made where a trace is left are rebuilt together, in the order of the program. One that is made in the middle of a run is
// rebuilt by itself: does that write what a graph that is made later has to read before?
static bool graphs_cross(const ir::Trace& trace, const std::vector<Ref>& live, const Writes& writes) {
  const auto forward_of = [&](Ref wrap) -> const std::vector<Ref>& { return trace.wraps[trace.insts[wrap].imm].forward; };
  ir::Marks calls(trace.insts.size());
  for (Ref early : live) {
    const auto mutates = [&](Ref call) { return !trace.calls[trace.insts[call].imm].mutates.empty(); };
    if (trace.insts[early].sunk || std::none_of(forward_of(early).begin(), forward_of(early).end(), mutates)) continue;
    calls.clear();
    for (Ref call : forward_of(early)) calls.insert(call);
    for (Ref late : live) {
      if (!trace.insts[late].sunk && late <= early) continue;
      for (Ref call : forward_of(late)) {
        if (call > early || calls.contains(call)) continue;
        for (uint32_t k = 0; k < trace.insts[call].count; k++)
          if (const Ref read = trace.arg(call, k); trace.insts[read].type == Type::kTensor && writes.by(calls, read, call, early)) return true;
      }
    }
  }
  return false;
}

// For each tensor that becomes a Python object: has its graph been freed where it is made, and if not, what rebuilds it under autograd.
// False: nothing can.
bool Recorder::fill_wraps() {
  size_t count = trace_.insts.size();
  std::vector<size_t> freed_at;  // positions of graph_freed
  for (size_t i = 0; i < count; i++)
    if (trace_.insts[i].op == IrOp::k_graph_freed) freed_at.push_back(i);
  // A trace that ends before its backward() frees nothing.
  const auto is_freed = [&](Ref tensor, size_t from, size_t until) {
    return std::any_of(freed_at.begin(), freed_at.end(), [&](size_t position) {
      if (position < from || position >= until) return false;
      for (uint32_t k = 0; k < trace_.insts[position].count; k++)
        if (trace_.arg(static_cast<Ref>(position), k) == tensor) return true;
      return false;
    });
  };
  // Objects that autograd has seen written: each exit gives them the graph that they have there, as to those whose graph a backward() will free.
  const auto gives_graph = [&](const ir::SnapshotStore& store) { return store.dict < count && trace_.insts[store.dict].op == IrOp::k_wrap; };
  std::set<Ref> written_objects;
  for (const ir::Snapshot& snapshot : trace_.snapshots)
    for (const ir::SnapshotStore& store : snapshot.stores)
      if (const auto own = late_.own.find(store.dict); gives_graph(store) && own != late_.own.end() && store.value >= own->second) written_objects.insert(store.dict);
  const auto is_freed_early = [&](Ref wrap) {
    if (written_objects.count(wrap) != 0) return true;
    const auto early = freed_early_.find(wrap);
    return early != freed_early_.end() && (early->second == kNoRef ? is_freed(trace_.arg(wrap, 0), wrap, count) : early->second < count);
  };
  for (ir::Snapshot& snapshot : trace_.snapshots)  // what has its graph needs no other
    std::erase_if(snapshot.stores, [&](const ir::SnapshotStore& store) { return gives_graph(store) && !is_freed_early(store.dict); });
  std::vector<Ref> live;
  for (size_t i = 0; i < count; i++) {
    if (trace_.insts[i].op != IrOp::k_wrap) continue;
    ir::Wrap& wrap = trace_.wraps[trace_.insts[i].imm];
    if (looks_at_late(trace_.insts[i])) return false;
    if (!wrap.requires_grad || wrap.is_leaf) continue;
    wrap.freed_behind.clear();  // of a longer trace, that has been cut
    Ref tensor = trace_.arg(static_cast<Ref>(i), 0);
    wrap.freed = is_freed(tensor, 0, i) || is_freed_early(static_cast<Ref>(i));
    if (wrap.freed) continue;
    live.push_back(static_cast<Ref>(i));
    if (recipes_.empty()) continue;
    const std::vector<Ref> needed = recipes_of(tensor, static_cast<Ref>(i));  // more than are repeated, maybe
    if (!needed.empty() && !trace_.insts[i].sunk) return false;  // it is made in the middle of a run, where no recipe is
    std::vector<Ref> operands{tensor};
    operands.insert(operands.end(), needed.begin(), needed.end());
    set_operands(&trace_, static_cast<Ref>(i), operands);
  }
  if (live.empty()) return true;
  const Writes writes(trace_);
  const std::vector<Ref> last_use = last_uses(trace_);
  std::vector<Ref> work, leaves, slice;            // work: a heap of what is to be looked at, the last instruction first
  ir::Marks queued(count), rerun(count), used(count);  // rerun: the slice
  std::vector<std::pair<Ref, Ref>> uses(count);    // of what is used: first and last in the slice
  for (Ref i : live) {
    ir::Wrap& wrap = trace_.wraps[trace_.insts[i].imm];
    Ref tensor = trace_.arg(i, 0);
    const Ref until = trace_.insts[i].sunk ? last_use[i] : static_cast<Ref>(i);  // it is built up to there
    // Backward slice through the differentiable operations.
    leaves.clear();
    slice.clear();
    queued.clear();
    rerun.clear();
    used.clear();
    const auto need = [&](Ref ref) {
      if (ref > i || !queued.insert(ref)) return;  // operands stand before what they are used for
      work.push_back(ref);
      std::push_heap(work.begin(), work.end());
    };
    bool draws = false;  // again, what has been written
    // A value, as it is used at an instruction: with what autograd has seen written to it through its views, on memory that the trace has made.
    const auto need_value = [&](Ref ref, Ref at) {
      need(ref);
      if (ref < i && trace_.insts[ref].type == Type::kTensor && input_storages_.count(trace_.metas[trace_.insts[ref].meta].storage) == 0 && writes.graph_between(ref, ref, at, rerun))
        writes.each(ref, at, [&](Ref call) {
          draws = draws || trace_.calls[trace_.insts[call].imm].is_random;
          need(call);
        });
    };
    need_value(tensor, i);
    while (!work.empty()) {
      std::pop_heap(work.begin(), work.end());
      const Ref r = work.back();
      work.pop_back();
      const ir::Inst& inst = trace_.insts[r];
      const auto node = requires_graph_.find(r);
      if (node != requires_graph_.end() && is_freed(r, 0, i) && !writes.by(rerun, r, r, until) && !writes.between(r, used.contains(r) ? uses[r].first : i, until, rerun)) {
        leaves.push_back(r);  // its value is all that is left of it
        wrap.freed_behind.push_back(node->second);
      } else if (inst.op == IrOp::k_result) {
        const ir::AtenCall& call = trace_.calls[trace_.insts[trace_.arg(r, 0)].imm];
        auto [first, last] = used.contains(r) ? uses[r] : std::pair<Ref, Ref>(i, i);
        // A random call that autograd has recorded is run again with the numbers that it drew; what one has only filled is there.
        const bool fills = call.is_random && fills_result(call, trace_.insts[r].imm);
        // What autograd does not see written keeps the graph that it has: the write is done again, on what the graph's own calls make anew.
        if (!written_unseen(trace_, r) && (!is_differentiated(call) || fills)) {
          if (writes.between(r, first, until, rerun) || (!fills && writes.graph_between(r, r, until, rerun))) return false;
          if (!writes.by(rerun, r, r, until)) {
            leaves.push_back(r);  // to autograd what it gave or wrote is a leaf
            continue;
          }
          // A call that is run again writes it, and would do so twice: that one needs memory as it was before.
          const bool of_input = ir::is_view_call(trace_, trace_.insts[trace_.arg(r, 0)]) && input_storages_.count(trace_.metas[inst.meta].storage) != 0;
          if (call.is_random || of_input || writes.between(r, r, until, rerun)) return false;
          need(trace_.arg(r, 0));
        } else if (writes.between(r, r, last, rerun)) {
          return false;  // written through another name before it was used: the calls that made it would give what it was before
        } else {
          need(trace_.arg(r, 0));
        }
      } else if (inst.op == IrOp::k_aten) {
        rerun.insert(r);
        slice.push_back(r);
        for (uint32_t k = 0; k < inst.count; k++) {
          const Ref operand = trace_.arg(r, k);
          need_value(operand, r);
          if (operand > i) continue;
          if (used.insert(operand)) uses[operand] = {r, r};
          uses[operand].first = r;  // walking backwards
        }
      } else if (inst.type == Type::kTensor) {
        if (used.contains(r) && writes.between(r, uses[r].first, until, rerun)) return false;
        leaves.push_back(r);
      }
    }
    if (draws) return false;
    std::reverse(slice.begin(), slice.end());
    std::reverse(leaves.begin(), leaves.end());
    wrap.forward = slice;
    std::vector<Ref> operands{tensor};
    for (Ref leaf : leaves)
      if (trace_.insts[leaf].type == Type::kTensor) operands.push_back(leaf);
    for (Ref call : slice)
      if (const Ref recipe = recipe_at(call, i); recipe != kNoRef) operands.push_back(recipe);
    set_operands(&trace_, i, operands);
  }
  return !graphs_cross(trace_, live, writes);
}

}  // namespace dynvm::tracer
