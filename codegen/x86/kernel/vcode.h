// Vector code: a linear list of vector instructions on virtual registers, with structured loops.
//
// Input: made by lower.h from a kernel and its loop nest, with the expansions of math.h. Output: registers are assigned by registers.h
// and x86 is written by emit.h.
//
// A value is a number: 0 and above a virtual register, -1 - k constant k of the pool. A virtual register holds L
// lanes of 4 or 8 bytes; L is one number for the whole kernel (all values of a point sit in the same lane). Only accumulators are
// written more than once, always before the loop first and then inside it.
// Tests: tests/kernel/compile_test.cpp (through whole kernels).
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "ir/dtype.h"

namespace dynvm::codegen {

enum class VOp : uint8_t {
#define X(name, sources, clobber, sentence) k_##name,
#include "codegen/x86/kernel/vops.def"
#undef X
  kCount,
};

struct VOpInfo {
  int8_t sources;
  bool early_clobber;
  const char* name;
};
inline constexpr VOpInfo kVOpInfos[] = {
#define X(name, sources, clobber, sentence) {sources, #clobber[0] == 'E', #name},
#include "codegen/x86/kernel/vops.def"
#undef X
};
constexpr const VOpInfo& vop_info(VOp op) { return kVOpInfos[static_cast<int>(op)]; }

enum class Lane : uint8_t { kF32, kF64, kI32, kI64 };
constexpr int lane_bytes(Lane lane) { return lane == Lane::kF32 || lane == Lane::kI32 ? 4 : 8; }
constexpr bool is_float_lane(Lane lane) { return lane <= Lane::kF64; }

using Value = int32_t;
inline constexpr Value kNoValue = INT32_MIN;
constexpr bool is_register(Value v) { return v >= 0; }
constexpr bool is_constant(Value v) { return v < 0 && v != kNoValue; }

// Helpers compute `lanes` lanes from memory to memory.
using LaneHelper = void (*)(void* out, const void* a, const void* b, int lanes);

struct VInst {
  VOp op;
  Lane lane;       // of the operation (for conversions: of the result)
  Value dst = kNoValue;
  Value src[3] = {kNoValue, kNoValue, kNoValue};
  int64_t imm = 0;
};

struct VConstant {
  int bytes;       // 4 or 8: repeated over the vector
  uint64_t bits;
  bool iota;       // 0, 1, 2, ... i64 lanes instead
};

// One way in which the kernel touches memory.
struct VAccess {
  enum Kind : uint8_t { kContiguous, kStrided, kBroadcast };
  Kind kind;
  ir::DType dtype;
  int32_t address;      // index into VCode::addresses
  int64_t displacement; // bytes
  int64_t stride;       // bytes from lane to lane
  bool indexed;         // the vector loop's index is added
  bool partial;         // only the tail's lanes
};

// A pointer that moves with the scalar loops: operands with the same pointer, offset and strides share it.
struct VAddress {
  int32_t pointer;
  int64_t offset;                  // bytes
  std::vector<int64_t> strides;    // bytes per dim of the nest
  friend bool operator==(const VAddress&, const VAddress&) = default;
};

struct VLoop {
  // Scalar loops go over a whole dim (or its part, if it is the split one); the three vector loops follow one another: unrolled
  // whole vectors, single whole vectors, and once the lanes that are left.
  enum Kind : uint8_t { kScalar, kUnrolled, kSingle, kTail };
  Kind kind;
  int32_t dim;
  int64_t step;   // points per iteration
  int64_t end;    // static bound where the dim is not the split one
};

// sum of term.factor * (index of dim) + lane * lane_factor + constant
struct VIndex {
  struct Term {
    int32_t dim;
    int64_t factor;
  };
  std::vector<Term> terms;
  int64_t lane_factor = 0, constant = 0;
};

struct VCode {
  int lanes = 8;
  int vector_bytes = 32;
  std::vector<VInst> insts;
  std::vector<uint8_t> register_bytes;  // lane bytes (4 or 8) of each virtual register
  std::vector<VConstant> constants;
  std::vector<VAccess> accesses;
  std::vector<VAddress> addresses;
  std::vector<VLoop> loops;
  std::vector<VIndex> indexes;
  std::vector<int64_t> sizes;           // of the nest's dims
  std::vector<int64_t> symbols;         // the kernel's: codes that sizes, strides, offsets and displacements may be made of
  int32_t vector_dim = -1;              // -1: none
  int32_t split_dim = -1;               // its bounds are run-time arguments; -1: none
  bool has_calls = false;
};

// Appends instructions; the vocabulary in which math.cpp and lower.cpp are written.
class VBuilder {
 public:
  explicit VBuilder(VCode* code) : code_(*code) {}

