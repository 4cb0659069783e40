// Python functions that torch calls in the middle of a call: hooks in backward() (of leaves here, of results: graph_hooks.cpp), forward() and backward() of
// torch.autograd.Function (functions.cpp). See recorder.h.
//
// Such a function runs in an activation of its own, which the evaluator records as a part of this one (vm::follow_nested). Its frame is followed like
// any other, so that its operations are the trace's. To what can be seen the torch call stays one instruction: guards in the function leave to before
// it, and once something has had an effect there are none any more; where one would be needed, the recording is given up, and the next one ends before
// the call. That the same functions are called again is guarded by the dicts that torch finds them in, or follows from what the trace itself has registered.
#include <algorithm>
#include <cstddef>

#include "runtime/base/switches.h"
#include "tracer/recorder.h"

namespace dynvm::tracer {

using ir::Ref;
using ir::Type;
using IrOp = ir::Op;

// Guards what is called with the gradients of leaves. False: given up.
bool Recorder::guard_hooks(const std::set<Ref>& graph) {
  for (Ref ref : graph) {
    if (trace_.insts[ref].op != IrOp::k_result || recipes_.count(trace_.arg(ref, 0)) == 0 || trace_.metas[trace_.insts[ref].meta].device_type == 0) continue;
    give_up(Abort::k_python_in_torch_call, "an autograd.Function or a hook on another device");
    return false;
  }
  for (const auto& [o, v] : differentiated_leaves()) {
    if (!bridge_->describe(o).has_hooks) continue;
    if (aten_->meta(aten_->tensor_id(o)).device_type != 0) {  // they are called in a thread of autograd's
      give_up(Abort::k_python_in_torch_call, "hooks of a tensor on another device");
      return false;
    }
    for (const char* attribute : {"_backward_hooks", "_post_accumulate_grad_hooks"}) {
      PyObject* dict = PyObject_GetAttrString(o, attribute);
      if (dict == nullptr) PyErr_Clear();
      if (dict == nullptr) continue;
      guard(IrOp::k_guard_is, {emit(IrOp::k_get_attr_known, Type::kObject, {as_object(v), const_ref(interned(attribute))}, 0, true), const_ref(dict)}, -1);
      if (dict != Py_None) {
        lessons_.changing_dicts.erase(dict);  // it can only be read as a whole; a hook that comes or goes makes another trace
        guard_dict_unchanged(dict);
        note_callbacks(dict);
      }
      Py_DECREF(dict);
      if (done_) return false;
    }
  }
  return true;
}

// What the functions in this dict are, and what they are bound to, stays the same as long as the dict does.
void Recorder::note_callbacks(PyObject* dict) {
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict, &position, &key, &value)) {
    callback_parts_.insert(value);
    if (PyMethod_Check(value)) callback_parts_.insert({PyMethod_GET_FUNCTION(value), PyMethod_GET_SELF(value)});
    if (PyObject* call = _PyType_Lookup(Py_TYPE(value), interned("__call__")); call != nullptr && PyFunction_Check(call)) {
      guard_type_unchanged(Py_TYPE(value));
      callback_parts_.insert(call);
    }
  }
}

// What torch gives to a callback; kNoValue: nothing that the trace knows.
V Recorder::given_to_callback(PyObject* o) {
  if (o == nullptr) return null_;
  if (o == Py_None || callback_parts_.count(o) != 0) return constant(o);
  if (auto context = contexts_.find(o); context != contexts_.end()) return context->second;
  if (is_tensor(o)) {
    if (auto found = leaf_objects_.find(o); found != leaf_objects_.end() && concrete(found->second) == o) return found->second;
    const int32_t id = aten_->tensor_id(o);
    return id >= 0 && tensors_.count(id) != 0 ? tensor_value(o, id) : kNoValue;
  }
  if (!PyTuple_CheckExact(o)) return kNoValue;
  std::vector<V> items;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++) {
    items.push_back(given_to_callback(PyTuple_GET_ITEM(o, i)));
    if (items.back() == kNoValue) return kNoValue;
  }
  return virtual_object(Value::kTuple, std::move(items), o);
}

