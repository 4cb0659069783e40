// Emits one native run; see native.h for what a run is.
//
// Purpose: walks the instructions from an entry, keeps a model of what the stack holds, and emits machine code. Inputs: a Code and the forms
//   that its instructions have settled on. Outputs: a Function, or nothing where a run would not pay.
//
// Registers: rdi locals, rsi stack at the entry, [rsp] Context. rax, rcx, rdx are scratch within an instruction. r8-r11 and xmm0-xmm13 hold
//   values of the model.
// Invariants
//   - The model says where each value of the stack is; what it does not name is in its own slot, with a reference.
//   - begin() makes room in registers and takes a copy of the model: fail() leaves with that copy. Registers that the copy names are not
//     written, nor reused, before the instruction's last guard. Effects come after the last guard.
//   - Where several paths meet (a join), all values are in their slots and nothing is known of them or of locals.
#pragma once

#include <asmjit/x86.h>

#include <deque>
#include <functional>
#include <vector>

#include "vm/cpython/layout.h"
#include "vm/native/native.h"

namespace dynvm::vm::native {

enum class Where : uint8_t {
  kSlot,   // in its own slot of the stack, with a reference
  kLocal,  // is local `index`; no reference
  kConst,  // is `object`, which the code object keeps alive, or NULL; no reference
  kReg,    // an object in a register, with a reference
  kFloat,  // unboxed
  kInt,    // unboxed, 64 bits
};
enum class Known : uint8_t { kNothing, kBound, kFloat, kInt, kList, kTuple };  // exact types; kBound: not NULL

struct Value {
  Where where = Where::kSlot;
  Known known = Known::kNothing;
  uint8_t reg = 0;         // number of the register
  int32_t index = 0;       // kSlot: depth of its slot; kLocal
  int32_t twin = 0;        // unboxed: copies of one value have the same number, and are one object where they are boxed
  PyObject* object = nullptr;
};

// What an instruction of fast code has become, as part of a fused form too, and the instruction whose cache says more.
struct Settled {
  Form form;
  int site;
  bool covered;  // the interpreter executes it as a part of the form before it
};

struct Model {
  int depth = 0;              // of the stack, from that at the entry
  int low = 0;                // depth of stack[0]; below it all are kSlot
  std::vector<Value> stack;
  std::vector<Known> locals;
  uint32_t gps = 0, xmms = 0; // registers in use
};

inline cpython::Frame* frame_of_locals(PyObject** locals) {
  return reinterpret_cast<cpython::Frame*>(reinterpret_cast<char*>(locals) - cpython::layout::kFrameLocals);
}

class Emitter {
 public:
  // `joins`: instructions that more than one path may come to. `globals`, `builtins`: of a frame that runs the code.
  Emitter(Code* code, const std::vector<Settled>& forms, const std::vector<uint8_t>& joins, PyObject* globals, PyObject* builtins);
  // May the instruction, which has become `form`, be part of a run.
  static bool can(const Inst& inst, Form form) { return method_of(inst, form) != nullptr; }
  // The run from instruction `entry`, whose failed guards count `misses` down; false where it would not pay or asmjit fails. `size`: bytes;
  // `rest` gets the instructions where it ended only because it had become long.
  bool run(int entry, asmjit::JitRuntime& runtime, int32_t* misses, Function* function, size_t* size, std::vector<int>* rest);
  int length() const { return done_; }  // instructions

 private:
  using Gp = asmjit::x86::Gp;
  using Xmm = asmjit::x86::Xmm;
  using Mem = asmjit::x86::Mem;
  using Label = asmjit::Label;
  enum class Next { kGoOn, kLeave };  // executed; cannot be done here
  struct Join {
    Label label;
    int depth;
    bool done;
  };

