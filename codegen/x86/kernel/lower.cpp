// From a kernel and its loop nest to vector code. See lower.h. Tests: tests/kernel/op_test.cpp, fuzz_test.cpp.
//
// The shape of the code, for kept loops k0, k1 and reduced loops r0, r1:
//
//     values that depend on no loop
//     for k0: values of k0; for k1 (the vector loop if vertical): the rest of the kept values
//       for each pass: accumulators = identity
//                      for r0: full values of r0; for r1 (the vector loop if horizontal): the rest; accumulate; full stores (last pass)
//                      combine accumulators; kept values that depend on these reductions
//       kept stores
//
// A pass exists for each depth of reductions upon reductions. Full values that several passes need are computed in each. All full
// stores are in the last pass and all kept stores after it, so that no pass loads what this kernel has stored, even where an output is
// the same memory as an input.
#include "codegen/x86/kernel/lower.h"

#include <algorithm>
#include <functional>

#include "codegen/x86/kernel/expressions.h"
#include "codegen/x86/kernel/helpers.h"
#include "codegen/x86/kernel/math.h"
#include "ir/kernel/symbols.h"
#include "runtime/base/heuristics.h"

namespace dynvm::codegen {

namespace {

using ir::DType;
using ir::Kernel;
using ir::KernelNode;
using ir::KernelOperand;
using ir::KernelStore;
using ir::KOp;

// Longest chain of additions to one f32 accumulator, that of ATen's cascade; longer sums are accumulated in f64.
constexpr int64_t kLongestSingleSum = 16;

class Lowerer {
 public:
  Lowerer(const Kernel& kernel, const Nest& nest, int unroll, VCode* code)
      : kernel_(kernel), nest_(nest), code_(*code), builder_(code), expressions_(&builder_), unroll_(unroll) {}

  base::Status run() {
    code_ = VCode();
    code_.lanes = nest_.lanes;
    code_.vector_bytes = nest_.vector_bytes;
    code_.vector_dim = nest_.vector_dim;
    code_.split_dim = nest_.split_dim;
    code_.symbols = kernel_.symbols;
    for (const NestDim& dim : nest_.dims) code_.sizes.push_back(dim.size);
    if (nest_.no_kept_points) return base::Status();
    values_.resize(kernel_.nodes.size());
    find_stages();
    choose_unroll();
    kept_level(0, 1, false);
    open_kept(0, 0, 1, false);
    return error_.empty() ? base::Status() : base::Status::failure("kernel \"" + kernel_.name + "\": " + error_);
  }

 private:
  struct Accumulator {
    int32_t node;                 // the reduction
    enum { kPlain, kWide, kArg } kind;
    std::vector<Value> first;     // one per copy: the accumulator; wide: of the lower lanes; arg: best value
    std::vector<Value> second;    // wide: of the upper lanes, where they do not fit in one register; arg: position
  };

  const KernelNode& node(int32_t n) const { return kernel_.nodes[n]; }
  bool symbolic(int64_t number) const { return ir::is_symbolic(number, kernel_.symbols); }
  uint32_t reduced_mask() const {
    uint32_t mask = 0;
    for (size_t i = static_cast<size_t>(nest_.num_kept); i < nest_.dims.size(); ++i) mask |= 1u << i;
    return mask;
  }
  bool full(int32_t n) const { return nest_.node_dims[n] & reduced_mask(); }
  bool varies(int32_t n) const { return nest_.vector_dim >= 0 && (nest_.node_dims[n] >> nest_.vector_dim & 1); }
  bool is_full_store(const KernelStore& store) const {
    for (size_t i = static_cast<size_t>(nest_.num_kept); i < nest_.dims.size(); ++i)
      if (nest_.dims[i].strides[store.operand] != 0) return true;
    return false;
  }
  int64_t num_reduced_points() const {
    int64_t points = nest_.no_reduced_points ? 0 : 1;
    for (size_t i = static_cast<size_t>(nest_.num_kept); i < nest_.dims.size(); ++i) points *= nest_.dims[i].size;
    return points;
  }

