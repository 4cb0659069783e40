// What generated code calls: one C function per op that is not emitted inline, and a few for everyone.
//
// Inputs: filled by runtime/exec (residual operations) and from the torch bridge's SessionFunctions. Invariant: codegen knows only
// addresses and calling shapes, so it depends on neither the runtime nor Python.
// Tests: tests/exec.
#pragma once

#include <array>
#include <cstdint>

#include "ir/trace.h"

namespace dynvm::codegen {

// How a helper takes its operands and gives its result. Values are 64-bit: object pointers, or the bits of a number.
// An object result is null where the operation raised, a truth or status is negative then, unless said otherwise.
enum class HelperShape : uint8_t {
  kNone,       // no helper: emitted inline, or nothing to emit
  kValues,     // f(operands...)                  at most 4
  kValuesImm,  // f(operands..., imm)             at most 3
  kNullable,   // f(operands...)                  null is a result, never raises
  kArray,      // f(operand array, count)
  kCall,       // f(operand array, count, names)  operand 0 is the callable; names: tuple of keyword names or null
  kOut,        // status f(operands..., *result)  null is a result; negative: raised
  kGuardOut,   // status f(operands..., *result)  not 0: leave through the snapshot
};

struct Helper {
  const void* address = nullptr;
  HelperShape shape = HelperShape::kNone;
};

struct HelperTable {
  std::array<Helper, static_cast<size_t>(ir::Op::kCount)> by_op;
  const void* unbox_int = nullptr;      // int(object, int64*): 0, or 1 when it does not fit
  const void* dict_of = nullptr;        // object(object): materialised __dict__ borrowed, or null, for types without a managed dict
  const void* write_back = nullptr;     // int(Activation*): stores the root slots of the loop's snapshot; -1: raised
  const void* let_go = nullptr;         // void(Activation*, slot): the root slot's object is not needed any more, if nobody else has it. May be null
  const void* out_of_memory = nullptr;  // noreturn(inst): an operation without a snapshot failed
  const void* wrap = nullptr;           // object(Activation*, inst): a new tensor object
  // The session's functions (bridge.h), null without tensors.
  const void* bind_input = nullptr;
  const void* check_state = nullptr;
  const void* allocate = nullptr;       // (session, storage, unused, Activation*)
  const void* arrange = nullptr;
  const void* call = nullptr;
  const void* read_scalar = nullptr;    // (session, tensor, value, Activation*, inst)
  const void* tensor_size = nullptr;
  const void* seed = nullptr;
  const void* draw = nullptr;
  const void* bump_version = nullptr;
  const void* end_iteration = nullptr;
  const void* show_begin = nullptr;     // (session, name): to a profiler of torch's, where one listens
  const void* show_end = nullptr;
  const void* drop_storage = nullptr;   // (session, storage, unused, Activation*): its memory is not needed any more
  const void* barrier = nullptr;        // int(Activation*, inst): the instruction may look at a device; -1: raised. Null where no work is put off
  // object(context, tensor object), int(context, tensor object, gradient)
  const void* get_grad = nullptr;
  const void* set_grad = nullptr;
  const void* take_graph = nullptr;
  const void* grad_context = nullptr;

  const Helper& of(ir::Op op) const { return by_op[static_cast<size_t>(op)]; }
};

}  // namespace dynvm::codegen
