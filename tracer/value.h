// What the recorder knows of one Python value in the recorded iteration.
//
// The interpreter holds real objects; beside each stands a Value that says where it comes from. Values are numbered (`V`) and never
// copied: promoting one to a constant is seen by every slot that holds it.
//
// Virtual values (tuples, lists, dicts, slices, bound methods, tensors made by the trace, boxed numbers) exist in the IR only once
// something needs the object: `object` is the instruction that makes it. Snapshots must not force that, so they name `snap`, an
// instruction that only exits execute (it is sunk); a changed list or dict gets a new one.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

#include "ir/trace.h"

namespace dynvm::tracer {

using V = uint32_t;
inline constexpr V kNoValue = ~0u;

struct Value {
  enum Kind : uint8_t {
    kNull,    // an empty slot
    kConst,   // always this very object, under guards already recorded
    kObject,  // `ref` is an object
    kScalar,  // `ref` is an unboxed int, float or bool
    kTensor,  // `ref` is a tensor made by the trace; `wrap` describes its Python object
    kTuple, kList, kDict, kSlice, kMethod,  // virtual, from `items`; kDict: `keys` beside them; kMethod: function, self; of a C function, `source` and keys[0] are what and whose attribute
    kCell,      // a virtual cell: items[0] is its content
    kGenerator, // a virtual generator: items are its function, then local variables and value stack; goes on at code unit `position`, or is over
    kSet,       // a virtual set of `items`, all constants with a hash that runs no Python code
    kView,      // a virtual view of a dict (items[0]): keys, values or items, by `position`
    kFunction,  // a virtual function: items are the cells of its closure, then what else it is made of
    kInstance,  // a virtual instance of a class in Python: its attributes, `keys` and `items`
    kContext,   // of a torch.autograd.Function, its attributes are Values (functions.cpp), or a hook's handle: no value of the trace
    kIterator,  // a virtual iterator over `items`, standing before items[position]; `source`, a tuple of a function and its arguments, makes it; without: over a tuple
  } kind = kNull;
  ir::Type scalar = ir::Type::kVoid;
  bool stable = false;        // kObject: loaded from long-lived state, so worth promoting by an identity guard
  bool escaped = false;       // handed to code outside the trace, or kept by an object that was
  bool fresh = false;         // an instance made by this trace: until it escapes, all its attributes are known; if not to a call, until the next barrier
  int64_t escaped_at = -1;    // barriers before it escaped; -1: to a call
  bool type_known = false;    // kObject: its exact type has been guarded
  bool looked_at = false;     // kTensor with a graph: its object has been where somebody may look at the graph
  bool of_sizes = false;      // kScalar: computed from sizes of tensors and constants alone
  bool is_result = false;     // made by this iteration (a call's result): never promoted
  bool caught = false;        // an exception that the trace has raised and caught: nobody may look at the object (exceptions.cpp)
  int32_t site = -1;          // kObject: index of the promotion site, for learning from failed guards
  PyObject* concrete = nullptr;  // owned by the recorder
  ir::Ref ref = ir::kNoRef;
  ir::Ref object = ir::kNoRef;
  ir::Ref snap = ir::kNoRef;
  ir::Ref constant = ir::kNoRef;  // kConst: the instruction that is the object, where a snapshot has asked for it
  uint64_t snap_epoch = 0;    // when it was right (Recorder::changed)
  int32_t tensor_id = -1;     // kTensor: the recorder's id
  ir::Wrap wrap;
  PyTypeObject* cls = nullptr;   // kTensor: a subclass of torch.Tensor's; what `keys` and `items` hold are then its attributes (overrides.cpp)
  std::vector<V> items;       // contents, where known (also for materialised tuples and fresh lists)
  size_t position = 0;
  static constexpr size_t kOver = SIZE_MAX;  // kGenerator: position of one that has returned
  bool running = false;       // kGenerator: its frame is one of the recorder's (or it is exhausted), so it has no state of its own
  V source = kNoValue;        // kIterator, kMethod: see there
  std::vector<PyObject*> keys;
  bool items_known = false;

  bool has_graph() const { return kind == kTensor && wrap.requires_grad && !wrap.is_leaf; }  // autograd tracks it
};

}  // namespace dynvm::tracer