// The operations of the torch call so far.
void Recorder::convert_call_so_far() {
  std::vector<bridge::OpRecord> records = aten_->take();
  if (records.empty()) return;
  const std::string why = not_repeatable(records, Py_None, {}, {});
  if (!why.empty()) give_up(Abort::k_unsupported_operation, why);
  else if (!convert_records(records, torch_call_->inputs, torch_call_->backward)) give_up(Abort::k_unknown_tensor);
}

// Is it the frame with which the engine calls backward() of a torch.autograd.Function whose forward() was followed?
bool Recorder::is_function_backward(_PyInterpreterFrame* entered) {
  if (vm::FrameView::code(entered)->co_argcount < 1) return false;
  PyObject* context = vm::FrameView::locals(entered)[0];
  return context != nullptr && contexts_.count(context) != 0 &&
         _PyType_Lookup(Py_TYPE(context), interned("apply")) == reinterpret_cast<PyObject*>(vm::FrameView::function(entered));
}

// The torch call under way has entered this frame. False: it is not followed.
bool Recorder::follow_callback(_PyInterpreterFrame* entered) {
  if (done_ || torch_call_ == nullptr || python_in_torch_ || handling_.open || base::left_out(base::Part::kCallbacks)) return false;
  PyObject* function = reinterpret_cast<PyObject*>(vm::FrameView::function(entered));
  PyCodeObject* code = vm::FrameView::code(entered);
  const std::pair<PyCodeObject*, int> place = torch_call_->place;
  const bool first = !torch_call_->followed, applies = torch_call_->arguments != nullptr;
  const bool in_function = applies || is_function_backward(entered);
  if (applies) {
    const auto is = [&](V v) { return v != kNoValue && concrete(v) == function; };
    if (!is(torch_call_->forward) && !is(torch_call_->setup)) return false;
  } else if (!torch_call_->backward || (callback_parts_.count(function) == 0 && hooks_.count(function) == 0 && !in_function)) {
    return false;
  }
  const auto hook = applies || in_function ? hooks_.end() : hooks_.find(function);
  if ((code->co_flags & kGeneratorFlags) != 0 || lessons_.opaque_consumers.count(place) != 0) return false;
  if (first && std::any_of(consumers_.begin(), consumers_.end(), [](const Consumer& each) { return each.kind != Consumer::kTorch; })) return false;

  if (first) {
    Consumer consumer;
    consumer.kind = Consumer::kTorch;
    consumer.frame = nullptr;
    consumer.place = place;
    consumer.snapshot = consumers_.empty() ? current_snapshot_ : consumers_.front().snapshot;
    consumer.first_storage = trace_.num_storages;
    consumers_.push_back(std::move(consumer));
    torch_call_->followed = true;
  }
  aten_->disable();
  in_torch_ = false;
  callbacks_.push_back({entered, function, frames_.size(), call_state()});
  callbacks_.back().gives_several = in_function || (hook != hooks_.end() && hook->second.arguments == 2);
  vm::follow_nested();
  convert_call_so_far();
  if (first && !done_) {
    if (!applies && !torch_call_->keeps_graph) free_graph(torch_call_->graph);  // as far as anybody can see from now on: the call is done again from before it, or not at all
    consumers_.back().raises = consumers_.size() > 1 ? consumers_.front().raises : new_snapshot();
  }

  ShadowFrame frame;
  frame.frame = entered;
  frame.code = code;
  frame.function = function;
  frame.function_value = hook != hooks_.end() ? hook->second.function : constant(function);
  frame.call_unit = current_unit_;
  frame.nlocals = vm::FrameView::local_count(entered);
  if (!done_ && in_function && !applies) guard_type_unchanged(Py_TYPE(vm::FrameView::locals(entered)[0]));
  if (!done_ && applies) {
    if (know_function(frame.function_value)) given_to_function(entered, frame.function_value, &frame.slots);
  } else if (!done_ && hook != hooks_.end()) {
    if (know_function(frame.function_value)) given_to_hook(entered, hook->second, &frame.slots);
  } else if (!done_ && know_function(frame.function_value)) {
    PyObject** base = vm::FrameView::locals(entered);
    for (int i = 0; i < frame.nlocals && !done_; i++) {
      frame.slots.push_back(given_to_callback(base[i]));
      if (frame.slots.back() == kNoValue) give_up(Abort::k_python_in_torch_call, std::string("it is given a ") + Py_TYPE(base[i])->tp_name);
    }
  }
  torch_call_ = nullptr;
  torch_state_ = bridge_->torch_state();
  callbacks_.back().grad_mode = torch_state_.grad_mode;
  if (!done_) follow(std::move(frame));
  return true;
}

