// See dict_uses.h.
#include "tracer/dict_uses.h"

#include <algorithm>

#include "runtime/base/heuristics.h"
#include "runtime/base/log.h"
#include "tracer/compile.h"
#include "vm/objects.h"

namespace dynvm::tracer {
namespace {

// Null: it is not there. Borrowed.
PyObject* item_now(const DictUse& use) {
  PyObject* value = PyDict_GetItemWithError(use.dict, use.key);
  if (value == nullptr) PyErr_Clear();
  return value;
}

// Objects that cost nothing to keep, and those that no weak reference can be made to, as a module's dict of parameters: the trace compares with them, and owns them anyway.
bool may_be_owned(PyObject* object) {
  return !PyType_SUPPORTS_WEAKREFS(Py_TYPE(object)) || PyFunction_Check(object) || PyCFunction_Check(object) || PyType_Check(object) || PyModule_Check(object);
}

bool still_holds(const DictUse& use) {
  if (use.key == nullptr || use.how == DictUse::kUnknown) return false;
  PyObject* value = item_now(use);
  if (use.how == DictUse::kMissing) return value == nullptr;
  if (use.how == DictUse::kSame) return value == use.held;
  return value != nullptr && vm::referent(use.held) == value;
}

}  // namespace

DictUse use_of(PyObject* dict, PyObject* key, std::vector<PyObject*>* owned) {
  DictUse use{dict, key};
  if (key == nullptr) return use;
  PyObject* value = item_now(use);
  if (value == nullptr) {
    use.how = DictUse::kMissing;
    return use;
  }
  if (may_be_owned(value)) {
    use.how = DictUse::kSame;
    use.held = Py_NewRef(value);
  } else {
    use.held = PyWeakref_NewRef(value, nullptr);
    if (use.held == nullptr) PyErr_Clear();
    else use.how = DictUse::kWeak;
  }
  if (use.held != nullptr) owned->push_back(use.held);
  return use;
}

PyObject* guarded_dict(const ir::Trace& ir, const ir::Inst& guard) {
  if (guard.op != ir::Op::k_guard_dict_version) return nullptr;
  const ir::Inst& guarded = ir.insts[ir.arg(guard, 0)];
  return guarded.op == ir::Op::k_const_obj ? static_cast<PyObject*>(ir.objects[guarded.imm].pointer) : nullptr;
}

std::unordered_set<const PyObject*> unchanged_dicts(const LoopTrace& trace) {
  std::unordered_set<const PyObject*> unchanged, others;
  for (const DictUse& use : trace.uses) (still_holds(use) ? unchanged : others).insert(use.dict);
  for (const PyObject* dict : others) unchanged.erase(dict);
  return unchanged;
}

std::vector<PyObject*> renew_guards(LoopTrace& trace) {
  // One that changes all the time is better read item by item.
  const base::Heuristics& limits = base::heuristics();
  const uint64_t complete = std::max(trace.compiled->iterations(), trace.compiled->runs());
  const bool may_renew = trace.renewals < limits.renewals || static_cast<uint64_t>(trace.renewals) * static_cast<uint64_t>(limits.renewal_runs) <= complete;
  const std::unordered_set<const PyObject*> unchanged = may_renew ? unchanged_dicts(trace) : std::unordered_set<const PyObject*>{};
  std::unordered_set<const PyObject*> renewed, met;
  std::vector<PyObject*> changed;
  const ir::Trace& ir = trace.compiled->ir();
  for (ir::Ref ref = 0; ref < ir.insts.size(); ++ref) {
    PyObject* dict = guarded_dict(ir, ir.insts[ref]);
    if (dict == nullptr) continue;
    const auto version = static_cast<int64_t>(vm::dict_version(dict));
    if (version == ir.insts[ref].imm) continue;
    if (unchanged.count(dict) != 0) {
      trace.compiled->renew_version(ref, version);
      renewed.insert(dict);
    } else if (met.insert(dict).second) {
      changed.push_back(dict);
    }
  }
  if (renewed.empty()) return changed;
  trace.renewals++;
  DYNVM_LOG(kGuard, "trace {} {}: items of {} namespaces are as they were, others have changed", trace.id, ir.name, renewed.size());
  return changed;
}

}  // namespace dynvm::tracer
