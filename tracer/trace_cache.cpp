// See trace_cache.h.
#include "tracer/trace_cache.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <utility>

#include "codegen/cuda/driver.h"
#include "codegen/x86/kernel/cpu_features.h"
#include "ir/archive.h"
#include "ir/text.h"
#include "runtime/base/cache_folder.h"
#include "runtime/base/dump.h"
#include "runtime/base/heuristics.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"
#include "runtime/base/policy.h"
#include "runtime/base/report.h"
#include "tracer/clock.h"
#include "tracer/object_names.h"
#include "vm/objects.h"

namespace dynvm::tracer {

template <class A>
void fields(A& a, Site& x) {
  a(x.kind, x.index);
  a.pointer(x.a);
  a.pointer(x.b);
}

namespace {

using ir::Op;

constexpr size_t kBytesOfInst = 180;  // about, kept with all that belongs to it

// What a trace is beside IR and objects.
struct Extra {
  std::vector<int32_t> inputs;
  std::vector<Site> sites;
  Abort cut = Abort::kNone;
  bool for_all_sizes = false, whole = false, trains = false;
};
template <class A>
void fields(A& a, Extra& x) { a(x.inputs, x.sites, x.cut, x.for_all_sizes, x.whole, x.trains); }

// When the library that holds this address was built.
std::string build_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) == 0 || info.dli_fname == nullptr ? std::string() : base::file_stamp(info.dli_fname);
}

void note(const std::string& why) {
  base::report().notes.emplace("trace cache", why);
  DYNVM_EVENT(kCache, (base::EventFields{.what = "refused", .detail = why}), "{}", why);
}

base::CacheFolder* latest_folder = nullptr;  // that was asked for

// The folder of this environment; null when nothing is kept.
base::CacheFolder* folder(bridge::Bridge* bridge) {
  // What is recorded and compiled depends on the numbers that steer it: traces made with others are in a folder of their own.
  static auto* const folders = new std::map<std::string, base::CacheFolder>;
  const auto [found, is_new] = folders->try_emplace(base::changed_heuristics() + "|" + bridge->replaced_kernels());
  base::CacheFolder& the_folder = found->second;
  if (is_new) {
    const std::string root = base::cache_root();
    if (root.empty()) {
      note("no folder: neither HOME nor XDG_CACHE_HOME is set");
      return nullptr;
    }
    const codegen::CpuFeatures& cpu = codegen::cpu_features();
    const std::string environment = build_of(reinterpret_cast<const void*>(&build_of)) + "|" + build_of(reinterpret_cast<const void*>(bridge->functions().call)) + "|" +
                                    Py_GetVersion() + "|" + bridge->torch_version() + "|" + std::to_string(cpu.avx2) + std::to_string(cpu.avx512) + "|" +
                                    (std::getenv("CUDA_VISIBLE_DEVICES") != nullptr ? std::getenv("CUDA_VISIBLE_DEVICES") : "") + found->first;
    if (base::Status status = the_folder.open(root + "/" + base::stable_hash(environment)); !status.ok()) note(status.message());
  }
  return latest_folder = the_folder.is_open() ? &the_folder : nullptr;
}

std::string code_text(PyCodeObject* code) {
  return std::string(PyUnicode_AsUTF8(code->co_filename)) + "\n" + PyUnicode_AsUTF8(code->co_qualname) + "\n" + std::to_string(code->co_firstlineno);
}

std::string file_name(PyCodeObject* code, int unit) { return base::stable_hash(code_text(code) + "\n" + std::to_string(unit)); }

std::string place_text(const Place* place) {
  std::string text;
  if (place != nullptr)
    for (const Position& position : *place)
      text += code_text(position.code) + "\n" + std::to_string(position.unit) + " " + std::to_string(static_cast<int>(position.continuation)) + "\n";
  return text;
}

std::vector<TraceCache::Entry> read_entries(const base::CacheFolder& folder, const std::string& name) {
  std::vector<TraceCache::Entry> entries;
  std::string bytes;
  if (!folder.has(name)) return entries;
  if (base::Status status = folder.read(name, &bytes); !status.ok()) {
    note(status.message());
    return entries;
  }
  ir::ArchiveReader archive(bytes);
  archive(entries);
  if (!archive.ok || !archive.at_end()) entries.clear();
  return entries;
}

