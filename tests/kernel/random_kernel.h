// Random kernels, with memory for them: shapes with sizes 0 and 1 and tails, strides, broadcasts, in-place stores, all dtypes, reductions in several
// passes, loads and stores at computed places and scans where asked for; and the same with symbols for some numbers. All ops in them are exact, so that results must agree to the bit with the evaluator's.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <random>
#include <vector>

#include "ir/kernel/symbols.h"
#include "support.h"

namespace dynvm::test {

using ir::DType;
using ir::Kernel;
using ir::KernelNode;
using ir::KernelOperand;
using ir::KOp;

class KernelMaker {
 public:
  // for_gpus: loads and stores where data says, and scans, which kernels for CPUs have not.
  explicit KernelMaker(uint64_t seed, bool for_gpus = false) : for_gpus_(for_gpus), random_(seed * 0x9e3779b97f4a7c15u + 1) {}

  Kernel kernel;
  std::vector<Buffer> buffers;
  std::vector<int64_t> scalars;

  void make() {
    kernel.name = "fuzz";
    make_space();
    make_dtypes();
    make_scalars();
    int loads = 1 + pick(4);
    for (int i = 0; i < loads; ++i) kernel.add_load(make_operand(dtype(), false, false));
    for (int i = 0; i < static_cast<int>(kernel.scalar_types.size()); ++i) kernel.add_scalar(dtype(), i);
    int nodes = 2 + pick(20);
    for (int i = 0; i < nodes; ++i) make_node();
    int stores = 1 + pick(3);
    for (int i = 0; i < stores; ++i) make_store();
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int percent) { return pick(100) < percent; }

  void make_space() {
    static const int64_t kSizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100};
    int dims = pick(5);
    int64_t points = 1;
    for (int d = 0; d < dims; ++d) {
      int64_t size = chance(2) ? 0 : kSizes[pick(15)];
      if (points * size > 6000) size = 2;
      points *= std::max<int64_t>(size, 1);
      kernel.sizes.push_back(size);
    }
    if (dims && chance(45)) kernel.reduce_dims = static_cast<uint32_t>(pick(1 << dims));
  }

  void make_dtypes() {
    static const DType kAll[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI64, DType::kI32, DType::kI16, DType::kI8, DType::kU8, DType::kBool};
    // Mostly kernels of a few dtypes, as real ones.
    int count = 1 + pick(3);
    for (int i = 0; i < count; ++i) dtypes_.push_back(chance(40) ? DType::kF32 : kAll[pick(10)]);
  }
  DType dtype() { return dtypes_[static_cast<size_t>(pick(static_cast<int>(dtypes_.size())))]; }

  void make_scalars() {
    for (int i = pick(3); i > 0; --i) {
      bool floating = chance(60);
      kernel.scalar_types.push_back(floating ? DType::kF64 : DType::kI64);
      double value = pick(17) - 8;
      scalars.push_back(floating ? std::bit_cast<int64_t>(value / 2) : static_cast<int64_t>(value));
    }
  }

  // An operand with its own memory. `kept`: does not move along reduced dims. Outputs have no broadcast dims.
  int32_t make_operand(DType type, bool output, bool kept) {
    size_t dims = kernel.sizes.size();
    std::vector<size_t> order(dims);
    for (size_t d = 0; d < dims; ++d) order[d] = d;
    if (chance(30)) std::shuffle(order.begin(), order.end(), random_);
    KernelOperand operand{type, std::vector<int64_t>(dims, 0), 0, static_cast<int32_t>(buffers.size())};
    int64_t step = chance(20) ? 1 + pick(3) : 1;
    bool reversed = chance(5);
    int64_t low = 0, high = 0;
    for (size_t k = dims; k-- > 0;) {
      size_t d = order[k];
      if (kept && (kernel.reduce_dims >> d & 1)) continue;
      if (!output && chance(20)) continue;
      operand.strides[d] = reversed && chance(50) ? -step : step;
      int64_t extent = std::max<int64_t>(kernel.sizes[d] - 1, 0);
      (operand.strides[d] < 0 ? low : high) += operand.strides[d] * extent;
      step = step * std::max<int64_t>(kernel.sizes[d], 1) + (chance(15) ? pick(4) : 0);
    }
    operand.offset = -low + (chance(20) ? pick(5) : 0);
    Buffer buffer{type, std::vector<uint8_t>(static_cast<size_t>((operand.offset + high + 1 + (chance(20) ? pick(3) : 0)) * ir::dtype_size(type)))};
    // Specials among the inputs of kernels without reductions: sums must stay exact.
    fill(&buffer, random_, kernel.reduce_dims == 0 && chance(30));
    buffers.push_back(std::move(buffer));
    return kernel.add_operand(operand);
  }

