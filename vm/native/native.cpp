// Which runs a code object gets, and their life; see native.h.
#include "vm/native/native.h"

#include <unordered_map>

#include "vm/frames.h"
#include "vm/native/emitter.h"

namespace dynvm::vm::native {

NativeSettings g_settings;
const Inst* g_stopped = nullptr;

namespace {

constexpr int kMostCompiles = 5;       // of one code object
constexpr int kMostInstructions = 20000;  // of a code object that is looked at

std::unordered_map<const void*, Form> g_forms;

asmjit::JitRuntime& runtime() {
  static auto* runtime = new asmjit::JitRuntime;  // outlives all code
  return *runtime;
}

// A fused form is the settled form of one of the instructions that it covers: `offset` behind its first one.
struct Part {
  Form fused;
  int offset;
  Form form;
  bool has_cache;  // the cache is the fused form's
};
constexpr Part kParts[] = {
    {Form::kLoadFastLoadAttrValue, 1, Form::kLoadAttrValue, true},
    {Form::kLoadFastLoadAttrValues, 1, Form::kLoadAttrValues, true},
    {Form::kLoadFastLoadAttrSlot, 1, Form::kLoadAttrSlot, true},
    {Form::kLoadFastLoadAttrHint, 1, Form::kLoadAttrHint, true},
    {Form::kLoadFastLoadMethodValues, 1, Form::kLoadMethodValues, true},
    {Form::kAddLLFloat, 2, Form::kAddFloat, false},
    {Form::kSubLLFloat, 2, Form::kSubFloat, false},
    {Form::kMulLLFloat, 2, Form::kMulFloat, false},
    {Form::kAddLCFloat, 2, Form::kAddFloat, false},
    {Form::kSubLCFloat, 2, Form::kSubFloat, false},
    {Form::kMulLCFloat, 2, Form::kMulFloat, false},
    {Form::kAddLLInt, 2, Form::kAddInt, false},
    {Form::kSubLLInt, 2, Form::kSubInt, false},
    {Form::kMulLLInt, 2, Form::kMulInt, false},
    {Form::kAddLCInt, 2, Form::kAddInt, false},
    {Form::kSubLCInt, 2, Form::kSubInt, false},
    {Form::kMulLCInt, 2, Form::kMulInt, false},
    {Form::kCompareLLInt, 2, Form::kCompareInt, false},
    {Form::kCompareLCInt, 2, Form::kCompareInt, false},
    {Form::kCompareLLFloat, 2, Form::kCompareFloat, false},
    {Form::kCompareLCFloat, 2, Form::kCompareFloat, false},
    {Form::kSubscrLLInt, 2, Form::kSubscrListInt, false},
    {Form::kSubscrLCInt, 2, Form::kSubscrListInt, false},
    {Form::kForIterRangeStore, 0, Form::kForIterRange, false},
    {Form::kForIterListStore, 0, Form::kForIterList, false},
};

Op op_of(const Inst& inst) { return static_cast<Op>(inst.op); }

// Control does not go on behind it.
bool is_end(Op op) {
  switch (op) {
    case Op::kJumpForward: case Op::kJumpBackward: case Op::kJumpBackwardNoInterrupt: case Op::kReturnValue: case Op::kRaiseVarargs:
    case Op::kReraise:
      return true;
    default:
      return false;
  }
}

}  // namespace

// What a Code has: runs keep their addresses.
struct Owned {
  std::deque<Entry> entries;
  std::deque<int32_t> misses;
  std::vector<Function> functions;
  std::vector<Inst*> insts;  // with the entries installed now
  int compiles = 0;
};

namespace {

const void* native_label() { return g_labels[static_cast<int>(Form::kNative)]; }

std::vector<Settled> settle(const Code& code) {
  std::vector<Settled> settled(static_cast<size_t>(code.inst_count));
  std::vector<bool> given(settled.size(), false);
  for (int i = 0; i < code.inst_count; ++i) {
    const auto found = g_forms.find(code.fast[i].handler);
    const Form form = found == g_forms.end() ? static_cast<Form>(code.fast[i].op) : found->second;
    if (!given[static_cast<size_t>(i)]) settled[static_cast<size_t>(i)] = {form, i};
    for (const Part& part : kParts) {
      if (part.fused != form || i + part.offset >= code.inst_count) continue;
      const auto at = static_cast<size_t>(i + part.offset);
      settled[at] = {part.form, part.has_cache ? i : i + part.offset};
      given[at] = true;
    }
  }
  return settled;
}

// Instructions that several paths come to; `entries`: those that a run may start at, because the one before is not in any.
void find_paths(const Code& code, const std::vector<Settled>& settled, std::vector<uint8_t>* joins, std::vector<int>* entries) {
  const int count = code.inst_count;
  std::vector<int> paths(static_cast<size_t>(count) + 1, 0);
  std::vector<uint8_t> starts(static_cast<size_t>(count) + 1, 0);
  starts[0] = 1;
  for (int i = 0; i < count; ++i) {
    const Inst& inst = code.fast[i];
    if (!is_end(op_of(inst))) ++paths[static_cast<size_t>(i) + 1];
    const bool can = Emitter::can(inst, settled[static_cast<size_t>(i)].form);
    if (!can && !is_end(op_of(inst))) starts[static_cast<size_t>(i) + 1] = 1;
    if (const Inst* to = jump_target(&inst)) {
      const auto at = static_cast<size_t>(to - code.fast);
      paths[at] += to <= &inst ? 2 : 1;  // a loop's header is always a join
      if (!can || to <= &inst || op_of(inst) == Op::kForIter) starts[at] = 1;
    }
  }
  joins->assign(static_cast<size_t>(count) + 1, 0);
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    (*joins)[at] = paths[at] > 1;
    if (starts[at] != 0 && Emitter::can(code.fast[i], settled[at].form)) entries->push_back(i);
  }
}

void reheat(Code* code, int divisor) {
  code->heat = g_settings.calls / divisor;
  for (int i = 0; i < code->counter_count; ++i) code->counters[i].heat = g_settings.loops / divisor;
}

}  // namespace

