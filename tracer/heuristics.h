// The tracer's parameters, from heuristics.def. Set once from the options before the VM starts.
#pragma once

namespace dynvm::tracer {

struct Heuristics {
#define X(name, value, sentence) int name = value;
#include "tracer/heuristics.def"
#undef X
};

inline Heuristics& heuristics() {
  static Heuristics instance;
  return instance;
}

}  // namespace dynvm::tracer
