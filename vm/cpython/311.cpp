// CPython 3.11: frames, data stack chunks, generators and the operations that libpython 3.11 hides.
//
// Purpose, inputs, outputs: see 311.h. Invariants: each function has the effects of the CPython function that its comment in 311.h
// or below names, in the same order where Python code can see it. Tests: tests/vm/.
#include "vm/cpython/cpython.h"

#include <cstring>

namespace dynvm::vm::cpython {

SlotFunctions g_slots;

namespace {

PyObject* g_reraise_stub = nullptr;  // function of one PREP_RERAISE_STAR

constexpr size_t kChunkBytes = 64 * 1024;
// A loop that calls across the end of a chunk would map and unmap memory each time.
_PyStackChunk* g_spare_chunk = nullptr;

// Moves what `frame` holds into its frame object, which outlives it.
void give_to_frame_object(PyThreadState* tstate, PyFrameObject* object, Frame* frame) {
  const size_t size = reinterpret_cast<char*>(&frame->localsplus[frame->stacktop]) - reinterpret_cast<char*>(frame);
  std::memcpy(object->_f_frame_data, frame, size);
  Frame* moved = reinterpret_cast<Frame*>(object->_f_frame_data);
  object->f_frame = moved;
  moved->owner = FRAME_OWNED_BY_FRAME_OBJECT;
  if (_PyFrame_IsIncomplete(moved)) {
    // It is dead anyway: let it look as if its first RESUME had run.
    moved->prev_instr = _PyCode_CODE(moved->f_code) + moved->f_code->_co_firsttraceable;
  }
  Frame* previous = moved->previous;
  while (previous != nullptr && _PyFrame_IsIncomplete(previous)) previous = previous->previous;
  if (previous != nullptr) {
    PyFrameObject* back = previous->frame_obj;
    if (back != nullptr) {
      Py_INCREF(back);
    } else {
      back = PyThreadState_GetFrame(tstate);  // the frame is unlinked, so the current frame is its caller
      if (back == nullptr) PyErr_Clear();
    }
    object->f_back = back;
  }
  moved->previous = nullptr;
  if (!_PyObject_GC_IS_TRACKED(reinterpret_cast<PyObject*>(object))) _PyObject_GC_TRACK(reinterpret_cast<PyObject*>(object));
}

bool is_generator_coroutine(PyObject* object) {
  return PyGen_CheckExact(object) &&
         (reinterpret_cast<PyGenObject*>(object)->gi_code->co_flags & CO_ITERABLE_COROUTINE) != 0;
}

PyObject* origin_of(Frame* caller, int depth) {
  int count = 0;
  for (Frame* frame = caller; frame != nullptr && count < depth; frame = frame->previous) ++count;
  PyObject* origin = PyTuple_New(count);
  if (origin == nullptr) return nullptr;
  Frame* frame = caller;
  for (int i = 0; i < count; ++i, frame = frame->previous) {
    PyCodeObject* code = frame->f_code;
    const int line = PyCode_Addr2Line(code, _PyInterpreterFrame_LASTI(frame) * static_cast<int>(sizeof(_Py_CODEUNIT)));
    PyObject* row = Py_BuildValue("OiO", code->co_filename, line, code->co_name);
    if (row == nullptr) {
      Py_DECREF(origin);
      return nullptr;
    }
    PyTuple_SET_ITEM(origin, i, row);
  }
  return origin;
}

}  // namespace

PyFrameObject* frame_object(PyThreadState* tstate, Frame* frame) {
  if (_PyFrame_IsIncomplete(frame)) return nullptr;
  if (frame->frame_obj != nullptr) {
    Py_INCREF(frame->frame_obj);
    return frame->frame_obj;
  }
  // Where memory is lacking PyThreadState_GetFrame clears the error indicator: an exception on its way must survive that.
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyFrameObject* object = PyThreadState_GetFrame(tstate);
  PyErr_Restore(type, value, traceback);
  return object;
}

void add_traceback(PyThreadState* tstate, Frame* frame) {
  PyFrameObject* object = frame_object(tstate, frame);
  if (object == nullptr) return;
  PyTraceBack_Here(object);
  Py_DECREF(object);
}

void clear_frame(PyThreadState* tstate, Frame* frame) {
  if (PyFrameObject* object = frame->frame_obj) {
    frame->frame_obj = nullptr;
    if (Py_REFCNT(object) > 1) {
      give_to_frame_object(tstate, object, frame);
      Py_DECREF(object);
      return;
    }
    Py_DECREF(object);
  }
  for (int i = 0; i < frame->stacktop; ++i) Py_XDECREF(frame->localsplus[i]);
  Py_XDECREF(frame->f_locals);
  Py_DECREF(frame->f_func);
  Py_DECREF(frame->f_code);
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

bool set_code_extra(PyCodeObject* code, Py_ssize_t index, void* value) {
  if (code->co_extra != nullptr) return _PyCode_SetExtra(reinterpret_cast<PyObject*>(code), index, value) == 0;
  auto* extra = static_cast<CodeExtra*>(PyMem_Calloc(1, sizeof(CodeExtra) + sizeof(void*) * static_cast<size_t>(index)));
  if (extra == nullptr) {
    PyErr_NoMemory();
    return false;
  }
  extra->size = index + 1;
  extra->entries[index] = value;
  code->co_extra = extra;
  return true;
}

uint32_t stamp_keys(PyDictKeysObject* keys) {
  static uint32_t next = 0xfffffff0u;
  if (keys->dk_version != 0) return keys->dk_version;
  if (keys->dk_kind == DICT_KEYS_GENERAL || next < 0x80000000u) return 0;
  return keys->dk_version = next--;
}

bool handle_pending(PyThreadState* tstate) {
  PyInterpreterState* interp = tstate->interp;
  _ceval_runtime_state* runtime = &_PyRuntime.ceval;
  _ceval_state* state = &interp->ceval;
  if (__atomic_load_n(&runtime->signals_pending._value, __ATOMIC_RELAXED) != 0 ||
      __atomic_load_n(&state->pending.calls_to_do._value, __ATOMIC_RELAXED) != 0) {
    if (Py_MakePendingCalls() != 0) return false;
  }
  if (__atomic_load_n(&state->gil_drop_request._value, __ATOMIC_RELAXED) != 0) {
    PyEval_RestoreThread(PyEval_SaveThread());
  }
  if (tstate->async_exc != nullptr) {
    PyObject* exception = tstate->async_exc;
    tstate->async_exc = nullptr;
    state->pending.async_exc = 0;
    // A request that comes between the two stores sets the word again or is seen by the loads.
    __atomic_store_n(&state->eval_breaker._value, 0, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&state->gil_drop_request._value, __ATOMIC_SEQ_CST) |
        __atomic_load_n(&runtime->signals_pending._value, __ATOMIC_SEQ_CST) |
        __atomic_load_n(&state->pending.calls_to_do._value, __ATOMIC_SEQ_CST)) {
      __atomic_store_n(&state->eval_breaker._value, 1, __ATOMIC_SEQ_CST);
    }
    _PyErr_SetNone(tstate, exception);
    Py_DECREF(exception);
    return false;
  }
  return true;
}

PyObject* make_generator(PyThreadState* tstate, Frame* frame) {
  PyFunctionObject* function = frame->f_func;
  auto* code = reinterpret_cast<PyCodeObject*>(function->func_code);
  const int kind = code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
  PyTypeObject* type = kind == CO_GENERATOR ? &PyGen_Type : kind == CO_COROUTINE ? &PyCoro_Type : &PyAsyncGen_Type;
  auto* generator = reinterpret_cast<PyGenObject*>(_PyObject_GC_NewVar(type, code->co_nlocalsplus + code->co_stacksize));
  if (generator == nullptr) return nullptr;
  generator->gi_frame_state = FRAME_CLEARED;
  generator->gi_code = reinterpret_cast<PyCodeObject*>(Py_NewRef(code));
  generator->gi_weakreflist = nullptr;
  generator->gi_exc_state.exc_value = nullptr;
  generator->gi_exc_state.previous_item = nullptr;
  generator->gi_name = Py_NewRef(function->func_name);
  generator->gi_qualname = Py_NewRef(function->func_qualname);
  generator->gi_origin_or_finalizer = nullptr;
  generator->gi_hooks_inited = 0;
  generator->gi_closed = 0;
  generator->gi_running_async = 0;
  _PyObject_GC_TRACK(reinterpret_cast<PyObject*>(generator));
  if (kind == CO_COROUTINE && tstate->coroutine_origin_tracking_depth != 0) {
    PyObject* origin = origin_of(frame->previous, tstate->coroutine_origin_tracking_depth);
    if (origin == nullptr) {
      Py_DECREF(generator);
      return nullptr;
    }
    generator->gi_origin_or_finalizer = origin;
  }
  Frame* own = frame_of(generator);
  const size_t size = reinterpret_cast<char*>(&frame->localsplus[frame->stacktop]) - reinterpret_cast<char*>(frame);
  std::memcpy(own, frame, size);
  own->previous = nullptr;
  own->owner = FRAME_OWNED_BY_GENERATOR;
  generator->gi_frame_state = FRAME_CREATED;
  return reinterpret_cast<PyObject*>(generator);
}

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

namespace {
struct WrappedValue {  // layout of _PyAsyncGenWrappedValue
  PyObject_HEAD
  PyObject* value;
};
}  // namespace

PyObject* async_gen_wrap(PyObject* value) {
  auto* wrapped = PyObject_GC_New(WrappedValue, &_PyAsyncGenWrappedValue_Type);
  if (wrapped == nullptr) return nullptr;
  wrapped->value = Py_NewRef(value);
  PyObject_GC_Track(reinterpret_cast<PyObject*>(wrapped));
  return reinterpret_cast<PyObject*>(wrapped);
}

PyObject* yield_from_target(PyGenObject* generator) {
  if (generator->gi_frame_state != FRAME_SUSPENDED) return nullptr;
  Frame* frame = frame_of(generator);
  const _Py_CODEUNIT next = frame->prev_instr[1];
  const int opcode = _Py_OPCODE(next);
  if ((opcode != RESUME && opcode != RESUME_QUICK) || _Py_OPARG(next) < 2) return nullptr;
  return Py_NewRef(_PyFrame_StackPeek(frame));
}

PyObject* prep_reraise_star(PyObject* orig, PyObject* list) {
  PyObject* arguments[] = {orig, list};
  return PyObject_Vectorcall(g_reraise_stub, arguments, 2, nullptr);
}

bool is_stub_code(PyCodeObject* code) {
  return g_reraise_stub != nullptr &&
         reinterpret_cast<PyObject*>(code) == reinterpret_cast<PyFunctionObject*>(g_reraise_stub)->func_code;
}

// ---- what prepare() learns

namespace {

// A class that has every special method in Python, so that its slots hold CPython's slot functions.
constexpr char kProbe[] = R"(
def _stub(a, b): return a
_body = bytes([151, 0, 124, 0, 124, 1, 88, 0, 83, 0])
_stub.__code__ = _stub.__code__.replace(co_code=_body, co_stacksize=4, co_name='except*', co_qualname='except*')
class _Hook:
    def __getattr__(self, name): raise AttributeError(name)
class _Attribute:
    def __getattribute__(self, name): return object.__getattribute__(self, name)
_Attribute().__class__
_names = ['add', 'and', 'floordiv', 'lshift', 'matmul', 'mul', 'mod', 'or', 'pow', 'rshift', 'sub', 'truediv', 'xor']
_space = {}
for _name in _names:
    for _prefix in ('', 'i', 'r'):
        exec(f'def __{_prefix}{_name}__(self, other, *rest): return NotImplemented', _space)
_space.pop('__builtins__', None)
def _method(self, *rest): return None
for _name in ('call', 'init', 'iter', 'next', 'bool', 'len', 'contains', 'getitem', 'setitem', 'delitem', 'setattr',
              'delattr', 'eq', 'ne', 'lt', 'le', 'gt', 'ge'):
    _space[f'__{_name}__'] = _method
_space['__hash__'] = object.__hash__
_All = type('_All', (), _space)
)";

template <class T>
T* item(PyObject* dict, const char* name) {
  return reinterpret_cast<T*>(PyDict_GetItemString(dict, name));
}

}  // namespace

