// See dead_objects.h.
#include "tracer/dead_objects.h"

#include <unordered_map>

namespace dynvm::tracer {
namespace {

// What is found through more parts than these, or through a container of more items, counts as alive: looking costs time at each recording, and data is no part of what a trace assumes.
constexpr size_t kMostParts = 4096;
constexpr Py_ssize_t kMostItems = 1024;

using References = std::unordered_map<PyObject*, Py_ssize_t>;

bool is_large(PyObject* object) {
  return PyDict_CheckExact(object) ? PyDict_GET_SIZE(object) > kMostItems : (PyList_CheckExact(object) || PyTuple_CheckExact(object)) && Py_SIZE(object) > kMostItems;
}

bool is_traversed(PyObject* object) {
  if (is_large(object)) return false;
  if (PyType_Check(object)) return PyType_HasFeature(reinterpret_cast<PyTypeObject*>(object), Py_TPFLAGS_HEAPTYPE);
  return PyObject_IS_GC(object) && !PyModule_Check(object);
}

template <class Visit>
void visit_references(PyObject* object, const Visit& visit) {
  if (!is_traversed(object)) return;
  const traverseproc traverse = Py_TYPE(object)->tp_traverse;
  if (traverse == nullptr) return;
  traverse(object, [](PyObject* referent, void* arg) { return (*static_cast<const Visit*>(arg))(referent), 0; }, const_cast<void*>(static_cast<const void*>(&visit)));
}

}  // namespace

std::unordered_set<PyObject*> dead_objects(const std::vector<const std::vector<PyObject*>*>& lists) {
  References outside;  // references that have not been found inside
  std::vector<PyObject*> order;
  const auto add = [&](PyObject* object) {
    const auto [found, is_new] = outside.emplace(object, Py_REFCNT(object));
    if (is_new) order.push_back(object);
    return found;
  };
  for (const std::vector<PyObject*>* list : lists)
    for (PyObject* object : *list) --add(object)->second;
  const size_t most = order.size() + kMostParts;
  // What one of them alone refers to is a part of it, as the dict of an instance.
  for (size_t k = 0; k < order.size(); ++k)
    visit_references(order[k], [&](PyObject* referent) {
      const auto found = outside.find(referent);
      if (found != outside.end()) --found->second;
      else if (Py_REFCNT(referent) == 1 && is_traversed(referent) && order.size() < most) --add(referent)->second;
    });
  std::vector<PyObject*> alive;
  for (const auto& [object, count] : outside)
    if (count > 0) alive.push_back(object);
  for (size_t k = 0; k < alive.size(); ++k)
    visit_references(alive[k], [&](PyObject* referent) {
      const auto found = outside.find(referent);
      if (found == outside.end() || found->second > 0) return;
      found->second = 1;
      alive.push_back(referent);
    });
  std::unordered_set<PyObject*> dead;
  for (const auto& [object, count] : outside)
    if (count <= 0) dead.insert(object);
  return dead;
}

bool is_watched(PyObject* object) {
  if (object == nullptr || PyType_Check(object) || !PyType_SUPPORTS_WEAKREFS(Py_TYPE(object))) return false;
  for (auto* reference = reinterpret_cast<PyWeakReference*>(*PyObject_GET_WEAKREFS_LISTPTR(object)); reference != nullptr; reference = reference->wr_next)
    if (reference->wr_callback != nullptr) return true;
  return false;
}

}  // namespace dynvm::tracer
