// Recording of globals, names, cells, imports and function objects. See recorder.h.
#include "tracer/recorder.h"
#include "runtime/exec/execute.h"
#include "vm/objects.h"

namespace dynvm::tracer {

using ir::kNoRef;
using ir::Ref;
using ir::Type;
using vm::HookResult;
using vm::Op;
using IrOp = ir::Op;

namespace {

// The names that `from module import` finds in a package; those that it has not got yet may be modules of its own, which are imported then. False: there are
// such names, or they cannot be told. Other modules are asked for nothing.
bool names_of_package(PyObject* module, PyObject* names, std::vector<PyObject*>* found) {
  if (names == Py_None) return true;
  if (!PyModule_Check(module)) return false;
  PyObject* dict = PyModule_GetDict(module);
  if (PyDict_GetItemString(dict, "__path__") == nullptr) return true;
  if (!PyTuple_Check(names)) return false;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names); k++) {
    if (PyDict_GetItem(dict, PyTuple_GET_ITEM(names, k)) == nullptr) return false;
    found->push_back(PyTuple_GET_ITEM(names, k));
  }
  return true;
}

}  // namespace

// A new virtual cell; kNoValue: no memory.
V Recorder::make_cell(V initial) {
  PyObject* cell = PyCell_New(concrete(initial));
  if (cell == nullptr) return kNoValue;
  V v = virtual_object(Value::kCell, {initial}, cell);
  Py_DECREF(cell);
  return v;
}

V Recorder::free_variable(V function, int index) {
  V v = kNoValue;
  if ((at(function).kind == Value::kObject || at(function).kind == Value::kFunction) && !at(function).items.empty()) {
    v = at(function).items[index];  // a function made in this trace, or known by its code: its cells are values
  } else {                          // part of a constant function, as immutable as it
    v = constant(PyTuple_GET_ITEM(reinterpret_cast<PyFunctionObject*>(concrete(function))->func_closure, index));
  }
  at(v).type_known = true;
  return v;
}

// Of a cell that is not empty and not virtual.
V Recorder::cell_content(V cell) {
  const auto found = cells_.find(cell);
  if (found != cells_.end()) return found->second;
  Ref ref = emit(IrOp::k_load_field, Type::kObject, {as_object(cell)}, offsetof(PyCellObject, ob_ref));
  guard(IrOp::k_guard_bound, {ref});
  V v = object(ref, PyCell_GET(concrete(cell)), false);
  likely_same(v);
  return cells_[cell] = v;
}

void Recorder::store_cell(V cell, V value, Ref content) {
  if (value != null_) escape(value);
  emit(IrOp::k_store_field, Type::kVoid, {as_object(cell), content}, offsetof(PyCellObject, ob_ref));
  effect();
  PyObject* object = at(cell).concrete;
  for (auto it = cells_.begin(); it != cells_.end();)  // the same cell may be known under another Value
    it = at(it->first).concrete == object ? cells_.erase(it) : std::next(it);
  cells_[cell] = value;
}

