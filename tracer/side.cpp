// See side.h.
#include "tracer/side.h"

#include <algorithm>

namespace dynvm::tracer {

std::vector<LiveFrame> live_frames(const vm::ThreadView& view, _PyInterpreterFrame* root) {
  std::vector<LiveFrame> frames;
  LiveFrame next{view.frame, view.ip, vm::Continuation::kPush, view.sp};
  for (vm::Callers callers(view); next.frame != root;) {
    if (!callers.next()) return {};
    next.continuation = callers.continuation;
    frames.push_back(next);
    next = {callers.frame, callers.at, vm::Continuation::kPush, callers.sp};
  }
  frames.push_back(next);
  std::reverse(frames.begin(), frames.end());
  return frames;
}

Place place_of(const std::vector<LiveFrame>& frames) {
  Place place;
  for (const LiveFrame& live : frames) {
    PyCodeObject* code = vm::FrameView::code(live.frame);
    place.push_back({code, vm::unit_of(code, live.at), live.continuation});
  }
  return place;
}

bool can_begin(const std::vector<LiveFrame>& frames) {
  if (frames.empty()) return false;
  for (size_t i = 1; i < frames.size(); i++) {
    _PyInterpreterFrame* frame = frames[i].frame;
    if (vm::FrameView::generator(frame) != nullptr || !vm::FrameView::give_up_object(frame)) return false;
    switch (frames[i].continuation) {
      case vm::Continuation::kPush:
      case vm::Continuation::kOverride:
      case vm::Continuation::kSize:
      case vm::Continuation::kNext:
      case vm::Continuation::kDiscard:
      case vm::Continuation::kInit:
      case vm::Continuation::kAttribute:
      case vm::Continuation::kReplace:
      case vm::Continuation::kIter:
      case vm::Continuation::kOperand:
      case vm::Continuation::kMethodAttribute:
      case vm::Continuation::kReplaceMethod:
      case vm::Continuation::kBinary:
      case vm::Continuation::kCompare: break;
      default: return false;
    }
  }
  return true;
}

std::vector<PyObject*> entry_objects(const std::vector<LiveFrame>& frames) {
  std::vector<PyObject*> objects;
  for (size_t i = 0; i < frames.size(); i++) {
    if (i > 0) objects.push_back(reinterpret_cast<PyObject*>(vm::FrameView::function(frames[i].frame)));
    objects.insert(objects.end(), vm::FrameView::locals(frames[i].frame), frames[i].sp);
  }
  return objects;
}

}  // namespace dynvm::tracer