void write_entries(base::CacheFolder& folder, const std::string& name, const std::vector<TraceCache::Entry>& entries) {
  static bool limited = false;
  if (!std::exchange(limited, true)) base::limit_folder(base::cache_root(), static_cast<uint64_t>(base::heuristics().cache_size) << 20);
  ir::ArchiveWriter archive;
  archive(entries);
  base::Status status = entries.empty() ? folder.remove(name) : folder.write(name, archive.bytes);
  if (!status.ok()) note(status.message());
}

bool is_version_guard(const ir::Inst& inst) {
  return inst.op == Op::k_guard_dict_version || inst.op == Op::k_guard_type_version || inst.op == Op::k_guard_keys_version || inst.op == Op::k_guard_func_version;
}

// The version, a number of this process, that such a guard's object has now; nothing where it is not known.
std::optional<int64_t> version_now(const ir::Trace& trace, const ir::Inst& guard) {
  const ir::Inst& operand = trace.insts[trace.arg(guard, 0)];
  auto* object = operand.op == Op::k_const_obj ? static_cast<PyObject*>(trace.objects[operand.imm].pointer) : nullptr;
  if (object == nullptr) return std::nullopt;
  if (guard.op == Op::k_guard_dict_version && PyDict_Check(object)) return static_cast<int64_t>(vm::dict_version(object));
  if (guard.op != Op::k_guard_type_version || !PyType_Check(object)) return std::nullopt;
  const uint32_t version = vm::type_version(reinterpret_cast<PyTypeObject*>(object));
  return version != 0 ? std::optional<int64_t>(version) : std::nullopt;
}

// What runs have shown of a trace's CUDA graphs is found out behind the trace, which has been kept by then.
std::string findings_name(const LoopTrace& trace) { return trace.kept_as + ".graphs"; }

void read_findings(LoopTrace& trace, bridge::Bridge* bridge) {
  const base::CacheFolder* from = folder(bridge);
  std::string bytes;
  if (from == nullptr || !from->has(findings_name(trace))) return;
  if (base::Status status = from->read(findings_name(trace), &bytes); !status.ok()) return note(status.message());
  runtime::StretchFindings findings{.version = 1};
  ir::ArchiveReader archive(bytes);
  archive(findings);
  if (archive.ok && archive.at_end()) trace.compiled->begin_with(std::move(findings));
  trace.findings_kept = trace.compiled->findings().version;
}

// A trace from its bytes; null and *why.
std::unique_ptr<LoopTrace> load(const std::string& bytes, _PyInterpreterFrame* frame, PyCodeObject* code, int unit, const char* kind, bridge::Bridge* bridge, int id,
                                std::string* why) {
  ir::ArchiveReader archive(bytes);
  ObjectNames names(frame, bridge);
  *why = names.read(archive);
  if (!why->empty()) return nullptr;
  archive.at = [&](int64_t number) -> void* { return names.at(number); };
  archive.opaque_of = [&](const std::string& text, int64_t* handle) { return bridge->opaque_of(text, handle); };
  auto trace = std::make_unique<LoopTrace>();
  Extra extra;
  archive(extra);
  ir::Trace ir;
  ir::Plan plan;
  ir::read_trace(archive, &ir, &plan);
  if (!archive.ok || !archive.at_end()) {
    *why = "damaged";
    return nullptr;
  }
  for (const ir::TensorMeta& meta : ir.metas)
    if (meta.device_type == 1 && meta.device_index >= codegen::cuda::device_count()) {
      *why = "a GPU that is not there";
      return nullptr;
    }
  for (ir::Inst& inst : ir.insts) {
    if (!is_version_guard(inst)) continue;
    const std::optional<int64_t> version = version_now(ir, inst);
    if (!version) {
      *why = "an object without a version";
      return nullptr;
    }
    inst.imm = *version;
  }
  trace->id = ir.id = id;
  if (base::dump_on(base::DumpStage::kIr)) base::dump(base::DumpStage::kIr, ir.name + " read", ir::print_trace(ir));
  trace->inputs = std::move(extra.inputs);
  trace->sites = std::move(extra.sites);
  trace->cut = extra.cut;
  trace->whole = extra.whole;
  trace->trains = extra.trains;
  trace->made_for_sizes = trace->for_all_sizes = trace->complete = extra.for_all_sizes;
  std::vector<PyObject*> held;
  trace->uses = names.uses(&held);
  std::vector<PyObject*> objects = names.take_objects();
  objects.insert(objects.end(), held.begin(), held.end());
  objects.erase(std::remove(objects.begin(), objects.end(), nullptr), objects.end());
  if (base::Status status = assemble(*trace, std::move(ir), plan, std::move(objects), bridge, code, unit, kind); !status.ok()) {
    *why = status.message();
    return nullptr;
  }
  trace->kept_as = base::stable_hash(bytes);
  read_findings(*trace, bridge);
  return trace;
}

}  // namespace

