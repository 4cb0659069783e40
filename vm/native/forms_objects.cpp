// What native runs do for sequences, attributes and builtins; see emitter.h and forms.cpp.
#include <cstring>

#include "vm/arrays.h"
#include "vm/attr_cache.h"
#include "vm/native/emitter.h"
#include "vm/operations.h"
#include "vm/specialise.h"

namespace dynvm::vm::native {

using namespace asmjit;
using namespace asmjit::x86;
namespace layout = cpython::layout;

namespace {

// ---- forms that look further than a few loads: the object and the access; new reference, nullptr: a miss

uint32_t low_of(const uint64_t* cache) { return static_cast<uint32_t>(cache[0]); }
uint32_t high_of(const uint64_t* cache) { return static_cast<uint32_t>(cache[0] >> 32); }

struct Access {
  PyObject* name;
  uint64_t cache[2];
};
PyObject* load_values(PyObject* owner, const Access* access) { return Py_XNewRef(value_of_types(owner, access->name)); }
PyObject* load_hint(PyObject* owner, const Access* access) {
  if (Py_TYPE(owner)->tp_version_tag != low_of(access->cache)) return nullptr;
  return Py_XNewRef(hinted_value(owner, access->name, high_of(access->cache)));
}
PyObject* load_class_value(PyObject* owner, const Access* access) {
  PyTypeObject* type = Py_TYPE(owner);
  if (type->tp_version_tag != low_of(access->cache) || !hides_nothing(owner, type, access->name, high_of(access->cache))) return nullptr;
  return Py_NewRef(reinterpret_cast<PyObject*>(access->cache[1]));
}
PyObject* load_of_module(PyObject* owner, const Access* access) {
  return Py_XNewRef(value_of_module(owner, low_of(access->cache), access->cache[1]));
}
PyObject* load_of_type(PyObject* owner, const Access* access) {
  if (!PyType_Check(owner)) return nullptr;
  const TypeAttr* entry = find_type_attr(reinterpret_cast<PyTypeObject*>(owner), access->name);
  return entry != nullptr && !entry->class_method ? Py_XNewRef(entry->value) : nullptr;
}
PyObject* load_method_types(PyObject* owner, const Access* access) { return Py_XNewRef(method_of_types(owner, access->name)); }
// Where the value of an attribute is stored; it has one.
PyObject** stored_place(PyObject* owner, const Access* access) {
  uint32_t index;
  PyDictValues* values = stored_values(owner, access->name, &index);
  return values != nullptr && values->values[index] != nullptr ? &values->values[index] : nullptr;
}
// A value of a dict of strings only, whose look-up runs nothing. The arguments are container and key; nullptr: a miss.
PyObject* value_of_key(PyObject* dict, PyObject* key) {
  return is_quiet_lookup(dict, key) ? Py_XNewRef(cpython::dict_get(dict, key, cpython::str_hash(key))) : nullptr;
}
// -1: not a builtin.
Py_ssize_t length_of(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == &PyList_Type || type == &PyTuple_Type) return Py_SIZE(object);
  if (type == &PyUnicode_Type) return PyUnicode_GET_LENGTH(object);
  if (type == &PyDict_Type) return reinterpret_cast<PyDictObject*>(object)->ma_used;
  if (PyList_Check(object) && type->tp_as_sequence->sq_length == PyList_Type.tp_as_sequence->sq_length) return Py_SIZE(object);
  return type == &PySet_Type ? reinterpret_cast<PySetObject*>(object)->used : -1;
}

}  // namespace

// ---- sequences

// rcx: the index into rax's sequence, counted from its end where it is negative.
void Emitter::index_within(const Gp& number, const Label& outside) {
  Label positive = a_.newLabel();
  a_.mov(rcx, number);
  a_.test(rcx, rcx);
  a_.jns(positive);
  a_.add(rcx, qword_ptr(rax, layout::kSize));
  a_.bind(positive);
  a_.cmp(rcx, qword_ptr(rax, layout::kSize));
  a_.jae(outside);
}

