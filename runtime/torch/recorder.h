// Records what torch calls become below autograd, and counts it.
//
// Method: a boxed fallback on DispatchKey::Fake, which lies below autograd, autocast and Python and above the backends, and is switched on
// per thread by including the key in the thread's set. at::ThreadLocalState carries it to autograd's threads.
//
// Inputs: the operations of the thread that called enable(). Outputs: OpRecords.
// Invariants: no Python object is touched while torch runs (its bindings may have released the GIL); tensors and storages are held weakly, as
// a strong reference would make AccumulateGrad copy a gradient that it steals in eager. Tests: tests/torch.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/bridge/bridge.h"

namespace dynvm::torch_bridge {

// Registers the fallback; throws what torch throws when the key is taken.
void register_recording_fallback();
std::unique_ptr<bridge::Recorder> make_recorder();
void set_counting(bool on);
uint64_t ops_counted();

}  // namespace dynvm::torch_bridge
