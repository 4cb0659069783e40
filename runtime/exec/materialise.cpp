// Making objects at exits (materialise.h).
#include "runtime/exec/materialise.h"

#include <algorithm>

#include "runtime/exec/execute.h"
#include "runtime/exec/helpers.h"

namespace dynvm::runtime {

using ir::Inst;
using ir::Op;
using ir::Ref;
using ir::Type;

Materialiser::~Materialiser() {
  for (auto& [ref, object] : made_) Py_XDECREF(object);
}

bool Materialiser::get(Ref ref, PyObject** out) {
  const Inst& inst = trace_.trace_.insts[ref];
  *out = nullptr;
  switch (inst.op) {
    case Op::k_const_obj: *out = Py_XNewRef(static_cast<PyObject*>(trace_.trace_.objects[inst.imm].pointer)); return true;
    case Op::k_slot: *out = Py_XNewRef(static_cast<PyObject*>(activation_->root_slots[inst.imm])); return true;
    default: break;
  }
  if (!inst.sunk && inst.type == Type::kObject) {
    *out = Py_XNewRef(reinterpret_cast<PyObject*>(activation_->values()[trace_.values_.values[ref].slot]));
    return true;
  }
  for (auto& [known, object] : made_) {
    if (known != ref) continue;
    *out = Py_XNewRef(object);
    return true;
  }
  if (!make(ref, out)) return false;
  made_.emplace_back(ref, Py_XNewRef(*out));
  return true;
}

void Materialiser::find_wraps(Ref ref) {
  if (ref >= trace_.trace_.insts.size() || !trace_.trace_.insts[ref].sunk || !seen_.insert(ref).second) return;
  const Inst& inst = trace_.trace_.insts[ref];
  for (uint32_t k = 0; k < inst.count; ++k) find_wraps(trace_.trace_.arg(inst, k));
  if (inst.op == Op::k_wrap && !trace_.trace_.wraps[inst.imm].forward.empty()) wraps_.push_back(ref);
}

bool Materialiser::rebuild(const std::vector<Ref>& refs) {
  for (Ref ref : refs) find_wraps(ref);
  // Where one graph is rebuilt all are: what has a node may be a part of it.
  const auto has_node = [this](Ref wrap) { return !trace_.trace_.wraps[trace_.trace_.insts[wrap].imm].nodes.empty(); };
  if (wraps_.size() < 2 || std::all_of(wraps_.begin(), wraps_.end(), has_node)) return true;
  for (Ref wrap : wraps_)
    if (!set_recipes(wrap)) return false;
  return CompiledTrace::rebuild(activation_, wraps_);
}

// Of Functions that its graph goes through.
bool Materialiser::set_recipes(Ref wrap) {
  const ir::Trace& trace = trace_.trace_;
  const Inst& inst = trace.insts[wrap];
  for (uint32_t k = 1, index = 0; k < inst.count; ++k) {
    if (trace.insts[trace.arg(inst, k)].type != Type::kObject) continue;
    PyObject* recipe = nullptr;
    if (!get(trace.arg(inst, k), &recipe)) return false;
    CompiledTrace::set_recipe(activation_, static_cast<int32_t>(wrap), static_cast<int32_t>(index++), recipe);
    Py_DECREF(recipe);
  }
  return true;
}

bool Materialiser::box(Type type, int64_t bits, PyObject** out) {
  switch (type) {
    case Type::kInt: *out = helpers::box_int(bits); break;
    case Type::kFloat: *out = helpers::box_float(bits); break;
    default: *out = PyBool_FromLong(bits != 0); break;
  }
  return *out != nullptr;
}

bool Materialiser::make(Ref ref, PyObject** out) {
  const ir::Trace& trace = trace_.trace_;
  const Inst& inst = trace.insts[ref];
  switch (inst.op) {
    case Op::k_const_int:
    case Op::k_const_float:
    case Op::k_const_bool: return box(inst.type, inst.imm, out);
    default: break;
  }
  if (!inst.sunk) return box(inst.type, activation_->values()[trace_.values_.values[ref].slot], out);
  switch (inst.op) {
    case Op::k_box_int:
    case Op::k_box_float:
    case Op::k_box_bool: return get(trace.arg(inst, 0), out);  // the number itself is boxed
    case Op::k_wrap:
      if (!set_recipes(ref)) return false;
      *out = CompiledTrace::wrap(activation_, static_cast<int32_t>(ref));
      return *out != nullptr;
    default: break;
  }
  std::vector<PyObject*> operands(inst.count, nullptr);
  bool fine = true;
  for (uint32_t k = 0; k < inst.count && fine; ++k) fine = get(trace.arg(inst, k), &operands[k]);
  if (fine) fine = execute(inst.op, inst.imm, operands.data(), static_cast<int>(inst.count), nullptr, out, nullptr);
  for (PyObject* operand : operands) Py_XDECREF(operand);
  return fine;
}

}  // namespace dynvm::runtime
