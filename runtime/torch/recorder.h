// Records what torch calls become below autograd, and counts it.
//
// Method: a boxed fallback on DispatchKey::Fake, which lies below autograd, autocast and Python and above the backends, and is switched on
// per thread by including the key in the thread's set. at::ThreadLocalState carries it to autograd's threads, and with it the mark of the
// thread that is recorded: other threads may be counted meanwhile.
//
// Inputs: the operations of the thread that called enable(), and of autograd's threads that work for it. Outputs: OpRecords.
// Invariants: no Python object is touched while torch runs (its bindings may have released the GIL); tensors and storages are held weakly, as
// a strong reference would make AccumulateGrad copy a gradient that it steals in eager. Tests: tests/torch.
#pragma once

#include <c10/core/DispatchKey.h>

#include <cstdint>
#include <memory>

#include "runtime/bridge/bridge.h"

namespace dynvm::torch_bridge {

constexpr c10::DispatchKey kRecordKey = c10::DispatchKey::Fake;
// Included and excluded at once, so that no operation is sent there.
constexpr c10::DispatchKey kRecordedMark = c10::DispatchKey::TESTING_ONLY_GenericMode;

// Registers the fallback; throws what torch throws when the key is taken.
void register_recording_fallback();
std::unique_ptr<bridge::Recorder> make_recorder();
void set_counting(bool on);  // of this thread's operations
void settle_keys();          // this thread's key sets as they are to be, now that keys_hidden() (watched_functions.h) may give something else
uint64_t ops_counted();
uint64_t backward_ops_counted();        // those of them that the autograd engine ran
uint64_t differentiated_ops_counted();  // those that it made nodes for

}  // namespace dynvm::torch_bridge
