// A Python extension module around the evaluator, for its own tests: _dynvm_vm.install(), uninstall(), stats(), stress(), trace().
//
// Purpose: lets `python` switch the evaluator on without the launcher, and drives the recording interface without a tracer.
// Inputs, outputs: as vm.h. Invariants: what runs under stress() or trace() behaves as it would without.
// Tests: used by tests/vm/test_scripts.py, tests/vm/test_recording.py.
#include "vm/vm.h"

#include <string>
#include <vector>

namespace {

using namespace dynvm::vm;

PyObject* install_(PyObject*, PyObject* arguments) {
  NativeSettings native;
  native.room = INT64_MAX;
  if (!PyArg_ParseTuple(arguments, "|iiil", &native.calls, &native.loops, &native.misses, &native.room)) return nullptr;
  if (!install(false, native)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* uninstall_(PyObject*, PyObject*) {
  uninstall();
  Py_RETURN_NONE;
}

PyObject* stats_(PyObject*, PyObject*) {
  const Stats& s = stats();
  return Py_BuildValue("{sK sK sK sK sK sK sK sK}", "decoded_codes", s.decoded_codes, "activations", s.activations,
                       "inlined_frames", s.inlined_frames, "resumed_generators", s.resumed_generators, "handovers", s.handovers,
                       "reinstalls", s.reinstalls, "native_runs", s.native_runs, "native_given_up", s.native_given_up);
}

// ---- stress: records everything that gets hot for a while, and takes frames apart and builds them again

struct Stress {
  Hooks hooks;
  long length = 0;         // instructions to record
  long left = 0;
  bool rebuild = false;
  unsigned long recordings = 0, recorded = 0, rebuilt = 0, events = 0;
};
Stress g_stress;

HookResult stress_hot(ThreadView& view, HotCounter& counter) {
  counter.count = counter.limit;
  if (!start_recording(view)) return HookResult::kContinue;
  ++g_stress.recordings;
  g_stress.left = g_stress.length;
  return HookResult::kReload;
}

// Takes the current inlined frame, which stands at its first kResume, away and pushes it anew with the same locals.
bool rebuild_frame(ThreadView& view) {
  Callers callers(view);
  if (FrameView::generator(view.frame) != nullptr || !FrameView::give_up_object(view.frame) || !callers.next()) return false;
  auto* function = reinterpret_cast<PyFunctionObject*>(Py_NewRef(reinterpret_cast<PyObject*>(FrameView::function(view.frame))));
  const Inst* here = view.ip;
  std::vector<PyObject*> locals;
  for (int i = 0; i < FrameView::local_count(view.frame); ++i) locals.push_back(Py_XNewRef(FrameView::locals(view.frame)[i]));
  drop_frame(view);
  _PyInterpreterFrame* frame = view.ip == callers.at ? push_frame(view, function, callers.continuation) : nullptr;
  if (frame == nullptr) Py_FatalError("stress: a frame could not be pushed again");
  for (size_t i = 0; i < locals.size(); ++i) FrameView::locals(frame)[i] = locals[i];
  set_position(view, here);
  Py_DECREF(function);
  ++g_stress.rebuilt;
  return true;
}

HookResult stress_record(ThreadView& view) {
  ++g_stress.recorded;
  if (recording_thread() != PyThreadState_Get()) Py_FatalError("stress: record hook outside of a recording");
  if (!is_plain(FrameView::code(view.frame), view.ip)) Py_FatalError("stress: fast code while recording");
  if (--g_stress.left <= 0) {
    stop_recording(view);
    return HookResult::kReload;
  }
  if (g_stress.rebuild && opcode(view.ip) == Op::kResume && oparg(view.ip) == 0 && view.frame != view.entry_frame &&
      g_stress.left % 2 == 0) {
    g_stress.left -= 1;  // the moved position is recorded again: not twice in a row
    if (rebuild_frame(view)) return HookResult::kReload;
  }
  return HookResult::kContinue;
}

void stress_event(ThreadView&, const EventInfo& info) {
  if (++g_stress.events % 2 == 0 && info.event == Event::kNestedEntry) follow_nested();
}

PyObject* stress_(PyObject*, PyObject* arguments) {
  int loop_limit, call_limit, rebuild = 0;
  long length;
  if (!PyArg_ParseTuple(arguments, "iil|i", &loop_limit, &call_limit, &length, &rebuild)) return nullptr;
  g_stress.hooks = Hooks{stress_hot, stress_hot, stress_record, stress_event, loop_limit, call_limit};
  g_stress.length = length;
  g_stress.rebuild = rebuild != 0;
  set_hooks(loop_limit != 0 || call_limit != 0 ? &g_stress.hooks : nullptr);
  Py_RETURN_NONE;
}

PyObject* stress_stats(PyObject*, PyObject*) {
  return Py_BuildValue("{sk sk sk sk}", "recordings", g_stress.recordings, "recorded", g_stress.recorded, "rebuilt",
                       g_stress.rebuilt, "events", g_stress.events);
}

// ---- trace: the instructions and events of one recording, as strings

Hooks g_trace_hooks;
std::vector<std::string> g_trace;
long g_trace_left = 0;
int g_trace_follows = 0;

HookResult trace_hot(ThreadView& view, HotCounter& counter) {
  if (g_trace_left <= 0 || !start_recording(view)) return HookResult::kContinue;
  g_trace.push_back(std::string("hot ") + (counter.is_call ? "call" : "loop"));
  return HookResult::kReload;
}

std::string function_name(_PyInterpreterFrame* frame) {
  return PyUnicode_AsUTF8(FrameView::code(frame)->co_name);
}

HookResult trace_record(ThreadView& view) {
  std::string line = function_name(view.frame) + " " + std::string(op_name(opcode(view.ip))) + " " + std::to_string(oparg(view.ip));
  if (PyObject* names = kwnames(FrameView::code(view.frame), view.ip)) line += " kw" + std::to_string(PyTuple_GET_SIZE(names));
  if (jump_target(view.ip) != nullptr) {
    line += " ->" + std::to_string(unit_of(FrameView::code(view.frame), jump_target(view.ip)));
  }
  if (view.entered_handler) line += " handler";
  g_trace.push_back(line);
  if (--g_trace_left <= 0) {
    stop_recording(view);
    return HookResult::kReload;
  }
  return HookResult::kContinue;
}

void trace_event(ThreadView&, const EventInfo& info) {
  static const char* const kNames[] = {"pushed", "returned", "yielded", "resumed", "made", "unwind", "unwound",
                                       "nested", "nested-exit", "end", "handover"};
  std::string line = std::string("* ") + kNames[static_cast<int>(info.event)] + " " + function_name(info.frame);
  if (info.event == Event::kFramePushed || info.event == Event::kFrameResumed) {
    line += " " + std::string(continuation_name(info.continuation));
  }
  g_trace.push_back(line);
  if (info.event == Event::kNestedEntry && g_trace_follows != 0) follow_nested();
}

PyObject* trace_(PyObject*, PyObject* arguments) {
  int loop_limit, call_limit;
  g_trace_follows = 0;
  if (!PyArg_ParseTuple(arguments, "iil|i", &loop_limit, &call_limit, &g_trace_left, &g_trace_follows)) return nullptr;
  g_trace.clear();
  g_trace_hooks = Hooks{trace_hot, trace_hot, trace_record, trace_event, loop_limit, call_limit};
  set_hooks(&g_trace_hooks);
  Py_RETURN_NONE;
}

PyObject* take_trace(PyObject*, PyObject*) {
  set_hooks(nullptr);
  PyObject* list = PyList_New(0);
  for (const std::string& line : g_trace) {
    PyObject* text = list != nullptr ? PyUnicode_FromString(line.c_str()) : nullptr;
    if (text == nullptr || PyList_Append(list, text) < 0) {
      Py_XDECREF(text);
      Py_XDECREF(list);
      return nullptr;
    }
    Py_DECREF(text);
  }
  return list;
}

PyObject* loop_of(PyObject*, PyObject* arguments) {
  PyObject* code;
  int unit;
  if (!PyArg_ParseTuple(arguments, "O!i", &PyCode_Type, &code, &unit)) return nullptr;
  const HotCounter* const loop = enclosing_loop(reinterpret_cast<PyCodeObject*>(code), unit);
  return PyLong_FromLong(loop != nullptr ? loop->unit : -1);
}

PyObject* decode_(PyObject*, PyObject* arguments) {
  PyObject* object;
  int plain;
  if (!PyArg_ParseTuple(arguments, "O!i", &PyCode_Type, &object, &plain)) return nullptr;
  auto* code = reinterpret_cast<PyCodeObject*>(object);
  PyObject* list = PyList_New(0);
  const Inst* first = first_inst(code, plain != 0);
  for (int i = 0; list != nullptr && i < inst_count(code); ++i) {
    const Inst* inst = first + i;
    const Inst* target = jump_target(inst);
    PyObject* names = kwnames(code, inst);
    PyObject* row = Py_BuildValue("(isiiiOO)", unit_of(code, inst), op_name(opcode(inst)).data(), oparg(inst), lasti_of(code, inst),
                                  target != nullptr ? unit_of(code, target) : -1,
                                  names != nullptr ? names : Py_None,
                                  inst == inst_at(code, unit_of(code, inst), plain != 0) && index_of(code, inst) == i &&
                                          as_fast(code, as_plain(code, inst)) == as_fast(code, inst)
                                      ? Py_True
                                      : Py_False);
    if (row == nullptr || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

PyMethodDef kMethods[] = {
    {"install", install_, METH_VARARGS, "Makes dynvm's evaluator the interpreter's; when native runs are compiled: calls, loops, misses, room."},
    {"uninstall", uninstall_, METH_NOARGS, "Gives frames back to CPython's evaluator."},
    {"stats", stats_, METH_NOARGS, "The evaluator's counters as a dict."},
    {"stress", stress_, METH_VARARGS, "stress(loop_limit, call_limit, length, rebuild): record all that gets hot."},
    {"stress_stats", stress_stats, METH_NOARGS, "What stress() has done."},
    {"trace", trace_, METH_VARARGS, "trace(loop_limit, call_limit, length): record what gets hot next."},
    {"take_trace", take_trace, METH_NOARGS, "Ends trace(); list of lines."},
    {"decode", decode_, METH_VARARGS, "decode(code, plain): (unit, name, arg, lasti, target unit, kwnames, maps agree) of each instruction."},
    {"enclosing_loop", loop_of, METH_VARARGS, "enclosing_loop(code, unit)."},
    {nullptr, nullptr, 0, nullptr}};
PyModuleDef kModule = {PyModuleDef_HEAD_INIT, "_dynvm_vm", nullptr, -1, kMethods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__dynvm_vm() { return PyModule_Create(&kModule); }
