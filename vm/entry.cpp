// Entries into the evaluator from C: the evaluation slot, and functions that C calls.
//
// Purpose: evaluate_frame takes any frame. Where C calls a Python function (sorted(key=f), map(f, ...), a dict that asks for __hash__),
//   CPython makes its frame in four functions that each pass the arguments on; call_function makes it and enters the evaluator at once.
// Inputs, outputs: the protocols of frame evaluation and of vectorcall.
// Invariants: a function gets call_function when C has called it once (call_directly), and only if it had CPython's own; while CPython's
//   evaluator runs frames of ours it has that again (slot.cpp), since that evaluator keeps only calls of such functions in its own loop. Where
//   the evaluation slot is not ours a call is CPython's.
// Tests: tests/vm/, scripts/calls_from_c.py.
#include "runtime/base/pending.h"
#include "vm/eval.h"
#include "vm/native/native.h"

namespace dynvm::vm {

PyObject* evaluate_frame(PyThreadState* tstate, cpython::Frame* frame, int throwing) {
  if (base::finish_pending != nullptr) [[unlikely]] base::finish_pending();
  if (cpython::traced(tstate)) [[unlikely]] {
    ++g_stats.handovers;
    return cpython::run_foreign(tstate, frame, throwing);
  }
  if (cpython::is_generator_frame(frame) && !throwing) {
    if (Inst* known = known_resumption(frame)) return g_run(tstate, frame, known, Start::kHere);
  }
  Code* code = code_for(cpython::code_of(frame));
  // A code object that is being deallocated may still run (a callback of another owner of extra data): its Code is dead then.
  if (code == nullptr || code->hidden || code->code != cpython::code_of(frame)) [[unlikely]] {
    if (code == nullptr) PyErr_Clear();
    if (code == nullptr || !code->hidden) ++g_stats.handovers;
    return _PyEval_EvalFrameDefault(tstate, frame, throwing);
  }
  cpython::call_directly(frame, call_function);
  const int unit = cpython::next_unit(frame);
  if (throwing) return g_run(tstate, frame, code->fast + code->unit_to_index[unit > 0 ? unit - 1 : 0], Start::kThrow);
  if (unit == 0) return g_run(tstate, frame, code->fast, start_of(code));
  return g_run(tstate, frame, find_resumption(frame), Start::kHere);
}

PyObject* call_function(PyObject* callable, PyObject* const* arguments, size_t count, PyObject* kwnames) {
  if (base::finish_pending != nullptr) [[unlikely]] base::finish_pending();
  auto* function = reinterpret_cast<PyFunctionObject*>(callable);
  PyThreadState* tstate = cpython::current_thread();
  Code* target = find_code(reinterpret_cast<PyCodeObject*>(function->func_code));
  const Py_ssize_t positional = PyVectorcall_NARGS(count), keywords = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  if (target == nullptr || target->hidden || !cpython::has_fast_locals(target->code) || tstate->interp->eval_frame != evaluate_frame ||
      cpython::traced(tstate)) [[unlikely]] {
    return cpython::g_slots.function_call(callable, arguments, count, kwnames);
  }
  cpython::Frame* frame = allocate_frame(tstate, function, target, 0);
  if (frame == nullptr) [[unlikely]] return nullptr;
  frame->stacktop = target->local_count;
  PyObject** locals = frame->localsplus;
  if (target->simple && keywords == 0 && positional == target->argcount) [[likely]] {
    int i = 0;
    for (; i < positional; ++i) locals[i] = Py_NewRef(arguments[i]);
    for (; i < target->local_count; ++i) locals[i] = nullptr;
  } else {
    for (int i = 0; i < target->local_count; ++i) locals[i] = nullptr;
    PyObject* const* const names = keywords != 0 ? &PyTuple_GET_ITEM(kwnames, 0) : nullptr;
    const int bound = bind_arguments(function, target, locals, arguments, positional, names, arguments + positional, keywords);
    if (bound <= 0) [[unlikely]] {
      Py_DECREF(target->code);
      Py_DECREF(function);
      cpython::pop_words(tstate, reinterpret_cast<PyObject**>(frame));
      return bound < 0 ? nullptr : cpython::g_slots.function_call(callable, arguments, count, kwnames);  // raises CPython's message
    }
  }
  if (--target->heat == 0) [[unlikely]] native::compile(target, frame);
  PyObject* result = g_run(tstate, frame, target->fast, start_of(target));
  if constexpr (!cpython::kEvaluatorEndsFrames) {
    cpython::count_recursion(tstate);
    if (frame->frame_obj == nullptr) [[likely]] {
      cpython::clear_plain_frame(frame, frame->stacktop);
    } else {
      cpython::clear_frame(tstate, frame);
    }
    cpython::leave_recursion(tstate);
    cpython::pop_words(tstate, reinterpret_cast<PyObject**>(frame));
  }
  return result;
}

}  // namespace dynvm::vm
