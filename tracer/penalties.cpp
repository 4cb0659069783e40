// See penalties.h.
#include "tracer/penalties.h"

#include <algorithm>

#include "runtime/base/heuristics.h"
#include "runtime/base/log.h"
#include "runtime/base/report.h"
#include "tracer/profiles.h"

namespace dynvm::tracer {

ProcessRecordings& process_recordings() {
  static ProcessRecordings all;
  return all;
}

void wait_after(int& times, int few, int& waits) {
  if (times++ >= few) waits = std::max(waits, base::heuristics().penalty_start << std::min(times - few, 8));
}

void wait_longer(LoopState& loop) {
  loop.penalty = loop.penalty == 0 ? base::heuristics().penalty_start : std::min(loop.penalty * 2, base::heuristics().penalty_max);
  loop.waits = loop.penalty;
}

base::EventFields about(const LoopState& loop, int trace, const char* what) {
  return {.what = what, .trace = trace, .file = PyUnicode_AsUTF8(loop.code->co_filename), .line = PyCode_Addr2Line(loop.code, loop.unit * 2)};
}

void note_abort(const LoopState& loop, Abort reason, const std::string& detail, const std::pair<std::string, int>& place) {
  base::report().aborts[abort_name(reason)]++;
  profiles::recording_became(std::string(abort_name(reason)), detail);
  base::EventFields fields = about(loop, 0, "given up");
  const std::string header = fields.file + ":" + std::to_string(fields.line);
  if (!place.first.empty()) fields.file = place.first, fields.line = place.second;
  fields.reason = abort_name(reason);
  fields.detail = abort_sentence(reason) + (detail.empty() ? "" : " (" + detail + ")");
  DYNVM_EVENT(kAbort, fields, "{} {} {}", header, abort_name(reason), detail);
}

bool is_lesson(Abort reason) { return after_abort(reason) == AfterAbort::again; }

void penalise(LoopState& loop, SidePoint* side, Abort reason, const std::string& detail, const std::pair<std::string, int>& place) {
  note_abort(loop, reason, detail, place);
  const bool lesson = is_lesson(reason) && ++loop.lessons_in_row <= base::heuristics().max_lessons;
  if (side != nullptr) {
    if (!lesson) {
      side->waits = base::heuristics().penalty_start << std::min(side->failures++, 8);
      side->lost_ms = 0;
    }
  } else if (lesson) {
    loop.waits = 0;
  } else {
    if (reason == Abort::k_no_tensor_work && loop.penalty == 0) loop.penalty = base::heuristics().penalty_start;  // no bad luck: no loop inside of it waits for the next
    wait_longer(loop);
  }
}

bool make_room(LoopState& loop, SidePoint* side) {
  TraceGroup& group = group_of(loop, side);
  const bool full = group.recorded() >= (side != nullptr ? base::heuristics().max_variants : base::heuristics().max_roots);
  const bool many = side != nullptr && loop.num_sides >= base::heuristics().max_side;
  if (!full && !many) return true;
  Crowd& crowd = side != nullptr ? side->crowd : loop.crowd;
  if (++crowd.refused < base::heuristics().crowded << std::min(crowd.evicted, 8)) return false;
  TraceGroup* from = &group;
  if (!full)
    for (auto& [place, other] : loop.sides)
      if (other.group.oldest_use() < from->oldest_use()) from = &other.group;
  if (from->recorded() == 0) return false;  // none are allowed
  crowd.refused = 0;
  crowd.evicted++;
  base::report().limits[side == nullptr ? "max_roots" : full ? "max_variants" : "max_side"]++;
  const TraceGroup::Trace evicted = from->evict();
  DYNVM_EVENT(kTrace, about(loop, evicted->id, "dropped"), "trace {} gives way: it was not used for longest", evicted->id);
  if (side != nullptr) loop.num_sides--;
  return true;
}

}  // namespace dynvm::tracer
