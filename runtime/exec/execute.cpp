// Calling a helper by its shape (execute.h).
#include "runtime/exec/execute.h"

#include <vector>

#include "runtime/exec/helpers.h"

namespace dynvm::runtime {
namespace {

// All operands are words, and a function ignores what it does not take, so one signature per shape will do.
using Word = void*;
template <typename Result>
Result call_words(const void* address, const std::vector<Word>& words) {
  auto function = reinterpret_cast<Result (*)(Word, Word, Word, Word, Word)>(reinterpret_cast<uintptr_t>(address));
  return function(words[0], words[1], words[2], words[3], words[4]);
}

}  // namespace

bool execute(ir::Op op, int64_t imm, PyObject* const* args, int count, PyObject* names, PyObject** result, int* truth) {
  using codegen::HelperShape;
  const codegen::Helper& helper = helper_table().of(op);
  char kind = ir::op_info(op).result;
  std::vector<Word> words(args, args + count);
  bool array = helper.shape == HelperShape::kArray || helper.shape == HelperShape::kCall;
  if (helper.address == nullptr || helper.shape == HelperShape::kGuardOut || (!array && count > 4)) {
    PyErr_Format(PyExc_SystemError, "dynvm: %.100s cannot be executed", ir::op_info(op).name.data());
    return false;
  }
  PyObject* out = nullptr;
  int status = 0;
  if (array) {
    words.resize(count + 1);  // never empty
    auto* items = reinterpret_cast<PyObject**>(words.data());
    if (helper.shape == HelperShape::kArray) {
      out = reinterpret_cast<PyObject* (*)(PyObject**, int64_t)>(reinterpret_cast<uintptr_t>(helper.address))(items, count);
    } else {
      out = reinterpret_cast<PyObject* (*)(PyObject**, int64_t, PyObject*)>(reinterpret_cast<uintptr_t>(helper.address))(items, count, names);
    }
  } else {
    if (helper.shape == HelperShape::kValuesImm) words.push_back(reinterpret_cast<Word>(imm));
    if (helper.shape == HelperShape::kOut) words.push_back(&out);
    words.resize(5);
    if (kind == 'o' && helper.shape != HelperShape::kOut) {
      out = call_words<PyObject*>(helper.address, words);
    } else {
      status = call_words<int>(helper.address, words);
    }
  }
  if (kind == 'o' && out == nullptr && helper.shape != HelperShape::kOut && helper.shape != HelperShape::kNullable) return false;
  if (status < 0) return false;
  if (result != nullptr) {
    *result = out;
  } else {
    Py_XDECREF(out);
  }
  if (truth != nullptr && kind == 'b') *truth = status;
  return true;
}

}  // namespace dynvm::runtime
