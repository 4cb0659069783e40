// Random traces of tensor operations for fuzzing passes against the evaluator.
//
// Inputs: a seed. Outputs: a trace that verifies, with inputs, views, broadcasts, in-place operations, several dtypes, reductions, library
// calls, guards with snapshots, tensor objects; on a GPU also reads and writes by tensors of indexes. Invariant: all operations are known to eval_aten.cpp, and values stay of moderate size.
#pragma once

#include <string>
#include <vector>

#include "ir/lower/lower.h"
#include "ir/trace.h"

namespace dynvm::ir {

class RandomTrace {
 public:
  explicit RandomTrace(uint64_t seed, bool on_gpu = false) : state_(seed * 0x9E3779B97F4A7C15ull + 77), on_gpu_(on_gpu) {}

  Trace make(int operations) {
    object_ = trace_.add(Op::k_slot, Type::kObject, {}, 0);
    snapshot({kSlotUnchanged});
    rows_ = 1 + pick(5);
    columns_ = 1 + pick(9);
    int inputs = 2 + pick(3);
    for (int k = 0; k < inputs; ++k) input();
    if (on_gpu_) index_ = input(fresh(DType::kI64, {4}));
    scalar_ = trace_.add(Op::k_unbox_float, Type::kFloat, {object_}, 0, 0);
    for (int k = 0; k < operations; ++k) operation();
    finish();
    return std::move(trace_);
  }
  Ref scalar() const { return scalar_; }
  uint64_t random() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }
  int pick(int n) { return static_cast<int>((random() >> 20) % n); }

 private:
  bool chance(int percent) { return pick(100) < percent; }
  const TensorMeta& meta(Ref ref) { return trace_.metas[trace_.insts[ref].meta]; }
  Ref any() { return values_[pick(static_cast<int>(values_.size()))]; }
  Ref recent() { return chance(60) ? values_[values_.size() - 1 - pick(std::min<int>(4, static_cast<int>(values_.size())))] : any(); }

  static std::vector<int64_t> contiguous(const std::vector<int64_t>& sizes) {
    std::vector<int64_t> strides(sizes.size());
    int64_t next = 1;
    for (size_t k = sizes.size(); k-- > 0;) {
      strides[k] = next;
      next *= std::max<int64_t>(sizes[k], 1);
    }
    return strides;
  }
  TensorMeta fresh(DType dtype, std::vector<int64_t> sizes) {
    TensorMeta meta;
    meta.dtype = dtype;
    meta.device_type = on_gpu_ ? 1 : 0;
    meta.storage = trace_.num_storages++;
    meta.strides = contiguous(sizes);
    meta.sizes = std::move(sizes);
    // Sometimes a transposed layout, as operations that keep their input's strides give.
    if (meta.sizes.size() == 2 && chance(15)) meta.strides = {1, meta.sizes[0]};
    return meta;
  }
  int32_t add_meta(const TensorMeta& meta) {
    trace_.metas.push_back(meta);
    return static_cast<int32_t>(trace_.metas.size()) - 1;
  }

  void input() {
    static const DType kTypes[] = {DType::kF32, DType::kF32, DType::kF32, DType::kF64, DType::kBF16, DType::kI64};
    std::vector<int64_t> shapes[] = {{rows_, columns_}, {rows_, columns_}, {columns_}, {rows_, 1}, {}, {1, columns_}, {columns_, rows_}, {2, rows_, columns_}};
    input(fresh(values_.empty() ? DType::kF32 : kTypes[pick(6)], shapes[values_.empty() ? 0 : pick(8)]));
  }
  Ref input(const TensorMeta& like) {
    const int32_t m = add_meta(like);
    Ref ref = trace_.add(Op::k_unbox_tensor, Type::kTensor, {object_}, m, 0);
    trace_.insts[ref].meta = m;
    values_.push_back(ref);
    return ref;
  }