  int32_t any() { return pick(static_cast<int>(kernel.nodes.size())); }
  int32_t as(DType type, int32_t n) {
    DType from = kernel.nodes[n].dtype;
    if (from == type) return n;
    if (ir::is_floating(from) && ir::is_integer(type)) {
      // Out of range is unspecified.
      n = kernel.add(KOp::k_where, kernel.add(KOp::k_isnan, n), kernel.add_const(from, 0), n);
      double high = type == DType::kU8 ? 200 : 100, low = type == DType::kU8 ? 0 : -100;
      n = kernel.add(KOp::k_max, kernel.add(KOp::k_min, n, kernel.add_const(from, high)), kernel.add_const(from, low));
    }
    return kernel.add_cast(type, n);
  }

  void make_node() {
    static const KOp kFloatBinary[] = {KOp::k_add, KOp::k_sub, KOp::k_mul, KOp::k_div, KOp::k_truncdiv, KOp::k_floordiv,
                                       KOp::k_mod, KOp::k_fmod, KOp::k_min, KOp::k_max, KOp::k_copysign};
    static const KOp kFloatUnary[] = {KOp::k_neg, KOp::k_abs, KOp::k_sign, KOp::k_sqrt, KOp::k_reciprocal, KOp::k_floor, KOp::k_ceil, KOp::k_round, KOp::k_trunc};
    static const KOp kIntBinary[] = {KOp::k_add, KOp::k_sub, KOp::k_mul, KOp::k_truncdiv, KOp::k_floordiv, KOp::k_mod, KOp::k_fmod,
                                     KOp::k_min, KOp::k_max, KOp::k_pow, KOp::k_and, KOp::k_or, KOp::k_xor, KOp::k_shl, KOp::k_shr};
    static const KOp kIntUnary[] = {KOp::k_neg, KOp::k_abs, KOp::k_sign, KOp::k_not};
    static const KOp kCompare[] = {KOp::k_eq, KOp::k_ne, KOp::k_lt, KOp::k_le, KOp::k_gt, KOp::k_ge};
    static const KOp kBool[] = {KOp::k_and, KOp::k_or, KOp::k_xor, KOp::k_min, KOp::k_max};
    static const KOp kTests[] = {KOp::k_isnan, KOp::k_isinf, KOp::k_isfinite};
    DType type = dtype();
    bool floating = ir::is_floating(type);
    if (for_gpus_ && chance(12)) return make_load_at(type);
    int what = pick(100);
    if (what < 8) {
      kernel.add_const(type, (pick(33) - 16) / 4.0);
    } else if (what < 12 && !kernel.sizes.empty()) {
      as(type, kernel.add_index(pick(static_cast<int>(kernel.sizes.size()))));
    } else if (what < 30 && kernel.reduce_dims) {
      make_reduction(type);
    } else if (what < 40) {
      DType other = dtype();
      kernel.add(KOp::k_where, as(DType::kBool, any()), as(other, any()), as(other, any()));
    } else if (what < 52) {
      kernel.add(kCompare[pick(6)], as(type, any()), as(type, any()));
    } else if (what < 57) {
      as(type, any());
    } else if (what < 60 && floating) {
      kernel.add(kTests[pick(3)], as(type, any()));
    } else if (ir::is_bool(type)) {
      if (chance(20)) kernel.add(KOp::k_not, as(type, any()));
      else kernel.add(kBool[pick(5)], as(type, any()), as(type, any()));
    } else if (what < 72) {
      kernel.add(floating ? kFloatUnary[pick(9)] : kIntUnary[pick(4)], as(type, any()));
    } else if (floating && what < 75 && type == DType::kF32) {
      kernel.add(KOp::k_fma, as(type, any()), as(type, any()), as(type, any()));
    } else {
      kernel.add(floating ? kFloatBinary[pick(11)] : kIntBinary[pick(15)], as(type, any()), as(type, any()));
    }
  }

