// Seeded defects: places where dynvm can be made wrong on purpose, for tests of what is to find such (`dynvm bisect`, the generators of tests/).
//
// Purpose: DYNVM_DEFECT=NAME,... (defects.def) makes this process wrong in a known way. It is for dynvm's own tests alone.
//   if (base::seeded(base::Defect::kGuardLeftOut)) ...
// Inputs: the variable. Outputs: seeded(). Invariants: asked where traces are made, never where they run: without the variable it is a load and a test there, and code is what
//   it would be without this table. The report's notes name a seeded defect.
// The torch bridge has a copy (Bridge::set_switches). Tests: tests/bisect/test_defects.py.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace dynvm::base {

enum class Defect : uint8_t {
#define X(enumerator, name, stage, bisect, text) enumerator,
#include "runtime/base/defects.def"
#undef X
  kCount,
};
static_assert(static_cast<size_t>(Defect::kCount) <= 64);

namespace detail {
constinit inline uint64_t seeded_defects = 0;
}
inline uint64_t seeded_defects() { return detail::seeded_defects; }
inline void set_seeded_defects(uint64_t defects) { detail::seeded_defects = defects; }

inline bool seeded(Defect defect) { return __builtin_expect((detail::seeded_defects >> static_cast<unsigned>(defect)) & 1, 0) != 0; }

// Names separated by commas. A failure says which is none.
Status seed_defects(std::string_view names);

}  // namespace dynvm::base
