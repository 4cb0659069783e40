// See kernel.h.
#include "codegen/cuda/kernel.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "codegen/cuda/autotune.h"
#include "codegen/cuda/batch.h"
#include "codegen/cuda/driver.h"
#include "codegen/cuda/functions.h"
#include "codegen/cuda/nvrtc.h"
#include "ir/kernel/forms.h"
#include "runtime/base/cache_folder.h"
#include "runtime/base/check.h"

namespace dynvm::codegen::cuda {

namespace {

StreamFunction current_stream = nullptr;

// A name that profilers show: the kernel's, as an identifier.
std::string identifier(const std::string& name) {
  std::string text = "dynvm_";
  for (char c : name.substr(0, 60)) text += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return text;
}

// The functions of one program have different names, and a profiler can tell them apart: the text is in the name.
void name_by_text(Source* source) {
  const std::string before = source->name;
  source->name += "_" + base::stable_hash(source->text).substr(0, 6);
  for (size_t at = 0; (at = source->text.find(before, at)) != std::string::npos; at += source->name.size()) source->text.replace(at, before.size(), source->name);
}

std::string& gave_up() {
  static auto* const why = new std::string;
  return *why;
}

}  // namespace

void give_up(const std::string& why) { gave_up() = why; }

std::string missing() {
  if (!gave_up().empty()) return gave_up();
  if (current_stream == nullptr) return "this torch has no CUDA";
  static const std::string why = !driver_missing().empty() ? driver_missing() : nvrtc_missing();
  return why;
}

void set_current_stream(StreamFunction function) { current_stream = function; }

CudaKernel::~CudaKernel() {
  for (const auto& [stream, memory] : workspaces_) release(device_, memory);
}

bool CudaKernel::ready() const { return code_ == nullptr || code_->done(); }
base::Status CudaKernel::status() const { return code_ == nullptr ? base::Status() : code_->wait(); }

void* CudaKernel::workspace(void* stream) const {
  std::lock_guard lock(mutex_);
  for (const auto& [of, memory] : workspaces_)
    if (of == stream) return memory;
  void* memory = nullptr;
  const base::Status status = allocate(device_, source_.workspace_bytes, stream, &memory);
  DYNVM_CHECK(status.ok(), "no device memory for a reduction's parts: {}", status.message());
  workspaces_.emplace_back(stream, memory);
  return memory;
}

base::Status CudaKernel::render_source(const RenderOptions& how, Source* out) const {
  const ir::Kernel& kernel = kernels_[0];
  RenderOptions options = how;
  options.multiprocessors = device_facts(device_).multiprocessors;
  options.mirrors = mirrors_;
  base::Status status;
  if (kernels_.size() == 1) {
    status = render_kernel(kernel, identifier(kernel.name), options, out);
  } else {
    DYNVM_CHECK(mirrors_.empty(), "{} has mirrors, and is a batch", kernel.name);
    std::vector<BatchForm> forms(kernels_.size());
    for (size_t k = 0; k < forms.size(); ++k) DYNVM_CHECK(batch_form(kernels_[k], &forms[k]), "{} is for no batch", kernels_[k].name);
    status = render_batch(forms, identifier(kernel.name), options, out);
  }
  if (status.ok()) name_by_text(out);
  return status;
}

base::Status CudaKernel::render(int vector_bytes, bool wide) {
  RenderOptions options;
  options.vector_bytes = vector_bytes;
  options.wide = wide;
  options.shape = shape_;
  if (base::Status status = render_source(options, &source_); !status.ok() || kernels_.size() > 1) return status;
  const ir::Kernel& kernel = kernels_[0];
  bool few = true;
  const auto product = [&](int64_t number) {
    ir::Product made;
    few &= ir::Product::of(number, kernel.symbols, &made);
    return made;
  };
  points_ = product(source_.points);
  for (int64_t number : source_.numbers) numbers_.push_back(product(number));
  for (const ir::KernelOperand& operand : kernel.operands) {
    if (!source_.narrow) break;
    std::vector<std::pair<ir::Product, ir::Product>>& reach = reach_.emplace_back();
    reach.emplace_back(product(1), product(operand.offset));
    for (size_t d = 0; d < kernel.sizes.size(); ++d) reach.emplace_back(product(kernel.sizes[d]), product(operand.strides[d]));
  }
  return few ? base::Status() : base::Status::failure("kernel " + kernel.name + ": a product of too many symbols");
}

// As another one of the same form has been rendered, whose memory was `theirs`.
void CudaKernel::render_as(const CudaKernel& other, const std::vector<int32_t>& theirs, const std::vector<int32_t>& own) {
  source_ = other.source_;
  shape_ = other.shape_;
  for (int32_t& pointer : source_.pointers) pointer = own[static_cast<size_t>(std::find(theirs.begin(), theirs.end(), pointer) - theirs.begin())];
  points_ = other.points_;
  numbers_ = other.numbers_;
  reach_ = other.reach_;
}

// Renders them in the shapes that timing prefers.
base::Status CudaKernel::shape(const std::vector<CudaKernel*>& kernels, const std::vector<int64_t>& storage_bytes, std::vector<Tuned>* tuned) {
  std::vector<Tunable> tunables;
  std::vector<CudaKernel*> of;
  for (CudaKernel* kernel : kernels) {
    Extents extents;
    if (kernel->idle() || kernel->symbolic() || !kernel->mirrors_.empty() || !extents_of(kernel->kernels_, storage_bytes, &extents)) continue;
    of.push_back(kernel);
    tunables.push_back({kernel->device_, kernel->source_, std::move(extents), [kernel](const Shape& shape, Source* other) { return kernel->render_source({.shape = shape}, other); }});
  }
  *tuned = tune(tunables);
  for (size_t k = 0; k < of.size(); ++k) {
    if ((*tuned)[k].shape == Shape{}) continue;
    of[k]->shape_ = (*tuned)[k].shape;
    if (base::Status status = of[k]->render(16, false); !status.ok()) return status;
  }
  return {};
}

const CudaKernel& CudaKernel::variant(std::unique_ptr<CudaKernel>* made, int vector_bytes, bool wide) const {
  std::lock_guard lock(mutex_);
  if (*made != nullptr) return **made;
  std::unique_ptr<CudaKernel> other(new CudaKernel);
  std::vector<std::shared_ptr<FunctionCode>> functions;
  other->device_ = device_;
  other->kernels_ = kernels_;
  other->mirrors_ = mirrors_;
  other->shape_ = shape_;
  base::Status status = other->render(vector_bytes, wide);
  if (status.ok()) status = wait_for(functions = begin_functions({&other->source_}, {device_}));
  DYNVM_CHECK(status.ok(), "{}", status.message());
  other->code_ = functions[0];
  *made = std::move(other);
  return **made;
}

// Are there more points, or elements that lie further, than positions of 32 bits tell?
bool CudaKernel::reaches_far(const int64_t* symbols) const {
  double points = 1;
  for (size_t d = 1; !reach_.empty() && d < reach_[0].size(); ++d) points *= static_cast<double>(reach_[0][d].first(symbols));
  if (points > INT32_MAX / 2) return true;
  for (const auto& reach : reach_) {
    double extent = 0;
    for (const auto& [size, stride] : reach) extent += std::abs(static_cast<double>(stride(symbols))) * static_cast<double>(size(symbols));
    if (extent > INT32_MAX / 2) return true;
  }
  return false;
}

constexpr size_t kMostParameters = 512;

// All but the workspace; how many. None of them tells whether memory is aligned.
size_t CudaKernel::parameters(void* const* pointers, const int64_t* scalars, const int64_t* symbols, int64_t* out) const {
  size_t count = 0;
  DYNVM_CHECK(source_.pointers.size() + static_cast<size_t>(source_.num_scalars) + source_.tail.size() + numbers_.size() + 1 <= kMostParameters, "{} has too many parameters", source_.name);
  for (int32_t pointer : source_.pointers) out[count++] = reinterpret_cast<int64_t>(pointers[pointer]);
  for (int k = 0; k < source_.num_scalars; ++k) out[count++] = scalars[k];
  for (const ir::Product& number : numbers_) out[count++] = number(symbols);
  for (int64_t number : source_.tail) out[count++] = number;
  return count;
}

bool CudaKernel::aligned(const int64_t* parameter) const {
  return std::all_of(parameter, parameter + source_.pointers.size(), [&](int64_t address) { return address % source_.alignment == 0; });
}

uint32_t CudaKernel::blocks(const int64_t* symbols) const {
  return source_.points == 0 ? source_.grid_x : static_cast<uint32_t>((points_(symbols) + source_.per_block - 1) / source_.per_block);
}

void CudaKernel::launch(void* const* pointers, const int64_t* scalars, const int64_t* symbols) const {
  if (source_.grid_x == 0) return;
  if (source_.narrow && reaches_far(symbols)) return variant(&wide_, 16, true).launch(pointers, scalars, symbols);
  int64_t parameter[kMostParameters];
  size_t count = parameters(pointers, scalars, symbols, parameter);
  if (!aligned(parameter)) return variant(&unaligned_, 1, !source_.narrow && !numbers_.empty()).launch(pointers, scalars, symbols);
  const uint32_t grid_x = blocks(symbols);
  if (grid_x == 0) return;
  void* const stream = current_stream(device_);
  if (source_.workspace_bytes > 0) parameter[count++] = reinterpret_cast<int64_t>(workspace(stream));
  const int error = cuda::launch(device_, code_->function(), grid_x, source_.grid_y, source_.block, source_.shared_bytes, stream, parameter);
  DYNVM_CHECK(error == 0 || is_sticky(error), "{}: {}", source_.name, error_text(error));
}

bool CudaKernel::describe(void* const* pointers, const int64_t* scalars, const int64_t* symbols, void* stream, Launch* out) const {
  if (source_.grid_x == 0 || (source_.narrow && reaches_far(symbols))) return false;
  out->function = code_->function();
  out->grid_x = blocks(symbols);
  out->grid_y = source_.grid_y;
  out->block = source_.block;
  out->shared_bytes = source_.shared_bytes;
  int64_t parameter[kMostParameters];
  size_t count = parameters(pointers, scalars, symbols, parameter);
  if (source_.workspace_bytes > 0) parameter[count++] = reinterpret_cast<int64_t>(workspace(stream));
  out->parameter.assign(parameter, parameter + count);
  return out->grid_x != 0;
}

size_t CudaKernel::mirrored_bytes(const MirroredStore& each) const {
  const ir::Kernel& kernel = kernels_[0];
  return static_cast<size_t>(ir::dtype_size(kernel.operands[static_cast<size_t>(kernel.stores[static_cast<size_t>(each.store)].operand)].dtype));
}

void* current_stream_of(int device) { return current_stream(device); }

base::Status compile_kernels(const std::vector<KernelJob>& jobs, const CompileMode& mode, std::vector<std::unique_ptr<CudaKernel>>* out) {
  std::vector<std::unique_ptr<CudaKernel>> made;
  std::map<int, ir::KernelForms> forms;  // by device
  std::map<std::pair<int, size_t>, size_t> first_of;
  std::vector<ir::KernelForms::Place> places(jobs.size());
  std::vector<size_t> same_as(jobs.size());  // the first of its form, which is rendered
  for (size_t k = 0; k < jobs.size(); ++k) {
    const KernelJob& job = jobs[k];
    CudaKernel& kernel = *made.emplace_back(new CudaKernel);
    kernel.device_ = job.device;
    kernel.mirrors_ = job.mirrors;
    for (const ir::Kernel* each : job.kernels) kernel.kernels_.push_back(*each);
    same_as[k] = k;
    if (job.kernels.size() == 1 && job.mirrors.empty()) {
      places[k] = forms[job.device].add(*job.kernels[0]);
      same_as[k] = first_of.emplace(std::pair(job.device, places[k].form), k).first->second;
    }
    if (same_as[k] == k)
      if (base::Status status = kernel.render(16, false); !status.ok()) return status;
  }
  std::vector<Tuned> tuned;  // functions stay until their kernels have them
  if (mode.autotune) {
    std::vector<CudaKernel*> rendered;
    for (size_t k = 0; k < jobs.size(); ++k)
      if (same_as[k] == k) rendered.push_back(made[k].get());
    if (base::Status status = CudaKernel::shape(rendered, mode.storage_bytes, &tuned); !status.ok()) return status;
  }
  std::vector<const Source*> sources;
  std::vector<int> devices;
  for (size_t k = 0; k < jobs.size(); ++k) {
    if (same_as[k] != k) made[k]->render_as(*made[same_as[k]], places[same_as[k]].pointers, places[k].pointers);
    sources.push_back(&made[k]->source_);
    devices.push_back(jobs[k].device);
  }
  const std::vector<std::shared_ptr<FunctionCode>> functions = begin_functions(sources, devices);
  if (!mode.background)
    if (base::Status status = wait_for(functions); !status.ok()) return status;
  for (size_t k = 0; k < made.size(); ++k) made[k]->code_ = functions[k];
  *out = std::move(made);
  return {};
}

}  // namespace dynvm::codegen::cuda