  // Somewhere in the memory behind the place of its operand, often at a multiple of a vector.
  void make_load_at(DType type) {
    const int64_t count = 1 + pick(12), step = chance(50) ? 8 : 1;
    const int32_t operand = make_operand(type, false, false);
    for (int64_t stride : kernel.operands[static_cast<size_t>(operand)].strides)
      if (stride < 0) return;  // other numbers for symbols would move it beyond that
    buffers.back().bytes.resize(buffers.back().bytes.size() + static_cast<size_t>((count - 1) * step * ir::dtype_size(type)));
    fill(&buffers.back(), random_, false);
    const size_t before = kernel.nodes.size();
    const int32_t bound = kernel.add_const_int(DType::kI64, count);
    int32_t index = kernel.add(KOp::k_mod, as(DType::kI64, any()), bound);
    if (chance(30)) index = kernel.add(KOp::k_within, index, bound);
    const int32_t at = kernel.add(KOp::k_mul, index, kernel.add_const_int(DType::kI64, step));
    kernel.add_load_at(operand, at, chance(50) ? kernel.add_const_int(DType::kBool, 1) : as(DType::kBool, any()));
    if (!ir::verify_kernel(kernel).ok()) kernel.nodes.resize(before);  // a scan would say where
  }

  // Small integers of a floating type: their sums are exact in any order. A NaN would be exact too but hides everything else.
  int32_t small(DType type, int32_t a) {
    if (!ir::is_floating(type)) return a;
    a = kernel.add(KOp::k_where, kernel.add(KOp::k_isnan, a), kernel.add_const(type, 1), a);
    return kernel.add(KOp::k_floor, kernel.add(KOp::k_max, kernel.add(KOp::k_min, a, kernel.add_const(type, 8)), kernel.add_const(type, -8)));
  }

  void make_reduction(DType type) {
    static const KOp kOps[] = {KOp::k_reduce_sum, KOp::k_reduce_sum, KOp::k_reduce_prod, KOp::k_reduce_max, KOp::k_reduce_min,
                               KOp::k_reduce_any, KOp::k_reduce_all, KOp::k_reduce_argmax, KOp::k_reduce_argmin};
    KOp op = kOps[pick(9)];
    if (for_gpus_ && std::has_single_bit(kernel.reduce_dims) && chance(40)) op = chance(70) ? KOp::k_scan_sum : KOp::k_scan_prod;
    char typing = ir::kop_info(op).typing;
    if (typing == 'Q') type = DType::kBool;
    else if (ir::is_bool(type)) type = DType::kI32;
    if (ir::is_reduced_floating(type)) type = DType::kF32;
    int32_t a = as(type, any());
    if (op == KOp::k_reduce_sum || op == KOp::k_scan_sum) {
      a = small(type, a);
    } else if (ir::is_floating(type) && (op == KOp::k_reduce_prod || op == KOp::k_scan_prod)) {
      a = kernel.add(KOp::k_sign, a);
    }
    KernelNode node;
    node.op = op;
    node.dtype = typing == 'G' ? DType::kI64 : type;
    node.a = a;
    kernel.add_node(node);
  }

