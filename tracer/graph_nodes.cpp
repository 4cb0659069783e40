// Graphs that outlive a trace: as autograd nodes of their own, with a compiled backward (runtime/torch/graph_nodes.h).
//
// Where a trace ends, tensors with graphs may be alive: variables, what a list or an object holds. Each operation that one of them was computed by belongs to the part of all operations that the same of them
// were computed by. A part becomes one node: where one tensor was computed from another, that is an output of the first part and an input of the second, so that hooks, autograd.grad and second uses
// find what they find in eager. (An operation that feeds another belongs to at least as many tensors, so that parts come one after the other.)
//
// A view of another tensor that is handed out is that view of the script's other tensor, so that writes through either are known to both. Where nothing else was computed from it it is no part's.
//
// A part's backward is recorded at the end of the recording. The part's operations run once more, apart from the program (bridge::Rehearsal), with its inputs as leaves; torch differentiates the outputs by these,
// and the operations that this becomes are a trace of their own. What it reads of the rehearsal is what the node saves of each run.
// Where sizes are numbers it is learnt, and made for each size, with the recording (size_backwards.h).
//
// Inputs: the trace, its wraps filled. Outputs: nodes at those wraps that are handed out, backwards_.
// Not done, so that the trace is given up where it has to: hooks or Functions in between, numbers that an operation's gradient makes others of, writes to what parts share or through views.
// Invariants: nothing of the program changes: no hook runs, no graph is freed, no random number is drawn.
// Tests: tests/traces/cases/graph_nodes.py.
#include <algorithm>
#include <bit>
#include <functional>
#include <map>

#include "ir/effects.h"
#include "runtime/base/heuristics.h"
#include "runtime/base/switches.h"
#include "tracer/recorder.h"
#include "tracer/size_walk.h"
#include "tracer/trace_writes.h"

namespace dynvm::tracer {

using bridge::OpRecord;
using ir::kNoRef;
using ir::Ref;
using ir::Type;
using IrOp = ir::Op;

namespace {

constexpr size_t kMostTensors = 64;  // bits of a word

struct Part {
  uint64_t owners = 0;
  ir::GraphNode node;
};

// The value that autograd sees: a detached one that looks the same is marked where it is used, and what has been written in place, unseen by it, is the tensor that it was.
Ref seen_by_autograd(const ir::Trace& trace, Ref value) {
  for (;;) {
    if (trace.insts[value].op != IrOp::k_result) return value;
    const ir::Inst& call = trace.insts[trace.arg(value, 0)];
    const Ref written = ir::written_operand(trace, value);
    if (written != kNoRef && is_differentiated(trace.calls[call.imm])) return value;
    if (written != kNoRef) value = written;
    else if (trace.calls[call.imm].name == "aten::detach") value = trace.arg(call, 0);
    else return value;
  }
}

// Calls visit(Ref) for each result of a call: they stand right behind it.
template <class Visit>
void for_each_result(const ir::Trace& trace, Ref call, Visit visit) {
  for (Ref r = call + 1; r < trace.insts.size() && trace.insts[r].op == IrOp::k_result && trace.arg(r, 0) == call; ++r) visit(r);
}

// An argument that is written and is none of the results: running means and variances. Gradients do not depend on what it holds later.
bool keeps_statistics(const ir::AtenCall& call, int32_t argument) {
  return !call.args[static_cast<size_t>(argument)].operands.empty() && std::find(call.result_alias.begin(), call.result_alias.end(), argument) == call.result_alias.end();
}

class Parts {
 public:
  explicit Parts(const ir::Trace& trace) : trace_(trace) {}

  // tensors: those that are handed out, with the calls that each was computed by. Gives why that is nothing for nodes.
  std::string divide(const std::map<Ref, std::vector<Ref>>& tensors) {
    uint64_t owner = 1;
    for (const auto& [tensor, calls] : tensors) {
      owner_of_[tensor] = owner;
      for (Ref call : calls) owners_[call] |= owner;
      owner <<= 1;
    }
    join_writes();
    for (const auto& [call, owners] : owners_) {
      if (!fits(call)) return trace_.calls[trace_.insts[call].imm].name + " in it";
      const auto found = std::find_if(parts_.begin(), parts_.end(), [owners = owners](const Part& part) { return part.owners == owners; });
      Part& part = found == parts_.end() ? parts_.emplace_back() : *found;
      part.owners = owners;
      part.node.calls.push_back(call);
    }
    std::stable_sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) { return std::popcount(a.owners) > std::popcount(b.owners); });
    const std::string why = find_inputs();
    find_reach();
    return why;
  }

  std::vector<Part>& all() { return parts_; }
  size_t calls() const { return owners_.size(); }
  bool numbers() const { return numbers_; }  // it was for numbers that change
  uint64_t owner_of(Ref tensor) const { return owner_of_.at(tensor); }

