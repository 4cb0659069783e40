// A set of small numbers (instructions, storages) that is emptied at once and allocates nothing once it has grown: passes fill one again for each instruction.
//
// Tests: tests/ir/marks.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dynvm::ir {

class Marks {
 public:
  // Numbers that it may have without growing.
  explicit Marks(size_t size = 0) : seen_(size, 0) {}

  // False where it has it already.
  bool insert(size_t number) {
    if (number >= seen_.size()) seen_.resize(number + number / 2 + 1, 0);
    if (seen_[number] == now_) return false;
    seen_[number] = now_;
    return true;
  }
  bool contains(size_t number) const { return number < seen_.size() && seen_[number] == now_; }
  void clear() {
    if (++now_ != 0) return;
    seen_.assign(seen_.size(), 0);
    now_ = 1;
  }

 private:
  std::vector<uint32_t> seen_;  // in which filling it was put in last
  uint32_t now_ = 1;
};

}  // namespace dynvm::ir