  // A node's stage is the number of reductions on the longest way to it; a reduction happens in the pass of its operand's stage.
  void find_stages() {
    stage_ = ir::node_passes(kernel_);
    for (size_t n = 0; n < kernel_.nodes.size(); ++n)
      if (nest_.needed[n] && ir::is_reduce(kernel_.nodes[n].op)) num_passes_ = std::max(num_passes_, stage_[n]);
    for (const KernelStore& store : kernel_.stores)
      if (is_full_store(store)) num_passes_ = std::max(num_passes_, stage_[store.node] + 1);
  }

  void choose_unroll() {
    bool reduces = false, calls = false, arg = false;
    int weight = 0;
    for (size_t n = 0; n < kernel_.nodes.size(); ++n) {
      if (!nest_.needed[n]) continue;
      const KernelNode& k = kernel_.nodes[n];
      reduces |= ir::is_reduce(k.op);
      arg |= ir::is_arg_reduce(k.op);
      Lane t = lane_of(k.dtype);
      if (has_expansion(k.op, t)) weight += 16;
      else if (lane_helper(k.op, t)) calls = true;
      else weight += k.op == KOp::k_const ? 0 : 1;
    }
    const base::Heuristics& limits = base::heuristics();
    if (unroll_ == 0) unroll_ = calls ? 1 : weight <= (reduces ? limits.unroll_light_reduce : limits.unroll_light) ? 4 : weight <= limits.unroll_medium ? 2 : 1;
    unroll_ = std::clamp(unroll_, 1, limits.kernel_unroll);
    if (arg) unroll_ = 1;
    if (nest_.vector_dim >= 0)
      while (unroll_ > 1 && nest_.dims[nest_.vector_dim].size < static_cast<int64_t>(unroll_) * nest_.lanes) unroll_ /= 2;
  }

  // --- scopes ---------------------------------------------------------------------------------------------------------------------

  bool computed(int32_t n) const { return !values_[n].empty(); }
  void set(int32_t n, std::vector<Value> values) {
    values_[n] = std::move(values);
    scope_.push_back(n);
  }
  Value value(int32_t n, int copy) const {
    if (n < 0) return kNoValue;
    const std::vector<Value>& v = values_[n];
    return v.size() == 1 ? v[0] : v[copy];
  }
  template <typename Body>
  void scoped(Body body) {
    size_t mark = scope_.size();
    body();
    while (scope_.size() > mark) values_[scope_.back()].clear(), scope_.pop_back();
  }
  template <typename Body>
  void loop(VLoop::Kind kind, int32_t dim, int64_t step, int64_t end, Body body) {
    code_.loops.push_back({kind, dim, step, end});
    int64_t id = static_cast<int64_t>(code_.loops.size()) - 1;
    builder_.emit_to(kNoValue, VOp::k_loop, Lane::kF32, kNoValue, kNoValue, kNoValue, id);
    scoped(body);
    builder_.emit_to(kNoValue, VOp::k_endloop, Lane::kF32, kNoValue, kNoValue, kNoValue, id);
  }

  // The vector loop's three parts; body(copies, tail).
  void vector_loops(const std::function<void(int, bool)>& body) {
    int64_t size = nest_.dims[nest_.vector_dim].size, lanes = nest_.lanes, step = unroll_ * lanes;
    int32_t dim = nest_.vector_dim;
    bool dynamic = nest_.split_dim == dim || symbolic(size);
    builder_.emit_to(kNoValue, VOp::k_vbegin, Lane::kF32);
    int64_t unrolled_end = size / step * step, single_end = size / lanes * lanes;
    if (unroll_ > 1 && size >= step) loop(VLoop::kUnrolled, dim, step, unrolled_end, [&] { body(unroll_, false); });
    else unrolled_end = 0;
    if (single_end > unrolled_end || dynamic) loop(VLoop::kSingle, dim, lanes, single_end, [&] { body(1, false); });
    if (size > single_end || dynamic)
      loop(VLoop::kTail, dim, lanes, size, [&] {
        tail_mask32_ = builder_.emit(VOp::k_tail_mask, Lane::kI32);
        tail_mask64_ = builder_.emit(VOp::k_tail_mask, Lane::kI64);
        body(1, true);
        tail_mask32_ = tail_mask64_ = kNoValue;
      });
  }

