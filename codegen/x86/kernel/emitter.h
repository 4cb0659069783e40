// The emitter's state, shared by emit.cpp (frame, loops, calls), emit_vector.cpp (arithmetic) and emit_memory.cpp (loads and stores).
//
// Vector registers: the allocator's, from 0 up, then two scratch registers `s0`, `s1`. A destination that lives in the frame is computed in
// s0 and stored by done(); a source that an instruction needs in a register is loaded into s1.
// General registers: rax, rcx, rdx are scratch; a place (Place) is a register or a word of the frame.
//
// Frame, from rsp (64-byte aligned) up: two argument vectors and a result vector of helper calls (the first doubles as the buffer of
// partial accesses), words, spilled vectors, the save area of out-of-line calls.
// Tests: tests/kernel/compile_test.cpp.
#pragma once

#include <xbyak/xbyak.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "codegen/x86/kernel/emit.h"
#include "ir/kernel/symbols.h"

namespace dynvm::codegen {

class Emitter : private Xbyak::CodeGenerator {
 public:
  Emitter(const VCode& code, const Registers& registers, bool avx512, void* buffer, size_t size);
  // False: error() says why.
  bool run(EmittedCode* emitted);
  const std::string& error() const { return error_; }

 private:
  using Reg64 = Xbyak::Reg64;
  using Xmm = Xbyak::Xmm;
  using Address = Xbyak::Address;
  using Operand = Xbyak::Operand;
  using RegExp = Xbyak::RegExp;

  struct Place {
    int reg = -1;     // general register, or
    int offset = -1;  // in the frame
  };

  // --- emit.cpp
  void plan_frame();
  void assign_places();
  void prologue();
  void epilogue();
  void inst(const VInst& i);
  void vector_begin();
  void begin_loop(int id);
  void end_loop(int id);
  void helper_call(const VInst& i);
  void fixup(const VInst& i);
  void out_of_line();
  void constants();
  void move_addresses(int loop, int64_t factor);
  void add_number(const Place& place, int64_t value);
  void load_number(const Reg64& to, int64_t value);
  int number_place(int64_t value);
  bool symbolic(int64_t value) const { return ir::is_symbolic(value, code_.symbols); }
  void load_place(const Reg64& to, const Place& place);
  void store_place(const Place& place, const Reg64& from);
  bool is_split(int dim) const { return dim == code_.split_dim; }
  bool is_dynamic(int dim) const { return is_split(dim) || symbolic(code_.sizes[static_cast<size_t>(dim)]); }
  Address end_word(int dim) { return word(is_split(dim) ? end_word_ : size_words_[static_cast<size_t>(dim)]); }
  Reg64 word_register(const Place& place, const Reg64& scratch);  // the place's register, or scratch after a load
  Address word(int offset) { return qword[rsp + offset]; }

  // --- emit_vector.cpp
  void arithmetic(const VInst& i);
  void fused(const VInst& i, bool negate);
  void blend(const VInst& i);
  void compare_float(const VInst& i);
  void compare_int(const VInst& i, bool equal);
  void shift(const VInst& i);
  void shift_variable(const VInst& i);
  void multiply64(const VInst& i);
  void convert(const VInst& i);
  void swap_lanes(const VInst& i);
  void scalar(const VInst& i);
  void index(const VInst& i);
  void tail_mask(const VInst& i);

  // --- emit_memory.cpp
  void load(const VInst& i);
  void store(const VInst& i);
  void store_lane(const VInst& i);
  RegExp address(const VAccess& access);  // may use rax and rcx
  void load_broadcast(const Xmm& to, const VAccess& access);
  void load_lanes(const Xmm& to, const VAccess& access, RegExp at);
  void load_from(const Xmm& to, ir::DType dtype, const Operand& from);
  void next_lane(const VAccess& access);
  void copy_in(const VAccess& access, RegExp at);
  void copy_out(const VAccess& access, RegExp at);
  void copy_element(int bytes, const RegExp& to, const RegExp& from);
  // The memory form of a value in the low bytes of the result (s0, or the value's own register).
  Xmm packed(ir::DType dtype, Value v);

  // --- operands
  int lane_vector_bytes(int bytes) const { return std::min(bytes * code_.lanes, code_.vector_bytes); }
  Xmm vector(int reg, int bytes) const { return Xmm(bytes >= 64 ? Operand::ZMM : bytes >= 32 ? Operand::YMM : Operand::XMM, reg); }
  // The type that some instructions ask for; a 512-bit register stays one.
  static Xbyak::Ymm as_ymm(const Xmm& x) { return x.isZMM() ? Xbyak::Zmm(x.getIdx()) : Xbyak::Ymm(x.getIdx()); }
  Xmm sized(Lane lane, int reg) const { return vector(reg, lane_vector_bytes(lane_bytes(lane))); }
  Xmm scratch0(Lane lane) const { return sized(lane, s0_); }
  Xmm scratch1(Lane lane) const { return sized(lane, s1_); }
  bool in_register(Value v) const { return is_register(v) && registers_.reg[v] >= 0; }
  Address memory(Value v);                                 // of a spilled value or a constant
  Address memory(Value v, int offset, int bytes);
  Xmm destination(const VInst& i) { return sized(i.lane, in_register(i.dst) ? registers_.reg[i.dst] : s0_); }
  Xmm in_xmm(Value v, Lane lane, int scratch);             // in a register: its own, or the scratch after a load
  void load_value(const Xmm& to, Value v);
  void done(const VInst& i, const Xmm& from);
  // A source that may be memory: calls f with a register or an address.
  template <typename F>
  void with_source(Value v, Lane lane, F f) {
    if (in_register(v)) f(static_cast<const Operand&>(sized(lane, registers_.reg[v])));
    else f(static_cast<const Operand&>(memory(v)));
  }
  int constant_offset(const void* data, size_t size);      // in the pool
  Address pool(int offset);

  const VCode& code_;
  const Registers& registers_;
  bool avx512_;
  int s0_, s1_;
  std::string error_;

  int buffer_ = 0, argument_b_ = 0, result_ = 0;           // frame offsets
  int words_ = 0, num_words_ = 0, spills_ = 0, save_ = 0, frame_bytes_ = 0;
  int pointers_word_ = 0, scalars_word_ = 0, begin_word_ = 0, end_word_ = 0, left_word_ = 0, stack_word_ = 0, numbers_word_ = 0;
  std::vector<int> size_words_;                            // per dim: of a dynamic one that is not split, its size
  std::vector<int64_t> numbers_;                           // with symbols in them, in the order of the argument
  std::vector<Place> counters_;                            // per dim; the vector dim's is the index
  std::vector<Place> bases_;                               // per address
  std::vector<std::vector<int32_t>> moved_;                // per loop: addresses that it moves
  std::vector<Xbyak::Label> labels_, exits_;               // per loop
  int64_t position_ = 0;                                   // static index of the vector loop
  std::vector<uint8_t> pool_;
  std::vector<int> constant_places_;                       // per VCode constant
  Xbyak::Label pool_label_;
  struct Cold {
    VInst inst;
    Xbyak::Label entry, back;
  };
  std::deque<Cold> cold_;
  bool has_fixups_ = false;
};

}  // namespace dynvm::codegen