  // --- emitter.cpp: blocks and ends
  void block(int index);
  void branch(asmjit::x86::CondCode taken, int jump);  // to the jump's target, with the model as it is
  bool check_backward(int jump);             // before the instruction: signals, counters; false: not here. Nothing where it is forward
  void count_down(HotCounter* counter);      // a backward jump is taken; nothing for nullptr
  void begin(int index);
  Label fail();                              // the instruction is left to the interpreter; counts as a miss
  Label leave();                             // the same, but nothing is wrong
  Label end_label(const Model& model, int index, bool miss);
  void end(const Model& model, int index, bool miss, bool stopped = false);  // stopped: Context says why
  Join* find_join(int index);                // nullptr: not come to yet
  Join* join(int index);

  // --- emitter.cpp: values
  Value pop();
  void push(const Value& value);
  Value& top(int below);                     // 1: the top
  void push_reg(const Gp& reg, Known known = Known::kNothing);
  void push_int(const Gp& reg);
  void push_float(const Xmm& reg);
  Gp gp();                                   // a free register
  Xmm xmm();
  void give_back(const Gp& reg);
  void give_back(const Xmm& reg);
  void give_back(const Value& value);        // its register
  void object(const Gp& to, const Value& value);  // its pointer, borrowed: not for unboxed values
  void check_type(const Gp& reg, const Value& value, Known known, PyTypeObject* type, const Label& miss);  // clobbers rcx
  void check_exact(const Gp& reg, PyTypeObject* type, const Label& miss);  // clobbers rcx
  void one_digit(const Gp& to, const Label& more);
  // Unboxed, in a fresh register unless the value is unboxed; guards; the value is known as such then.
  Gp int_of(Value& value);
  Xmm float_of(Value& value);
  void used(const Value& value, const Gp& reg);   // int_of's is no longer needed: its register, the value's reference
  void used(const Value& value, const Xmm& reg);
  void drop(const Value& value);             // its register and the reference it holds; clobbers rax
  void release(const Value& value);          // the reference only: registers are as they were behind it
  // Clobbers nothing; rax, rcx, rdx where the object dies. Where code may run then, code_may_run() stands before.
  void drop_reg(const Gp& reg, Known known);
  void destroy_here(const Gp& reg, Known known, uint32_t gps, uint32_t xmms, uint16_t* position);
  void drop_here(const Gp& reg, Known known, uint32_t gps, uint32_t xmms, uint16_t* position);  // the same in cold code
  void take_reference(const Gp& reg);        // clobbers nothing
  void owned(const Gp& to, const Value& value);  // the object with a reference, boxed; may fail(); clobbers the scratch registers
  void put(size_t place, const Label& no_memory);  // the model's value into its slot; without the label failed is set
  void flush();                              // all into their slots
  void settle_local(int index);              // values that are the local get references: it is about to change; -1: all locals
  void forget_locals();
  void code_may_run();                       // an object is about to die that can run anything; clobbers rax
  void box(const Value& value, uint32_t gps, uint32_t xmms, uint16_t* position);  // rax: new object, or NULL without an exception
  // Saves the registers of the masks; `arguments` gets where the Context is from rsp. Clobbers the scratch registers.
  void call(const void* function, uint32_t gps, uint32_t xmms, const std::function<void(int)>& arguments);
  void call_with(const void* function, const Value& first, const Value& second);  // objects; the result is in rax
  void pointer(const Gp& to, const void* value);
  Mem slot(int depth) const;
  Mem local(int index) const;
  static bool is_immortal(PyObject* object) { return cpython::layout::kImmortal && static_cast<int32_t>(object->ob_refcnt) < 0; }

  // --- forms.cpp
  using Method = Next (Emitter::*)(int index);
  static Method method_of(const Inst& inst, Form form);  // forms.def; nullptr: none
  Next instruction(int index);
  Next nop(int index);
  Next load_const(int index);
  Next push_null(int index);
  Next pop_top(int index);
  Next load_deref(int index);
  Next load_fast(int index);
  Next store_fast(int index);
  Next copy(int index);
  Next swap(int index);
  Next load_global(int index);
  Next binary_float(int index);
  Next binary_int(int index);
  Next binary_number(int index);
  Next compare_ints(int index);
  Next compare_floats(int index);
  Next compare_strings(int index);
  Next is_op(int index);
  Next truth_jump(int index);
  Next to_bool(int index);
  Next none_jump(int index);
  Next jump_forward(int index);
  Next jump_backward(int index);
  Next for_range(int index);
  Next for_sequence(int index);
  Next for_slot(int index);
  Next negative(int index);
  Xmm number_of(Value& value, const Value* other);
  int jump_behind(int index) const;
  bool check_decided(int index);
  void decide(asmjit::x86::CondCode code);

