// The verifier (verify.h): one walk over the instructions; tables by index first, then meaning.
#include "ir/verify.h"

#include <algorithm>
#include <string>

#include "ir/effects.h"
#include "ir/kernel/philox.h"
#include "ir/kernel/symbols.h"
#include "ir/text.h"

namespace dynvm::ir {
namespace {

// Operand types of ops whose operands are not all objects: one letter each, the last one repeats; '.' is any value, 'n' an unboxed number.
const char* operand_types(Op op) {
  switch (op) {
    case Op::k_guard_true:
    case Op::k_guard_false:
    case Op::k_not_bool:
    case Op::k_bool_to_int:
    case Op::k_box_bool: return "b";
    case Op::k_add_int:
    case Op::k_sub_int:
    case Op::k_mul_int:
    case Op::k_floordiv_int:
    case Op::k_mod_int:
    case Op::k_neg_int:
    case Op::k_and_int:
    case Op::k_or_int:
    case Op::k_xor_int:
    case Op::k_eq_int:
    case Op::k_ne_int:
    case Op::k_lt_int:
    case Op::k_le_int:
    case Op::k_gt_int:
    case Op::k_ge_int:
    case Op::k_int_to_float:
    case Op::k_box_int: return "i";
    case Op::k_add_float:
    case Op::k_sub_float:
    case Op::k_mul_float:
    case Op::k_div_float:
    case Op::k_pow_float:
    case Op::k_sqrt_float:
    case Op::k_neg_float:
    case Op::k_abs_float:
    case Op::k_eq_float:
    case Op::k_ne_float:
    case Op::k_lt_float:
    case Op::k_le_float:
    case Op::k_gt_float:
    case Op::k_ge_float:
    case Op::k_same_float:
    case Op::k_box_float: return "f";
    case Op::k_list_item: return "oi";
    case Op::k_list_set: return "oio";
    case Op::k_wrap: return "t.";
    case Op::k_read_scalar:
    case Op::k_tensor_size:
    case Op::k_bump_version:
    case Op::k_graph_freed: return "t";
    case Op::k_aten:
    case Op::k_kernel:
    case Op::k_draw_seed:
    case Op::k_draw_offset:
    case Op::k_result: return ".";
    default: return "o";
  }
}

bool draws(Op op) { return op == Op::k_draw_seed || op == Op::k_draw_offset; }

class Verifier {
 public:
  explicit Verifier(const Trace& trace) : trace_(trace) {}

  base::Status run() {
    if (trace_.insts.empty()) return base::Status::failure("the trace is empty");
    sums();
    checked_snapshots_.assign(trace_.snapshots.size(), false);
    for (Ref ref = 0; ref < trace_.insts.size() && error_.empty(); ++ref) {
      ref_ = ref;
      inst(trace_.insts[ref]);
      if (!error_.empty()) place();
    }
    for (size_t k = 0; k < trace_.metas.size() && error_.empty(); ++k)
      if (!meta_is_sound(trace_.metas[k])) error_ = "metadata " + std::to_string(k) + " (" + print_meta(trace_.metas[k]) + "): unsound";
    return error_.empty() ? base::Status() : base::Status::failure(error_);
  }

 private:
  void fail(const std::string& message) {
    if (error_.empty()) error_ = message;
  }

  void place() {
    // The instruction may be too broken to print.
    std::string text = printable_ ? print_inst(trace_, ref_) : std::string(op_info(trace_.insts[ref_].op).name);
    error_ = "instruction " + std::to_string(ref_) + " `" + text + "`: " + error_;
  }

  bool in(int64_t index, size_t size) const { return index >= 0 && static_cast<size_t>(index) < size; }
  const Inst& inst_of(Ref ref) const { return trace_.insts[ref]; }
  bool is_there(const CallNumber& number) const {
    const std::vector<AtenArg>& args = trace_.calls[inst_of(number.call).imm].args;
    return in(number.argument, args.size()) && (args[number.argument].kind == AtenArg::kScalar || args[number.argument].kind == AtenArg::kScalarTensor);
  }

