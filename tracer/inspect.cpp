// See inspect.h.
#include "tracer/inspect.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "ir/effects.h"
#include "ir/kernel/text.h"
#include "ir/text.h"
#include "tracer/compile.h"
#include "tracer/loop_state.h"

namespace dynvm::tracer {
namespace {

using Json = nlohmann::ordered_json;

// A trace where it stands; side: null for a root trace.
struct Seen {
  const LoopState* loop = nullptr;
  const Place* place = nullptr;
  TraceGroup::Trace trace;
};

// All, by id.
std::map<int, Seen> all_traces() {
  std::map<int, Seen> all;
  for (const auto& [key, loop] : all_loops()) {
    if (loop->counter == nullptr) continue;
    for (const TraceGroup::Trace& trace : loop->roots.traces()) all[trace->id] = {loop.get(), nullptr, trace};
    for (const auto& [place, side] : loop->sides)
      for (const TraceGroup::Trace& trace : side.group.traces()) all[trace->id] = {loop.get(), &place, trace};
  }
  return all;
}

std::string text_of(Json json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string file_of(PyCodeObject* code) {
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (file == nullptr) PyErr_Clear();
  return file != nullptr ? file : "?";
}

const ir::SnapshotFrame& innermost(const ir::Trace& ir, const ir::Snapshot& snapshot) { return ir.frame(snapshot, snapshot.frames.size() - 1); }

PyCodeObject* code_of(const ir::SnapshotFrame& frame) { return static_cast<PyCodeObject*>(frame.code); }

int line_of(const ir::SnapshotFrame& frame) { return PyCode_Addr2Line(code_of(frame), frame.unit * 2); }

// Where an exit with this snapshot goes on, as side traces' places are.
Place place_of(const ir::Trace& ir, const ir::Snapshot& snapshot) {
  Place place;
  for (size_t depth = 0; depth < snapshot.frames.size(); depth++) {
    const ir::SnapshotFrame& frame = ir.frame(snapshot, depth);
    place.push_back({code_of(frame), frame.unit, static_cast<vm::Continuation>(frame.continuation)});
  }
  return place;
}

// Lines of the code that the trace begins in: the first and the last that it may be left at.
std::pair<int, int> lines_of(const Seen& seen) {
  const ir::Trace& ir = seen.trace->compiled->ir();
  PyCodeObject* own = seen.place != nullptr ? seen.place->back().code : seen.loop->code;
  const int begin = seen.place != nullptr ? PyCode_Addr2Line(own, seen.place->back().unit * 2) : PyCode_Addr2Line(own, seen.loop->unit * 2);
  std::pair<int, int> lines{begin, begin};
  for (size_t number = 0; number < ir.snapshots.size(); number++) {
    const ir::Snapshot& snapshot = ir.snapshots[number];
    if (snapshot.elsewhere) continue;  // the other side of a branch is not its way
    for (size_t depth = 0; depth < snapshot.frames.size(); depth++) {
      const ir::SnapshotFrame& frame = ir.frame(snapshot, depth);
      if (code_of(frame) != own) continue;
      lines.first = std::min(lines.first, line_of(frame));
      lines.second = std::max(lines.second, line_of(frame));
    }
  }
  return lines;
}

std::string function_of(PyCodeObject* code) {
  const char* function = PyUnicode_AsUTF8(code->co_qualname);
  if (function == nullptr) PyErr_Clear();
  return function != nullptr ? function : "?";
}

// The functions that the trace runs through, with their first and last lines that it may be left at.
Json functions_json(const ir::Trace& ir) {
  struct Part {
    PyCodeObject* code;
    size_t depth;
    int first, last;
  };
  std::vector<Part> parts;
  for (const ir::Snapshot& snapshot : ir.snapshots) {
    for (size_t depth = 0; depth < snapshot.frames.size() && !snapshot.elsewhere; depth++) {
      const ir::SnapshotFrame& frame = ir.frame(snapshot, depth);
      const int line = line_of(frame);
      auto part = std::find_if(parts.begin(), parts.end(), [&](const Part& known) { return known.code == code_of(frame); });
      if (part == parts.end()) part = parts.insert(part, {code_of(frame), depth, line, line});
      *part = {part->code, std::min(part->depth, depth), std::min(part->first, line), std::max(part->last, line)};
    }
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.depth < b.depth; });
  Json rows = Json::array();
  for (const Part& part : parts) rows.push_back({{"function", function_of(part.code)}, {"file", file_of(part.code)}, {"first_line", part.first}, {"last_line", part.last}});
  return rows;
}

struct Exit {
  ir::Ref inst;
  uint64_t count;
  const ir::Snapshot* snapshot;
};

std::vector<Exit> exits_of(const LoopTrace& trace) {
  const ir::Trace& ir = trace.compiled->ir();
  std::vector<Exit> exits;
  for (const auto& [inst, count] : trace.exit_counts) {
    if (inst >= ir.insts.size() || ir.insts[inst].snapshot == ir::kNoSnapshot) continue;
    exits.push_back({inst, static_cast<uint64_t>(count), &ir.snapshots[static_cast<size_t>(ir.insts[inst].snapshot)]});
  }
  std::stable_sort(exits.begin(), exits.end(), [](const Exit& a, const Exit& b) { return a.count > b.count; });
  return exits;
}

// The trace that is left most often to where this one begins; 0: none is known.
int parent_of(const Seen& seen, const std::map<int, Seen>& all) {
  int parent = 0;
  uint64_t most = 0;
  if (seen.place == nullptr) return 0;
  for (const auto& [id, other] : all) {
    if (other.loop != seen.loop || id == seen.trace->id) continue;
    const ir::Trace& ir = other.trace->compiled->ir();
    for (const Exit& exit : exits_of(*other.trace))
      if (exit.count > most && place_of(ir, *exit.snapshot) == *seen.place) parent = id, most = exit.count;
    // A trace that was cut goes on behind the instruction that the interpreter carries out.
    if (most == 0 && parent == 0 && other.trace->steps_over()) parent = id;
  }
  return parent;
}

Json row_of(const Seen& seen, const std::map<int, Seen>& all) {
  const LoopTrace& trace = *seen.trace;
  const auto [first, last] = lines_of(seen);
  PyCodeObject* code = seen.place != nullptr ? seen.place->back().code : seen.loop->code;
  Json row = {{"id", trace.id}, {"file", file_of(code)}, {"first_line", first}, {"last_line", last}, {"function", function_of(code)},
              {"kind", trace.entry->kind}, {"state", trace.compiled->ready() ? "compiled" : "compiling"}, {"cut", trace.cut != Abort::kNone},
              {"iterations", trace.compiled->iterations()}, {"rounds", trace.entry->rounds}, {"runs", trace.compiled->runs()}, {"exits", trace.entry->exits},
              {"ir_insts", trace.entry->ir_insts}, {"tensor_ops", trace.entry->tensor_ops}, {"kernels", Json::array()}, {"parent", nullptr},
              {"sizes", trace.for_all_sizes ? "all" : trace.made_for_sizes ? "other" : "recorded"}};
  for (const ir::Kernel& kernel : trace.compiled->ir().kernels) row["kernels"].push_back(kernel.name);
  if (const int parent = parent_of(seen, all); parent != 0) row["parent"] = parent;
  return row;
}

Json exits_json(const Seen& seen) {
  const ir::Trace& ir = seen.trace->compiled->ir();
  Json exits = Json::array();
  for (const Exit& exit : exits_of(*seen.trace)) {
    const ir::SnapshotFrame& frame = innermost(ir, *exit.snapshot);
    const ir::OpInfo& info = ir::op_info(ir.insts[exit.inst].op);
    Json row = {{"count", exit.count}, {"guard", info.name}, {"reason", info.sentence}, {"instruction", ir::print_inst(ir, exit.inst)},
                {"file", file_of(code_of(frame))}, {"line", line_of(frame)}, {"trace", nullptr}};
    const auto side = seen.loop->sides.find(place_of(ir, *exit.snapshot));
    if (side != seen.loop->sides.end() && !side->second.group.empty()) row["trace"] = side->second.group.traces().front()->id;
    exits.push_back(std::move(row));
  }
  return exits;
}

// The library's operations that an iteration runs: name -> how many.
Json library_json(const ir::Trace& ir) {
  std::map<std::string, int> counts;
  for (const ir::Inst& inst : ir.insts)
    if (inst.op == ir::Op::k_aten && !inst.sunk && !ir::is_view_call(ir, inst)) counts[ir.calls[static_cast<size_t>(inst.imm)].name]++;
  return counts;
}

}  // namespace

std::string traces_json() {
  const std::map<int, Seen> all = all_traces();
  Json rows = Json::array();
  for (const auto& [id, seen] : all) rows.push_back(row_of(seen, all));
  return text_of(std::move(rows));
}

bool trace_text(int id, const std::string& what, std::string* text) {
  const std::map<int, Seen> all = all_traces();
  const auto found = all.find(id);
  if (found == all.end()) return false;
  const LoopTrace& trace = *found->second.trace;
  const ir::Trace& ir = trace.compiled->ir();
  if (what == "numbers") *text = text_of(row_of(found->second, all));
  else if (what == "recorded") *text = trace.recorded != nullptr ? ir::print_trace(*trace.recorded) : "";
  else if (what == "ir") *text = ir::print_trace(ir);
  else if (what == "exits") *text = text_of(exits_json(found->second));
  else if (what == "functions") *text = text_of(functions_json(ir));
  else if (what == "library") *text = text_of(library_json(ir));
  else if (what == "residuals") *text = text_of(Json(trace.compiled->residual_operations()));
  else if (what == "kernels") {
    Json kernels = Json::array();
    for (const ir::Kernel& kernel : ir.kernels) kernels.push_back({{"name", kernel.name}, {"text", ir::print_kernel(kernel)}});
    *text = text_of(std::move(kernels));
  } else {
    return false;
  }
  return true;
}

}  // namespace dynvm::tracer
