// The emitter: loads and stores. See emitter.h. Tests: tests/kernel/op_test.cpp, fuzz_test.cpp.
//
// Whole contiguous vectors are read and written directly. A tail of 4- or 8-byte elements uses masked moves, which touch only their lanes;
// every other partial access goes element by element through the frame's buffer.
#include "codegen/x86/kernel/emitter.h"

namespace dynvm::codegen {

using ir::DType;

Xbyak::RegExp Emitter::address(const VAccess& access) {
  Reg64 base = word_register(bases_[access.address], rax);
  RegExp at = base;
  if (symbolic(access.displacement)) {
    load_number(rcx, access.displacement);
    add(rcx, base);
    mov(rax, rcx);
    at = RegExp(rax);
  } else {
    at = at + static_cast<int>(access.displacement);
  }
  if (!access.indexed) return at;
  const Place& counter = counters_[code_.vector_dim];
  if (access.kind == VAccess::kContiguous) return at + word_register(counter, rcx) * static_cast<int>(access.stride);
  if (symbolic(access.stride)) {
    load_number(rcx, access.stride);
    if (counter.reg >= 0) imul(rcx, Reg64(counter.reg));
    else imul(rcx, word(counter.offset));
    return at + rcx;
  }
  if (counter.reg >= 0) imul(rcx, Reg64(counter.reg), static_cast<int>(access.stride));
  else imul(rcx, word(counter.offset), static_cast<int>(access.stride));
  return at + rcx;
}

void Emitter::load_from(const Xmm& to, DType dtype, const Operand& from) {
  switch (dtype) {
    case DType::kF16: vcvtph2ps(to, from); break;
    case DType::kBF16:
      vpmovzxwd(to, from);
      vpslld(to, to, 16);
      break;
    case DType::kI16: vpmovsxwd(to, from); break;
    case DType::kI8: vpmovsxbd(to, from); break;
    case DType::kU8: vpmovzxbd(to, from); break;
    case DType::kBool: {
      vpmovzxbd(to, from);
      std::vector<uint8_t> zeros(static_cast<size_t>(code_.vector_bytes), 0);
      Address zero = pool(constant_offset(zeros.data(), zeros.size()));
      if (avx512_) {
        vpcmpgtd(k1, to, zero);
        vpmovm2d(to, k1);
      } else {
        vpcmpgtd(to, to, zero);
      }
      break;
    }
    default: vmovups(to, from);
  }
}

void Emitter::load_broadcast(const Xmm& to, const VAccess& access) {
  RegExp at = address(access);
  switch (access.dtype) {
    case DType::kF32:
    case DType::kI32: vbroadcastss(to, dword[at]); return;
    case DType::kF64:
    case DType::kI64: vbroadcastsd(as_ymm(to), qword[at]); return;
    case DType::kBF16:
      movzx(eax, Xbyak::util::word[at]);
      shl(eax, 16);
      break;
    case DType::kF16:
      movzx(eax, Xbyak::util::word[at]);
      vmovd(Xmm(to.getIdx()), eax);
      vcvtph2ps(Xmm(to.getIdx()), Xmm(to.getIdx()));
      vbroadcastss(to, Xmm(to.getIdx()));
      return;
    case DType::kI16: movsx(eax, Xbyak::util::word[at]); break;
    case DType::kI8: movsx(eax, byte[at]); break;
    case DType::kU8: movzx(eax, byte[at]); break;
    default:
      xor_(edx, edx);
      cmp(byte[at], 0);
      setne(dl);
      mov(eax, edx);
      neg(eax);
  }
  vmovd(Xmm(to.getIdx()), eax);
  vpbroadcastd(to, Xmm(to.getIdx()));
}

void Emitter::copy_element(int bytes, const RegExp& to, const RegExp& from) {
  switch (bytes) {
    case 8:
      mov(rdx, qword[from]);
      mov(qword[to], rdx);
      break;
    case 4:
      mov(edx, dword[from]);
      mov(dword[to], edx);
      break;
    case 2:
      movzx(edx, Xbyak::util::word[from]);
      mov(Xbyak::util::word[to], dx);
      break;
    default:
      movzx(edx, byte[from]);
      mov(byte[to], dl);
  }
}

// rax to the next lane's element.
void Emitter::next_lane(const VAccess& access) {
  if (!symbolic(access.stride)) {
    add(rax, static_cast<uint32_t>(access.stride));
    return;
  }
  load_number(rdx, access.stride);
  add(rax, rdx);
}

// The elements that are left (or, of a whole vector, all lanes) to the buffer.
void Emitter::copy_in(const VAccess& access, RegExp at) {
  int bytes = ir::dtype_size(access.dtype);
  lea(rax, ptr[at]);
  xor_(ecx, ecx);
  Xbyak::Label again;
  L(again);
  copy_element(bytes, rsp + rcx * bytes + buffer_, RegExp(rax));
  next_lane(access);
  inc(rcx);
  if (access.partial) cmp(rcx, word(left_word_));
  else cmp(rcx, static_cast<uint32_t>(code_.lanes));
  jl(again);
}

void Emitter::copy_out(const VAccess& access, RegExp at) {
  int bytes = ir::dtype_size(access.dtype);
  if (!access.partial && !symbolic(access.stride)) {
    for (int lane = 0; lane < code_.lanes; ++lane) copy_element(bytes, at + static_cast<int>(access.stride * lane), rsp + (buffer_ + lane * bytes));
    return;
  }
  lea(rax, ptr[at]);
  xor_(ecx, ecx);
  Xbyak::Label again;
  L(again);
  copy_element(bytes, RegExp(rax), rsp + rcx * bytes + buffer_);
  next_lane(access);
  inc(rcx);
  if (access.partial) cmp(rcx, word(left_word_));
  else cmp(rcx, static_cast<uint32_t>(code_.lanes));
  jl(again);
}

// A whole vector of strided elements, inserted one by one.
void Emitter::load_lanes(const Xmm& to, const VAccess& access, RegExp at) {
  int bytes = ir::dtype_size(access.dtype), per_half = 16 / bytes;
  auto half = [&](const Xmm& x, int first, int count) {
    for (int k = 0; k < count; ++k) {
      RegExp from = at + static_cast<int>(access.stride * (first + k));
      switch (bytes) {
        case 8: k ? vpinsrq(x, x, qword[from], 1) : vmovq(x, qword[from]); break;
        case 4: k ? vpinsrd(x, x, dword[from], static_cast<uint8_t>(k)) : vmovd(x, dword[from]); break;
        case 2:
          if (k == 0) vpxor(x, x, x);
          vpinsrw(x, x, Xbyak::util::word[from], static_cast<uint8_t>(k));
          break;
        default:
          if (k == 0) vpxor(x, x, x);
          vpinsrb(x, x, byte[from], static_cast<uint8_t>(k));
      }
    }
  };
  Xmm low(to.getIdx());
  if (code_.lanes <= per_half) {
    half(low, 0, code_.lanes);
  } else {
    Xmm high(s1_);
    half(low, 0, per_half);
    half(high, per_half, code_.lanes - per_half);
    vinserti128(Xbyak::Ymm(to.getIdx()), Xbyak::Ymm(to.getIdx()), high, 1);
  }
  if (bytes < 4) load_from(to, access.dtype, low);
}

void Emitter::load(const VInst& i) {
  const VAccess& access = code_.accesses[i.imm];
  Xmm d = destination(i);
  if (access.kind == VAccess::kBroadcast) {
    load_broadcast(d, access);
    return done(i, d);
  }
  RegExp at = address(access);
  bool wide = ir::dtype_size(access.dtype) >= 4;
  if (access.kind == VAccess::kContiguous && !access.partial) {
    load_from(d, access.dtype, ptr[at]);
  } else if (access.kind == VAccess::kContiguous && wide) {
    Xmm mask = in_xmm(i.src[0], i.lane, s1_);
    bool four = lane_bytes(i.lane) == 4;
    if (avx512_) {
      four ? vpmovd2m(k1, mask) : vpmovq2m(k1, mask);
      four ? vmovups(d | k1 | T_z, ptr[at]) : vmovupd(d | k1 | T_z, ptr[at]);
    } else {
      four ? vmaskmovps(d, mask, ptr[at]) : vmaskmovpd(d, mask, ptr[at]);
    }
  } else if (!access.partial && !avx512_ && !symbolic(access.stride)) {
    load_lanes(d, access, at);
  } else {
    copy_in(access, at);
    load_from(d, access.dtype, ptr[rsp + buffer_]);
  }
  done(i, d);
}

Xbyak::Xmm Emitter::packed(DType dtype, Value v) {
  Lane lane = dtype == DType::kF64 ? Lane::kF64 : dtype == DType::kI64 ? Lane::kI64 : Lane::kI32;
  Xmm value = in_xmm(v, lane, s1_);
  int bytes = ir::dtype_size(dtype);
  if (bytes >= 4) return value;
  Xmm s = sized(Lane::kI32, s0_);
  int span = lane_vector_bytes(4);
  if (dtype == DType::kF16) {
    Xmm half = vector(s0_, span / 2);
    vcvtps2ph(half, value, 0);
    return half;
  }
  if (dtype == DType::kBool) vpsrld(s, value, 31), value = s;
  if (dtype == DType::kBF16) vpsrld(s, value, 16), value = s;
  if (avx512_) {
    Xmm narrow = vector(s0_, span * bytes / 4);
    bytes == 1 ? vpmovdb(narrow, value) : vpmovdw(narrow, value);
    return narrow;
  }
  // Each half's low bytes to its bottom, then the halves together.
  uint8_t pattern[32];
  for (int k = 0; k < 32; ++k) {
    int element = (k & 15) / bytes;
    pattern[k] = static_cast<uint8_t>(element < 4 ? element * 4 + (k & 15) % bytes : 0x80);
  }
  vpshufb(s, value, pool(constant_offset(pattern, sizeof pattern)));
  Xmm low(s0_), high(s1_);
  if (span == 32) {
    vextracti128(high, Xbyak::Ymm(s0_), 1);
    bytes == 1 ? vpunpckldq(low, low, high) : vpunpcklqdq(low, low, high);
  }
  return low;
}

void Emitter::store(const VInst& i) {
  const VAccess& access = code_.accesses[i.imm];
  int bytes = ir::dtype_size(access.dtype), size = bytes * code_.lanes;
  Xmm value = packed(access.dtype, i.src[0]);
  RegExp at = address(access);
  auto whole = [&](const RegExp& to) {
    Xmm x = Xmm(size >= 64 ? Operand::ZMM : size >= 32 ? Operand::YMM : Operand::XMM, value.getIdx());
    if (size >= 16) vmovups(ptr[to], x);
    else if (size == 8) vmovq(qword[to], x);
    else vmovd(dword[to], x);
  };
  if (access.kind == VAccess::kContiguous && !access.partial) return whole(at);
  if (access.kind == VAccess::kContiguous && bytes >= 4) {
    bool four = lane_bytes(i.lane) == 4;
    // A constant value has taken s1.
    Xmm mask = in_xmm(i.src[1], i.lane, s0_);
    if (avx512_) {
      four ? vpmovd2m(k1, mask) : vpmovq2m(k1, mask);
      four ? vmovups(ptr[at] | k1, value) : vmovupd(ptr[at] | k1, value);
    } else {
      four ? vmaskmovps(ptr[at], mask, value) : vmaskmovpd(ptr[at], mask, value);
    }
    return;
  }
  whole(rsp + buffer_);
  copy_out(access, at);
}

void Emitter::store_lane(const VInst& i) {
  const VAccess& access = code_.accesses[i.imm];
  Xmm value = Xmm(packed(access.dtype, i.src[0]).getIdx());
  RegExp at = address(access);
  switch (ir::dtype_size(access.dtype)) {
    case 8: vmovsd(qword[at], value); break;
    case 4: vmovss(dword[at], value); break;
    case 2: vpextrw(Xbyak::util::word[at], value, 0); break;
    default: vpextrb(byte[at], value, 0);
  }
}

}  // namespace dynvm::codegen