  void inst(const Inst& inst) {
    printable_ = false;
    if (inst.op >= Op::kCount) return fail("no such operation");
    if (inst.first + static_cast<size_t>(inst.count) > trace_.operands.size()) return fail("operands out of range");
    for (uint32_t k = 0; k < inst.count; ++k)
      if (trace_.arg(inst, k) >= ref_) return fail("operand " + std::to_string(k) + " is not defined before");
    if (inst.meta >= 0 && !in(inst.meta, trace_.metas.size())) return fail("metadata out of range");
    immediate(inst);
    if (!error_.empty()) return;
    printable_ = true;

    const OpInfo& info = op_info(inst.op);
    if (info.arity >= 0 && inst.count != static_cast<uint32_t>(info.arity)) return fail("takes " + std::to_string(info.arity) + " operands");
    result_type(inst, info);
    operand_kinds(inst);
    snapshot_rule(inst, info);
    bool ends = (info.effects & kEnd) != 0;
    if (ends != (ref_ + 1 == trace_.insts.size())) return fail(ends ? "does not stand last" : "the trace does not end");
    if (inst.sunk) sunk(inst, info);
    for (uint32_t k = 0; k < inst.count && !inst.sunk; ++k) {
      const Inst& operand = inst_of(trace_.arg(inst, k));
      // A fused call's results are tensors like others: a kernel computes them.
      if (operand.sunk && operand.op != Op::k_aten) return fail("uses a value that only exits make");
    }
    switch (inst.op) {
      case Op::k_aten:
        call(inst);
        if (error_.empty() && inst.snapshot == kNoSnapshot && !inst.sunk && !is_known_view(trace_, inst)) fail("needs a snapshot");
        break;
      case Op::k_result: result(inst); break;
      case Op::k_draw_seed:
      case Op::k_draw_offset: {
        const Inst& source = inst_of(trace_.arg(inst, 0));
        if (source.op != Op::k_aten || !source.sunk || trace_.calls[source.imm].stream.threads <= 0) fail("is not of a sunk call that draws in a known way");
        break;
      }
      case Op::k_kernel: kernel(inst); break;
      case Op::k_unbox_tensor:
        if (inst.meta != inst.imm) fail("imm and meta differ");
        break;
      case Op::k_tensor_size:
        if (inst.imm < -1 || inst.imm >= static_cast<int64_t>(trace_.metas[inst_of(trace_.arg(inst, 0)).meta].sizes.size())) fail("there is no such dim");
        break;
      case Op::k_wrap:
        for (Ref forward : trace_.wraps[inst.imm].forward)
          if (forward >= ref_ || inst_of(forward).op != Op::k_aten) fail("forward names what is not an aten call before it");
        for (const FreedNode& freed : trace_.wraps[inst.imm].freed_behind)
          if (freed.value >= ref_ || inst_of(freed.value).type != Type::kTensor) fail("a freed node is of what is no tensor before it");
        for (const GraphNode& node : trace_.wraps[inst.imm].nodes)
          for (const std::vector<Ref>* values : {&node.outputs, &node.inputs, &node.saved, &node.sized})
            for (Ref value : *values)
              if (value >= ref_ || inst_of(value).type != Type::kTensor) fail("a graph's node names what is no tensor before it");
        for (const GraphNode& node : trace_.wraps[inst.imm].nodes)
          for (Ref call : node.calls)
            if (std::find(trace_.wraps[inst.imm].forward.begin(), trace_.wraps[inst.imm].forward.end(), call) == trace_.wraps[inst.imm].forward.end()) fail("a graph's node is of what its wrap does not run again");
        for (const GraphNode& node : trace_.wraps[inst.imm].nodes)
          for (const CallNumber& number : node.numbers)
            if (std::find(node.calls.begin(), node.calls.end(), number.call) == node.calls.end() || !is_there(number)) fail("a graph's node reads what is no number of its calls");
        // Only an exit converts.
        if (!inst.sunk && !trace_.metas[inst_of(trace_.arg(inst, 0)).meta].shown.empty()) fail("the script would get other strides than it should see");
        break;
      default: break;
    }
  }