Emitter::Next Emitter::subscript(int index) {
  Value key = pop(), container = pop();
  if (!may_be(key, Known::kInt) || !may_be(container, Known::kList)) return Next::kLeave;
  const Gp number = int_of(key);
  object(rax, container);
  Label is_tuple = a_.newLabel(), done = a_.newLabel();
  const bool tuple_only = form(index) == Form::kSubscrTupleInt || container.known == Known::kTuple;
  check_type(rax, container, tuple_only ? Known::kTuple : Known::kList, tuple_only ? &PyTuple_Type : &PyList_Type,
             tuple_only ? fail() : is_tuple);
  const Gp result = gp();
  const Label miss = fail(), out = leave();
  const auto tuple_item = [this, number, result, out] {
    index_within(number, out);
    a_.mov(result, qword_ptr(rax, rcx, 3, layout::kTupleItems));
  };
  if (tuple_only) {
    tuple_item();
  } else {
    index_within(number, out);
    a_.mov(rdx, qword_ptr(rax, layout::kListItems));
    a_.mov(result, qword_ptr(rdx, rcx, 3));
    cold_.push_back([this, is_tuple, done, miss, tuple_item] {
      a_.bind(is_tuple);
      check_exact(rax, &PyTuple_Type, miss);
      tuple_item();
      a_.jmp(done);
    });
    if (container.where == Where::kLocal) model_.locals[static_cast<size_t>(container.index)] = Known::kBound;  // a list or a tuple
  }
  a_.bind(done);
  take_reference(result);
  used(key, number);
  drop(container);
  push_reg(result);
  return Next::kGoOn;
}

Emitter::Next Emitter::subscript_str(int) {
  Value key = pop(), container = pop();
  if (!may_be(key, Known::kInt) || !is_object(container)) return Next::kLeave;
  const Gp number = int_of(key);
  object(rax, container);
  check_exact(rax, &PyUnicode_Type, fail());
  const Gp result = gp();
  call(reinterpret_cast<const void*>(&str_item), model_.gps & ~(1u << result.id()), model_.xmms, [&](int) {
    a_.mov(rsi, number);
    a_.mov(rdi, rax);
  });
  a_.mov(result, rax);
  a_.test(rax, rax);
  a_.jz(leave());
  used(key, number);
  drop(container);
  push_reg(result, Known::kBound);
  return Next::kGoOn;
}

// rdx: the items of an array of that kind, rcx: the index within it.
void Emitter::array_of(const Value& container, const Gp& number, char typecode) {
  object(rax, container);
  check_exact(rax, g_array_type, fail());
  a_.mov(rdx, qword_ptr(rax, offsetof(ArrayObject, description)));
  a_.cmp(byte_ptr(rdx, offsetof(ArrayDescription, typecode)), typecode);
  a_.jne(fail());
  index_within(number, leave());
  a_.mov(rdx, qword_ptr(rax, offsetof(ArrayObject, items)));
}

Emitter::Next Emitter::subscript_array(int index) {
  const auto typecode = static_cast<char>(inst(forms_[static_cast<size_t>(index)].site).cache[1]);
  Value key = pop(), container = pop();
  if (!may_be(key, Known::kInt) || !is_object(container) || std::strchr("bBhHiIlqdf", typecode) == nullptr) return Next::kLeave;
  const Gp number = int_of(key);
  array_of(container, number, typecode);
  const bool is_float = typecode == 'd' || typecode == 'f';
  const Gp whole = is_float ? Gp() : gp();
  const Xmm real = is_float ? xmm() : Xmm();
  switch (typecode) {
    case 'd': a_.movsd(real, qword_ptr(rdx, rcx, 3)); break;
    case 'f': a_.xorps(real, real), a_.cvtss2sd(real, dword_ptr(rdx, rcx, 2)); break;
    case 'b': a_.movsx(whole, byte_ptr(rdx, rcx)); break;
    case 'B': a_.movzx(whole, byte_ptr(rdx, rcx)); break;
    case 'h': a_.movsx(whole, word_ptr(rdx, rcx, 1)); break;
    case 'H': a_.movzx(whole, word_ptr(rdx, rcx, 1)); break;
    case 'i': a_.movsxd(whole, dword_ptr(rdx, rcx, 2)); break;
    case 'I': a_.mov(whole.r32(), dword_ptr(rdx, rcx, 2)); break;
    default: a_.mov(whole, qword_ptr(rdx, rcx, 3));
  }
  used(key, number);
  drop(container);
  if (is_float) {
    push_float(real);
  } else {
    push_int(whole);
  }
  return Next::kGoOn;
}