  // --- calls
  struct Builder {
    AtenCall call;
    std::vector<Ref> operands;
    Builder& name(std::string n, std::string overload = "") {
      call.name = "aten::" + n;
      call.overload = std::move(overload);
      return *this;
    }
    Builder& tensor(Ref ref) {
      AtenArg arg;
      arg.kind = AtenArg::kTensor;
      arg.operands = {static_cast<int32_t>(operands.size())};
      operands.push_back(ref);
      call.args.push_back(arg);
      return *this;
    }
    Builder& list(const std::vector<Ref>& refs) {
      AtenArg arg;
      arg.kind = AtenArg::kTensorList;
      for (Ref ref : refs) {
        arg.operands.push_back(static_cast<int32_t>(operands.size()));
        operands.push_back(ref);
      }
      call.args.push_back(arg);
      return *this;
    }
    Builder& scalar(AtenArg::Kind kind, Ref ref) {
      tensor(ref);
      call.args.back().kind = kind;
      return *this;
    }
    Builder& integer(int64_t value) { return plain(AtenArg::kInt, value, 0); }
    Builder& flag(bool value) { return plain(AtenArg::kBool, value, 0); }
    Builder& real(double value) { return plain(AtenArg::kFloat, 0, value); }
    Builder& none() { return plain(AtenArg::kNone, 0, 0); }
    Builder& number(double value) {
      plain(AtenArg::kNumberTensor, static_cast<int64_t>(value), value);
      call.args.back().dtype = DType::kF64;
      return *this;
    }
    Builder& ints(std::vector<int64_t> values) {
      plain(AtenArg::kIntList, 0, 0);
      call.args.back().ints = std::move(values);
      return *this;
    }
    Builder& text(std::string value) {
      plain(AtenArg::kString, 0, 0);
      call.args.back().s = std::move(value);
      return *this;
    }
    Builder& plain(AtenArg::Kind kind, int64_t i, double f) {
      AtenArg arg;
      arg.kind = kind;
      arg.i = i;
      arg.f = f;
      call.args.push_back(arg);
      return *this;
    }
  };

  std::vector<Ref> emit(Builder& b, const std::vector<TensorMeta>& results, int alias = -1) {
    for (const TensorMeta& meta : results) {
      b.call.results.push_back(add_meta(meta));
      b.call.result_alias.push_back(alias);
    }
    trace_.calls.push_back(b.call);
    Ref call = trace_.add(Op::k_aten, Type::kVoid, b.operands, static_cast<int64_t>(trace_.calls.size()) - 1, 0);
    std::vector<Ref> refs;
    for (size_t k = 0; k < results.size(); ++k) {
      Ref ref = trace_.add(Op::k_result, Type::kTensor, {call}, static_cast<int64_t>(k));
      trace_.insts[ref].meta = b.call.results[k];
      refs.push_back(ref);
    }
    return refs;
  }
  void value(Builder& b, TensorMeta result, int alias = -1) { values_.push_back(emit(b, {std::move(result)}, alias)[0]); }

  static bool broadcast(const std::vector<int64_t>& a, const std::vector<int64_t>& b, std::vector<int64_t>* out) {
    out->assign(std::max(a.size(), b.size()), 1);
    for (size_t k = 0; k < out->size(); ++k) {
      int64_t x = k < a.size() ? a[a.size() - 1 - k] : 1, y = k < b.size() ? b[b.size() - 1 - k] : 1;
      if (x != y && x != 1 && y != 1) return false;
      (*out)[out->size() - 1 - k] = x == 1 ? y : x;
    }
    return true;
  }
  // Of a value with dims and one of 0 dims the former's dtype wins within a category; kept simple: only equal dtypes meet there.
  bool mixable(Ref a, Ref b) {
    return meta(a).dtype == meta(b).dtype || (!meta(a).sizes.empty() && !meta(b).sizes.empty());
  }
  bool floating(Ref ref) { return is_floating(meta(ref).dtype); }
  // No element twice: may be written in place.
  bool writable(Ref ref) {
    const TensorMeta& m = meta(ref);
    for (size_t k = 0; k < m.sizes.size(); ++k)
      if (m.strides[k] == 0 && m.sizes[k] > 1) return false;
    return true;
  }

  void operation() {
    if (on_gpu_ && chance(25)) return by_indexes();
    switch (pick(14)) {
      case 0:
      case 1:
      case 2: return binary();
      case 3:
      case 4: return unary();
      case 5:
      case 6: return in_place();
      case 7:
      case 8: return view();
      case 9: return reduce();
      case 10: return chance(50) ? choose() : structured();
      case 11: return chance(50) ? copy() : foreach();
      case 12: return library();
      case 13: return observe();
    }
  }

