// What is the same in every CPython version: decoding, the exception table, the data stack, type slots, hidden calls.
//
// Purpose, inputs, outputs, invariants: common.h. Tests: tests/vm/.
#include "vm/cpython/cpython.h"
#include "vm/vm.h"

#include <cstring>

namespace dynvm::vm::cpython {

SlotFunctions g_slots;

namespace {

struct Table {
  OpcodeInfo rows[256] = {};
  uint8_t original[256];
  bool depends[256] = {};  // on the argument, or two instructions, or a prefix
  bool has_named = false;  // calls with the names of their keywords on the stack

  void add(int opcode, Op op, int caches, int direction, int skip) {
    rows[opcode] = {op, static_cast<uint8_t>(caches), static_cast<int8_t>(direction), static_cast<uint8_t>(skip), false, true};
  }
  void prefix(int opcode, int caches) {
    rows[opcode] = {Op::kNop, static_cast<uint8_t>(caches), 0, 0, true, true};
    depends[opcode] = true;
  }

  Table() {
    for (int i = 0; i < 256; ++i) original[i] = static_cast<uint8_t>(i);
#define ROW(number, name, caches, direction, skip) add(number, Op::k##name, caches, direction, skip);
#define EXTENDED(number) prefix(number, 0);
#define NAMES(number) prefix(number, 0);
#define PREFIX(number, caches) prefix(number, caches);
#define ARGUMENT(number, expression) depends[number] = true;
#define CHOICE(number, condition, name, expression) depends[number] = true;
#define PAIR(number, name, first, last) depends[number] = true;
#define PAIR_IF(number, condition, name, first, last) depends[number] = true;
#define NAMED(number) depends[number] = has_named = true;
#define WRITTEN_OVER(number, opcode) original[number] = opcode;
#include DYNVM_CPYTHON_OPCODES
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

constexpr size_t kChunkBytes = 64 * 1024;
// A loop that calls across the end of a chunk would map and unmap memory each time.
_PyStackChunk* g_spare_chunk = nullptr;

}  // namespace

Decoded decode_unit(PyCodeObject* code, int unit, int extended) {
  const int opcode = g_table.original[written_opcode(code, unit)];
  const int arg = code_units(code)[unit] >> 8 | extended;
  Decoded out{g_table.rows[opcode], arg, false, Op::kNop, 0, false, false, false};
  if (!g_table.depends[opcode]) return out;
#define EXTENDED(number) \
  if (opcode == number) out.extends = true;
#define NAMES(number) \
  if (opcode == number) out.names = true;
#define ARGUMENT(number, expression) \
  if (opcode == number) out.arg = expression;
#define CHOICE(number, condition, name, expression) \
  if (opcode == number && (condition)) out.info.op = Op::k##name, out.arg = expression;
#define PAIR(number, name, first, last) PAIR_IF(number, true, name, first, last)
#define PAIR_IF(number, condition, name, first, last) \
  if (opcode == number && (condition)) out.two = true, out.arg = first, out.second = Op::k##name, out.second_arg = last;
#define NAMED(number) \
  if (opcode == number) out.named = true;
#include DYNVM_CPYTHON_OPCODES
  return out;
}

bool is_named_call(PyCodeObject* code, int unit) {
  if (!g_table.has_named) return false;
  Decoded at = decode_unit(code, unit, 0);
  while (at.extends && unit + 1 < Py_SIZE(code)) at = decode_unit(code, ++unit, 0);
  return at.named;
}

bool jumps_to_named_call(PyCodeObject* code) {
  if (!g_table.has_named) return false;
  const int count = static_cast<int>(Py_SIZE(code));
  int extended = 0;
  for (int unit = 0; unit < count;) {
    const Decoded decoded = decode_unit(code, unit, extended);
    extended = decoded.extends ? decoded.arg << 8 : 0;
    unit += 1 + decoded.info.caches;
    const int target = unit + decoded.info.direction * decoded.arg;
    if (decoded.info.direction != 0 && target >= 0 && target < count && is_named_call(code, target)) return true;
  }
  return false;
}

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

bool set_code_extra(PyCodeObject* code, Py_ssize_t index, void* value) {
  if (code->co_extra != nullptr) return set_extra(code, index, value) == 0;
  auto* extra = static_cast<CodeExtra*>(PyMem_Calloc(1, sizeof(CodeExtra) + sizeof(void*) * static_cast<size_t>(index)));
  if (extra == nullptr) {
    PyErr_NoMemory();
    return false;
  }
  extra->size = index + 1;
  extra->entries[index] = value;
  code->co_extra = reinterpret_cast<decltype(code->co_extra)>(extra);
  return true;
}

uint32_t stamp_keys(PyDictKeysObject* keys) {
  static uint32_t next = 0xfffffff0u;
  if (keys->dk_version != 0) return keys->dk_version;
  if (keys->dk_kind == DICT_KEYS_GENERAL || next < 0x80000000u) return 0;
  return keys->dk_version = next--;
}

PyFrameObject* frame_object(PyThreadState* tstate, Frame* frame) {
  if (_PyFrame_IsIncomplete(frame)) return nullptr;
  if (frame->frame_obj != nullptr) {
    Py_INCREF(frame->frame_obj);
    return frame->frame_obj;
  }
  // Where memory is lacking PyThreadState_GetFrame clears the error indicator: an exception on its way must survive that.
  const ExceptionAside aside(tstate);
  return PyThreadState_GetFrame(tstate);
}

PyObject* with_frame(PyGenObject* generator, Frame* frame) {
  Frame* own = frame_of(generator);
  const size_t size = reinterpret_cast<char*>(&frame->localsplus[frame->stacktop]) - reinterpret_cast<char*>(frame);
  std::memcpy(own, frame, size);
  own->previous = nullptr;
  own->owner = FRAME_OWNED_BY_GENERATOR;
  generator->gi_frame_state = FRAME_CREATED;
  return reinterpret_cast<PyObject*>(generator);
}

static PyObject* hidden_file = nullptr;

void hide_frames_of(PyObject* filename) { Py_XSETREF(hidden_file, Py_NewRef(filename)); }

void add_traceback(PyThreadState* tstate, Frame* frame) {
  if (code_of(frame)->co_filename == hidden_file) return;
  PyFrameObject* object = frame_object(tstate, frame);
  if (object == nullptr) return;
  PyTraceBack_Here(object);
  Py_DECREF(object);
}

PyObject** push_words_slow(PyThreadState* tstate, size_t words) {
  size_t bytes = kChunkBytes;
  while (bytes < (words + 64) * sizeof(PyObject*)) bytes *= 2;
  _PyStackChunk* chunk = nullptr;
  if (g_spare_chunk != nullptr && bytes == kChunkBytes) {
    chunk = g_spare_chunk;
    g_spare_chunk = nullptr;
  } else {
    PyObjectArenaAllocator arena;
    PyObject_GetArenaAllocator(&arena);
    chunk = static_cast<_PyStackChunk*>(arena.alloc(arena.ctx, bytes));
  }
  if (chunk == nullptr) {
    PyErr_NoMemory();
    return nullptr;
  }
  chunk->previous = tstate->datastack_chunk;
  chunk->size = bytes;
  chunk->top = 0;
  // The first chunk of a thread keeps its first word free, so that it is never released by a pop.
  PyObject** base = &chunk->data[chunk->previous == nullptr ? 1 : 0];
  if (tstate->datastack_chunk != nullptr) {
    tstate->datastack_chunk->top = tstate->datastack_top - &tstate->datastack_chunk->data[0];
  }
  tstate->datastack_chunk = chunk;
  tstate->datastack_limit = reinterpret_cast<PyObject**>(reinterpret_cast<char*>(chunk) + bytes);
  tstate->datastack_top = base + words;
  return base;
}

void pop_words_slow(PyThreadState* tstate, PyObject**) {
  _PyStackChunk* chunk = tstate->datastack_chunk;
  _PyStackChunk* previous = chunk->previous;
  tstate->datastack_chunk = previous;
  tstate->datastack_top = &previous->data[previous->top];
  tstate->datastack_limit = reinterpret_cast<PyObject**>(reinterpret_cast<char*>(previous) + previous->size);
  if (g_spare_chunk == nullptr && chunk->size == kChunkBytes) {
    g_spare_chunk = chunk;
    return;
  }
  PyObjectArenaAllocator arena;
  PyObject_GetArenaAllocator(&arena);
  arena.free(arena.ctx, chunk, chunk->size);
}

// ---- awaiting

namespace {

bool is_generator_coroutine(PyObject* object) {
  return PyGen_CheckExact(object) &&
         (code_of_generator(reinterpret_cast<PyGenObject*>(object))->co_flags & CO_ITERABLE_COROUTINE) != 0;
}

}  // namespace

PyObject* awaitable_iter(PyObject* object) {
  if (PyCoro_CheckExact(object) || is_generator_coroutine(object)) return Py_NewRef(object);
  PyTypeObject* type = Py_TYPE(object);
  if (type->tp_as_async != nullptr && type->tp_as_async->am_await != nullptr) {
    PyObject* result = type->tp_as_async->am_await(object);
    if (result == nullptr) return nullptr;
    if (PyCoro_CheckExact(result) || is_generator_coroutine(result)) {
      PyErr_SetString(PyExc_TypeError, "__await__() returned a coroutine");
      Py_CLEAR(result);
    } else if (!PyIter_Check(result)) {
      PyErr_Format(PyExc_TypeError, "__await__() returned non-iterator of type '%.100s'", Py_TYPE(result)->tp_name);
      Py_CLEAR(result);
    }
    return result;
  }
  PyErr_Format(PyExc_TypeError, "object %.100s can't be used in 'await' expression", type->tp_name);
  return nullptr;
}

// ---- hidden calls

PyObject* make_hidden(int parameters, int opcode, int arg, PyObject* name) {
  unsigned char body[16];
  size_t size = 0;
  const auto unit = [&](int op, int argument) {
    body[size++] = static_cast<unsigned char>(op);
    body[size++] = static_cast<unsigned char>(argument);
  };
  unit(RESUME, 0);
  for (int i = 0; i < parameters; ++i) unit(LOAD_FAST, i);
  if (parameters == 0) unit(LOAD_CONST, 0);
  if (opcode != 0) unit(opcode, arg);
  unit(RETURN_VALUE, 0);
  unit(NOP, 0);  // where tracing would begin
  // One entry without a place for all of the (at most eight) units, Objects/locations.md.
  const char places[] = {static_cast<char>(0x80 | 15 << 3 | (size / sizeof(_Py_CODEUNIT) - 1))};

  // Made by hand and not compiled: the compiler costs as much as all the rest of a start.
  PyObject* empty = reinterpret_cast<PyObject*>(PyCode_NewEmpty("", "hidden", 1));
  PyObject* replace = empty != nullptr ? PyObject_GetAttrString(empty, "replace") : nullptr;
  PyObject* nothing = PyTuple_New(0);
  PyObject* variables = PyTuple_New(parameters);
  for (int i = 0; variables != nullptr && i < parameters; ++i) {
    PyObject* variable = PyUnicode_FromFormat("%c", 'a' + i);
    PyTuple_SET_ITEM(variables, i, variable);
    if (variable == nullptr) Py_CLEAR(variables);
  }
  PyObject* changes = nothing == nullptr || variables == nullptr ? nullptr :
      Py_BuildValue("{sisisisisNsNsOs(O)sO}", "co_argcount", parameters, "co_nlocals", parameters, "co_stacksize", 4, "co_flags",
                    CO_OPTIMIZED | CO_NEWLOCALS, "co_code", PyBytes_FromStringAndSize(reinterpret_cast<char*>(body), static_cast<Py_ssize_t>(size)), "co_linetable",
                    PyBytes_FromStringAndSize(places, sizeof places), "co_varnames", variables, "co_consts", Py_None, "co_names", nothing);
  if (changes != nullptr && name != nullptr) {
    PyObject* names = PyTuple_Pack(1, name);
    if (names == nullptr || PyDict_SetItemString(changes, "co_names", names) < 0) Py_CLEAR(changes);
    Py_XDECREF(names);
  }
  PyObject* hidden = replace != nullptr && changes != nullptr ? PyObject_Call(replace, nothing, changes) : nullptr;
  PyObject* space = PyDict_New();
  PyObject* result = nullptr;
  if (hidden != nullptr && space != nullptr) {
    auto* object = reinterpret_cast<PyCodeObject*>(hidden);
    object->_co_firsttraceable = static_cast<int>(Py_SIZE(object)) - 1;
    Py_SET_SIZE(object, 0);  // sys.monitoring writes over instructions by their number: it finds none here
    result = PyFunction_New(hidden, space);
  }
  for (PyObject* part : {hidden, space, changes, variables, nothing, replace, empty}) Py_XDECREF(part);
  return result;
}

PyObject* call_hidden(PyThreadState* tstate, PyObject* function, PyObject* const* arguments, size_t count) {
  constexpr int kLevels = 2;
  take_for_instrumented(tstate, reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function)));  // its RESUME asks for it until it is
  add_levels(tstate, kLevels);
  PyObject* result = PyObject_Vectorcall(function, arguments, count, nullptr);
  add_levels(tstate, -kLevels);
  return result;
}

// ---- what prepare() learns

namespace {

// A class with these special methods. CPython fills a slot with its slot function for whatever stands under the name, so
// that a built-in function does for all of them (and nothing needs to be compiled). New reference.
PyTypeObject* probe_class(std::initializer_list<const char*> names) {
  PyObject* method = PyDict_GetItemString(PyEval_GetBuiltins(), "len");
  PyObject* space = PyDict_New();
  bool good = method != nullptr && space != nullptr;
  for (const char* name : names) good = good && PyDict_SetItemString(space, name, method) == 0;
  PyObject* type = nullptr;
  if (good) {
    type = PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "s()O", "probe", space);
  } else if (!PyErr_Occurred()) {
    PyErr_SetString(PyExc_RuntimeError, "dynvm: there is no built-in function len");
  }
  Py_XDECREF(space);
  return reinterpret_cast<PyTypeObject*>(type);
}

// A name that stands for its reflected form and for all the deletions and comparisons of the same slot too.
PyTypeObject* probe_of_all_slots() {
  return probe_class({"__add__", "__and__", "__floordiv__", "__lshift__", "__matmul__", "__mul__", "__mod__", "__or__", "__pow__",
                      "__rshift__", "__sub__", "__truediv__", "__xor__", "__iadd__", "__iand__", "__ifloordiv__", "__ilshift__",
                      "__imatmul__", "__imul__", "__imod__", "__ior__", "__ipow__", "__irshift__", "__isub__", "__itruediv__",
                      "__ixor__", "__call__", "__init__", "__iter__", "__next__", "__bool__", "__len__", "__contains__",
                      "__getitem__", "__setitem__", "__setattr__", "__eq__"});
}

void read_slots(PyObject* function, PyTypeObject* hook, PyTypeObject* attribute, PyTypeObject* all) {
  SlotFunctions& slots = g_slots;
  slots.function_call = reinterpret_cast<PyFunctionObject*>(function)->vectorcall;
  slots.call = all->tp_call;
  slots.getattr_hook = hook->tp_getattro;
  slots.getattro = attribute->tp_getattro;
  slots.generic_getattr = PyObject_GenericGetAttr;
  slots.module_getattr = PyModule_Type.tp_getattro;
  slots.type_getattr = PyType_Type.tp_getattro;
  slots.setattr = all->tp_setattro;
  slots.generic_setattr = PyObject_GenericSetAttr;
  slots.init = all->tp_init;
  slots.object_new = PyBaseObject_Type.tp_new;
  slots.iter = all->tp_iter;
  slots.iternext = all->tp_iternext;
  slots.nb_bool = all->tp_as_number->nb_bool;
  slots.length = all->tp_as_mapping->mp_length;
  slots.contains = all->tp_as_sequence->sq_contains;
  slots.subscript = all->tp_as_mapping->mp_subscript;
  slots.ass_subscript = all->tp_as_mapping->mp_ass_subscript;
  slots.richcompare = all->tp_richcompare;
  const PyNumberMethods* nb = all->tp_as_number;
  const binaryfunc binary[26] = {
      nb->nb_add, nb->nb_and, nb->nb_floor_divide, nb->nb_lshift, nb->nb_matrix_multiply, nb->nb_multiply, nb->nb_remainder,
      nb->nb_or, nullptr, nb->nb_rshift, nb->nb_subtract, nb->nb_true_divide, nb->nb_xor,
      nb->nb_inplace_add, nb->nb_inplace_and, nb->nb_inplace_floor_divide, nb->nb_inplace_lshift,
      nb->nb_inplace_matrix_multiply, nb->nb_inplace_multiply, nb->nb_inplace_remainder, nb->nb_inplace_or, nullptr,
      nb->nb_inplace_rshift, nb->nb_inplace_subtract, nb->nb_inplace_true_divide, nb->nb_inplace_xor};
  std::memcpy(slots.binary, binary, sizeof(binary));
  slots.power = nb->nb_power;
  slots.inplace_power = nb->nb_inplace_power;
}

bool learn_slots(PyObject* function) {
  PyTypeObject* hook = probe_class({"__getattr__"});
  PyTypeObject* attribute = hook != nullptr ? probe_class({"__getattribute__"}) : nullptr;
  PyTypeObject* all = attribute != nullptr ? probe_of_all_slots() : nullptr;
  // Whether a class has no __getattr__ is seen, and its slot set, when an attribute of an object is first asked for.
  PyObject* object = all != nullptr ? PyObject_CallNoArgs(reinterpret_cast<PyObject*>(attribute)) : nullptr;
  PyObject* value = object != nullptr ? PyObject_GetAttrString(object, "probe") : nullptr;
  const bool good = value != nullptr;
  if (good) read_slots(function, hook, attribute, all);
  Py_XDECREF(value);
  Py_XDECREF(object);
  for (PyTypeObject* type : {hook, attribute, all}) Py_XDECREF(type);
  return good;
}

}  // namespace

bool prepare() {
  static bool done = false;
  if (done) return true;
  const unsigned long version = Py_Version;
  if ((version >> 16) != (PY_VERSION_HEX >> 16)) {
    PyErr_Format(PyExc_RuntimeError, "dynvm's evaluator was built for Python %d.%d", PY_MAJOR_VERSION, PY_MINOR_VERSION);
    return false;
  }
  PyObject* hidden = prepare_hidden();
  return done = hidden != nullptr && learn_slots(hidden);
}

}  // namespace dynvm::vm::cpython
