// Names for the Python objects that a trace takes for constant, by which another process finds its own (trace_cache.h).
//
// A name is a way: from the loop's frame (a local variable, its globals), a module or a class to an item, an attribute's dict, a cell's content and so
// on, or for plain values the value. It is found by a search through what can be reached from there.
//
// Together with the names stands what the trace relies on without looking at it when it runs, and what is checked before it may run elsewhere:
//  - each object is what it was: the type, the value of plain ones, code by its file and place in it (description);
//  - dict items that were folded hold the object with that name, as do parts of objects that cannot change (a method's self, a tuple's items) and the
//    classes whose versions are guarded;
//  - objects that were different are different ones, since comparisons by identity were folded too;
//  - the files that code came from have not been changed.
// What inspect.signature says of a function follows from that: it is asked again.
// What a trace checks by itself at each entry, the dict of an instance, items of lists, cells, needs no entry here.
//
// Inputs: objects, a frame. Invariants: neither searching nor finding runs Python code of the script, and nothing that the script can see changes,
// but that instances may get their dict, as recording gives it to them.
// Tests: tests/traces/test_cache.py.
#pragma once

#include <Python.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "ir/archive.h"
#include "runtime/bridge/bridge.h"
#include "tracer/dict_uses.h"
#include "tracer/object_parts.h"

struct _PyInterpreterFrame;

namespace dynvm::tracer {

// What recording has made from a constant by a call that always gives its like: inspect.signature(from), or the `parameters` of such a signature.
struct MadeObject {
  PyObject *object, *from;
  bool parameters;
};

struct ObjectName {
  Step step = Step::kNull;
  int32_t parent = -1, key = -1;     // of earlier names; key: of kKey
  int64_t number = 0;                // index; kFloat: its bits
  std::string text, more;
  std::vector<int32_t> items;        // kTuple, kSize, kSlice, kRange; kAlias, kSignature, kParameters: what it is made from; kMethod: function, self
  std::string description;
};

class ObjectNames {
 public:
  // Recording: frame is the loop's.
  ObjectNames(_PyInterpreterFrame* frame, bridge::Bridge* bridge) : frame_(frame), bridge_(bridge) {}
  ~ObjectNames();
  ObjectNames(const ObjectNames&) = delete;
  ObjectNames& operator=(const ObjectNames&) = delete;

  // All objects at once; null is one. types: those whose versions the trace guards. Empty, or what has no name.
  std::string find(const std::vector<PyObject*>& objects, const std::vector<DictUse>& uses, const std::vector<PyTypeObject*>& types, const std::vector<MadeObject>& made);
  int64_t number_of(const void* object) const;
  void write(ir::ArchiveWriter& archive) const { archive(names_, dict_facts_, parts_, files_); }

  // In another process: empty, or why the objects cannot be found.
  std::string read(ir::ArchiveReader& archive);
  PyObject* at(int64_t number) const { return number >= 0 && number < static_cast<int64_t>(objects_.size()) ? objects_[static_cast<size_t>(number)] : nullptr; }
  std::vector<DictUse> uses(std::vector<PyObject*>* owned) const;  // those that find() was given, as they are now; before take_objects
  std::vector<PyObject*> take_objects();  // references to them

 private:
  // dict, key, and the value (-1: missing); or of a dict as a whole, key -1, keys and values in turn.
  struct DictFact {
    int32_t dict = -1, key = -1, value = -1;
    std::vector<int32_t> all;
  };
  struct Part {
    int32_t whole;
    Step step;
    int64_t number;
    std::string text;
    int32_t part;
  };
  struct File {
    std::string path, stamp;
  };
  template <class A> friend void fields(A& a, DictFact& x) { a(x.dict, x.key, x.value, x.all); }
  template <class A> friend void fields(A& a, Part& x) { a(x.whole, x.step, x.number, x.text, x.part); }
  template <class A> friend void fields(A& a, File& x) { a(x.path, x.stamp); }

  class Search;
  int32_t add(PyObject* object, ObjectName name);
  bool name_by_itself(PyObject* object);
  std::string description(PyObject* object, int depth = 0);
  std::string whole_description(PyObject* object);
  std::string class_description(PyTypeObject* type);
  void note_file(const std::string& path);
  PyObject* resolve(const ObjectName& name);
  PyObject* follow(PyObject* from, Step step, int64_t number, const std::string& text, PyObject* key);
  std::string check();

  _PyInterpreterFrame* frame_;
  bridge::Bridge* bridge_;
  std::vector<ObjectName> names_;
  std::vector<PyObject*> objects_;                         // owned, by number
  std::vector<PyObject*> kept_;                            // owned: what names were made from
  std::unordered_map<const void*, int32_t> numbers_;
  std::vector<DictFact> dict_facts_;
  std::vector<Part> parts_;
  std::vector<File> files_;
  std::set<std::string> known_files_;
  std::string undescribed_;                                // what has no description
};

template <class A>
void fields(A& a, ObjectName& x) { a(x.step, x.parent, x.key, x.number, x.text, x.more, x.items, x.description); }

}  // namespace dynvm::tracer