 private:
  // The call of a part that has made the memory of this value; kNoRef: none has.
  Ref maker_of_memory(Ref value) const {
    while (value != kNoRef && trace_.insts[value].op == IrOp::k_result) {
      const Ref made = trace_.arg(value, 0);
      if (owners_.count(made) == 0) break;
      const ir::AtenCall& how = trace_.calls[trace_.insts[made].imm];
      const int32_t of = how.result_alias[static_cast<size_t>(trace_.insts[value].imm)];
      if (of < 0) return made;
      const std::vector<int32_t>& from = how.args[static_cast<size_t>(of)].operands;
      value = from.empty() || from[0] < 0 ? kNoRef : trace_.arg(made, static_cast<uint32_t>(from[0]));
    }
    return kNoRef;
  }

  // True: it did not.
  bool belong(Ref call, uint64_t owners) {
    uint64_t& own = owners_.at(call);
    if ((owners & ~own) == 0) return false;
    own |= owners;
    for (uint32_t k = 0; k < trace_.insts[call].count; ++k) {
      const Ref operand = trace_.arg(call, k);
      if (trace_.insts[operand].op == IrOp::k_result && owners_.count(trace_.arg(operand, 0)) != 0) belong(trace_.arg(operand, 0), owners);
    }
    return true;
  }

  // What writes memory belongs where that was made: an LSTM's cell computes all gates at once, and writes the one that only its output needs in place.
  void join_writes() {
    bool joined = false;
    for (const auto& [call, owners] : owners_) {
      const ir::AtenCall& how = trace_.calls[trace_.insts[call].imm];
      for (const int32_t argument : how.mutates) {
        if (keeps_statistics(how, argument)) continue;
        for (const int32_t operand : how.args[static_cast<size_t>(argument)].operands)
          if (const Ref maker = operand < 0 ? kNoRef : maker_of_memory(trace_.arg(call, static_cast<uint32_t>(operand))); maker != kNoRef) joined |= belong(call, owners_.at(maker));
      }
    }
    if (joined) join_writes();  // of makers that more tensors have been computed by since
  }

  bool fits(Ref call) {
    const ir::Inst& inst = trace_.insts[call];
    const ir::AtenCall& how = trace_.calls[inst.imm];
    if (how.defines_sizes || !std::all_of(how.mutates.begin(), how.mutates.end(), [&](int32_t argument) { return writes_own(call, argument); })) return false;
    for (size_t a = 0; a < how.args.size(); ++a) {
      if (how.args[a].kind != ir::AtenArg::kScalar && how.args[a].kind != ir::AtenArg::kScalarTensor) continue;
      if (use_of_number(how, a) == NumberUse::kDerived) return numbers_ = true, false;
    }
    for (uint32_t k = 0; k < inst.count; ++k)
      if (trace_.insts[trace_.arg(inst, k)].type == Type::kTensor && !plain(trace_.insts[trace_.arg(inst, k)].meta)) return false;
    return std::all_of(how.results.begin(), how.results.end(), [this](int32_t meta) { return meta < 0 || plain(meta); });
  }
  // Is what it writes memory that calls of the same part have made, and look at, or statistics that it keeps?
  bool writes_own(Ref call, int32_t number) const {
    if (keeps_statistics(trace_.calls[trace_.insts[call].imm], number)) return true;
    const ir::AtenArg& argument = trace_.calls[trace_.insts[call].imm].args[static_cast<size_t>(number)];
    return std::all_of(argument.operands.begin(), argument.operands.end(), [&](int32_t operand) {
      const Ref maker = operand < 0 ? kNoRef : maker_of_memory(trace_.arg(call, static_cast<uint32_t>(operand)));
      return maker != kNoRef && owners_.at(maker) == owners_.at(call);
    });
  }
  bool plain(int32_t meta) const { return meta >= 0 && trace_.metas[meta].open == 0 && !trace_.metas[meta].symbolic; }

  // Operands that gradients go to, as autograd sees them.
  std::vector<Ref> differentiated(Ref call) const {
    const ir::AtenCall& how = trace_.calls[trace_.insts[call].imm];
    std::vector<Ref> found;
    if (how.name == "aten::detach") return found;
    for (int32_t operand : differentiated_operands(how)) found.push_back(seen_by_autograd(trace_, trace_.arg(call, static_cast<uint32_t>(operand))));
    return found;
  }

  Part* part_of(Ref value) {
    if (trace_.insts[value].op != IrOp::k_result) return nullptr;
    const auto owners = owners_.find(trace_.arg(value, 0));
    if (owners == owners_.end()) return nullptr;
    return &*std::find_if(parts_.begin(), parts_.end(), [&](const Part& part) { return part.owners == owners->second; });
  }

  static void add(std::vector<Ref>* values, Ref value) {
    if (std::find(values->begin(), values->end(), value) == values->end()) values->push_back(value);
  }