HookResult Recorder::record_names(vm::ThreadView& view, Op op, int arg) {
  PyCodeObject* code = top().code;
  switch (op) {
    case Op::kLoadGlobal:
    case Op::kLoadName: {
      bool global = op == Op::kLoadGlobal;
      PyObject* name = PyTuple_GET_ITEM(code->co_names, global ? arg >> 1 : arg);
      V value = null_;
      if (!global) {
        PyObject* locals = vm::FrameView::locals_mapping(view.frame);
        if (locals == nullptr || !PyDict_CheckExact(locals)) {
          give_up(Abort::k_opcode, "LoadName in a class body");
          return HookResult::kContinue;
        }
        if (locals != vm::FrameView::globals(view.frame)) value = dict_item(locals, name);
      }
      for (PyObject* dict : {vm::FrameView::globals(view.frame), vm::FrameView::builtins(view.frame)}) {
        if (value != null_ || done_) break;
        if (!PyDict_CheckExact(dict)) {
          give_up(Abort::k_opcode, "globals or builtins of another type");
          return HookResult::kContinue;
        }
        value = dict_item(dict, name);
      }
      if (value == null_) {
        give_up(Abort::k_exception, "NameError");
        return HookResult::kContinue;
      }
      push_callable(view, value, global && (arg & 1));
      return next(view);
    }
    case Op::kStoreName:
    case Op::kStoreGlobal: {
      PyObject* name = PyTuple_GET_ITEM(code->co_names, arg);
      PyObject* dict = op == Op::kStoreName ? vm::FrameView::locals_mapping(view.frame) : vm::FrameView::globals(view.frame);
      if (dict == nullptr || !PyDict_CheckExact(dict)) {
        give_up(Abort::k_opcode, "StoreName outside a module");
        return HookResult::kContinue;
      }
      dict_written(dict);
      V value = peek(1);
      bool ok = true;
      pending_.erase({dict, name});
      if ((at(value).has_graph() && at(value).object == kNoRef) || handling_.open) {
        if (PyDict_SetItem(dict, name, concrete(value)) < 0) return raised(view);
        pending_[{dict, name}] = value;
        items_[{dict, name}] = value;
        pop(view, 1);
        return next(view);
      }
      run_residual(IrOp::k_dict_set, {constant(dict), constant(name), value}, 0, &ok);
      if (!ok) return raised(view);
      items_[{dict, name}] = value;
      pop(view, 1);
      return next(view);
    }
    case Op::kDeleteName:
    case Op::kDeleteGlobal: {
      PyObject* name = PyTuple_GET_ITEM(code->co_names, arg);
      PyObject* dict = op == Op::kDeleteName ? vm::FrameView::locals_mapping(view.frame) : vm::FrameView::globals(view.frame);
      if (dict == nullptr || !PyDict_CheckExact(dict) || dict_item(dict, name) == null_) {
        give_up(Abort::k_opcode, std::string(vm::op_name(op)) + " outside a module, or of a name that is not there");
        return HookResult::kContinue;
      }
      dict_written(dict);
      static PyObject* dict_pop = vm::own_attribute(&PyDict_Type, "pop");
      bool ok = true;
      pending_.erase({dict, name});
      run_residual(IrOp::k_call_known, {constant(dict_pop), constant(dict), constant(name), constant(Py_None)}, -1, &ok);  // a store that was put off is not due any more
      if (!ok) return raised(view);
      items_[{dict, name}] = null_;
      return next(view);
    }
    case Op::kMakeCell: {
      V v = make_cell(slot(arg));
      if (v == kNoValue) return raised(view);
      PyObject** base = vm::FrameView::locals(view.frame);
      Py_XSETREF(base[arg], Py_NewRef(concrete(v)));
      slot(arg) = v;
      return next(view);
    }
    case Op::kLoadClosure: shadow_push(slot(arg)); return HookResult::kContinue;
    case Op::kLoadDeref: {
      V cell = slot(arg);
      PyObject* content = PyCell_GET(at(cell).concrete);
      if (content == nullptr) {
        give_up(Abort::k_exception, "empty cell");
        return HookResult::kContinue;
      }
      if (at(cell).kind == Value::kCell) {
        shadow_push(at(cell).items[0]);
        return HookResult::kContinue;
      }
      shadow_push(cell_content(cell));
      return HookResult::kContinue;
    }
    case Op::kStoreDeref: {
      V cell = slot(arg), value = peek(1);
      if (at(cell).kind == Value::kCell && reaches(value, cell)) as_object(value);  // a function that knows itself
      if (at(cell).kind == Value::kCell) {
        at(cell).items[0] = value;
        changed(cell);
        shadow_pop(1);
        return HookResult::kContinue;
      }
      store_cell(cell, value, as_object(value));
      shadow_pop(1);
      return HookResult::kContinue;
    }
    case Op::kDeleteDeref: {
      V cell = slot(arg);
      if (PyCell_GET(at(cell).concrete) == nullptr) {
        give_up(Abort::k_exception, "empty cell");
        return HookResult::kContinue;
      }
      if (at(cell).kind == Value::kCell) {
        at(cell).items[0] = null_;
        changed(cell);
        return HookResult::kContinue;
      }
      cell_content(cell);  // it is bound, or else the trace is left in front of this
      store_cell(cell, null_, const_ref(nullptr));
      return HookResult::kContinue;
    }
    case Op::kCopyFreeVars: {
      V function = top().function_value;
      for (int i = 0; i < arg; i++) slot(top().nlocals - arg + i) = free_variable(function, i);
      return HookResult::kContinue;
    }
    case Op::kMakeFunction: {
      // code, globals, defaults, kwdefaults, annotations, closure; null where absent
      int depth = 1;
      V code_value = peek(depth++);
      V closure = (arg & 8) ? peek(depth++) : null_;
      V annotations = (arg & 4) ? peek(depth++) : null_;
      V kwdefaults = (arg & 2) ? peek(depth++) : null_;
      V defaults = (arg & 1) ? peek(depth++) : null_;
      std::vector<V> cells;
      if (closure != null_) {
        if (!at(closure).items_known) {
          give_up(Abort::k_opcode, "MakeFunction with an unknown closure");
          return HookResult::kContinue;
        }
        cells = at(closure).items;
      }
      const std::vector<V> parts{code_value, constant(vm::FrameView::globals(view.frame)), defaults, kwdefaults, annotations, closure};
      std::vector<PyObject*> objects;
      for (V part : parts) objects.push_back(concrete(part));
      PyObject* made = nullptr;
      int truth = 0;
      if (!runtime::execute(IrOp::k_make_function, 0, objects.data(), static_cast<int>(objects.size()), nullptr, &made, &truth)) return raised(view);
      V function = virtual_object(Value::kFunction, cells, made);
      Py_DECREF(made);
      for (V part : {defaults, kwdefaults, annotations})
        if (part != null_) at(function).items.push_back(part);
      at(function).items_known = false;
      at(function).type_known = true;
      functions_[function] = {.defaults = defaults, .keyword_defaults = kwdefaults};
      function_parts_[function] = parts;
      pop(view, depth - 1);
      push(view, function);
      return next(view);
    }
    case Op::kSetFunctionAttribute: {
      // The evaluator stores into the function that it has just made.
      V function = peek(1), value = peek(2);
      size_t field = offsetof(PyFunctionObject, func_defaults), part = 2;  // of the function; of what make_function takes
      auto& known = functions_[function];
      std::vector<V> cells;
      if (arg == 8) {
        if (!at(value).items_known) {
          give_up(Abort::k_opcode, "SetFunctionAttribute with an unknown closure");
          return HookResult::kContinue;
        }
        field = offsetof(PyFunctionObject, func_closure), part = 5;
        cells = at(value).items;
      } else if (arg == 4) {
        field = offsetof(PyFunctionObject, func_annotations), part = 4;
      } else if (arg == 2) {
        field = offsetof(PyFunctionObject, func_kwdefaults), part = 3;
        known.keyword_defaults = value;
      } else {
        known.defaults = value;
      }
      std::vector<V>& items = at(function).items;  // cells come first
      if (at(function).kind == Value::kFunction) {   // it will be made with it
        function_parts_[function][part] = value;
        items.insert(items.begin(), cells.begin(), cells.end());
        if (arg != 8) items.push_back(value);
        changed(function);
      } else {
        if (arg == 8) items = cells;
        escape(value);
        emit(IrOp::k_store_field, Type::kVoid, {as_object(function), as_object(value)}, static_cast<int64_t>(field));
        effect();
      }
      shadow_pop(2);
      shadow_push(function);
      return HookResult::kContinue;
    }
    case Op::kLoadAssertionError: shadow_push(constant(PyExc_AssertionError)); return HookResult::kContinue;
    case Op::kImportName: {
      // A module that is imported already and whose entry in sys.modules is unchanged is a constant.
      PyObject* name = PyTuple_GET_ITEM(code->co_names, arg);
      PyObject* modules = PyImport_GetModuleDict();
      V level = peek(2), fromlist = peek(1);
      PyObject* import = PyDict_GetItemString(vm::FrameView::builtins(view.frame), "__import__");
      bool plain = is_const(level) && is_const(fromlist) && import != nullptr && PyCFunction_Check(import) &&
                   PyLong_Check(concrete(level)) && PyLong_AsLong(concrete(level)) == 0;
      const char* text = PyUnicode_AsUTF8(name);
      if (plain && text != nullptr) {
        std::string full = text;
        if (concrete(fromlist) == Py_None) full = full.substr(0, full.find('.'));
        PyObject* loaded = PyDict_GetItem(modules, name);
        PyObject* key = PyUnicode_InternFromString(full.c_str());
        PyObject* module = PyDict_GetItem(modules, key);
        std::vector<PyObject*> wanted;
        if (loaded != nullptr && module != nullptr && names_of_package(module, concrete(fromlist), &wanted)) {
          for (PyObject* each : wanted) dict_item(PyModule_GetDict(module), each);
          V value = dict_item(modules, key);
          if (full != text) dict_item(modules, name);
          Py_DECREF(key);
          pop(view, 2);
          push(view, value);
          return next(view);
        }
        Py_XDECREF(key);
      }
      PyErr_Clear();
      return residual(view, IrOp::k_import_name, {constant(name), constant(vm::FrameView::globals(view.frame)), fromlist, level}, 0, 2);
    }
    case Op::kImportFrom: {
      PyObject* name = PyTuple_GET_ITEM(code->co_names, arg);
      V module = peek(1);
      if (PyModule_Check(concrete(module)) && promote(module)) {
        PyObject* dict = PyModule_GetDict(concrete(module));
        V value = dict_item(dict, name);
        if (value != null_) {
          push(view, value);
          return next(view);
        }
      }
      bool ok = true;
      V value = run_residual(IrOp::k_import_from, {module, constant(name)}, 0, &ok);
      if (!ok) return raised(view);
      push(view, value);
      return next(view);
    }
    default: break;
  }
  give_up(Abort::k_opcode, std::string(vm::op_name(op)));
  return HookResult::kContinue;
}

}  // namespace dynvm::tracer
