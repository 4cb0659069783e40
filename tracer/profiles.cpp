// See profiles.h.
#include "tracer/profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <unordered_map>

#include "codegen/cuda/activity.h"
#include "ir/kernel/symbols.h"
#include "ir/kernel/text.h"
#include "ir/text.h"
#include "ir/work.h"
#include "tracer/compile.h"
#include "tracer/value_names.h"

namespace dynvm::tracer::profiles {

namespace profile = base::profile;
using ir::Op;
using ir::Ref;
using profile::Kind;
using profile::Place;
using profile::TraceData;

namespace {

auto& code_numbers = *new std::unordered_map<PyCodeObject*, int32_t>;
auto& lines = *new std::map<std::pair<int32_t, int>, int>;  // by code and unit
auto& place_numbers = *new std::map<TraceData*, std::map<std::pair<Place, int32_t>, int32_t>>;  // of traces that are being described

profile::Timing recording_time;
std::string text_of(PyObject* unicode) {
  const char* text = unicode != nullptr && PyUnicode_Check(unicode) ? PyUnicode_AsUTF8(unicode) : nullptr;
  if (text == nullptr) PyErr_Clear();
  return text == nullptr ? "?" : text;
}

int32_t code_number(PyCodeObject* code) {
  const auto [found, is_new] = code_numbers.try_emplace(code, static_cast<int32_t>(profile::data().codes.size()));
  if (is_new) {
    Py_INCREF(code);
    profile::CodeData& data = profile::data().codes.emplace_back();
    data.file = profile::file_number(text_of(code->co_filename));
    data.name = text_of(code->co_qualname);
    data.line = code->co_firstlineno;
  }
  return found->second;
}

// "x", "3", "torch": what an instruction's argument stands for, where that is one look-up.
std::string argument_of(PyCodeObject* code, const vm::Inst* inst) {
  const std::string name(vm::op_name(vm::opcode(inst)));
  const int arg = vm::oparg(inst);
  const auto item = [&](PyObject* tuple) { return tuple != nullptr && arg >= 0 && arg < PyTuple_GET_SIZE(tuple) ? PyTuple_GET_ITEM(tuple, arg) : nullptr; };
  if (name.find("Fast") != std::string::npos || name.find("Deref") != std::string::npos || name.find("Closure") != std::string::npos)
    return text_of(item(code->co_localsplusnames));
  if (name == "LoadConst") {
    PyObject* value = item(code->co_consts);
    if (value == nullptr || PyCode_Check(value)) return "code";
    PyObject* shown = PyObject_Repr(value);
    std::string text = text_of(shown).substr(0, 40);
    Py_XDECREF(shown);
    return text;
  }
  if (name == "LoadGlobal" && arg >= 0 && arg / 2 < PyTuple_GET_SIZE(code->co_names)) return text_of(PyTuple_GET_ITEM(code->co_names, arg / 2));
  for (const char* named : {"LoadName", "StoreName", "DeleteName", "StoreGlobal", "LoadAttr", "StoreAttr", "LoadMethod", "ImportName", "ImportFrom"})
    if (name == named && item(code->co_names) != nullptr) return text_of(item(code->co_names));
  return std::to_string(arg);
}

void keep_bytecode(PyCodeObject* code) {
  const int32_t number = code_number(code);
  if (!profile::data().codes[number].insts.empty()) return;
  std::vector<profile::CodeData::Inst> insts;
  const vm::Inst* inst = vm::first_inst(code, true);
  for (int i = 0; inst != nullptr && i < vm::inst_count(code); i++, inst++) {
    std::string text = fmt::format("{} {}", vm::op_name(vm::opcode(inst)), argument_of(code, inst));
    if (const vm::Inst* target = vm::jump_target(inst)) text += fmt::format(" to {}", vm::unit_of(code, target));
    insts.push_back({vm::unit_of(code, inst), PyCode_Addr2Line(code, vm::lasti_of(code, inst) * 2), std::move(text)});
  }
  profile::data().codes[number].insts = std::move(insts);
}

int32_t place_number(TraceData& data, const Place& place, int32_t caller) {
  const auto [found, is_new] = place_numbers[&data].try_emplace({place, caller}, static_cast<int32_t>(data.places.size()));
  if (is_new) {
    data.places.push_back(place);
    data.callers.push_back(caller);
  }
  return found->second;
}

int32_t place_of_origin(TraceData& data, const ir::Trace& trace, int32_t number) {
  if (number < 0 || static_cast<size_t>(number) >= trace.origins.size()) return -1;
  const ir::Origin& origin = trace.origins[number];
  const int32_t caller = place_of_origin(data, trace, origin.caller);
  return place_number(data, profiles::place_of(static_cast<PyCodeObject*>(origin.code), origin.unit), caller);
}

// Where an instruction comes from: what recording noted, or (in traces that were read from disk) what its snapshot says; -1: not known.
int32_t place_of_inst(TraceData& data, const ir::Trace& trace, Ref ref) {
  const ir::Inst& inst = trace.insts[ref];
  if (inst.origin >= 0) return place_of_origin(data, trace, inst.origin);
  if (inst.snapshot < 0 || trace.snapshots[inst.snapshot].elsewhere) return -1;
  int32_t place = -1;
  for (uint32_t number : trace.snapshots[inst.snapshot].frames)
    place = place_number(data, profiles::place_of(static_cast<PyCodeObject*>(trace.frames[number].code), trace.frames[number].unit), place);
  return place;
}

std::vector<int32_t> places_of(TraceData& data, const ir::Trace& trace) {
  std::vector<int32_t> places;
  std::map<int32_t, int32_t> of_origins;
  for (Ref ref = 0; ref < trace.insts.size(); ++ref) {
    const int32_t origin = trace.insts[ref].origin;
    const auto known = of_origins.find(origin);
    int32_t place = origin >= 0 && known != of_origins.end() ? known->second : place_of_inst(data, trace, ref);
    if (origin >= 0) of_origins[origin] = place;
    if (place < 0 && !places.empty() && trace.insts[ref].origin < 0 && trace.insts[ref].count > 0) place = places.back();
    places.push_back(place);
  }
  return places;
}

std::string hex(const void* code, size_t size) {
  constexpr size_t kMax = 1 << 16;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * std::min(size, kMax));
  for (size_t i = 0; i < std::min(size, kMax); ++i) {
    const uint8_t byte = static_cast<const uint8_t*>(code)[i];
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

profile::KernelData describe_kernel(TraceData& data, const ir::Trace& trace, size_t number) {
  const ir::Kernel& kernel = trace.kernels[number];
  profile::KernelData out;
  out.name = kernel.name;
  out.text = ir::print_kernel(kernel);
  if (number < trace.kernel_origins.size())
    for (int32_t origin : trace.kernel_origins[number]) out.origins.push_back(place_of_origin(data, trace, origin));
  const auto memory = [&](int32_t operand) {
    const ir::KernelOperand& o = kernel.operands[operand];
    std::string strides;
    for (int64_t stride : o.strides) strides += (strides.empty() ? "" : ",") + ir::symbol_text(stride, kernel.symbols);
    return fmt::format("s{} {}{{{}}}", o.pointer, ir::dtype_name(o.dtype), strides);
  };
  for (const ir::KernelNode& node : kernel.nodes) {
    profile::KernelData::Node& shown = out.nodes.emplace_back();
    shown.op = ir::kop_info(node.op).name;
    if (ir::reads_memory(node.op)) {
      shown.op += " " + memory(node.operand);
      if (std::find(out.reads.begin(), out.reads.end(), memory(node.operand)) == out.reads.end()) out.reads.push_back(memory(node.operand));
    } else if (node.op == ir::KOp::k_const) {
      shown.op = ir::is_floating(node.dtype) ? fmt::format("{}", node.f) : fmt::format("{}", node.i);
    } else if (node.op == ir::KOp::k_scalar || node.op == ir::KOp::k_index) {
      shown.op += fmt::format(" {}", node.i);
    }
    for (int32_t arg : {node.a, node.b, node.c})
      if (arg >= 0) shown.args.push_back(arg);
  }
  for (const ir::KernelStore& store : kernel.stores) {
    out.writes.push_back(memory(store.operand));
    profile::KernelData::Node& shown = out.nodes.emplace_back();
    shown.op = (store.adds ? "add_at " : store.has_place() ? "store_at " : "store ") + memory(store.operand);
    for (int32_t arg : {store.node, store.at, store.holds})
      if (arg >= 0) shown.args.push_back(arg);
  }
  return out;
}

struct LastExit {
  TraceData* data = nullptr;
  int32_t inst = -1;
  const _PyInterpreterFrame* frame = nullptr;
  const vm::Inst* ip = nullptr;
} last_exit, leaving;

}  // namespace

Place place_of(PyCodeObject* code, int unit) {
  if (code == nullptr) return {};
  const int32_t number = code_number(code);
  const auto [found, is_new] = lines.try_emplace({number, unit}, 0);  // finding a line takes as long as the code before it
  if (is_new) found->second = PyCode_Addr2Line(code, unit * 2);
  return {number, unit, found->second};
}

// ---------------------------------------------------------------------------------------------------------------------
// Recordings

namespace {

// A script that has begun to use a GPU: before that, nothing of CUDA may be touched, or processes that it forks could not use it.
void watch_gpu() {
  PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "torch.cuda");
  PyObject* begun = module != nullptr ? PyObject_GetAttrString(module, "_initialized") : nullptr;
  if (begun == nullptr) PyErr_Clear();
  if (begun == Py_True) codegen::cuda::watch_activity();
  Py_XDECREF(begun);
}

// Are all its tensors of sizes that no run decides?
bool has_known_sizes(const ir::Trace& trace, const ir::Inst& aten) {
  const auto known = [&](int32_t meta) { return meta < 0 || trace.metas[meta].open == 0; };
  for (uint32_t k = 0; k < aten.count; ++k)
    if (!known(trace.insts[trace.arg(aten, k)].meta)) return false;
  const std::vector<int32_t>& results = trace.calls[aten.imm].results;
  return std::all_of(results.begin(), results.end(), known);
}

}  // namespace

void recording_begins(PyCodeObject* code, int unit, bool side) {
  if (!profile::on()) return;
  watch_gpu();
  recording_time.begin(&profile::meter(profile::Part::kRecording));
  profile::data().recordings.push_back({place_of(code, unit), side, 0, "", "", "", profile::ticks_now(), 0});
}

void recording_ends() {
  if (!profile::on()) return;
  recording_time.end();
  profile::RecordingData& last = profile::data().recordings.back();
  last.end = profile::ticks_now();
  profile::add_event(profile::Event::kRecord, 0, last.begin, last.end, fmt::format("{}:{}", profile::data().files[profile::data().codes[last.place.code].file], last.place.line));
}

void recording_became(const std::string& result, const std::string& detail, int trace) {
  if (!profile::on() || profile::data().recordings.empty()) return;
  profile::RecordingData& last = profile::data().recordings.back();
  if (trace != 0) last.trace = trace;
  if (!last.result.empty() && trace == 0) return;  // of another place: nothing was recorded there
  if (!last.result.empty()) return;
  last.result = result;
  last.detail = detail;
#define X(name, stage, then, text) \
  if (result == #name) last.sentence = text;
#include "tracer/aborts.def"
#undef X
}

// ---------------------------------------------------------------------------------------------------------------------
// Traces

void add_stage(TraceData& data, const std::string& name, const ir::Trace& trace) {
  const profile::Timed timed(profile::Part::kProfile);
  if (data.stages.empty()) place_numbers.erase(&data);  // of what lay there before
  profile::StageData stage;
  stage.name = name;
  for (Ref ref = 0; ref < trace.insts.size(); ++ref) {
    stage.text += ir::print_inst(trace, ref);
    stage.text += '\n';
    stage.insts.push_back(static_cast<int32_t>(ref));
  }
  if (!data.stages.empty() && data.stages.back().text == stage.text && trace.kernels.empty()) return;  // the pass has changed nothing
  stage.origins = places_of(data, trace);
  for (size_t k = 0; k < trace.kernels.size(); ++k) {
    const std::string text = fmt::format("kernel k{} {}\n", k, ir::print_kernel(trace.kernels[k]));
    stage.text += text;
    const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
    stage.insts.resize(stage.insts.size() + lines, -1);
    stage.origins.resize(stage.origins.size() + lines, -1);
  }
  if (!data.stages.empty() && data.stages.back().text == stage.text) return;
  data.stages.push_back(std::move(stage));
}

TraceData& add_trace(TraceData* stages, const ir::Trace& trace, PyCodeObject* code, int unit) {
  watch_gpu();
  TraceData& data = profile::data().traces.emplace_back();
  if (stages != nullptr) {
    data.places = std::move(stages->places);
    data.callers = std::move(stages->callers);
    data.stages = std::move(stages->stages);
    data.record_ms = stages->record_ms;
    for (size_t k = 0; k < data.places.size(); ++k) place_numbers[&data].emplace(std::make_pair(data.places[k], data.callers[k]), static_cast<int32_t>(k));
  }
  data.from_cache = stages == nullptr;
  data.id = static_cast<int>(profile::data().traces.size());
  data.number = trace.id;
  data.place = place_of(code, unit);
  data.function = text_of(code->co_qualname);
  const int64_t owner = -1 - data.id;
  data.own.owner = data.exits.owner = data.begin.owner = owner;
  data.meters.assign(trace.insts.size(), {0, 0, owner});
  return data;
}

void forget(TraceData& data) {
  place_numbers.erase(&data);
  profile::data().traces.pop_back();
}

void describe(TraceData& data, const runtime::CompiledTrace& compiled, PyCodeObject* root) {
  const profile::Timed timed(profile::Part::kProfile);
  const ir::Trace& trace = compiled.ir();
  keep_bytecode(root);
  for (const ir::Origin& origin : trace.origins) keep_bytecode(static_cast<PyCodeObject*>(origin.code));
  const std::vector<int32_t> places = places_of(data, trace);
  for (Ref ref = 0; ref < trace.insts.size(); ++ref) {
    const ir::Inst& inst = trace.insts[ref];
    profile::InstData& out = data.insts.emplace_back();
    out.op = ir::op_info(inst.op).name;
    out.text = ir::print_inst(trace, ref);
    out.origin = places[ref];
    out.kind = inst.sunk ? Kind::kInline : codegen::profile_kind(inst);
    if (out.kind == Kind::kKernel) {
      out.kernel = static_cast<int32_t>(inst.imm);
      out.name = trace.kernels[inst.imm].name;
    } else if (out.kind == Kind::kLibrary) {
      const ir::AtenCall& call = trace.calls[inst.imm];
      out.name = call.overload.empty() ? call.name : call.name + "." + call.overload;
      if (has_known_sizes(trace, inst)) {
        const ir::Work work = ir::work_of(trace, inst);
        out.bytes = work.bytes_read + work.bytes_written;
        out.flops = work.flops;
      }
    } else if (out.kind == Kind::kResidual) {
      out.name = runtime::residual_name(trace, inst);
    }
  }
  for (size_t k = 0; k < trace.kernels.size(); ++k) {
    data.kernels.push_back(describe_kernel(data, trace, k));
    profile::KernelData& described = data.kernels.back();
    described.device = "cpu";
    if (const codegen::CompiledKernel* code = compiled.kernel(k)) described.code = hex(code->code(), code->code_size());
    if (const codegen::cuda::CudaKernel* code = compiled.cuda_kernel(k)) {
      described.device = "cuda:" + std::to_string(code->device());
      described.code = code->source();
      described.function = code->function();
    }
    // With symbols: the values that a run has given them last.
    const auto set_work = [&data, k, kernel = trace.kernels[k]] {
      if (data.symbols.size() < kernel.symbols.size()) return;
      const ir::Work work = ir::work_of(kernel.symbols.empty() ? kernel : ir::with_values(kernel, data.symbols));
      profile::KernelData& to = data.kernels[k];
      to.points = work.points, to.bytes_read = work.bytes_read, to.bytes_written = work.bytes_written, to.flops = work.flops;
    };
    if (trace.kernels[k].symbols.empty()) set_work();
    else profile::on_write(set_work);
  }
  if (data.stages.empty()) add_stage(data, "read", trace);  // from the cache
  profile::StageData stage;
  stage.name = "assembly";
  const std::vector<std::pair<size_t, Ref>>& marks = compiled.marks();
  stage.text = compiled.listing();
  size_t next = 0, at = 0;
  int32_t inst = -1;
  while (at < stage.text.size()) {
    while (next < marks.size() && marks[next].first <= at) inst = static_cast<int32_t>(marks[next++].second);
    const bool known = inst >= 0 && static_cast<size_t>(inst) < places.size();
    stage.insts.push_back(known ? inst : -1);
    stage.origins.push_back(known ? places[inst] : -1);
    const size_t end = stage.text.find('\n', at);
    at = end == std::string::npos ? stage.text.size() : end + 1;
  }
  data.stages.push_back(std::move(stage));
  place_numbers.erase(&data);
}

// ---------------------------------------------------------------------------------------------------------------------
// Exits

void exit_taken(LoopTrace& trace, const runtime::RunResult& run, bool at_entry) {
  leaving = {};
  if (trace.profile == nullptr) return;
  const ir::Trace& ir = trace.compiled->ir();
  if (run.inst >= ir.insts.size()) return;
  leaving = {trace.profile, static_cast<int32_t>(run.inst), nullptr, nullptr};
  profile::ExitData& exit = trace.profile->left[static_cast<int32_t>(run.inst)];
  const ir::Inst& inst = ir.insts[run.inst];
  if (exit.count++ == 0) {
    const ExitReason reason = exit_reason(ir, inst, run.kind == runtime::RunResult::kErrorExit);
    exit.reason = reason.kind;
    exit.sentence = reason.text;
    exit.what = what_decides(ir, run.inst);
    const int32_t place = trace.profile->insts[run.inst].origin;
    exit.place = place >= 0 ? trace.profile->places[place] : trace.profile->place;
  }
  exit.at_entry += at_entry;
  if (exit.values.size() >= profile::kMaxValues && exit.count > 1000) return;
  const std::string value = value_seen(*trace.compiled, run);
  if (value.empty()) return;
  if (exit.values.size() < profile::kMaxValues || exit.values.count(value) != 0) exit.values[value]++;
}

void left_to(const vm::ThreadView& view) {
  if (!profile::on()) return;
  last_exit = std::exchange(leaving, {});
  last_exit.frame = view.frame;
  last_exit.ip = view.ip;
}

void entered(const vm::ThreadView& view, const LoopTrace& trace) {
  if (!profile::on()) return;
  const LastExit from = std::exchange(last_exit, {});
  if (from.data == nullptr || trace.profile == nullptr || from.frame != view.frame || from.ip != view.ip) return;
  from.data->left[from.inst].to[trace.profile->id]++;
}

void interpreting() { last_exit = {}; }

}  // namespace dynvm::tracer::profiles