// Of doubles and of 64 bits: others may not hold the value.
Emitter::Next Emitter::store_array(int index) {
  const auto typecode = static_cast<char>(inst(forms_[static_cast<size_t>(index)].site).cache[1]);
  Value key = pop(), container = pop(), value = pop();
  const bool is_float = typecode == 'd';
  if (!is_float && typecode != 'l' && typecode != 'q') return Next::kLeave;
  if (!may_be(key, Known::kInt) || !is_object(container) || !may_be(value, is_float ? Known::kFloat : Known::kInt)) return Next::kLeave;
  const Gp number = int_of(key);
  if (is_float) {
    const Xmm real = float_of(value);
    array_of(container, number, typecode);
    a_.movsd(qword_ptr(rdx, rcx, 3), real);
    used(value, real);
  } else {
    const Gp whole = int_of(value);
    array_of(container, number, typecode);
    a_.mov(qword_ptr(rdx, rcx, 3), whole);
    used(value, whole);
  }
  used(key, number);
  drop(container);
  return Next::kGoOn;
}

// What a function of two objects says: 1 or 0; -1 is a miss.
Gp Emitter::answer_of(const void* function, const Value& first, const Value& second) {
  call_with(function, first, second);
  const Gp answer = gp();
  a_.mov(answer.r32(), eax);
  a_.test(eax, eax);
  a_.js(fail());
  return answer;
}
// The answer is given back.
void Emitter::decide_by(const Gp& answer, CondCode code) {
  a_.test(answer.r32(), answer.r32());
  give_back(answer);
  decide(code);
}

Emitter::Next Emitter::contains(int index) {
  if (!check_decided(index)) return Next::kLeave;
  const Value container = pop(), item = pop();
  if (!is_object(item) || !is_object(container)) return Next::kLeave;
  const Gp answer = answer_of(reinterpret_cast<const void*>(&contains_quietly), container, item);
  drop(item);
  drop(container);
  decide_by(answer, inst(index).arg != 0 ? CondCode::kZ : CondCode::kNZ);
  return Next::kGoOn;
}

Emitter::Next Emitter::subscript_dict(int) {
  Value key = pop(), container = pop();
  if (!is_object(key) || !is_object(container)) return Next::kLeave;
  call_with(reinterpret_cast<const void*>(&value_of_key), container, key);
  a_.test(rax, rax);
  a_.jz(fail());
  const Gp result = gp();
  a_.mov(result, rax);
  drop(key);
  drop(container);
  push_reg(result);
  return Next::kGoOn;
}

// `place` gets the value; only memory for a box may be missing then. `before`: what is known of what it holds, kNothing: it may be NULL.
// Where the old object may run code, code_may_run() stands before.
void Emitter::replace(const Mem& place, const Value& value, Known before) {
  Label done = a_.newLabel();
  if (is_unboxed(value)) {
    Label slow = a_.newLabel();
    a_.mov(rax, place);
    reuse_box(value, before, slow);
    a_.bind(done);
    cold_.push_back([this, slow, done, no_memory = fail(), place, value, before, gps = model_.gps, xmms = model_.xmms,
                     position = position(index_)] {
      a_.bind(slow);
      box(value, gps, xmms, position);
      a_.test(rax, rax);
      a_.jz(no_memory);
      a_.mov(rdx, place);
      a_.mov(place, rax);
      if (before == Known::kNothing) {
        a_.test(rdx, rdx);
        a_.jz(done);
      }
      drop_here(rdx, Known::kNothing, gps, xmms, position);
      a_.jmp(done);
    });
    give_back(value);
    return;
  }
  const Gp fresh = value.where == Where::kReg ? gpq(value.reg) : Gp(rdx);
  if (value.where != Where::kReg) owned(rdx, value);
  a_.mov(rax, place);
  a_.mov(place, fresh);
  give_back(value);
  if (before == Known::kNothing) {
    a_.test(rax, rax);
    a_.jz(done);
  }
  drop_reg(rax, before);
  a_.bind(done);
}

