// Decoding of code objects; see decode.h.
//
// Purpose, inputs, outputs, invariants: decode.h. Tests: tests/vm/test_decode.py.
//
// Two passes: the first finds instruction starts and loop headers, the second fills the instructions. Nothing is moved or
// merged afterwards: a fused form is put into the slot of its first instruction and skips the following slots.
#include "vm/decode.h"
#include "vm/specialise.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace dynvm::vm {

Py_ssize_t g_extra_index = -1;
const void* const* g_labels = nullptr;

namespace {

constexpr uint16_t kWarmup = 2;  // executions before a generic instruction looks at its operands

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
  node->code.code = nullptr;
  std::free(node->code.fast);
  std::free(node->code.plain);
  node->previous->next = node->next;
  node->next->previous = node->previous;
  node->next = g_free_nodes;
  g_free_nodes = node;
}

int32_t counter_start(const HotCounter& counter) {
  return counter.limit == 0 ? INT32_MAX : counter.trace != nullptr ? 0 : counter.limit;
}

bool has_name(Op op) {
  switch (op) {
    case Op::kLoadGlobal: case Op::kLoadName: case Op::kStoreName: case Op::kDeleteName: case Op::kStoreGlobal:
    case Op::kDeleteGlobal: case Op::kLoadAttr: case Op::kLoadMethod: case Op::kStoreAttr: case Op::kDeleteAttr:
    case Op::kImportName: case Op::kImportFrom:
      return true;
    default:
      return false;
  }
}

bool counts(const cpython::OpcodeInfo& info) { return info.direction < 0 && info.op != Op::kJumpBackwardNoInterrupt; }

// Calls visit(first unit, unit proper, info, arg, kwnames index or -1, unit behind) for each instruction.
template <class Visit>
void each_instruction(PyCodeObject* code, Visit visit) {
  const _Py_CODEUNIT* units = cpython::code_units(code);
  const int count = static_cast<int>(Py_SIZE(code));
  int start = 0, extended = 0, kwnames = -1;
  for (int unit = 0; unit < count;) {
    const int opcode = cpython::original_opcode(units[unit]);
    const int arg = _Py_OPARG(units[unit]) | extended;
    const auto& info = cpython::opcode_info(opcode);
    const int behind = unit + 1 + info.caches;
    extended = opcode == cpython::kExtendedArg ? arg << 8 : 0;
    if (opcode == cpython::kKwNames) kwnames = arg;
    if (!info.prefix) {
      visit(start, unit, info, arg, info.op == Op::kCall ? kwnames : -1, behind);
      if (info.op == Op::kCall) kwnames = -1;
      start = behind;
    }
    unit = behind;
  }
}

void fill(Code* decoded, Inst* insts, bool plain) {
  PyCodeObject* code = decoded->code;
  int index = 0;
  each_instruction(code, [&](int, int unit, const cpython::OpcodeInfo& info, int arg, int kwnames, int behind) {
    Inst& inst = insts[index++];
    const Op op = info.valid ? info.op : Op::kNop;
    inst.handler = g_labels[plain ? static_cast<int>(Form::kCount) : static_cast<int>(op)];
    inst.position = cpython::code_units(code) + unit;
    inst.arg = arg;
    inst.op = static_cast<uint16_t>(op);
    inst.state = plain ? 0 : kWarmup;
    inst.cache[0] = inst.cache[1] = inst.cache[2] = 0;
    if (!info.valid) inst.handler = g_labels[static_cast<int>(Form::kCount) + 1];
    if (info.direction != 0) {
      const int target = behind + info.direction * arg;
      inst.cache[0] = reinterpret_cast<uint64_t>(insts + decoded->unit_to_index[target]);
      if (counts(info)) {
        const int header = decoded->start_unit[decoded->unit_to_index[target]];
        for (int i = 1; i < decoded->counter_count; ++i) {
          if (decoded->counters[i].unit == header) inst.cache[1] = reinterpret_cast<uint64_t>(&decoded->counters[i]);
        }
      }
    } else if (op == Op::kResume && (arg & 3) == 0) {
      inst.cache[1] = reinterpret_cast<uint64_t>(&decoded->counters[0]);
      decoded->counters[0].unit = unit;
    } else if (op == Op::kLoadConst) {
      inst.cache[0] = reinterpret_cast<uint64_t>(PyTuple_GET_ITEM(code->co_consts, arg));
    } else if (op == Op::kCall) {
      if (kwnames >= 0) inst.cache[2] = reinterpret_cast<uint64_t>(PyTuple_GET_ITEM(code->co_consts, kwnames));
    } else if (has_name(op)) {
      inst.cache[2] = reinterpret_cast<uint64_t>(PyTuple_GET_ITEM(code->co_names, op == Op::kLoadGlobal ? arg >> 1 : arg));
    }
  });
}

