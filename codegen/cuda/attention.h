// CUDA C++ for attention: the kernels with a reduce_attend (ir/kernel/kernel.h).
//
// Input: such a kernel of f32, whose queries, keys, values and results are loaded and stored as they are, each along the last dim without gaps; what comes
// between dot and reduce_attend is any expression of the pair. Output: the source of one function, as of render_kernel. A kernel of another shape fails.
//
// A block has 16 queries. Its warps have 16 keys each at a time, in turns, and combine their parts at the end (the softmax of parts: Milakov and Gimelshein,
// arXiv 1805.02867; over blocks of keys as in FlashAttention, arXiv 2205.14135). Products are tensor cores', of f32 as three of TF32: a number is the sum of
// two such, and only the product of the two small parts is left out (errors as of f32). Each thread loads what its own fragments need straight from
// memory: the order of keys, and of the elements of a head, is free, so it is chosen such that these lie side by side, and nothing goes through shared memory.
// Tests: tests/cuda.
#pragma once

#include <string>

#include "codegen/cuda/render.h"

namespace dynvm::codegen::cuda {

base::Status render_attention(const ir::Kernel& kernel, const std::string& name, const RenderOptions& options, Source* out);

}  // namespace dynvm::codegen::cuda
