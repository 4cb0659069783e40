// See value_names.h. A value that a local variable holds at a snapshot has its name; else it is named by how it was made, from named values.
#include "tracer/value_names.h"

#include <Python.h>
#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace dynvm::tracer {

namespace {

using ir::Inst;
using ir::Op;
using ir::Ref;
using ir::Trace;

constexpr int kDepth = 6;  // of expressions: longer ones say less

std::string utf8(PyObject* text) {
  const char* chars = text != nullptr && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : nullptr;
  if (chars == nullptr) PyErr_Clear();
  return chars == nullptr ? "" : chars;
}

// "+", "<": how Python writes the operation.
const char* operator_of(Op op) {
  switch (op) {
    case Op::k_add_int:
    case Op::k_add_float: return "+";
    case Op::k_sub_int:
    case Op::k_sub_float: return "-";
    case Op::k_mul_int:
    case Op::k_mul_float: return "*";
    case Op::k_floordiv_int: return "//";
    case Op::k_mod_int: return "%";
    case Op::k_div_float: return "/";
    case Op::k_pow_float: return "**";
    case Op::k_and_int: return "&";
    case Op::k_or_int: return "|";
    case Op::k_xor_int: return "^";
    case Op::k_eq_int:
    case Op::k_eq_float:
    case Op::k_same_float: return "==";
    case Op::k_ne_int:
    case Op::k_ne_float: return "!=";
    case Op::k_lt_int:
    case Op::k_lt_float: return "<";
    case Op::k_le_int:
    case Op::k_le_float: return "<=";
    case Op::k_gt_int:
    case Op::k_gt_float: return ">";
    case Op::k_ge_int:
    case Op::k_ge_float: return ">=";
    case Op::k_is_same: return "is";
    default: return nullptr;
  }
}

bool is_constant(Op op) { return op == Op::k_const_int || op == Op::k_const_float || op == Op::k_const_bool || op == Op::k_const_obj; }

class Names {
 public:
  Names(const Trace& trace, Ref guard) : trace_(trace) {
    const int32_t number = trace.insts[guard].snapshot;
    if (number >= 0) snapshot_ = &trace.snapshots[number];
    if (snapshot_ == nullptr) return;
    for (size_t k = 0; k < snapshot_->frames.size(); ++k) root_ = root_ == nullptr ? static_cast<PyCodeObject*>(trace.frame(*snapshot_, k).code) : root_;
  }

