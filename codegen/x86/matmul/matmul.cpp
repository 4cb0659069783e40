// Splits a product into panels of columns and blocks of rows. See matmul.h. Tests: tests/kernel/matmul_test.cpp.
#include "codegen/x86/matmul/matmul.h"

#include <immintrin.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

#include "codegen/parallel.h"
#include "codegen/x86/matmul/tile.h"
#include "runtime/base/heuristics.h"

namespace dynvm::codegen {
namespace {

constexpr int64_t kInnerBlock = 512;            // k of one pass over a panel: 128 KiB of b with AVX-512

// Above it, blocking for all caches wins, with the same instructions. Where the library keeps to AVX2, it takes twice the time of tiles for AVX-512 whatever the sizes. (bench/RESULTS.md)
double largest_work(const CpuFeatures& features) { return features.avx512 && !features.intel ? std::numeric_limits<double>::infinity() : 1e6 * base::heuristics().matmul_largest; }

// The most bytes of an operand of which each k stands in other lines: AVX2's small tiles read it again too often. b is packed instead. (bench/RESULTS.md)
int64_t largest_strided(const CpuFeatures& features) { return static_cast<int64_t>(features.avx512 ? base::heuristics().matmul_strided : base::heuristics().matmul_strided_avx2) << 10; }

bool is_large_b(const Matmul& call, const CpuFeatures& features) { return call.columns * call.inner * (call.wide ? 8 : 4) > largest_strided(features); }

// A panel of b in the order that tiles read it: to[k, j] = from[j, k], rows of `width` elements; nothing is written behind `columns`.
template <typename T>
void pack_rest(const T* from, int64_t stride, int64_t columns, int64_t inner, int64_t first_column, int64_t first_inner, T* to, int64_t width) {
  for (int64_t k = first_inner; k < inner; ++k)
    for (int64_t j = first_column; j < columns; ++j) to[k * width + j] = from[j * stride + k];
}

__attribute__((target("avx2"))) void transpose(const float* from, int64_t stride, float* to, int64_t width) {
  __m256 r[8], s[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(from + i * stride);
#pragma GCC unroll 8
  for (int i = 0; i < 8; i += 2) {
    s[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    s[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(s[i], s[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(s[i], s[i + 2], 0xee);
    r[i + 2] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(s[i + 1], s[i + 3], 0xee);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * width, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * width, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

__attribute__((target("avx2"))) void transpose(const double* from, int64_t stride, double* to, int64_t width) {
  __m256d r[4], s[4];
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) r[i] = _mm256_loadu_pd(from + i * stride);
#pragma GCC unroll 8
  for (int i = 0; i < 4; i += 2) {
    s[i] = _mm256_unpacklo_pd(r[i], r[i + 1]);
    s[i + 1] = _mm256_unpackhi_pd(r[i], r[i + 1]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 2; ++i) {
    _mm256_storeu_pd(to + i * width, _mm256_permute2f128_pd(s[i], s[i + 2], 0x20));
    _mm256_storeu_pd(to + (i + 2) * width, _mm256_permute2f128_pd(s[i], s[i + 2], 0x31));
  }
}

// The same of one whose rows are columns of the panel already.
void copy_panel(const char* from, int64_t step, int64_t bytes, int64_t inner, char* to, int64_t width) {
  for (int64_t k = 0; k < inner; ++k) std::memcpy(to + k * width, from + k * step, static_cast<size_t>(bytes));
}

template <typename T>
void pack(const char* source, int64_t stride, int64_t columns, int64_t inner, char* target, int64_t width) {
  constexpr int64_t kBlock = 32 / sizeof(T);
  const T* from = reinterpret_cast<const T*>(source);
  T* to = reinterpret_cast<T*>(target);
  const int64_t whole_columns = columns / kBlock * kBlock, whole_inner = inner / kBlock * kBlock;
  for (int64_t k = 0; k < whole_inner; k += kBlock)
    for (int64_t j = 0; j < whole_columns; j += kBlock) transpose(from + j * stride + k, stride, to + k * width + j, width);
  pack_rest(from, stride, columns, whole_inner, whole_columns, 0, to, width);
  pack_rest(from, stride, columns, inner, 0, whole_inner, to, width);
}

// Memory for one panel, one for each thread.
char* panel_memory() {
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  constexpr size_t kBytes = kInnerBlock * 128;  // two vectors of 64 bytes for each k
  thread_local std::unique_ptr<char, Free> memory(static_cast<char*>(std::aligned_alloc(64, kBytes)));
  return memory.get();
}

// The work is a row of tasks: for each batch, each panel and each block of rows one. Neighbours share their panel, packed once.
class Run {
 public:
  bool prepare(const Matmul& call, const CpuFeatures& features) {
    call_ = call;
    size_ = call.wide ? 8 : 4;
    const TileLimits limits = tile_limits(features);
    lanes_ = limits.lanes_bytes / size_;
    width_ = lanes_ * limits.vectors;
    pack_ = call.b.column != 1 || is_large_b(call, features);
    panels_ = (call.columns + width_ - 1) / width_;
    blocks_ = (call.rows + limits.rows - 1) / limits.rows;
    TileForm form;
    form.wide = call.wide;
    form.a_transposed = call.a.column != 1;
    for (int last = 0; last < 2; ++last) {
      const int64_t columns = last ? call.columns - (panels_ - 1) * width_ : width_;
      if (!last && panels_ == 1) continue;
      form.vectors = static_cast<int>((columns + lanes_ - 1) / lanes_);
      form.tail = columns % lanes_ != 0;
      for (int more = 0; more < 2; ++more) {
        form.rows = static_cast<int>(call.rows / blocks_) + more;
        if (more && call.rows % blocks_ == 0) continue;
        for (int start = 0; start < 2; ++start) {
          form.start = start;
          if (start ? !call.start.data && call.inner <= kInnerBlock : call.start.data != nullptr) continue;
          if (!(tiles_[last][more][start] = tile_function(form, features))) return false;
        }
      }
    }
    return true;
  }

  int64_t tasks() const { return call_.batches * panels_ * blocks_; }

  void part(int64_t begin, int64_t end) const {
    while (begin < end) {
      const int64_t panel = begin / blocks_, last = std::min(end, (panel + 1) * blocks_);
      panel_part(panel / panels_, panel % panels_, begin - panel * blocks_, last - panel * blocks_);
      begin = last;
    }
  }

 private:
  // The blocks [begin, end) of one panel.
  void panel_part(int64_t batch, int64_t panel, int64_t begin, int64_t end) const {
    const bool last = panel == panels_ - 1;
    const int64_t column = panel * width_, columns = last ? call_.columns - column : width_;
    const char* a = static_cast<const char*>(call_.a.data) + batch * call_.a.batch * size_;
    const char* b = static_cast<const char*>(call_.b.data) + (batch * call_.b.batch + column * call_.b.column) * size_;
    const char* start = call_.start.data ? static_cast<const char*>(call_.start.data) + (batch * call_.start.batch + column) * size_ : nullptr;
    char* out = static_cast<char*>(call_.out) + (batch * call_.out_batch + column) * size_;
    const int64_t base = call_.rows / blocks_, longer = call_.rows % blocks_;  // the first `longer` blocks have a row more
    for (int64_t k = 0; k < call_.inner; k += kInnerBlock) {
      TileCall tile;
      tile.inner = std::min(kInnerBlock, call_.inner - k);
      tile.partial = columns % lanes_;
      tile.b = b + k * call_.b.row * size_;
      tile.b_step = call_.b.row * size_;
      if (pack_) {
        char* memory = panel_memory();
        if (call_.b.column == 1) copy_panel(tile.b, tile.b_step, columns * size_, tile.inner, memory, width_ * size_);
        else (call_.wide ? pack<double> : pack<float>)(tile.b, call_.b.column, columns, tile.inner, memory, width_);
        tile.b = memory;
        tile.b_step = width_ * size_;
      }
      tile.a_step = (call_.a.column == 1 ? call_.a.row : call_.a.column) * size_;
      tile.out_step = call_.out_row * size_;
      for (int64_t block = begin; block < end; ++block) {
        const int64_t row = block * base + std::min(block, longer);
        tile.a = a + (row * call_.a.row + k * call_.a.column) * size_;
        tile.out = out + row * tile.out_step;
        // Behind the first pass the sums go on from the results so far.
        tile.start_step = k ? tile.out_step : call_.start.row * size_;
        tile.start = k ? tile.out : start ? start + row * tile.start_step : nullptr;
        tiles_[last][block < longer][tile.start != nullptr](&tile);
      }
    }
  }

  Matmul call_;
  int64_t size_ = 4, lanes_ = 0, width_ = 0, panels_ = 0, blocks_ = 0;
  bool pack_ = false;
  TileFunction tiles_[2][2][2] = {};  // last panel, longer block, with a start
};

bool unit_stride(const Matmul::Matrix& matrix) { return matrix.column == 1 || matrix.row == 1; }

}  // namespace

bool matmul(const Matmul& call, const CpuFeatures& features) {
  if (call.batches < 1 || call.rows < 1 || call.columns < 1 || call.inner < 1 || !unit_stride(call.a) || !unit_stride(call.b)) return false;
  const double work = 2.0 * static_cast<double>(call.rows) * static_cast<double>(call.columns) * static_cast<double>(call.inner);
  const int64_t size = call.wide ? 8 : 4;
  const int64_t limit = largest_strided(features) / size;
  if (work > largest_work(features) || (call.a.column != 1 && call.rows * call.inner > limit)) return false;
  if (call.rows < base::heuristics().matmul_thin && (call.b.column != 1 || is_large_b(call, features))) return false;
  Run run;
  if (!run.prepare(call, features)) return false;
  const double cost = work * static_cast<double>(call.batches) / base::heuristics().matmul_rate * (call.wide ? 2 : 1);
  const int64_t tasks = run.tasks();
  // Below this, another core loses as much on fetching operands from this one's caches as it saves, and far more where the two share no cache.
  if (cost < base::heuristics().matmul_parallel || num_threads() <= 1) {
    run.part(0, tasks);
    return true;
  }
  const auto grain = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(tasks) * base::heuristics().matmul_parallel / 4 / cost));
  parallel_for(tasks, grain, [](void* context, int64_t begin, int64_t end) { static_cast<const Run*>(context)->part(begin, end); }, &run);
  return true;
}

}  // namespace dynvm::codegen
