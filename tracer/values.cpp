// The recorder's values and how they become instructions: constants, unboxed numbers, virtual objects, snapshots. Purpose and invariants:
// recorder.h and value.h.
#include <algorithm>
#include <unordered_set>

#include "runtime/base/defects.h"
#include "runtime/base/log.h"
#include "runtime/base/heuristics.h"
#include "tracer/recorder.h"

namespace dynvm::tracer {

using ir::kNoRef;
using ir::Ref;
using ir::Type;
using IrOp = ir::Op;

// ---------------------------------------------------------------------------------------------------------------------
// Values

V Recorder::add_value(Value value) {
  const V v = static_cast<V>(values_.size());
  PyObject* o = value.concrete;
  // A constant may be needed again.
  if (value.kind != Value::kConst && o != nullptr && (PyTuple_CheckExact(o) || PyList_CheckExact(o) || PyCell_Check(o) || PyFunction_Check(o) || is_tensor(o))) holders_.push_back(v);
  if (value.kind == Value::kList || value.kind == Value::kDict) containers_.push_back(v);
  values_.push_back(std::move(value));
  if (o != nullptr && (Py_TYPE(o)->tp_finalize != nullptr || !mortals_.empty())) note_held(o);
  return v;
}

V Recorder::constant(PyObject* object) {
  auto found = constants_.find(object);
  if (found != constants_.end()) return found->second;
  Value value;
  value.kind = Value::kConst;
  value.concrete = Py_NewRef(object);
  V v = add_value(std::move(value));
  constants_.emplace(object, v);
  return v;
}

// The caller and a Value hold it, and if nobody else does, it is new.
void Recorder::note_made(PyObject* object) {
  if (object != nullptr && Py_REFCNT(object) <= 2) made_.insert(object);
}

V Recorder::object(Ref ref, PyObject* concrete, bool result) {
  Value value;
  value.kind = Value::kObject;
  value.ref = value.object = ref;
  value.concrete = Py_XNewRef(concrete);
  value.is_result = result;
  if (result) note_made(concrete);
  return add_value(std::move(value));
}

V Recorder::scalar(Type type, Ref ref, PyObject* concrete) {
  Value value;
  value.kind = Value::kScalar;
  value.scalar = type;
  value.ref = ref;
  value.concrete = Py_NewRef(concrete);
  return add_value(std::move(value));
}

V Recorder::virtual_object(Value::Kind kind, std::vector<V> items, PyObject* concrete) {
  Value value;
  value.kind = kind;
  value.items = std::move(items);
  value.items_known = true;
  value.concrete = Py_NewRef(concrete);
  note_made(concrete);
  return add_value(std::move(value));
}

void Recorder::became_stable(V v, int32_t site) {
  at(v).stable = true;
  at(v).site = site;
}

// The object that this instruction meets is likely to be the same each time (until a guard has shown otherwise), so worth promoting.
void Recorder::likely_same(V v) {
  if (at(v).kind != Value::kObject || at(v).stable || made_.count(concrete(v)) != 0 || ending_.count(concrete(v)) != 0 || lessons_.changing_values.count({top().code, current_unit_})) return;
  sites_.push_back({Site::kValue, reinterpret_cast<PyObject*>(top().code), nullptr, current_unit_});
  became_stable(v, static_cast<int32_t>(sites_.size()) - 1);
}

// The name of an attribute: wherever it comes from, a place asks for the same one mostly.
bool Recorder::promote_name(V v) {
  if (!PyUnicode_CheckExact(concrete(v))) return false;
  if (PyUnicode_CHECK_INTERNED(concrete(v))) likely_same(v);
  return promote(v);
}

// ---------------------------------------------------------------------------------------------------------------------
// IR

// What is added from now on comes from the instruction that is being recorded: for profiles, and for who looks at exits. The code is kept for good.
void Recorder::note_origin() {
  int32_t caller = -1;
  for (size_t i = 0; i < frames_.size(); i++) {
    const ir::Origin origin{frames_[i].code, i + 1 == frames_.size() ? current_unit_ : frames_[i + 1].call_unit, caller};
    const auto [found, is_new] = origin_numbers_.try_emplace({origin.code, origin.unit, origin.caller}, static_cast<int32_t>(trace_.origins.size()));
    if (is_new) {
      trace_.origins.push_back(origin);
      Py_INCREF(static_cast<PyObject*>(origin.code));
    }
    caller = found->second;
  }
  trace_.origin = caller;
}

Ref Recorder::emit(IrOp op, Type type, std::vector<Ref> args, int64_t imm, bool snap) {
  int32_t snapshot_index = snap ? snapshot() : ir::kNoSnapshot;
  // What only raises may follow an effect: nothing is done again then.
  if (snap && (ir::op_info(op).effects & ir::kGuard) != 0 && no_guard_may_follow()) needed_early(op, args);
  if (static_cast<int>(trace_.insts.size()) > base::heuristics().max_insts) give_up(Abort::k_trace_too_long);
  const Ref ref = trace_.add(op, type, args, imm, snapshot_index);
  const bool tensor_op = op == IrOp::k_aten || op == IrOp::k_wrap || op == IrOp::k_read_scalar || op == IrOp::k_get_grad;
  trace_.insts[ref].again = snap && tensor_op && !effect_done_ && !drawn_ && consumers_.empty() && callbacks_.empty() && !handling_.open;
  return ref;
}

void Recorder::guard(IrOp op, std::vector<Ref> args, int64_t imm) {
  emit(op, Type::kVoid, std::move(args), imm, true);
  DYNVM_EVENT(kGuard, (base::EventFields{.what = "recorded", .trace = trace_.id, .file = PyUnicode_AsUTF8(top().code->co_filename),
                                         .line = PyCode_Addr2Line(top().code, current_unit_ * 2), .reason = std::string(ir::op_info(op).name)}),
              "%{} {} at {}:{}", trace_.insts.size() - 1, ir::op_info(op).name, PyUnicode_AsUTF8(top().code->co_filename),
              PyCode_Addr2Line(top().code, current_unit_ * 2));
}

int32_t Recorder::object_index(PyObject* object) {
  auto found = object_index_.find(object);
  if (found != object_index_.end()) return found->second;
  ir::Object entry;
  entry.pointer = object;
  if (object == nullptr) {
    entry.text = "null";
  } else {
    owned_.push_back(Py_NewRef(object));
    if (PyUnicode_CheckExact(object) && PyUnicode_GetLength(object) < 40) {
      const char* text = PyUnicode_AsUTF8(object);
      entry.text = text ? std::string("'") + text + "'" : "str";
    } else if (PyType_Check(object)) {
      entry.text = reinterpret_cast<PyTypeObject*>(object)->tp_name;
    } else if (PyFunction_Check(object)) {
      const char* text = PyUnicode_AsUTF8(reinterpret_cast<PyFunctionObject*>(object)->func_qualname);
      entry.text = text ? text : "function";
    } else if (PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyBool_Check(object) || object == Py_None) {
      PyObject* repr = PyObject_Repr(object);
      const char* text = repr ? PyUnicode_AsUTF8(repr) : nullptr;
      entry.text = text ? std::string(text).substr(0, 30) : "number";
      Py_XDECREF(repr);
    } else {
      entry.text = callable_name(object);
    }
    PyErr_Clear();
  }
  trace_.objects.push_back(std::move(entry));
  int32_t index = static_cast<int32_t>(trace_.objects.size()) - 1;
  object_index_.emplace(object, index);
  return index;
}

Ref Recorder::const_ref(PyObject* object) {
  auto found = const_refs_.find(object);
  if (found != const_refs_.end()) return found->second;
  Ref ref = emit(IrOp::k_const_obj, Type::kObject, {}, object_index(object));
  const_refs_.emplace(object, ref);
  return ref;
}

// An int object; of Value::kOver -1.
Ref Recorder::const_index(size_t index) {
  PyObject* number = PyLong_FromSsize_t(static_cast<Py_ssize_t>(index));
  Ref ref = const_ref(number);
  Py_DECREF(number);
  return ref;
}

// Operands of the instruction that makes a virtual container, one after the other. Making them may grow values_.
template <class Each>
void Recorder::for_each_part(V v, bool for_snapshot, const Each& each) {
  const auto add = [&](V x) {  // snapshots may name scalars directly, operands of sunk instructions too
    if (!for_snapshot) escape(x);
    const Ref ref = for_snapshot ? as_snapshot(x) : as_object(x);
    each(ref == ir::kSlotNull ? const_ref(nullptr) : ref);
  };
  const auto add_items = [&](size_t from) {
    const size_t size = at(v).items.size();
    for (size_t i = from; i < size; i++) add(at(v).items[i]);
  };
  switch (at(v).kind) {
    case Value::kFunction:
      for (V x : function_parts_.at(v)) add(x);
      break;
    case Value::kGenerator:
      add(at(v).items[0]);
      each(const_index(at(v).position));
      if (!at(v).running) add_items(1);
      break;
    case Value::kView:
    case Value::kCell: add(at(v).items[0]); break;
    case Value::kMethod:
      if (at(v).keys.empty()) {
        add_items(0);
      } else {
        add(at(v).source);
        each(const_ref(at(v).keys[0]));
      }
      break;
    case Value::kIterator:
      if (const V source = at(v).source; source != kNoValue) {
        add(at(source).items[0]);
        each(const_index(at(v).position));
        for (size_t i = 1, size = at(source).items.size(); i < size; i++) add(at(source).items[i]);
      } else {
        add_items(at(v).position);
      }
      break;
    default:
      if (at(v).kind == Value::kInstance) each(const_ref(reinterpret_cast<PyObject*>(Py_TYPE(concrete(v)))));
      if (at(v).keys.empty()) return add_items(0);
      for (size_t i = 0, size = at(v).items.size(); i < size; i++) {
        each(const_ref(at(v).keys[i]));
        add(at(v).items[i]);
      }
      break;
  }
}

std::vector<Ref> Recorder::parts_of(V v, bool for_snapshot) {
  std::vector<Ref> refs;
  for_each_part(v, for_snapshot, [&](Ref ref) { refs.push_back(ref); });
  return refs;
}

// Does what a snapshot was given of it show it as it is now?
bool Recorder::is_still(V v) {
  const Value::Kind kind = at(v).kind;
  if ((kind < Value::kTuple && at(v).keys.empty()) || kind == Value::kContext || at(v).snap_epoch == epoch_) return true;
  if (kind == Value::kTuple && !PyTuple_CheckExact(at(v).concrete)) return true;  // torch.Size
  Ref made = at(v).snap;
  if (kind == Value::kIterator && at(v).source == kNoValue) made = trace_.arg(made, 0);
  const uint32_t before = trace_.insts[made].op == IrOp::k_tensor_instance ? 2 : 0;  // operands that are no parts
  const uint32_t end = trace_.insts[made].first + trace_.insts[made].count;
  uint32_t next = trace_.insts[made].first + before;
  bool same = true;
  for_each_part(v, true, [&](Ref ref) { same = same && next < end && trace_.operands[next++] == ref; });
  return same && next == end;
}

// The instruction that makes a virtual value's object.
Ref Recorder::make(V v, bool for_snapshot) {
  const Value value = at(v);  // a copy: making the items may grow values_
  switch (value.kind) {
    case Value::kScalar:
      if (value.scalar == Type::kInt) return emit(IrOp::k_box_int, Type::kObject, {value.ref});
      if (value.scalar == Type::kFloat) return emit(IrOp::k_box_float, Type::kObject, {value.ref});
      return emit(IrOp::k_box_bool, Type::kObject, {value.ref});
    case Value::kTensor: {
      trace_.wraps.push_back(value.wrap);
      const Ref wrap = emit(IrOp::k_wrap, Type::kObject, {value.ref}, static_cast<int64_t>(trace_.wraps.size()) - 1);
      if (value.cls == nullptr) return wrap;
      trace_.insts[wrap].sunk = for_snapshot;
      std::vector<Ref> parts{wrap, const_ref(reinterpret_cast<PyObject*>(value.cls))};
      const std::vector<Ref> attributes = parts_of(v, for_snapshot);
      parts.insert(parts.end(), attributes.begin(), attributes.end());
      return emit(IrOp::k_tensor_instance, Type::kObject, parts, 0, !for_snapshot);
    }
    case Value::kTuple:
      if (!PyTuple_CheckExact(value.concrete)) {  // torch.Size
        std::vector<Ref> refs;
        for (V x : value.items) refs.push_back(as_int(x));
        return emit(IrOp::k_build_size, Type::kObject, refs);
      }
      return emit(IrOp::k_build_tuple, Type::kObject, parts_of(v, for_snapshot));
    case Value::kList: return emit(IrOp::k_build_list, Type::kObject, parts_of(v, for_snapshot));
    case Value::kSlice: return emit(IrOp::k_build_slice, Type::kObject, parts_of(v, for_snapshot));
    case Value::kMethod:
      if (value.keys.empty()) return emit(IrOp::k_bind_method, Type::kObject, parts_of(v, for_snapshot));
      return emit(IrOp::k_get_attr_known, Type::kObject, parts_of(v, for_snapshot), 0, !for_snapshot);
    case Value::kCell: return emit(IrOp::k_build_cell, Type::kObject, parts_of(v, for_snapshot));
    case Value::kFunction: return emit(IrOp::k_make_function, Type::kObject, parts_of(v, for_snapshot));
    case Value::kGenerator:
      if (value.running && value.position != Value::kOver && !for_snapshot) {
        give_up(Abort::k_generator_frame, "a running generator is handed out");
        return const_ref(Py_None);
      }
      return emit(IrOp::k_generator_at, Type::kObject, parts_of(v, for_snapshot));
    case Value::kSet: return emit(IrOp::k_set_of, Type::kObject, parts_of(v, for_snapshot), 0, !for_snapshot);
    case Value::kView: return emit(IrOp::k_dict_view, Type::kObject, parts_of(v, for_snapshot), static_cast<int64_t>(value.position));
    case Value::kIterator: {
      if (value.source != kNoValue) return emit(IrOp::k_iter_at, Type::kObject, parts_of(v, for_snapshot), 0, !for_snapshot);
      Ref rest = emit(IrOp::k_build_tuple, Type::kObject, parts_of(v, for_snapshot));
      trace_.insts[rest].sunk = for_snapshot;
      return emit(IrOp::k_get_iter_known, Type::kObject, {rest}, 0, !for_snapshot);
    }
    case Value::kDict: return emit(IrOp::k_build_map, Type::kObject, parts_of(v, for_snapshot), 0, !for_snapshot);
    case Value::kInstance: return emit(IrOp::k_build_instance, Type::kObject, parts_of(v, for_snapshot), 0, !for_snapshot);
    case Value::kContext:
      if (auto node = nodes_.find(v); for_snapshot && node != nodes_.end() && at(node->second.output).ref == node->second.made)
        return emit(IrOp::k_get_attr_known, Type::kObject, {as_snapshot(node->second.output), const_ref(interned("grad_fn"))});
      give_up(Abort::k_python_in_torch_call, "an autograd.Function's context, or a hook's handle, is handed out");
      return const_ref(Py_None);
    default: break;
  }
  give_up(Abort::k_shadow_mismatch, "make");
  return const_ref(Py_None);
}

// Is `target` in it?
bool Recorder::reaches(V v, V target, int depth) {
  if (v == target || depth > 20) return true;
  const std::vector<V> items = at(v).items;
  return std::any_of(items.begin(), items.end(), [&](V item) { return reaches(item, target, depth + 1); });
}

Ref Recorder::as_object(V v) {
  if (at(v).caught) give_up(Abort::k_exception, "the exception object is used");
  switch (at(v).kind) {
    case Value::kNull: return const_ref(nullptr);
    case Value::kConst: return const_ref(at(v).concrete);
    case Value::kObject: return at(v).ref;
    default: break;
  }
  if (at(v).object == kNoRef) {
    std::erase(open_iterators_, v);
    Ref ref = make(v, false);
    at(v).object = ref;
    epoch_++;
    if (at(v).kind == Value::kDict || at(v).kind == Value::kSet) settle_iterators(concrete(v));
    if (at(v).kind == Value::kFunction) {
      at(v).kind = Value::kObject;
      at(v).ref = ref;
      at(v).is_result = true;
    }
    if (at(v).kind == Value::kCell || at(v).kind == Value::kIterator || at(v).kind == Value::kGenerator || at(v).kind == Value::kSet || at(v).kind == Value::kInstance) {
      Value& value = at(v);
      if (value.kind == Value::kCell) cells_[v] = value.items[0];
      if (value.kind == Value::kIterator) iterators_[v] = {value.items, value.position};
      value.kind = Value::kObject;
      value.ref = ref;
      value.type_known = value.is_result = true;
      value.items_known = false;
      value.items.clear();
      value.keys.clear();
    }
    if (at(v).has_graph()) {
      live_graph_.push_back(v);
      hand_out_graph(v);
      if (stored_at_.empty()) stored_at_ = where();
    }
  }
  return at(v).object;
}

Ref Recorder::as_snapshot(V v) {
  if (at(v).caught) return as_object(v);
  switch (at(v).kind) {
    case Value::kNull: return ir::kSlotNull;
    case Value::kConst:
      if (at(v).constant == kNoRef) at(v).constant = const_ref(at(v).concrete);
      return at(v).constant;
    case Value::kObject: return at(v).concrete == nullptr ? ir::kSlotNull : at(v).ref;
    case Value::kScalar: return at(v).object != kNoRef ? at(v).object : at(v).ref;
    default: break;
  }
  if (at(v).object != kNoRef) return at(v).object;
  if (making_ > 100) {  // also where a trace is just being cut
    give_up(Abort::k_shadow_mismatch, "an object in itself");
    abort_ = Abort::k_shadow_mismatch;
    return const_ref(Py_None);
  }
  making_++;
  if (at(v).snap != kNoRef && !is_still(v)) at(v).snap = kNoRef;
  if (at(v).snap == kNoRef) {
    Ref ref = make(v, true);
    trace_.insts[ref].sunk = true;
    at(v).snap = ref;
  }
  at(v).snap_epoch = epoch_;
  making_--;
  return at(v).snap;
}

int32_t Recorder::snapshot() {
  if (handling_.open) {
    if (handling_.effect) give_up(Abort::k_exception, "an effect while it is handled");
    return handling_.snapshot;
  }
  if (!consumers_.empty()) {
    const Consumer& consumer = consumers_.front();
    if (no_guard_may_follow()) return consumer.raises;
    if (consumer.effect) {
      lessons_.opaque_consumers.insert(consumer.place);
      doom(Abort::k_generator_effect, std::string(consumer.effect_by));
    }
    return consumer.snapshot;
  }
  if (current_snapshot_ >= 0) return current_snapshot_;
  if (effect_done_) give_up(Abort::k_shadow_mismatch, "guard after an effect");
  current_snapshot_ = new_snapshot();
  snapshot_end_ = trace_.insts.size();
  return current_snapshot_;
}

// Of the frames as they are.
int32_t Recorder::new_snapshot() {
  ir::Snapshot snapshot;
  snapshot.frames.reserve(frames_.size());
  ir::SnapshotFrame out;  // its memory is used again: most frames are as they were
  for (size_t i = 0; i < frames_.size(); i++) {
    ShadowFrame& frame = frames_[i];
    out.code = frame.code;
    if (i > 0) {
      const bool is_virtual = at(frame.function_value).kind == Value::kFunction;
      if (frame.function_ref == kNoRef && !is_virtual) frame.function_ref = as_object(frame.function_value);
      out.function = is_virtual ? as_snapshot(frame.function_value) : frame.function_ref;
      out.continuation = static_cast<uint8_t>(frame.continuation);
    }
    out.unit = i + 1 < frames_.size() ? frames_[i + 1].call_unit : current_unit_;
    out.slots.clear();
    bool stale = base::seeded(base::Defect::kSnapshotSlot) && i == 0;
    for (size_t k = 0; k < frame.slots.size(); k++) {
      V v = frame.slots[k];
      bool unchanged = i == 0 && k < root_initial_.size() && v == root_initial_[k];
      if (stale && !unchanged && static_cast<int>(k) < frame.nlocals && k < root_initial_.size()) unchanged = std::exchange(stale, false);
      out.slots.push_back(unchanged ? ir::kSlotUnchanged : as_snapshot(v));
    }
    snapshot.frames.push_back(trace_.add_frame(out, i));
  }
  for (auto& [place, v] : pending_) snapshot.stores.push_back({const_ref(place.first), const_ref(place.second), as_snapshot(v)});
  for (size_t i = 0; i < modes_.off.size(); i++) snapshot.stores.push_back({const_ref(pop_function()), const_ref(Py_None), const_ref(Py_None)});
  for (const auto& [v, twin] : twins_) snapshot.stores.push_back({at(v).object, const_ref(interned("grad_fn")), twin});
  store_late(&snapshot);
  trace_.snapshots.push_back(std::move(snapshot));
  return static_cast<int32_t>(trace_.snapshots.size()) - 1;
}

// The number in an object, under a guard on its type; the Value stands for the number from now on, its object is kept.
Ref Recorder::unbox(V v, IrOp op, Type type) {
  Ref ref = emit(op, type, {at(v).ref}, 0, true);
  Value& value = at(v);
  value.kind = Value::kScalar;
  value.scalar = type;
  value.object = value.ref;
  value.ref = ref;
  return ref;
}

Ref Recorder::as_int(V v) {
  Value& value = at(v);
  switch (value.kind) {
    case Value::kConst: {
      int overflow = 0;
      long long number = PyLong_AsLongLongAndOverflow(value.concrete, &overflow);
      if (overflow != 0) return kNoRef;
      auto found = int_refs_.find(number);
      if (found != int_refs_.end()) return found->second;
      return int_refs_[number] = emit(IrOp::k_const_int, Type::kInt, {}, number);
    }
    case Value::kScalar:
      if (value.scalar == Type::kInt) return value.ref;
      if (value.scalar == Type::kBool) return emit(IrOp::k_bool_to_int, Type::kInt, {value.ref});
      return kNoRef;
    case Value::kObject: {
      if (!PyLong_CheckExact(value.concrete)) return kNoRef;
      int overflow = 0;
      PyLong_AsLongLongAndOverflow(value.concrete, &overflow);
      if (overflow != 0) return kNoRef;
      return unbox(v, IrOp::k_unbox_int, Type::kInt);
    }
    default: return kNoRef;
  }
}

Ref Recorder::as_float(V v) {
  Value& value = at(v);
  PyObject* concrete = value.concrete;
  if (value.kind == Value::kConst && PyFloat_CheckExact(concrete)) {
    int64_t bits;
    double number = PyFloat_AS_DOUBLE(concrete);
    memcpy(&bits, &number, 8);
    auto found = float_refs_.find(bits);
    if (found != float_refs_.end()) return found->second;
    return float_refs_[bits] = emit(IrOp::k_const_float, Type::kFloat, {}, bits);
  }
  if (value.kind == Value::kScalar && value.scalar == Type::kFloat) return value.ref;
  if (value.kind == Value::kObject && PyFloat_CheckExact(concrete)) {
    return unbox(v, IrOp::k_unbox_float, Type::kFloat);
  }
  if (PyLong_CheckExact(concrete) || PyBool_Check(concrete)) {
    if (value.kind == Value::kConst) {
      double number = PyLong_AsDouble(concrete);
      if (PyErr_Occurred()) {
        PyErr_Clear();
        return kNoRef;
      }
      PyObject* boxed = PyFloat_FromDouble(number);
      Ref ref = as_float(constant(boxed));
      Py_DECREF(boxed);
      return ref;
    }
    Ref number = as_int(v);
    return number == kNoRef ? kNoRef : emit(IrOp::k_int_to_float, Type::kFloat, {number}, 0, true);
  }
  return kNoRef;
}

Ref Recorder::as_bool(V v) {
  Value& value = at(v);
  if (value.kind == Value::kConst && PyBool_Check(value.concrete))
    return emit(IrOp::k_const_bool, Type::kBool, {}, value.concrete == Py_True);
  if (value.kind == Value::kScalar && value.scalar == Type::kBool) return value.ref;
  if (value.kind == Value::kObject && PyBool_Check(value.concrete)) {
    return unbox(v, IrOp::k_unbox_bool, Type::kBool);
  }
  return kNoRef;
}

// Arbitrary Python code may have run: nothing that was guarded or remembered holds any more.
void Recorder::barrier() {
  if (!callbacks_.empty()) give_up(Abort::k_torch_callback, "a call that may run any Python code");
  known_.clear();
  barriers_++;
  for (auto it = fields_.begin(); it != fields_.end();)
    it = at(it->first.first).fresh && !at(it->first.first).escaped ? std::next(it) : fields_.erase(it);
  items_.clear();
  cached_.clear();
  modes_.at_place.clear();
  cells_.clear();
  grads_.clear();
  std::erase_if(containers_, [this](V v) {
    Value& value = at(v);
    if (value.kind != Value::kList && value.kind != Value::kDict) return true;
    if (value.object == kNoRef) return false;
    value.kind = Value::kObject;
    value.ref = value.object;
    value.items_known = false;
    value.type_known = true;
    value.is_result = true;
    return true;
  });
}

// A recording holds every object that it has met, so that none comes at another's address. The memory of tensors that the program has dropped goes back
// nevertheless, as it would without a recording: new memory for each result costs page faults, and may be more than there is. From the newest value on, as
// what holds others is newer than they are.
void Recorder::free_dead_tensors() {
  // A page fault costs as much as a look at some ten values.
  const base::Heuristics& limits = base::heuristics();
  if (made_bytes_ < std::max(static_cast<size_t>(limits.free_from) << 10, static_cast<size_t>(limits.free_per_value) * values_.size())) return;
  std::unordered_map<PyObject*, Py_ssize_t> held;  // how often by this recording
  std::erase_if(holders_, [this](V v) { return is_const(v); });
  for (const V v : holders_) held[concrete(v)]++;
  const auto let_go = [&](PyObject*& place) {  // of what the recording holds itself: nothing dies here
    if (held.count(place) != 0) Py_SETREF(place, Py_NewRef(Py_None));
  };
  std::unordered_set<PyObject*> met, done;  // done: it holds nothing more
  std::vector<std::pair<PyObject*, Py_ssize_t>> tensors;
  for (auto v = holders_.rbegin(); v != holders_.rend(); ++v) {
    PyObject* o = concrete(*v);
    if (!met.insert(o).second) continue;
    const Py_ssize_t times = held.at(o);
    if (is_tensor(o)) {
      tensors.emplace_back(o, times);
      continue;
    }
    if (Py_REFCNT(o) != times) continue;
    if (PyCell_Check(o)) {
      let_go(reinterpret_cast<PyCellObject*>(o)->ob_ref);
    } else if (PyFunction_Check(o)) {
      let_go(reinterpret_cast<PyFunctionObject*>(o)->func_closure);
    } else {
      std::for_each_n(PySequence_Fast_ITEMS(o), PySequence_Fast_GET_SIZE(o), let_go);
    }
    done.insert(o);
  }
  for (PyObject* freed : aten_->free_data(tensors)) done.insert(freed);
  std::erase_if(holders_, [&](V v) { return done.count(concrete(v)) != 0; });
  made_bytes_ = 0;
}

}  // namespace dynvm::tracer
