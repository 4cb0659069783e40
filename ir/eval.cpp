// The evaluator's driver: scalars, memory, kernels, observations (eval.h). ATen operations are in eval_aten.cpp.
#include "ir/eval.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "ir/effects.h"
#include "ir/eval_aten.h"
#include "ir/kernel/eval.h"
#include "ir/kernel/half.h"
#include "ir/passes/rewrite.h"

namespace dynvm::ir {

double load_number(const uint8_t* at, DType dtype) {
  auto read = [&](auto value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::kF32: return read(float());
    case DType::kF64: return read(double());
    case DType::kF16: return half_to_float(read(uint16_t()));
    case DType::kBF16: return bfloat_to_float(read(uint16_t()));
    case DType::kI64: return static_cast<double>(read(int64_t()));
    case DType::kI32: return read(int32_t());
    case DType::kI16: return read(int16_t());
    case DType::kI8: return read(int8_t());
    default: return read(uint8_t());
  }
}

void store_number(uint8_t* at, DType dtype, double value) {
  auto write = [&](auto converted) { std::memcpy(at, &converted, sizeof converted); };
  auto integer = [&] { return static_cast<int64_t>(value); };
  switch (dtype) {
    case DType::kF32: return write(static_cast<float>(value));
    case DType::kF64: return write(value);
    case DType::kF16: return write(float_to_half(static_cast<float>(value)));
    case DType::kBF16: return write(float_to_bfloat(static_cast<float>(value)));
    case DType::kI64: return write(integer());
    case DType::kI32: return write(static_cast<int32_t>(integer()));
    case DType::kI16: return write(static_cast<int16_t>(integer()));
    case DType::kI8: return write(static_cast<int8_t>(integer()));
    case DType::kBool: return write(static_cast<uint8_t>(value != 0));
    default: return write(static_cast<uint8_t>(integer()));
  }
}

std::vector<int64_t> storage_bytes(const Trace& trace) {
  std::vector<int64_t> bytes(trace.num_storages, 0);
  for (const TensorMeta& meta : trace.metas) {
    int64_t last = meta.offset;
    bool empty = false;
    for (size_t k = 0; k < meta.sizes.size(); ++k) {
      empty = empty || meta.sizes[k] == 0;
      last += (meta.sizes[k] - 1) * meta.strides[k];
    }
    if (!empty) bytes[meta.storage] = std::max(bytes[meta.storage], (last + 1) * dtype_size(meta.dtype));
  }
  return bytes;
}

namespace {

class Evaluator {
 public:
  Evaluator(const Trace& trace, Evaluation* evaluation) : trace_(trace), out_(*evaluation), numbers_(trace.insts.size(), 0) {}

  base::Status run() {
    std::vector<int64_t> bytes = storage_bytes(trace_);
    out_.memory.resize(trace_.num_storages);
    for (int32_t s = 0; s < trace_.num_storages; ++s) out_.memory[s].resize(bytes[s], 0xA5);
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      const Inst& inst = trace_.insts[ref];
      if (inst.op == Op::k_unbox_tensor) visible_[storage_of(trace_, ref)] = true;
    }
    for (Ref ref = 0; ref < trace_.insts.size(); ++ref) {
      const Inst& inst = trace_.insts[ref];
      if (inst.sunk) continue;
      base::Status status = step(ref, inst);
      if (!status.ok()) return status;
      if (out_.left_at != kNoRef) break;
    }
    return base::Status();
  }

