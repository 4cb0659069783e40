// What GPUs run while a profile is made: kernels, copies and fills with their times, of whoever queued them. Told by CUPTI, which is opened at run time.
//
// Inputs: CUPTI's records, in threads of its own. Outputs: base::profile::Data::gpu, when the script is over.
// Invariants: nothing is opened where there is no device; without CUPTI the data says why. Only the first fields of a record are read, which have stood in the
// same places since CUPTI 9 (kernels) and 11 (copies, fills).
// Tests: tests/cuda/test_whole.py (on a machine with a GPU), tests/profile/test_model.py.
#pragma once

namespace dynvm::codegen::cuda {

// From now on, until the script is over. Only the first call does something.
void watch_activity();

}  // namespace dynvm::codegen::cuda