  std::string find_inputs() {
    for (const auto& [tensor, owner] : owner_of_) {
      Part* part = part_of(seen_by_autograd(trace_, tensor));
      if (part == nullptr || seen_by_autograd(trace_, tensor) != tensor) return "a tensor that shares its graph";
      add(&part->node.outputs, tensor);
    }
    for (Part& part : parts_)
      for (Ref call : part.node.calls)
        for (Ref operand : differentiated(call)) {
          Part* from = part_of(operand);
          const ir::Inst& inst = trace_.insts[operand];
          if (from == nullptr && (inst.op != IrOp::k_unbox_tensor || !trace_.metas[inst.meta].requires_grad)) return "a leaf that the trace has made";
          if (from == &part) continue;
          if (from != nullptr) add(&from->node.outputs, operand);
          add(&part.node.inputs, operand);
        }
    if (graph_before_write()) return "the graph of a tensor before it was written in place";
    std::erase_if(parts_, [](const Part& part) { return part.node.outputs.empty(); });  // what no gradient goes through
    const bool fine = std::all_of(parts_.begin(), parts_.end(), [](const Part& part) { return !part.node.inputs.empty() && part.node.outputs.size() <= kMostTensors; });
    return fine ? "" : "too many outputs";
  }

  // Is an output what a call in place writes after that? Before and after are one tensor, and an iteration has one graph for it.
  bool graph_before_write() {
    for (const auto& [call, owners] : owners_) {
      const ir::AtenCall& how = trace_.calls[trace_.insts[call].imm];
      for (const int32_t argument : how.mutates)
        for (const int32_t operand : how.args[static_cast<size_t>(argument)].operands) {
          if (operand < 0) continue;
          const Ref before = trace_.arg(call, static_cast<uint32_t>(operand));
          const Part* part = part_of(before);
          if (part != nullptr && std::find(part->node.outputs.begin(), part->node.outputs.end(), before) != part->node.outputs.end()) return true;
        }
    }
    return false;
  }

  void find_reach() {
    for (Part& part : parts_) {
      std::map<Ref, uint64_t> reached;  // values: the outputs computed from them
      for (size_t k = 0; k < part.node.outputs.size(); ++k) reached[part.node.outputs[k]] |= uint64_t{1} << k;
      for (size_t k = part.node.calls.size(); k-- > 0;) {
        const Ref call = part.node.calls[k];
        uint64_t bits = 0;
        for_each_result(trace_, call, [&](Ref result) {
          if (const auto known = reached.find(result); known != reached.end()) bits |= known->second;
        });
        for (Ref operand : differentiated(call)) reached[operand] |= bits;
      }
      for (Ref input : part.node.inputs) part.node.reached_by.push_back(reached[input]);
    }
  }

  const ir::Trace& trace_;
  std::map<Ref, uint64_t> owner_of_, owners_;  // by tensor, by call
  bool numbers_ = false;
  std::vector<Part> parts_;
};

// What a tensor is a view of, from its maker on: the memory's first value, with the calls between them. None: it is no view, or one of detached memory.
struct ViewOf {
  Ref base = kNoRef;
  std::vector<Ref> views;
};
ViewOf view_of(const ir::Trace& trace, Ref tensor) {
  ViewOf found{tensor, ir::views_behind(trace, tensor)};
  for (Ref view : found.views) {
    const ir::AtenCall& call = trace.calls[trace.insts[view].imm];
    if (call.name == "aten::detach" || found.base == kNoRef || trace.insts[found.base].op != IrOp::k_result || trace.arg(found.base, 0) != view) return {};
    found.base = trace.arg(view, static_cast<uint32_t>(call.args[static_cast<size_t>(call.result_alias[static_cast<size_t>(trace.insts[found.base].imm)])].operands[0]));
  }
  return found.views.empty() ? ViewOf{} : found;
}

