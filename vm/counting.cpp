// Counts of what the evaluator executes; see counting.h for purpose, inputs, outputs, invariants and tests.
#include "vm/counting.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "vm/attr_cache.h"

namespace dynvm::vm {
namespace {

constexpr std::string_view kFormNames[] = {
#define GENERIC(name, effect, text) #name,
#include "vm/insts.def"
#define SPECIAL(name, generic, text) #name,
#include "vm/insts.def"
    "(recorded)", "(bad)", "(watched header)", "(stopped)"};
constexpr size_t kForms = std::size(kFormNames);
static_assert(kForms == kLabels);
constexpr size_t kRowsShown = 60;

uint64_t g_pairs[kForms][kForms];
std::map<std::string, uint64_t> g_operands;
size_t g_previous = static_cast<size_t>(Form::kNop);

std::string shown(size_t form) { return std::string(kFormNames[form]) + (form < static_cast<size_t>(Form::kGenericCount) ? "" : "*"); }

}  // namespace

std::string name_of(Form form) { return shown(static_cast<size_t>(form)); }

namespace {

std::string type_name(PyObject* object) { return object == nullptr ? "NULL" : Py_TYPE(object)->tp_name; }

std::string callee(const Inst* call, PyObject** sp) {
  const cpython::Callee found(sp - call->arg - 2);
  PyObject* callable = *found.slot;
  std::string text = type_name(callable) + (found.has_self ? " with self" : "") + ((call->extra & kNamed) != 0 ? ", keywords" : "");
  if (PyCFunction_Check(callable)) {
    text += std::string(" ") + reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name + ", flags " + std::to_string(PyCFunction_GET_FLAGS(callable));
  }
  if (Py_TYPE(callable) == &PyMethodDescr_Type) {
    PyMethodDef* method = reinterpret_cast<PyMethodDescrObject*>(callable)->d_method;
    text += std::string(" ") + method->ml_name + ", flags " + std::to_string(method->ml_flags);
  }
  if (PyType_Check(callable)) text += std::string(" ") + reinterpret_cast<PyTypeObject*>(callable)->tp_name;
  if (PyFunction_Check(callable)) {
    const Code* code = find_code(reinterpret_cast<PyCodeObject*>(reinterpret_cast<PyFunctionObject*>(callable)->func_code));
    const int missing = code == nullptr ? 0 : code->argcount - call->arg - (found.has_self ? 1 : 0);
    text += code == nullptr ? ", not decoded" : !code->simple ? ", not simple" : ", missing " + std::to_string(missing);
  }
  return text;
}

std::string attribute(PyObject* name, PyObject* owner) {
  if (PyModule_CheckExact(owner)) return "module";
  const AttrEntry* entry = find_attr(Py_TYPE(owner), name);
  static constexpr std::string_view kinds[] = {"instance", "class value", "method", "non-data", "slot", "getset", "property", "data"};
  static constexpr std::string_view accesses[] = {"opaque", "generic", "__getattribute__"};
  std::string text = type_name(owner);
  if (entry == nullptr) return text + ", no version";
  text += ", " + std::string(kinds[static_cast<int>(entry->kind)]) + ", " + std::string(accesses[static_cast<int>(entry->access)]);
  return text + (entry->mutable_descriptor ? ", mutable descriptor" : "");
}

// What a generic instruction is about to work on; "" where it has nothing to specialise on.
std::string operands(PyCodeObject* code, const Inst* inst, PyObject** sp) {
  switch (static_cast<Op>(inst->op)) {
    case Op::kBinaryOp: return std::to_string(inst->arg) + " " + type_name(sp[-2]) + " " + type_name(sp[-1]);
    case Op::kCompareOp: case Op::kContainsOp: case Op::kBinarySubscr: case Op::kStoreSubscr:
      return type_name(sp[-2]) + " " + type_name(sp[-1]);
    case Op::kForIter: case Op::kGetIter: case Op::kUnpackSequence: case Op::kPopJumpIfFalse: case Op::kPopJumpIfTrue: case Op::kFormatValue:
      return type_name(sp[-1]);
    case Op::kLoadAttr: case Op::kLoadMethod: case Op::kStoreAttr: return attribute(PyTuple_GET_ITEM(code->co_names, inst->arg), sp[-1]);
    case Op::kCall: return callee(inst, sp);
    case Op::kCallFunctionEx: return type_name(sp[-2 - (inst->arg & 1)]) + " " + type_name(sp[-1 - (inst->arg & 1)]);
    default: return {};
  }
}

using Row = std::pair<uint64_t, std::string>;

void print(std::string& text, std::string_view title, std::vector<Row> rows, uint64_t total) {
  std::sort(rows.rbegin(), rows.rend());
  text += std::string(title) + "\n";
  char line[64];
  for (size_t i = 0; i < std::min(rows.size(), kRowsShown); ++i) {
    snprintf(line, sizeof line, "  %12llu %5.2f %%  ", static_cast<unsigned long long>(rows[i].first), 100.0 * rows[i].first / total);
    text += line + rows[i].second + "\n";
  }
}

}  // namespace

void count_dispatch(const cpython::Frame* frame, const Inst* next, PyObject** sp) {
  const size_t form = label_index(next->handler);
  ++g_pairs[g_previous][form];
  g_previous = form;
  if (form >= static_cast<size_t>(Form::kGenericCount)) return;
  std::string text = operands(cpython::code_of(frame), next, sp);
  if (!text.empty()) ++g_operands[std::string(kFormNames[form]) + " " + text];
}

std::string counted() {
  std::vector<Row> forms, pairs, generic;
  uint64_t total = 0;
  for (size_t form = 0; form < kForms; ++form) {
    uint64_t count = 0;
    for (size_t before = 0; before < kForms; ++before) {
      count += g_pairs[before][form];
      if (g_pairs[before][form] != 0) pairs.emplace_back(g_pairs[before][form], shown(before) + " " + shown(form));
    }
    if (count != 0) forms.emplace_back(count, shown(form));
    total += count;
  }
  if (total == 0) return {};
  for (const auto& [what, count] : g_operands) generic.emplace_back(count, what);
  std::string text = std::to_string(total) + " instructions (* specialised or fused)\n";
  print(text, "forms:", std::move(forms), total);
  print(text, "pairs:", std::move(pairs), total);
  print(text, "operands of generic forms:", std::move(generic), total);
  return text;
}

}  // namespace dynvm::vm
