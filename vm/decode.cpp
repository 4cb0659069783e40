// Decoding of code objects; see decode.h.
//
// Purpose, inputs, outputs, invariants: decode.h. Tests: tests/vm/test_decode.py.
//
// The code object is read once, into steps; places, loop headers and instructions are made from these. Nothing is moved or
// merged afterwards: a fused form is put into the slot of its first instruction and skips the following slots.
#include "vm/decode.h"

#include "runtime/base/heuristics.h"
#include "vm/code_death.h"
#include "vm/frames.h"
#include "vm/native/native.h"
#include "vm/specialise.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <unordered_map>
#include <vector>

namespace dynvm::vm {

Py_ssize_t g_extra_index = -1;
const void* const* g_labels = nullptr;
Resumption g_resumptions[kResumptions];

namespace {


int32_t g_loop_limit = 0, g_call_limit = 0;
uint64_t g_decoded = 0;

// Codes are pooled: compared after their death, but never unmapped.
struct CodeNode {
  Code code;
  CodeNode *previous, *next;
};
CodeNode* g_free_nodes = nullptr;
CodeNode g_nodes{};  // list head

CodeNode* new_node() {
  if (g_free_nodes == nullptr) {
    constexpr int kBatch = 128;
    auto* batch = static_cast<CodeNode*>(std::calloc(kBatch, sizeof(CodeNode)));
    if (batch == nullptr) return nullptr;
    for (int i = 0; i < kBatch; ++i) {
      batch[i].next = g_free_nodes;
      g_free_nodes = &batch[i];
    }
  }
  CodeNode* node = g_free_nodes;
  g_free_nodes = node->next;
  if (g_nodes.next == nullptr) g_nodes.next = g_nodes.previous = &g_nodes;
  node->next = g_nodes.next;
  node->previous = &g_nodes;
  node->next->previous = node;
  g_nodes.next = node;
  return node;
}

void free_code(void* pointer) {
  auto* node = static_cast<CodeNode*>(pointer);  // Code is its first member
  if (node == nullptr) return;
  for (int i = 0; node->code.fast != nullptr && counter_dies != nullptr && i < node->code.counter_count; ++i)
    if (node->code.counters[i].client[0] != nullptr) counter_dies(node->code.counters[i]);
  node->code.code = nullptr;
  if (node->code.generator) std::fill(std::begin(g_resumptions), std::end(g_resumptions), Resumption{});
  native::release(&node->code);
  std::free(node->code.fast);
  std::free(node->code.plain);
  node->previous->next = node->next;
  node->next->previous = node->previous;
  node->next = g_free_nodes;
  g_free_nodes = node;
}

int32_t counter_start(const HotCounter& counter) {
  return counter.limit == 0 ? INT32_MAX : counter.trace != nullptr ? 0 : counter.limit - 1;
}

// One instruction of dynvm's, as the code object has it.
struct Step {
  Op op;
  int arg;
  int start;       // first code unit, prefixes included, and kSecondHalf
  int unit;        // of the instruction proper
  int behind;      // first unit of the next one
  int target;      // unit that it jumps to, or -1
  int kwnames;     // constant with the names of a call's keywords, or -1
  bool backward, valid;
};

bool counts(const Step& step) { return step.backward && step.op != Op::kJumpBackwardNoInterrupt; }

// The steps of the code object read last; kept for its memory. The GIL is held while they are in use, and no Python code runs.
std::vector<Step> g_steps;

// False: no memory, without an exception.
bool read_steps(PyCodeObject* code, bool loose_names) {
  const int count = static_cast<int>(Py_SIZE(code));
  g_steps.clear();
  try {
    g_steps.reserve(2 * static_cast<size_t>(count));  // two for each unit at most
  } catch (const std::bad_alloc&) {
    return false;
  }
  int start = 0, extended = 0, kwnames = -1;
  for (int unit = 0; unit < count;) {
    const cpython::Decoded decoded = cpython::decode_unit(code, unit, extended);
    const cpython::OpcodeInfo& info = decoded.info;
    const int behind = unit + 1 + info.caches;
    extended = decoded.extends ? decoded.arg << 8 : 0;
    // The constant with a call's names is part of the call if it stands before it.
    const bool names = decoded.names || (!loose_names && info.op == Op::kLoadConst && behind < count && cpython::is_named_call(code, behind));
    if (names) kwnames = decoded.arg;
    if (!info.prefix && !names) {
      const bool is_call = info.op == Op::kCall;
      const int target = info.direction == 0 ? -1 : behind + info.direction * decoded.arg + info.skip;
      const Op op = !info.valid ? Op::kNop : decoded.named && kwnames < 0 ? Op::kCallNamed : info.op;
      g_steps.push_back({op, decoded.arg, start, unit, behind, target, is_call ? kwnames : -1, info.direction < 0, info.valid});
      if (decoded.two) {
        g_steps.push_back({decoded.second, decoded.second_arg, unit | kSecondHalf, unit, behind, -1, -1, false, true});
      }
      if (is_call) kwnames = -1;
      start = behind;
    }
    unit = behind;
  }
  return true;
}

// The counter of the loop whose header begins at that unit, or nullptr.
HotCounter* find_counter(Code* decoded, int header) {
  for (int i = 1; i < decoded->counter_count; ++i) {
    if (decoded->counters[i].unit == header) return &decoded->counters[i];
  }
  return nullptr;
}

// From the code's steps.
void fill(Code* decoded, Inst* insts, bool plain) {
  PyCodeObject* code = decoded->code;
  Inst* next = insts;
  for (const Step& step : g_steps) {
    Inst& inst = *next++;
    const Op op = step.op;
    inst.handler = g_labels[plain ? static_cast<int>(Form::kCount) : static_cast<int>(op)];
    inst.unit = static_cast<uint32_t>(step.unit);
    inst.extra = 0;
    inst.arg = step.arg;
    inst.op = static_cast<uint16_t>(op);
    inst.state = plain ? 0 : static_cast<uint16_t>(base::heuristics().vm_warmup);
    inst.cache[0] = inst.cache[1] = 0;
    if (!step.valid) inst.handler = g_labels[static_cast<int>(Form::kCount) + 1];
    if (step.target >= 0) {
      inst.cache[0] = static_cast<uint32_t>(reinterpret_cast<char*>(insts + decoded->unit_to_index[step.target]) - reinterpret_cast<char*>(&inst));
      if (counts(step)) {
        const int header = decoded->start_unit[decoded->unit_to_index[step.target]];
        inst.cache[1] = reinterpret_cast<uint64_t>(find_counter(decoded, header));
      }
    } else if (op == Op::kResume && (step.arg & 3) == 0) {
      inst.cache[1] = reinterpret_cast<uint64_t>(&decoded->counters[0]);
      decoded->counters[0].unit = step.unit;
    } else if (op == Op::kLoadConst) {
      inst.cache[0] = reinterpret_cast<uint64_t>(PyTuple_GET_ITEM(code->co_consts, step.arg));
    } else if (op == Op::kCall && step.kwnames >= 0) {
      inst.extra = static_cast<uint32_t>(step.kwnames) | kNamed;
    }
  }
}

bool can_begin_fused(Op op) {
  return op == Op::kLoadFast || op == Op::kLoadConst || op == Op::kStoreFast || op == Op::kCompareOp || op == Op::kIsOp || op == Op::kBuildSlice ||
         op == Op::kResume;
}

// Puts fused forms into fast code where the shape alone decides; the rest is fused when operands are seen.
void fuse(Inst* insts, int count) {
  const auto is = [&](int i, Op op) { return i < count && insts[i].op == static_cast<uint16_t>(op); };
  const auto is_branch = [&](int i) { return is(i, Op::kPopJumpIfFalse) || is(i, Op::kPopJumpIfTrue); };
  const auto delegates = [&](int i) {
    return (insts[i].arg & 3) >= 2 && is(i + 1, Op::kJumpBackwardNoInterrupt) &&
           target_of(&insts[i + 1])->op == static_cast<uint16_t>(Op::kSend);
  };
  const auto is_load = [&](int i) { return is(i, Op::kLoadFast) || is(i, Op::kLoadConst); };
  for (int i = 0; i + 1 < count;) {
    int length = 1;
    if (!can_begin_fused(static_cast<Op>(insts[i].op))) {
      // most are none of these
    } else if (is(i, Op::kResume)) {
      if (delegates(i)) set_form(&insts[i], Form::kResumeSend), length = 2;
    } else if (is(i, Op::kLoadFast) && is(i + 1, Op::kLoadFast) && is(i + 2, Op::kBinaryOp)) {
      set_form(&insts[i], Form::kBinaryLL), length = 3;
    } else if (is(i, Op::kLoadFast) && is(i + 1, Op::kLoadConst) && is(i + 2, Op::kBinaryOp)) {
      set_form(&insts[i], Form::kBinaryLC), length = 3;
    } else if (is(i, Op::kLoadFast) && is_load(i + 1) && is(i + 2, Op::kCompareOp) && (is_branch(i + 3) || (is(i + 3, Op::kToBool) && is_branch(i + 4)))) {
      set_form(&insts[i], is(i + 1, Op::kLoadFast) ? Form::kCompareLL : Form::kCompareLC), length = 2;
    } else if (is(i, Op::kLoadFast) && is_load(i + 1) && is(i + 2, Op::kBinarySubscr)) {
      set_form(&insts[i], is(i + 1, Op::kLoadFast) ? Form::kSubscrLL : Form::kSubscrLC), length = 2;
    } else if (is(i, Op::kCompareOp) && is_branch(i + 1)) {
      set_form(&insts[i], Form::kCompareJump), length = 2;
    } else if (is(i, Op::kCompareOp) && is(i + 1, Op::kToBool) && is_branch(i + 2)) {
      set_form(&insts[i], Form::kCompareJump), length = 3;
      insts[i].cache[1] = 1;  // between it and its jump
    } else if (is(i, Op::kIsOp) && is_branch(i + 1)) {
      set_form(&insts[i], Form::kIsOpJump), length = 2;
    } else if (is(i, Op::kLoadFast) && (is(i + 2, Op::kLoadAttr) || is(i + 2, Op::kLoadMethod)) && is(i + 1, Op::kLoadFast)) {
      // the second LoadFast is better fused with what follows it
    } else if (is(i, Op::kBuildSlice) && insts[i].arg == 2 && is(i + 1, Op::kBinarySubscr)) {
      set_form(&insts[i], Form::kSliceSubscr), length = 2;
    } else if (is(i, Op::kBuildSlice) && insts[i].arg == 2 && is(i + 1, Op::kStoreSubscr)) {
      set_form(&insts[i], Form::kSliceStore), length = 2;
    } else if (is(i, Op::kLoadFast) && is(i + 1, Op::kReturnValue)) {
      set_form(&insts[i], Form::kLoadFastReturn), length = 2;
    } else if (is(i, Op::kLoadConst) && is(i + 1, Op::kReturnValue)) {
      set_form(&insts[i], Form::kLoadConstReturn), length = 2;
    } else if (is(i, Op::kLoadFast) && is(i + 1, Op::kLoadFast)) {
      set_form(&insts[i], Form::kLoadFastLoadFast), length = 2;
    } else if (is(i, Op::kLoadFast) && is(i + 1, Op::kLoadConst)) {
      set_form(&insts[i], Form::kLoadFastLoadConst), length = 2;
    } else if (is(i, Op::kStoreFast) && is(i + 1, Op::kLoadFast) && !is(i + 2, Op::kLoadAttr) && !is(i + 3, Op::kBinaryOp)) {
      set_form(&insts[i], Form::kStoreFastLoadFast), length = 2;
    } else if (is(i, Op::kStoreFast) && is(i + 1, Op::kStoreFast)) {
      set_form(&insts[i], Form::kStoreFastStoreFast), length = 2;
    }
    i += length;
  }
}

bool starts_idly(const Code& code) {
  return g_call_limit == 0 && code.fast[0].op == static_cast<uint16_t>(Op::kResume) && (code.fast[0].arg & 3) == 0;
}

}  // namespace

Code* decode(PyCodeObject* code) {
  CodeNode* node = new_node();
  if (node == nullptr) {
    PyErr_NoMemory();
    return nullptr;
  }
  Code* decoded = &node->code;
  *decoded = Code{};
  decoded->code = code;
  decoded->unit_count = static_cast<int32_t>(Py_SIZE(code));
  decoded->loose_names = cpython::jumps_to_named_call(code);
  if (!read_steps(code, decoded->loose_names)) {
    free_code(decoded);
    PyErr_NoMemory();
    return nullptr;
  }
  const int inst_count = static_cast<int>(g_steps.size());
  const auto loops = std::count_if(g_steps.begin(), g_steps.end(), counts);
  decoded->inst_count = inst_count;
  // One block: instructions, counters, maps. The instruction array has an end mark that must not be reached.
  const size_t inst_bytes = sizeof(Inst) * static_cast<size_t>(inst_count + 1);
  const size_t counter_bytes = sizeof(HotCounter) * static_cast<size_t>(loops + 1);
  const size_t map_bytes = sizeof(int32_t) * static_cast<size_t>(decoded->unit_count + 1 + inst_count + 1);
  auto* block = static_cast<char*>(std::malloc(inst_bytes + counter_bytes + map_bytes));
  if (block == nullptr) {
    free_code(decoded);
    PyErr_NoMemory();
    return nullptr;
  }
  decoded->fast = reinterpret_cast<Inst*>(block);
  decoded->counters = reinterpret_cast<HotCounter*>(block + inst_bytes);
  decoded->unit_to_index = reinterpret_cast<int32_t*>(block + inst_bytes + counter_bytes);
  decoded->start_unit = decoded->unit_to_index + decoded->unit_count + 1;
  int index = 0;
  for (const Step& step : g_steps) {
    for (int unit = step.start; unit < step.behind && unit < decoded->unit_count; ++unit) decoded->unit_to_index[unit] = index;
    decoded->start_unit[index++] = step.start;
  }
  decoded->unit_to_index[decoded->unit_count] = inst_count;
  decoded->start_unit[inst_count] = decoded->unit_count;

  decoded->counters[0] = {0, g_call_limit, nullptr, {nullptr, nullptr}, code, 0, 0, native::g_settings.loops, true, false};
  decoded->counter_count = 1;
  for (const Step& step : g_steps) {
    if (!counts(step)) continue;
    const int header = decoded->start_unit[decoded->unit_to_index[step.target]];
    HotCounter* counter = find_counter(decoded, header);
    if (counter == nullptr) *(counter = &decoded->counters[decoded->counter_count++]) = {0, g_loop_limit, nullptr, {nullptr, nullptr}, code, header, header, native::g_settings.loops, false, false};
    counter->end = std::max(counter->end, step.unit);
  }
  for (const Step& step : g_steps)
    for (int i = 1; step.op == Op::kYieldValue && i < decoded->counter_count; ++i)
      decoded->counters[i].yields |= lies_in(decoded->counters[i], step.unit);
  for (int i = 0; i < decoded->counter_count; ++i) decoded->counters[i].count = counter_start(decoded->counters[i]);

  fill(decoded, decoded->fast, false);
  decoded->fast[inst_count] = Inst{g_labels[static_cast<int>(Form::kCount) + 1], 0, 0, 0, 0, 0, {0, 0}};
  fuse(decoded->fast, inst_count);

  decoded->frame_words = code->co_nlocalsplus + code->co_stacksize + cpython::kFrameWords;
  decoded->heat = native::g_settings.calls;
  decoded->heated_from = calls_so_far();
  decoded->argcount = code->co_argcount;
  decoded->local_count = code->co_nlocalsplus;
  constexpr int kFunctionFlags = CO_OPTIMIZED | CO_NEWLOCALS;
  decoded->simple = (code->co_flags & kFunctionFlags) == kFunctionFlags &&
                    (code->co_flags & (CO_VARARGS | CO_VARKEYWORDS)) == 0 && code->co_kwonlyargcount == 0;
  decoded->generator = (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) != 0;
  decoded->hidden = cpython::is_hidden_code(code);
  decoded->idle_resume = starts_idly(*decoded);
  ++g_decoded;
  if (!cpython::set_code_extra(code, g_extra_index, decoded)) {
    free_code(decoded);
    return nullptr;
  }
  if (on_decoded != nullptr) on_decoded(code);
  return decoded;
}

Inst* find_resumption(cpython::Frame* frame) {
  Code* code = code_for(cpython::code_of(frame));
  if (code == nullptr) return nullptr;
  Inst* inst = code->fast + code->unit_to_index[cpython::next_unit(frame)];
  const uint16_t* position = cpython::next_position(frame);
  if (code->generator) g_resumptions[reinterpret_cast<uintptr_t>(position) / sizeof(uint16_t) % kResumptions] = {position, inst};
  return inst;
}

bool make_plain(Code* code) {
  if (code->plain != nullptr) return true;
  auto* insts = static_cast<Inst*>(std::malloc(sizeof(Inst) * static_cast<size_t>(code->inst_count + 1)));
  if (insts == nullptr || !read_steps(code->code, code->loose_names)) {
    std::free(insts);
    PyErr_NoMemory();
    return false;
  }
  fill(code, insts, true);
  insts[code->inst_count] = code->fast[code->inst_count];
  code->plain = insts;
  return true;
}

HotCounter* counter_of_header(const Inst* header, PyCodeObject* code) {
  Code* decoded = find_code(code);
  const int unit = decoded->start_unit[header - decoded->fast];
  return find_counter(decoded, unit);  // there is one: it was watched
}

void watch_header(HotCounter& counter, bool watched) {
  Code* decoded = find_code(counter.code);
  Inst* header = decoded->fast + decoded->unit_to_index[counter.unit];
  const void* label = g_labels[static_cast<int>(Form::kCount) + 2];
  if ((header->handler == label) == watched) return;
  if (watched) native::retire(decoded, nullptr);  // it would not ask at the header
  header->handler = watched ? label : g_labels[header->op];
  header->state = watched ? 0 : look_again();
}

void set_counter_limits(int32_t loop_limit, int32_t call_limit) {
  g_loop_limit = loop_limit;
  g_call_limit = call_limit;
  if (g_nodes.next == nullptr) return;
  for (CodeNode* node = g_nodes.next; node != &g_nodes; node = node->next) {
    if (node->code.code != nullptr) node->code.idle_resume = starts_idly(node->code);
    for (int i = 0; i < node->code.counter_count; ++i) {
      HotCounter& counter = node->code.counters[i];
      counter.limit = counter.is_call ? call_limit : loop_limit;
      counter.count = counter_start(counter);
    }
  }
}

bool prepare_decoder(const void* const* labels) {
  g_labels = labels;
  native::prepare(labels);
  if (g_extra_index < 0) g_extra_index = _PyEval_RequestCodeExtraIndex(free_code);
  if (g_extra_index < 0) {
    PyErr_SetString(PyExc_RuntimeError, "dynvm: CPython has no free slot for extra data of code objects");
    return false;
  }
  return true;
}

size_t label_index(const void* handler) {
  static const std::unordered_map<const void*, size_t> indices = [] {
    std::unordered_map<const void*, size_t> made;
    for (size_t i = 0; i < kLabels; ++i) made.emplace(g_labels[i], i);
    return made;
  }();
  return indices.at(handler);
}

uint64_t decoded_count() { return g_decoded; }

bool may_return(PyCodeObject* object) {
  const Code* code = code_for(object);
  if (code == nullptr) PyErr_Clear();
  return code == nullptr || code->generator || code->hidden ||
         std::any_of(code->fast, code->fast + code->inst_count, [](const Inst& inst) { return opcode(&inst) == Op::kReturnValue; });
}

bool stores_to_first(PyCodeObject* object) {
  const Code* code = code_for(object);
  if (code == nullptr) PyErr_Clear();
  if (code == nullptr) return false;
  const auto is_first = [](const Inst* inst) { return opcode(inst) == Op::kLoadFast && oparg(inst) == 0; };
  for (const Inst* inst = code->plain + 1; inst < code->plain + code->inst_count; ++inst) {
    if (opcode(inst) == Op::kStoreAttr && is_first(inst - 1)) return true;
    if (opcode(inst) == Op::kLoadAttr && inst - code->plain >= 2 && opcode(inst - 1) == Op::kCopy && is_first(inst - 2)) return true;  // self.n += 1
  }
  return false;
}

}  // namespace dynvm::vm
