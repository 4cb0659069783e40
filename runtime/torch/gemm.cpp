// See gemm.h. The choice of layouts is that of addmm_impl_cpu_ in ATen/native/LinearAlgebra.cpp for a row-major result: BLAS is column-major,
// so it computes out^T = b^T * a^T.
#include "runtime/torch/gemm.h"

#include <ATen/Context.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "runtime/torch/torch_symbol.h"

namespace dynvm::torch_bridge {
namespace {

using Sgemm = void (*)(const char* transa, const char* transb, const int* m, const int* n, const int* k, const float* alpha, const float* a,
                       const int* lda, const float* b, const int* ldb, const float* beta, float* c, const int* ldc);

using SetThreads = int (*)(int);

// Below this many multiplications and additions (about 40 us of one core) the barriers of several threads cost more than they save.
constexpr double kSerialOperations = 4e6;

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
bool layout_of(const at::Tensor& matrix, char* transposed, int* leading) {
  const int64_t rows = matrix.sizes()[0], columns = matrix.sizes()[1], row = matrix.strides()[0], column = matrix.strides()[1];
  const bool plain = column == 1 && row >= std::max<int64_t>(1, columns);
  if (!plain && !(row == 1 && column >= std::max<int64_t>(1, rows))) return false;
  *transposed = plain ? 'n' : 't';
  const int64_t stride = plain ? row : column;
  *leading = static_cast<int>(stride);
  return stride <= INT_MAX && rows <= INT_MAX && columns <= INT_MAX;
}

bool is_float_matrix(const at::Tensor& t) { return t.scalar_type() == at::kFloat && t.dim() == 2; }

}  // namespace

bool multiply(const at::Tensor& a, const at::Tensor& b, const at::Tensor* bias, const at::Tensor& out) {
  static const auto sgemm = reinterpret_cast<Sgemm>(torch_symbol("sgemm_"));
  if (!sgemm || !is_float_matrix(a) || !is_float_matrix(b) || !is_float_matrix(out)) return false;
  const int64_t rows = out.sizes()[0], columns = out.sizes()[1], inner = a.sizes()[1];
  // One column is a layout of its own in ATen, and empty products are not for BLAS.
  if (rows == 0 || columns < 2 || inner == 0 || out.strides()[1] != 1 || out.strides()[0] != columns) return false;
  if (bias && (bias->dim() != 1 || bias->sizes()[0] != columns || bias->strides()[0] != 1 || bias->scalar_type() != at::kFloat)) return false;
  char transa, transb;
  int lda, ldb;
  if (!layout_of(b, &transa, &lda) || !layout_of(a, &transb, &ldb)) return false;
  const at::Float32Precision precision = at::globalContext().float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL);
  if (precision == at::Float32Precision::BF16 || precision == at::Float32Precision::TF32) return false;

  float* result = static_cast<float*>(out.mutable_data_ptr());
  if (bias) {
    const void* row = bias->const_data_ptr();
    for (int64_t k = 0; k < rows; ++k) std::memcpy(result + k * columns, row, static_cast<size_t>(columns) * sizeof(float));
  }
  const int m = static_cast<int>(columns), n = static_cast<int>(rows), k = static_cast<int>(inner), ldc = m;
  const float alpha = 1, beta = bias ? 1 : 0;
  const OneThread one_thread(2.0 * static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(inner) < kSerialOperations);
  sgemm(&transa, &transb, &m, &n, &k, &alpha, static_cast<const float*>(b.const_data_ptr()), &lda,
        static_cast<const float*>(a.const_data_ptr()), &ldb, &beta, result, &ldc);
  return true;
}

}  // namespace dynvm::torch_bridge