  Value tail_mask(int bytes) const { return bytes == 8 ? tail_mask64_ : tail_mask32_; }

  // --- memory ---------------------------------------------------------------------------------------------------------------------

  int64_t access(int32_t o, int copy, bool along_vector, bool partial) {
    const KernelOperand& operand = kernel_.operands[o];
    int64_t bytes = ir::dtype_size(operand.dtype);
    VAddress address{operand.pointer, operand.offset * bytes, {}};
    for (size_t i = 0; i < nest_.dims.size(); ++i) {
      bool in_vector = static_cast<int32_t>(i) == nest_.vector_dim;
      address.strides.push_back(in_vector ? 0 : nest_.dims[i].strides[o] * bytes);
    }
    size_t a = 0;
    while (a < code_.addresses.size() && !(code_.addresses[a] == address)) ++a;
    if (a == code_.addresses.size()) code_.addresses.push_back(std::move(address));
    VAccess result{VAccess::kBroadcast, operand.dtype, static_cast<int32_t>(a), 0, 0, false, false};
    if (along_vector) {
      result.stride = nest_.dims[nest_.vector_dim].strides[o] * bytes;
      result.kind = result.stride == bytes ? VAccess::kContiguous : VAccess::kStrided;
      result.displacement = result.stride * nest_.lanes * copy;
      result.indexed = true;
      result.partial = partial;
      const bool constant = !symbolic(result.stride);
      if (constant && std::abs(result.displacement) + std::abs(result.stride) * nest_.lanes >= INT32_MAX) fail("a stride is too large");
    }
    code_.accesses.push_back(result);
    return static_cast<int64_t>(code_.accesses.size()) - 1;
  }

  void fail(const char* why) {
    if (error_.empty()) error_ = why;
  }

  Value load(int32_t n, int copy, bool tail) {
    DType dtype = node(n).dtype;
    bool along = varies(n);
    Value mask = along && tail && ir::dtype_size(dtype) >= 4 ? tail_mask(ir::dtype_size(dtype)) : kNoValue;
    return builder_.emit(VOp::k_load, lane_of(dtype), mask, kNoValue, kNoValue, access(node(n).operand, copy, along, tail));
  }

  void store(const KernelStore& s, int copies, bool tail) {
    DType dtype = kernel_.operands[s.operand].dtype;
    bool along = nest_.vector_dim >= 0 && nest_.dims[nest_.vector_dim].strides[s.operand] != 0;
    if (!along) {
      builder_.emit_to(kNoValue, VOp::k_store_lane, lane_of(dtype), value(s.node, 0), kNoValue, kNoValue, access(s.operand, 0, false, false));
      return;
    }
    Value mask = tail && ir::dtype_size(dtype) >= 4 ? tail_mask(ir::dtype_size(dtype)) : kNoValue;
    for (int copy = 0; copy < copies; ++copy)
      builder_.emit_to(kNoValue, VOp::k_store, lane_of(dtype), value(s.node, copy), mask, kNoValue, access(s.operand, copy, true, tail));
  }

  // --- nodes ----------------------------------------------------------------------------------------------------------------------

  void emit_node(int32_t n, int copies, bool tail) {
    const KernelNode& k = node(n);
    std::vector<Value> values;
    for (int copy = 0; copy < (varies(n) ? copies : 1); ++copy) {
      Value v = kNoValue;
      switch (k.op) {
        case KOp::k_load: v = load(n, copy, tail); break;
        case KOp::k_scalar: v = scalar(k); break;
        case KOp::k_index: v = index(k, copy); break;
        default: v = expressions_.compute(k, k.a >= 0 ? node(k.a).dtype : k.dtype, value(k.a, copy), value(k.b, copy), value(k.c, copy));
      }
      if (v == kNoValue) {
        if (error_.empty()) error_ = "no code for " + std::string(ir::kop_info(k.op).name) + " on " + std::string(ir::dtype_name(k.dtype));
        v = builder_.i32(0);
      }
      values.push_back(v);
    }
    set(n, std::move(values));
  }