  void binary() {
    Ref a = recent(), b = recent();
    Builder call;
    std::vector<int64_t> sizes;
    static const char* kNames[] = {"add", "sub", "mul", "maximum", "minimum"};
    const char* name = kNames[pick(5)];
    if (chance(25)) {
      if (!floating(a)) return;
      call.name(name, "Tensor").tensor(a);
      if (chance(50)) {
        call.number(0.25 * (1 + pick(8)));
      } else {
        call.scalar(AtenArg::kScalarTensor, scalar_);
      }
      if (name[0] == 'a' || name[0] == 's') call.integer(1);
      return value(call, fresh(meta(a).dtype, meta(a).sizes));
    }
    if (!mixable(a, b) || !broadcast(meta(a).sizes, meta(b).sizes, &sizes)) return;
    DType type = promote(meta(a).dtype, meta(b).dtype);
    call.name(name, "Tensor").tensor(a).tensor(b);
    if (name[0] == 'a' || name[0] == 's') {
      if (chance(30) && is_floating(type)) {
        call.real(0.5);
      } else {
        call.integer(1);
      }
    }
    value(call, fresh(type, sizes));
  }

  void unary() {
    Ref a = recent();
    static const char* kNames[] = {"tanh", "sigmoid", "neg", "abs", "relu", "gelu", "silu", "sin", "cos", "erf"};
    int which = pick(10);
    if (!floating(a) && (which < 2 || which > 4)) return;
    Builder call;
    call.name(kNames[which]).tensor(a);
    if (which == 5) call.text(chance(50) ? "tanh" : "none");
    value(call, fresh(meta(a).dtype, meta(a).sizes));
  }

  void in_place() {
    Ref a = recent(), b = recent();
    if (!writable(a)) return;
    std::vector<int64_t> sizes;
    Builder call;
    TensorMeta result = meta(a);
    static const char* kNames[] = {"add_", "mul_", "sub_"};
    int which = pick(6);
    if (which < 3) {
      if (!mixable(a, b) || !broadcast(meta(a).sizes, meta(b).sizes, &sizes) || sizes != meta(a).sizes) return;
      if (!floating(a) && floating(b)) return;
      if (overlaps(a, b)) return;
      call.name(kNames[which], "Tensor").tensor(a).tensor(b);
      if (which != 1) call.integer(1);
    } else if (which == 3) {
      if (!floating(a)) return;
      call.name("tanh_").tensor(a);
    } else if (which == 4) {
      if (!floating(a)) return;
      call.name("mul_", "Tensor").tensor(a).scalar(AtenArg::kScalarTensor, scalar_);
    } else {
      if (!mixable(a, b) || !broadcast(meta(a).sizes, meta(b).sizes, &sizes) || sizes != meta(a).sizes || overlaps(a, b)) return;
      if (!floating(a) && floating(b)) return;
      call.name("copy_").tensor(a).tensor(b).flag(false);
    }
    call.call.mutates = {0};
    value(call, result, 0);
  }
  // torch refuses operands that overlap partly.
  bool overlaps(Ref a, Ref b) {
    return meta(a).storage == meta(b).storage &&
           !(meta(a).sizes == meta(b).sizes && meta(a).strides == meta(b).strides && meta(a).offset == meta(b).offset);
  }

  void view() {
    Ref a = recent();
    TensorMeta m = meta(a);
    size_t rank = m.sizes.size();
    Builder call;
    switch (pick(6)) {
      case 0:
        if (rank < 2) return;
        std::swap(m.sizes[rank - 1], m.sizes[rank - 2]);
        std::swap(m.strides[rank - 1], m.strides[rank - 2]);
        call.name("transpose", "int").tensor(a).integer(-1).integer(-2);
        break;
      case 1:
        m.sizes.insert(m.sizes.begin() + pick(static_cast<int>(rank) + 1), 1);
        m.strides.resize(rank);
        if (m.sizes.size() > 4) return;
        {
          size_t at = 0;
          while (at < rank && m.sizes[at] == meta(a).sizes[at]) ++at;
          m.strides.insert(m.strides.begin() + static_cast<long>(at), 1);
        }
        call.name("unsqueeze").tensor(a).integer(0);
        break;
      case 2: {
        if (rank == 0) return;
        size_t dim = pick(static_cast<int>(rank));
        if (m.sizes[dim] < 2) return;
        int64_t start = pick(2);
        m.offset += start * m.strides[dim];
        m.sizes[dim] -= 1;
        call.name("slice", "Tensor").tensor(a).integer(static_cast<int64_t>(dim)).integer(start);
        break;
      }
      case 3: {
        if (rank == 0) return;
        size_t dim = pick(static_cast<int>(rank));
        if (m.sizes[dim] < 1) return;
        m.offset += pick(static_cast<int>(m.sizes[dim])) * m.strides[dim];
        m.sizes.erase(m.sizes.begin() + static_cast<long>(dim));
        m.strides.erase(m.strides.begin() + static_cast<long>(dim));
        call.name("select", "int").tensor(a).integer(static_cast<int64_t>(dim));
        break;
      }
      case 4:
        if (rank < 2 || m.strides != contiguous(m.sizes)) return;
        m.sizes = {m.sizes[0] * m.sizes[1]};
        for (size_t k = 2; k < rank; ++k) m.sizes.push_back(meta(a).sizes[k]);
        m.strides = contiguous(m.sizes);
        call.name("view").tensor(a);
        break;
      case 5:
        if (rank == 0 || m.sizes[0] != 1 || rank > 3) return;
        m.sizes[0] = rows_;
        m.strides[0] = 0;
        call.name("expand").tensor(a);
        break;
    }
    value(call, m, 0);
  }