// Those of these calls that a value was computed by.
std::vector<Ref> calls_behind(const ir::Trace& trace, Ref value, const std::vector<Ref>& calls) {
  std::set<Ref> needed{value};
  std::vector<Ref> found;
  for (size_t k = calls.size(); k-- > 0;) {
    bool is_needed = false;
    for_each_result(trace, calls[k], [&](Ref result) { is_needed |= needed.count(result) != 0; });
    const ir::AtenCall& how = trace.calls[trace.insts[calls[k]].imm];
    for (int32_t argument : how.mutates)
      for (int32_t operand : how.args[static_cast<size_t>(argument)].operands) is_needed |= operand >= 0 && needed.count(trace.arg(calls[k], static_cast<uint32_t>(operand))) != 0;
    if (!is_needed) continue;
    for (uint32_t operand = 0; operand < trace.insts[calls[k]].count; ++operand) needed.insert(trace.arg(calls[k], operand));
    found.push_back(calls[k]);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

// Which are views of others that are handed out, or of one that several of them look at, which is one of them then? Outputs: for each, what it is a view of. Those that nothing else was
// computed from are taken from the tensors that nodes give.
std::map<Ref, Ref> find_views(const ir::Trace& trace, std::map<Ref, std::vector<Ref>>* tensors) {
  std::map<int32_t, std::vector<Ref>> on_memory;
  for (const auto& [tensor, calls] : *tensors) on_memory[trace.metas[trace.insts[tensor].meta].storage].push_back(tensor);
  std::map<Ref, Ref> found;
  for (const auto& [storage, sharing] : on_memory) {
    if (sharing.size() < 2) continue;
    for (Ref tensor : sharing) {
      const ViewOf view = view_of(trace, tensor);
      if (view.base == kNoRef) continue;
      const bool used = std::any_of(tensors->begin(), tensors->end(), [&](const auto& other) {
        const bool beside = std::find(sharing.begin(), sharing.end(), other.first) != sharing.end();
        return !beside && std::find(other.second.begin(), other.second.end(), view.views[0]) != other.second.end();
      });
      const std::vector<Ref> calls = calls_behind(trace, view.base, tensors->at(tensor));
      if (calls.empty()) continue;
      found[tensor] = view.base;
      tensors->emplace(view.base, calls);
      if (!used) tensors->erase(tensor);
    }
  }
  return found;
}

// The wraps that an exit by this snapshot makes.
std::set<Ref> wraps_shown(const ir::Trace& trace, const ir::Snapshot& snapshot) {
  std::set<Ref> seen, wraps;
  const std::function<void(Ref)> look = [&](Ref value) {
    if (value >= trace.insts.size() || !seen.insert(value).second) return;
    const ir::Inst& inst = trace.insts[value];
    if (inst.op == IrOp::k_wrap) wraps.insert(value);
    if (!inst.sunk) return;
    for (uint32_t k = 0; k < inst.count; ++k) look(trace.arg(inst, k));
  };
  for (uint32_t number : snapshot.frames) {
    look(trace.frames[number].function);
    look(trace.frames[number].continuation_value);
    for (Ref slot : trace.frames[number].slots) look(slot);
  }
  for (const ir::SnapshotStore& store : snapshot.stores) look(store.value);
  return wraps;
}

// Objects that are held for as long as this lives.
struct Held : std::vector<PyObject*> {
  Held() = default;
  Held(const Held&) = delete;
  ~Held() {
    for (PyObject* each : *this) Py_XDECREF(each);
  }
};

// Writes the trace of a backward: what it is given comes in the root frame's slots, and the gradients are what the slots behind those have when it is left.
class BackwardWriter {
 public:
  BackwardWriter(const ir::Trace& of, bridge::Recorder& aten, PyCodeObject* code, int unit) : aten_(aten) {
    out_.id = of.id;
    out_.name = of.name + " backward";
    root_.code = code;
    root_.unit = unit;
    out_.snapshots.emplace_back();
  }

  // A number that it is given, the next one.
  void number(const ir::AtenArg& like) {
    const bool is_float = ir::is_floating(like.dtype);
    numbers_.push_back(out_.add(is_float ? IrOp::k_unbox_float : IrOp::k_unbox_int, is_float ? Type::kFloat : Type::kInt, {next_slot()}, 0, 0));
  }

  // A tensor that it is given, the next one.
  void input(int32_t id, ir::TensorMeta meta) {
    const int32_t index = add_meta(std::move(meta));
    const Ref slot = next_slot();
    const Ref ref = out_.add(IrOp::k_unbox_tensor, Type::kTensor, {slot}, index, 0);
    out_.insts[ref].meta = index;
    objects_[ref] = slot;
    values_[id] = ref;
    given_.insert(out_.metas[index].storage);
  }
  bool has(int32_t id) const { return values_.count(id) != 0; }

  // reads: its numbers that are some of those.
  bool call(const OpRecord& record, const std::vector<NumberRead>& reads) {
    ir::AtenCall call = record.call;
    std::vector<Ref> operands;
    std::vector<int32_t> position(record.tensors.size(), -1);
    for (size_t i = 0; i < record.tensors.size(); ++i) {
      if (record.tensors[i] < 0) continue;
      position[i] = static_cast<int32_t>(operands.size());
      operands.push_back(values_.at(record.tensors[i]));
    }
    for (ir::AtenArg& arg : call.args)
      for (int32_t& operand : arg.operands)
        if (operand >= 0) operand = position[static_cast<size_t>(operand)];
    for (int32_t argument : call.mutates)
      for (int32_t operand : call.args[static_cast<size_t>(argument)].operands)
        if (operand >= 0 && given_.count(out_.metas[out_.insts[operands[static_cast<size_t>(operand)]].meta].storage) != 0) return false;
    for (const NumberRead& read : reads) {
      ir::AtenArg& arg = call.args[read.argument];
      arg.operands = {static_cast<int32_t>(operands.size())};
      operands.push_back(numbers_[read.number]);
      if (arg.kind != ir::AtenArg::kNumberTensor) arg.dtype = ir::DType::kI64;
      arg.kind = arg.kind == ir::AtenArg::kNumberTensor ? ir::AtenArg::kScalarTensor : ir::AtenArg::kScalar;
    }
    const std::vector<int32_t> ids = call.results;
    for (int32_t& result : call.results) result = result < 0 ? -1 : add_meta(aten_.meta(result));
    call.in_backward = true;
    call.grad_mode = false;
    out_.calls.push_back(call);
    const Ref made = out_.add(IrOp::k_aten, Type::kVoid, operands, static_cast<int64_t>(out_.calls.size()) - 1, 0);
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0) continue;
      const Ref result = out_.add(IrOp::k_result, Type::kTensor, {made}, static_cast<int64_t>(i));
      out_.insts[result].meta = call.results[i];
      values_[ids[i]] = result;
    }
    return true;
  }

  // gradients: ids, -1 for none.
  ir::Trace finish(const std::vector<int32_t>& gradients) {
    ir::SnapshotFrame end = root_;
    root_.slots.assign(inputs_, ir::kSlotUnchanged);
    end.slots = root_.slots;
    for (int32_t id : gradients) end.slots.push_back(id < 0 ? ir::kSlotNull : object(values_.at(id)));
    out_.snapshots[0].frames.push_back(out_.add_frame(root_, 0));
    ir::Snapshot last;
    last.frames.push_back(out_.add_frame(end, 0));
    out_.snapshots.push_back(std::move(last));
    out_.add(IrOp::k_leave, Type::kVoid, {}, 0, 1);
    return std::move(out_);
  }

 private:
  Ref next_slot() { return out_.add(IrOp::k_slot, Type::kObject, {}, static_cast<int64_t>(inputs_++)); }

  Ref object(Ref value) {
    if (const auto known = objects_.find(value); known != objects_.end()) return known->second;
    out_.wraps.emplace_back();
    return objects_[value] = out_.add(IrOp::k_wrap, Type::kObject, {value}, static_cast<int64_t>(out_.wraps.size()) - 1);
  }

  int32_t add_meta(ir::TensorMeta meta) {
    const auto storage = storages_.emplace(meta.storage, out_.num_storages);
    if (storage.second) out_.num_storages++;
    meta.storage = storage.first->second;
    out_.metas.push_back(std::move(meta));
    return static_cast<int32_t>(out_.metas.size()) - 1;
  }

  bridge::Recorder& aten_;
  ir::Trace out_;
  ir::SnapshotFrame root_;
  size_t inputs_ = 0;
  std::vector<Ref> numbers_;
  std::map<int32_t, Ref> values_;     // by the recorder's id
  std::map<Ref, Ref> objects_;
  std::map<int32_t, int32_t> storages_;
  std::set<int32_t> given_;           // storages
};

