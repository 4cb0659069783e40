// Objects whose death a script sees: its class has `__del__`, a generator is suspended inside of a `try` or `with`, a weak reference is asked. The recorder holds
// what it has a Value of, and a trace what it has made, until its iteration is over, so that such a one would die late; where exits alone make it, never.
//
// Method: of each such object it is known how often Values hold it. Where nobody else does, the instruction before has dropped it: the recording ends, and with it its
// references, before anything else runs. So a loop that drops such an object in each iteration has no trace.
// Invariants: what a trace holds for good (constants) is held by more than Values, and does not die.
// Tests: tests/traces/cases/objects_die_in_time.py.
#include <algorithm>

#include "tracer/recorder.h"
#include "vm/objects.h"

namespace dynvm::tracer {

Recorder::Mortal* Recorder::find_mortal(PyObject* object) {
  const auto found = std::find_if(mortals_.begin(), mortals_.end(), [&](const Mortal& each) { return each.object == object; });
  return found == mortals_.end() ? nullptr : &*found;
}

// Is there a moment at which the script would see it die? A generator's code tells whether it has handlers at all.
static bool may_show(PyObject* object) {
  if (!PyGen_CheckExact(object)) return true;
  PyObject* code = PyObject_GetAttrString(object, "gi_code");
  const bool handles = code == nullptr || vm::has_handlers(reinterpret_cast<PyCodeObject*>(code));
  if (code == nullptr) PyErr_Clear();
  Py_XDECREF(code);
  return handles;
}

// A Value holds it from now on.
void Recorder::note_held(PyObject* object) {
  if (Mortal* known = find_mortal(object)) known->held++;
  else if (Py_TYPE(object)->tp_finalize != nullptr && !is_tensor(object) && may_show(object)) note_mortal(object);
}

void Recorder::note_mortal(PyObject* object) {
  if (find_mortal(object) == nullptr) mortals_.push_back({object, std::count_if(values_.begin(), values_.end(), [&](const Value& value) { return value.concrete == object; })});
}

// A manager takes its generator with it.
static bool shows(PyObject* object) {
  PyObject* const dict = is_generator_manager(Py_TYPE(object)) ? vm::instance_dict(object) : nullptr;
  return dict != nullptr ? would_run_handlers(PyDict_GetItemString(dict, "gen")) : !PyGen_CheckExact(object) || would_run_handlers(object);
}

bool Recorder::one_has_died() const {
  return std::any_of(mortals_.begin(), mortals_.end(), [](const Mortal& each) { return Py_REFCNT(each.object) <= each.held && shows(each.object); });
}

// A function that returns drops its variables, which its trace does not make.
bool Recorder::one_dies_with_frame() const {
  return std::any_of(mortals_.begin(), mortals_.end(), [this](const Mortal& each) {
    for (size_t i = 0; i < static_cast<size_t>(frames_[0].nlocals); i++) {
      const V v = frames_[0].slots[i];
      if (v != root_initial_[i] && values_[static_cast<size_t>(v)].concrete == each.object && shows(each.object)) return true;
    }
    return false;
  });
}

}  // namespace dynvm::tracer
