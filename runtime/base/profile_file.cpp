// Writing of profiles: see profile_file.h. Names of keys are the file's format: docs/profile.md has them all.
#include "runtime/base/profile_file.h"

#include <nlohmann/json.hpp>

namespace dynvm::base::profile {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kPartNames[] = {
#define X(enumerator, name, text) name,
#include "runtime/base/profile_parts.def"
#undef X
};
constexpr const char* kKindNames[] = {"inline", "guard", "kernel", "library", "residual", "tensor", "end"};
constexpr const char* kEventNames[] = {"record", "compile", "run", "gc"};

Json of(const Place& place) { return {place.code, place.unit, place.line}; }

Json of(const CodeData& code) {
  Json insts = Json::array();
  for (const CodeData::Inst& inst : code.insts) insts.push_back({inst.unit, inst.line, inst.text});
  return {{"file", code.file}, {"name", code.name}, {"line", code.line}, {"bytecode", std::move(insts)}};
}

Json of(const KernelData& kernel) {
  Json nodes = Json::array();
  for (const KernelData::Node& node : kernel.nodes) nodes.push_back({{"op", node.op}, {"args", node.args}});
  return {{"name", kernel.name}, {"device", kernel.device}, {"places", kernel.origins}, {"points", kernel.points}, {"bytes_read", kernel.bytes_read},
          {"bytes_written", kernel.bytes_written}, {"flops", kernel.flops}, {"reads", kernel.reads}, {"writes", kernel.writes}, {"nodes", std::move(nodes)},
          {"text", kernel.text}, {"code", kernel.code}};
}

Json of(const ExitData& exit, int32_t inst) {
  Json to = Json::array();
  for (const auto& [trace, count] : exit.to) to.push_back({trace, count});
  return {{"inst", inst}, {"place", of(exit.place)}, {"reason", exit.reason}, {"sentence", exit.sentence}, {"what", exit.what}, {"count", exit.count}, {"at_entry", exit.at_entry},
          {"values", exit.values}, {"to", std::move(to)}};
}

Json of(const TraceData& trace) {
  uint64_t ticks = trace.own.ticks + trace.exits.ticks + trace.begin.ticks;
  Json insts = Json::array();
  for (size_t ref = 0; ref < trace.insts.size(); ++ref) {
    const InstData& inst = trace.insts[ref];
    const Meter meter = ref < trace.meters.size() ? trace.meters[ref] : Meter{};
    ticks += meter.ticks;
    insts.push_back({{"op", inst.op}, {"kind", kKindNames[static_cast<size_t>(inst.kind)]}, {"text", inst.text}, {"place", inst.origin}});
    if (!inst.name.empty()) insts.back()["name"] = inst.name;
    if (inst.kernel >= 0) insts.back()["kernel"] = inst.kernel;
    if (meter.times > 0) insts.back()["runs"] = meter.times, insts.back()["ms"] = ms_of(meter.ticks);
    if (inst.bytes > 0) insts.back()["bytes"] = inst.bytes;
    if (inst.flops > 0) insts.back()["flops"] = inst.flops;
  }
  Json places = Json::array(), kernels = Json::array(), stages = Json::array(), exits = Json::array();
  for (size_t k = 0; k < trace.places.size(); ++k) {
    places.push_back(of(trace.places[k]));
    places.back().push_back(trace.callers[k]);
  }
  for (const KernelData& kernel : trace.kernels) kernels.push_back(of(kernel));
  for (const StageData& stage : trace.stages) stages.push_back({{"name", stage.name}, {"text", stage.text}, {"places", stage.origins}, {"insts", stage.insts}});
  for (const auto& [inst, exit] : trace.left) exits.push_back(of(exit, inst));
  return {{"id", trace.id},
          {"number", trace.number},
          {"kind", trace.kind},
          {"function", trace.function},
          {"place", of(trace.place)},
          {"from_cache", trace.from_cache},
          {"for_sizes", trace.for_sizes},
          {"entries", trace.own.times},
          {"iterations", trace.iterations},
          {"tensor_ops", trace.tensor_ops},
          {"record_ms", trace.record_ms},
          {"compile_ms", trace.compile_ms},
          {"ms", ms_of(ticks)},
          {"guards_ms", ms_of(trace.own.ticks)},
          {"entry_ms", ms_of(trace.begin.ticks)},
          {"exit_ms", ms_of(trace.exits.ticks)},
          {"places", std::move(places)},
          {"insts", std::move(insts)},
          {"kernels", std::move(kernels)},
          {"exits", std::move(exits)},
          {"stages", std::move(stages)}};
}

// "interpreter", or "trace" with its id.
Json owner(int64_t number) {
  if (number < 0) return {{"part", "trace"}, {"trace", -1 - number}};
  return {{"part", kPartNames[number]}};
}

}  // namespace

std::string json(const Data& data, const Totals& totals) {
  Json all;
  all["version"] = 1;
  all["program"] = data.program;
  all["wall_ms"] = totals.wall_ms;
  all["other_threads_ms"] = totals.other_threads_ms;
  all["parts"] = Json::object();
  for (size_t part = 0; part < totals.parts.size(); ++part) all["parts"][kPartNames[part]] = ms_of(totals.parts[part].ticks);
  all["collections"] = totals.parts[static_cast<size_t>(Part::kGc)].times;
  all["files"] = data.files;
  all["codes"] = Json::array();
  for (const CodeData& code : data.codes) all["codes"].push_back(of(code));
  all["traces"] = Json::array();
  double traces_ms = 0;
  for (const TraceData& trace : data.traces) {
    all["traces"].push_back(of(trace));
    traces_ms += all["traces"].back()["ms"].get<double>();
  }
  all["parts"]["traces"] = traces_ms;
  all["recordings"] = Json::array();
  for (const RecordingData& recording : data.recordings) {
    all["recordings"].push_back({{"place", of(recording.place)}, {"side", recording.side}, {"trace", recording.trace}, {"result", recording.result},
                                 {"sentence", recording.sentence}, {"detail", recording.detail}, {"start_ms", ms_at(recording.begin)}, {"ms", ms_of(recording.end - recording.begin)}});
  }
  all["events"] = Json::array();
  for (const Event& event : data.events) {
    all["events"].push_back({{"kind", kEventNames[event.kind]}, {"name", event.name}, {"trace", event.trace}, {"start_ms", ms_at(event.begin)},
                             {"ms", ms_of(event.end - event.begin)}, {"count", event.count}});
  }
  all["sample_ms"] = data.sample_ms;
  all["samples_lost"] = data.samples_lost;
  all["samples"] = Json::array();
  for (const auto& [key, count] : data.samples) {
    Json sample = owner(key.owner);
    sample["frames"] = Json::array();
    for (const Place& place : key.frames) sample["frames"].push_back(of(place));
    sample["count"] = count;
    all["samples"].push_back(std::move(sample));
  }
  return all.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";  // file names need not be UTF-8
}

}  // namespace dynvm::base::profile