  Value scalar(const KernelNode& k) {
    Lane t = lane_of(k.dtype);
    bool from_float = kernel_.scalar_types[k.i] == DType::kF64;
    // The parameter's own value in f64 or i64 lanes would need wide vectors in a kernel of narrow ones, so the conversion happens before
    // the lanes are filled. A bool's lanes are 0 or 1 then, narrow integers are wrapped here.
    Value v = builder_.emit(VOp::k_scalar, t, kNoValue, kNoValue, kNoValue, k.i * 4 + (from_float ? 1 : 0) + (ir::is_bool(k.dtype) ? 2 : 0));
    if (ir::is_bool(k.dtype)) return builder_.cmpgt(Lane::kI32, v, builder_.i32(0));
    return expressions_.settle(k.dtype, v);
  }

  Value index(const KernelNode& k, int copy) {
    VIndex expression;
    int32_t dim = nest_.dim_of[k.i];
    if (dim < 0) return builder_.i64(0);
    expression.terms.push_back({dim, 1});
    if (dim == nest_.vector_dim) expression.lane_factor = 1, expression.constant = static_cast<int64_t>(copy) * nest_.lanes;
    return index_value(std::move(expression));
  }

  Value index_value(VIndex expression) {
    code_.indexes.push_back(std::move(expression));
    return builder_.emit(VOp::k_index, Lane::kI64, kNoValue, kNoValue, kNoValue, static_cast<int64_t>(code_.indexes.size()) - 1);
  }

  // Kept values of stage 0 that depend on no more than the dims in `available`.
  void kept_level(uint32_t available, int copies, bool tail) {
    for (size_t n = 0; n < kernel_.nodes.size(); ++n) {
      int32_t i = static_cast<int32_t>(n);
      if (!nest_.needed[n] || computed(i) || stage_[n] != 0 || ir::is_reduce(node(i).op)) continue;
      if ((nest_.node_dims[n] & ~available) == 0) emit_node(i, copies, tail);
    }
  }

  // All kept values up to a stage, with all kept loops open.
  void kept_stage(int stage, int copies, bool tail) {
    for (size_t n = 0; n < kernel_.nodes.size(); ++n) {
      int32_t i = static_cast<int32_t>(n);
      if (!nest_.needed[n] || computed(i) || stage_[n] > stage || full(i) || ir::is_reduce(node(i).op)) continue;
      emit_node(i, copies, tail);
    }
  }

  // --- loops over kept points -----------------------------------------------------------------------------------------------------

  // Usually the vector loop is the innermost of them; a transposed dim's loop may be inside it.
  void open_kept(int32_t dim, uint32_t available, int copies, bool tail) {
    if (dim == nest_.num_kept) {
      scoped([&] { kept_block(copies, tail); });
      return;
    }
    uint32_t with_dim = available | 1u << dim;
    if (dim == nest_.vector_dim) {
      vector_loops([&](int vector_copies, bool vector_tail) {
        if (dim + 1 < nest_.num_kept) kept_level(with_dim, vector_copies, vector_tail);
        open_kept(dim + 1, with_dim, vector_copies, vector_tail);
      });
      return;
    }
    loop(VLoop::kScalar, dim, 1, nest_.dims[dim].size, [&] {
      kept_level(with_dim, copies, tail);
      open_kept(dim + 1, with_dim, copies, tail);
    });
  }

  void kept_block(int copies, bool tail) {
    kept_stage(0, copies, tail);
    for (int pass = 0; pass < num_passes_; ++pass) {
      run_pass(pass, copies, tail);
      kept_stage(pass + 1, copies, tail);
    }
    for (const KernelStore& s : kernel_.stores)
      if (!is_full_store(s)) store(s, copies, tail);
  }

  // --- passes over reduced points -------------------------------------------------------------------------------------------------

  void mark_full(int32_t n, std::vector<bool>* wanted) const {
    if (n < 0 || (*wanted)[n] || !full(n)) return;
    (*wanted)[n] = true;
    mark_full(node(n).a, wanted);
    mark_full(node(n).b, wanted);
    mark_full(node(n).c, wanted);
  }