Emitter::Next Emitter::store_subscript(int) {
  Value key = pop(), container = pop(), value = pop();
  if (!may_be(key, Known::kInt) || !may_be(container, Known::kList)) return Next::kLeave;
  const Gp number = int_of(key);
  const Gp items = gp();
  object(rax, container);
  check_type(rax, container, Known::kList, &PyList_Type, fail());
  a_.cmp(number, qword_ptr(rax, layout::kSize));
  a_.jae(leave());
  a_.mov(items, qword_ptr(rax, layout::kListItems));
  code_may_run();
  replace(qword_ptr(items, number, 3), value, Known::kBound);
  give_back(items);
  used(key, number);
  drop(container);
  return Next::kGoOn;
}

// rdx: the items of the exact tuple or list in rax. Clobbers rcx.
void Emitter::items_of(const Value& sequence) {
  Known known = sequence.known;
  if (sequence.where == Where::kLocal && known != Known::kTuple) known = model_.locals[static_cast<size_t>(sequence.index)];
  if (known == Known::kList) {
    a_.mov(rdx, qword_ptr(rax, layout::kListItems));
    return;
  }
  a_.lea(rdx, ptr(rax, layout::kTupleItems));
  if (known == Known::kTuple) return;
  Label other = a_.newLabel(), done = a_.newLabel();
  check_exact(rax, &PyTuple_Type, other);
  a_.jmp(done);
  a_.bind(other);  // here and not among the cold code: where it is seldom a tuple it mostly is a list
  check_exact(rax, &PyList_Type, fail());
  a_.mov(rdx, qword_ptr(rax, layout::kListItems));
  a_.bind(done);
}

Emitter::Next Emitter::unpack(int index) {
  const int count = inst(index).arg;
  Value sequence = pop();
  if (!may_be(sequence, Known::kList)) return Next::kLeave;
  object(rax, sequence);
  items_of(sequence);
  a_.cmp(qword_ptr(rax, layout::kSize), count);
  a_.jne(fail());
  if (count > 3) {
    if (sequence.where == Where::kSlot) {  // its slot is written to
      const Gp held = gp();
      a_.mov(held, rax);
      sequence.where = Where::kReg;
      sequence.reg = static_cast<uint8_t>(held.id());
    }
    for (int i = count - 1; i >= 0; --i) {
      a_.mov(rcx, qword_ptr(rdx, i * 8));
      take_reference(rcx);
      a_.mov(slot(model_.depth), rcx);
      Value item;
      item.index = model_.depth;
      push(item);
    }
    drop(sequence);
    return Next::kGoOn;
  }
  std::vector<Gp> items;
  for (int i = 0; i < count; ++i) {
    items.push_back(gp());
    a_.mov(items.back(), qword_ptr(rdx, i * 8));
    take_reference(items.back());
  }
  drop(sequence);
  for (int i = count - 1; i >= 0; --i) push_reg(items[static_cast<size_t>(i)]);
  return Next::kGoOn;
}

// ---- attributes

// rdx: the inline values of the object, whose type is checked; misses where there are none.
void Emitter::values_of(const Gp& object, bool write) {
  if constexpr (layout::kValues == layout::Values::kEmbedded) {
#if PY_MINOR_VERSION >= 13
    if (write) {
      a_.cmp(qword_ptr(object, layout::kManagedDict), 0);
      a_.jne(fail());
    }
    a_.cmp(byte_ptr(object, layout::kValuesAreValid), 0);
    a_.je(fail());
    a_.lea(rdx, ptr(object, layout::kFirstValue));
#endif
  } else {
    a_.mov(rdx, qword_ptr(object, layout::kManagedDict));
    if (layout::kValues == layout::Values::kTaggedPointer) {
      a_.test(dl, 1);
      a_.jz(fail());
      a_.inc(rdx);
    } else {
      a_.test(rdx, rdx);
      a_.jz(fail());
    }
  }
}

// rax: the object; its type has the version. rcx: the type.
bool Emitter::check_version(const Value& owner, uint32_t version) {
  if (!is_object(owner)) return false;
  object(rax, owner);
  a_.mov(rcx, qword_ptr(rax, layout::kType));
  a_.cmp(dword_ptr(rcx, layout::kTypeVersion), version);
  a_.jne(fail());
  return true;
}

