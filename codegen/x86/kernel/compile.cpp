// Compiles kernels: nest, vector code, registers, x86, executable memory. See compile.h. Tests: tests/kernel/compile_test.cpp.
#include "codegen/x86/kernel/compile.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "codegen/parallel.h"
#include "codegen/x86/kernel/constants.h"
#include "codegen/x86/kernel/emit.h"
#include "codegen/x86/kernel/lower.h"
#include "codegen/x86/kernel/nest.h"
#include "codegen/x86/kernel/registers.h"
#include "codegen/x86/kernel/schedule.h"
#include "ir/kernel/text.h"
#include "runtime/base/heuristics.h"

namespace dynvm::codegen {

namespace {


// Single-thread time from the instruction counts, with nanoseconds as measured by bench/kernel_bench.cpp on a 2.5 GHz Zen 3.
double estimate_cost(const VCode& code) {
  double cost = 20, times = 1;
  std::vector<double> outer;
  for (const VInst& i : code.insts) {
    if (i.op == VOp::k_loop) {
      const VLoop& loop = code.loops[i.imm];
      outer.push_back(times);
      double size = static_cast<double>(code.sizes[loop.dim]);
      double unrolled_step = 0;
      switch (loop.kind) {
        case VLoop::kScalar: times *= size; break;
        case VLoop::kUnrolled: times *= static_cast<double>(loop.end / loop.step); break;
        case VLoop::kSingle:
          // After an unrolled loop only its rest.
          if (i.imm > 0 && code.loops[i.imm - 1].kind == VLoop::kUnrolled && code.loops[i.imm - 1].dim == loop.dim)
            unrolled_step = static_cast<double>(code.loops[i.imm - 1].step);
          times *= unrolled_step > 0 ? unrolled_step / static_cast<double>(loop.step) / 2 : static_cast<double>(loop.end / loop.step);
          break;
        case VLoop::kTail: break;
      }
      continue;
    }
    if (i.op == VOp::k_endloop) {
      times = outer.back();
      outer.pop_back();
      continue;
    }
    double weight = 0.17;
    if (i.op == VOp::k_call) weight = 5.0 * code.lanes;
    else if (i.op == VOp::k_div || i.op == VOp::k_sqrt) weight = 1.5;
    else if (i.op == VOp::k_load || i.op == VOp::k_store)
      weight = code.accesses[i.imm].kind == VAccess::kStrided || code.accesses[i.imm].partial ? 4 : 0.3;
    cost += weight * times;
  }
  return cost;
}

}  // namespace

// Fills a CompiledKernel's fields.
class KernelBuilder {
 public:
  static base::Status build(const ir::Kernel& kernel, const CpuFeatures& features, const KernelOptions& options, std::unique_ptr<CompiledKernel>* compiled) {
    compiled->reset();
    base::Status status = ir::verify_kernel(kernel);
    if (!status.ok()) return status;
    if (ir::attends(kernel)) return base::Status::failure("kernel \"" + kernel.name + "\": attention is for GPUs");
    if (!features.avx2) return base::Status::failure("kernel \"" + kernel.name + "\": the processor has no AVX2 with FMA");
    Nest nest = make_nest(kernel, features.avx512 ? 64 : 32, false);
    VCode code;
    status = lower_kernel(kernel, nest, options.unroll, &code);
    if (!status.ok()) return status;
    double cost = estimate_cost(code);
    const bool symbolic = !kernel.symbols.empty();  // how many points there are, each run tells
    bool parallel = options.force_split || (options.parallel && (symbolic || cost >= base::heuristics().kernel_parallel));
    if (parallel) {
      // Once more, with run-time bounds for one dim.
      nest = make_nest(kernel, features.avx512 ? 64 : 32, true);
      status = lower_kernel(kernel, nest, options.unroll, &code);
      if (!status.ok()) return status;
      parallel = code.split_dim >= 0;
    }
    schedule(&code, allocatable_registers(features.avx512));
    share_constants(&code);
    Registers registers = assign_registers(code, allocatable_registers(features.avx512));
    pin_constants(&code, &registers, allocatable_registers(features.avx512));
    EmittedCode emitted;
    status = emit_code(code, registers, features.avx512, &emitted);
    if (!status.ok()) return status.in("kernel \"" + kernel.name + "\"");
    std::unique_ptr<CompiledKernel> result(new CompiledKernel());
    if (!place(emitted, result.get())) return base::Status::failure("kernel \"" + kernel.name + "\": no executable memory");
    result->cost_ = symbolic ? cost / static_cast<double>(kernel.num_points()) : cost;
    result->numbers_ = std::move(emitted.numbers);
    if (symbolic) result->numbers_.insert(result->numbers_.end(), {kernel.num_points(), parallel ? code.sizes[code.split_dim] : 1});
    result->kernel_ = kernel;
    result->name_ = base::CodeName(result->code_, result->code_size_, "kernel " + kernel.name);
    result->parallel_ = parallel;
    if (parallel) {
      result->range_size_ = code.sizes[code.split_dim];
      // Pieces of the vector dim end at whole vectors, and at whole cache lines of bytes.
      result->unit_ = code.split_dim == code.vector_dim ? 64 : 1;
      result->grain_ = result->grain_for(cost, result->range_size_);
    }
    *compiled = std::move(result);
    return base::Status();
  }

