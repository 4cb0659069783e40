// Writing of profiles: see profile_file.h. Names of keys are the file's format: docs/profile.md has them all.
#include "runtime/base/profile_file.h"

#include "runtime/base/json_writer.h"

namespace dynvm::base::profile {

namespace {

constexpr const char* kPartNames[] = {
#define X(enumerator, name, text) name,
#include "runtime/base/profile_parts.def"
#undef X
};
constexpr const char* kKindNames[] = {"inline", "guard", "kernel", "library", "residual", "tensor", "end"};
constexpr const char* kEventNames[] = {"record", "compile", "run", "gc"};

void write(JsonWriter& json, const Place& place) { json.begin('[').number(place.code).number(place.unit).number(place.line).end(']'); }

void write(JsonWriter& json, const CodeData& code) {
  json.begin('{').key("file").number(code.file).key("name").string(code.name).key("line").number(code.line).key("bytecode").begin('[');
  for (const CodeData::Inst& inst : code.insts) json.begin('[').number(inst.unit).number(inst.line).string(inst.text).end(']');
  json.end(']').end('}');
}

void write(JsonWriter& json, const KernelData& kernel) {
  json.begin('{').key("name").string(kernel.name).key("device").string(kernel.device).key("places").numbers(kernel.origins);
  if (!kernel.function.empty()) json.key("function").string(kernel.function);
  json.key("points").number(kernel.points).key("bytes_read").number(kernel.bytes_read).key("bytes_written").number(kernel.bytes_written);
  json.key("flops").number(kernel.flops).key("reads").strings(kernel.reads).key("writes").strings(kernel.writes).key("nodes").begin('[');
  for (const KernelData::Node& node : kernel.nodes) json.begin('{').key("op").string(node.op).key("args").numbers(node.args).end('}');
  json.end(']').key("text").string(kernel.text).key("code").string(kernel.code).end('}');
}

void write(JsonWriter& json, const ExitData& exit, int32_t inst) {
  json.begin('{').key("inst").number(inst).key("place");
  write(json, exit.place);
  json.key("reason").string(exit.reason).key("sentence").string(exit.sentence).key("what").string(exit.what);
  json.key("count").number(exit.count).key("at_entry").number(exit.at_entry).key("values").begin('{');
  for (const auto& [value, count] : exit.values) json.key(value).number(count);
  json.end('}').key("to").begin('[');
  for (const auto& [trace, count] : exit.to) json.begin('[').number(trace).number(count).end(']');
  json.end(']').end('}');
}

uint64_t ticks_of(const TraceData& trace) {
  uint64_t ticks = trace.own.ticks + trace.exits.ticks + trace.begin.ticks;
  for (const Meter& meter : trace.meters) ticks += meter.ticks;
  return ticks;
}

void write_insts(JsonWriter& json, const TraceData& trace) {
  json.key("insts").begin('[');
  for (size_t ref = 0; ref < trace.insts.size(); ++ref) {
    const InstData& inst = trace.insts[ref];
    json.begin('{').key("op").string(inst.op).key("kind").string(kKindNames[static_cast<size_t>(inst.kind)]).key("text").string(inst.text).key("place").number(inst.origin);
    if (!inst.name.empty()) json.key("name").string(inst.name);
    if (inst.kernel >= 0) json.key("kernel").number(inst.kernel);
    if (trace.meters[ref].times > 0) json.key("runs").number(trace.meters[ref].times).key("ms").number(ms_of(trace.meters[ref].ticks));
    if (inst.bytes > 0) json.key("bytes").number(inst.bytes);
    if (inst.flops > 0) json.key("flops").number(inst.flops);
    json.end('}');
  }
  json.end(']');
}

void write(JsonWriter& json, const TraceData& trace) {
  json.begin('{').key("id").number(trace.id).key("number").number(trace.number).key("kind").string(trace.kind).key("function").string(trace.function).key("place");
  write(json, trace.place);
  json.key("from_cache").boolean(trace.from_cache).key("for_sizes").boolean(trace.for_sizes);
  json.key("entries").number(trace.own.times).key("iterations").number(trace.iterations).key("tensor_ops").number(trace.tensor_ops);
  json.key("record_ms").number(trace.record_ms).key("compile_ms").number(trace.compile_ms).key("ms").number(ms_of(ticks_of(trace)));
  json.key("guards_ms").number(ms_of(trace.own.ticks)).key("entry_ms").number(ms_of(trace.begin.ticks)).key("exit_ms").number(ms_of(trace.exits.ticks));
  json.key("places").begin('[');
  for (size_t k = 0; k < trace.places.size(); ++k)
    json.begin('[').number(trace.places[k].code).number(trace.places[k].unit).number(trace.places[k].line).number(trace.callers[k]).end(']');
  json.end(']');
  write_insts(json, trace);
  json.key("kernels").begin('[');
  for (const KernelData& kernel : trace.kernels) write(json, kernel);
  json.end(']').key("exits").begin('[');
  for (const auto& [inst, exit] : trace.left) write(json, exit, inst);
  json.end(']').key("stages").begin('[');
  for (const StageData& stage : trace.stages)
    json.begin('{').key("name").string(stage.name).key("text").string(stage.text).key("places").numbers(stage.origins).key("insts").numbers(stage.insts).end('}');
  json.end(']').end('}');
}

void write(JsonWriter& json, const RecordingData& recording) {
  json.begin('{').key("place");
  write(json, recording.place);
  json.key("side").boolean(recording.side).key("trace").number(recording.trace).key("result").string(recording.result).key("sentence").string(recording.sentence);
  json.key("detail").string(recording.detail).key("start_ms").number(ms_at(recording.begin)).key("ms").number(ms_of(recording.end - recording.begin)).end('}');
}

void write(JsonWriter& json, const Event& event) {
  json.begin('{').key("kind").string(kEventNames[event.kind]).key("name").string(event.name).key("trace").number(event.trace);
  json.key("start_ms").number(ms_at(event.begin)).key("ms").number(ms_of(event.end - event.begin)).key("count").number(event.count).end('}');
}

void write(JsonWriter& json, const SampleKey& key, uint64_t count) {
  json.begin('{').key("part").string(key.owner < 0 ? "trace" : kPartNames[key.owner]);
  if (key.owner < 0) json.key("trace").number(-1 - key.owner);
  json.key("frames").begin('[');
  for (const Place& place : key.frames) write(json, place);
  json.end(']').key("count").number(count).end('}');
}

void write(JsonWriter& json, const GpuData& gpu) {
  json.begin('{').key("device").string(gpu.device).key("missing").string(gpu.missing).key("bytes_per_s").number(gpu.bytes_per_s).key("flops_per_s").number(gpu.flops_per_s);
  json.key("works").begin('[');
  for (const GpuData::Work& work : gpu.works) json.begin('{').key("name").string(work.name).key("runs").number(work.runs).key("ms").number(work.ms).end('}');
  json.end(']').key("events").begin('[');
  for (const GpuData::Event& event : gpu.events)
    json.begin('[').number(event.work).number(event.stream).number(ms_at(event.begin)).number(ms_of(event.end - event.begin)).end(']');
  json.end(']').end('}');
}

template <class Items>
void write_all(JsonWriter& json, std::string_view key, const Items& items) {
  json.key(key).begin('[');
  for (const auto& item : items) write(json, item);
  json.end(']');
}

}  // namespace

std::string json(const Data& data, const Totals& totals) {
  JsonWriter json;
  json.begin('{').key("version").number(1).key("program").begin('{');
  for (const auto& [name, text] : data.program) json.key(name).string(text);
  json.end('}').key("wall_ms").number(totals.wall_ms).key("other_threads_ms").number(totals.other_threads_ms).key("parts").begin('{');
  for (size_t part = 0; part < totals.parts.size(); ++part) json.key(kPartNames[part]).number(ms_of(totals.parts[part].ticks));
  uint64_t in_traces = 0;
  for (const TraceData& trace : data.traces) in_traces += ticks_of(trace);
  json.key("traces").number(ms_of(in_traces)).end('}');
  json.key("collections").number(totals.parts[static_cast<size_t>(Part::kGc)].times).key("files").strings(data.files);
  write_all(json, "codes", data.codes);
  write_all(json, "traces", data.traces);
  write_all(json, "recordings", data.recordings);
  write_all(json, "events", data.events);
  if (!data.gpu.device.empty()) {
    json.key("gpu");
    write(json, data.gpu);
  }
  json.key("sample_ms").number(data.sample_ms).key("samples_lost").number(data.samples_lost).key("samples").begin('[');
  for (const auto& [key, count] : data.samples) write(json, key, count);
  json.end(']').end('}');
  return std::move(json.text()) + "\n";
}

}  // namespace dynvm::base::profile
