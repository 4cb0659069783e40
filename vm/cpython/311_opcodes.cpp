// CPython 3.11's opcode numbers and exception table.
//
// Purpose: maps CPython's encoding to dynvm's instruction table. Inputs: an opcode, a code object. Outputs: OpcodeInfo, handler
// rows. Invariants: every opcode that 3.11's compiler emits has a row. Tests: tests/vm/test_decode.py.
#include "vm/cpython/cpython.h"
#include "vm/vm.h"

namespace dynvm::vm::cpython {
namespace {

struct Table {
  OpcodeInfo rows[256] = {};
  uint8_t original[256];

  void add(int opcode, Op op, int caches = 0, int direction = 0) {
    rows[opcode] = {op, static_cast<uint8_t>(caches), static_cast<int8_t>(direction), false, true};
  }
  void prefix(int opcode, int caches = 0) { rows[opcode] = {Op::kNop, static_cast<uint8_t>(caches), 0, true, true}; }

  Table() {
    for (int i = 0; i < 256; ++i) original[i] = static_cast<uint8_t>(i);
#define SPECIALISED(number, opcode) original[number] = opcode;
#define ROW(number, name, caches, direction) add(number, Op::k##name, caches, direction);
#define PREFIX(number, caches) prefix(number, caches);
#include "vm/cpython/311_opcodes.def"
  }
};

const Table g_table;

// A number of the exception table: big-endian groups of six bits, bit 6 set on all but the last.
const unsigned char* read_varint(const unsigned char* at, int* value) {
  int result = *at & 63;
  while (*at & 64) {
    ++at;
    result = (result << 6) | (*at & 63);
  }
  *value = result;
  return at + 1;
}

}  // namespace

const OpcodeInfo& opcode_info(int opcode) { return g_table.rows[opcode & 255]; }

int original_opcode(_Py_CODEUNIT unit) { return g_table.original[_Py_OPCODE(unit)]; }

bool find_handler(PyCodeObject* code, int unit, HandlerEntry* entry) {
  const auto* at = reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(code->co_exceptiontable));
  const auto* end = at + PyBytes_GET_SIZE(code->co_exceptiontable);
  // Rows are sorted by start and do not overlap.
  while (at < end) {
    int start, length, target, depth;
    at = read_varint(at, &start);
    if (start > unit) return false;
    at = read_varint(at, &length);
    at = read_varint(at, &target);
    at = read_varint(at, &depth);
    if (unit < start + length) {
      *entry = {depth >> 1, target, (depth & 1) != 0};
      return true;
    }
  }
  return false;
}

}  // namespace dynvm::vm::cpython
