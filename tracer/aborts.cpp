// Names and sentences of the reasons for which recordings are given up: aborts.def. Declared in recorder.h. Tests: tests/inspect.
#include "tracer/recorder.h"

namespace dynvm::tracer {

const char* abort_name(Abort abort) {
  switch (abort) {
    case Abort::kNone: return "none";
#define X(name, stage, then, sentence) \
  case Abort::k_##name: return #name;
#include "tracer/aborts.def"
#undef X
  }
  return "?";
}

const char* abort_sentence(Abort abort) {
  switch (abort) {
#define X(name, stage, then, sentence) \
  case Abort::k_##name: return sentence;
#include "tracer/aborts.def"
#undef X
    default: return "";
  }
}

AfterAbort after_abort(Abort abort) {
  switch (abort) {
#define X(name, stage, then, sentence) \
  case Abort::k_##name: return AfterAbort::then;
#include "tracer/aborts.def"
#undef X
    default: return AfterAbort::wait;
  }
}

}  // namespace dynvm::tracer