 private:
  static bool place(const EmittedCode& emitted, CompiledKernel* kernel) {
    size_t mapped = (emitted.bytes.size() + 4095) / 4096 * 4096;
    void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    std::memcpy(memory, emitted.bytes.data(), emitted.bytes.size());
    if (mprotect(memory, mapped, PROT_READ | PROT_EXEC) != 0) {
      munmap(memory, mapped);
      return false;
    }
    kernel->code_ = memory;
    kernel->code_size_ = emitted.bytes.size();
    kernel->mapped_size_ = mapped;
    kernel->entry_ = reinterpret_cast<CompiledKernel::Entry>(memory);
    kernel->range_ = reinterpret_cast<CompiledKernel::RangeEntry>(static_cast<char*>(memory) + emitted.range_offset);
    return true;
  }
};

CompiledKernel::~CompiledKernel() {
  if (code_) munmap(code_, mapped_size_);
}

int64_t CompiledKernel::grain_for(double cost, int64_t range) const {
  const auto grain = static_cast<int64_t>(base::heuristics().kernel_grain / (cost / static_cast<double>(range)));
  return (std::max<int64_t>(1, grain) + unit_ - 1) / unit_ * unit_;
}

void CompiledKernel::run_parallel(void* const* pointers, const int64_t* scalars, const int64_t* numbers) const {
  int threads = num_threads();
  int64_t range_size = range_size_, grain = grain_;
  if (!numbers_.empty()) {
    range_size = numbers[numbers_.size() - 1];
    const double cost = cost_ * static_cast<double>(numbers[numbers_.size() - 2]);
    if (threads <= 1 || cost < base::heuristics().kernel_parallel) return entry_(pointers, scalars, numbers);
    grain = grain_for(cost, range_size);
  }
  if (threads <= 1 || range_size < 2 * grain) return entry_(pointers, scalars, numbers);
  struct Call {
    RangeEntry range;
    void* const* pointers;
    const int64_t *scalars, *numbers;
  } call{range_, pointers, scalars, numbers};
  auto body = [](void* context, int64_t begin, int64_t end) {
    const Call& c = *static_cast<const Call*>(context);
    c.range(c.pointers, c.scalars, begin, end, c.numbers);
  };
  parallel_for(range_size, grain, body, &call);
}

std::string CompiledKernel::dump() const {
  std::string out = "kernel " + ir::print_kernel(kernel_) + "\n# " + std::to_string(code_size_) + " bytes, estimated " +
                    std::to_string(static_cast<int64_t>(cost_)) + " ns";
  const uint8_t* bytes = static_cast<const uint8_t*>(code_);
  constexpr char kDigits[] = "0123456789abcdef";
  for (size_t i = 0; i < code_size_; ++i) {
    out += i % 32 == 0 ? '\n' : ' ';
    out += kDigits[bytes[i] >> 4];
    out += kDigits[bytes[i] & 15];
  }
  return out + "\n";
}

base::Status compile_kernel(const ir::Kernel& kernel, const CpuFeatures& features, const KernelOptions& options, std::unique_ptr<CompiledKernel>* compiled) {
  if (ir::stores_at_places(kernel)) return base::Status::failure("no code for stores at computed places");
  return KernelBuilder::build(kernel, features, options, compiled);
}

}  // namespace dynvm::codegen