  Value fresh(int bytes) {
    code_.register_bytes.push_back(static_cast<uint8_t>(bytes));
    return static_cast<Value>(code_.register_bytes.size()) - 1;
  }

  Value emit(VOp op, Lane lane, Value a = kNoValue, Value b = kNoValue, Value c = kNoValue, int64_t imm = 0) {
    Value dst = fresh(lane_bytes(lane));
    emit_to(dst, op, lane, a, b, c, imm);
    return dst;
  }
  void emit_to(Value dst, VOp op, Lane lane, Value a = kNoValue, Value b = kNoValue, Value c = kNoValue, int64_t imm = 0) {
    code_.insts.push_back({op, lane, dst, {a, b, c}, imm});
  }

  Value constant_bits(int bytes, uint64_t bits, bool iota = false) {
    for (size_t i = 0; i < code_.constants.size(); ++i) {
      const VConstant& c = code_.constants[i];
      if (c.bytes == bytes && c.bits == bits && c.iota == iota) return -static_cast<Value>(i) - 1;
    }
    code_.constants.push_back({bytes, bits, iota});
    return -static_cast<Value>(code_.constants.size());
  }
  Value f32(float value) { return constant_bits(4, std::bit_cast<uint32_t>(value)); }
  Value f64(double value) { return constant_bits(8, std::bit_cast<uint64_t>(value)); }
  Value i32(int32_t value) { return constant_bits(4, static_cast<uint32_t>(value)); }
  Value i64(int64_t value) { return constant_bits(8, static_cast<uint64_t>(value)); }
  // A floating constant of the lane type.
  Value real(Lane lane, double value) { return lane == Lane::kF32 ? f32(static_cast<float>(value)) : f64(value); }

  Value add(Lane t, Value a, Value b) { return emit(VOp::k_add, t, a, b); }
  Value sub(Lane t, Value a, Value b) { return emit(VOp::k_sub, t, a, b); }
  Value mul(Lane t, Value a, Value b) { return emit(t == Lane::kI64 ? VOp::k_mul64 : VOp::k_mul, t, a, b); }
  Value div(Lane t, Value a, Value b) { return emit(VOp::k_div, t, a, b); }
  Value fma(Lane t, Value a, Value b, Value c) { return emit(VOp::k_fma, t, a, b, c); }
  Value fnma(Lane t, Value a, Value b, Value c) { return emit(VOp::k_fnma, t, a, b, c); }
  // For integers: signed. For floats x86's: b where either is NaN.
  Value min(Lane t, Value a, Value b) { return t == Lane::kI64 ? blend(t, cmpgt(t, a, b), b, a) : emit(VOp::k_min, t, a, b); }
  Value max(Lane t, Value a, Value b) { return t == Lane::kI64 ? blend(t, cmpgt(t, a, b), a, b) : emit(VOp::k_max, t, a, b); }
  Value bit_and(Lane t, Value a, Value b) { return emit(VOp::k_and, t, a, b); }
  Value bit_or(Lane t, Value a, Value b) { return emit(VOp::k_or, t, a, b); }
  Value bit_xor(Lane t, Value a, Value b) { return emit(VOp::k_xor, t, a, b); }
  Value bit_andn(Lane t, Value a, Value b) { return emit(VOp::k_andn, t, a, b); }  // ~a & b
  Value cmp(Lane t, Value a, Value b, int predicate) { return emit(VOp::k_cmp, t, a, b, kNoValue, predicate); }
  Value cmpgt(Lane t, Value a, Value b) { return emit(VOp::k_cmpgt, t, a, b); }
  Value cmpeq(Lane t, Value a, Value b) { return emit(VOp::k_cmpeq, t, a, b); }
  Value shl(Lane t, Value a, int count) { return emit(VOp::k_shl, t, a, kNoValue, kNoValue, count); }
  Value shr(Lane t, Value a, int count) { return emit(VOp::k_shr, t, a, kNoValue, kNoValue, count); }
  Value sar(Value a, int count) { return emit(VOp::k_sar, Lane::kI32, a, kNoValue, kNoValue, count); }
  Value blend(Lane t, Value mask, Value yes, Value no) { return emit(VOp::k_blend, t, mask, yes, no); }
  Value round(Lane t, Value a, int mode) { return emit(VOp::k_round, t, a, kNoValue, kNoValue, mode); }

  VCode& code() { return code_; }

 private:
  VCode& code_;
};

// VCMPPS predicates, quiet.
enum Compare { kCmpEq = 0x00, kCmpUnordered = 0x03, kCmpNe = 0x04, kCmpLt = 0x11, kCmpLe = 0x12, kCmpGe = 0x1d, kCmpGt = 0x1e };

}  // namespace dynvm::codegen