  void run_pass(int pass, int copies, bool tail) {
    std::vector<Accumulator> accumulators;
    std::vector<bool> wanted(kernel_.nodes.size(), false);
    for (size_t n = 0; n < kernel_.nodes.size(); ++n) {
      const KernelNode& k = kernel_.nodes[n];
      if (!nest_.needed[n] || !ir::is_reduce(k.op) || stage_[k.a] != pass) continue;
      mark_full(k.a, &wanted);
      accumulators.push_back(make_accumulator(static_cast<int32_t>(n), copies));
    }
    bool stores = false;
    if (pass == num_passes_ - 1)
      for (const KernelStore& s : kernel_.stores)
        if (is_full_store(s)) mark_full(s.node, &wanted), stores = true;
    if (accumulators.empty() && !stores) return;
    if (!nest_.no_reduced_points) scoped([&] { open_reduced(nest_.num_kept, 0, wanted, accumulators, stores, copies, tail); });
    for (Accumulator& accumulator : accumulators) finish(accumulator);
  }

  void full_level(uint32_t available, const std::vector<bool>& wanted, int copies, bool tail) {
    for (size_t n = 0; n < kernel_.nodes.size(); ++n) {
      int32_t i = static_cast<int32_t>(n);
      if (wanted[n] && !computed(i) && (nest_.node_dims[n] & reduced_mask() & ~available) == 0) emit_node(i, copies, tail);
    }
  }

  void open_reduced(int32_t dim, uint32_t available, const std::vector<bool>& wanted, std::vector<Accumulator>& accumulators,
                    bool stores, int copies, bool tail) {
    int32_t count = static_cast<int32_t>(nest_.dims.size());
    if (dim < count && dim != nest_.vector_dim) {
      loop(VLoop::kScalar, dim, 1, nest_.dims[dim].size, [&] {
        if (dim + 1 < count) full_level(available | 1u << dim, wanted, copies, tail);
        open_reduced(dim + 1, available | 1u << dim, wanted, accumulators, stores, copies, tail);
      });
      return;
    }
    auto body = [&](int body_copies, bool body_tail) {
      full_level(~0u, wanted, body_copies, body_tail);
      for (Accumulator& accumulator : accumulators)
        for (int copy = 0; copy < body_copies; ++copy) accumulate(accumulator, copy, body_tail);
      if (!stores) return;
      for (const KernelStore& s : kernel_.stores)
        if (is_full_store(s)) store(s, body_copies, body_tail);
    };
    if (nest_.horizontal()) vector_loops(body);
    else body(copies, tail);
  }

  // --- accumulators ---------------------------------------------------------------------------------------------------------------

  bool two_registers_wide() const { return nest_.lanes * 4 == nest_.vector_bytes; }  // an f32 vector is two f64 vectors

  Value start(int bytes, Value constant) {
    Value v = builder_.fresh(bytes);
    builder_.emit_to(v, VOp::k_mov, bytes == 8 ? Lane::kI64 : Lane::kI32, constant);
    return v;
  }

  Accumulator make_accumulator(int32_t n, int copies) {
    const KernelNode& k = node(n);
    DType type = node(k.a).dtype;
    int bytes = lane_bytes(lane_of(type));
    int count = nest_.horizontal() ? unroll_ : copies;
    Accumulator result{n, Accumulator::kPlain, {}, {}};
    if (ir::is_arg_reduce(k.op)) result.kind = Accumulator::kArg;
    int64_t chain = num_reduced_points() / (nest_.horizontal() ? count * nest_.lanes : 1);
    if (k.op == KOp::k_reduce_sum && type == DType::kF32 && chain > kLongestSingleSum) result.kind = Accumulator::kWide;
    for (int copy = 0; copy < count; ++copy) {
      if (result.kind == Accumulator::kWide) {
        result.first.push_back(start(8, builder_.f64(0)));
        if (two_registers_wide()) result.second.push_back(start(8, builder_.f64(0)));
      } else {
        result.first.push_back(start(bytes, expressions_.identity(k.op, type)));
        if (result.kind == Accumulator::kArg) result.second.push_back(start(8, builder_.i64(0)));
      }
    }
    return result;
  }