bool can_hold(const OpRecord& record) {
  return !record.raised && record.unsupported.empty() && record.number == OpRecord::kNoNumber && !record.call.is_random && !record.call.defines_sizes && !record.call.moves;
}

}  // namespace

// The part of the recorded iteration that has been rehearsed.
struct Recorder::Rehearsal {
  std::unique_ptr<bridge::Rehearsal> torch;
  std::set<Ref> leaves;          // inputs of parts
  std::map<int32_t, Ref> of_id;  // the recorder's ids of its tensors: the values of the trace that these stand for

  // What the recorder sees from now on as this value.
  bool name(bridge::Recorder& aten, Ref value) {
    PyObject* object = torch->object(static_cast<int32_t>(value));
    const int32_t id = object == nullptr ? -1 : aten.tensor_id(object);
    Py_XDECREF(object);
    if (id >= 0) of_id[id] = value;
    return id >= 0;
  }
};

// The tensor object that a value of the recorded iteration was; borrowed, null where it is gone.
PyObject* Recorder::object_of(Ref tensor) const {
  const ir::Inst& inst = trace_.insts[tensor];
  const bool outside = inst.op == IrOp::k_unbox_tensor;
  const Ref ref = outside ? trace_.arg(inst, 0) : tensor;
  if (outside && trace_.insts[ref].op == IrOp::k_const_obj) return static_cast<PyObject*>(trace_.objects[trace_.insts[ref].imm].pointer);
  const auto known = std::find_if(values_.begin(), values_.end(), [&](const Value& value) {
    return value.ref == ref && (outside || value.kind == Value::kTensor) && value.concrete != nullptr && is_tensor(value.concrete);
  });
  return known == values_.end() ? nullptr : known->concrete;
}

