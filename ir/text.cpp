// Printing traces (text.h; the grammar stands there). Parsing is in parse.cpp.
#include "ir/text.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "ir/kernel/text.h"
#include "ir/text_tokens.h"

namespace dynvm::ir {
namespace {

class Printer {
 public:
  explicit Printer(const Trace& trace) : trace_(trace) {}

  std::string take() { return std::move(out_); }

  void whole() {
    // A void instruction gets a name only where something refers to it.
    named_.assign(trace_.insts.size(), false);
    for (Ref operand : trace_.operands)
      if (operand < named_.size()) named_[operand] = true;
    for (const Wrap& wrap : trace_.wraps)
      for (Ref call : wrap.forward)
        if (call < named_.size()) named_[call] = true;
    out_ += "trace " + std::to_string(trace_.id) + " ";
    text::append_string(&out_, trace_.name);
    out_ += " storages " + std::to_string(trace_.num_storages);
    for (size_t k = 0; k < trace_.symbols.size(); ++k) out_ += (k ? ", " : " symbols [") + std::to_string(trace_.symbols[k]);
    if (!trace_.symbols.empty()) out_ += "]";
    for (const SymbolSum& sum : trace_.sums) {
      out_ += " sum s" + std::to_string(sum.symbol) + " [";
      for (size_t k = 0; k < sum.terms.size(); ++k) out_ += (k ? ", " : "") + std::to_string(sum.terms[k]);
      out_ += "]";
    }
    out_ += "\n";
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      inst(ref);
      out_ += "\n";
    }
    for (size_t i = 0; i < trace_.snapshots.size(); ++i) snapshot(i);
    for (size_t i = 0; i < trace_.kernels.size(); ++i)
      out_ += "kernel k" + std::to_string(i) + " " + print_kernel(trace_.kernels[i]) + "\n";
  }

  void inst(Ref ref) {
    const Inst& inst = trace_.insts[ref];
    if (inst.type != Type::kVoid) {
      value(ref);
      out_ += ":";
      out_ += text::type_letter(inst.type);
      out_ += " = ";
    } else if (named_.empty() || named_[ref]) {
      value(ref);
      out_ += " = ";
    }
    out_ += op_info(inst.op).name;
    switch (inst.op) {
      case Op::k_aten: call(inst); break;
      case Op::k_kernel:
        out_ += " k" + std::to_string(inst.imm) + " (";
        operands(inst);
        out_ += ")";
        break;
      default:
        if (inst.count) out_ += " ";
        operands(inst);
        immediate(inst);
    }
    if (inst.sunk) out_ += " sunk";
    if (inst.snapshot != kNoSnapshot) out_ += " !snap" + std::to_string(inst.snapshot);
    if (inst.again) out_ += " again";
    if (inst.meta >= 0) out_ += " -> " + print_meta(trace_.metas[inst.meta]);
  }

 private:
  void value(Ref ref) {
    if (ref == kNoRef) {
      out_ += "undef";
      return;
    }
    out_ += "%" + std::to_string(ref);
  }

  void operands(const Inst& inst) {
    for (uint32_t k = 0; k < inst.count; ++k) {
      if (k) out_ += ", ";
      value(trace_.arg(inst, k));
    }
  }

  void object(int64_t index) {
    out_ += " @" + std::to_string(index) + " ";
    text::append_string(&out_, trace_.objects[index].text);
  }

  void immediate(const Inst& inst) {
    switch (text::immediate_of(inst.op)) {
      case text::Immediate::kObject:
        if (inst.imm >= 0) object(inst.imm);
        break;
      case text::Immediate::kFloat: {
        double value;
        std::memcpy(&value, &inst.imm, sizeof value);
        out_ += " ";
        text::append_float(&out_, value);
        break;
      }
      case text::Immediate::kState: state(trace_.torch_states[inst.imm]); break;
      case text::Immediate::kWrap: wrap(trace_.wraps[inst.imm]); break;
      case text::Immediate::kMeta: break;  // printed after the arrow
      case text::Immediate::kNumber: out_ += " #" + std::to_string(inst.imm); break;
      case text::Immediate::kOptionalNumber:
        if (inst.imm) out_ += " #" + std::to_string(inst.imm);
        break;
    }
  }

  void state(const TorchState& state) {
    out_ += " {";
    auto flag = [&](bool on, const char* name) {
      if (on) out_ += std::string(out_.back() == '{' ? "" : " ") + name;
    };
    flag(state.grad_mode, "grad");
    flag(state.inference_mode, "inference");
    flag(state.autocast_cpu, "autocast_cpu");
    flag(state.autocast_cuda, "autocast_cuda");
    flag(state.deterministic, "deterministic");
    flag(!state.overrides, "no_overrides");
    flag(!state.clean, "unclean");
    out_ += " : ";
    out_ += dtype_name(state.default_dtype);
    out_ += " " + std::to_string(state.autocast_cpu_dtype) + " " + std::to_string(state.autocast_cuda_dtype);
    if (state.function_modes != 0) out_ += " modes " + std::to_string(state.function_modes);
    out_ += (state.cuda_device >= 0 ? " " + std::to_string(state.cuda_device) : "") + "}";
  }