void compile(Code* code, const cpython::Frame* frame) {
  code->heat = INT32_MAX;
  for (int i = 0; i < code->counter_count; ++i) code->counters[i].heat = INT32_MAX;
  if (!g_settings.on || g_labels == nullptr || code->code == nullptr || code->inst_count > kMostInstructions) return;
  auto* owned = static_cast<Owned*>(code->native);
  if (owned == nullptr) code->native = owned = new Owned;
  if (owned->compiles++ == kMostCompiles) return;
  const std::vector<Settled> settled = settle(*code);
  std::vector<uint8_t> joins;
  std::vector<int> entries;
  find_paths(*code, settled, &joins, &entries);
  ++g_stats.native_codes;
  for (const int at : entries) {
    Inst* inst = code->fast + at;
    if (inst->handler == native_label() || !g_forms.contains(inst->handler)) continue;
    owned->misses.push_back(g_settings.misses);
    Function function;
    size_t size;
    Emitter emitter(code, settled, joins, frame->f_globals, frame->f_builtins);
    if (!emitter.run(at, runtime(), &owned->misses.back(), &function, &size)) continue;
    owned->functions.push_back(function);
    owned->entries.push_back({function, inst->handler});
    owned->insts.push_back(inst);
    inst->native = &owned->entries.back();
    inst->handler = native_label();
    ++g_stats.native_runs;
    g_stats.native_bytes += size;
  }
}

void retire(Code* code, const Inst* at) {
  auto* owned = static_cast<Owned*>(code->native);
  if (owned == nullptr) return;
  for (Inst* inst : owned->insts) {
    if (inst->handler != native_label()) continue;
    inst->handler = static_cast<const Entry*>(inst->native)->handler;
    inst->native = nullptr;
  }
  owned->insts.clear();
  ++g_stats.native_given_up;
  if (at == nullptr) {
    owned->compiles = kMostCompiles;
    return;
  }
  code->fast[at - code->fast].native = &kRefusedMark;
  reheat(code, 4);
}

void release(Code* code) {
  auto* owned = static_cast<Owned*>(code->native);
  if (owned == nullptr) return;
  for (const Function function : owned->functions) runtime().release(function);
  delete owned;
  code->native = nullptr;
}

void prepare(const void* const* labels) {
  static Inst stopped{};
  stopped.handler = labels[static_cast<int>(Form::kCount) + 3];
  g_stopped = &stopped;
  g_forms.clear();
  for (int i = 0; i < static_cast<int>(Form::kCount); ++i) {
    if (i != static_cast<int>(Form::kNative)) g_forms.emplace(labels[i], static_cast<Form>(i));
  }
}

}  // namespace dynvm::vm::native