  std::string of(Ref ref, int depth = 0) {
    if (ref >= trace_.insts.size() || depth > kDepth) return "";
    const Inst& inst = trace_.insts[ref];
    if (inst.op == Op::k_slot) return local(root_, inst.imm);
    if (!is_constant(inst.op))
      if (std::string name = variable(ref); !name.empty()) return name;
    const auto arg = [&](uint32_t k) { return k < inst.count ? of(trace_.arg(inst, k), depth + 1) : std::string(); };
    const auto around = [&](const char* before, const std::string& name, const char* behind) { return name.empty() ? name : before + name + behind; };
    if (const char* op = operator_of(inst.op)) {
      const bool compares = inst.type == ir::Type::kBool;
      const std::string a = compares ? bare(arg(0)) : arg(0), b = compares ? bare(arg(1)) : arg(1);
      if (a.empty() || b.empty()) return "";
      const std::string text = fmt::format("{} {} {}", a, op, b);
      return depth == 0 || compares ? text : "(" + text + ")";
    }
    switch (inst.op) {
      case Op::k_const_int: return std::to_string(inst.imm);
      case Op::k_const_bool: return inst.imm ? "True" : "False";
      case Op::k_const_float: return fmt::format("{}", std::bit_cast<double>(inst.imm));
      case Op::k_const_obj: return constant(ref);
      case Op::k_unbox_int:
      case Op::k_unbox_float:
      case Op::k_unbox_bool:
      case Op::k_unbox_tensor:
      case Op::k_box_int:
      case Op::k_box_float:
      case Op::k_box_bool:
      case Op::k_wrap:
      case Op::k_int_to_float:
      case Op::k_bool_to_int:
      case Op::k_get_iter:
      case Op::k_get_iter_known:
      case Op::k_load_dict_of:
      case Op::k_is_true:
      case Op::k_is_true_builtin: return arg(0);
      case Op::k_not_bool: return around("not ", arg(0), "");
      case Op::k_neg_int:
      case Op::k_neg_float: return around("-", arg(0), "");
      case Op::k_list_len:
      case Op::k_tuple_len:
      case Op::k_dict_len: return around("len(", arg(0), ")");
      case Op::k_tuple_item: return around("", arg(0), fmt::format("[{}]", inst.imm).c_str());
      case Op::k_iter_next:
      case Op::k_iter_next_known: return around("next of ", arg(0), "");
      case Op::k_read_scalar: return around("", arg(0), ".item()");
      case Op::k_result: return arg(0);
      case Op::k_aten: return around("", arg(0), ("." + trace_.calls[inst.imm].name.substr(6) + "()").c_str());
      case Op::k_tensor_size: return around("", arg(0), inst.imm < 0 ? ".numel()" : fmt::format(".shape[{}]", inst.imm).c_str());
      case Op::k_get_attr:
      case Op::k_get_attr_known: return around("", arg(0), ("." + unquoted(arg(1))).c_str());
      case Op::k_get_item: return around("", arg(0), ("[" + arg(1) + "]").c_str());
      case Op::k_contains:
      case Op::k_contains_known: {
        const std::string item = arg(1), container = arg(0);
        return item.empty() || container.empty() ? "" : item + " in " + container;
      }
      case Op::k_compare: {
        static constexpr const char* kCompare[] = {"<", "<=", "==", "!=", ">", ">="};
        const std::string a = arg(0), b = arg(1);
        return a.empty() || b.empty() || inst.imm < 0 || inst.imm > 5 ? "" : fmt::format("{} {} {}", a, kCompare[inst.imm], b);
      }
      case Op::k_dict_get: {
        const std::string key = unquoted(arg(1));
        if (trace_.insts[trace_.arg(inst, 0)].op == Op::k_const_obj) return key;  // of a module
        return around("", arg(0), ("." + key).c_str());
      }
      default: return "";
    }
  }

 private:
  // Without the parentheses around all of it.
  static std::string bare(const std::string& text) {
    if (text.size() < 2 || text.front() != '(') return text;
    int depth = 0;
    for (size_t k = 0; k + 1 < text.size(); ++k)
      if ((depth += text[k] == '(' ? 1 : text[k] == ')' ? -1 : 0) == 0) return text;
    return text.substr(1, text.size() - 2);
  }
  static std::string unquoted(std::string text) {
    if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'') return text.substr(1, text.size() - 2);
    return text;
  }
  static std::string local(PyCodeObject* code, int64_t index) {
    if (code == nullptr || index < 0 || index >= PyTuple_GET_SIZE(code->co_localsplusnames)) return "";
    const std::string name = utf8(PyTuple_GET_ITEM(code->co_localsplusnames, index));
    return name.empty() || name[0] == '.' ? "" : name;
  }
  std::string constant(Ref ref) const {
    const std::string& text = trace_.objects[trace_.insts[ref].imm].text;
    return text.size() > 40 ? "" : text;
  }
  // Does the snapshot's slot hold it, as it is or as an object?
  bool holds(Ref slot, Ref value) const {
    if (slot == value) return true;
    if (slot >= trace_.insts.size()) return false;
    const Inst& inst = trace_.insts[slot];
    const bool boxes = inst.op == Op::k_box_int || inst.op == Op::k_box_float || inst.op == Op::k_box_bool || inst.op == Op::k_wrap;
    return boxes && inst.count > 0 && trace_.arg(inst, 0) == value;
  }
  std::string variable(Ref ref) const {
    for (size_t k = snapshot_ == nullptr ? 0 : snapshot_->frames.size(); k-- > 0;) {
      const ir::SnapshotFrame& frame = trace_.frame(*snapshot_, k);
      auto* code = static_cast<PyCodeObject*>(frame.code);
      if (code == nullptr) continue;
      for (size_t slot = 0; slot < frame.slots.size(); ++slot)
        if (holds(frame.slots[slot], ref))
          if (std::string name = local(code, static_cast<int64_t>(slot)); !name.empty()) return name;
    }
    return "";
  }

