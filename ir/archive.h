// Optimised traces and their storage plans as bytes, for the trace cache.
//
// Inputs: a trace after all passes, its plan. Outputs: bytes that the same build of dynvm, and no other, reads back: an equal trace.
//
// What only this process knows stands in the bytes as numbers that the caller gives: Python objects and code objects (number_of, at), and the
// values that only the bridge understands as texts (opaque_text, opaque_of).
//
// Invariants: reading never goes beyond the bytes; bytes that were cut or changed are an error, or an odd trace: verify what is not trusted.
// Tests: tests/ir/archive.cpp.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ir/plan.h"
#include "ir/trace.h"

namespace dynvm::ir {

// Both have operator()(fields...), so that one list of a struct's fields serves both ways.
class ArchiveWriter {
 public:
  std::function<int64_t(const void*)> number_of;              // of a pointer
  std::function<bool(int64_t, std::string*)> opaque_text;     // of a bridge's handle; false: it has none
  bool ok = true;
  std::string bytes;

  template <class... T>
  void operator()(const T&... values) { (write(values), ...); }
  void pointer(const void* p) { write(p == nullptr ? int64_t{-1} : number_of(p)); }
  void opaque(int64_t handle) {
    std::string text;
    ok = ok && opaque_text && opaque_text(handle, &text);
    write(text);
  }

 private:
  template <class T>
  std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>> write(T value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void write(const std::string& text) {
    write(static_cast<uint64_t>(text.size()));
    bytes += text;
  }
  template <class T>
  void write(const std::vector<T>& items) {
    write(static_cast<uint64_t>(items.size()));
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) bytes.append(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T));
    else
      for (const T& item : items) write(item);
  }
  template <class T>
  std::enable_if_t<std::is_class_v<T>> write(const T& value) { fields(*this, const_cast<T&>(value)); }
};

class ArchiveReader {
 public:
  explicit ArchiveReader(std::string_view bytes) : bytes_(bytes) {}
  std::function<void*(int64_t)> at;                            // what number_of was asked about
  std::function<bool(const std::string&, int64_t*)> opaque_of; // false: there is no such thing here
  bool ok = true;                                              // false: the bytes are none of ours; what was read is of no use

  template <class... T>
  void operator()(T&... values) { (read(values), ...); }
  template <class T>
  void pointer(T*& p) {
    int64_t number = -1;
    read(number);
    p = number < 0 || !ok ? nullptr : static_cast<T*>(at(number));
  }
  void opaque(int64_t& handle) {
    std::string text;
    read(text);
    ok = ok && opaque_of && opaque_of(text, &handle);
  }
  bool at_end() const { return position_ == bytes_.size(); }

 private:
  // The next bytes; null where there are fewer.
  const char* take(uint64_t count) {
    if (!ok || count > bytes_.size() - position_) {
      ok = false;
      return nullptr;
    }
    position_ += count;
    return bytes_.data() + position_ - count;
  }
  template <class T>
  std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>> read(T& value) {
    if (const char* from = take(sizeof value)) std::memcpy(&value, from, sizeof value);
  }
  void read(std::string& text) {
    uint64_t size = 0;
    read(size);
    if (const char* from = take(size)) text.assign(from, size);
  }
  template <class T>
  void read(std::vector<T>& items) {
    uint64_t size = 0;
    read(size);
    items.clear();
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      const char* from = size > bytes_.size() ? take(~uint64_t{0}) : take(size * sizeof(T));
      if (from == nullptr) return;
      items.resize(size);
      if (size != 0) std::memcpy(items.data(), from, size * sizeof(T));
    } else {
      for (uint64_t i = 0; i < size && ok; i++) read(items.emplace_back());
    }
  }
  template <class T>
  std::enable_if_t<std::is_class_v<T>> read(T& value) { fields(*this, value); }

  std::string_view bytes_;
  size_t position_ = 0;
};

void write_trace(ArchiveWriter& archive, const Trace& trace, const Plan& plan);
// archive.ok says whether it could be read.
void read_trace(ArchiveReader& archive, Trace* trace, Plan* plan);

}  // namespace dynvm::ir