// What backward() of a Function has given is what it was: tensors and None in the same places.
void Recorder::know_gradients(V v) {
  PyObject* o = concrete(v);
  std::vector<V> items;
  if (is_tensor(o)) {
    as_tensor(v);
  } else if (o == Py_None) {
    if (!is_const(v)) guard(IrOp::k_guard_is, {as_object(v), const_ref(Py_None)}, -1);
  } else if (PyTuple_CheckExact(o) && known_items(v, &items)) {
    for (V item : items)
      if (!done_ && (!PyTuple_Check(concrete(item)))) know_gradients(item);
      else if (!done_) give_up(Abort::k_python_in_torch_call, "backward() gives a tuple in a tuple");
  } else if (!done_) {
    give_up(Abort::k_python_in_torch_call, std::string("backward() gives a ") + Py_TYPE(o)->tp_name);
  }
}

// It has been left with this result, or by an exception.
void Recorder::leave_callback(PyObject* result) {
  const Callback callback = std::move(callbacks_.back());
  callbacks_.pop_back();
  if (!done_ && (result == nullptr || callback.result == kNoValue)) give_up(Abort::k_exception);
  if (!done_ && bridge_->torch_state().grad_mode != callback.grad_mode) give_up(Abort::k_torch_callback, "it leaves another grad mode");
  TorchCall* const call = std::get<0>(callback.state);
  const bool applies = call != nullptr && call->arguments != nullptr;
  if (!done_ && callback.gives_several && !applies) know_gradients(callback.result);
  else if (applies || done_) ;
  else if (result == Py_None && !is_const(callback.result)) guard(IrOp::k_guard_is, {as_object(callback.result), const_ref(Py_None)}, -1);
  if (!done_ && result != Py_None && !callback.gives_several) {
    if (is_tensor(result)) as_tensor(callback.result);
    else give_up(Abort::k_python_in_torch_call, std::string("it gives a ") + Py_TYPE(result)->tp_name);
  }
  frames_.resize(callback.depth);
  call_state() = callback.state;
  if (!done_ && applies && concrete(call->forward) == callback.function) call->output = callback.result;
  in_torch_ = true;
  aten_->enable();
}

// Is nothing written but memory that the torch call under way has made? When that is done again, from before the call, nobody can tell.
bool Recorder::writes_own_memory(const std::vector<Ref>& written) {
  if (consumers_.empty() || consumers_.front().kind != Consumer::kTorch) return false;
  return std::all_of(written.begin(), written.end(), [&](Ref ref) {
    const int32_t storage = trace_.metas[trace_.insts[ref].meta].storage;
    return storage >= consumers_.front().first_storage && input_storages_.count(storage) == 0;
  });
}

// torch has a mode of its own while it calls a callback, which a run of the trace has not: nothing in the trace looks at it, so it is not set either.
bool Recorder::sets_grad_mode(const std::string& name) const { return !callbacks_.empty() && name == "torch._C._set_grad_enabled"; }

// The mode is what has been followed since the callback began says, so that it needs no guard.
void Recorder::follow_grad_mode() {
  ir::TorchState now = bridge_->torch_state();
  const bool mode = std::exchange(now.grad_mode, torch_state_.grad_mode);
  if (now == torch_state_) torch_state_.grad_mode = mode;
}

