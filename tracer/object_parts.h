// Reading Python objects without running their code: what they are called, what kind they are, what they hold. For object_names.h.
//
// Inputs: objects. Outputs: texts, borrowed references where nothing else is said. Invariants: the GIL is held; no Python exception is left set.
// Tests: tests/traces/test_cache.py.
#pragma once

#include <Python.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dynvm::tracer {

// One step of a way.
enum class Step : uint8_t {
  kNull, kSingleton, kInt, kFloat, kText, kBytes, kTuple, kSize, kSlice, kRange, kTorch, kAlias, kMethod, kSignature, kParameters,  // values
  kModule, kQualified, kStaticType, kShortcut,                           // by name
  kLocal, kGlobals, kBuiltins, kLoopCode,                                // the loop's frame
  kKey, kIndex, kDict, kType, kBase, kBound, kTypeItem, kMember, kCell, kCode, kDefaults, kKwDefaults, kAnnotations, kGlobalsOf, kClosure, kFunction, kSelf,  // from a parent
};

namespace parts {

inline constexpr Py_ssize_t kMaxItems = 20000;  // of a container that is searched

std::string utf8(PyObject* text);
PyObject* text_of(const std::string& bytes);  // interned; a new reference
std::string str(PyObject* object);
std::pair<std::string, std::string> type_name(PyTypeObject* type);  // module, qualified name
std::string type_text(PyTypeObject* type);
bool has_type(PyObject* o, const char* name);
std::string first_keys(PyObject* o);  // for messages: what a dict is known by

bool is_singleton(PyObject* o);
bool is_torch_value(PyObject* o);        // a dtype, a device and the like
bool is_alias(PyObject* o);              // list[int], Optional[int], int | None
bool is_value(PyObject* o);              // is what it is by its value, not by its identity
bool are_values(PyTypeObject* type);     // what is no singleton and of that type
bool is_container(PyObject* o);          // and may be changed
bool is_descriptor_of_c(PyObject* o);
bool cannot_change(PyObject* o);         // its parts are as constant as itself

PyObject* module_of(const std::string& name);
PyObject* qualified(const std::string& module, const std::string& name);  // module.a.b.c, through the dicts of modules and classes alone
bool is_installed(PyCodeObject* code);   // its file is where packages are installed, torch or another
bool is_standard(PyCodeObject* code);    // it is of Python's own library
const std::map<std::string, PyTypeObject*>& static_types();  // classes of C by name; null where several have it
PyObject* member(PyObject* o, const std::string& name);      // what a member of C or a slot holds
PyObject* bound_method(PyObject* self, const std::string& name);  // a method of C, as an attribute gives it; a new reference
PyObject* parts_of_alias(PyObject* o);   // what make_alias wants; a new reference
PyObject* make_alias(PyObject* first, PyObject* second, const std::string& type);  // a new reference

// What an object holds, by the steps that lead there; a text lives as long as the object, and until a class changes. all: also what is not worth following from objects
// that happen to be met.
using Visit = std::function<void(Step step, int64_t number, std::string_view text, PyObject* part)>;
void for_each_part(PyObject* o, bool all, const Visit& visit);

}  // namespace parts
}  // namespace dynvm::tracer
