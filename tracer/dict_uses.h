// What a trace assumes of a dict whose version it guards, item by item. Where another item has changed since, the assumption still holds, and the guard goes on with
// the version of now (CompiledTrace::renew_version): a script's global variables change while its functions use others.
//
// One event may change many of them, as train() and eval() do with the namespaces of all modules: what has changed is looked for in all guards at once.
//
// Invariant: an item is known to be the same only while the object it was cannot have died: it is owned, or a weak reference to it is.
// Tests: tests/traces/cases/globals_change.py.
#pragma once

#include <Python.h>

#include <unordered_set>
#include <vector>

#include "ir/trace.h"

namespace dynvm::tracer {

struct LoopTrace;

// A folded read of a dict: of one item (missing ones too), or of all of it (key: null).
struct DictUse {
  PyObject* dict;
  PyObject* key;
  enum How : uint8_t { kUnknown, kMissing, kSame, kWeak } how = kUnknown;
  PyObject* held = nullptr;            // the object, or a weak reference to it
};

// As the item is now; what has to live as long as the trace goes to *owned.
DictUse use_of(PyObject* dict, PyObject* key, std::vector<PyObject*>* owned);

// The constant dict whose version is guarded, borrowed; null: it is another guard.
PyObject* guarded_dict(const ir::Trace& ir, const ir::Inst& guard);

// The dicts that the trace knows something of, all of which is as it was. To compare only.
std::unordered_set<const PyObject*> unchanged_dicts(const LoopTrace& trace);

// A guard on a dict's version has failed. Where all that the trace knows of a dict is as it was, no guard on it need fail: they hold again. Output: the dicts of which this is not so, borrowed;
// all that have changed where the trace has been renewed too often for what it does.
std::vector<PyObject*> renew_guards(LoopTrace& trace);

}  // namespace dynvm::tracer
