// Emits tiles with xbyak. See tile.h. Tests: tests/kernel/matmul_test.cpp.
#include "codegen/x86/matmul/tile.h"

#include "runtime/base/code_map.h"

#include <xbyak/xbyak.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace dynvm::codegen {
namespace {

constexpr int kUnroll = 4;  // values of k in a round of the loop
constexpr size_t kCodeBytes = 8192;

// A row of ones and one of zeros: a load that begins `partial` before the middle is the mask of a partial vector.
alignas(64) constexpr int64_t kMask64[8] = {-1, -1, -1, -1, 0, 0, 0, 0};
alignas(64) constexpr int32_t kMask32[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

class TileCode : public Xbyak::CodeGenerator {
 public:
  TileCode(const TileForm& form, bool avx512)
      : Xbyak::CodeGenerator(kCodeBytes, Xbyak::DontSetProtectRWE), form_(form), avx512_(avx512), size_(form.wide ? 8 : 4) {
    emit();
    setProtectModeRE();
    name_ = base::CodeName(getCode(), getSize(), "matmul tile of " + std::to_string(form.rows) + " x " + std::to_string(form.vectors) + " vectors");
  }

 private:
  base::CodeName name_;
  // The registers: a's rows stand in groups of four, each with a pointer of its own.
  const Xbyak::Reg64 call_ = rdi, inner_ = rcx, a_step_ = rax, a_step3_ = rdx, b_ = rsi, b_step_ = rbx, b_step3_ = rbp;
  const Xbyak::Reg64 groups_[4] = {r8, r9, r10, r11};

  int width() const { return avx512_ ? 64 : 32; }
  Xbyak::Ymm vector(int index) const { return avx512_ ? Xbyak::Ymm(Xbyak::Zmm(index)) : Xbyak::Ymm(index); }
  Xbyak::Ymm sum(int row, int v) const { return vector(row * form_.vectors + v); }
  Xbyak::Ymm operand_b(int v) const { return vector(form_.rows * form_.vectors + v); }
  Xbyak::Ymm operand_a() const { return vector(form_.rows * form_.vectors + form_.vectors); }
  Xbyak::Ymm mask() const { return vector(15); }  // AVX2
  bool partial(int v) const { return form_.tail && v == form_.vectors - 1; }
  int groups() const { return form_.a_transposed ? 1 : (form_.rows + 3) / 4; }

  template <typename T>
  Xbyak::Address field(T TileCall::* member) const {
    static const TileCall sample{};
    return ptr[call_ + static_cast<int>(reinterpret_cast<const char*>(&(sample.*member)) - reinterpret_cast<const char*>(&sample))];
  }

  // base + index * (0, 1, 2 or 3) + offset
  Xbyak::Address at(const Xbyak::Reg64& base, int times, const Xbyak::Reg64& step, const Xbyak::Reg64& step3, int offset) const {
    switch (times) {
      case 0: return ptr[base + offset];
      case 1: return ptr[base + step + offset];
      case 2: return ptr[base + step * 2 + offset];
      default: return ptr[base + step3 + offset];
    }
  }

  void load(const Xbyak::Ymm& to, const Xbyak::Address& from, bool masked) {
    if (!masked) {
      vmovups(to, from);
    } else if (avx512_) {
      form_.wide ? vmovupd(to | k1 | T_z, from) : vmovups(to | k1 | T_z, from);
    } else {
      form_.wide ? vmaskmovpd(to, mask(), from) : vmaskmovps(to, mask(), from);
    }
  }
  void store(const Xbyak::Address& to, const Xbyak::Ymm& from, bool masked) {
    if (!masked) {
      vmovups(to, from);
    } else if (avx512_) {
      form_.wide ? vmovupd(to | k1, from) : vmovups(to | k1, from);
    } else {
      form_.wide ? vmaskmovpd(to, mask(), from) : vmaskmovps(to, mask(), from);
    }
  }

  void load_mask() {
    if (avx512_) {
      mov(rcx, field(&TileCall::partial));
      mov(eax, -1);
      bzhi(eax, eax, ecx);
      kmovd(k1, eax);
      return;
    }
    mov(rax, form_.wide ? reinterpret_cast<size_t>(kMask64 + 4) : reinterpret_cast<size_t>(kMask32 + 8));
    mov(rcx, field(&TileCall::partial));
    neg(rcx);
    vmovups(mask(), ptr[rax + rcx * size_]);
  }

  void step(int u) {
    for (int v = 0; v < form_.vectors; ++v) load(operand_b(v), at(b_, u, b_step_, b_step3_, v * width()), partial(v));
    for (int row = 0; row < form_.rows; ++row) {
      const Xbyak::Address from = form_.a_transposed ? at(groups_[0], u, a_step_, a_step3_, row * size_)
                                                     : at(groups_[row / 4], row % 4, a_step_, a_step3_, u * size_);
      form_.wide ? vbroadcastsd(operand_a(), from) : vbroadcastss(operand_a(), from);
      for (int v = 0; v < form_.vectors; ++v)
        form_.wide ? vfmadd231pd(sum(row, v), operand_a(), operand_b(v)) : vfmadd231ps(sum(row, v), operand_a(), operand_b(v));
    }
  }

  void advance(int count) {
    for (int g = 0; g < groups(); ++g) {
      if (!form_.a_transposed) add(groups_[g], count * size_);
      else if (count == kUnroll) lea(groups_[g], ptr[groups_[g] + a_step_ * 4]);
      else add(groups_[g], a_step_);
    }
    if (count == kUnroll) lea(b_, ptr[b_ + b_step_ * 4]);
    else add(b_, b_step_);
  }

  void emit() {
    push(rbx);
    push(rbp);
    if (form_.tail) load_mask();
    mov(a_step_, field(&TileCall::a_step));
    mov(b_step_, field(&TileCall::b_step));
    lea(a_step3_, ptr[a_step_ + a_step_ * 2]);
    lea(b_step3_, ptr[b_step_ + b_step_ * 2]);
    mov(b_, field(&TileCall::b));
    mov(groups_[0], field(&TileCall::a));
    for (int g = 1; g < groups(); ++g) lea(groups_[g], ptr[groups_[g - 1] + a_step_ * 4]);
    mov(inner_, field(&TileCall::inner));
    for (int row = 0; row < form_.rows; ++row)
      for (int v = 0; v < form_.vectors; ++v) avx512_ ? vpxord(sum(row, v), sum(row, v), sum(row, v)) : vxorps(sum(row, v), sum(row, v), sum(row, v));

    Xbyak::Label round, rest, one, done;
    sub(inner_, kUnroll);
    jl(rest, T_NEAR);
    align(32);
    L(round);
    for (int u = 0; u < kUnroll; ++u) step(u);
    advance(kUnroll);
    sub(inner_, kUnroll);
    jge(round, T_NEAR);
    L(rest);
    add(inner_, kUnroll);
    jz(done, T_NEAR);
    L(one);
    step(0);
    advance(1);
    dec(inner_);
    jnz(one, T_NEAR);
    L(done);
    write();
    vzeroupper();
    pop(rbp);
    pop(rbx);
    ret();
  }

  void write() {
    const Xbyak::Reg64 out = rsi, out_step = rax, start = rdx, start_step = rcx;
    mov(out, field(&TileCall::out));
    mov(out_step, field(&TileCall::out_step));
    if (form_.start) {
      mov(start, field(&TileCall::start));
      mov(start_step, field(&TileCall::start_step));
    }
    for (int row = 0; row < form_.rows; ++row) {
      for (int v = 0; v < form_.vectors; ++v) {
        if (form_.start) {
          load(operand_a(), ptr[start + v * width()], partial(v));
          form_.wide ? vaddpd(sum(row, v), sum(row, v), operand_a()) : vaddps(sum(row, v), sum(row, v), operand_a());
        }
        store(ptr[out + v * width()], sum(row, v), partial(v));
      }
      add(out, out_step);
      if (form_.start) add(start, start_step);
    }
  }

  const TileForm form_;
  const bool avx512_;
  const int size_;
};

constexpr int kMaxRows = 14, kMaxVectors = 2;

struct Tiles {
  std::mutex mutex;
  std::vector<std::unique_ptr<TileCode>> code;
  std::atomic<TileFunction> functions[2][2][2][2][2][kMaxRows][kMaxVectors] = {};
};

}  // namespace

// 14 * 2 sums, 2 vectors of b and one element of a leave one of AVX-512's 32 registers; 6 * 2, 2, 1 and the mask fill AVX2's 16.
TileLimits tile_limits(const CpuFeatures& features) { return features.avx512 ? TileLimits{64, 14, 2} : TileLimits{32, 6, 2}; }

TileFunction tile_function(const TileForm& form, const CpuFeatures& features) {
  static auto* tiles = new Tiles;
  if (!features.avx2) return nullptr;
  std::atomic<TileFunction>& place =
      tiles->functions[features.avx512][form.wide][form.a_transposed][form.tail][form.start][form.rows - 1][form.vectors - 1];
  if (TileFunction found = place.load(std::memory_order_acquire)) return found;
  std::lock_guard<std::mutex> guard(tiles->mutex);
  if (TileFunction found = place.load(std::memory_order_acquire)) return found;
  try {
    auto code = std::make_unique<TileCode>(form, features.avx512);
    auto function = code->getCode<TileFunction>();
    tiles->code.push_back(std::move(code));
    place.store(function, std::memory_order_release);
    return function;
  } catch (const Xbyak::Error&) {
    return nullptr;
  }
}

}  // namespace dynvm::codegen
