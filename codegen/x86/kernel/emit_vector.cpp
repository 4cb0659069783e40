// The emitter: arithmetic on vectors. See emitter.h. Tests: tests/kernel/op_test.cpp.
#include <cstring>

#include "codegen/x86/kernel/emitter.h"

namespace dynvm::codegen {

namespace {

bool commutes(VOp op) {
  return op == VOp::k_add || op == VOp::k_mul || op == VOp::k_and || op == VOp::k_or || op == VOp::k_xor || op == VOp::k_cmpeq;
}

}  // namespace

void Emitter::arithmetic(const VInst& original) {
  VInst i = original;
  if (commutes(i.op) && !in_register(i.src[0]) && in_register(i.src[1])) std::swap(i.src[0], i.src[1]);
  bool single = i.lane == Lane::kF32, floating = is_float_lane(i.lane), four = lane_bytes(i.lane) == 4;
  auto binary = [&](auto f) {
    Xmm d = destination(i), a = in_xmm(i.src[0], i.lane, s1_);
    with_source(i.src[1], i.lane, [&](const Operand& b) { f(d, a, b); });
    done(i, d);
  };
  auto unary = [&](auto f) {
    Xmm d = destination(i);
    with_source(i.src[0], i.lane, [&](const Operand& a) { f(d, a); });
    done(i, d);
  };
  switch (i.op) {
    case VOp::k_mov: {
      Xmm d = destination(i);
      load_value(d, i.src[0]);
      return done(i, d);
    }
    case VOp::k_add:
      return binary([&](auto& d, auto& a, auto& b) { floating ? single ? vaddps(d, a, b) : vaddpd(d, a, b) : four ? vpaddd(d, a, b) : vpaddq(d, a, b); });
    case VOp::k_sub:
      return binary([&](auto& d, auto& a, auto& b) { floating ? single ? vsubps(d, a, b) : vsubpd(d, a, b) : four ? vpsubd(d, a, b) : vpsubq(d, a, b); });
    case VOp::k_mul:
      return binary([&](auto& d, auto& a, auto& b) { floating ? single ? vmulps(d, a, b) : vmulpd(d, a, b) : vpmulld(d, a, b); });
    case VOp::k_mul64: return multiply64(i);
    case VOp::k_div:
      return binary([&](auto& d, auto& a, auto& b) { single ? vdivps(d, a, b) : vdivpd(d, a, b); });
    case VOp::k_sqrt:
      return unary([&](auto& d, auto& a) { single ? vsqrtps(d, a) : vsqrtpd(d, a); });
    case VOp::k_fma: return fused(i, false);
    case VOp::k_fnma: return fused(i, true);
    case VOp::k_min:
      return binary([&](auto& d, auto& a, auto& b) { floating ? single ? vminps(d, a, b) : vminpd(d, a, b) : vpminsd(d, a, b); });
    case VOp::k_max:
      return binary([&](auto& d, auto& a, auto& b) { floating ? single ? vmaxps(d, a, b) : vmaxpd(d, a, b) : vpmaxsd(d, a, b); });
    case VOp::k_round: {
      uint8_t mode = static_cast<uint8_t>(8 | i.imm);  // no precision exception
      return unary([&](auto& d, auto& a) {
        if (avx512_) single ? vrndscaleps(d, a, mode) : vrndscalepd(d, a, mode);
        else single ? vroundps(d, a, mode) : vroundpd(d, a, mode);
      });
    }
    case VOp::k_cmp: return compare_float(i);
    case VOp::k_and:
      return binary([&](auto& d, auto& a, auto& b) { floating ? vandps(d, a, b) : avx512_ ? vpandq(d, a, b) : vpand(d, a, b); });
    case VOp::k_or:
      return binary([&](auto& d, auto& a, auto& b) { floating ? vorps(d, a, b) : avx512_ ? vporq(d, a, b) : vpor(d, a, b); });
    case VOp::k_xor:
      return binary([&](auto& d, auto& a, auto& b) { floating ? vxorps(d, a, b) : avx512_ ? vpxorq(d, a, b) : vpxor(d, a, b); });
    case VOp::k_andn:
      return binary([&](auto& d, auto& a, auto& b) { floating ? vandnps(d, a, b) : avx512_ ? vpandnq(d, a, b) : vpandn(d, a, b); });
    case VOp::k_cmpgt: return compare_int(i, false);
    case VOp::k_cmpeq: return compare_int(i, true);
    case VOp::k_shl:
    case VOp::k_shr:
    case VOp::k_sar: return shift(i);
    case VOp::k_shlv:
    case VOp::k_shrv:
    case VOp::k_sarv: return shift_variable(i);
    case VOp::k_blend: return blend(i);
    case VOp::k_swap: return swap_lanes(i);
    case VOp::k_scalar: return scalar(i);
    case VOp::k_index: return index(i);
    case VOp::k_tail_mask: return tail_mask(i);
    default: return convert(i);
  }
}

// d = a * b + c (or c - a * b). The destination is also a source: which form serves depends on which source it shares a register with.
void Emitter::fused(const VInst& i, bool negate) {
  Xmm d = destination(i);
  Value a = i.src[0], b = i.src[1], c = i.src[2];
  bool single = i.lane == Lane::kF32;
  auto same = [&](Value v) { return in_register(v) && registers_.reg[v] == d.getIdx(); };
  auto form231 = [&](const Xmm& x, const Operand& y) {
    if (negate) single ? vfnmadd231ps(d, x, y) : vfnmadd231pd(d, x, y);
    else single ? vfmadd231ps(d, x, y) : vfmadd231pd(d, x, y);
  };
  auto form213 = [&](const Xmm& x, const Operand& y) {
    if (negate) single ? vfnmadd213ps(d, x, y) : vfnmadd213pd(d, x, y);
    else single ? vfmadd213ps(d, x, y) : vfmadd213pd(d, x, y);
  };
  auto form132 = [&](const Xmm& x, const Operand& y) {
    if (negate) single ? vfnmadd132ps(d, x, y) : vfnmadd132pd(d, x, y);
    else single ? vfmadd132ps(d, x, y) : vfmadd132pd(d, x, y);
  };
  if (same(c)) {
    if (!in_register(a)) std::swap(a, b);
    Xmm x = in_xmm(a, i.lane, s1_);
    with_source(b, i.lane, [&](const Operand& y) { form231(x, y); });
    return done(i, d);
  }
  if (!same(a) && same(b)) std::swap(a, b);
  if (!same(a)) {
    // Where c is a register and a product with memory is wanted, accumulating saves nothing over copying a factor: copy the one in memory.
    if (in_register(a) && !in_register(b)) std::swap(a, b);
    load_value(d, a);
  }
  // d = d * b + c
  if (in_register(c) && !in_register(b)) {
    Xmm z = sized(i.lane, registers_.reg[c]);
    with_source(b, i.lane, [&](const Operand& y) { form132(z, y); });
  } else {
    Xmm x = in_xmm(b, i.lane, s1_);
    with_source(c, i.lane, [&](const Operand& y) { form213(x, y); });
  }
  done(i, d);
}

void Emitter::blend(const VInst& i) {
  Xmm d = destination(i);
  bool four = lane_bytes(i.lane) == 4;
  Xmm mask = in_xmm(i.src[0], i.lane, s1_);
  if (avx512_) four ? vpmovd2m(k1, mask) : vpmovq2m(k1, mask);
  Xmm no = in_xmm(i.src[2], i.lane, avx512_ ? s1_ : s0_);
  with_source(i.src[1], i.lane, [&](const Operand& yes) {
    if (avx512_) four ? vblendmps(d | k1, no, yes) : vblendmpd(d | k1, no, yes);
    else four ? vblendvps(d, no, yes, mask) : vblendvpd(d, no, yes, mask);
  });
  done(i, d);
}

void Emitter::compare_float(const VInst& i) {
  Xmm d = destination(i), a = in_xmm(i.src[0], i.lane, s1_);
  bool single = i.lane == Lane::kF32;
  uint8_t predicate = static_cast<uint8_t>(i.imm);
  with_source(i.src[1], i.lane, [&](const Operand& b) {
    if (avx512_) {
      single ? vcmpps(k1, a, b, predicate) : vcmppd(k1, a, b, predicate);
      single ? vpmovm2d(d, k1) : vpmovm2q(d, k1);
    } else {
      single ? vcmpps(d, a, b, predicate) : vcmppd(d, a, b, predicate);
    }
  });
  done(i, d);
}

void Emitter::compare_int(const VInst& i, bool equal) {
  Xmm d = destination(i), a = in_xmm(i.src[0], i.lane, s1_);
  bool four = lane_bytes(i.lane) == 4;
  with_source(i.src[1], i.lane, [&](const Operand& b) {
    if (avx512_) {
      if (equal) four ? vpcmpeqd(k1, a, b) : vpcmpeqq(k1, a, b);
      else four ? vpcmpgtd(k1, a, b) : vpcmpgtq(k1, a, b);
      four ? vpmovm2d(d, k1) : vpmovm2q(d, k1);
    } else if (equal) {
      four ? vpcmpeqd(d, a, b) : vpcmpeqq(d, a, b);
    } else {
      four ? vpcmpgtd(d, a, b) : vpcmpgtq(d, a, b);
    }
  });
  done(i, d);
}

void Emitter::shift(const VInst& i) {
  Xmm d = destination(i), a = in_xmm(i.src[0], i.lane, s1_);
  bool four = lane_bytes(i.lane) == 4;
  uint8_t count = static_cast<uint8_t>(i.imm);
  switch (i.op) {
    case VOp::k_shl: four ? vpslld(d, a, count) : vpsllq(d, a, count); break;
    case VOp::k_shr: four ? vpsrld(d, a, count) : vpsrlq(d, a, count); break;
    default: vpsrad(d, a, count);
  }
  done(i, d);
}

void Emitter::shift_variable(const VInst& i) {
  Xmm d = destination(i), a = in_xmm(i.src[0], i.lane, s1_);
  bool four = lane_bytes(i.lane) == 4;
  with_source(i.src[1], i.lane, [&](const Operand& b) {
    switch (i.op) {
      case VOp::k_shlv: four ? vpsllvd(d, a, b) : vpsllvq(d, a, b); break;
      case VOp::k_shrv: four ? vpsrlvd(d, a, b) : vpsrlvq(d, a, b); break;
      default: vpsravd(d, a, b);
    }
  });
  done(i, d);
}

// (high a * low b + low a * high b) << 32 + low a * low b.
void Emitter::multiply64(const VInst& i) {
  Xmm d = destination(i), x = scratch0(i.lane), y = scratch1(i.lane);
  if (avx512_) {
    Xmm a = in_xmm(i.src[0], i.lane, s1_);
    with_source(i.src[1], i.lane, [&](const Operand& b) { vpmullq(d, a, b); });
    return done(i, d);
  }
  load_value(x, i.src[0]);
  vpsrlq(x, x, 32);
  with_source(i.src[1], i.lane, [&](const Operand& b) { vpmuludq(x, x, b); });
  load_value(y, i.src[1]);
  vpsrlq(y, y, 32);
  with_source(i.src[0], i.lane, [&](const Operand& a) { vpmuludq(y, y, a); });
  vpaddq(x, x, y);
  vpsllq(x, x, 32);
  load_value(y, i.src[0]);
  with_source(i.src[1], i.lane, [&](const Operand& b) { vpmuludq(y, y, b); });
  vpaddq(d, x, y);
  done(i, d);
}

// Lanes change their width: the source has the lane count of the result in lanes of its own width.
void Emitter::convert(const VInst& i) {
  Xmm d = destination(i);
  auto from = [&](Lane lane, auto f) {
    Value v = i.src[0];
    int bytes = lane_vector_bytes(lane_bytes(lane));
    if (in_register(v)) f(static_cast<const Operand&>(vector(registers_.reg[v], bytes)));
    else f(static_cast<const Operand&>(memory(v, 0, bytes)));
  };
  switch (i.op) {
    case VOp::k_cvt_f32_i32: from(Lane::kF32, [&](auto& a) { vcvtps2dq(d, a); }); break;
    case VOp::k_cvtt_f32_i32: from(Lane::kF32, [&](auto& a) { vcvttps2dq(d, a); }); break;
    case VOp::k_cvt_i32_f32: from(Lane::kI32, [&](auto& a) { vcvtdq2ps(d, a); }); break;
    case VOp::k_cvt_f32_f64: {
      // The source may be a whole vector of which the lower half is meant.
      int half = lane_vector_bytes(8) / 2;
      if (in_register(i.src[0])) vcvtps2pd(d, vector(registers_.reg[i.src[0]], half));
      else vcvtps2pd(d, memory(i.src[0], 0, half));
      break;
    }
    case VOp::k_cvt_f32_f64_high: {
      int half = code_.vector_bytes / 2;
      if (!in_register(i.src[0])) {
        vcvtps2pd(d, memory(i.src[0], half, half));
      } else if (avx512_) {
        Xbyak::Ymm s(s1_);
        vextractf32x8(s, Xbyak::Zmm(registers_.reg[i.src[0]]), 1);
        vcvtps2pd(d, s);
      } else {
        Xmm s(s1_);
        vextractf128(s, Xbyak::Ymm(registers_.reg[i.src[0]]), 1);
        vcvtps2pd(d, s);
      }
      break;
    }
    case VOp::k_cvt_f64_f32: {
      int bytes = lane_vector_bytes(8);
      Xmm narrow = vector(d.getIdx(), bytes / 2);
      if (in_register(i.src[0])) vcvtpd2ps(narrow, vector(registers_.reg[i.src[0]], bytes));
      else vcvtpd2ps(narrow, memory(i.src[0], 0, bytes));
      break;
    }
    case VOp::k_join_f64_f32: {
      int bytes = code_.vector_bytes;
      Xmm low = vector(s0_, bytes / 2), high = vector(s1_, bytes / 2);
      for (int k = 0; k < 2; ++k) {
        if (in_register(i.src[k])) vcvtpd2ps(k ? high : low, vector(registers_.reg[i.src[k]], bytes));
        else vcvtpd2ps(k ? high : low, memory(i.src[k], 0, bytes));
      }
      if (avx512_) vinsertf32x8(Xbyak::Zmm(d.getIdx()), Xbyak::Zmm(s0_), Xbyak::Ymm(s1_), 1);
      else vinsertf128(Xbyak::Ymm(d.getIdx()), Xbyak::Ymm(s0_), Xmm(s1_), 1);
      break;
    }
    case VOp::k_cvt_i32_f64: from(Lane::kI32, [&](auto& a) { vcvtdq2pd(d, a); }); break;
    case VOp::k_cvtt_f64_i32: from(Lane::kF64, [&](auto& a) { vcvttpd2dq(d, a); }); break;
    case VOp::k_widen: from(Lane::kI32, [&](auto& a) { vpmovsxdq(d, a); }); break;
    case VOp::k_narrow: {
      Xmm a = in_xmm(i.src[0], Lane::kI64, s1_);
      if (avx512_) {
        vpmovqd(d, a);
      } else {
        Xmm high(s1_), low(a.getIdx());
        vextracti128(high, Xbyak::Ymm(a.getIdx()), 1);
        if (a.getIdx() == s1_) {
          // The source was loaded into the scratch register: its lower half is still in memory.
          vmovups(Xmm(s0_), memory(i.src[0]));
          low = Xmm(s0_);
        }
        vshufps(d, low, high, 0x88);
      }
      break;
    }
    case VOp::k_round_f16: {
      Xmm a = in_xmm(i.src[0], Lane::kF32, s1_);
      Xmm half = vector(s0_, lane_vector_bytes(4) / 2);
      vcvtps2ph(half, a, 0);
      vcvtph2ps(d, half);
      break;
    }
    case VOp::k_splat: {
      Value v = i.src[0];
      bool four = lane_bytes(i.lane) == 4;
      if (in_register(v)) four ? vbroadcastss(d, Xmm(registers_.reg[v])) : vbroadcastsd(as_ymm(d), Xmm(registers_.reg[v]));
      else four ? vbroadcastss(d, memory(v)) : vbroadcastsd(as_ymm(d), memory(v));
      break;
    }
    default: error_ = std::string("no code for vector instruction ") + vop_info(i.op).name;
  }
  done(i, d);
}

void Emitter::swap_lanes(const VInst& i) {
  Xmm d = destination(i), a = in_xmm(i.src[0], i.lane, s1_);
  int64_t bytes = i.imm * lane_bytes(i.lane);
  switch (bytes) {
    case 4: vpshufd(d, a, 0xb1); break;
    case 8: vpshufd(d, a, 0x4e); break;
    case 16:
      if (!avx512_) vperm2f128(Xbyak::Ymm(d.getIdx()), Xbyak::Ymm(a.getIdx()), Xbyak::Ymm(a.getIdx()), 1);
      else vshufi64x2(as_ymm(d), as_ymm(a), a, d.isZMM() ? 0xb1 : 1);
      break;
    default: vshufi64x2(as_ymm(d), as_ymm(a), a, 0x4e);
  }
  done(i, d);
}

// imm: parameter * 4 + 2 (to a bool, as 0 or 1) + 1 (the parameter is a double).
void Emitter::scalar(const VInst& i) {
  Xmm d = destination(i), s(s0_);
  bool from_float = i.imm & 1, to_bool = i.imm & 2;
  mov(rax, word(scalars_word_));
  Address parameter = qword[rax + static_cast<int>(i.imm >> 2) * 8];
  if (to_bool) {
    xor_(ecx, ecx);
    if (from_float) {
      vxorps(s, s, s);
      xor_(edx, edx);
      vucomisd(s, parameter);
      setne(cl);
      setp(dl);
      or_(ecx, edx);
    } else {
      cmp(parameter, 0);
      setne(cl);
    }
    vmovd(s, ecx);
    vpbroadcastd(d, s);
    return done(i, d);
  }
  switch (i.lane) {
    case Lane::kF32:
      vxorps(s, s, s);
      if (from_float) {
        vmovsd(s, parameter);
        vcvtsd2ss(s, s, s);
      } else {
        vcvtsi2ss(s, s, parameter);
      }
      vbroadcastss(d, s);
      break;
    case Lane::kF64:
      vxorps(s, s, s);
      if (from_float) vmovsd(s, parameter);
      else vcvtsi2sd(s, s, parameter);
      vbroadcastsd(as_ymm(d), s);
      break;
    default:
      if (from_float) {
        vmovsd(s, parameter);
        vcvttsd2si(rcx, s);
      } else {
        mov(rcx, parameter);
      }
      if (i.lane == Lane::kI32) {
        vmovd(s, ecx);
        vpbroadcastd(d, s);
      } else {
        vmovq(s, rcx);
        vpbroadcastq(d, s);
      }
  }
  done(i, d);
}

void Emitter::index(const VInst& i) {
  const VIndex& expression = code_.indexes[i.imm];
  Xmm d = destination(i), s(s0_);
  bool first = true;
  for (const VIndex::Term& term : expression.terms) {
    load_place(rcx, counters_[term.dim]);
    if (term.factor != 1) {
      mov(rdx, static_cast<uint64_t>(term.factor));
      imul(rcx, rdx);
    }
    if (first) mov(rax, rcx);
    else add(rax, rcx);
    first = false;
  }
  if (first) xor_(eax, eax);
  vmovq(s, rax);
  vpbroadcastq(d, s);
  if (expression.lane_factor != 0 || expression.constant != 0) {
    std::vector<int64_t> lanes(static_cast<size_t>(code_.vector_bytes) / 8);
    for (size_t k = 0; k < lanes.size(); ++k) lanes[k] = static_cast<int64_t>(k) * expression.lane_factor + expression.constant;
    vpaddq(d, d, pool(constant_offset(lanes.data(), lanes.size() * 8)));
  }
  done(i, d);
}

// A window into ones followed by zeros.
void Emitter::tail_mask(const VInst& i) {
  Xmm d = destination(i);
  int bytes = lane_bytes(i.lane), span = lane_vector_bytes(bytes);
  std::vector<uint8_t> window(static_cast<size_t>(2 * code_.vector_bytes), 0);
  std::memset(window.data() + code_.vector_bytes - span, 0xff, static_cast<size_t>(span));
  int offset = constant_offset(window.data(), window.size()) + code_.vector_bytes;
  mov(rax, word(left_word_));
  neg(rax);
  lea(rcx, pool(offset));
  vmovups(d, ptr[rcx + rax * bytes]);
  done(i, d);
}

}  // namespace dynvm::codegen