  void wrap(const Wrap& wrap) {
    if (wrap.requires_grad) out_ += " grad";
    if (!wrap.is_leaf) out_ += " nonleaf";
    if (!wrap.grad_fn.empty()) {
      out_ += " fn ";
      text::append_string(&out_, wrap.grad_fn);
    }
    if (wrap.output_nr) out_ += " nr " + std::to_string(wrap.output_nr);
    if (wrap.freed) out_ += " freed";
    if (!wrap.forward.empty()) {
      out_ += " forward";
      values(wrap.forward);
    }
    for (size_t k = 0; k < wrap.freed_behind.size(); ++k) {
      out_ += k ? ", " : " behind [";
      value(wrap.freed_behind[k].value);
      out_ += " ";
      text::append_string(&out_, wrap.freed_behind[k].grad_fn);
      out_ += " " + std::to_string(wrap.freed_behind[k].output_nr);
    }
    if (!wrap.freed_behind.empty()) out_ += "]";
    for (const GraphNode& each : wrap.nodes) node(each);
  }

  void values(const std::vector<Ref>& all) {
    out_ += " [";
    for (size_t k = 0; k < all.size(); ++k) {
      if (k) out_ += ", ";
      value(all[k]);
    }
    out_ += "]";
  }

  void node(const GraphNode& node) {
    out_ += " node " + std::to_string(node.number);
    values(node.outputs);
    for (const std::string& name : node.names) {
      out_ += " ";
      text::append_string(&out_, name);
    }
    values(node.inputs);
    for (uint64_t reached : node.reached_by) out_ += " " + std::to_string(reached);
    out_ += " [";
    for (size_t k = 0; k < node.numbers.size(); ++k) {
      if (k) out_ += ", ";
      value(node.numbers[k].call);
      out_ += " " + std::to_string(node.numbers[k].argument);
    }
    out_ += "]";
    values(node.saved);
    values(node.sized);
    values(node.calls);
  }

  void call(const Inst& inst) {
    const AtenCall& call = trace_.calls[inst.imm];
    out_ += " ";
    text::append_string(&out_, call.overload.empty() ? call.name : call.name + "." + call.overload);
    out_ += " (";
    for (size_t k = 0; k < call.args.size(); ++k) {
      if (k) out_ += ", ";
      argument(inst, call.args[k]);
    }
    out_ += ") -> (";
    for (size_t k = 0; k < call.results.size(); ++k) {
      if (k) out_ += ", ";
      out_ += call.results[k] < 0 ? "undef" : print_meta(trace_.metas[call.results[k]]);
      if (k < call.result_alias.size() && call.result_alias[k] >= 0) out_ += " alias " + std::to_string(call.result_alias[k]);
    }
    out_ += ")";
    if (!call.mutates.empty()) {
      out_ += " mutates [";
      for (size_t k = 0; k < call.mutates.size(); ++k) out_ += (k ? "," : "") + std::to_string(call.mutates[k]);
      out_ += "]";
    }
    if (call.defines_sizes) out_ += " sized";
    if (call.follows) out_ += " follows";
    if (call.is_random) out_ += " random";
    if (call.stream.threads != 0) out_ += " stream " + std::to_string(call.stream.threads) + " x " + std::to_string(call.stream.vector);
    if (call.grad_mode) out_ += " grad";
    if (call.inference_mode) out_ += " inference";
    if (call.in_backward) out_ += " backward";
    if (call.moves) out_ += " moves";
    if (call.autocast >= 0) out_ += " autocast " + std::to_string(call.autocast);
    if (call.count != 1) out_ += " count " + std::to_string(call.count);
  }

  void operand_at(const Inst& inst, int32_t position) {
    if (position < 0) {
      out_ += "undef";
    } else {
      value(trace_.arg(inst, position));
    }
  }