  // To memory of its own: what is added anywhere, what is stored inside of a part of it that belongs to the point.
  void make_store_at() {
    int32_t n = any();
    const bool adds = chance(50);
    if (adds) {
      static const DType kTypes[] = {DType::kF32, DType::kF64, DType::kI32, DType::kI64};
      const DType type = kTypes[pick(4)];
      n = small(type, as(type, n));
    }
    const DType type = kernel.nodes[n].dtype;
    const int64_t count = 1 + pick(6), step = chance(50) ? 8 : 1, span = count * step;
    const int32_t at = kernel.add(KOp::k_mul, kernel.add(KOp::k_mod, as(DType::kI64, any()), kernel.add_const_int(DType::kI64, count)), kernel.add_const_int(DType::kI64, step));
    const int32_t holds = chance(50) ? kernel.add_const_int(DType::kBool, 1) : as(DType::kBool, any());
    const std::vector<uint32_t> dims = ir::node_dims(kernel);
    const bool full = (dims[static_cast<size_t>(n)] | dims[static_cast<size_t>(at)] | dims[static_cast<size_t>(holds)]) & kernel.reduce_dims;
    const int32_t operand = make_operand(type, !adds, !full && chance(80));
    KernelOperand& place = kernel.operands[static_cast<size_t>(operand)];
    for (int64_t stride : place.strides)
      if (stride < 0) return;
    const int64_t part = adds ? 1 : span;
    for (int64_t& stride : place.strides) stride *= part;
    buffers.back().bytes.assign(static_cast<size_t>(static_cast<int64_t>(buffers.back().bytes.size()) * part + span * ir::dtype_size(type)), 0);
    kernel.add_store_at(operand, n, at, holds, adds);
    if (!ir::verify_kernel(kernel).ok()) kernel.stores.pop_back();
  }

  void make_store() {
    if (for_gpus_ && chance(25)) return make_store_at();
    int32_t n = chance(50) ? static_cast<int32_t>(kernel.nodes.size()) - 1 : any();
    bool full = ir::node_dims(kernel)[n] & kernel.reduce_dims;
    DType type = kernel.nodes[n].dtype;
    if (chance(25)) {
      // In place over something loaded, where the verifier lets us.
      for (size_t o = 0; o < kernel.operands.size(); ++o) {
        if (kernel.operands[o].dtype != type) continue;
        kernel.add_store(static_cast<int32_t>(o), n);
        if (ir::verify_kernel(kernel).ok()) return;
        kernel.stores.pop_back();
      }
    }
    kernel.add_store(make_operand(type, true, !full && chance(80)), n);
    // A full store of a kept value is fine too; what the verifier refuses is tried again without the place.
    if (!ir::verify_kernel(kernel).ok()) kernel.stores.pop_back();
  }

  bool for_gpus_;
  std::mt19937_64 random_;
  std::vector<DType> dtypes_;
};

// A kernel of constants with some of its numbers made of symbols, which have these values there.
class Symbolic {
 public:
  Symbolic(const Kernel& kernel, uint64_t seed) : kernel(kernel), random_(seed * 0x9e3779b97f4a7c15u + 5) {
    for (int64_t& size : this->kernel.sizes) symbolise(&size, 60);
    for (KernelOperand& operand : this->kernel.operands) {
      for (int64_t& stride : operand.strides) symbolise(&stride, 90);
      symbolise(&operand.offset, 40);
    }
  }
  std::vector<int64_t> smaller_values() {
    std::vector<int64_t> now = values;
    for (int64_t& value : now) value -= static_cast<int64_t>(random_() % static_cast<uint64_t>(value));
    return now;
  }
  Kernel kernel;
  std::vector<int64_t> values;

 private:
  void symbolise(int64_t* number, uint64_t percent) {
    if (std::abs(*number) < 2 || random_() % 100 >= percent) return;
    for (size_t k = 0; k < values.size(); ++k) {
      if (*number % values[k] != 0) continue;
      *number = *number / values[k] * kernel.symbols[k];
      return;
    }
    if (*number < 0 || kernel.symbols.size() == 6) return;
    values.push_back(*number);
    kernel.symbols.push_back(*number = codes_.next());
  }
  ir::SymbolCodes codes_;
  std::mt19937_64 random_;
};

// Smaller values of symbols may move an operand with a negative stride out of its memory.
inline bool lies_inside(const Kernel& kernel, const std::vector<Buffer>& buffers) {
  return std::all_of(kernel.operands.begin(), kernel.operands.end(), [&](const KernelOperand& operand) {
    int64_t first = operand.offset, last = operand.offset;
    for (size_t k = 0; k < kernel.sizes.size(); ++k) (operand.strides[k] < 0 ? first : last) += (kernel.sizes[k] - 1) * operand.strides[k];
    return first >= 0 && last < static_cast<int64_t>(buffers[static_cast<size_t>(operand.pointer)].count());
  });
}

}  // namespace dynvm::test
