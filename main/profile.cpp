// See profile.h. What needs Python at the end (names and lines of samples) is done by a function of atexit's, the first that was registered and so the last to be
// called; the file is written after finalization.
#include "main/profile.h"

#include <Python.h>

#include "runtime/base/profile.h"
#include "runtime/base/report.h"

#ifdef DYNVM_HAS_VM
#include "vm/sampler.h"
#endif
#ifdef DYNVM_HAS_TRACER
#include "tracer/profiles.h"
#endif

namespace dynvm::main {

namespace {

namespace profile = base::profile;

constexpr double kSampleMs = 8;

profile::Timing collection;
uint64_t collection_began = 0;

// Of gc.callbacks: (phase, info).
PyObject* on_collection(PyObject*, PyObject* args) {
  const char* phase = nullptr;
  PyObject* info = nullptr;
  if (!PyArg_ParseTuple(args, "sO", &phase, &info)) return nullptr;
  if (phase[2] == 'a') {  // start
    collection_began = profile::ticks_now();
    collection.begin(&profile::meter(profile::Part::kGc));
  } else {
    collection.end();
    PyObject* generation = PyDict_Check(info) ? PyDict_GetItemString(info, "generation") : nullptr;
    const long number = generation != nullptr ? PyLong_AsLong(generation) : -1;
    profile::add_event(profile::Event::kGc, 0, collection_began, profile::ticks_now(), "generation " + std::to_string(number));
  }
  Py_RETURN_NONE;
}

// The script and what it has registered are over.
PyObject* on_exit(PyObject*, PyObject*) {
  profile::clock().go_on(&profile::meter(profile::Part::kProfile));
  profile::finish();
#ifdef DYNVM_HAS_VM
  profile::Data& data = profile::data();
  const vm::Samples samples = vm::stop_sampler();
  data.samples_lost = samples.lost;
#endif
#ifdef DYNVM_HAS_TRACER
  for (const auto& [key, count] : samples.counts) {
    profile::SampleKey shown{key.first, {}};
    for (const auto& [code, unit] : key.second) {
      profile::Place place = tracer::profiles::place_of(code, unit);
      place.unit = 0;  // samples of one line are one
      shown.frames.push_back(place);
    }
    data.samples[shown] += count;
  }
#endif
  profile::clock().go_on(&profile::meter(profile::Part::kFinish));
  Py_RETURN_NONE;
}

PyMethodDef collection_method = {"dynvm_profile", on_collection, METH_VARARGS, nullptr};
PyMethodDef exit_method = {"dynvm_profile", on_exit, METH_NOARGS, nullptr};

bool call_later(PyObject* module, const char* list, const char* method, PyMethodDef* definition) {
  PyObject* target = module == nullptr ? nullptr : list == nullptr ? Py_NewRef(module) : PyObject_GetAttrString(module, list);
  PyObject* function = target == nullptr ? nullptr : PyCFunction_New(definition, nullptr);
  PyObject* done = function == nullptr ? nullptr : PyObject_CallMethod(target, method, "O", function);
  Py_XDECREF(target);
  Py_XDECREF(function);
  Py_XDECREF(done);
  return done != nullptr;
}

void describe_program() {
  auto& program = profile::data().program;
  program["python"] = PY_VERSION;
  program["dynvm"] = DYNVM_VERSION;
  program["torch"] = DYNVM_TORCH_VERSION;
}

}  // namespace

bool start_profile() {
  if (!profile::on()) return true;
  if (Py_AtExit(profile::write) < 0) base::report().notes["profile"] = "too many exit functions: written late";
  describe_program();
  PyObject* gc = PyImport_ImportModule("gc");
  PyObject* atexit = PyImport_ImportModule("atexit");
  const bool done = call_later(gc, "callbacks", "append", &collection_method) && call_later(atexit, nullptr, "register", &exit_method);
  Py_XDECREF(gc);
  Py_XDECREF(atexit);
  if (!done) return false;
#ifdef DYNVM_HAS_VM
  profile::data().sample_ms = kSampleMs;
  if (!vm::start_sampler(kSampleMs, [] { return reinterpret_cast<const volatile profile::Meter*>(profile::main_clock().running)->owner; })) {
    profile::data().sample_ms = 0;
    base::report().notes["profile"] = "no samples: /proc/self/mem cannot be read";
  }
#endif
  return true;
}

void script_begins() {
  if (profile::on()) profile::clock().go_on(&profile::meter(profile::Part::kInterpreter));
}

}  // namespace dynvm::main