bool TraceCache::on() { return base::options().cache != "off" && base::options().stress.empty() && base::policy() == nullptr; }

bool TraceCache::has(PyCodeObject* code, int unit) { return on() && latest_folder != nullptr && latest_folder->has(file_name(code, unit)); }

std::vector<std::unique_ptr<LoopTrace>> TraceCache::find(Kept& kept, const Place* place, _PyInterpreterFrame* frame, PyCodeObject* code, int unit, const char* kind,
                                                         bridge::Bridge* bridge, int* next_id) {
  std::vector<std::unique_ptr<LoopTrace>> found;
  if (!std::exchange(kept.asked, true)) {
    const base::CacheFolder* from = folder(bridge);
    if (from == nullptr) return found;
    kept.entries = read_entries(*from, file_name(code, unit));
  }
  if (kept.entries.empty() || (place == nullptr && kept.tries++ >= base::heuristics().cache_tries)) return found;
  const Clock::time_point start = Clock::now();
  const std::string text = place_text(place);
  // Taken out while they are tried: other threads may come here meanwhile.
  std::vector<Entry> tried;
  const auto here = std::stable_partition(kept.entries.begin(), kept.entries.end(), [&](const Entry& entry) { return entry.place != text; });
  std::move(here, kept.entries.end(), std::back_inserter(tried));
  kept.entries.erase(here, kept.entries.end());
  for (Entry& entry : tried) {
    std::string why;
    const int id = (*next_id)++;
    std::unique_ptr<LoopTrace> trace = load(entry.bytes, frame, code, unit, kind, bridge, id, &why);
    PyErr_Clear();
    if (trace != nullptr) {
      base::report().cache.loaded++;
      DYNVM_EVENT(kCache, (base::EventFields{.what = "read", .trace = id}), "trace {} {}: read", id, trace->compiled->ir().name);
      found.push_back(std::move(trace));
    } else {
      DYNVM_LOG(kCache, "{}:{}: not entered: {}", PyUnicode_AsUTF8(code->co_qualname), PyCode_Addr2Line(code, unit * 2), why);
      base::report().cache.refused++;
      kept.entries.push_back(std::move(entry));
    }
  }
  if (tried.empty()) return found;
  const double ms = ms_since(start);
  base::report().cache.read_ms += ms;
  DYNVM_LOG(kCache, "{}:{}: {} traces in {:.1f} ms", PyUnicode_AsUTF8(code->co_qualname), PyCode_Addr2Line(code, unit * 2), found.size(), ms);
  return found;
}

