// A fused kernel: scalar expressions over one iteration space, with strided loads and stores and optional reductions.
//
// Input: built by the fuse pass or parsed (text.h). Output: compiled by codegen/x86/kernel, interpreted by eval.h.
//
// The iteration space is the box sizes[0] x sizes[1] x ..., row-major; no dims at all means one point. `nodes` is one SSA list for the
// whole kernel. A subset of the dims (`reduce_dims`, a bit mask) may be *reduced*: a node `reduce_sum(a)` is the sum of `a` over all of
// them, one value for each point of the remaining ("kept") dims, and other nodes use that value like any other. So
//
//     m = reduce_max(x);  e = exp(sub(x, m));  s = reduce_sum(e);  store y <- div(e, s)
//
// is softmax, and mean is `div(reduce_sum(x), n)`. Attention is of queries m and keys n, with q, k, v and out as long as the last dim, n reduced:
//
//     s = mul(dot(q, k), scale);  store out <- reduce_attend(s, v)
//
// with whatever comes between the two for each pair (m, n). Dropout with probability q of keeping is
//
//     x = load o0;  r = draw(seed, offset, o1);  store o1 <- mul(mul(x, cast(lt(r, q))), scale)
//
// What goes along a reduced dim and has a value for each of its points is a *scan*: cumsum is
//
//     store y <- scan_sum(x)
//
// A random number depends on the place of its element alone, which strides say: so a draw names an operand, whose memory it does not touch, and whatever
// reshapes and merges dims does it for draws too.
//
// What lies where data says is read by load_at: of a table of rows of n elements, with an index for each row of the result,
//
//     i = within(load o0, rows);  x = load_at o1, mul(i, n), true;  store o2 <- x
//
// where o1 walks along a row. A place that there is not stops the device (within), as eager's kernels for GPUs do. A load_at may reach all of its pointer's memory, so nothing there is stored to. No scan says where, of neither loads nor stores.
//
// What is stored where data says is a store with a place of its own: `store_at o2 <- x, at, holds`, and `add_at`, which adds to what is there, in any order of the points.
// It happens at each point of the reduced dims if anything of it depends on one of them. Of several points that store to one element, any may be the last.
//
// The compiler derives the passes over the reduced dims: values that a later pass
// needs again are computed again, from memory as it was before the kernel.
//
//     value              depends on                                     computed
//     full               a reduced dim (through an operand, an index or a scan)     at each point, a scan's in their order
//     kept               kept dims only, or reductions                  once for each kept point
//
// A store writes at every point of its operand: once for each kept point if the operand's stride is 0 in each reduced dim (of size
// other than 1), else at each point of the whole space. A store with stride 0 in reduced dims needs a kept value.
//
// Sizes, strides and offsets may have *symbols* in them, whose values each run gives (symbols.h).
//
// Invariants (verify_kernel)
//  - Operands of nodes precede them; dtypes follow kops.def; each operand has one stride per dim.
//  - Loads see memory as it was before the kernel: an operand that is stored to and one that is loaded from through the same pointer
//    are the same elements in the same places (identical geometry and dtype, in-place) or do not overlap. Different pointer indexes
//    never overlap, except that the caller may pass the same address for two operands of identical geometry, none of them a load_at's. With
//    symbols in them, two geometries on one pointer are the same, or they are taken to overlap; a load_at, and a store with a place of its own,
//    overlaps with all others on its pointer.
//  - A stored operand has no two points on one element, except the reduced dims (stride 0) and dims of size 1, and stores with a place of their own.
//
// Tests: tests/kernel/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.h"
#include "runtime/base/status.h"

namespace dynvm::ir {

enum class KOp : uint8_t {
#define X(name, arity, typing, sentence) k_##name,
#include "ir/kernel/kops.def"
#undef X
  kCount,
};

struct KOpInfo {
  std::string_view name;
  int8_t arity;
  char typing;  // as in kops.def
  std::string_view sentence;
};
const KOpInfo& kop_info(KOp op);
// False, and *op unchanged, where no op has that name.
bool kop_from_name(std::string_view name, KOp* op);
constexpr bool reads_memory(KOp op) { return op == KOp::k_load || op == KOp::k_load_at; }
constexpr bool is_scan(KOp op) { return op >= KOp::k_scan_sum && op <= KOp::k_scan_logaddexp; }
constexpr bool is_arg_reduce(KOp op) { return op == KOp::k_reduce_argmax || op == KOp::k_reduce_argmin; }
constexpr bool is_reduce(KOp op) { return op >= KOp::k_reduce_sum && op < KOp::kCount; }

inline constexpr int kMaxKernelDims = 16;

// One value. Use the Kernel::add_* functions to make them.
struct KernelNode {
  KOp op = KOp::k_const;
  DType dtype = DType::kF32;
  int32_t a = -1, b = -1, c = -1;  // operands: indexes of earlier nodes, -1 where the op has fewer
  int32_t operand = -1;            // load, load_at, draw: index into Kernel::operands
  union {
    double f;       // const of a floating dtype
    int64_t i = 0;  // const of another dtype; scalar: parameter index; index: dim; draw: DrawForm::packed
  };
  friend bool operator==(const KernelNode& x, const KernelNode& y) {
    return x.op == y.op && x.dtype == y.dtype && x.a == y.a && x.b == y.b && x.c == y.c && x.operand == y.operand && x.i == y.i;
  }
};

// Memory seen through the iteration space: element (i0, i1, ...) is at base[pointer] + (offset + sum of ik * strides[k]) * dtype_size.
struct KernelOperand {
  DType dtype = DType::kF32;
  std::vector<int64_t> strides;  // elements, one per dim, 0 = broadcast
  int64_t offset = 0;            // elements, added to the base pointer
  int32_t pointer = 0;           // index into the run-time pointer array
  friend bool operator==(const KernelOperand&, const KernelOperand&) = default;
};

struct KernelStore {
  int32_t operand;  // index into Kernel::operands; its dtype is the node's
  int32_t node;
  int32_t at = -1, holds = -1;  // nodes, as load_at's: so many elements behind, where that holds; -1: at the operand's place
  bool adds = false;            // to what is there: f32, f64, i32, i64

