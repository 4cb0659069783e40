// CPython 3.12: frames and generators, which libpython 3.12 does not let others make or end.
//
// Purpose, inputs, outputs: see cpython.h. Invariants: each function has the effects of the CPython function that its comment in common.h
// or below names, in the same order where Python code can see it. Tests: tests/vm/.
#include "vm/cpython/cpython.h"

#include "vm/vm.h"

namespace dynvm::vm::cpython {

void mark_position(PyGenObject* generator) {
  if (frame_of(generator)->prev_instr->op.code != RETURN_GENERATOR) generator->gi_frame_state = FRAME_SUSPENDED;
}

PyCodeObject* code_of_generator(PyGenObject* generator) { return frame_of(generator)->f_code; }

bool delegates(PyGenObject* generator) {
  if (generator->gi_frame_state >= FRAME_CLEARED || generator->gi_frame_state == FRAME_CREATED) return false;
  const Frame* frame = frame_of(generator);
  const Decoded next = decode_unit(frame->f_code, next_unit(frame), 0);
  return next.info.op == Op::kResume && next.arg >= 2;
}

}  // namespace dynvm::vm::cpython