  void immediate(const Inst& inst) {
    switch (inst.op) {
      case Op::k_const_obj:
        if (!in(inst.imm, trace_.objects.size())) fail("object out of range");
        break;
      case Op::k_call:
      case Op::k_call_known:
      case Op::k_call_apart:
      case Op::k_call_pure:
      case Op::k_call_new:
        if (inst.imm >= 0 && !in(inst.imm, trace_.objects.size())) fail("keyword names out of range");
        break;
      case Op::k_guard_torch_state:
        if (!in(inst.imm, trace_.torch_states.size())) fail("torch state out of range");
        break;
      case Op::k_unbox_tensor:
        if (!in(inst.imm, trace_.metas.size())) fail("metadata out of range");
        break;
      case Op::k_wrap:
        if (!in(inst.imm, trace_.wraps.size())) fail("wrap out of range");
        break;
      case Op::k_kernel:
        if (!in(inst.imm, trace_.kernels.size())) fail("kernel out of range");
        break;
      case Op::k_aten:
        if (!in(inst.imm, trace_.calls.size())) return fail("call out of range");
        for (const AtenArg& arg : trace_.calls[inst.imm].args) {
          for (int32_t position : arg.operands)
            if (position != -1 && !in(position, inst.count)) fail("an argument's operand is out of range");
          bool one = arg.kind == AtenArg::kTensor || arg.kind == AtenArg::kScalar || arg.kind == AtenArg::kScalarTensor;
          if (one && arg.operands.size() != 1) fail("a tensor or scalar argument has one operand");
          if (!one && arg.kind != AtenArg::kTensorList && !arg.operands.empty()) fail("an argument without operands has one");
        }
        for (int32_t result : trace_.calls[inst.imm].results)
          if (result != -1 && !in(result, trace_.metas.size())) fail("a result's metadata is out of range");
        break;
      default: break;
    }
  }

  void result_type(const Inst& inst, const OpInfo& info) {
    bool right = true;
    switch (info.result) {
      case 'v': right = inst.type == Type::kVoid; break;
      case 'o': right = inst.type == Type::kObject; break;
      case 'i': right = inst.type == Type::kInt; break;
      case 'f': right = inst.type == Type::kFloat; break;
      case 'b': right = inst.type == Type::kBool; break;
      case 't': right = inst.type == Type::kTensor; break;
      case 's': right = is_number(inst.type); break;
    }
    if (!right) fail("wrong result type");
    if ((inst.type == Type::kTensor) != (inst.meta >= 0)) fail("a tensor value, and no other, has metadata");
  }

  static bool is_number(Type type) { return type == Type::kInt || type == Type::kFloat || type == Type::kBool; }

  void operand_kinds(const Inst& inst) {
    const char* types = operand_types(inst.op);
    for (uint32_t k = 0; k < inst.count; ++k) {
      Type type = inst_of(trace_.arg(inst, k)).type;
      bool right = true;
      switch (*types) {
        // What only exits make may take numbers unboxed: the exit boxes them.
        case 'o': right = type == Type::kObject || (inst.sunk && is_number(type)); break;
        case 'i': right = type == Type::kInt; break;
        case 'f': right = type == Type::kFloat; break;
        case 'b': right = type == Type::kBool; break;
        case 't': right = type == Type::kTensor; break;
        default: right = type != Type::kVoid || inst.op == Op::k_result || draws(inst.op); break;
      }
      if (!right) return fail("operand " + std::to_string(k) + " has the wrong type");
      if (types[1]) ++types;
    }
  }

