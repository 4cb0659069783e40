// Running work on the process's thread pool. See parallel.h. Tests: tests/kernel/parallel_test.cpp.
#include "codegen/parallel.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>

namespace dynvm::codegen {

namespace {

void serial(int64_t size, int64_t, ParallelBody body, void* context) {
  if (size > 0) body(context, 0, size);
}

std::atomic<ParallelFor> installed{serial};
std::atomic<int> threads{1};

// GNU OpenMP's entry points, as GCC's generated code calls them.
using GompParallel = void (*)(void (*function)(void*), void* data, unsigned num_threads, unsigned flags);
using OmpInteger = int (*)();
GompParallel gomp_parallel;
OmpInteger omp_thread_number, omp_team_size, omp_in_parallel;

struct Team {
  int64_t size, grain;
  ParallelBody body;
  void* context;
};

void team_member(void* data) {
  const Team& team = *static_cast<const Team*>(data);
  int64_t count = omp_team_size(), number = omp_thread_number();
  int64_t piece = std::max(team.grain, (team.size + count - 1) / count);
  // Pieces are multiples of the grain so that vector loops begin at whole vectors.
  piece = (piece + team.grain - 1) / team.grain * team.grain;
  int64_t begin = number * piece, end = std::min(team.size, begin + piece);
  if (begin < end) team.body(team.context, begin, end);
}

void openmp_for(int64_t size, int64_t grain, ParallelBody body, void* context) {
  grain = std::max<int64_t>(grain, 1);
  int64_t pieces = (size + grain - 1) / grain;
  int64_t wanted = std::min<int64_t>(pieces, num_threads());
  if (wanted <= 1 || omp_in_parallel()) return serial(size, grain, body, context);
  Team team{size, grain, body, context};
  gomp_parallel(team_member, &team, static_cast<unsigned>(wanted), 0);
}

}  // namespace

void set_parallel_for(ParallelFor function) { installed = function ? function : serial; }
void set_num_threads(int count) { threads = std::max(count, 1); }
int num_threads() { return threads; }

void parallel_for(int64_t size, int64_t grain, ParallelBody body, void* context) { installed.load()(size, grain, body, context); }

bool use_loaded_openmp() {
  auto find = [](const char* name) { return dlsym(RTLD_DEFAULT, name); };
  void* parallel = find("GOMP_parallel");
  void* number = find("omp_get_thread_num");
  void* size = find("omp_get_num_threads");
  void* inside = find("omp_in_parallel");
  if (!parallel || !number || !size || !inside) return false;
  gomp_parallel = reinterpret_cast<GompParallel>(parallel);
  omp_thread_number = reinterpret_cast<OmpInteger>(number);
  omp_team_size = reinterpret_cast<OmpInteger>(size);
  omp_in_parallel = reinterpret_cast<OmpInteger>(inside);
  set_parallel_for(openmp_for);
  return true;
}

}  // namespace dynvm::codegen