// Has the rehearsal this value? The program's where there is an object of it, unless it is to be written (own), else by the calls that made it.
bool Recorder::rehearse(Rehearsal& rehearsal, Ref value, bool own) {
  if (rehearsal.torch->has(static_cast<int32_t>(value))) return true;
  if (const Ref seen = seen_by_autograd(trace_, value); seen != value && rehearsal.leaves.count(seen) != 0) {
    ir::AtenCall same;
    same.name = "aten::detach";  // which gives the tensor itself
    return rehearse(rehearsal, seen, false) && rehearsal.torch->call(same, {static_cast<int32_t>(seen)}, {static_cast<int32_t>(value)}, false);
  }
  const bool leaf = rehearsal.leaves.count(value) != 0;
  PyObject* const object = object_of(value);
  if (object != nullptr && rehearsal.torch->give(static_cast<int32_t>(value), object, leaf, own)) return rehearsal.name(*aten_, value);
  if (leaf || trace_.insts[value].op != IrOp::k_result) return false;
  return rehearse_call(rehearsal, trace_.arg(value, 0)) && rehearsal.torch->has(static_cast<int32_t>(value));
}

bool Recorder::rehearse_call(Rehearsal& rehearsal, Ref call) {
  const ir::Inst inst = trace_.insts[call];
  const ir::AtenCall how = with_constants(trace_.calls[inst.imm]);
  std::vector<bool> own(inst.count, false);
  for (int32_t argument : how.mutates)
    for (int32_t operand : how.args[static_cast<size_t>(argument)].operands)
      if (operand >= 0) own[static_cast<size_t>(operand)] = true;
  std::vector<int32_t> operands, results(how.results.size(), -1);
  for (uint32_t k = 0; k < inst.count; ++k) {
    const Ref operand = trace_.arg(inst, k);
    if (trace_.insts[operand].type == Type::kTensor && !rehearse(rehearsal, operand, own[k])) return false;
    operands.push_back(static_cast<int32_t>(operand));
  }
  for_each_result(trace_, call, [&](Ref result) { results[static_cast<size_t>(trace_.insts[result].imm)] = static_cast<int32_t>(result); });
  aten_->take();
  const bool writes = !how.mutates.empty();
  if (writes) aten_->enable();
  const bool fine = rehearsal.torch->call(how, operands, results, writes);
  if (writes) aten_->disable();
  if (!fine) return false;
  for (const OpRecord& record : aten_->take()) {
    // Autograd keeps what is written over, where it needs that: so did it in the recorded iteration.
    if (record.call.name != "aten::clone" || record.call.results.size() != 1) continue;
    for (Ref before = call; before-- > 0;) {
      const ir::Inst& kept = trace_.insts[before];
      if (kept.op != IrOp::k_result || trace_.calls[trace_.insts[trace_.arg(before, 0)].imm].name != "aten::clone") continue;
      const Ref from = trace_.arg(trace_.arg(before, 0), 0);
      if (std::find(operands.begin(), operands.end(), static_cast<int32_t>(from)) == operands.end()) continue;
      rehearsal.of_id[record.call.results[0]] = before;
      break;
    }
  }
  return std::all_of(results.begin(), results.end(), [&](int32_t result) { return result < 0 || rehearsal.name(*aten_, static_cast<Ref>(result)); });
}

// Records what the engine runs for a part that has been rehearsed, and notes the values of this trace that it reads, in the order of the backward's inputs. Gives why it cannot.
std::string Recorder::record_backward(Rehearsal& rehearsal, ir::GraphNode* node) {
  std::vector<int32_t> outputs(node->outputs.begin(), node->outputs.end()), inputs(node->inputs.begin(), node->inputs.end());
  Held given, gradients;
  BackwardWriter writer(trace_, *aten_, root_code_, root_unit_);
  for (int32_t output : outputs) {
    given.push_back(rehearsal.torch->gradient(output));
    const int32_t id = given.back() == nullptr ? -1 : aten_->tensor_id(given.back());
    if (id < 0) return "a gradient of no plain kind";
    writer.input(id, aten_->meta(id));
  }
  aten_->take();
  in_torch_ = true;
  python_in_torch_ = false;
  aten_->enable();
  const bool fine = rehearsal.torch->differentiate(outputs, given, inputs, &gradients);
  aten_->disable();
  in_torch_ = false;
  const std::vector<OpRecord> records = aten_->take();
  if (!fine || std::exchange(python_in_torch_, false)) return "torch cannot differentiate it";
  if (const auto odd = std::find_if_not(records.begin(), records.end(), can_hold); odd != records.end()) return odd->call.name + " in its backward";
  std::vector<NumberRead> reads;
  if (std::string why = find_numbers(trace_, node->calls, records, &node->numbers, &reads); !why.empty()) {
    lessons_.known_graph_numbers = true;
    return why;
  }
  for (const ir::CallNumber& number : node->numbers) writer.number(trace_.calls[trace_.insts[number.call].imm].args[static_cast<size_t>(number.argument)]);
  std::set<int32_t> made;
  for (size_t r = 0; r < records.size(); ++r) {
    const OpRecord& record = records[r];
    for (int32_t id : record.tensors) {
      if (id < 0 || made.count(id) != 0 || writer.has(id)) continue;
      const auto value = rehearsal.of_id.find(id);
      if (value == rehearsal.of_id.end()) return record.call.name + " in its backward reads what is no value of the trace";
      const ir::Inst& saved = trace_.insts[value->second];
      const ir::TensorMeta& known = trace_.metas[saved.meta];
      if (known.open != 0 || known.symbolic) return record.call.name + " in its backward reads memory of changing size";
      ir::TensorMeta meta = aten_->meta(id);
      if (sizes_are_numbers_ && (!same_geometry(meta, known) || meta.offset != known.offset)) return record.call.name + " in its backward reads memory that lies otherwise in its rehearsal";
      const bool outside = saved.op == IrOp::k_unbox_tensor;
      meta.requires_grad = outside && known.requires_grad;
      meta.is_leaf = !outside || known.is_leaf;
      meta.has_hooks = outside && known.has_hooks;
      meta.is_parameter = outside && known.is_parameter;
      meta.is_subclass = outside && known.is_subclass;
      writer.input(id, std::move(meta));
      node->saved.push_back(value->second);
    }
    for (int32_t id : record.call.results)
      if (id >= 0) made.insert(id);
    std::vector<NumberRead> its;
    std::copy_if(reads.begin(), reads.end(), std::back_inserter(its), [r](const NumberRead& read) { return read.record == r; });
    if (!writer.call(record, its)) return record.call.name + " in its backward writes what it is given";
  }
  std::vector<int32_t> found;
  for (PyObject* gradient : gradients) {
    found.push_back(gradient == nullptr ? -1 : aten_->tensor_id(gradient));
    if (gradient != nullptr && !writer.has(found.back())) return "a gradient that no operation has made";
  }
  node->number = static_cast<int32_t>(backwards_.size());
  backwards_.push_back(writer.finish(found));
  return "";
}