  const Trace& trace_;
  const ir::Snapshot* snapshot_ = nullptr;
  PyCodeObject* root_ = nullptr;
};

// Of a comparison, the operand that may change.
Ref changing(const Trace& trace, const Inst& inst) {
  for (uint32_t k = 0; k < inst.count; ++k)
    if (!is_constant(trace.insts[trace.arg(inst, k)].op)) return trace.arg(inst, k);
  return ir::kNoRef;
}

std::string object_text(PyObject* object) {
  if (object == nullptr) return "nothing";
  if (object == Py_None || PyBool_Check(object) || PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyUnicode_CheckExact(object)) {
    PyObject* shown = PyObject_Repr(object);
    std::string text = utf8(shown);
    Py_XDECREF(shown);
    PyErr_Clear();
    return text.size() > 40 ? text.substr(0, 37) + "..." : text;
  }
  return std::string("a ") + Py_TYPE(object)->tp_name;
}

std::string sizes_text(const std::vector<int64_t>& sizes) {
  std::string text;
  for (int64_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

}  // namespace

bool freezes(const Trace& trace, const Inst& guard) {
  if (guard.op != Op::k_guard_true) return false;
  return guard.imm != ir::kTruth || trace.insts[trace.arg(guard, 0)].op == Op::k_same_float;
}

ExitReason exit_reason(const Trace& trace, const Inst& inst, bool raised) {
  if (!raised && freezes(trace, inst)) return {"value", "has changed"};
  if (!raised) switch (inst.op) {
#define X(op, kind, text) \
    case Op::k_##op: return {kind, text};
#include "tracer/exit_reasons.def"
#undef X
    default: break;
  }
  return {"error", "raised an exception"};
}

std::string what_decides(const Trace& trace, Ref guard) {
  const Inst& inst = trace.insts[guard];
  if (inst.count == 0) return "";
  Names names(trace, guard);
  // What matters of a number that was frozen, or that decides sizes, is the number.
  if (freezes(trace, inst))
    if (const Ref number = changing(trace, trace.insts[trace.arg(inst, 0)]); number != ir::kNoRef)
      if (std::string name = names.of(number); !name.empty()) return name;
  const bool divides = inst.op == Op::k_floordiv_int || inst.op == Op::k_mod_int || inst.op == Op::k_div_float;
  return names.of(trace.arg(inst, divides ? 1 : 0));
}

std::string value_seen(const runtime::CompiledTrace& compiled, const runtime::RunResult& run) {
  const Trace& trace = compiled.ir();
  const Inst& inst = trace.insts[run.inst];
  if (inst.count == 0 || run.kind != runtime::RunResult::kGuardExit) return "";
  const Ref operand = trace.arg(inst, 0);
  int64_t bits = 0;
  if (inst.op == Op::k_unbox_tensor) {
    std::vector<int64_t> sizes, strides;
    if (compiled.bridge()->refused_geometry(&sizes, &strides)) return sizes_text(sizes);
    return compiled.bridge()->last_refusal();
  }
  if (trace.insts[operand].type == ir::Type::kObject) {
    if (inst.op == Op::k_guard_dict_version || !compiled.value_at_exit(run, operand, &bits)) return "";
    auto* object = reinterpret_cast<PyObject*>(bits);
    const bool by_type = inst.op == Op::k_guard_type || inst.op == Op::k_unbox_int || inst.op == Op::k_unbox_float || inst.op == Op::k_unbox_bool;
    return by_type && object != nullptr ? Py_TYPE(object)->tp_name : object_text(object);
  }
  if (inst.op != Op::k_guard_true && inst.op != Op::k_guard_false) return "";
  const Inst& condition = trace.insts[operand];
  if (operator_of(condition.op) == nullptr) return "";
  const Ref number = changing(trace, condition);
  if (number == ir::kNoRef || !compiled.value_at_exit(run, number, &bits)) return "";
  if (trace.insts[number].type == ir::Type::kInt) return std::to_string(bits);
  if (trace.insts[number].type == ir::Type::kFloat) return fmt::format("{:.6g}", std::bit_cast<double>(bits));
  return trace.insts[number].type == ir::Type::kObject ? object_text(reinterpret_cast<PyObject*>(bits)) : "";
}

}  // namespace dynvm::tracer
