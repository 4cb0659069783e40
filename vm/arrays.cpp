// Recognising array.array; see arrays.h.
#include "vm/arrays.h"

#include <cstring>

namespace dynvm::vm {

PyTypeObject* g_array_type = nullptr;

bool recognise_array(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (g_array_type != nullptr || std::strcmp(type->tp_name, "array.array") != 0) return is_array(object);
  if (type->tp_basicsize != sizeof(ArrayObject) || (type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0 || (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) == 0) {
    return false;
  }
  PyObject* module = PyType_GetModule(type);
  const PyModuleDef* definition = module != nullptr ? PyModule_GetDef(module) : nullptr;
  PyObject* typecode = definition != nullptr && std::strcmp(definition->m_name, "array") == 0 ? PyObject_GetAttrString(object, "typecode") : nullptr;
  PyObject* itemsize = typecode != nullptr ? PyObject_GetAttrString(object, "itemsize") : nullptr;
  const ArrayDescription* description = array_description(object);
  const bool same = itemsize != nullptr && PyUnicode_Check(typecode) && PyUnicode_GET_LENGTH(typecode) == 1 &&
                    PyUnicode_READ_CHAR(typecode, 0) == static_cast<unsigned char>(description->typecode) &&
                    PyLong_AsLong(itemsize) == description->itemsize;
  Py_XDECREF(typecode);
  Py_XDECREF(itemsize);
  PyErr_Clear();
  if (same) g_array_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(reinterpret_cast<PyObject*>(type)));
  return same;
}

}  // namespace dynvm::vm