  // The value just computed by the last instruction goes to the accumulator instead.
  void redirect(Value accumulator, Value v) {
    VInst& last = code_.insts.back();
    if (last.dst == v && !vop_info(last.op).early_clobber) last.dst = accumulator;
    else builder_.emit_to(accumulator, VOp::k_mov, code_.register_bytes[accumulator] == 8 ? Lane::kI64 : Lane::kI32, v);
  }

  void accumulate(Accumulator& accumulator, int copy, bool tail) {
    const KernelNode& k = node(accumulator.node);
    DType type = node(k.a).dtype;
    Lane t = lane_of(type);
    Value x = value(k.a, copy);
    if (tail && nest_.horizontal()) x = builder_.blend(t, tail_mask(lane_bytes(t)), x, expressions_.identity(k.op, type));
    switch (accumulator.kind) {
      case Accumulator::kPlain: redirect(accumulator.first[copy], expressions_.combine(k.op, type, accumulator.first[copy], x)); break;
      case Accumulator::kWide: {
        Value low = builder_.emit(VOp::k_cvt_f32_f64, Lane::kF64, x);
        redirect(accumulator.first[copy], builder_.add(Lane::kF64, accumulator.first[copy], low));
        if (two_registers_wide()) {
          Value high = builder_.emit(VOp::k_cvt_f32_f64_high, Lane::kF64, x);
          redirect(accumulator.second[copy], builder_.add(Lane::kF64, accumulator.second[copy], high));
        }
        break;
      }
      case Accumulator::kArg: {
        Value position = reduced_position(copy);
        Value better = expressions_.beats(k.op == KOp::k_reduce_argmax, type, x, accumulator.first[copy]);
        Value better64 = lane_bytes(t) == 8 ? better : builder_.emit(VOp::k_widen, Lane::kI64, better);
        redirect(accumulator.first[copy], builder_.blend(t, better, x, accumulator.first[copy]));
        redirect(accumulator.second[copy], builder_.blend(Lane::kI64, better64, position, accumulator.second[copy]));
        break;
      }
    }
  }

  // Position of the current point among the reduced ones, row-major.
  Value reduced_position(int copy) {
    VIndex expression;
    int64_t factor = 1;
    for (int32_t i = static_cast<int32_t>(nest_.dims.size()) - 1; i >= nest_.num_kept; --i) {
      expression.terms.push_back({i, factor});
      if (i == nest_.vector_dim) expression.lane_factor = factor, expression.constant = factor * copy * nest_.lanes;
      if (symbolic(factor)) fail("a position that depends on symbols");
      factor *= nest_.dims[i].size;
    }
    return index_value(std::move(expression));
  }

  void combine_arg(const KernelNode& k, Value* best, Value* position, Value other, Value other_position) {
    DType type = node(k.a).dtype;
    Lane t = lane_of(type);
    Value better = expressions_.beats(k.op == KOp::k_reduce_argmax, type, other, *best);
    Value equal = expressions_.same(type, other, *best);
    if (lane_bytes(t) == 4) {
      better = builder_.emit(VOp::k_widen, Lane::kI64, better);
      equal = builder_.emit(VOp::k_widen, Lane::kI64, equal);
    }
    Value earlier = builder_.bit_and(Lane::kI64, equal, builder_.cmpgt(Lane::kI64, *position, other_position));
    Value take = builder_.bit_or(Lane::kI64, better, earlier);
    Value take_lane = lane_bytes(t) == 8 ? take : builder_.emit(VOp::k_narrow, Lane::kI32, take);
    *best = builder_.blend(t, take_lane, other, *best);
    *position = builder_.blend(Lane::kI64, take, other_position, *position);
  }

  Value swap(Lane t, Value v, int distance) { return builder_.emit(VOp::k_swap, t, v, kNoValue, kNoValue, distance); }

