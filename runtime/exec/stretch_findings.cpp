// What a trace's stretches are found to be, for those who come later (stretches.h).
#include <algorithm>
#include <functional>
#include <utility>

#include "runtime/exec/stretches.h"

namespace dynvm::runtime {

bool StretchFindings::fits(size_t operations) const {
  return std::adjacent_find(begins.begin(), begins.end(), std::greater_equal<>()) == begins.end() && (begins.empty() || (begins.front() > 0 && begins.back() < static_cast<int64_t>(operations)));
}

// Calls that cannot be captured end a stretch before and after them: they are barriers and no operations. So all operations are one stretch until something else is found.
void Stretches::begin_as_found() {
  const StretchFindings& found = *plan_.findings;
  const auto contains = [](const auto& sorted, const auto& item) { return std::binary_search(sorted.begin(), sorted.end(), item); };
  const auto end = static_cast<int32_t>(plan_.operations.size());
  for (size_t number = 0; number <= found.begins.size(); ++number) {
    Stretch& stretch = stretches_.emplace_back();
    stretch.begin = number == 0 ? 0 : found.begins[number - 1];
    stretch.end = number < found.begins.size() ? found.begins[number] : end;
    std::fill(of_operation_.begin() + stretch.begin, of_operation_.begin() + stretch.end, static_cast<int32_t>(number));
    plan(stretch);
    stretch.known = found.version != 0;
    stretch.single = contains(found.single, stretch.begin);
    if (stretch.single) stretch.mode = Mode::kNever;
    for (size_t k = 0; k < stretch.storages.size(); ++k) stretch.staged[k] = stretch.stageable[k] && contains(found.staged, StretchFindings::Staged{stretch.begin, stretch.storages[k]});
  }
  unfound_ = found.version == 0;
}

// Between two iterations, once there are graphs of all stretches that may be such.
void Stretches::note_findings() {
  if (std::any_of(stretches_.begin(), stretches_.end(), [](const Stretch& stretch) { return stretch.mode != Mode::kNever && stretch.variants.empty(); })) return;
  unfound_ = false;
  StretchFindings& found = *plan_.findings;
  StretchFindings now{.version = found.version + 1};
  for (const Stretch& stretch : stretches_) {
    if (stretch.begin != 0) now.begins.push_back(stretch.begin);
    if (stretch.single) now.single.push_back(stretch.begin);
    for (size_t k = 0; k < stretch.storages.size(); ++k)
      if (stretch.staged[k]) now.staged.push_back({stretch.begin, stretch.storages[k]});
  }
  std::sort(now.begins.begin(), now.begins.end());
  std::sort(now.single.begin(), now.single.end());
  std::sort(now.staged.begin(), now.staged.end());
  found = std::move(now);
}

}  // namespace dynvm::runtime