// Puts fused forms into fast code where the shape alone decides; the rest is fused when operands are seen.
void fuse(Inst* insts, int count) {
  const auto is = [&](int i, Op op) { return i < count && insts[i].op == static_cast<uint16_t>(op); };
  for (int i = 0; i + 1 < count;) {
    int length = 1;
    if (is(i, Op::kLoadFast) && is(i + 1, Op::kLoadFast) && is(i + 2, Op::kBinaryOp)) {
      set_form(&insts[i], Form::kBinaryLL), length = 3;
    } else if (is(i, Op::kLoadFast) && is(i + 1, Op::kLoadConst) && is(i + 2, Op::kBinaryOp)) {
      set_form(&insts[i], Form::kBinaryLC), length = 3;
    } else if (is(i, Op::kCompareOp) && (is(i + 1, Op::kPopJumpIfFalse) || is(i + 1, Op::kPopJumpIfTrue))) {
      set_form(&insts[i], Form::kCompareJump), length = 2;
    } else if (is(i, Op::kIsOp) && (is(i + 1, Op::kPopJumpIfFalse) || is(i + 1, Op::kPopJumpIfTrue))) {
      set_form(&insts[i], Form::kIsOpJump), length = 2;
    } else if (is(i, Op::kLoadFast) && (is(i + 2, Op::kLoadAttr) || is(i + 2, Op::kLoadMethod)) && is(i + 1, Op::kLoadFast)) {
      // the second LoadFast is better fused with what follows it
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
  int inst_count = 0, loops = 0;
  each_instruction(code, [&](int, int, const cpython::OpcodeInfo& info, int, int, int) {
    ++inst_count;
    if (counts(info)) ++loops;
  });
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
  each_instruction(code, [&](int start, int, const cpython::OpcodeInfo&, int, int, int behind) {
    for (int unit = start; unit < behind && unit < decoded->unit_count; ++unit) decoded->unit_to_index[unit] = index;
    decoded->start_unit[index++] = start;
  });
  decoded->unit_to_index[decoded->unit_count] = inst_count;
  decoded->start_unit[inst_count] = decoded->unit_count;

  decoded->counters[0] = {0, g_call_limit, nullptr, {nullptr, nullptr}, code, 0, true};
  decoded->counter_count = 1;
  if (loops > 0) {
    each_instruction(code, [&](int, int, const cpython::OpcodeInfo& info, int arg, int, int behind) {
      if (!counts(info)) return;
      const int header = decoded->start_unit[decoded->unit_to_index[behind - arg]];
      for (int i = 1; i < decoded->counter_count; ++i) {
        if (decoded->counters[i].unit == header) return;
      }
      decoded->counters[decoded->counter_count++] = {0, g_loop_limit, nullptr, {nullptr, nullptr}, code, header, false};
    });
  }
  for (int i = 0; i < decoded->counter_count; ++i) decoded->counters[i].count = counter_start(decoded->counters[i]);

  fill(decoded, decoded->fast, false);
  decoded->fast[inst_count] = Inst{g_labels[static_cast<int>(Form::kCount) + 1], cpython::code_units(code), 0, 0, 0, {0, 0, 0}};
  fuse(decoded->fast, inst_count);

  decoded->frame_words = code->co_nlocalsplus + code->co_stacksize + cpython::kFrameWords;
  decoded->argcount = code->co_argcount;
  decoded->local_count = code->co_nlocalsplus;
  constexpr int kFunctionFlags = CO_OPTIMIZED | CO_NEWLOCALS;
  decoded->simple = (code->co_flags & kFunctionFlags) == kFunctionFlags &&
                    (code->co_flags & (CO_VARARGS | CO_VARKEYWORDS)) == 0 && code->co_kwonlyargcount == 0;
  decoded->generator = (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) != 0;
  decoded->stub = cpython::is_stub_code(code);
  ++g_decoded;
  if (!cpython::set_code_extra(code, g_extra_index, decoded)) {
    free_code(decoded);
    return nullptr;
  }
  return decoded;
}

bool make_plain(Code* code) {
  if (code->plain != nullptr) return true;
  auto* insts = static_cast<Inst*>(std::malloc(sizeof(Inst) * static_cast<size_t>(code->inst_count + 1)));
  if (insts == nullptr) {
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
  int i = 1;  // there is one: it was watched
  while (decoded->counters[i].unit != unit) ++i;
  return &decoded->counters[i];
}

void watch_header(HotCounter& counter, bool watched) {
  Code* decoded = find_code(counter.code);
  Inst* header = decoded->fast + decoded->unit_to_index[counter.unit];
  const void* label = g_labels[static_cast<int>(Form::kCount) + 2];
  if ((header->handler == label) == watched) return;
  header->handler = watched ? label : g_labels[header->op];
  header->state = watched ? 0 : kLookAgain;
}

void set_counter_limits(int32_t loop_limit, int32_t call_limit) {
  g_loop_limit = loop_limit;
  g_call_limit = call_limit;
  if (g_nodes.next == nullptr) return;
  for (CodeNode* node = g_nodes.next; node != &g_nodes; node = node->next) {
    for (int i = 0; i < node->code.counter_count; ++i) {
      HotCounter& counter = node->code.counters[i];
      counter.limit = counter.is_call ? call_limit : loop_limit;
      counter.count = counter_start(counter);
    }
  }
}

bool prepare_decoder(const void* const* labels) {
  g_labels = labels;
  if (g_extra_index < 0) g_extra_index = _PyEval_RequestCodeExtraIndex(free_code);
  if (g_extra_index < 0) {
    PyErr_SetString(PyExc_RuntimeError, "dynvm: CPython has no free slot for extra data of code objects");
    return false;
  }
  return true;
}

uint64_t decoded_count() { return g_decoded; }

}  // namespace dynvm::vm
