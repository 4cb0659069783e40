// See small_work.h. The OpenMP library is the one that libtorch_cpu was linked with; where it has none, nothing is done.
#include "runtime/torch/small_work.h"

#include "runtime/torch/torch_symbol.h"

namespace dynvm::torch_bridge {
namespace {

struct OpenMp {
  int (*get)() = nullptr;
  void (*set)(int) = nullptr;

  OpenMp() {
    get = reinterpret_cast<int (*)()>(torch_symbol("omp_get_max_threads"));
    set = reinterpret_cast<void (*)(int)>(torch_symbol("omp_set_num_threads"));
    if (!set) get = nullptr;
  }
};

const OpenMp& openmp() {
  static const OpenMp library;
  return library;
}

}  // namespace

SmallWork::SmallWork(bool small) {
  if (!small || !openmp().get) return;
  const int threads = openmp().get();
  if (threads <= 1) return;
  before_ = threads;
  openmp().set(1);
}

SmallWork::~SmallWork() {
  if (before_ != 0) openmp().set(before_);
}

}  // namespace dynvm::torch_bridge