// rax: what a function of an object and the access `index` gives; NULL is a miss. The function gets a copy of the cache as it is now:
// the interpreter may give the instruction another form, with another cache, while the run goes on with this one.
bool Emitter::ask(const void* function, const Value& owner, int index) {
  if (!is_object(owner)) return false;
  Label copy = a_.newLabel();
  const Inst& site = inst(forms_[static_cast<size_t>(index)].site);
  cold_.push_back([this, copy, access = Access{PyTuple_GET_ITEM(code_->code->co_names, inst(index).arg), {site.cache[0], site.cache[1]}}] {
    a_.align(AlignMode::kData, alignof(Access));
    a_.bind(copy);
    a_.embed(&access, sizeof access);
  });
  object(rax, owner);
  call(function, model_.gps, model_.xmms, [&](int) {
    a_.mov(rdi, rax);
    a_.lea(rsi, ptr(copy));
  });
  a_.test(rax, rax);
  a_.jz(fail());
  return true;
}

Emitter::Next Emitter::load_attr(int index) {
  const Settled& settled = forms_[static_cast<size_t>(index)];
  const Inst& site = inst(settled.site);
  const uint32_t low = low_of(site.cache), high = high_of(site.cache);
  const Value owner = pop();
  const void* function = nullptr;
  switch (settled.form) {
    case Form::kLoadAttrValue:
    case Form::kLoadAttrSlot: {
      if (!check_version(owner, low)) return Next::kLeave;
      Gp base = rax;
      int offset = static_cast<int>(high);
      if (settled.form == Form::kLoadAttrValue) {
        values_of(rax, false);
        base = rdx;
        offset *= 8;
      }
      const Gp result = gp();
      a_.mov(result, qword_ptr(base, offset));
      a_.test(result, result);
      a_.jz(fail());
      take_reference(result);
      drop(owner);
      push_reg(result);
      return Next::kGoOn;
    }
    case Form::kLoadAttrValues: function = reinterpret_cast<const void*>(&load_values); break;
    case Form::kLoadAttrHint: function = reinterpret_cast<const void*>(&load_hint); break;
    case Form::kLoadAttrClassValue: function = reinterpret_cast<const void*>(&load_class_value); break;
    case Form::kLoadAttrOfType: function = reinterpret_cast<const void*>(&load_of_type); break;
    case Form::kLoadAttrModule: function = reinterpret_cast<const void*>(&load_of_module); break;
    default: return Next::kLeave;
  }
  if (!ask(function, owner, index)) return Next::kLeave;
  const Gp result = gp();
  a_.mov(result, rax);
  drop(owner);
  push_reg(result);
  return Next::kGoOn;
}

Emitter::Next Emitter::load_method(int index) {
  const Settled& settled = forms_[static_cast<size_t>(index)];
  const Inst& site = inst(settled.site);
  const uint32_t low = low_of(site.cache), high = high_of(site.cache);
  const Value owner = pop();
  Gp method;
  switch (settled.form) {
    case Form::kLoadMethodValues:
    case Form::kLoadMethodNoDict:
      if (!check_version(owner, low)) return Next::kLeave;
      if (settled.form == Form::kLoadMethodValues) {
        a_.mov(rcx, qword_ptr(rcx, layout::kSharedKeys));
        a_.cmp(dword_ptr(rcx, layout::kKeysVersion), high);
        a_.jne(fail());
        values_of(rax, false);
      }
      method = gp();
      pointer(method, reinterpret_cast<const void*>(site.cache[1]));
      take_reference(method);
      break;
    case Form::kLoadMethodTypes: return load_method_by(reinterpret_cast<const void*>(&load_method_types), owner, index, true);
    case Form::kLoadMethodProbe: return load_method_by(reinterpret_cast<const void*>(&load_class_value), owner, index, true);
    case Form::kLoadMethodModule: return load_method_by(reinterpret_cast<const void*>(&load_of_module), owner, index, false);
    case Form::kLoadMethodOfType: return load_method_by(reinterpret_cast<const void*>(&load_of_type), owner, index, false);
    case Form::kLoadMethodInstance: {
      if (!check_version(owner, low)) return Next::kLeave;
      values_of(rax, false);
      const Gp value = gp();
      a_.mov(value, qword_ptr(rdx, static_cast<int>(high) * 8));
      a_.test(value, value);
      a_.jz(fail());
      take_reference(value);
      drop(owner);
      push_lone(value);
      return Next::kGoOn;
    }
    default: return Next::kLeave;
  }
  push_method(method, owner);
  return Next::kGoOn;
}