  void reduce() {
    Ref a = recent();
    const TensorMeta& m = meta(a);
    if (m.sizes.empty() || !is_floating(m.dtype)) return;
    static const char* kNames[] = {"sum", "mean", "amax", "amin"};
    int which = pick(4);
    size_t dim = pick(static_cast<int>(m.sizes.size()));
    bool keep = chance(50), all = chance(20);
    std::vector<int64_t> sizes;
    for (size_t k = 0; k < m.sizes.size(); ++k) {
      if (!all && k != dim) sizes.push_back(m.sizes[k]);
      if ((all || k == dim) && keep) sizes.push_back(1);
    }
    Builder call;
    call.name(kNames[which], which < 2 ? (which == 0 ? "dim_IntList" : "dim") : "").tensor(a);
    if (all) {
      call.ints({});
    } else {
      call.ints({static_cast<int64_t>(dim) - (chance(50) ? static_cast<int64_t>(m.sizes.size()) : 0)});
    }
    call.flag(keep);
    if (which < 2) call.none();
    value(call, fresh(m.dtype, sizes));
  }

  // A comparison and a choice by it.
  void choose() {
    Ref a = recent(), b = recent();
    std::vector<int64_t> sizes;
    if (!floating(a) || meta(a).dtype != meta(b).dtype || !broadcast(meta(a).sizes, meta(b).sizes, &sizes)) return;
    Builder compare;
    compare.name("gt", "Scalar").tensor(a).real(0.01);
    Ref mask = emit(compare, {fresh(DType::kBool, meta(a).sizes)})[0];
    Builder call;
    if (chance(50)) {
      call.name("where", "self").tensor(mask).tensor(a).tensor(b);
      return value(call, fresh(meta(a).dtype, sizes));
    }
    call.name("masked_fill", "Scalar").tensor(a).tensor(mask).real(-0.5);
    value(call, fresh(meta(a).dtype, meta(a).sizes));
  }

  void structured() {
    Ref a = recent();
    const TensorMeta& m = meta(a);
    if (m.sizes.empty() || !is_floating(m.dtype)) return;
    Builder call;
    if (chance(50)) {
      call.name(chance(50) ? "_softmax" : "_log_softmax").tensor(a).integer(pick(static_cast<int>(m.sizes.size()))).flag(false);
      return value(call, fresh(m.dtype, m.sizes));
    }
    if (m.dtype == DType::kBF16) return;
    call.name("native_layer_norm").tensor(a).ints({m.sizes.back()}).none().none().real(1e-5);
    std::vector<int64_t> small = m.sizes;
    small.back() = 1;
    std::vector<TensorMeta> results{fresh(m.dtype, m.sizes), fresh(m.dtype, small), fresh(m.dtype, small)};
    for (Ref ref : emit(call, results)) values_.push_back(ref);
  }

  void copy() {
    Ref a = recent();
    if (chance(30)) {
      Builder fill;
      fill.name(chance(50) ? "zeros_like" : "ones_like").tensor(a);
      return value(fill, fresh(meta(a).dtype, meta(a).sizes));
    }
    if (chance(10) && writable(a)) {
      Builder zero;
      zero.name("zero_").tensor(a);
      zero.call.mutates = {0};
      return value(zero, meta(a), 0);
    }
    static const DType kTypes[] = {DType::kF32, DType::kF64, DType::kBF16, DType::kF32};
    Builder call;
    call.name("_to_copy").tensor(a);
    value(call, fresh(kTypes[pick(4)], meta(a).sizes));
  }

  void foreach() {
    Ref a = any(), b = any();
    if (!floating(a) || !floating(b) || !writable(a) || !writable(b) || meta(a).storage == meta(b).storage) return;
    Builder call;
    if (chance(50)) {
      call.name("_foreach_mul_", "Scalar").list({a, b}).scalar(AtenArg::kScalar, scalar_);
    } else {
      call.name("_foreach_lerp_", "Scalar").list({a, b}).list({b, a}).real(0.25);
      if (meta(a).sizes != meta(b).sizes || meta(a).dtype != meta(b).dtype) return;
    }
    call.call.mutates = {0};
    emit(call, {});
  }

