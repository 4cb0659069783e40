// Installing the evaluator and looking at instructions and frames; see vm.h for purpose, inputs, outputs, invariants and tests.
#include "vm/vm.h"

#include "vm/attr_cache.h"
#include "vm/eval.h"
#include "vm/native/native.h"
#include "vm/specialise.h"

namespace dynvm::vm {

Stats g_stats;
decltype(&run_frame) g_run = run_frame;

namespace {

bool g_installed = false;

constexpr std::string_view kOpNames[] = {
#define GENERIC(name, effect, text) #name,
#include "vm/insts.def"
};
constexpr std::string_view kContinuationNames[] = {
#define CONTINUATION(name, text) #name,
#include "vm/continuations.def"
};

}  // namespace

std::string_view op_name(Op op) { return kOpNames[static_cast<int>(op)]; }
std::string_view continuation_name(Continuation continuation) { return kContinuationNames[static_cast<int>(continuation)]; }

PyObject* kwnames(PyCodeObject* code, const Inst* call) { return opcode(call) == Op::kCall ? keyword_names(code, call) : nullptr; }

const Inst* jump_target(const Inst* inst) {
  switch (opcode(inst)) {
    case Op::kJumpForward: case Op::kJumpBackward: case Op::kJumpBackwardNoInterrupt: case Op::kPopJumpIfFalse:
    case Op::kPopJumpIfTrue: case Op::kPopJumpIfNone: case Op::kPopJumpIfNotNone: case Op::kJumpIfFalseOrPop:
    case Op::kJumpIfTrueOrPop: case Op::kForIter: case Op::kSend:
      return target_of(inst);
    default:
      return nullptr;
  }
}

bool is_backward_jump(const Inst* inst) {
  const Inst* target = jump_target(inst);
  return target != nullptr && target <= inst;
}

HotCounter* hot_counter(const Inst* inst) {
  if (opcode(inst) == Op::kResume || is_backward_jump(inst)) return reinterpret_cast<HotCounter*>(inst->cache[1]);
  return nullptr;
}

namespace {
Code* ready(PyCodeObject* code, bool plain) {
  Code* decoded = code_for(code);
  if (decoded == nullptr || (plain && !make_plain(decoded))) {
    PyErr_Clear();
    return nullptr;
  }
  return decoded;
}
}  // namespace

const Inst* inst_at(PyCodeObject* code, int unit_offset, bool plain) {
  Code* decoded = ready(code, plain);
  const int unit = unit_offset & ~kSecondHalf;
  if (decoded == nullptr || unit_offset < 0 || unit >= decoded->unit_count) return nullptr;
  return (plain ? decoded->plain : decoded->fast) + decoded->unit_to_index[unit] + (unit_offset != unit ? 1 : 0);
}
const Inst* first_inst(PyCodeObject* code, bool plain) { return inst_at(code, 0, plain); }
int inst_count(PyCodeObject* code) {
  Code* decoded = ready(code, false);
  return decoded != nullptr ? decoded->inst_count : 0;
}
bool is_plain(PyCodeObject* code, const Inst* inst) {
  Code* decoded = find_code(code);
  return decoded != nullptr && in_plain(decoded, inst);
}
int index_of(PyCodeObject* code, const Inst* inst) {
  Code* decoded = find_code(code);
  return static_cast<int>(inst - (in_plain(decoded, inst) ? decoded->plain : decoded->fast));
}
int unit_of(PyCodeObject* code, const Inst* inst) { return find_code(code)->start_unit[index_of(code, inst)]; }
int lasti_of(PyCodeObject*, const Inst* inst) { return static_cast<int>(inst->unit); }

const Inst* as_plain(PyCodeObject* code, const Inst* inst) {
  Code* decoded = ready(code, true);
  if (decoded == nullptr || in_plain(decoded, inst)) return inst;
  return to_plain(decoded, inst);
}
const Inst* as_fast(PyCodeObject* code, const Inst* inst) {
  Code* decoded = find_code(code);
  return in_plain(decoded, inst) ? to_fast(decoded, inst) : inst;
}

std::span<HotCounter> loop_counters(PyCodeObject* code) {
  Code* decoded = ready(code, false);
  if (decoded == nullptr) return {};
  return {decoded->counters + 1, static_cast<size_t>(decoded->counter_count - 1)};
}
HotCounter* enclosing_loop(PyCodeObject* code, int unit_offset) {
  HotCounter* best = nullptr;
  for (HotCounter& loop : loop_counters(code))
    if (lies_in(loop, unit_offset) && (best == nullptr || loop.unit > best->unit)) best = &loop;
  return best;
}
bool lies_in(const HotCounter& loop, int unit_offset) {
  const int unit = unit_offset & ~kSecondHalf;
  return loop.unit <= unit && unit <= loop.end;
}
HotCounter* call_counter(PyCodeObject* code) {
  Code* decoded = ready(code, false);
  return decoded != nullptr ? &decoded->counters[0] : nullptr;
}

// ---- frames

PyFunctionObject* FrameView::function(const _PyInterpreterFrame* frame) { return cpython::function_of(frame); }
PyCodeObject* FrameView::code(const _PyInterpreterFrame* frame) { return cpython::code_of(frame); }
PyObject* FrameView::globals(const _PyInterpreterFrame* frame) { return frame->f_globals; }
PyObject* FrameView::builtins(const _PyInterpreterFrame* frame) { return frame->f_builtins; }
PyObject* FrameView::locals_mapping(const _PyInterpreterFrame* frame) { return frame->f_locals; }
PyObject** FrameView::locals(_PyInterpreterFrame* frame) { return frame->localsplus; }
int FrameView::local_count(const _PyInterpreterFrame* frame) { return cpython::code_of(frame)->co_nlocalsplus; }
PyObject** FrameView::stack_base(_PyInterpreterFrame* frame) { return cpython::stack_base(frame); }
_PyInterpreterFrame* FrameView::previous(const _PyInterpreterFrame* frame) { return frame->previous; }
PyObject* FrameView::generator(_PyInterpreterFrame* frame) {
  return is_inlined_generator(frame) ? reinterpret_cast<PyObject*>(cpython::generator_of(frame)) : nullptr;
}
bool FrameView::give_up_object(_PyInterpreterFrame* frame) {
  PyFrameObject* object = frame->frame_obj;
  if (object == nullptr) return true;
  if (Py_REFCNT(object) > 1 || object->f_trace != nullptr) return false;
  frame->frame_obj = nullptr;
  Py_DECREF(object);
  return true;
}

// ---- installing

bool install(bool counting, const NativeSettings& settings) {
  if (g_installed) return true;
  native::g_settings = settings;
  native::g_settings.on &= !counting;  // what is counted must be executed by the evaluator
  if (!cpython::prepare() || !prepare_names() || !prepare_specialisation()) return false;
  g_run = counting ? count_run : run_frame;
  g_run(nullptr, nullptr, nullptr, Start::kHere);
  if (!prepare_decoder(g_label_table)) return false;
  g_installed = true;
  cpython::prepare_slot(evaluate_frame);
  _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), evaluate_frame);
  return true;
}

void set_native(const NativeSettings& settings) {
  const bool on = native::g_settings.on;
  native::g_settings = settings;
  native::g_settings.on &= on;
}

void uninstall() {
  if (!g_installed) return;
  g_installed = false;
  cpython::prepare_slot(nullptr);
  PyInterpreterState* interp = PyInterpreterState_Get();
  if (_PyInterpreterState_GetEvalFrameFunc(interp) == evaluate_frame) {
    _PyInterpreterState_SetEvalFrameFunc(interp, _PyEval_EvalFrameDefault);
  }
}

bool installed() { return g_installed; }

bool has_slot() {
  const PyInterpreterState* interp = cpython::current_thread()->interp;
  return interp->eval_frame == evaluate_frame || interp->eval_frame == _PyEval_EvalFrameDefault || interp->eval_frame == nullptr;
}

const Stats& stats() {
  g_stats.decoded_codes = decoded_count();
  return g_stats;
}

}  // namespace dynvm::vm
