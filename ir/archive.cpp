// See archive.h. Each struct's fields stand here once.
#include "ir/archive.h"

namespace dynvm::ir {

template <class A>
void fields(A& a, Inst& x) { a(x.op, x.type, x.sunk, x.again, x.snapshot, x.first, x.count, x.imm, x.meta); }

template <class A>
void fields(A& a, TensorMeta& x) {
  a(x.dtype, x.device_type, x.device_index, x.requires_grad, x.is_leaf, x.wrapped_number, x.is_parameter, x.is_subclass, x.has_hooks, x.inference, x.storage, x.offset, x.sizes, x.strides,
    x.shown, x.open, x.symbolic);
}

template <class A>
void fields(A& a, AtenArg& x) {
  a(x.kind, x.dtype, x.is_optional_list, x.operands, x.f, x.s, x.ints, x.floats);
  if (x.kind == AtenArg::kOpaque) a.opaque(x.i);
  else a(x.i);
}

template <class A>
void fields(A& a, RandomStream& x) { a(x.threads, x.vector); }

template <class A>
void fields(A& a, AtenCall& x) {
  a(x.name, x.overload, x.args, x.results, x.result_alias, x.mutates, x.defines_sizes, x.follows, x.is_random, x.stream, x.grad_mode, x.inference_mode, x.in_backward, x.moves, x.autocast, x.count);
}

template <class A>
void fields(A& a, FreedNode& x) { a(x.value, x.grad_fn, x.output_nr); }

template <class A>
void fields(A& a, CallNumber& x) { a(x.call, x.argument); }

template <class A>
void fields(A& a, GraphNode& x) { a(x.number, x.outputs, x.names, x.inputs, x.reached_by, x.numbers, x.saved, x.sized, x.calls); }

template <class A>
void fields(A& a, Wrap& x) { a(x.requires_grad, x.is_leaf, x.grad_fn, x.output_nr, x.freed, x.forward, x.freed_behind, x.nodes); }

template <class A>
void fields(A& a, TorchState& x) {
  a(x.grad_mode, x.inference_mode, x.autocast_cpu, x.autocast_cuda, x.deterministic, x.overrides, x.function_modes, x.default_dtype, x.autocast_cpu_dtype, x.autocast_cuda_dtype,
    x.cuda_device, x.clean);
}

template <class A>
void fields(A& a, Object& x) {
  a.pointer(x.pointer);
  a(x.text);
}

template <class A>
void fields(A& a, SnapshotFrame& x) {
  a.pointer(x.code);
  a(x.function, x.unit, x.continuation, x.continuation_value, x.slots);
}

template <class A>
void fields(A& a, SnapshotStore& x) { a(x.dict, x.key, x.value); }

template <class A>
void fields(A& a, Snapshot& x) { a(x.elsewhere, x.frames, x.stores); }

template <class A>
void fields(A& a, KernelNode& x) { a(x.op, x.dtype, x.a, x.b, x.c, x.operand, x.i); }

template <class A>
void fields(A& a, KernelOperand& x) { a(x.dtype, x.strides, x.offset, x.pointer); }

template <class A>
void fields(A& a, KernelStore& x) { a(x.operand, x.node, x.at, x.holds, x.adds); }

template <class A>
void fields(A& a, Kernel& x) { a(x.name, x.sizes, x.reduce_dims, x.operands, x.nodes, x.stores, x.scalar_types, x.symbols, x.num_pointers); }

template <class A>
void fields(A& a, SymbolSum& x) { a(x.symbol, x.terms); }

template <class A>
void fields(A& a, Trace& x) {
  a(x.id, x.name, x.insts, x.operands, x.snapshots, x.frames, x.objects, x.metas, x.calls, x.wraps, x.torch_states, x.kernels, x.kernel_op_counts, x.num_storages, x.symbols, x.sums);
}

template <class A>
void fields(A& a, StoragePlan& x) { a(x.kind, x.bytes, x.offset, x.first, x.last, x.symbolic, x.shared); }

template <class A>
void fields(A& a, Plan& x) { a(x.storages, x.arena_bytes, x.arranged_at); }

void write_trace(ArchiveWriter& archive, const Trace& trace, const Plan& plan) { archive(trace, plan); }

void read_trace(ArchiveReader& archive, Trace* trace, Plan* plan) { archive(*trace, *plan); }

}  // namespace dynvm::ir
