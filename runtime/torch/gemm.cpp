// See gemm.h. The choice of layouts is that of addmm_impl_cpu_ in ATen/native/LinearAlgebra.cpp for a row-major result: BLAS is column-major,
// so it computes out^T = b^T * a^T.
#include "runtime/torch/gemm.h"

#include <ATen/Context.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "runtime/base/heuristics.h"
#include "runtime/torch/torch_symbol.h"

namespace dynvm::torch_bridge {
namespace {

using Sgemm = void (*)(const char* transa, const char* transb, const int* m, const int* n, const int* k, const float* alpha, const float* a,
                       const int* lda, const float* b, const int* ldb, const float* beta, float* c, const int* ldc);

using SetThreads = int (*)(int);

codegen::MatmulFunction tiles;

// MKL on this thread only, while it lives.
class OneThread {
 public:
  explicit OneThread(bool wanted) : before_(wanted && set_threads() ? set_threads()(1) : kUntouched) {}
  ~OneThread() {
    if (before_ != kUntouched) set_threads()(before_);
  }

 private:
  static constexpr int kUntouched = -1;
  static SetThreads set_threads() {
    static const auto function = reinterpret_cast<SetThreads>(torch_symbol("MKL_Set_Num_Threads_Local"));
    return function;
  }
  int before_;
};

// How BLAS is told of a row-major view [rows, columns]; false where it cannot be.
bool layout_of(const codegen::Matmul::Matrix& matrix, int64_t rows, int64_t columns, char* transposed, int* leading) {
  const bool plain = matrix.column == 1 && matrix.row >= std::max<int64_t>(1, columns);
  if (!plain && !(matrix.row == 1 && matrix.column >= std::max<int64_t>(1, rows))) return false;
  *transposed = plain ? 'n' : 't';
  const int64_t stride = plain ? matrix.row : matrix.column;
  *leading = static_cast<int>(stride);
  return stride <= INT_MAX && rows <= INT_MAX && columns <= INT_MAX;
}

// The last two dims, and the one before as the batch's.
codegen::Matmul::Matrix matrix_of(const at::Tensor& tensor) {
  const int64_t last = tensor.dim() - 1;
  return {tensor.const_data_ptr(), tensor.stride(last - 1), tensor.stride(last), last == 2 ? tensor.stride(0) : 0};
}

bool reduced_precision() {
  const at::Float32Precision precision = at::globalContext().float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL);
  return precision == at::Float32Precision::BF16 || precision == at::Float32Precision::TF32;
}

// What each result starts from: `start` as if expanded to out's sizes.
codegen::Matmul::Matrix start_of(const at::Tensor& start, const at::Tensor& out) {
  codegen::Matmul::Matrix matrix;
  matrix.data = start.const_data_ptr();
  int64_t* const strides[] = {&matrix.column, &matrix.row, &matrix.batch};
  for (int64_t k = 0; k < start.dim(); ++k) {
    const int64_t size = start.size(start.dim() - 1 - k);
    *strides[k] = size == 1 && out.size(out.dim() - 1 - k) != 1 ? 0 : start.stride(start.dim() - 1 - k);
  }
  if (out.size(out.dim() - 1) == 1) matrix.column = 1;
  return matrix;
}

bool multiply_by_library(const codegen::Matmul& call) {
  static const auto sgemm = reinterpret_cast<Sgemm>(torch_symbol("sgemm_"));
  // One column is a layout of its own in ATen.
  if (!sgemm || call.wide || call.batches != 1 || call.columns < 2 || call.out_row != call.columns) return false;
  if (call.start.data && call.start.row != 0) return false;
  char transa, transb;
  int lda, ldb;
  if (!layout_of(call.b, call.inner, call.columns, &transa, &lda) || !layout_of(call.a, call.rows, call.inner, &transb, &ldb)) return false;

  auto* result = static_cast<float*>(call.out);
  if (call.start.data)
    for (int64_t k = 0; k < call.rows; ++k) std::memcpy(result + k * call.columns, call.start.data, static_cast<size_t>(call.columns) * sizeof(float));
  const int m = static_cast<int>(call.columns), n = static_cast<int>(call.rows), k = static_cast<int>(call.inner), ldc = m;
  const float alpha = 1, beta = call.start.data ? 1 : 0;
  // Below this much (about 40 us of one core) the barriers of several threads cost more than they save.
  const OneThread one_thread(2.0 * static_cast<double>(call.rows) * static_cast<double>(call.columns) * static_cast<double>(call.inner) < 1e3 * base::heuristics().gemm_serial);
  sgemm(&transa, &transb, &m, &n, &k, &alpha, static_cast<const float*>(call.b.data), &lda, static_cast<const float*>(call.a.data), &ldb, &beta,
        result, &ldc);
  return true;
}

}  // namespace

void set_matmul(codegen::MatmulFunction function) { tiles = function; }

bool multiply(const at::Tensor& a, const at::Tensor& b, const at::Tensor* start, const at::Tensor& out) {
  const c10::ScalarType type = out.scalar_type();
  if ((type != at::kFloat && type != at::kDouble) || a.scalar_type() != type || b.scalar_type() != type || (start && start->scalar_type() != type)) return false;
  if (out.numel() == 0 || a.numel() == 0 || out.stride(out.dim() - 1) != 1) return false;
  if (type == at::kFloat && reduced_precision()) return false;
  codegen::Matmul call;
  call.wide = type == at::kDouble;
  const int64_t last = out.dim() - 1;
  call.batches = last == 2 ? out.size(0) : 1;
  call.rows = out.size(last - 1), call.columns = out.size(last), call.inner = a.size(last);
  call.a = matrix_of(a), call.b = matrix_of(b);
  if (start) {
    call.start = start_of(*start, out);
    if (call.start.column != 1) return false;
  }
  const codegen::Matmul::Matrix result = matrix_of(out);
  call.out = out.mutable_data_ptr(), call.out_row = result.row, call.out_batch = result.batch;
  return (tiles && tiles(call)) || multiply_by_library(call);
}

}  // namespace dynvm::torch_bridge
