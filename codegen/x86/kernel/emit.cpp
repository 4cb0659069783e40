// The emitter: frame, loops, helper calls, constants. See emit.h and emitter.h. Tests: tests/kernel/compile_test.cpp.
#include "codegen/x86/kernel/emit.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "codegen/x86/kernel/emitter.h"

namespace dynvm::codegen {

namespace {

constexpr size_t kMaxCodeBytes = size_t{1} << 21;
// Kept by the callee: they survive helper calls. The others serve where there are none.
constexpr int kSavedRegisters[] = {3, 5, 12, 13, 14, 15};      // rbx rbp r12-r15
constexpr int kVolatileRegisters[] = {6, 7, 8, 9, 10, 11};     // rsi rdi r8-r11

bool fits32(int64_t value) { return value == static_cast<int32_t>(value); }

}  // namespace

int allocatable_registers(bool avx512) { return avx512 ? 30 : 14; }

Emitter::Emitter(const VCode& code, const Registers& registers, bool avx512, void* buffer, size_t size)
    : CodeGenerator(size, buffer), code_(code), registers_(registers), avx512_(avx512), s0_(allocatable_registers(avx512)), s1_(s0_ + 1) {
  setDefaultJmpNEAR(true);
}

bool Emitter::run(EmittedCode* emitted) {
  for (const VConstant& c : code_.constants) {
    std::vector<uint8_t> bytes(static_cast<size_t>(code_.vector_bytes));
    for (int at = 0; at < code_.vector_bytes; at += c.bytes) {
      uint64_t bits = c.iota ? static_cast<uint64_t>(at / c.bytes) : c.bits;
      std::memcpy(&bytes[static_cast<size_t>(at)], &bits, static_cast<size_t>(c.bytes));
    }
    constant_places_.push_back(constant_offset(bytes.data(), bytes.size()));
  }
  for (const VInst& i : code_.insts) has_fixups_ |= i.op == VOp::k_fixup;
  plan_frame();
  // The short entry passes the whole split dim.
  if (!code_.symbols.empty()) mov(r8, rdx);
  if (code_.split_dim >= 0) {
    const int64_t size = code_.sizes[code_.split_dim];
    xor_(edx, edx);
    if (symbolic(size)) mov(rcx, qword[r8 + number_place(size)]);
    else mov(rcx, static_cast<size_t>(size));
  }
  emitted->range_offset = getSize();
  prologue();
  labels_.resize(code_.loops.size());
  exits_.resize(code_.loops.size());
  for (const VInst& i : code_.insts) inst(i);
  epilogue();
  out_of_line();
  constants();
  if (!error_.empty()) return false;
  ready();
  emitted->bytes.assign(getCode(), getCode() + getSize());
  emitted->numbers = numbers_;
  return true;
}

void Emitter::plan_frame() {
  int vector = code_.vector_bytes;
  buffer_ = 0;
  argument_b_ = vector;
  result_ = 2 * vector;
  words_ = 3 * vector;
  auto word = [this] { return words_ + 8 * num_words_++; };
  pointers_word_ = word();
  scalars_word_ = word();
  begin_word_ = word();
  end_word_ = word();
  left_word_ = word();
  stack_word_ = word();
  numbers_word_ = word();
  size_words_.assign(code_.sizes.size(), 0);
  for (size_t d = 0; d < size_words_.size(); ++d)
    if (symbolic(code_.sizes[d]) && !is_split(static_cast<int>(d))) size_words_[d] = word();
  assign_places();
  spills_ = (words_ + 8 * num_words_ + vector - 1) / vector * vector;
  save_ = spills_ + registers_.num_slots * vector;
  frame_bytes_ = save_ + (has_fixups_ ? (s1_ + 1) * vector + 64 : 0);
  frame_bytes_ = (frame_bytes_ + 63) / 64 * 64;
}

void Emitter::assign_places() {
  moved_.assign(code_.loops.size(), {});
  std::vector<std::vector<bool>> seen(code_.loops.size(), std::vector<bool>(code_.addresses.size(), false));
  std::vector<int64_t> uses(code_.addresses.size(), 0);
  std::vector<int> open;
  std::vector<int> counter_depth(code_.sizes.size(), 0);
  for (const VInst& i : code_.insts) {
    if (i.op == VOp::k_loop) {
      open.push_back(static_cast<int>(i.imm));
      counter_depth[code_.loops[i.imm].dim] = static_cast<int>(open.size());
    } else if (i.op == VOp::k_endloop) {
      open.pop_back();
    } else if (i.op == VOp::k_load || i.op == VOp::k_store || i.op == VOp::k_store_lane) {
      int32_t a = code_.accesses[i.imm].address;
      int64_t weight = 1;
      for (size_t d = 0; d < open.size() && d < 6; ++d) weight *= 8;
      uses[a] += weight;
      for (int loop : open)
        if (!seen[loop][a]) {
          seen[loop][a] = true;
          if (code_.addresses[a].strides[code_.loops[loop].dim] != 0) moved_[loop].push_back(a);
        }
    }
  }
  std::vector<int> pool(std::begin(kSavedRegisters), std::end(kSavedRegisters));
  if (!code_.has_calls) pool.insert(pool.begin(), std::begin(kVolatileRegisters), std::end(kVolatileRegisters));
  auto take = [&](Place* place) {
    if (!pool.empty()) {
      place->reg = pool.front();
      pool.erase(pool.begin());
    } else {
      place->offset = words_ + 8 * num_words_++;
    }
  };
  counters_.resize(code_.sizes.size());
  bases_.resize(code_.addresses.size());
  if (code_.vector_dim >= 0) take(&counters_[code_.vector_dim]);
  // The innermost counter, then the pointers by use, then the other counters.
  int innermost = -1;
  for (size_t d = 0; d < code_.sizes.size(); ++d)
    if (static_cast<int>(d) != code_.vector_dim && counter_depth[d] > (innermost < 0 ? 0 : counter_depth[innermost]))
      innermost = static_cast<int>(d);
  if (innermost >= 0) take(&counters_[innermost]);
  std::vector<int> order(code_.addresses.size());
  for (size_t a = 0; a < order.size(); ++a) order[a] = static_cast<int>(a);
  std::stable_sort(order.begin(), order.end(), [&](int x, int y) { return uses[x] > uses[y]; });
  for (int a : order) take(&bases_[a]);
  for (size_t d = 0; d < code_.sizes.size(); ++d)
    if (static_cast<int>(d) != code_.vector_dim && static_cast<int>(d) != innermost) take(&counters_[d]);
}

void Emitter::load_place(const Reg64& to, const Place& place) {
  if (place.reg >= 0) mov(to, Reg64(place.reg));
  else mov(to, word(place.offset));
}

void Emitter::store_place(const Place& place, const Reg64& from) {
  if (place.reg >= 0) mov(Reg64(place.reg), from);
  else mov(word(place.offset), from);
}

Xbyak::Reg64 Emitter::word_register(const Place& place, const Reg64& scratch) {
  if (place.reg >= 0) return Reg64(place.reg);
  mov(scratch, word(place.offset));
  return scratch;
}

// Bytes from the start of the numbers that each run gives.
int Emitter::number_place(int64_t value) {
  const auto place = static_cast<int>(std::find(numbers_.begin(), numbers_.end(), value) - numbers_.begin());
  if (place == static_cast<int>(numbers_.size())) numbers_.push_back(value);
  return 8 * place;
}

void Emitter::load_number(const Reg64& to, int64_t value) {
  if (!symbolic(value)) return mov(to, static_cast<uint64_t>(value));
  mov(to, word(numbers_word_));
  mov(to, qword[to + number_place(value)]);
}

void Emitter::add_number(const Place& place, int64_t value) {
  if (value == 0) return;
  if (fits32(value) && !symbolic(value)) {
    if (place.reg >= 0) add(Reg64(place.reg), static_cast<uint32_t>(value));
    else add(word(place.offset), static_cast<uint32_t>(value));
    return;
  }
  load_number(rax, value);
  if (place.reg >= 0) add(Reg64(place.reg), rax);
  else add(word(place.offset), rax);
}

void Emitter::prologue() {
  for (int reg : kSavedRegisters) push(Reg64(reg));
  mov(rax, rsp);
  sub(rsp, static_cast<uint32_t>(frame_bytes_));
  and_(rsp, static_cast<uint32_t>(-64));
  mov(word(stack_word_), rax);
  mov(word(pointers_word_), rdi);
  mov(word(scalars_word_), rsi);
  if (!code_.symbols.empty()) mov(word(numbers_word_), r8);
  if (code_.split_dim >= 0) {
    mov(word(begin_word_), rdx);
    mov(word(end_word_), rcx);
  }
  for (size_t d = 0; d < size_words_.size(); ++d) {
    if (size_words_[d] == 0) continue;
    load_number(rax, code_.sizes[d]);
    mov(word(size_words_[d]), rax);
  }
  for (size_t a = 0; a < code_.addresses.size(); ++a) {
    const VAddress& address = code_.addresses[a];
    mov(rcx, word(pointers_word_));
    mov(rax, qword[rcx + address.pointer * 8]);
    if (address.offset != 0) {
      if (fits32(address.offset) && !symbolic(address.offset)) {
        add(rax, static_cast<uint32_t>(address.offset));
      } else {
        load_number(rdx, address.offset);
        add(rax, rdx);
      }
    }
    if (code_.split_dim >= 0 && address.strides[code_.split_dim] != 0) {
      load_number(rdx, address.strides[code_.split_dim]);
      imul(rdx, word(begin_word_));
      add(rax, rdx);
    }
    store_place(bases_[a], rax);
  }
}

void Emitter::epilogue() {
  vzeroupper();
  mov(rsp, word(stack_word_));
  for (int k = static_cast<int>(std::size(kSavedRegisters)); k-- > 0;) pop(Reg64(kSavedRegisters[k]));
  ret();
}

void Emitter::vector_begin() {
  const Place& place = counters_[code_.vector_dim];
  position_ = 0;
  if (is_split(code_.vector_dim)) {
    mov(rax, word(begin_word_));
    store_place(place, rax);
  } else if (place.reg >= 0) {
    xor_(Xbyak::Reg32(place.reg), Xbyak::Reg32(place.reg));
  } else {
    mov(word(place.offset), 0);
  }
}

void Emitter::move_addresses(int loop, int64_t factor) {
  for (int32_t a : moved_[loop]) add_number(bases_[a], code_.addresses[a].strides[code_.loops[loop].dim] * factor);
}

void Emitter::begin_loop(int id) {
  const VLoop& loop = code_.loops[id];
  const Place& place = counters_[loop.dim];
  bool dynamic = is_dynamic(loop.dim);
  switch (loop.kind) {
    case VLoop::kScalar:
      if (dynamic) {
        if (is_split(loop.dim)) mov(rax, word(begin_word_));
        else xor_(eax, eax);
        store_place(place, rax);
        cmp(rax, end_word(loop.dim));
        jge(exits_[id]);
      } else if (place.reg >= 0) {
        xor_(Xbyak::Reg32(place.reg), Xbyak::Reg32(place.reg));
      } else {
        mov(word(place.offset), 0);
      }
      break;
    case VLoop::kUnrolled:
    case VLoop::kSingle:
      if (dynamic) {
        load_place(rax, place);
        add(rax, static_cast<uint32_t>(loop.step));
        cmp(rax, end_word(loop.dim));
        jg(exits_[id]);
      }
      break;
    case VLoop::kTail:
      if (dynamic) {
        mov(rax, end_word(loop.dim));
        load_place(rcx, place);
        sub(rax, rcx);
        jle(exits_[id]);
        mov(word(left_word_), rax);
      } else {
        mov(word(left_word_), static_cast<uint32_t>(loop.end - position_));
      }
      return;
  }
  L(labels_[id]);
}

void Emitter::end_loop(int id) {
  const VLoop& loop = code_.loops[id];
  const Place& place = counters_[loop.dim];
  bool dynamic = is_dynamic(loop.dim);
  if (loop.kind == VLoop::kTail) {
    if (dynamic) L(exits_[id]);
    return;
  }
  if (loop.kind == VLoop::kScalar) move_addresses(id, 1);
  bool once = !dynamic && (loop.kind == VLoop::kScalar ? loop.end == 1 : loop.end - position_ == loop.step);
  add_number(place, loop.step);
  if (!once) {
    if (dynamic && loop.kind != VLoop::kScalar) {
      // Another whole step must fit.
      load_place(rax, place);
      add(rax, static_cast<uint32_t>(loop.step));
      cmp(rax, end_word(loop.dim));
      jle(labels_[id]);
    } else {
      Reg64 counter = word_register(place, rax);
      if (dynamic) {
        cmp(counter, end_word(loop.dim));
      } else if (fits32(loop.end)) {
        cmp(counter, static_cast<uint32_t>(loop.end));
      } else {
        mov(rdx, static_cast<uint64_t>(loop.end));
        cmp(counter, rdx);
      }
      jl(labels_[id]);
    }
  }
  // The split loop, when scalar, is the outermost: nothing uses its pointers afterwards.
  if (loop.kind == VLoop::kScalar && !is_split(loop.dim)) move_addresses(id, -loop.end);
  if (dynamic) L(exits_[id]);
  else if (loop.kind != VLoop::kScalar) position_ = loop.end;
}

void Emitter::inst(const VInst& i) {
  switch (i.op) {
    case VOp::k_vbegin: return vector_begin();
    case VOp::k_loop: return begin_loop(static_cast<int>(i.imm));
    case VOp::k_endloop: return end_loop(static_cast<int>(i.imm));
    case VOp::k_load: return load(i);
    case VOp::k_store: return store(i);
    case VOp::k_store_lane: return store_lane(i);
    case VOp::k_call: return helper_call(i);
    case VOp::k_fixup: return fixup(i);
    default: return arithmetic(i);
  }
}

void Emitter::helper_call(const VInst& i) {
  Xmm a = in_xmm(i.src[0], i.lane, s1_);
  vmovups(ptr[rsp + buffer_], a);
  if (i.src[1] != kNoValue) {
    Xmm b = in_xmm(i.src[1], i.lane, s1_);
    vmovups(ptr[rsp + argument_b_], b);
    lea(rdx, ptr[rsp + argument_b_]);
  } else {
    xor_(edx, edx);
  }
  lea(rdi, ptr[rsp + result_]);
  lea(rsi, ptr[rsp + buffer_]);
  mov(ecx, static_cast<uint32_t>(code_.lanes));
  mov(rax, static_cast<uint64_t>(i.imm));
  vzeroupper();
  call(rax);
  Xmm d = destination(i);
  vmovups(d, ptr[rsp + result_]);
  done(i, d);
}

void Emitter::fixup(const VInst& i) {
  Xmm mask = in_xmm(i.src[2], i.lane, s1_);
  if (avx512_) {
    // A 512-bit mask has no move to a general register but through an opmask.
    if (lane_bytes(i.lane) == 4) vpmovd2m(k1, mask);
    else vpmovq2m(k1, mask);
    kmovw(eax, k1);
  } else if (lane_bytes(i.lane) == 4) {
    vmovmskps(rax, mask);
  } else {
    vmovmskpd(rax, mask);
  }
  Xmm d = destination(i);
  load_value(d, i.src[0]);
  cold_.push_back({i, {}, {}});
  test(eax, eax);
  jnz(cold_.back().entry);
  L(cold_.back().back);
  done(i, d);
}

void Emitter::out_of_line() {
  int vector_size = code_.vector_bytes;
  for (Cold& cold : cold_) {
    const VInst& i = cold.inst;
    L(cold.entry);
    Xmm x = in_xmm(i.src[1], i.lane, s1_);
    vmovups(ptr[rsp + buffer_], x);
    int words = save_ + (s1_ + 1) * vector_size;
    for (int reg = 0; reg < s1_; ++reg) vmovups(ptr[rsp + save_ + reg * vector_size], vector(reg, vector_size));
    for (size_t k = 0; k < std::size(kVolatileRegisters); ++k) mov(word(words + 8 * static_cast<int>(k)), Reg64(kVolatileRegisters[k]));
    lea(rdi, ptr[rsp + result_]);
    lea(rsi, ptr[rsp + buffer_]);
    xor_(edx, edx);
    mov(ecx, static_cast<uint32_t>(code_.lanes));
    mov(rax, static_cast<uint64_t>(i.imm));
    vzeroupper();
    call(rax);
    for (int reg = 0; reg < s1_; ++reg) vmovups(vector(reg, vector_size), ptr[rsp + save_ + reg * vector_size]);
    for (size_t k = 0; k < std::size(kVolatileRegisters); ++k) mov(Reg64(kVolatileRegisters[k]), word(words + 8 * static_cast<int>(k)));
    Xmm d = destination(i), s = scratch1(i.lane);
    load_value(s, i.src[2]);
    vandnps(d, s, d);
    vandps(s, s, ptr[rsp + result_]);
    vorps(d, d, s);
    jmp(cold.back);
  }
}

int Emitter::constant_offset(const void* data, size_t size) {
  for (size_t at = 0; at + size <= pool_.size(); at += size)
    if (std::memcmp(&pool_[at], data, size) == 0) return static_cast<int>(at);
  int offset = static_cast<int>(pool_.size());
  const uint8_t* bytes = static_cast<const uint8_t*>(data);
  pool_.insert(pool_.end(), bytes, bytes + size);
  return offset;
}

Xbyak::Address Emitter::pool(int offset) { return ptr[rip + offset + pool_label_]; }

void Emitter::constants() {
  align(64);
  L(pool_label_);
  for (uint8_t byte : pool_) db(byte);
}

Xbyak::Address Emitter::memory(Value v) { return memory(v, 0, 0); }

Xbyak::Address Emitter::memory(Value v, int offset, int bytes) {
  const Xbyak::AddressFrame& frame = bytes == 16 ? xword : bytes == 32 ? yword : bytes == 64 ? zword : ptr;
  if (is_constant(v)) return frame[rip + (constant_places_[-1 - v] + offset) + pool_label_];
  return frame[rsp + (spills_ + registers_.slot[v] * code_.vector_bytes + offset)];
}

void Emitter::load_value(const Xmm& to, Value v) {
  if (in_register(v)) {
    if (registers_.reg[v] != to.getIdx()) vmovaps(to, Xmm(to.getKind(), registers_.reg[v]));
    return;
  }
  if (is_constant(v) && code_.constants[-1 - v].bits == 0 && !code_.constants[-1 - v].iota && to.getIdx() < 16) {
    Xmm narrow(to.getIdx());
    vxorps(narrow, narrow, narrow);
    return;
  }
  vmovups(to, memory(v));
}

Xbyak::Xmm Emitter::in_xmm(Value v, Lane lane, int scratch) {
  if (in_register(v)) return sized(lane, registers_.reg[v]);
  Xmm to = sized(lane, scratch);
  load_value(to, v);
  return to;
}

void Emitter::done(const VInst& i, const Xmm& from) {
  if (!in_register(i.dst)) vmovups(memory(i.dst), from);
}

base::Status emit_code(const VCode& code, const Registers& registers, bool avx512, EmittedCode* emitted) {
  // Not initialised: pages that no kernel reaches are never touched.
  thread_local std::unique_ptr<uint8_t[]> buffer(new uint8_t[kMaxCodeBytes]);
  try {
    Emitter emitter(code, registers, avx512, buffer.get(), kMaxCodeBytes);
    if (!emitter.run(emitted)) return base::Status::failure(emitter.error());
  } catch (const Xbyak::Error& error) {
    return base::Status::failure(std::string("assembler: ") + error.what());
  }
  return base::Status();
}

}  // namespace dynvm::codegen