  bool has_place() const { return at >= 0; }
  friend bool operator==(const KernelStore&, const KernelStore&) = default;
};

struct Kernel {
  std::string name;                  // for dumps and reports
  std::vector<int64_t> sizes;        // one per dim, at most kMaxKernelDims
  uint32_t reduce_dims = 0;          // bit k: dim k is reduced; 0 where there is no reduction
  std::vector<KernelOperand> operands;
  std::vector<KernelNode> nodes;
  std::vector<KernelStore> stores;   // in order
  std::vector<DType> scalar_types;   // one per run-time scalar: kF64 (the bits of a double) or kI64
  std::vector<int64_t> symbols;      // codes of what sizes, strides and offsets are made of that only a run tells (symbols.h)
  int32_t num_pointers = 0;          // length of the pointer array that operands index (may have unused entries)

  int num_scalars() const { return static_cast<int>(scalar_types.size()); }
  int64_t num_points() const;        // product of sizes

  // Building. Each returns the new index; nodes that are equal to an existing one are shared (local value numbering).
  int32_t add_operand(KernelOperand operand);
  int32_t add_node(const KernelNode& node);
  int32_t add_load(int32_t operand);                       // dtype from the operand
  int32_t add_load_at(int32_t operand, int32_t at, int32_t holds);  // dtype from the operand
  int32_t add_const(DType dtype, double value);            // integers and bool: value converted
  int32_t add_const_int(DType dtype, int64_t value);       // exact for i64
  int32_t add_scalar(DType dtype, int32_t parameter);
  int32_t add_index(int32_t dim);
  int32_t add_draw(int32_t seed, int32_t offset, int32_t operand, int64_t form);
  int32_t add_cast(DType dtype, int32_t a);                // `a` itself where it has that dtype; small whole numbers stay constants
  // Any other op: dtype by its typing rule (bool for comparisons, i64 for argmax, the dtype of b for where, else of a).
  int32_t add(KOp op, int32_t a, int32_t b = -1, int32_t c = -1);
  void add_store(int32_t operand, int32_t node) { stores.push_back({operand, node}); }
  void add_store_at(int32_t operand, int32_t node, int32_t at, int32_t holds, bool adds) { stores.push_back({operand, node, at, holds, adds}); }
  void drop_unused_nodes();                                // those that no store needs; the others keep their order

  friend bool operator==(const Kernel&, const Kernel&) = default;
};

// The kernel with its pointers numbered as they come: those of a network's layers, which differ in their memory alone, are equal. pointers: what each number was.
Kernel numbered(Kernel kernel, std::vector<int32_t>* pointers);

// Has it a node of that kind?
bool has_op(const Kernel& kernel, KOp op);

bool has_scan(const Kernel& kernel);

// The dims that the node's value depends on, one bit per dim, for all nodes: a reduction depends on the kept dims that its operand
// depends on.
std::vector<uint32_t> node_dims(const Kernel& kernel);
// The same for the nodes behind those that *dims has, of a kernel that grows.
void add_node_dims(const Kernel& kernel, std::vector<uint32_t>* dims);

// For all nodes, behind how many passes over the reduced dims they can be computed; a reduction: behind its own.
std::vector<int> node_passes(const Kernel& kernel);

// Whether a store through one operand could change an element that the other one reads elsewhere in the space: false where the two
// are disjoint or of identical geometry. Conservative.
bool may_conflict(const Kernel& kernel, const KernelOperand& store, const KernelOperand& load);
// The same of a store and what a node of that kind loads from an operand, and of two stores.
bool may_conflict(const Kernel& kernel, const KernelStore& store, const KernelOperand& stored, KOp read, const KernelOperand& from);
bool may_conflict(const Kernel& kernel, const KernelStore& a, const KernelOperand& to_a, const KernelStore& b, const KernelOperand& to_b);

// Does it store at each point of the reduced dims, not once for each kept point? dims: node_dims.
bool is_full_store(const Kernel& kernel, const std::vector<uint32_t>& dims, const KernelStore& store);

// Is it attention: has it a reduce_attend? Such a kernel has a form of its own, for GPUs alone, which no other operation joins.
bool attends(const Kernel& kernel);

// Has it a store with a place of its own?
bool stores_at_places(const Kernel& kernel);

// Has it an operation that no compiler for CPUs knows?
bool for_gpus(const Kernel& kernel);

// Checks all invariants above; the message names the node, operand or store.
base::Status verify_kernel(const Kernel& kernel);

}  // namespace dynvm::ir