// Gives why there are none, though a graph is handed out.
std::string Recorder::add_graph_nodes() {
  PyObject *type, *value, *traceback;  // an exception of the program's may be on its way
  PyErr_Fetch(&type, &value, &traceback);
  std::string why = make_graph_nodes();
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
  if (why.empty()) return why;
  for (ir::Wrap& wrap : trace_.wraps) wrap.nodes.clear();
  backwards_.clear();
  return "no node for it: " + why;
}

std::string Recorder::make_graph_nodes() {
  const std::set<Ref> last = wraps_shown(trace_, trace_.snapshots[static_cast<size_t>(trace_.insts.back().snapshot)]);
  std::vector<Ref> wraps;
  std::map<Ref, std::vector<Ref>> tensors;
  std::map<Ref, std::string> names;  // of what the script may see, of exits too
  for (Ref r = 0; r < trace_.insts.size(); ++r) {
    const ir::Inst& inst = trace_.insts[r];
    if (inst.op != IrOp::k_wrap) continue;
    const ir::Wrap& wrap = trace_.wraps[inst.imm];
    if (!wrap.requires_grad || wrap.is_leaf || wrap.freed || wrap.forward.empty()) continue;
    names.emplace(trace_.arg(inst, 0), wrap.grad_fn);
    if (inst.sunk && last.count(r) == 0) continue;
    if (!wrap.freed_behind.empty()) return "a part of it has been freed";
    wraps.push_back(r);
    tensors[trace_.arg(inst, 0)] = wrap.forward;
  }
  if (wraps.empty()) return "";
  if (base::left_out(base::Part::kNodes)) return "left out";
  if (!recipes_.empty()) return "a Function, or hooks";
  const std::map<Ref, Ref> views = find_views(trace_, &tensors);
  if (tensors.size() > kMostTensors) return "too many tensors";
  if (rounds_ > 1) return "several iterations";
  if (!bridge_->torch_state().clean) return "a mode of torch's";
  // What autograd has seen written through a view hangs at the base, which the parts take for what it was before.
  const Writes writes(trace_);
  const ir::Marks none(trace_.insts.size());
  for (const auto& [tensor, calls] : tensors) {
    bool through_view = writes.graph_between(tensor, tensor, static_cast<Ref>(trace_.insts.size()), none);
    for (Ref call : calls)
      for (int32_t operand : differentiated_operands(trace_.calls[trace_.insts[call].imm])) {
        const Ref used = trace_.arg(call, static_cast<uint32_t>(operand));
        through_view |= writes.graph_between(used, used, call, none);
      }
    if (through_view) return "memory that is written through a view";
  }
  const auto unrolls = [](const ShadowFrame& frame) { return std::any_of(frame.loops.begin(), frame.loops.end(), [](const auto& loop) { return loop.second.count > 0; }); };
  if (!freed_.empty() && std::any_of(frames_.begin(), frames_.end(), unrolls)) return "a loop inside has a backward(), and can be a trace without";
  Parts parts(trace_);
  if (const std::string why = parts.divide(tensors); !why.empty()) {
    lessons_.known_graph_numbers |= parts.numbers();
    return why;
  }
  std::set<Ref> hooked;
  for (const Part& part : parts.all())
    for (Ref input : part.node.inputs)
      if (trace_.insts[input].op == IrOp::k_unbox_tensor && trace_.metas[trace_.insts[input].meta].has_hooks) hooked.insert(input);
  if (hooked.size() > 1) return "hooks of several leaves, which are called in the order of eager's graph";
  if (parts.calls() < static_cast<size_t>(base::heuristics().node_ops)) return "too few operations to pay for one";
  ir::Marks harmless(trace_.insts.size());
  for (Ref r = 0; r < trace_.insts.size(); ++r) {
    if (trace_.insts[r].op != IrOp::k_aten) continue;
    const ir::AtenCall& how = trace_.calls[trace_.insts[r].imm];
    if (!how.mutates.empty() && std::all_of(how.mutates.begin(), how.mutates.end(), [&](int32_t argument) { return keeps_statistics(how, argument); })) harmless.insert(r);
  }
  const auto written_beside = [&](Ref value, const ir::Marks& others) { return writes.between(value, value, static_cast<Ref>(trace_.insts.size()), others); };
  const auto written = [&](Ref value) { return written_beside(value, harmless); };
  const auto uses_beside = [&](Ref value, const std::set<Ref>& others) {
    int uses = 0;
    for (Ref r = 0; r < trace_.insts.size(); ++r) {
      const ir::Inst& inst = trace_.insts[r];
      if (inst.op == IrOp::k_aten && others.count(r) == 0)
        for (uint32_t k = 0; k < inst.count; ++k) uses += trace_.arg(inst, k) == value;
    }
    return uses;
  };
  // Nodes keep a copy of what is written at the end (late_writes.h). In eager what an operation beside the write has saved is known to have been written.
  ir::Marks at_end = harmless;
  for (Ref call : late_.written) at_end.insert(call);
  const auto keeps_written = [&](Ref saved) {
    if (late_.storages.count(trace_.metas[trace_.insts[saved].meta].storage) != 0) return true;
    return late_.memory.count(saved) != 0 ? written_beside(saved, at_end) || uses_beside(saved, late_.written) > 1 : written(saved);
  };
  std::set<int32_t> handed;
  for (const auto& [tensor, calls] : tensors) {
    // What shares memory with another tensor of the script's is written through that, and knows it.
    const int32_t storage = trace_.metas[trace_.insts[tensor].meta].storage;
    const bool shares = input_storages_.count(storage) != 0 || (views.count(tensor) == 0 && !handed.insert(storage).second);
    if (shares || written(tensor)) return std::string(shares ? "a tensor that shares its memory (" : "a tensor that is written (") + names[tensor] + ")";
  }
  if (std::any_of(views.begin(), views.end(), [&](const auto& view) { return written(view.first); })) return "a view that is written";
  Rehearsal rehearsal{bridge_->rehearsal(), {}, {}};
  if (rehearsal.torch == nullptr) return "this bridge cannot rehearse";
  for (Part& part : parts.all()) rehearsal.leaves.insert(part.node.inputs.begin(), part.node.inputs.end());
  for (Part& part : parts.all()) {
    for (Ref call : part.node.calls)
      if (!rehearse_call(rehearsal, call)) return trace_.calls[trace_.insts[call].imm].name + " cannot be run once more";
    for (Ref output : part.node.outputs) part.node.names.push_back(names[output]);
    if (const std::string why = record_backward(rehearsal, &part.node); !why.empty()) return why;
    for (Ref output : part.node.outputs) {
      rehearsal.torch->cut(static_cast<int32_t>(output));
      if (!rehearsal.name(*aten_, output)) return "an output of no plain kind";
    }
    if (std::any_of(part.node.saved.begin(), part.node.saved.end(), keeps_written)) return "a saved tensor has been written";
  }
  for (Ref r : wraps) {
    ir::Wrap& wrap = trace_.wraps[trace_.insts[r].imm];
    std::vector<Ref> operands;
    for (uint32_t k = 0; k < trace_.insts[r].count; ++k) operands.push_back(trace_.arg(r, k));
    for (Ref operand : operands)
      if (operand != trace_.arg(r, 0) && trace_.insts[operand].type == Type::kTensor && written_beside(operand, at_end)) return "what it was made of has been written";
    for (const Part& part : parts.all()) {
      if ((part.owners & parts.owner_of(tensors.count(operands[0]) != 0 ? operands[0] : views.at(operands[0]))) == 0) continue;
      wrap.nodes.push_back(part.node);
      for (Ref saved : part.node.saved) {
        if (saved >= r) return "a later tensor looks like a saved one";
        if (std::find(operands.begin(), operands.end(), saved) == operands.end()) operands.push_back(saved);
      }
    }
    set_operands(&trace_, r, operands);
  }
  return "";
}

}  // namespace dynvm::tracer