  void snapshot_rule(const Inst& inst, const OpInfo& info) {
    if (inst.snapshot == kNoSnapshot) {
      bool needed = (info.effects & (kGuard | kRaises | kEnd)) && !inst.sunk && inst.op != Op::k_aten;
      if (needed) fail("needs a snapshot");
      return;
    }
    if (!in(inst.snapshot, trace_.snapshots.size())) return fail("snapshot out of range");
    if (checked_snapshots_[inst.snapshot]) return;  // its values are defined before an earlier instruction already
    checked_snapshots_[inst.snapshot] = true;
    const Snapshot& snapshot = trace_.snapshots[inst.snapshot];
    std::string name = "snapshot " + std::to_string(inst.snapshot) + ": ";
    if (snapshot.frames.empty()) return fail(name + "has no frame");
    for (size_t depth = 0; depth < snapshot.frames.size(); ++depth) {
      if (!in(snapshot.frames[depth], trace_.frames.size())) return fail(name + "frame out of range");
      const SnapshotFrame& frame = trace_.frame(snapshot, depth);
      if ((frame.function == kNoRef) != (depth == 0)) return fail(name + "the root frame, and no other, has no function");
      if (depth > 0 && !snapshot_value(frame.function)) return fail(name + "function is not defined before");
      if (frame.continuation_value != kNoRef && !snapshot_value(frame.continuation_value))
        return fail(name + "continuation value is not defined before");
      for (Ref slot : frame.slots) {
        if (slot == kSlotNull) continue;
        if (slot == kSlotUnchanged) {
          if (depth != 0) return fail(name + "only root slots can be unchanged");
          continue;
        }
        if (!snapshot_value(slot)) return fail(name + "a slot names no value defined before");
      }
    }
    for (const auto& store : snapshot.stores)
      if (!snapshot_value(store.dict) || !snapshot_value(store.key) || !snapshot_value(store.value))
        return fail(name + "a store names no value defined before");
  }

  bool snapshot_value(Ref ref) const {
    return ref < ref_ && inst_of(ref).type != Type::kVoid && inst_of(ref).type != Type::kTensor;
  }

  void sunk(const Inst& inst, const OpInfo& info) {
    if (!(info.effects & kNew) && inst.op != Op::k_box_bool && inst.op != Op::k_aten) fail("cannot be sunk");
  }

  void sums() {
    std::vector<bool> met(trace_.symbols.size(), false);
    for (const SymbolSum& sum : trace_.sums) {
      if (!in(sum.symbol, trace_.symbols.size()) || met[static_cast<size_t>(sum.symbol)]) return fail("a sum is of no symbol, or not the first of it");
      met[static_cast<size_t>(sum.symbol)] = true;
      for (int64_t term : sum.terms) {
        Product product;
        if (term <= 0 || !Product::of(term, trace_.symbols, &product) || term % trace_.symbols[static_cast<size_t>(sum.symbol)] == 0) return fail("a sum's term is no product of other symbols");
      }
    }
  }

  bool meta_is_sound(const TensorMeta& meta) const {
    if (meta.sizes.size() != meta.strides.size() || meta.offset < 0 || !in(meta.storage, trace_.num_storages)) return false;
    for (int64_t size : meta.sizes)
      if (size < 0) return false;
    for (int64_t stride : meta.strides)
      if (stride < 0) return false;
    if (!meta.shown.empty() && (meta.shown.size() != meta.sizes.size() || meta.open != 0)) return false;
    Product product;
    const auto is_product = [&](int64_t number) { return Product::of(number, trace_.symbols, &product); };
    return !meta.symbolic || (std::all_of(meta.sizes.begin(), meta.sizes.end(), is_product) && std::all_of(meta.strides.begin(), meta.strides.end(), is_product) &&
                              is_product(meta.offset));
  }