Emitter::Next Emitter::load_method_by(const void* function, const Value& owner, int index, bool bound) {
  if (!ask(function, owner, index)) return Next::kLeave;
  const Gp found = gp();
  a_.mov(found, rax);
  if (bound) {
    push_method(found, owner);
  } else {
    drop(owner);
    push_lone(found);
  }
  return Next::kGoOn;
}

// A callable without self, in two slots.
void Emitter::push_lone(const Gp& callable) {
  Value null;
  null.where = Where::kConst;
  if (cpython::kLoneCallable == 1) push(null);
  push_reg(callable, Known::kBound);
  if (cpython::kLoneCallable == 0) push(null);
}
void Emitter::push_method(const Gp& method, const Value& owner) {
  Value self = owner;
  if (self.where == Where::kSlot) {  // the method takes its slot
    const Gp moved = gp();
    a_.mov(moved, slot(owner.index));
    self.where = Where::kReg;
    self.reg = static_cast<uint8_t>(moved.id());
  }
  push_reg(method, Known::kBound);
  push(self);
}

Emitter::Next Emitter::store_attr(int index) {
  const Settled& settled = forms_[static_cast<size_t>(index)];
  const Inst& site = inst(settled.site);
  const uint32_t low = low_of(site.cache), high = high_of(site.cache);
  const Value owner = pop(), value = pop();
  const Gp base = gp();
  int offset = static_cast<int>(high);
  switch (settled.form) {
    case Form::kStoreAttrValue:
      if (!check_version(owner, low)) return Next::kLeave;
      values_of(rax, true);
      a_.mov(base, rdx);
      offset *= 8;
      break;
    case Form::kStoreAttrSlot:
      if (!check_version(owner, low)) return Next::kLeave;
      a_.mov(base, rax);
      break;
    case Form::kStoreAttrValues:
      if (!ask(reinterpret_cast<const void*>(&stored_place), owner, index)) return Next::kLeave;
      a_.mov(base, rax);
      offset = 0;
      break;
    default: return Next::kLeave;
  }
  const Mem place = qword_ptr(base, offset);
  code_may_run();
  const Label done = a_.newLabel();
  if (settled.form == Form::kStoreAttrValue) {
    a_.cmp(place, 0);
    a_.je(new_value(base, high, value, done));
  }
  replace(place, value, settled.form == Form::kStoreAttrSlot ? Known::kNothing : Known::kBound);
  a_.bind(done);
  give_back(base);
  drop(owner);
  return Next::kGoOn;
}

// Cold code that gives an instance its first value of an attribute and jumps to `done`. `values`: its first inline value.
Label Emitter::new_value(const Gp& values, uint32_t attribute, const Value& value, const Label& done) {
  const Label label = a_.newLabel();
  const Label no_memory = is_unboxed(value) ? fail() : Label();
  cold_.push_back([this, label, no_memory, values, attribute, value, done, gps = model_.gps, xmms = model_.xmms, position = position(index_)] {
    a_.bind(label);
    if (is_unboxed(value)) {
      box(value, gps, xmms, position);
      a_.test(rax, rax);
      a_.jz(no_memory);
    } else {
      object(rax, value);
      if (value.where == Where::kLocal || value.where == Where::kConst) take_reference(rax);
    }
    a_.mov(qword_ptr(values, static_cast<int>(attribute) * 8), rax);
    a_.movzx(ecx, byte_ptr(values, layout::kOrderCount));
    if constexpr (layout::kOrderGrowsDown) {
      a_.inc(ecx);
      a_.mov(byte_ptr(values, layout::kOrderCount), cl);
      a_.neg(rcx);
      a_.mov(byte_ptr(values, rcx, 0, layout::kOrderCount), attribute);
    } else {
      a_.movzx(edx, byte_ptr(values, layout::kOrderCapacity));
      a_.lea(rdx, ptr(values, rdx, 3));
      a_.mov(byte_ptr(rdx, rcx), attribute);
      a_.inc(ecx);
      a_.mov(byte_ptr(values, layout::kOrderCount), cl);
    }
    a_.jmp(done);
  });
  return label;
}