 private:
  base::Status step(Ref ref, const Inst& inst) {
    if (has_effect(inst, kGuard | kBarrier | kEnd) && inst.type != Type::kTensor && inst.op != Op::k_unbox_int &&
        inst.op != Op::k_unbox_float && inst.op != Op::k_unbox_bool && inst.snapshot != kNoSnapshot) {
      observe(inst);
    }
    auto a = [&] { return numbers_[trace_.arg(inst, 0)]; };
    auto b = [&] { return numbers_[trace_.arg(inst, 1)]; };
    double& result = numbers_[ref];
    switch (inst.op) {
      case Op::k_const_int:
      case Op::k_const_bool: result = static_cast<double>(inst.imm); break;
      case Op::k_const_float: result = std::bit_cast<double>(inst.imm); break;
      case Op::k_unbox_int:
      case Op::k_unbox_float:
      case Op::k_unbox_bool: {
        auto given = out_.numbers.find(ref);
        if (given != out_.numbers.end()) result = given->second;
        break;
      }
      case Op::k_add_int:
      case Op::k_add_float: result = a() + b(); break;
      case Op::k_sub_int:
      case Op::k_sub_float: result = a() - b(); break;
      case Op::k_mul_int:
      case Op::k_mul_float: result = a() * b(); break;
      case Op::k_div_float:
        if (b() == 0) out_.left_at = ref;
        result = a() / b();
        break;
      case Op::k_pow_float: result = std::pow(a(), b()); break;
      case Op::k_sqrt_float:
        if (a() < 0) out_.left_at = ref;
        result = std::sqrt(a());
        break;
      case Op::k_neg_int:
      case Op::k_neg_float: result = -a(); break;
      case Op::k_abs_float: result = std::fabs(a()); break;
      case Op::k_eq_int:
      case Op::k_eq_float: result = a() == b(); break;
      case Op::k_ne_int:
      case Op::k_ne_float: result = a() != b(); break;
      case Op::k_lt_int:
      case Op::k_lt_float: result = a() < b(); break;
      case Op::k_le_int:
      case Op::k_le_float: result = a() <= b(); break;
      case Op::k_gt_int:
      case Op::k_gt_float: result = a() > b(); break;
      case Op::k_ge_int:
      case Op::k_ge_float: result = a() >= b(); break;
      case Op::k_not_bool: result = !a(); break;
      case Op::k_int_to_float:
      case Op::k_bool_to_int: result = a(); break;
      case Op::k_guard_true:
        if (!a()) out_.left_at = ref;
        break;
      case Op::k_guard_false:
        if (a()) out_.left_at = ref;
        break;
      case Op::k_wrap:
        for (int32_t storage : wrap_storages(trace_, ref)) visible_[storage] = true;
        break;
      case Op::k_read_scalar: {
        const TensorMeta& meta = trace_.metas[trace_.insts[trace_.arg(inst, 0)].meta];
        result = load_number(out_.memory[meta.storage].data() + meta.offset * dtype_size(meta.dtype), meta.dtype);
        break;
      }
      case Op::k_draw_seed: result = static_cast<double>(out_.generator.seed); break;
      case Op::k_draw_offset:
        result = static_cast<double>(out_.generator.offset);
        out_.generator.offset += inst.imm;
        break;
      case Op::k_kernel: return run_kernel(inst);
      case Op::k_aten: {
        if (is_view_call(trace_, inst)) break;
        base::Status status = evaluate_aten(trace_, inst, numbers_, &out_.memory, &out_.generator);
        if (!status.ok()) return status.in(trace_.calls[inst.imm].name);
        break;
      }
      case Op::k_floordiv_int:
      case Op::k_mod_int: return base::Status::failure(std::string(op_info(inst.op).name) + " is not evaluated");
      default: break;
    }
    return base::Status();
  }

  base::Status run_kernel(const Inst& inst) {
    const Kernel& kernel = trace_.kernels[inst.imm];
    std::vector<void*> pointers;
    for (auto& storage : out_.memory) pointers.push_back(storage.data());
    std::vector<int64_t> scalars;
    for (size_t k = 0; k < kernel.scalar_types.size(); ++k) {
      double value = numbers_[trace_.arg(inst, static_cast<uint32_t>(kernel.operands.size() + k))];
      scalars.push_back(kernel.scalar_types[k] == DType::kF64 ? std::bit_cast<int64_t>(value) : static_cast<int64_t>(value));
    }
    if (out_.run_kernel) return out_.run_kernel(kernel, pointers.data(), scalars.data());
    return eval_kernel(kernel, pointers.data(), scalars.data()) ? base::Status() : base::Status::failure(kernel.name + ": an index is out of bounds");
  }

  // A storage's memory as the script sees it.
  std::vector<uint8_t> shown(int32_t storage) const {
    const std::vector<uint8_t>& memory = out_.memory[storage];
    const auto laid_out = std::find_if(trace_.metas.begin(), trace_.metas.end(), [&](const TensorMeta& meta) { return meta.storage == storage && !meta.shown.empty(); });
    if (laid_out == trace_.metas.end()) return memory;
    std::vector<uint8_t> out(memory.size());
    const auto size = static_cast<int64_t>(dtype_size(laid_out->dtype));
    for (int64_t element = 0; element < elements(*laid_out); ++element) {
      int64_t rest = element, from = laid_out->offset, to = laid_out->offset;
      for (size_t d = laid_out->sizes.size(); d-- > 0; rest /= laid_out->sizes[d]) {
        from += rest % laid_out->sizes[d] * laid_out->strides[d];
        to += rest % laid_out->sizes[d] * laid_out->shown[d];
      }
      std::memcpy(out.data() + to * size, memory.data() + from * size, static_cast<size_t>(size));
    }
    return out;
  }

  void observe(const Inst& inst) {
    Observation observation{inst.op, {}};
    auto see = [&](int32_t storage) { observation.memory[storage] = shown(storage); };
    for (auto [storage, visible] : visible_)
      if (visible) see(storage);
    std::vector<Ref> work;
    for_each_value(trace_, trace_.snapshots[inst.snapshot], [&](Ref value) { work.push_back(value); });
    while (!work.empty()) {
      Ref value = work.back();
      work.pop_back();
      const Inst& object = trace_.insts[value];
      if (object.op == Op::k_wrap)
        for (int32_t storage : wrap_storages(trace_, value)) see(storage);
      if (object.sunk)
        for (uint32_t k = 0; k < object.count; ++k) work.push_back(trace_.arg(object, k));
    }
    out_.seen.push_back(std::move(observation));
  }

  const Trace& trace_;
  Evaluation& out_;
  std::vector<double> numbers_;
  std::map<int32_t, bool> visible_;
};

}  // namespace

base::Status evaluate(const Trace& trace, Evaluation* evaluation) { return Evaluator(trace, evaluation).run(); }

}  // namespace dynvm::ir
