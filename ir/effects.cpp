// Effects by storage and by place (effects.h).
#include "ir/effects.h"

#include <algorithm>
#include <string_view>

#include "ir/lower/lower.h"
#include "ir/marks.h"

namespace dynvm::ir {
namespace {

void add_once(std::vector<int32_t>* set, int32_t storage) {
  if (storage >= 0 && std::find(set->begin(), set->end(), storage) == set->end()) set->push_back(storage);
}

// Operations whose data decides whether they raise; with fixed metadata the others can only run out of memory. By words of the name, so
// that families (linalg_*, index_*, *_scatter) need no list; a backward gets indexes that its forward has checked.
bool data_can_raise(const AtenCall& call) {
  constexpr std::string_view kWords[] = {"embedding", "index", "gather", "scatter", "nll", "take", "put", "linalg", "cholesky", "inverse",
                                         "bincount", "multinomial", "hot", "lu", "solve", "histc", "binary", "interleave", "searchsorted",
                                         "ctc", "assert", "margin", "triangular", "qr", "svd", "eig", "eigh", "equal", "poisson", "binomial"};
  std::string_view name = call.name;
  if (name.substr(0, 6) != "aten::") return true;  // a custom operator may do anything
  name.remove_prefix(6);
  if (name == "linalg_vector_norm" || name.find("backward") != std::string_view::npos) return false;
  if (name == "bernoulli" || name == "bernoulli_") return call.overload != "p" && call.overload != "float";
  if (name == "normal" || name == "normal_functional") return true;
  while (!name.empty()) {
    size_t end = std::min(name.find('_'), name.size());
    for (std::string_view word : kWords)
      if (name.substr(0, end) == word) return true;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return false;
}

// May a number of this run make it raise where the recorded one did not? A bound that is passed, a power or divisor that integers cannot have; a view
// that looks elsewhere leaves the trace.
bool number_can_raise(const Trace& trace, const AtenCall& call) {
  if (!has_run_time_numbers(call) || call.follows) return false;
  if (!is_elementwise(call)) return true;
  return std::any_of(call.results.begin(), call.results.end(), [&](int32_t result) { return result >= 0 && !is_floating(trace.metas[result].dtype) && !is_bool(trace.metas[result].dtype); });
}

// Two object values that are certainly different objects.
bool different_objects(const Trace& trace, Ref a, Ref b) {
  const Inst& x = trace.insts[a];
  const Inst& y = trace.insts[b];
  if (a == b) return false;
  auto made_here = [](const Inst& inst) { return has_effect(inst, kNew); };
  if (x.op == Op::k_const_obj && y.op == Op::k_const_obj) return trace.objects[x.imm].pointer != trace.objects[y.imm].pointer;
  if (made_here(x) && (made_here(y) || y.op == Op::k_const_obj || y.op == Op::k_slot)) return true;
  return made_here(y) && (x.op == Op::k_const_obj || x.op == Op::k_slot);
}

}  // namespace

int32_t storage_of(const Trace& trace, Ref tensor) {
  const Inst& inst = trace.insts[tensor];
  return inst.meta < 0 ? -1 : trace.metas[inst.meta].storage;
}

bool gives_unwritten(const AtenCall& call) { return call.name.starts_with("aten::empty") || call.name.starts_with("aten::new_empty"); }

Ref relaid_operand(const Trace& trace, Ref ref) {
  if (trace.insts[ref].op != Op::k_result) return kNoRef;
  const Ref made = trace.arg(ref, 0);
  return is_relayout(trace.calls[trace.insts[made].imm]) ? trace.arg(made, 0) : kNoRef;
}

std::vector<int32_t> wrap_storages(const Trace& trace, Ref wrap, bool value) {
  const Inst& inst = trace.insts[wrap];
  const Wrap& how = trace.wraps[inst.imm];
  const Ref tensor = trace.arg(inst, 0);
  const int32_t own = storage_of(trace, tensor);
  std::vector<int32_t> out;
  thread_local Marks again, added;
  again.clear();
  added.clear();
  const auto add = [&](int32_t storage) {
    if (added.insert(static_cast<size_t>(storage))) out.push_back(storage);
  };
  // Does the rebuilt graph compute it? The memory that its call gave it does not tell: pass inplace lets later values have the same.
  const auto provided = [&](Ref value) { return trace.insts[value].op == Op::k_result && again.contains(trace.arg(value, 0)); };
  // Whose value a rebuilt graph has for it: a copy's is what it copies, where that is computed again or is what was recorded.
  const auto in_graph = [&](Ref value) {
    const Ref from = relaid_operand(trace, value);
    return from != kNoRef && (!trace.metas[trace.insts[value].meta].shown.empty() || provided(from)) ? from : value;
  };
  for (Ref ref : how.forward) {
    const Inst& call_inst = trace.insts[ref];
    const AtenCall& call = trace.calls[call_inst.imm];
    for (uint32_t k = 0; k < call_inst.count; ++k) {
      const Ref operand = in_graph(trace.arg(call_inst, k));
      const Inst& made = trace.insts[operand];
      if (made.type == Type::kTensor && made.op != Op::k_unbox_tensor && !provided(operand)) add(storage_of(trace, operand));
    }
    again.insert(ref);
    for (int32_t result : call.results)
      if (result >= 0 && call.is_random && call.stream.threads == 0) add(trace.metas[result].storage);
  }
  for (const GraphNode& node : how.nodes)
    for (Ref saved : node.saved)
      if (trace.insts[saved].op != Op::k_unbox_tensor) add(storage_of(trace, saved));
  const bool rebuilt = how.requires_grad && !how.is_leaf && !how.freed && how.nodes.empty() && provided(in_graph(tensor));
  if (value || !rebuilt) add(own);
  return out;
}

Ref written_operand(const Trace& trace, Ref ref) {
  const Inst& inst = trace.insts[ref];
  if (inst.op != Op::k_result) return kNoRef;
  const Ref made = trace.arg(ref, 0);
  const AtenCall& call = trace.calls[trace.insts[made].imm];
  const int32_t alias = call.result_alias[inst.imm];
  if (std::find(call.mutates.begin(), call.mutates.end(), alias) == call.mutates.end() || call.args[alias].kind != AtenArg::kTensor) return kNoRef;
  const Ref operand = trace.arg(made, call.args[alias].operands[0]);
  const TensorMeta &before = trace.metas[trace.insts[operand].meta], &after = trace.metas[inst.meta];
  const bool same = before.storage == after.storage && before.dtype == after.dtype && before.offset == after.offset && before.sizes == after.sizes &&
                    before.strides == after.strides && before.open == after.open;
  return same ? operand : kNoRef;
}

std::vector<Ref> views_behind(const Trace& trace, Ref tensor) {
  std::vector<Ref> views;
  while (trace.insts[tensor].op == Op::k_result) {
    if (const Ref same = written_operand(trace, tensor); same != kNoRef) {
      tensor = same;
      continue;
    }
    const Ref made = trace.arg(tensor, 0);
    const AtenCall& view = trace.calls[trace.insts[made].imm];
    const int32_t alias = view.result_alias[trace.insts[tensor].imm];
    if (alias < 0 || !view.mutates.empty() || view.args[alias].operands.empty()) break;
    views.push_back(made);
    tensor = trace.arg(made, view.args[alias].operands[0]);
  }
  return views;
}

std::vector<Ref> views_of_wrap(const Trace& trace, const Inst& wrap) {
  std::vector<Ref> views;
  const auto add = [&](Ref tensor) {
    for (Ref view : views_behind(trace, tensor))
      if (std::find(views.begin(), views.end(), view) == views.end()) views.push_back(view);
  };
  add(trace.arg(wrap, 0));
  const Wrap& how = trace.wraps[wrap.imm];
  for (const GraphNode& node : how.nodes) std::for_each(node.saved.begin(), node.saved.end(), add);
  for (Ref call : how.forward)
    for (uint32_t k = 0; k < trace.insts[call].count; ++k)
      if (trace.insts[trace.arg(call, k)].type == Type::kTensor) add(trace.arg(call, k));
  return views;
}

bool is_view_call(const Trace& trace, const Inst& inst) {
  const AtenCall& call = trace.calls[inst.imm];
  if (!call.mutates.empty() || call.is_random || call.results.empty()) return false;
  for (int32_t result : call.results) {
    if (result < 0) return false;
    bool shared = false;
    for (uint32_t k = 0; k < inst.count; ++k) {
      Ref operand = trace.arg(inst, k);
      if (trace.insts[operand].type == Type::kTensor && storage_of(trace, operand) == trace.metas[result].storage) shared = true;
    }
    if (!shared) return false;
  }
  return true;
}

bool is_known_view(const Trace& trace, const Inst& inst) {
  const AtenCall& call = trace.calls[inst.imm];
  return is_view_call(trace, inst) && (call.follows || !has_run_time_numbers(call)) && !opens(trace, call);
}

TensorEffects tensor_effects(const Trace& trace, Ref ref) {
  TensorEffects out;
  const Inst& inst = trace.insts[ref];
  switch (inst.op) {
    case Op::k_aten: {
      if (inst.sunk) return out;
      const AtenCall& call = trace.calls[inst.imm];
      if (is_view_call(trace, inst)) {
        // A view whose place is a run-time number leaves the trace when it is another one than the recorded.
        out.may_raise = number_can_raise(trace, call) || (!call.follows && may_leave(trace, call));
        return out;
      }
      for (uint32_t k = 0; k < inst.count; ++k)
        if (trace.insts[trace.arg(inst, k)].type == Type::kTensor) add_once(&out.reads, storage_of(trace, trace.arg(inst, k)));
      for (int32_t argument : call.mutates)
        for (int32_t position : call.args[argument].operands)
          if (position >= 0) add_once(&out.writes, storage_of(trace, trace.arg(inst, position)));
      for (int32_t result : call.results)
        if (result >= 0) {
          int32_t storage = trace.metas[result].storage;
          // A result that shares an argument's memory writes nothing new.
          if (std::find(out.reads.begin(), out.reads.end(), storage) == out.reads.end()) add_once(&out.writes, storage);
        }
      out.random = call.is_random;
      out.may_raise = data_can_raise(call) || number_can_raise(trace, call) || may_leave(trace, call);
      return out;
    }
    case Op::k_kernel: {
      const Kernel& kernel = trace.kernels[inst.imm];
      for (const KernelNode& node : kernel.nodes)
        if (reads_memory(node.op)) add_once(&out.reads, kernel.operands[node.operand].pointer);
      for (const KernelStore& store : kernel.stores) {
        if (store.adds) add_once(&out.reads, kernel.operands[store.operand].pointer);
        add_once(&out.writes, kernel.operands[store.operand].pointer);
      }
      return out;
    }
    case Op::k_draw_offset:
      out.random = true;
      return out;
    case Op::k_read_scalar:
      add_once(&out.reads, storage_of(trace, trace.arg(inst, 0)));
      return out;
    default: return out;
  }
}

bool may_overlap(const TensorMeta& a, const TensorMeta& b) {
  if (a.storage != b.storage) return false;
  if (((a.open | b.open) & kOpenLayout) != 0 || (a.offset == b.offset && elements(a) != 0 && elements(b) != 0)) return true;
  Kernel space;  // of both, side by side in one space where their strides allow it
  KernelOperand first{a.dtype, a.strides, a.offset, 0}, second{b.dtype, b.strides, b.offset, 0};
  space.sizes = a.sizes;
  if (a.strides == b.strides) {
    for (size_t d = 0; d < b.sizes.size(); ++d) space.sizes[d] = a.sizes[d] == 0 || b.sizes[d] == 0 ? 0 : std::max(a.sizes[d], b.sizes[d]);
  } else {
    space.sizes.insert(space.sizes.end(), b.sizes.begin(), b.sizes.end());
    first.strides.resize(space.sizes.size(), 0);
    second.strides.insert(second.strides.begin(), a.sizes.size(), 0);
  }
  return may_conflict(space, first, second);
}

bool may_change(const Trace& trace, Ref write, Ref reader) {
  const Inst& w = trace.insts[write];
  const Inst& r = trace.insts[reader];
  if (is_barrier(w)) return true;
  if (!has_effect(w, kWrite) || w.op == Op::k_call_apart) return false;
  switch (r.op) {
    // About the value itself, or about what only Python code can change.
    case Op::k_guard_is:
    case Op::k_guard_bound:
    case Op::k_guard_true:
    case Op::k_guard_false:
    case Op::k_guard_type:
    case Op::k_unbox_int:
    case Op::k_unbox_float:
    case Op::k_unbox_bool:
    case Op::k_tuple_len: return false;
    case Op::k_guard_func_version:
    case Op::k_guard_torch_state:
    case Op::k_unbox_tensor: return w.op == Op::k_call_known || w.op == Op::k_set_attr_known || (w.op == Op::k_take_graph && trace.arg(w, 0) == trace.arg(r, 0));
    default: break;
  }
  if (!has_effect(r, kLoad | kGuard)) return false;
  if (!has_effect(r, kLoad) && r.op != Op::k_guard_dict_version && r.op != Op::k_guard_keys_version && r.op != Op::k_guard_list_items &&
      r.op != Op::k_guard_type_version) {
    return false;  // checked arithmetic
  }
  if (w.op == Op::k_call_known) return true;
  // A function we know nothing of except that it has no effect may read anything.
  if (r.op == Op::k_call_pure || r.op == Op::k_call_new || r.op == Op::k_get_attr_known || r.op == Op::k_contains_known || r.op == Op::k_is_true_builtin) return w.op != Op::k_set_grad || r.op != Op::k_is_true_builtin;
  auto other_object = [&] { return w.count > 0 && r.count > 0 && different_objects(trace, trace.arg(w, 0), trace.arg(r, 0)); };
  switch (w.op) {
    case Op::k_store_value: return r.op == Op::k_load_value && r.imm == w.imm && !other_object();
    case Op::k_store_field: return r.op == Op::k_load_field && r.imm == w.imm && !other_object();
    case Op::k_dict_set:
    case Op::k_dict_merge:
      return (r.op == Op::k_dict_get || r.op == Op::k_dict_has_keys || r.op == Op::k_dict_len || r.op == Op::k_guard_dict_version || r.op == Op::k_guard_keys_version) &&
             !other_object();
    case Op::k_list_append:
    case Op::k_list_extend_list:
    case Op::k_list_set: return (r.op == Op::k_list_item || r.op == Op::k_list_len || r.op == Op::k_guard_list_items) && !other_object();
    case Op::k_set_grad: return r.op == Op::k_get_grad;  // two objects may be one tensor to autograd, so their identity says nothing
    case Op::k_take_graph:
    case Op::k_iter_next_known: return false;            // changes the iterator only
    case Op::k_set_attr_known: return true;
    default: return true;
  }
}

}  // namespace dynvm::ir
