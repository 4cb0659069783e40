// See own_functions.h.
#include "tracer/own_functions.h"

#include "vm/vm.h"

namespace dynvm::tracer {

namespace {

struct InPython {
  const char* builtin;
  size_t least, most;  // arguments
  const char *name, *source;
};
// Of the arguments, or of the items of the only one.
#define DYNVM_EXTREME(name, comparison) \
  "def " name "(*items):\n" \
  "    if len(items) == 1:\n" \
  "        items, = items\n" \
  "    value = items[0]\n" \
  "    for item in items[1:]:\n" \
  "        if item " comparison " value:\n" \
  "            value = item\n" \
  "    return value\n"
constexpr InPython kAll[] = {
    {"map", 2, 2, "map_one", R"(
def map_one(function, items):
    for item in items:
        yield function(item)
)"},
    {"filter", 2, 2, "filter_by", R"(
def filter_by(function, items):
    for item in items:
        if function(item):
            yield item
)"},
    {"_functools.reduce", 2, 2, "reduce", R"(
def reduce(function, items):
    items = iter(items)
    for value in items:
        break
    else:
        raise TypeError("reduce() of empty iterable with no initial value")
    for item in items:
        value = function(value, item)
    return value
)"},
    {"_functools.reduce", 3, 3, "reduce_from", R"(
def reduce_from(function, items, value):
    for item in items:
        value = function(value, item)
    return value
)"},
    {"builtins.max", 1, 9, "largest", DYNVM_EXTREME("largest", ">")},
    {"builtins.min", 1, 9, "smallest", DYNVM_EXTREME("smallest", "<")},
};
#undef DYNVM_EXTREME

}  // namespace

PyObject* own_function(const std::string& name, const std::string& source) {
  static PyObject* const file = [] {
    PyObject* text = PyUnicode_InternFromString("<dynvm: what C does>");
    vm::hide_frames_of(text);
    return text;
  }();
  PyObject* module = PyImport_AddModule("_dynvm");
  PyObject* space = module != nullptr ? PyModule_GetDict(module) : nullptr;
  if (space == nullptr) return nullptr;
  if (PyObject* made = PyDict_GetItemString(space, name.c_str())) return made;
  if (PyDict_SetItemString(space, "__builtins__", PyEval_GetBuiltins()) < 0) return nullptr;
  PyObject* code = Py_CompileStringObject(source.c_str(), file, Py_file_input, nullptr, -1);
  PyObject* done = code != nullptr ? PyEval_EvalCode(code, space, space) : nullptr;
  Py_XDECREF(code);
  Py_XDECREF(done);
  return done != nullptr ? PyDict_GetItemString(space, name.c_str()) : nullptr;
}

PyObject* in_python(const std::string& builtin, size_t arguments) {
  for (const InPython& each : kAll)
    if (builtin == each.builtin && each.least <= arguments && arguments <= each.most) return own_function(each.name, each.source);
  return nullptr;
}

PyObject* with_iterators(const std::string& builtin, size_t arguments) {
  const std::string name = "iterate_" + builtin + std::to_string(arguments);
  std::string parameters, iterators;
  for (size_t i = 0; i < arguments; i++) {
    const std::string each = std::string(1, static_cast<char>('a' + i));
    parameters += (i > 0 ? ", " : "") + each;
    iterators += (i > 0 ? ", iter(" : "iter(") + each + ")";
  }
  return own_function(name, "def " + name + "(" + parameters + "):\n    return " + builtin + "(" + iterators + ")\n");
}

}  // namespace dynvm::tracer