Emitter::Next Emitter::store_deref(int index) {
  const Value value = pop();
  const Gp cell = gp();
  a_.mov(cell, local(inst(index).arg));
  a_.cmp(qword_ptr(cell, layout::kCell), 0);
  a_.je(leave());
  code_may_run();
  replace(qword_ptr(cell, layout::kCell), value, Known::kBound);
  give_back(cell);
  return Next::kGoOn;
}

// ---- builtins that run nothing: len of builtin containers, isinstance of classes, append to a list with room

// Pops a callable without self, which is checked to be `builtin`; false: it cannot be.
bool Emitter::lone_builtin(PyObject* builtin, Value* callable) {
  const Value upper = pop(), lower = pop();
  *callable = cpython::kLoneCallable == 1 ? upper : lower;
  const Value& null = cpython::kLoneCallable == 1 ? lower : upper;
  if (null.where != Where::kConst || null.object != nullptr || !is_object(*callable)) return false;
  object(rax, *callable);
  pointer(rcx, builtin);
  a_.cmp(rax, rcx);
  a_.jne(fail());
  return true;
}

Emitter::Next Emitter::call_len(int index) {
  if (inst(index).arg != 1) return Next::kLeave;
  const Value argument = pop();
  Value callable;
  if (!is_object(argument) || !lone_builtin(g_len, &callable)) return Next::kLeave;
  object(rax, argument);
  call(reinterpret_cast<const void*>(&length_of), model_.gps, model_.xmms, [&](int) { a_.mov(rdi, rax); });
  a_.test(rax, rax);
  a_.js(fail());
  const Gp length = gp();
  a_.mov(length, rax);
  drop(callable);
  drop(argument);
  push_int(length);
  return Next::kGoOn;
}

Emitter::Next Emitter::call_isinstance(int index) {
  if (inst(index).arg != 2 || !check_decided(index)) return Next::kLeave;
  const Value cls = pop(), argument = pop();
  Value callable;
  if (!is_object(argument) || !is_object(cls) || !lone_builtin(g_isinstance, &callable)) return Next::kLeave;
  const Gp answer = answer_of(reinterpret_cast<const void*>(&is_instance_quietly), argument, cls);
  drop(callable);
  drop(argument);
  drop(cls);
  decide_by(answer, CondCode::kNZ);
  return Next::kGoOn;
}

Emitter::Next Emitter::call_list_append(int index) {
  if (inst(index).arg != 1) return Next::kLeave;
  const Value argument = pop(), upper = pop(), lower = pop();
  if (!is_object(lower) || !is_object(upper) || next_ >= code_->inst_count || op(next_) != Op::kPopTop || joins_[static_cast<size_t>(next_)] != 0) {
    return Next::kLeave;
  }
  const Gp list = gp(), value = gp();
  object(rax, lower);
  pointer(rcx, g_list_append);
  a_.cmp(rax, rcx);
  a_.jne(fail());
  object(list, upper);
  a_.mov(rcx, qword_ptr(list, layout::kType));  // subclasses too: the method is list's
  a_.test(dword_ptr(rcx, layout::kTypeFlags), static_cast<uint32_t>(Py_TPFLAGS_LIST_SUBCLASS));
  a_.jz(fail());
  append(list, value, argument);
  drop(lower);
  drop(upper);
  ++next_;
  return Next::kGoOn;
}

// `list` and `value` are given back.
void Emitter::append(const Gp& list, const Gp& value, const Value& argument) {
  a_.mov(rax, qword_ptr(list, layout::kSize));
  a_.cmp(rax, qword_ptr(list, layout::kListRoom));
  a_.jge(leave());  // it grows
  owned(value, argument);
  a_.mov(rax, qword_ptr(list, layout::kSize));
  a_.mov(rdx, qword_ptr(list, layout::kListItems));
  a_.mov(qword_ptr(rdx, rax, 3), value);
  a_.inc(qword_ptr(list, layout::kSize));
  give_back(value);
  give_back(argument);
  give_back(list);
}

// Of a comprehension: the list is further down the stack.
Emitter::Next Emitter::list_append(int index) {
  const Value argument = pop();
  const Value& comprehension = top(inst(index).arg);
  if (!is_object(comprehension)) return Next::kLeave;
  const Gp list = gp(), value = gp();
  object(list, comprehension);
  append(list, value, argument);
  return Next::kGoOn;
}

}  // namespace dynvm::vm::native
