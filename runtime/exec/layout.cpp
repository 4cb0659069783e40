// The layout of the CPython that dynvm is built for (layout.h). What public headers do not show: dict keys begin {reference count, log2
// sizes and kind in 4 bytes, version in 4 bytes}, and where an instance with a managed dict keeps it:
//   3.11: pointers to its inline values and to its dict 32 and 24 bytes in front
//   3.12: one word 24 bytes in front: the dict, or the address before the inline values, an odd number
//   3.13: the dict 24 bytes in front; inline values within the object, behind {capacity, size, embedded, valid} in 8 bytes
#include <Python.h>

#include <cstddef>

#include "runtime/exec/layout.h"

namespace dynvm::runtime {

const codegen::PythonLayout& python_layout() {
  static const codegen::PythonLayout layout = [] {
    codegen::PythonLayout out;
    out.ob_refcnt = offsetof(PyObject, ob_refcnt);
    out.ob_type = offsetof(PyObject, ob_type);
    out.var_size = offsetof(PyVarObject, ob_size);
    out.type_flags = offsetof(PyTypeObject, tp_flags);
    out.type_version = offsetof(PyTypeObject, tp_version_tag);
    out.managed_dict_flag = Py_TPFLAGS_MANAGED_DICT;
    out.managed_dict = -24;
    out.heap_type_keys = offsetof(PyHeapTypeObject, ht_cached_keys);
    out.keys_version = 12;
    out.dict_version = offsetof(PyDictObject, ma_version_tag);
    out.dict_used = offsetof(PyDictObject, ma_used);
    out.function_version = offsetof(PyFunctionObject, func_version);
    out.float_value = offsetof(PyFloatObject, ob_fval);
    out.tuple_items = offsetof(PyTupleObject, ob_item);
    out.list_items = offsetof(PyListObject, ob_item);
    out.none = Py_None;
    out.true_object = Py_True;
    out.false_object = Py_False;
    out.long_type = &PyLong_Type;
    out.float_type = &PyFloat_Type;
#if PY_VERSION_HEX >= 0x030c0000
    out.long_style = codegen::PythonLayout::kTaggedDigits;
    out.long_size = offsetof(PyLongObject, long_value.lv_tag);
    out.long_digits = offsetof(PyLongObject, long_value.ob_digit);
    out.immortal_objects = true;
#if PY_VERSION_HEX >= 0x030d0000
    out.values = codegen::PythonLayout::kValuesInside;
    out.values_valid = sizeof(PyObject) + 3;
    out.first_value = sizeof(PyObject) + 8;
#else
    out.values = codegen::PythonLayout::kValuesOdd;
    out.managed_values = -24;
    out.first_value = 1;
#endif
#else
    out.long_style = codegen::PythonLayout::kSizedDigits;
    out.long_size = offsetof(PyVarObject, ob_size);
    out.long_digits = offsetof(PyLongObject, ob_digit);
    out.managed_values = -32;
#endif
    out.dealloc = reinterpret_cast<const void*>(&_Py_Dealloc);
    return out;
  }();
  return layout;
}

}  // namespace dynvm::runtime