  // Indexes that the trace computes, of a dim that there is; what is written by several of them is the same, or added up.
  void by_indexes() {
    Ref a = recent();
    const TensorMeta m = meta(a);
    if (m.sizes.empty()) return;
    const size_t dim = static_cast<size_t>(pick(static_cast<int>(m.sizes.size())));
    const int64_t size = m.sizes[dim];
    if (size == 0) return;
    Builder rest;
    rest.name("remainder", "Scalar").tensor(index_).integer(size);
    const Ref index = emit(rest, {fresh(DType::kI64, {4})})[0];
    TensorMeta picked = fresh(m.dtype, m.sizes);
    picked.sizes[dim] = 4;
    picked.strides = contiguous(picked.sizes);
    Builder call;
    const int which = pick(5);
    if (which == 0) {
      call.name("index", "Tensor").tensor(a).list({});
      for (size_t d = 0; d < dim; ++d) call.call.args.back().operands.push_back(-1);
      call.call.args.back().operands.push_back(static_cast<int32_t>(call.operands.size()));
      call.operands.push_back(index);
      return value(call, picked);
    }
    Builder select;
    select.name("index_select").tensor(a).integer(static_cast<int64_t>(dim) - (chance(50) ? static_cast<int64_t>(m.sizes.size()) : 0)).tensor(index);
    value(select, picked);
    if (which == 1 || m.dtype == DType::kBF16 || is_bool(m.dtype)) return;
    const Ref source = values_.back();
    const bool in_place = chance(60) && writable(a);
    if (which == 2) {
      call.name(in_place ? "index_fill_" : "index_fill", "int_Scalar").tensor(a).integer(static_cast<int64_t>(dim)).tensor(index).integer(2);
    } else {
      call.name(in_place ? "index_add_" : "index_add").tensor(a).integer(static_cast<int64_t>(dim)).tensor(index).tensor(source).integer(1);
    }
    if (!in_place) return value(call, fresh(m.dtype, m.sizes));
    call.call.mutates = {0};
    value(call, m, 0);
  }

  void library() {
    Ref a = recent(), b = recent();
    const TensorMeta &x = meta(a), &y = meta(b);
    if (x.sizes.size() != 2 || y.sizes.size() != 2 || x.sizes[1] != y.sizes[0] || x.dtype != y.dtype || !floating(a)) return;
    Builder call;
    call.name("mm").tensor(a).tensor(b);
    value(call, fresh(x.dtype, {x.sizes[0], y.sizes[1]}));
  }

  int32_t snapshot(std::vector<Ref> objects) {
    SnapshotFrame frame;
    frame.slots = std::move(objects);
    const uint32_t number = trace_.add_frame(frame, 0);
    trace_.snapshots.emplace_back().frames.push_back(number);
    return static_cast<int32_t>(trace_.snapshots.size()) - 1;
  }
  Ref wrap(Ref tensor, bool sunk) {
    trace_.wraps.push_back({});
    Ref ref = trace_.add(Op::k_wrap, Type::kObject, {tensor}, static_cast<int64_t>(trace_.wraps.size()) - 1);
    trace_.insts[ref].sunk = sunk;
    return ref;
  }

  void observe() {
    Ref tensor = any();
    switch (pick(4)) {
      case 0: trace_.add(Op::k_store_value, Type::kVoid, {object_, wrap(tensor, false)}); break;
      case 1: {
        int32_t at = snapshot({wrap(tensor, true)});
        trace_.add(Op::k_guard_bound, Type::kVoid, {object_}, 0, at);
        break;
      }
      case 2: trace_.add(Op::k_guard_bound, Type::kVoid, {object_}, 0, snapshot({kSlotUnchanged})); break;
      case 3: trace_.add(Op::k_call, Type::kObject, {object_}, -1, snapshot({kSlotUnchanged})); break;
    }
  }

  void finish() {
    std::vector<Ref> objects;
    for (int k = 0; k < 3; ++k) objects.push_back(wrap(recent(), chance(50)));
    trace_.add(Op::k_leave, Type::kVoid, {}, 0, snapshot(objects));
  }

  uint64_t state_;
  bool on_gpu_;
  Ref index_ = 0;
  Trace trace_;
  std::vector<Ref> values_;
  Ref object_ = 0, scalar_ = 0;
  int64_t rows_ = 1, columns_ = 1;
};

}  // namespace dynvm::ir
