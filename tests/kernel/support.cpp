// Shared parts of the kernel tests. See support.h.
#include "support.h"

#include <sys/mman.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/kernel/eval.h"
#include "ir/kernel/half.h"
#include "ir/kernel/text.h"

namespace dynvm::test {

using ir::DType;

GuardedMemory::GuardedMemory(size_t bytes, bool at_start) : size_(bytes) {
  size_t inner = (bytes + 4095) / 4096 * 4096;
  mapped_ = inner + 8192;
  mapping_ = static_cast<uint8_t*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (inner) mprotect(mapping_ + 4096, inner, PROT_READ | PROT_WRITE);
  data_ = at_start ? mapping_ + 4096 : mapping_ + 4096 + inner - bytes;
}

GuardedMemory::~GuardedMemory() {
  if (mapping_) munmap(mapping_, mapped_);
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept : mapping_(other.mapping_), mapped_(other.mapped_), data_(other.data_), size_(other.size_) { other.mapping_ = nullptr; }

namespace {

template <typename T>
T get(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename T>
void put(void* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

double spacing(DType dtype, double value) {
  double magnitude = std::fabs(value);
  int digits = dtype == DType::kF64 ? 53 : dtype == DType::kF32 ? 24 : dtype == DType::kF16 ? 11 : 8;
  int lowest = dtype == DType::kF64 ? -1022 : dtype == DType::kF16 ? -14 : -126;
  int exponent = magnitude == 0 || !std::isfinite(magnitude) ? lowest : std::max(std::ilogb(magnitude), lowest);
  return std::ldexp(1.0, exponent - digits + 1);
}

bool close(DType dtype, const void* expected, const void* found, Tolerance tolerance) {
  if (!ir::is_floating(dtype)) return read_int(dtype, expected) == read_int(dtype, found);
  double x = read_float(dtype, expected), y = read_float(dtype, found);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (x == y) return true;
  double largest = dtype == DType::kF64 ? 1.7976931348623157e308 : dtype == DType::kF16 ? 65504 : 3.3895e38;
  // Next to overflow an infinity is within the tolerance of the largest finite numbers.
  if (std::isinf(x) || std::isinf(y)) return tolerance.ulps > 0 && x * y > 0 && std::min(std::fabs(x), std::fabs(y)) >= largest * 0.999999;
  return std::fabs(x - y) <= tolerance.ulps * spacing(dtype, std::max(std::fabs(x), std::fabs(y))) + tolerance.absolute;
}

}  // namespace

double read_float(DType dtype, const void* at) {
  switch (dtype) {
    case DType::kF64: return get<double>(at);
    case DType::kF32: return get<float>(at);
    case DType::kF16: return ir::half_to_float(get<uint16_t>(at));
    default: return ir::bfloat_to_float(get<uint16_t>(at));
  }
}

int64_t read_int(DType dtype, const void* at) {
  switch (dtype) {
    case DType::kI64: return get<int64_t>(at);
    case DType::kI32: return get<int32_t>(at);
    case DType::kI16: return get<int16_t>(at);
    case DType::kI8: return get<int8_t>(at);
    default: return get<uint8_t>(at);
  }
}

void write_number(DType dtype, void* at, double value) {
  switch (dtype) {
    case DType::kF64: return put(at, value);
    case DType::kF32: return put(at, static_cast<float>(value));
    case DType::kF16: return put(at, ir::float_to_half(static_cast<float>(value)));
    case DType::kBF16: return put(at, ir::float_to_bfloat(static_cast<float>(value)));
    case DType::kI64: return put(at, static_cast<int64_t>(value));
    case DType::kI32: return put(at, static_cast<int32_t>(value));
    case DType::kI16: return put(at, static_cast<int16_t>(value));
    case DType::kI8: return put(at, static_cast<int8_t>(value));
    case DType::kU8: return put(at, static_cast<uint8_t>(value));
    default: return put(at, static_cast<uint8_t>(value != 0));
  }
}

void fill(Buffer* buffer, std::mt19937_64& random, bool special) {
  DType dtype = buffer->dtype;
  int size = ir::dtype_size(dtype);
  static const double kFloats[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-40, -1e-40, 1e-310, 1e30, -1e30, 1e300, 0.5, -0.5,
                                   1.5, 2.5, -2.5, 1, -1, 65504, 88.5, 710, -104, 0.70710678};
  for (size_t k = 0; k < buffer->count(); ++k) {
    uint8_t* at = &buffer->bytes[k * static_cast<size_t>(size)];
    uint64_t r = random();
    bool now = special && r % 4 == 0;
    if (ir::is_bool(dtype)) {
      put(at, static_cast<uint8_t>(r >> 8 & 1));
    } else if (ir::is_floating(dtype)) {
      if (now) write_number(dtype, at, kFloats[(r >> 8) % std::size(kFloats)]);
      else if (special) write_number(dtype, at, (static_cast<double>(r >> 20) / 0x1p44 - 0.5) * std::ldexp(1.0, static_cast<int>((r >> 8) % 12)));
      else write_number(dtype, at, static_cast<double>(static_cast<int64_t>((r >> 8) % 33) - 16) / 4);
    } else if (now) {
      int64_t extreme = r >> 8 & 1 ? INT64_MAX >> (64 - 8 * size) : -(int64_t{1} << (8 * size - 2)) * 2;
      std::memcpy(at, &extreme, static_cast<size_t>(size));
    } else {
      write_number(dtype, at, static_cast<double>(dtype == DType::kU8 ? (r >> 8) % 20 : static_cast<int64_t>((r >> 8) % 33) - 16));
    }
  }
}

std::vector<int64_t> row_major(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t k = sizes.size(); k-- > 0;) strides[k] = step, step *= std::max<int64_t>(sizes[k], 1);
  return strides;
}

std::string compare(const ir::Kernel& kernel, const std::vector<Buffer>& buffers, const std::vector<int64_t>& scalars, Tolerance tolerance,
                    const codegen::KernelOptions& options) {
  std::unique_ptr<codegen::CompiledKernel> compiled;
  base::Status status = codegen::compile_kernel(kernel, codegen::cpu_features(), options, &compiled);
  if (!status.ok()) return status.message();
  return compare_with(kernel, buffers, scalars, tolerance, [&](void* const* pointers) {
    if (!compiled->parallel()) return compiled->run(pointers, scalars.data());
    // Uneven pieces, the last one first.
    int64_t size = compiled->range_size(), third = size / 3;
    compiled->range_entry()(pointers, scalars.data(), 2 * third, size, nullptr);
    compiled->range_entry()(pointers, scalars.data(), 0, third, nullptr);
    compiled->range_entry()(pointers, scalars.data(), third, 2 * third, nullptr);
  });
}

std::string compare_with(const ir::Kernel& kernel, const std::vector<Buffer>& buffers, const std::vector<int64_t>& scalars, Tolerance tolerance,
                         const std::function<void(void* const* pointers)>& run) {
  std::vector<std::vector<uint8_t>> expected;
  std::vector<GuardedMemory> found;
  std::vector<void*> expected_pointers, found_pointers;
  for (const Buffer& buffer : buffers) {
    expected.push_back(buffer.bytes);
    found.emplace_back(buffer.bytes.size(), found.size() % 2 == 1);
    if (!buffer.bytes.empty()) std::memcpy(found.back().data(), buffer.bytes.data(), buffer.bytes.size());
  }
  for (size_t k = 0; k < buffers.size(); ++k) expected_pointers.push_back(expected[k].data()), found_pointers.push_back(found[k].data());
  ir::eval_kernel(kernel, expected_pointers.data(), scalars.data());
  run(found_pointers.data());
  for (size_t k = 0; k < buffers.size(); ++k) {
    DType dtype = buffers[k].dtype;
    size_t size = static_cast<size_t>(ir::dtype_size(dtype));
    for (size_t e = 0; e < buffers[k].count(); ++e) {
      const uint8_t *x = &expected[k][e * size], *y = found[k].data() + e * size;
      if (close(dtype, x, y, tolerance)) continue;
      char text[200];
      if (ir::is_floating(dtype))
        std::snprintf(text, sizeof text, "pointer %zu element %zu: expected %.17g, found %.17g, was %.17g", k, e, read_float(dtype, x),
                      read_float(dtype, y), read_float(dtype, &buffers[k].bytes[e * size]));
      else
        std::snprintf(text, sizeof text, "pointer %zu element %zu: expected %lld, found %lld", k, e,
                      static_cast<long long>(read_int(dtype, x)), static_cast<long long>(read_int(dtype, y)));
      return std::string(text) + "\nkernel " + ir::print_kernel(kernel);
    }
  }
  return "";
}

}  // namespace dynvm::test