  // --- forms_objects.cpp
  void index_within(const Gp& number, const Label& outside);
  Next subscript(int index);
  Next subscript_dict(int index);
  Next subscript_str(int index);
  Next subscript_array(int index);
  Next store_array(int index);
  void array_of(const Value& container, const Gp& number, char typecode);
  Gp answer_of(const void* function, const Value& first, const Value& second);
  void decide_by(const Gp& answer, asmjit::x86::CondCode code);
  Next contains(int index);
  Next store_subscript(int index);
  Next unpack(int index);
  void items_of(const Value& sequence);
  Next load_attr(int index);
  Next load_method(int index);
  Next load_method_by(const void* function, const Value& owner, int index, bool bound);
  Next store_attr(int index);
  Next store_deref(int index);
  Label new_value(const Gp& values, uint32_t attribute, const Value& value, const Label& done);
  bool lone_builtin(PyObject* builtin, Value* callable);
  Next call_len(int index);
  Next call_isinstance(int index);
  Next call_list_append(int index);
  Next list_append(int index);
  void append(const Gp& list, const Gp& value, const Value& argument);
  void push_lone(const Gp& callable);
  void push_method(const Gp& method, const Value& owner);
  void set_box(const Value& value, const Label& slow);
  void reuse_box(const Value& value, Known before, const Label& slow);
  void replace(const Mem& place, const Value& value, Known before);
  void values_of(const Gp& object, bool write);
  bool check_version(const Value& owner, uint32_t version);
  bool ask(const void* function, const Value& owner, int index);
  static bool is_unboxed(const Value& value) { return value.where == Where::kInt || value.where == Where::kFloat; }
  static bool is_object(const Value& value) {  // neither unboxed nor NULL
    return !is_unboxed(value) && (value.where != Where::kConst || value.object != nullptr);
  }
  static bool may_be(const Value& value, Known known);  // as far as the model says
  const Inst& inst(int index) const { return code_->fast[index]; }
  Form form(int index) const { return forms_[static_cast<size_t>(index)].form; }
  uint16_t* position(int index) const { return cpython::code_units(code_->code) + inst(index).unit; }
  Op op(int index) const { return static_cast<Op>(code_->fast[index].op); }
  HotCounter* counter_of(int jump) const { return reinterpret_cast<HotCounter*>(code_->fast[jump].cache[1]); }  // nullptr: forward
  int target(int index) const { return static_cast<int>(target_of(&code_->fast[index]) - code_->fast); }

  const base::Heuristics& limits_ = base::heuristics();
  Code* code_;
  PyObject *globals_, *builtins_;
  const std::vector<Settled>& forms_;
  const std::vector<uint8_t>& joins_;
  asmjit::CodeHolder holder_;
  asmjit::x86::Assembler a_;
  Model model_, start_;
  int index_ = 0;                 // of the instruction in work
  Label miss_, leave_;
  std::deque<std::pair<int, Join>> known_joins_;
  struct Pending {
    int index;
    Label label;
    Model model;
    HotCounter* counter;  // of the backward jump that leads there
  };
  std::vector<Pending> pending_;
  std::deque<std::function<void()>> cold_;  // code behind the run's last end; may grow while it is emitted
  int twins_ = 0;
  int next_ = 0;                  // instruction behind the one in work
  int done_ = 0;                  // instructions emitted
  int straight_ = 0;              // the interpreter's dispatches in a straight line from the entry; -1: behind a branch
  bool pays_ = false, broken_ = false;
  int32_t* misses_ = nullptr;
  std::vector<int> rest_;
};

}  // namespace dynvm::vm::native