void TraceCache::keep(Kept& kept, LoopTrace& trace, const Place* place, _PyInterpreterFrame* frame, PyCodeObject* code, int unit, bridge::Bridge* bridge) {
  const base::profile::Timed timed(base::profile::Part::kCache);
  const std::unique_ptr<ir::Plan> plan = std::move(trace.plan);
  base::CacheFolder* to = on() && plan != nullptr ? folder(bridge) : nullptr;
  if (to == nullptr) return;
  const Clock::time_point start = Clock::now();
  static const Clock::time_point first = start;
  auto refused = [&](const std::string& why) {
    base::report().cache.not_kept[why]++;
    base::report().cache.write_ms += ms_since(start);
    DYNVM_EVENT(kCache, (base::EventFields{.what = "not kept", .trace = trace.id, .detail = why}), "trace {} {} is not kept: {}", trace.id, trace.compiled->ir().name, why);
    PyErr_Clear();
  };
  // The next process goes on.
  if (base::report().cache.write_ms > base::heuristics().cache_free_time + base::heuristics().cache_time_share * ms_since(first) / 100) return refused("no time");
  const ir::Trace& ir = trace.compiled->ir();
  const std::unordered_set<const PyObject*> unchanged = unchanged_dicts(trace);
  for (const ir::Inst& inst : ir.insts)
    if (is_version_guard(inst) && version_now(ir, inst) != inst.imm && unchanged.count(guarded_dict(ir, inst)) == 0) return refused("changed meanwhile");
  std::vector<PyObject*> objects;
  std::vector<PyTypeObject*> types;
  auto add = [&](void* object) {
    if (object != nullptr) objects.push_back(static_cast<PyObject*>(object));
  };
  add(code);
  for (const ir::Object& object : ir.objects) add(object.pointer);
  for (const ir::SnapshotFrame& frame : ir.frames) add(frame.code);
  for (const ir::Inst& inst : ir.insts)
    if (inst.op == Op::k_guard_type_version) types.push_back(static_cast<PyTypeObject*>(ir.objects[ir.insts[ir.arg(inst, 0)].imm].pointer));
  for (const Site& site : trace.sites) {
    add(site.a);
    add(site.b);
  }
  ObjectNames names(frame, bridge);
  if (std::string why = names.find(objects, trace.uses, types, trace.made); !why.empty()) return refused(why);
  ir::ArchiveWriter archive;
  archive.number_of = [&](const void* object) { return names.number_of(object); };
  archive.opaque_text = [&](int64_t handle, std::string* text) { return bridge->opaque_text(handle, text); };
  archive.bytes.reserve(kBytesOfInst * ir.insts.size());
  names.write(archive);
  archive(Extra{trace.inputs, trace.sites, trace.cut, trace.for_all_sizes, trace.whole, trace.trains});
  ir::write_trace(archive, ir, *plan);
  if (!archive.ok) return refused("a value of torch's that has no bytes");
  const std::string name = file_name(code, unit);
  std::vector<Entry> entries = read_entries(*to, name);
  trace.kept_as = base::stable_hash(archive.bytes);
  const std::string text = place_text(place);
  // Those of the same place that did not fit this time are another script's, or of what has changed since: only the newest few stay.
  const auto did_not_fit = [&](const Entry& entry) {
    return entry.place == text && std::any_of(kept.entries.begin(), kept.entries.end(), [&](const Entry& tried) { return tried.bytes == entry.bytes; });
  };
  int others = 0;
  std::vector<Entry> staying;  // the newest first
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry)
    if (entry->bytes != archive.bytes && (!did_not_fit(*entry) || others++ < base::heuristics().cache_others)) staying.push_back(std::move(*entry));
  entries.assign(std::make_move_iterator(staying.rbegin()), std::make_move_iterator(staying.rend()));
  entries.push_back({text, std::move(archive.bytes)});
  while (entries.size() > static_cast<size_t>(base::heuristics().cache_entries)) entries.erase(entries.begin());
  write_entries(*to, name, entries);
  const double ms = ms_since(start);
  base::report().cache.kept++;
  base::report().cache.write_ms += ms;
  DYNVM_EVENT(kCache, (base::EventFields{.what = "kept", .trace = trace.id, .ms = ms}), "trace {} {} is kept: {} bytes in {:.1f} ms", trace.id, trace.compiled->ir().name, entries.back().bytes.size(), ms);
}

void TraceCache::keep_findings(LoopTrace& trace, bridge::Bridge* bridge) {
  const runtime::StretchFindings& findings = trace.compiled->findings();
  if (trace.kept_as.empty() || std::exchange(trace.findings_kept, findings.version) == findings.version) return;
  base::CacheFolder* to = on() ? folder(bridge) : nullptr;
  if (to == nullptr) return;
  ir::ArchiveWriter archive;
  archive(findings);
  if (base::Status status = to->write(findings_name(trace), archive.bytes); !status.ok()) note(status.message());
}

void TraceCache::forget(const LoopTrace& trace, PyCodeObject* code, int unit, bridge::Bridge* bridge) {
  base::CacheFolder* from = on() && !trace.kept_as.empty() ? folder(bridge) : nullptr;
  if (from == nullptr) return;
  const std::string name = file_name(code, unit);
  std::vector<Entry> entries = read_entries(*from, name);
  const auto gone = std::remove_if(entries.begin(), entries.end(), [&](const Entry& entry) { return base::stable_hash(entry.bytes) == trace.kept_as; });
  if (gone == entries.end()) return;
  entries.erase(gone, entries.end());
  write_entries(*from, name, entries);
  if (from->has(findings_name(trace))) (void)from->remove(findings_name(trace));
}

}  // namespace dynvm::tracer