// A guard in a callback that has had an effect. What is a fact of one object, or of a dict's item, can be guarded before the call, in the next recording.
// The facts are named as known() names them; u: an object is that tensor; c, i: what a cell, or an item of a dict, holds.
void Recorder::needed_early(IrOp op, const std::vector<Ref>& args) {
  const auto constant_of = [this](Ref ref) {
    const ir::Inst& inst = trace_.insts[ref];
    return inst.op == IrOp::k_const_obj ? static_cast<PyObject*>(trace_.objects[static_cast<size_t>(inst.imm)].pointer) : nullptr;
  };
  char fact = 0;
  PyObject *object = args.empty() ? nullptr : constant_of(args[0]), *key = nullptr;
  switch (op) {
    case IrOp::k_guard_type_version: fact = 'T'; break;
    case IrOp::k_guard_dict_version: fact = 'd'; break;
    case IrOp::k_guard_type: fact = 't'; break;
    case IrOp::k_unbox_tensor: fact = 'u'; break;
    default: break;
  }
  if (object == nullptr && !args.empty()) {
    const ir::Inst& read = trace_.insts[args[0]];
    if (read.op == IrOp::k_load_dict_of) fact = 'D';
    else if (read.op == IrOp::k_load_field) fact = 'f';
    else if (read.op == IrOp::k_dict_get) fact = 'i';
    else fact = 0;
    if (fact != 0) object = constant_of(trace_.arg(read, 0));
    if (fact == 'i') key = constant_of(trace_.arg(read, 1));
  }
  if (fact == 'f' && object != nullptr) fact = PyCell_Check(object) ? 'c' : PyFunction_Check(object) ? 'f' : 0;
  if (fact == 0 || object == nullptr || (fact == 'i' && key == nullptr)) {
    needs_early_ = false;
    return give_up(Abort::k_torch_callback, std::string(ir::op_info(op).name) + " after " + std::string(consumers_.front().effect_by));
  }
  if (lessons_.early_guards[consumers_.front().place].emplace(fact, object, key).second) {
    needs_early_ = true;
    Py_INCREF(object);
    Py_XINCREF(key);
  }
}

void Recorder::forget_early() {
  for (const auto& [place, facts] : std::exchange(lessons_.early_guards, {}))
    for (const auto& [fact, object, key] : facts) {
      Py_DECREF(object);
      Py_XDECREF(key);
    }
}

void Recorder::guard_early(std::pair<PyCodeObject*, int> place) {
  const auto needed = lessons_.early_guards.find(place);
  if (needed == lessons_.early_guards.end()) return;
  for (const auto& [fact, object, key] : needed->second) {
    if (done_) return;
    switch (fact) {
      case 'T': guard_type_unchanged(reinterpret_cast<PyTypeObject*>(object)); break;
      case 'd': guard_dict_unchanged(object); break;
      case 't': know_type(constant(object)); break;
      case 'u': as_tensor(constant(object)); break;
      case 'D': guard_dict_of(object); break;
      case 'c':
      case 'i': {
        if (fact == 'c' && PyCell_GET(object) == nullptr) break;  // nothing is there this time, and it is the callback's to say so
        const V item = fact == 'c' ? cell_content(constant(object)) : dict_item(object, key);
        if (concrete(item) == nullptr) break;
        if (PyLong_CheckExact(concrete(item))) as_int(item);
        else if (PyFloat_CheckExact(concrete(item))) as_float(item);
        else promote(item);
        break;
      }
      default: guard_code_unchanged(object); break;
    }
  }
}

// The torch call is over. outer: callbacks that it was itself called in.
void Recorder::end_callbacks(size_t outer) {
  if (needs_early_ && outer == 0) give_up(Abort::k_torch_callback, "guards that are needed before it");
  effect_done_ = effect_done_ || consumers_.back().effect;
  if (callbacks_.size() > outer) frames_.resize(callbacks_[outer].depth);  // something has ended the recording in its middle
  callbacks_.resize(outer);
  drop_consumer();
}

}  // namespace dynvm::tracer