  void call(const Inst& inst) {
    const AtenCall& call = trace_.calls[inst.imm];
    std::vector<bool> used(inst.count, false);
    bool numbers = false;  // some are values of the trace
    for (const AtenArg& arg : call.args) {
      numbers = numbers || arg.kind == AtenArg::kScalar;
      for (int32_t position : arg.operands) {
        if (position < 0) continue;
        used[position] = true;
        Type type = inst_of(trace_.arg(inst, position)).type;
        bool tensor = arg.kind == AtenArg::kTensor || arg.kind == AtenArg::kTensorList;
        if (tensor ? type != Type::kTensor : !is_number(type)) fail("an argument's operand has the wrong type");
      }
    }
    for (bool operand_used : used)
      if (!operand_used) fail("an operand is no argument's");
    if (call.result_alias.size() != call.results.size()) return fail("result_alias and results differ in length");
    const RandomStream& stream = call.stream;
    if (stream != RandomStream() && (!call.is_random || !DrawForm{stream.threads, stream.vector}.sound())) fail("there is no such stream");
    for (int32_t argument : call.mutates)
      if (!in(argument, call.args.size())) return fail("mutates an argument that it does not have");
    for (size_t k = 0; k < call.results.size(); ++k) {
      int32_t alias = call.result_alias[k];
      if (alias < 0 || call.results[k] < 0) continue;
      if (!in(alias, call.args.size())) return fail("a result aliases an argument that it does not have");
      if (call.args[alias].kind != AtenArg::kTensor || call.args[alias].operands[0] < 0) continue;
      const Inst& operand = inst_of(trace_.arg(inst, call.args[alias].operands[0]));
      if (numbers && is_index(call)) continue;
      if (trace_.metas[operand.meta].storage != trace_.metas[call.results[k]].storage) fail("an aliasing result has another storage");
    }
  }

  void result(const Inst& inst) {
    const Inst& source = inst_of(trace_.arg(inst, 0));
    if (source.op != Op::k_aten) return fail("is not a result of an aten call");
    const AtenCall& call = trace_.calls[source.imm];
    if (!in(inst.imm, call.results.size()) || call.results[inst.imm] < 0) return fail("there is no such result");
    const TensorMeta& mine = trace_.metas[inst.meta];
    const TensorMeta& theirs = trace_.metas[call.results[inst.imm]];
    if (mine.storage != theirs.storage || mine.dtype != theirs.dtype || mine.sizes != theirs.sizes || mine.strides != theirs.strides ||
        mine.offset != theirs.offset || mine.shown != theirs.shown) {
      fail("metadata differs from the call's");
    }
  }

  // Operands: one tensor for each kernel operand, looking at that storage, then the scalars.
  void kernel(const Inst& inst) {
    const Kernel& kernel = trace_.kernels[inst.imm];
    base::Status status = verify_kernel(kernel);
    if (!status.ok()) return fail("kernel: " + status.message());
    size_t tensors = kernel.operands.size();
    if (inst.count != tensors + kernel.scalar_types.size()) return fail("the kernel has another number of operands and scalars");
    if (kernel.num_pointers != trace_.num_storages) fail("the kernel's pointers are not the trace's storages");
    for (size_t k = 0; k < inst.count; ++k) {
      const Inst& operand = inst_of(trace_.arg(inst, static_cast<uint32_t>(k)));
      if (k < tensors) {
        if (operand.type != Type::kTensor) return fail("operand " + std::to_string(k) + " is not a tensor");
        if (trace_.metas[operand.meta].storage != kernel.operands[k].pointer) return fail("operand " + std::to_string(k) + " is on another storage");
        if (trace_.metas[operand.meta].dtype != kernel.operands[k].dtype) return fail("operand " + std::to_string(k) + " has another dtype");
      } else {
        DType type = kernel.scalar_types[k - tensors];
        bool right = type == DType::kF64 ? operand.type == Type::kFloat : operand.type == Type::kInt || operand.type == Type::kBool;
        if (!right) return fail("scalar " + std::to_string(k - tensors) + " has another type");
      }
    }
  }

  const Trace& trace_;
  Ref ref_ = 0;
  bool printable_ = false;
  std::string error_;
  std::vector<bool> checked_snapshots_;
};

}  // namespace

base::Status verify_trace(const Trace& trace) { return Verifier(trace).run(); }

}  // namespace dynvm::ir
