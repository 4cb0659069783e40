// See work.h.
#include "ir/work.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace dynvm::ir {

namespace {

double points_of(const Kernel& kernel, uint32_t dims) {
  double points = 1;
  for (size_t d = 0; d < kernel.sizes.size(); ++d)
    if (dims >> d & 1) points *= static_cast<double>(kernel.sizes[d]);
  return points;
}

double bytes_of(const Kernel& kernel, const KernelOperand& operand) {
  uint32_t dims = 0;
  for (size_t d = 0; d < operand.strides.size(); ++d)
    if (operand.strides[d] != 0) dims |= 1u << d;
  return points_of(kernel, dims) * static_cast<double>(dtype_size(operand.dtype));
}

double flops_of(KOp op) {
  switch (op) {
    case KOp::k_load:
    case KOp::k_load_at:
    case KOp::k_scalar:
    case KOp::k_const:
    case KOp::k_index:
    case KOp::k_cast:
    case KOp::k_where: return 0;
    case KOp::k_fma:
    case KOp::k_dot:
    case KOp::k_reduce_attend: return 2;
    case KOp::k_draw: return 15;  // ten rounds of six integer operations for four numbers
    default: return 1;
  }
}

const TensorMeta* meta_of(const Trace& trace, const Inst& inst, const AtenArg& arg) {
  if (arg.kind != AtenArg::kTensor || arg.operands.empty() || arg.operands[0] < 0) return nullptr;
  const int32_t meta = trace.insts[trace.arg(inst, static_cast<uint32_t>(arg.operands[0]))].meta;
  return meta < 0 ? nullptr : &trace.metas[meta];
}

double bytes_of(const TensorMeta& meta) {
  int64_t elements = 1;
  for (size_t d = 0; d < meta.sizes.size(); ++d)
    if (meta.strides[d] != 0 || meta.sizes[d] == 0) elements *= meta.sizes[d];
  return static_cast<double>(elements * dtype_size(meta.dtype));
}

}  // namespace

Work work_of(const Kernel& kernel) {
  Work work;
  work.points = points_of(kernel, ~0u);
  using Geometry = std::tuple<int32_t, int64_t, std::vector<int64_t>>;
  std::set<Geometry> read, written;
  const auto is_new = [](std::set<Geometry>* seen, const KernelOperand& operand) { return seen->emplace(operand.pointer, operand.offset, operand.strides).second; };
  const std::vector<uint32_t> dims = node_dims(kernel);
  const uint32_t all = kernel.sizes.size() >= 32 ? ~0u : (1u << kernel.sizes.size()) - 1;
  for (size_t k = 0; k < kernel.nodes.size(); ++k) {
    const KernelNode& node = kernel.nodes[k];
    if (node.op == KOp::k_load && is_new(&read, kernel.operands[node.operand])) work.bytes_read += bytes_of(kernel, kernel.operands[node.operand]);
    if (node.op == KOp::k_load_at) work.bytes_read += points_of(kernel, dims[k]) * dtype_size(node.dtype);  // which of them are the same, data says
    // A reduction adds as often as its operand has values; one that has none in the reduced dims is multiplied there, at most.
    uint32_t at = is_reduce(node.op) ? dims[node.a] | kernel.reduce_dims : dims[k];
    if (node.op == KOp::k_dot || node.op == KOp::k_reduce_attend) at |= dims[node.a] | dims[node.b];  // each product is added
    work.flops += flops_of(node.op) * points_of(kernel, at & all);
  }
  for (const KernelStore& store : kernel.stores) {
    if (store.has_place()) {
      const double points = points_of(kernel, is_full_store(kernel, dims, store) ? all : all & ~kernel.reduce_dims);
      const double bytes = points * dtype_size(kernel.operands[store.operand].dtype);
      work.bytes_written += bytes;
      if (store.adds) work.bytes_read += bytes, work.flops += points;
      continue;
    }
    if (is_new(&written, kernel.operands[store.operand])) work.bytes_written += bytes_of(kernel, kernel.operands[store.operand]);
  }
  return work;
}

Work work_of(const Trace& trace, const Inst& aten) {
  Work work;
  const AtenCall& call = trace.calls[aten.imm];
  std::set<Ref> read;
  for (uint32_t k = 0; k < aten.count; ++k) {
    const Ref ref = trace.arg(aten, k);
    if (trace.insts[ref].meta >= 0 && read.insert(ref).second) work.bytes_read += bytes_of(trace.metas[trace.insts[ref].meta]);
  }
  const TensorMeta* first_result = nullptr;
  for (int32_t result : call.results) {
    if (result < 0) continue;
    if (first_result == nullptr) first_result = &trace.metas[result];
    work.bytes_written += bytes_of(trace.metas[result]);
    work.points += static_cast<double>(elements(trace.metas[result]));
  }
  const auto arg = [&](size_t k) { return k < call.args.size() ? meta_of(trace, aten, call.args[k]) : nullptr; };
  const auto product = [&](const TensorMeta* a, const TensorMeta* b) {
    if (a != nullptr && b != nullptr && !b->sizes.empty()) work.flops = 2.0 * static_cast<double>(elements(*a)) * static_cast<double>(b->sizes.back());
  };
  // Of one output element of a convolution: a filter's weights.
  const auto filter = [](const TensorMeta& weight) { return weight.sizes.empty() || weight.sizes[0] == 0 ? 0.0 : static_cast<double>(elements(weight) / weight.sizes[0]); };
  if (call.name == "aten::mm" || call.name == "aten::bmm") {
    product(arg(0), arg(1));
  } else if (call.name == "aten::addmm" || call.name == "aten::baddbmm") {
    product(arg(1), arg(2));
  } else if ((call.name == "aten::convolution" || call.name == "aten::mkldnn_convolution") && first_result != nullptr && arg(1) != nullptr) {
    work.flops = 2.0 * static_cast<double>(elements(*first_result)) * filter(*arg(1));
  } else if (call.name == "aten::convolution_backward" && arg(0) != nullptr && arg(2) != nullptr) {
    double gradients = 0;  // of the input and of the weight, where they are wanted
    for (size_t k = 0; k < 2 && k < call.results.size(); ++k) gradients += call.results[k] >= 0;
    work.flops = 2.0 * gradients * static_cast<double>(elements(*arg(0))) * filter(*arg(2));
  }
  return work;
}

}  // namespace dynvm::ir