bool prepare() {
  if (g_reraise_stub != nullptr) return true;
  const unsigned long version = Py_Version;
  if ((version >> 16) != (PY_VERSION_HEX >> 16)) {
    PyErr_Format(PyExc_RuntimeError, "dynvm's evaluator was built for Python %d.%d", PY_MAJOR_VERSION, PY_MINOR_VERSION);
    return false;
  }
  PyObject* space = PyDict_New();
  if (space == nullptr) return false;
  if (PyDict_SetItemString(space, "__builtins__", PyEval_GetBuiltins()) < 0 ||
      PyDict_SetItemString(space, "__name__", PyEval_GetBuiltins()) < 0) {
    Py_DECREF(space);
    return false;
  }
  PyDict_DelItemString(space, "__name__");
  PyObject* done = PyRun_String(kProbe, Py_file_input, space, space);
  if (done == nullptr) {
    Py_DECREF(space);
    return false;
  }
  Py_DECREF(done);
  auto* all = item<PyTypeObject>(space, "_All");
  SlotFunctions& slots = g_slots;
  slots.call = all->tp_call;
  slots.getattr_hook = item<PyTypeObject>(space, "_Hook")->tp_getattro;
  slots.getattro = item<PyTypeObject>(space, "_Attribute")->tp_getattro;
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
  g_reraise_stub = Py_NewRef(PyDict_GetItemString(space, "_stub"));
  Py_DECREF(space);
  return true;
}

}  // namespace dynvm::vm::cpython
