// Dumps: stages of a compilation, printed by --dump.
//
// Purpose: `if (dump_on(DumpStage::kIr)) dump(DumpStage::kIr, "trace 3 after fuse", text)`.
// Outputs: on standard error, a head line `--- ir: trace 3 after fuse`, the text, an empty line; with --dump-to=DIR a file DIR/0001-ir-trace_3_after_fuse.txt
//   with the text (in a forked child DIR/0001-PID-...). Where that cannot be written, it is said once, and the rest is printed.
// Invariants: the text of IR dumps is what the parser reads.
// Tests: tests/base/base_test.cpp.
#pragma once

#include <string_view>

#include "runtime/base/options.h"

namespace dynvm::base {

enum class DumpStage : uint8_t {
#define X(enumerator, name, text) enumerator,
#include "runtime/base/dump_stages.def"
#undef X
};

// Is the stage printed.
inline bool dump_on(DumpStage stage) { return (options().dump >> static_cast<unsigned>(stage)) & 1; }

// Prints, whether the stage is on or not.
void dump(DumpStage stage, std::string_view title, std::string_view text);

}  // namespace dynvm::base
