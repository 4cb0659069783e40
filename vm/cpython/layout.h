// Where native code finds what the inline functions of cpython.h read and write.
//
// Purpose: offsets and variants of CPython's structs, as constants, for the emitter of native runs. Inputs: the headers of the version that is
//   built for. Outputs: constants. Invariants: the variants stand first; everything else follows from the structs.
// Tests: tests/vm/test_native.py.
#pragma once

#include "vm/cpython/cpython.h"

namespace dynvm::vm::cpython::layout {

inline constexpr int kMinor = PY_MINOR_VERSION;
inline constexpr bool kImmortal = kMinor >= 12;    // negative lower half of the reference count: never changed
inline constexpr bool kTaggedInts = kMinor >= 12;  // number of digits and sign in one tag, else a signed size
inline constexpr bool kLocalsMayChange = kMinor >= 13;  // any Python code may write to the locals of any frame (PEP 667)
enum class Values { kPointer, kTaggedPointer, kEmbedded };  // inline values of instances
inline constexpr Values kValues = kMinor == 11 ? Values::kPointer : kMinor == 12 ? Values::kTaggedPointer : Values::kEmbedded;

inline constexpr int kRefcount = offsetof(PyObject, ob_refcnt);
inline constexpr int kType = offsetof(PyObject, ob_type);
inline constexpr int kSize = offsetof(PyVarObject, ob_size);
inline constexpr int kFloat = offsetof(PyFloatObject, ob_fval);
inline constexpr int kIntTag = sizeof(PyObject);  // the size or the tag
inline constexpr int kIntDigits = sizeof(PyObject) + sizeof(Py_ssize_t);
inline constexpr int kListRoom = offsetof(PyListObject, allocated);
inline constexpr int kListItems = offsetof(PyListObject, ob_item);
inline constexpr int kTupleItems = offsetof(PyTupleObject, ob_item);
inline constexpr int kCell = offsetof(PyCellObject, ob_ref);
inline constexpr int kTypeVersion = offsetof(PyTypeObject, tp_version_tag);
inline constexpr int kTypeFlags = offsetof(PyTypeObject, tp_flags);
inline constexpr int kSharedKeys = offsetof(PyHeapTypeObject, ht_cached_keys);
inline constexpr int kDictKeys = offsetof(PyDictObject, ma_keys);
inline constexpr int kKeysVersion = offsetof(PyDictKeysObject, dk_version);
inline constexpr int kFrameLocals = offsetof(Frame, localsplus);
inline constexpr int kFrameGlobals = offsetof(Frame, f_globals);
inline constexpr int kFrameBuiltins = offsetof(Frame, f_builtins);
// The order in which inline values were given, one byte each, from the first value: how many, and where they stand (behind the last value that
// there is room for, or downwards from their number).
inline constexpr bool kOrderGrowsDown = kMinor < 13;
#if PY_MINOR_VERSION >= 13
inline constexpr int kOrderCount = static_cast<int>(offsetof(PyDictValues, size)) - static_cast<int>(offsetof(PyDictValues, values));
inline constexpr int kOrderCapacity = static_cast<int>(offsetof(PyDictValues, capacity)) - static_cast<int>(offsetof(PyDictValues, values));
inline constexpr int kFirstValue = sizeof(PyObject) + offsetof(PyDictValues, values);  // from the object
inline constexpr int kValuesAreValid = sizeof(PyObject) + offsetof(PyDictValues, valid);
#else
inline constexpr int kOrderCount = -2, kOrderCapacity = 0;
#endif
inline constexpr int kManagedDict = kMinor == 11 ? -4 * 8 : -3 * 8;  // of the pointer to the values or the dict before the object

#if PY_MINOR_VERSION >= 13
using FloatState = _Py_float_freelist;
inline constexpr int kFreeFloats = offsetof(FloatState, items);
#else
using FloatState = _Py_float_state;
inline constexpr int kFreeFloats = offsetof(FloatState, free_list);
#endif
inline constexpr int kFreeFloatCount = offsetof(FloatState, numfree);
inline constexpr int kMostFreeFloats = PyFloat_MAXFREELIST;
inline constexpr int kIntStride = sizeof(PyLongObject);  // of the small ints

}  // namespace dynvm::vm::cpython::layout