  void argument(const Inst& inst, const AtenArg& arg) {
    switch (arg.kind) {
      case AtenArg::kNone: out_ += "none"; break;
      case AtenArg::kTensor: operand_at(inst, arg.operands.empty() ? -1 : arg.operands[0]); break;
      case AtenArg::kTensorList:
        out_ += arg.is_optional_list ? "?[" : "[";
        for (size_t k = 0; k < arg.operands.size(); ++k) {
          if (k) out_ += ", ";
          operand_at(inst, arg.operands[k]);
        }
        out_ += "]";
        break;
      case AtenArg::kInt: out_ += std::to_string(arg.i); break;
      case AtenArg::kFloat: text::append_float(&out_, arg.f); break;
      case AtenArg::kBool: out_ += arg.i ? "true" : "false"; break;
      case AtenArg::kString: text::append_string(&out_, arg.s); break;
      case AtenArg::kIntList: list("ints", arg.ints); break;
      case AtenArg::kBoolList: list("bools", arg.ints); break;
      case AtenArg::kFloatList:
        out_ += "floats[";
        for (size_t k = 0; k < arg.floats.size(); ++k) {
          if (k) out_ += ",";
          text::append_float(&out_, arg.floats[k]);
        }
        out_ += "]";
        break;
      case AtenArg::kScalar:
        out_ += "$";
        operand_at(inst, arg.operands[0]);
        break;
      case AtenArg::kScalarTensor:
        out_ += "$";
        out_ += dtype_name(arg.dtype);
        out_ += " ";
        operand_at(inst, arg.operands[0]);
        break;
      case AtenArg::kNumberTensor:
        out_ += "#";
        out_ += dtype_name(arg.dtype);
        out_ += " ";
        if (is_floating(arg.dtype)) {
          text::append_float(&out_, arg.f);
        } else {
          out_ += std::to_string(arg.i);
        }
        break;
      case AtenArg::kOpaque: out_ += "opaque " + std::to_string(arg.i); break;
    }
  }

  void list(const char* name, const std::vector<int64_t>& values) {
    out_ += name;
    out_ += "[";
    for (size_t k = 0; k < values.size(); ++k) out_ += (k ? "," : "") + std::to_string(values[k]);
    out_ += "]";
  }

  void snapshot(size_t index) {
    out_ += "snap" + std::to_string(index) + ":";
    const Snapshot& snapshot = trace_.snapshots[index];
    if (snapshot.elsewhere) out_ += " elsewhere";
    for (size_t k = 0; k < snapshot.frames.size(); ++k) {
      const SnapshotFrame& frame = trace_.frame(snapshot, k);
      out_ += k ? " | " : " ";
      if (frame.function == kNoRef) {
        out_ += "root";
      } else {
        value(frame.function);
      }
      if (frame.code) out_ += " code " + std::to_string(code_number(frame.code));
      out_ += " unit " + std::to_string(frame.unit);
      if (frame.continuation) out_ += " then " + std::to_string(frame.continuation);
      if (frame.continuation_value != kNoRef) {
        out_ += " with ";
        value(frame.continuation_value);
      }
      out_ += " [";
      for (size_t slot = 0; slot < frame.slots.size(); ++slot) {
        if (slot) out_ += ", ";
        if (frame.slots[slot] == kSlotNull) {
          out_ += "_";
        } else if (frame.slots[slot] == kSlotUnchanged) {
          out_ += "=";
        } else {
          value(frame.slots[slot]);
        }
      }
      out_ += "]";
    }
    for (const SnapshotStore& store : snapshot.stores) {
      out_ += " | store ";
      value(store.dict);
      out_ += " ";
      value(store.key);
      out_ += " ";
      value(store.value);
    }
    out_ += "\n";
  }

  size_t code_number(void* code) { return codes_.try_emplace(code, codes_.size() + 1).first->second; }

  const Trace& trace_;
  std::string out_;
  std::vector<bool> named_;
  std::unordered_map<void*, size_t> codes_;
};

}  // namespace

std::string print_trace(const Trace& trace) {
  Printer printer(trace);
  printer.whole();
  return printer.take();
}

std::string print_inst(const Trace& trace, Ref ref) {
  Printer printer(trace);
  printer.inst(ref);
  return printer.take();
}

std::string print_meta(const TensorMeta& meta) {
  std::string out(dtype_name(meta.dtype));
  auto list = [&](char open, const std::vector<int64_t>& values, char close) {
    out += open;
    for (size_t k = 0; k < values.size(); ++k) out += (k ? "," : "") + std::to_string(values[k]);
    out += close;
  };
  list('[', meta.sizes, ']');
  list('{', meta.strides, '}');
  out += " s" + std::to_string(meta.storage);
  if (meta.offset) out += " offset " + std::to_string(meta.offset);
  if (meta.device_type != 0 || meta.device_index != -1) {
    out += " device " + std::to_string(meta.device_type) + " " + std::to_string(meta.device_index);
  }
  if (meta.requires_grad) out += " grad";
  if (!meta.is_leaf) out += " nonleaf";
  if (meta.wrapped_number) out += " wrapped";
  if (meta.is_parameter) out += " param";
  if (meta.is_subclass) out += " subclass";
  if (meta.has_hooks) out += " hooks";
  if (meta.inference) out += " inference";
  if (meta.open != 0) out += " open " + std::to_string(static_cast<int64_t>(meta.open));
  if (meta.symbolic) out += " symbolic";
  if (!meta.shown.empty()) {
    out += " shown ";
    list('{', meta.shown, '}');
  }
  return out;
}

}  // namespace dynvm::ir
