// Which runs a code object gets, and their life; see native.h.
#include "vm/native/native.h"

#include <algorithm>
#include <climits>
#include <memory>

#include "runtime/base/code_map.h"
#include "runtime/base/heuristics.h"
#include "vm/counting.h"
#include "vm/frames.h"
#include "vm/native/emitter.h"

namespace dynvm::vm::native {

NativeSettings g_settings;
const Inst* g_stopped = nullptr;
const Entry* const* g_entries = nullptr;

namespace {

size_t g_bytes = 0;  // of all runs that there are

std::vector<const Entry*> g_table(kRefused + 1);  // g_entries; the first ones are no entries
std::vector<uint32_t> g_free_numbers;

uint32_t number_of(const Entry* entry) {
  if (g_free_numbers.empty()) {
    g_free_numbers.push_back(static_cast<uint32_t>(g_table.size()));
    g_table.push_back(nullptr);
    g_entries = g_table.data();
  }
  const uint32_t number = g_free_numbers.back();
  g_free_numbers.pop_back();
  g_table[number] = entry;
  return number;
}

asmjit::JitRuntime& runtime() {
  static auto* runtime = new asmjit::JitRuntime;  // outlives all code
  return *runtime;
}

// A fused form is executed as `length` instructions, and is the settled form of the one `offset` behind its first.
struct Fused {
  Form fused;
  int length, offset;
  Form form;
  bool has_cache;  // that one's cache is the fused form's
};
constexpr Fused kFused[] = {
    {Form::kLoadFastLoadFast, 2, 0, Form::kLoadFast, false},
    {Form::kLoadFastLoadConst, 2, 0, Form::kLoadFast, false},
    {Form::kStoreFastLoadFast, 2, 0, Form::kStoreFast, false},
    {Form::kStoreFastStoreFast, 2, 0, Form::kStoreFast, false},
    {Form::kLoadFastReturn, 2, 0, Form::kLoadFast, false},
    {Form::kLoadConstReturn, 2, 0, Form::kLoadConst, false},
    {Form::kLoadFastLoadAttrValue, 2, 1, Form::kLoadAttrValue, true},
    {Form::kLoadFastLoadAttrValues, 2, 1, Form::kLoadAttrValues, true},
    {Form::kLoadFastLoadAttrSlot, 2, 1, Form::kLoadAttrSlot, true},
    {Form::kLoadFastLoadAttrHint, 2, 1, Form::kLoadAttrHint, true},
    {Form::kLoadFastLoadMethodValues, 2, 1, Form::kLoadMethodValues, true},
    {Form::kAddLLFloat, 3, 2, Form::kAddFloat, false},
    {Form::kSubLLFloat, 3, 2, Form::kSubFloat, false},
    {Form::kMulLLFloat, 3, 2, Form::kMulFloat, false},
    {Form::kAddLCFloat, 3, 2, Form::kAddFloat, false},
    {Form::kSubLCFloat, 3, 2, Form::kSubFloat, false},
    {Form::kMulLCFloat, 3, 2, Form::kMulFloat, false},
    {Form::kAddLLInt, 3, 2, Form::kAddInt, false},
    {Form::kSubLLInt, 3, 2, Form::kSubInt, false},
    {Form::kMulLLInt, 3, 2, Form::kMulInt, false},
    {Form::kAddLCInt, 3, 2, Form::kAddInt, false},
    {Form::kSubLCInt, 3, 2, Form::kSubInt, false},
    {Form::kMulLCInt, 3, 2, Form::kMulInt, false},
    {Form::kCompareLLInt, 4, 2, Form::kCompareInt, false},
    {Form::kCompareLCInt, 4, 2, Form::kCompareInt, false},
    {Form::kCompareLLFloat, 4, 2, Form::kCompareFloat, false},
    {Form::kCompareLCFloat, 4, 2, Form::kCompareFloat, false},
    {Form::kCompareJumpInt, 2, 0, Form::kCompareInt, false},
    {Form::kCompareJumpFloat, 2, 0, Form::kCompareFloat, false},
    {Form::kCompareJumpStr, 2, 0, Form::kCompareStr, false},
    {Form::kIsOpJump, 2, 0, Form::kIsOp, false},
    {Form::kSubscrLLInt, 3, 2, Form::kSubscrListInt, false},
    {Form::kSubscrLCInt, 3, 2, Form::kSubscrListInt, false},
    {Form::kForIterRangeStore, 2, 0, Form::kForIterRange, false},
    {Form::kForIterListStore, 2, 0, Form::kForIterList, false},
    {Form::kCallListAppend, 2, 0, Form::kCallListAppend, false},
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

struct Run {
  Entry entry;
  int32_t misses;  // that it may still have
  size_t size;     // bytes
  base::CodeName name;
};

// What a Code has.
struct Owned {
  std::vector<std::unique_ptr<Run>> runs;  // all that were made
  std::vector<std::pair<Inst*, uint32_t>> installed;  // and their entries' numbers
  std::vector<std::pair<Inst*, Form>> refused;  // and the form that failed there
  std::vector<Form> forms;   // at the last compilation
  int64_t patience = 1;      // times the usual heat that it has been looked at for
  int compiles = 0;
};

namespace {

const void* native_label() { return g_labels[static_cast<int>(Form::kNative)]; }

// Of the instruction without a run.
const void* handler_of(const Inst& inst) {
  return inst.handler == native_label() ? g_table[inst.extra]->handler : inst.handler;
}

std::vector<Settled> settle(const Code& code) {
  std::vector<Settled> settled(static_cast<size_t>(code.inst_count));
  std::vector<bool> given(settled.size(), false);
  int covered = 0;
  for (int i = 0; i < code.inst_count; ++i) {
    const size_t label = label_index(handler_of(code.fast[i]));
    const Form form = label < static_cast<size_t>(Form::kCount) ? static_cast<Form>(label) : static_cast<Form>(code.fast[i].op);
    Settled& own = settled[static_cast<size_t>(i)];
    own.covered = covered-- > 0;
    // An instruction that has been executed alone knows better than the form that covers it.
    const bool generic = static_cast<uint16_t>(form) == code.fast[i].op;
    if (!given[static_cast<size_t>(i)] || !generic) own.form = form, own.site = i;
    for (const Fused& fused : kFused) {
      if (fused.fused != form) continue;
      if (!own.covered) covered = fused.length - 1;
      if (i + fused.offset >= code.inst_count) continue;
      Settled& part = settled[static_cast<size_t>(i + fused.offset)];
      part.form = fused.form;
      part.site = fused.has_cache ? i : i + fused.offset;
      given[static_cast<size_t>(i + fused.offset)] = true;
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

// Its share of all calls since its heat began to be counted is large enough (NativeSettings::room).
bool is_hot(const Code* code, int64_t times) {
  const auto all = static_cast<double>(calls_so_far() - code->heated_from), own = static_cast<double>(g_settings.calls) * static_cast<double>(times);
  return all * static_cast<double>(g_bytes) <= own * static_cast<double>(g_settings.room);
}

// The code is compiled again when it has become hot `times` over.
void reheat(Code* code, double times) {
  const auto heat = [times](int32_t usual) { return static_cast<int32_t>(std::clamp(usual * times, 1.0, 2e9)); };
  code->heat = heat(g_settings.calls);
  code->heated_from = calls_so_far();
  for (int i = 0; i < code->counter_count; ++i) code->counters[i].heat = heat(g_settings.loops);
}

void uninstall(Owned* owned) {
  for (auto [inst, number] : owned->installed) {
    if (inst->handler == native_label()) inst->handler = g_table[number]->handler;
    inst->extra = 0;
    g_free_numbers.push_back(number);
  }
  owned->installed.clear();
}

// One line for each instruction: what it has become, > where a run starts, ! where it is left to the interpreter for good.
void show(const Code& code, const std::vector<Settled>& settled) {
  std::string text;
  for (int i = 0; i < code.inst_count; ++i) {
    const Inst& inst = code.fast[i];
    const Settled& each = settled[static_cast<size_t>(i)];
    const char* mark = inst.handler == native_label() ? ">" : refused(&inst) ? "!" : Emitter::can(inst, each.form) ? " " : "-";
    const Inst* to = jump_target(&inst);
    text += std::to_string(i) + " " + mark + " " + name_of(each.form) + " " + std::to_string(inst.arg) +
            (to != nullptr ? " -> " + std::to_string(to - code.fast) : "") + "\n";
  }
  const char* name = PyUnicode_AsUTF8(code.code->co_qualname);
  const char* file = PyUnicode_AsUTF8(code.code->co_filename);
  if (name == nullptr || file == nullptr) PyErr_Clear();
  g_settings.show(std::string(name != nullptr ? name : "?") + " in " + (file != nullptr ? file : "?"), text);
}

base::CodeName code_name(const Run& run, PyCodeObject* code, int unit) {
  const char* name = PyUnicode_AsUTF8(code->co_qualname);
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (name == nullptr || file == nullptr) PyErr_Clear();
  return base::CodeName(reinterpret_cast<const void*>(run.entry.function), run.size, std::string("native ") + (name != nullptr ? name : "?"), file != nullptr ? file : "",
                        PyCode_Addr2Line(code, 2 * unit));
}

}  // namespace

void compile(Code* code, const cpython::Frame* frame) {
  auto* owned = static_cast<Owned*>(code->native);
  const int64_t times = owned == nullptr ? 1 : owned->patience;
  const bool hot = is_hot(code, times);
  reheat(code, hot ? 1e9 : static_cast<double>(times));
  if (!hot || !g_settings.on || code->code == nullptr || code->inst_count > base::heuristics().native_max_code) return;
  if (owned != nullptr && owned->compiles >= base::heuristics().native_compiles) return;
  if (owned == nullptr) code->native = owned = new Owned;
  const std::vector<Settled> settled = settle(*code);
  std::erase_if(owned->refused, [&](const auto& refusal) {  // what has become something else may be tried again
    const bool changed = settled[static_cast<size_t>(refusal.first - code->fast)].form != refusal.second;
    if (changed) refusal.first->extra = 0;
    return changed;
  });
  // Forms settle at different times: later the code is looked at once more, and compiled where more of it can be.
  owned->patience *= owned->patience == 1 ? base::heuristics().native_patience : base::heuristics().native_patience_later;
  reheat(code, static_cast<double>(owned->patience));
  bool changed = owned->forms.empty();
  for (size_t i = 0; i < owned->forms.size() && !changed; ++i) {
    changed = settled[i].form != owned->forms[i] && Emitter::can(code->fast[i], settled[i].form);
  }
  if (!changed) return;
  ++owned->compiles;
  uninstall(owned);
  owned->forms.clear();
  for (const Settled& each : settled) owned->forms.push_back(each.form);
  std::vector<uint8_t> joins;
  std::vector<int> entries;
  find_paths(*code, settled, &joins, &entries);
  ++g_stats.native_codes;
  int room = code->inst_count * base::heuristics().native_copies + base::heuristics().native_free_copies;
  for (size_t i = 0; i < entries.size() && room > 0; ++i) {
    const int at = entries[i];
    Inst* inst = code->fast + at;
    if (inst->handler == native_label() || label_index(inst->handler) >= static_cast<size_t>(Form::kCount)) continue;
    auto run = std::make_unique<Run>(Run{{nullptr, inst->handler}, g_settings.misses, 0, {}});
    Emitter emitter(code, settled, joins, frame->f_globals, frame->f_builtins);
    if (!emitter.run(at, runtime(), &run->misses, &run->entry.function, &run->size, &entries)) continue;
    if (base::code_is_named()) run->name = code_name(*run, code->code, inst->unit);
    room -= emitter.length();
    inst->extra = number_of(&run->entry);
    inst->handler = native_label();
    ++g_stats.native_runs;
    g_stats.native_bytes += run->size;
    g_bytes += run->size;
    owned->runs.push_back(std::move(run));
    owned->installed.push_back({inst, inst->extra});
  }
  if (g_settings.show != nullptr) show(*code, settled);
}

void retire(Code* code, const Inst* at) {
  auto* owned = static_cast<Owned*>(code->native);
  if (owned == nullptr) return;
  uninstall(owned);
  ++g_stats.native_given_up;
  if (at == nullptr) {
    owned->compiles = INT_MAX;
    return;
  }
  Inst* failed = code->fast + (at - code->fast);
  if (!refused(failed)) {
    failed->extra = kRefused;
    const auto index = static_cast<size_t>(failed - code->fast);
    owned->refused.push_back({failed, owned->forms.empty() ? static_cast<Form>(failed->op) : owned->forms[index]});
  }
  owned->forms.clear();
  reheat(code, 0.125);
}

void release(Code* code) {
  auto* owned = static_cast<Owned*>(code->native);
  if (owned == nullptr) return;
  uninstall(owned);
  for (const auto& run : owned->runs) {
    runtime().release(run->entry.function);
    g_bytes -= run->size;
  }
  delete owned;
  code->native = nullptr;
}

void prepare(const void* const* labels) {
  static Inst stopped{};
  stopped.handler = labels[static_cast<int>(Form::kCount) + 3];
  g_stopped = &stopped;
}

}  // namespace dynvm::vm::native
