// What a trace assumes of a dict whose version it guards, item by item. Where another item has changed since, the assumption still holds, and the guard goes on with
// the version of now (CompiledTrace::renew_version): a script's global variables change while its functions use others.
//
// Invariant: an item is known to be the same only while the object it was cannot have died: one that stays anyway is owned, of another a weak reference is.
// Tests: tests/traces/cases/globals_change.py.
#pragma once

#include <Python.h>

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

// Is all that the trace knows of the dict whose version is guarded as it was? False where it knows nothing, and for other guards.
bool uses_hold(const LoopTrace& trace, const ir::Inst& guard);

// The guard on a dict's version has failed: if all that the trace knows of the dict is as it was, it need not have. True: it holds again.
bool renew_guard(LoopTrace& trace, ir::Ref guard);

}  // namespace dynvm::tracer
