// See failures.h.
#include "tracer/failures.h"

#include <fmt/format.h>

#include <string_view>

#include "runtime/base/log.h"
#include "runtime/base/report.h"

namespace dynvm::tracer {

namespace {

bool is_own(const std::string& text) {
#define X(part, sentence) \
  if (text.find(part) != std::string::npos) return true;
#include "tracer/own_errors.def"
#undef X
  return false;
}

// "train.py:12 (main)", and the switch that leaves the trace out.
std::string place_of(const LoopTrace& trace) { return fmt::format("{}:{} ({})", trace.entry->file, trace.entry->line, trace.entry->function); }
std::string switch_for(const LoopTrace& trace) { return fmt::format("--disable=trace:{}:{}", trace.entry->file, trace.entry->line); }

std::string text_of(PyObject* type, PyObject* value) {
  std::string text = reinterpret_cast<PyTypeObject*>(type)->tp_name;
  PyObject* of_value = value != nullptr ? PyObject_Str(value) : nullptr;
  const char* shown = of_value != nullptr ? PyUnicode_AsUTF8(of_value) : nullptr;
  if (shown != nullptr && *shown != 0) text += std::string(": ") + shown;
  Py_XDECREF(of_value);
  PyErr_Clear();
  return text.substr(0, text.find('\n'));
}

void add_note(const std::string& note) {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject* done = value != nullptr ? PyObject_CallMethod(value, "add_note", "s", note.c_str()) : nullptr;
  if (done == nullptr) PyErr_Clear();
  Py_XDECREF(done);
  PyErr_Restore(type, value, traceback);
}

}  // namespace

std::string take_failure() {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  if (type == nullptr) return "no reason was given";
  PyErr_NormalizeException(&type, &value, &traceback);
  std::string text = text_of(type, value);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return text;
}

void note_own_error(const LoopTrace& trace) {
  bool own = PyErr_Occurred() == nullptr;
  if (own) PyErr_SetString(PyExc_SystemError, "dynvm: an operation of a trace failed without a reason");
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const std::string text = text_of(type, value);
  PyErr_Restore(type, value, traceback);
  own = own || is_own(text);
  if (!own) return;
  base::report().failures.own[fmt::format("{}:{}: {}", trace.entry->file, trace.entry->line, text)]++;
  add_note(fmt::format("dynvm: this was raised inside the trace of {}, and python might not raise it. {} leaves that trace out; `dynvm bisect` finds what is wrong.",
                       place_of(trace), switch_for(trace)));
}

void note_missing_error(const char* where) {
  if (PyErr_Occurred() != nullptr) return;
  PyErr_Format(PyExc_SystemError, "dynvm: %s failed without a reason", where);
  base::report().failures.own[fmt::format("{}: no reason was given", where)]++;
  add_note("dynvm: python would not raise this. --jit=off runs the script without traces; `dynvm bisect` finds what is wrong.");
}

void drop_failed(LoopState& loop, const Failed& failed, bridge::Bridge* bridge) {
  constexpr int kMost = 8;  // failures of a loop, before it gets no more traces
  const LoopTrace& trace = *failed.trace;
  base::report().failures.own[fmt::format("{}:{}: {}", trace.entry->file, trace.entry->line, failed.failure)]++;
  base::report().notes.emplace(fmt::format("trace {} of {}", trace.id, place_of(trace)),
                               fmt::format("{} failed in it and not in the interpreter ({}); it was dropped. {} leaves it out.", failed.operation, failed.failure, switch_for(trace)));
  DYNVM_EVENT(kTrace, (base::EventFields{.what = "dropped", .trace = trace.id, .file = trace.entry->file, .line = trace.entry->line, .detail = failed.failure}),
              "trace {} dropped: {} failed in it and not in the interpreter: {}", trace.id, failed.operation, failed.failure);
  loop.lessons.failing.insert(failed.operation);
  const auto drop_from = [&](TraceGroup& group) {
    if (!group.holds(failed.trace)) return 0;
    const int recorded = group.recorded();
    group.drop(failed.trace);
    return recorded - group.recorded();
  };
  drop_from(loop.roots);
  for (auto& [place, side] : loop.sides) loop.num_sides -= drop_from(side.group);
  TraceCache::forget(trace, loop.code, loop.unit, bridge);
  if (++loop.failures >= kMost) loop.left_out = true;
}

}  // namespace dynvm::tracer