  void finish(Accumulator& accumulator) {
    const KernelNode& k = node(accumulator.node);
    DType type = node(k.a).dtype;
    Lane t = lane_of(type);
    std::vector<Value> results;
    if (!nest_.horizontal()) {
      for (size_t copy = 0; copy < accumulator.first.size(); ++copy) {
        if (accumulator.kind == Accumulator::kArg) results.push_back(accumulator.second[copy]);
        else if (accumulator.kind == Accumulator::kPlain) results.push_back(expressions_.settle(k.dtype, accumulator.first[copy]));
        else if (two_registers_wide()) results.push_back(builder_.emit(VOp::k_join_f64_f32, Lane::kF32, accumulator.first[copy], accumulator.second[copy]));
        else results.push_back(builder_.emit(VOp::k_cvt_f64_f32, Lane::kF32, accumulator.first[copy]));
      }
      // One copy's result stands for all where the value is the same for all of them.
      set(accumulator.node, std::move(results));
      return;
    }
    if (accumulator.kind == Accumulator::kArg) {
      Value best = accumulator.first[0], position = accumulator.second[0];
      for (int distance = nest_.lanes / 2; distance >= 1; distance /= 2)
        combine_arg(k, &best, &position, swap(t, best, distance), swap(Lane::kI64, position, distance));
      set(accumulator.node, {position});
      return;
    }
    std::vector<Value> all = accumulator.first;
    all.insert(all.end(), accumulator.second.begin(), accumulator.second.end());
    bool wide = accumulator.kind == Accumulator::kWide;
    DType acc_type = wide ? DType::kF64 : type;
    while (all.size() > 1) {
      size_t half = all.size() / 2;
      for (size_t i = 0; i < half; ++i) all[i] = expressions_.combine(k.op, acc_type, all[i], all[i + all.size() - half]);
      all.resize(all.size() - half);
    }
    Value v = all[0];
    int lanes = wide ? std::min(nest_.lanes, nest_.vector_bytes / 8) : nest_.lanes;
    for (int distance = lanes / 2; distance >= 1; distance /= 2) v = expressions_.combine(k.op, acc_type, v, swap(lane_of(acc_type), v, distance));
    if (wide) {
      v = builder_.emit(VOp::k_cvt_f64_f32, Lane::kF32, v);
      if (two_registers_wide()) v = builder_.emit(VOp::k_splat, Lane::kF32, v);
    }
    set(accumulator.node, {expressions_.settle(k.dtype, v)});
  }

  const Kernel& kernel_;
  const Nest& nest_;
  VCode& code_;
  VBuilder builder_;
  Expressions expressions_;
  int unroll_;
  std::vector<int> stage_;
  int num_passes_ = 0;
  std::vector<std::vector<Value>> values_;  // per node: empty, one for all copies, or one per copy
  std::vector<int32_t> scope_;
  Value tail_mask32_ = kNoValue, tail_mask64_ = kNoValue;
  std::string error_;
};

// Removes instructions whose result nobody reads. Accumulators stay: their readers may come before their writers, around a loop.
void remove_dead(VCode* code) {
  std::vector<bool> live(code->register_bytes.size(), false), defined(code->register_bytes.size(), false);
  for (const VInst& inst : code->insts) {
    if (inst.dst == kNoValue) continue;
    if (defined[inst.dst]) live[inst.dst] = true;
    defined[inst.dst] = true;
  }
  std::vector<bool> keep(code->insts.size(), false);
  for (size_t i = code->insts.size(); i-- > 0;) {
    const VInst& inst = code->insts[i];
    if (inst.dst != kNoValue && !live[inst.dst]) continue;
    keep[i] = true;
    for (Value v : inst.src)
      if (is_register(v)) live[v] = true;
  }
  size_t out = 0;
  for (size_t i = 0; i < code->insts.size(); ++i)
    if (keep[i]) code->insts[out++] = code->insts[i];
  code->insts.resize(out);
}

}  // namespace

base::Status lower_kernel(const Kernel& kernel, const Nest& nest, int unroll, VCode* code) {
  base::Status status = Lowerer(kernel, nest, unroll, code).run();
  if (status.ok()) remove_dead(code);
  return status;
}

}  // namespace dynvm::codegen
