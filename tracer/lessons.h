// Why recordings are given up (aborts.def), and what that teaches the next one.
#pragma once

#include <Python.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace dynvm::tracer {

enum class Abort : uint8_t {
  kNone,
#define X(name, stage, then, sentence) k_##name,
#include "tracer/aborts.def"
#undef X
};
const char* abort_name(Abort abort);
const char* abort_sentence(Abort abort);
enum class AfterAbort : uint8_t { cut, again, wait };  // as in aborts.def
AfterAbort after_abort(Abort abort);

// What a loop has taught the recorder: assumptions that turned out wrong are not made again.
struct Lessons {
  std::set<PyObject*> changing_dicts;                       // dicts whose version changes: read key by key
  std::map<PyTypeObject*, int> changing_instances;          // times that this was so of an instance's dict: from the second on, of all of the type
  std::set<std::pair<PyObject*, PyObject*>> changing_items; // (dict, key) whose value changes: not promoted
  std::set<std::pair<PyCodeObject*, int>> changing_slots;   // root slots whose object changes
  std::set<PyObject*> changing_lists;
  std::set<std::pair<PyCodeObject*, int>> changing_values;  // (code, unit): a promotion there failed
  std::map<std::pair<PyCodeObject*, int>, PyObject*> written_in;  // (code, unit) of a store to a dict that is an item of another: that one's address
  std::map<std::pair<PyCodeObject*, int>, int> written_dicts;  // (code, unit): dicts that were promoted there, and that the trace was found to write
  std::set<std::pair<PyCodeObject*, int>> changing_codes;   // (code, unit): functions of many codes are called there
  std::set<std::pair<PyCodeObject*, int>> looked_alike;     // (code, unit) of a view that looked where another one did, by numbers that were the same once: by chance, unless it happens again
  std::set<std::pair<PyCodeObject*, int>> coincidences;     // (code, unit) of a torch call: two tensors that it is given were one object once, by chance
  std::set<std::pair<PyCodeObject*, int>> written_views;    // (code, unit): a view made there, with a changing offset, looks at memory that is written
  bool inputs_apart = false;                                // tensors that share memory do not share it in the same way each time: each is memory of its own, as long as nobody writes it
  bool sizes_by_slices = false;                             // ends of slices of tensors decide sizes
  bool one_round = false;                                   // a recording that goes through several iterations does not come to its end
  bool known_graph_numbers = false;                         // numbers of operations that autograd records are constants: a graph with them outlives the trace
  int graphs_escaped = 0;                                   // recordings that were given up because a graph is needed behind the header
  std::set<std::string> failing;                            // operations that have failed in a trace and not in the interpreter
  std::set<std::pair<PyCodeObject*, int>> size_calls;       // (code, unit) of a torch call: what its operations are given depends on sizes in a way that is not known
  bool residual_sizes = false;                              // operations whose data decides sizes stay calls: what follows from the sizes was not found
  std::set<std::pair<PyCodeObject*, int>> opaque_consumers; // (code, unit): a generator that a builtin consumes there has effects; (its code, 0): next() cannot go on with it
  std::map<std::pair<PyCodeObject*, int>, bool> asked_generators;  // (code, unit): next() of a generator; false: each that was asked there had ended
  std::set<std::pair<PyCodeObject*, int>> opaque_calls;     // (code, unit): a function that is called there enters a mode of torch's that no trace supports
  std::map<std::pair<PyCodeObject*, int>, int> failed_callbacks;  // (code, unit) of a torch call: times that a function that it calls could not be followed
  // (code, unit) of a torch call: what functions that it calls need guarded when they have had an effect already, and so before the call. Holds
  // references, until the next recording is over.
  std::map<std::pair<PyCodeObject*, int>, std::set<std::tuple<char, PyObject*, PyObject*>>> early_guards;
};

}  // namespace dynvm::tracer
