// Runs one-operation traces through lowering, as interpreted and as compiled kernels; test_against_torch.py compares with PyTorch.
//
// lower_run CASES OUT [whole] [cuda]: CASES is text, traces separated by lines `=== case`; CASES.memory holds, for each case and storage, an int64 byte
// count and the bytes. OUT gets, for each case, a byte (0 lowered, 1 not lowered, 2 broken, 3 a kernel has failed), then an int64 length and a message, and where
// lowered the memory afterwards twice (interpreted, compiled), as in CASES.memory. `whole`: the traces are programs; all passes run, then
// the evaluator does what is left around the kernels, and the message is the optimised trace. `cuda`: the tensors count as a
// GPU's, though their memory is here: there are operations that are lowered for GPUs alone.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "codegen/x86/kernel/compile.h"
#include "ir/eval.h"
#include "ir/kernel/eval.h"
#include "ir/kernel/text.h"
#include "ir/lower/lower.h"
#include "ir/passes/pass.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace dynvm::ir {
namespace {

std::ifstream memory_in;
std::ofstream out;

void put(const void* data, size_t size) { out.write(static_cast<const char*>(data), static_cast<std::streamsize>(size)); }
void put_memory(const Memory& memory) {
  for (const auto& storage : memory) {
    auto size = static_cast<int64_t>(storage.size());
    put(&size, sizeof size);
    put(storage.data(), storage.size());
  }
}
void verdict(uint8_t code, const std::string& message) {
  auto length = static_cast<int64_t>(message.size());
  put(&code, 1);
  put(&length, sizeof length);
  put(message.data(), message.size());
}

// Takes the tensors for a GPU's.
void move_to_gpu(Trace* trace, PassOptions* options) {
  options->fuse_cuda = true;
  for (TensorMeta& meta : trace->metas) meta.device_type = 1;
}

// Memory for what the passes have added.
void add_temporaries(const Trace& trace, Memory* memory) {
  const size_t given = memory->size();
  memory->resize(static_cast<size_t>(trace.num_storages));
  for (const TensorMeta& meta : trace.metas)
    if (static_cast<size_t>(meta.storage) >= given) (*memory)[meta.storage].resize(static_cast<size_t>(elements(meta) * dtype_size(meta.dtype)));
}

void run_case(const std::string& text, const codegen::CpuFeatures& features, bool cuda) {
  Trace trace;
  base::Status status = parse_trace(text, &trace);
  Memory memory(trace.num_storages);
  for (auto& storage : memory) {
    int64_t size = 0;
    memory_in.read(reinterpret_cast<char*>(&size), sizeof size);
    storage.resize(size);
    memory_in.read(reinterpret_cast<char*>(storage.data()), size);
  }
  if (status.ok()) status = verify_trace(trace);
  if (!status.ok()) return verdict(2, status.message() + "\n" + text);

  std::string why;
  PassOptions options;
  options.verify = true;
  if (cuda) move_to_gpu(&trace, &options);
  for (Ref ref = 0; ref < trace.insts.size() && !cuda; ++ref) {
    if (trace.insts[ref].op != Op::k_aten) continue;
    std::vector<Ref> results(trace.calls[trace.insts[ref].imm].results.size(), kNoRef);
    for (Ref user = ref + 1; user < trace.insts.size(); ++user)
      if (trace.insts[user].op == Op::k_result && trace.arg(user, 0) == ref) results[trace.insts[user].imm] = user;
    std::vector<Lowered> lowered;
    if (!lower_call(trace, ref, results, &lowered, &why)) return verdict(1, why);
  }
  options.only = {"fuse", "clean"};
  status = run_passes(trace, options);
  if (!status.ok()) return verdict(2, status.message() + "\n" + text);
  for (const Inst& inst : trace.insts)
    if (inst.op == Op::k_aten && !inst.sunk) return verdict(1, trace.calls[inst.imm].name);
  const size_t given = memory.size();
  add_temporaries(trace, &memory);
  Memory compiled = memory;
  std::string kernels;
  for (const Inst& inst : trace.insts) {
    if (inst.op != Op::k_kernel) continue;
    const Kernel& kernel = trace.kernels[inst.imm];
    kernels += print_kernel(kernel) + "\n";
    std::vector<void*> pointers, compiled_pointers;
    for (auto& storage : memory) pointers.push_back(storage.data());
    for (auto& storage : compiled) compiled_pointers.push_back(storage.data());
    if (!eval_kernel(kernel, pointers.data(), nullptr)) return verdict(3, kernels);
    if (for_gpus(kernel)) {
      compiled = memory;
      continue;
    }
    std::unique_ptr<codegen::CompiledKernel> code;
    status = codegen::compile_kernel(kernel, features, {}, &code);
    if (!status.ok()) return verdict(2, "does not compile: " + status.message() + "\n" + kernels);
    code->run(compiled_pointers.data(), nullptr);
  }
  verdict(0, kernels);
  memory.resize(given);
  compiled.resize(given);
  put_memory(memory);
  put_memory(compiled);
}

base::Status evaluate_with(const Trace& trace, const codegen::CpuFeatures* features, Memory* memory) {
  Evaluation evaluation;
  evaluation.memory = *memory;
  if (features) {
    evaluation.run_kernel = [&](const Kernel& kernel, void* const* pointers, const int64_t* scalars) {
      if (for_gpus(kernel)) return eval_kernel(kernel, pointers, scalars) ? base::Status() : base::Status::failure("an index is out of bounds");
      std::unique_ptr<codegen::CompiledKernel> code;
      base::Status status = codegen::compile_kernel(kernel, *features, {}, &code);
      if (status.ok()) code->run(pointers, scalars);
      return status.in(print_kernel(kernel));
    };
  }
  base::Status status = evaluate(trace, &evaluation);
  *memory = std::move(evaluation.memory);
  return status;
}

void run_whole(const std::string& text, const codegen::CpuFeatures& features, bool cuda) {
  Trace trace;
  base::Status status = parse_trace(text, &trace);
  Memory memory(trace.num_storages);
  for (auto& storage : memory) {
    int64_t size = 0;
    memory_in.read(reinterpret_cast<char*>(&size), sizeof size);
    storage.resize(size);
    memory_in.read(reinterpret_cast<char*>(storage.data()), size);
  }
  if (status.ok()) status = verify_trace(trace);
  PassOptions options;
  options.verify = true;
  if (cuda) move_to_gpu(&trace, &options);
  if (status.ok()) status = run_passes(trace, options);
  const size_t given = memory.size();
  add_temporaries(trace, &memory);
  Memory compiled = memory;
  if (status.ok()) status = evaluate_with(trace, nullptr, &memory);
  if (status.ok()) status = evaluate_with(trace, &features, &compiled);
  if (!status.ok()) return verdict(2, status.message() + "\n" + print_trace(trace));
  verdict(0, print_trace(trace));
  memory.resize(given);
  compiled.resize(given);
  put_memory(memory);
  put_memory(compiled);
}

}  // namespace
}  // namespace dynvm::ir

int main(int argc, char** argv) {
  using namespace dynvm;
  bool whole = false, cuda = false;
  for (int k = 3; k < argc; ++k) {
    whole = whole || argv[k] == std::string("whole");
    cuda = cuda || argv[k] == std::string("cuda");
  }
  if (argc < 3 || argc != 3 + whole + cuda) return 2;
  std::ifstream cases(argv[1]);
  ir::memory_in.open(std::string(argv[1]) + ".memory", std::ios::binary);
  ir::out.open(argv[2], std::ios::binary);
  codegen::CpuFeatures features = codegen::cpu_features();
  std::string line, text;
  while (std::getline(cases, line)) {
    if (line != "=== case") {
      text += line + "\n";
      continue;
    }
    whole ? ir::run_whole(text, features, cuda) : ir::run_case(text, features, cuda);
    text.clear();
  }
  return 0;
}
