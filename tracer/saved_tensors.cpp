// See saved_tensors.h.
#include "tracer/saved_tensors.h"

#include <cctype>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace dynvm::tracer {
namespace {

constexpr size_t kMostNodes = 1000;
constexpr std::string_view kRaw = "_raw_saved_", kLeaf = "AccumulateGrad", kGenerated = "Backward";

// An owned reference.
class Object {
 public:
  explicit Object(PyObject* object) : object_(object) {}
  ~Object() { Py_XDECREF(object_); }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_;
};

// As AddBackward0: of a derivative that autograd was generated from.
bool is_generated(std::string_view name) {
  while (!name.empty() && isdigit(static_cast<unsigned char>(name.back())) != 0) name.remove_suffix(1);
  return name.ends_with(kGenerated);
}

bool is_hooked(PyObject* node, PyObject* raw) {
  const Object saved(PyObject_GetAttr(node, raw));
  const Object hook(saved ? PyObject_GetAttrString(saved.get(), "unpack_hook") : nullptr);
  return !hook || hook.get() != Py_None;
}

// Errors are those of what has been written since, or of a torch that does not tell.
bool keeps(PyObject* node) {
  const std::string_view type = Py_TYPE(node)->tp_name;
  if (type.ends_with(kLeaf)) return false;
  if (!is_generated(type)) return true;
  const Object names(PyObject_Dir(reinterpret_cast<PyObject*>(Py_TYPE(node))));
  if (!names) return true;
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(names.get()); ++k) {
    PyObject* raw = PyList_GET_ITEM(names.get(), k);
    const char* text = PyUnicode_AsUTF8(raw);
    if (text == nullptr || !std::string_view(text).starts_with(kRaw)) continue;
    const std::string name = "_saved_" + std::string(text + kRaw.size());
    if (is_hooked(node, raw)) return true;
    const Object value(PyObject_GetAttrString(node, name.c_str()));
    if (!value || value.get() != Py_None) return true;
  }
  return false;
}

bool graph_keeps(PyObject* tensor) {
  struct Nodes {
    std::vector<PyObject*> all;
    ~Nodes() {
      for (PyObject* node : all) Py_DECREF(node);
    }
  } nodes;
  std::unordered_set<PyObject*> known;
  const auto add = [&](PyObject* node) {
    if (node == Py_None || !known.insert(node).second) return;
    nodes.all.push_back(Py_NewRef(node));
  };
  const Object last(PyObject_GetAttrString(tensor, "grad_fn"));
  if (!last) return true;
  add(last.get());
  for (size_t k = 0; k < nodes.all.size(); ++k) {
    if (k == kMostNodes || keeps(nodes.all[k])) return true;
    const Object next(PyObject_GetAttrString(nodes.all[k], "next_functions"));
    if (!next || !PyTuple_Check(next.get())) return true;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(next.get()); ++i) {
      PyObject* edge = PyTuple_GET_ITEM(next.get(), i);  // (node, which of its inputs)
      if (!PyTuple_Check(edge) || PyTuple_GET_SIZE(edge) != 2) return true;
      add(PyTuple_GET_ITEM(edge, 0));
    }
  }
  return false;
}

}  // namespace

bool keeps_tensors(PyObject* tensor) {
  const bool found = graph_keeps(tensor);
  PyErr_Clear();
  return found;
}

}  // namespace dynvm::tracer
