// See render.h.
#include "codegen/cuda/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "codegen/cuda/attention.h"
#include "codegen/cuda/renderer.h"

namespace dynvm::codegen::cuda {

using ir::KernelNode;
using ir::KernelStore;
using ir::KOp;
using std::string;

namespace {

constexpr int kWorkspaceSlot = 16;           // bytes of one reduction's part
constexpr int kColumnBytes = 128;            // that a thread loads of several rows at a time
constexpr int kMostThreads = 1024, kMostColumnThreads = 256;  // of a block; a column's have 16 bytes of shared memory for each neighbour
constexpr int kMostUnrolled = 8;

}  // namespace

base::Status Renderer::run(const string& name) {
  out_.name = name;
  if (space_.kept_points == 0 || kernel_.stores.empty()) return {};
  for (size_t o = 0; o < kernel_.operands.size(); ++o)
    if (space_.used[o]) parameter_.use_pointer(kernel_.operands[o].pointer);
  if (kernel_.reduce_dims == 0) points();
  else if (columns_are_inner(kernel_, space_)) columns();
  else rows();
  if (out_.grid_x == 0) return {};
  out_.text = parameter_.function(text_);
  return {};
}

// ---------------------------------------------------------------------------------------------------------------------
// points

void Renderer::points() {
  form_ = kPoints;
  const int64_t total = space_.kept_points;
  const Dim* inner = space_.kept.empty() ? nullptr : &space_.kept.back();
  int v = inner == nullptr ? 1 : vector_for(*inner);
  const int64_t fill = static_cast<int64_t>(options_.multiprocessors) * limits_.cuda_point_threads;
  if (asked_.vector == 0)
    while (v > 1 && total / v < fill) v /= 2;
  else
    v = std::min(v, asked_.vector);
  const int unroll = asked_.unroll != 0 ? std::min(asked_.unroll, kMostUnrolled) : total / v >= fill * 8 ? 2 : 1;
  const int threads = asked_.threads != 0 ? std::clamp(asked_.threads, 32, kMostThreads) : limits_.cuda_point_threads;
  note_alignment(inner, v);
  const int64_t vectors = total / v;
  out_.shape = {.vector = v, .threads = threads, .unroll = unroll};
  launch(vectors, static_cast<int64_t>(threads) * unroll, 1, threads);
  const std::vector<bool>& wanted = space_.needed;
  const std::vector<size_t> operands = loads(wanted);
  std::vector<string> loaded(kernel_.operands.size());
  for (size_t o : operands) {
    line("{} c{}[{}];", raw(o, v), o, unroll);
    loaded[o] = fmt::format("c{}[u]", o);
  }
  line("const {} first = ({}){} * {} + threadIdx.x;", index_type_, index_type_, options_.instances > 0 ? "block" : "blockIdx.x", threads * unroll);
  const auto each = [&](auto&& body) {
    open("_Pragma(\"unroll\") for (int u = 0; u < {}; ++u) {{", unroll);
    line("const {} i = first + u * {};", index_type_, threads);
    open("if (i < {}) {{", number(vectors));
    decompose(space_.kept, "i", "k", v);
    body();
    close();
    close();
  };
  const bool gathers = declare_gathered(wanted, v, unroll);
  if (!operands.empty() || gathers)
    each([&] {
      for (size_t o : operands) load(loaded[o], o, inner, v);
      gather(wanted, inner, v, loaded, 0);
    });
  each([&] { elements(wanted, inner, v, loaded, 0); });
}

// ---------------------------------------------------------------------------------------------------------------------
// kept values

// Kept nodes that need no more than these passes, in a thread (rows) or in each of its columns.
void Renderer::kept_nodes(int after_passes) {
  const Dim* inner = form_ == kColumns && !space_.kept.empty() ? &space_.kept.back() : nullptr;
  if (kept_done_.empty()) {
    kept_done_.assign(kernel_.nodes.size(), false);
    kept_loaded_.assign(kernel_.operands.size(), "");
  }
  for (size_t n = 0; n < kernel_.nodes.size(); ++n) {
    const KernelNode& node = kernel_.nodes[n];
    if (!space_.needed[n] || in_loop(n) || kept_done_[n] || passes_.of[n] > after_passes || ir::is_reduce(node.op)) continue;
    kept_done_[n] = true;
    if (node.op == KOp::k_load) {
      const size_t o = static_cast<size_t>(node.operand);
      if (kept_loaded_[o].empty()) {
        kept_loaded_[o] = fmt::format("c{}", o);
        line("{} c{};", raw(o, vector_), o);
        load(kept_loaded_[o], o, inner, vector_);
      }
    }
    if (form_ == kColumns) {
      line("{} n{}[{}];", value_type(node.dtype), n, vector_);
      line("_Pragma(\"unroll\") for (int e = 0; e < {}; ++e) n{}[e] = {};", vector_, n, node_text(n, inner, vector_, kept_loaded_));
    } else {
      declare(n, nullptr, 1, kept_loaded_);
    }
  }
}

void Renderer::kept_stores(const string& condition) {
  const Dim* inner = form_ == kColumns && !space_.kept.empty() ? &space_.kept.back() : nullptr;
  if (std::all_of(kernel_.stores.begin(), kernel_.stores.end(), [&](const KernelStore& each) { return passes_.is_full_store(each); })) return;
  // The block's threads meet before one of them stores for all, where a mirror says that what the others store is there too, and where they load what is in the place of
  // that store: if something is reduced, they have met since.
  const bool in_place = passes_.has_full_store && std::none_of(passes_.of.begin(), passes_.of.end(), [](int pass) { return pass > 0; }) &&
                     std::any_of(kernel_.stores.begin(), kernel_.stores.end(), [&](const KernelStore& each) { return !passes_.is_full_store(each) && is_loaded(kernel_.operands[static_cast<size_t>(each.operand)].pointer); });
  if (in_place || (passes_.has_full_store && !options_.mirrors.empty())) line("__syncthreads();");
  open("if ({}) {{", condition);
  for (const KernelStore& each : kernel_.stores) {
    if (passes_.is_full_store(each)) continue;
    const size_t o = static_cast<size_t>(each.operand);
    const int64_t step = inner == nullptr ? 0 : stride(*inner, o);
    const string in_memory = to_memory(kernel_.operands[o].dtype, value(each.node));
    if (each.has_place()) {
      open("_Pragma(\"unroll\") for (int e = 0; e < {}; ++e) {{", vector_);
      write_at(each, inner, vector_, in_memory);
      close();
    } else {
      line("_Pragma(\"unroll\") for (int e = 0; e < {}; ++e) ({})[e * ({}){}] = {};", vector_, place(o), index_type_, number(step), in_memory);
    }
  }
  for (const MirroredStore& each : options_.mirrors) {
    const KernelStore& stored = kernel_.stores[static_cast<size_t>(each.store)];
    line("{}", parameter_.mirror(each, to_memory(kernel_.operands[static_cast<size_t>(stored.operand)].dtype, value(stored.node))));
  }
  close();
}

// A group's parts, one of each block of grid y, meet in the workspace; the block that comes last goes on with their combination in t...
// group: the number of this thread's group; writes: whether it is the one of those that hold the same results which writes them. helpers: threads of a group, by `lane`:
// each takes some of the parts, and t... is what they come to.
void Renderer::finish_parts(int64_t groups, const string& group, const string& writes, int64_t helpers, int columns_of_thread) {
  const std::vector<size_t> found = passes_.reductions(0);
  const int64_t counters = (static_cast<int64_t>(out_.grid_x) * 4 + 255) / 256 * 256;
  const int64_t parts = out_.grid_y;
  out_.workspace_bytes = counters + static_cast<int64_t>(found.size()) * parts * groups * columns_of_thread * kWorkspaceSlot;
  for (size_t k = 0; k < found.size(); ++k)
    line("char* const w{} = (char*)p.workspace + {} + ((i64){} * {} + {}) * {};", found[k], counters, k * static_cast<size_t>(parts), groups, group, columns_of_thread * kWorkspaceSlot);
  const string step = fmt::format("(i64){}", groups * columns_of_thread * kWorkspaceSlot);
  open("if ({}) {{", writes);
  for (size_t n : found)
    line("_Pragma(\"unroll\") for (int e = 0; e < {}; ++e) *({}*)(w{} + blockIdx.y * {} + e * {}) = t{}[e];", columns_of_thread, accumulator_type(n), n, step, kWorkspaceSlot, n);
  line("__threadfence();");
  close();
  line("__shared__ int last;");
  line("__syncthreads();");
  line("if (threadIdx.x == 0) last = atomicAdd((int*)p.workspace + blockIdx.x, 1) == {};", parts - 1);
  line("__syncthreads();");
  line("if (!last) return;");
  line("__threadfence();");
  line("if (threadIdx.x == 0) ((int*)p.workspace)[blockIdx.x] = 0;");
  for (size_t n : found) {
    open("_Pragma(\"unroll\") for (int e = 0; e < {}; ++e) {{", columns_of_thread);
    line("t{}[e] = {};", n, start_of(n));
    line("for (int part = lane; part < {}; part += {}) t{}[e] = {};", parts, helpers, n,
         combine(n, fmt::format("t{}[e]", n), fmt::format("*(volatile {}*)(w{} + part * {} + e * {})", accumulator_type(n), n, step, kWorkspaceSlot)));
    close();
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// rows

void Renderer::rows() {
  form_ = kRows;
  const Dim* inner = space_.reduced.empty() ? nullptr : &space_.reduced.back();
  int v = inner == nullptr || space_.reduced_points == 0 ? 1 : vector_for(*inner);
  if (asked_.vector != 0) v = std::min(v, asked_.vector);
  note_alignment(inner, v);
  const int64_t vectors = space_.reduced_points / v;
  int64_t group = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, (vectors + 3) / 4))));
  group = std::min<int64_t>(group, vectors > 16 * limits_.cuda_usual_group ? limits_.cuda_largest_group : limits_.cuda_usual_group);
  const int64_t fill = static_cast<int64_t>(options_.multiprocessors) * limits_.cuda_row_fill;
  while (group < limits_.cuda_largest_group && group < vectors && space_.kept_points * group < fill) group *= 2;
  if (asked_.threads != 0) group = std::min(asked_.threads, kMostThreads);
  if (group > 32 && group < 128) group = 128;
  const int threads = group > 32 ? static_cast<int>(group) : 128;
  const int64_t per_block = threads / group;

  // Few rows of many elements: over several blocks.
  const bool open_rows = symbolic(vectors);  // as long as each run says
  int64_t parts = 1;
  if (can_split() && group == threads && !symbolic(space_.kept_points)) {
    parts = std::min<int64_t>({open_rows ? limits_.cuda_row_parts : vectors / (group * 2), 2 * options_.multiprocessors / std::max<int64_t>(1, space_.kept_points), limits_.cuda_row_parts});
    parts = std::max<int64_t>(parts, 1);
    if (asked_.parts != 0) parts = std::clamp<int64_t>(asked_.parts, 1, open_rows ? limits_.cuda_row_parts : std::max<int64_t>(1, vectors / group));
  }
  out_.shape = {.vector = v, .threads = static_cast<int>(group), .parts = static_cast<int>(parts)};
  const int64_t of_part = open_rows ? 0 : blocks_for(vectors, parts);
  const int64_t rounds = open_rows ? 0 : blocks_for(of_part, group);
  const string of_part_text = open_rows && parts > 1 ? "of_part" : open_rows ? number(vectors) : std::to_string(of_part);
  const string rounds_text = open_rows ? fmt::format("({} + {}) / {}", of_part_text, group - 1, group) : std::to_string(rounds);
  launch(space_.kept_points, per_block, parts, threads);
  if (open_rows && parts > 1) line("const {} of_part = {};", index_type_, rounded_up(vectors, parts));

  line("const int lane = threadIdx.x % {};", group);
  if (per_block == 1) {
    line("const {} row = blockIdx.x;", index_type_);
  } else {
    line("const {0} at = ({0})blockIdx.x * {1} + threadIdx.x / {2}, row = at < {3} ? at : {3} - 1;", index_type_, per_block, group, number(space_.kept_points));
    line("const bool live = at < {};", number(space_.kept_points));
  }
  if (threads == group) line("__shared__ i64 scratch[64];");
  else line("void* const scratch = nullptr;");
  decompose(space_.kept, "row", "k", 1);
  kept_nodes(0);

  const bool held_values = !open_rows && hold(rounds * v);
  for (size_t n = 0; n < kernel_.nodes.size(); ++n)
    if (is_held(n)) line("{} h{}[{}][{}];", value_type(kernel_.nodes[n].dtype), n, rounds, v);
  const auto nodes_of = [&](int pass) { return held_values ? first_computed(pass) : full_nodes(pass); };

  // What several passes load, and where it stays meanwhile.
  std::vector<int> times(kernel_.operands.size(), 0);
  for (int pass = 0; pass <= passes_.last; ++pass)
    for (size_t o : loads(nodes_of(pass))) ++times[o];
  int64_t bytes = 0;
  for (size_t o = 0; o < times.size(); ++o)
    if (times[o] > 1) bytes += rounds * v * ir::dtype_size(kernel_.operands[o].dtype);
  const bool in_registers = !open_rows && bytes > 0 && bytes <= limits_.cuda_registers;
  const bool in_shared = !open_rows && !in_registers && bytes > 0 && bytes * threads <= int64_t{limits_.cuda_shared} << 10;
  std::vector<string> loaded(kernel_.operands.size());
  if (in_shared) line("DYNVM_DYNAMIC_SHARED(rows);");
  int64_t shared = 0;
  for (size_t o = 0; o < times.size(); ++o) {
    if (times[o] == 0) continue;
    loaded[o] = fmt::format("c{}", o);
    if (times[o] == 1 || !(in_registers || in_shared)) continue;
    if (in_registers) {
      line("{} h{}[{}];", raw(o, v), o, rounds);
      loaded[o] = fmt::format("h{}[it]", o);
    } else {
      line("{0}* const h{1} = ({0}*)((char*)rows + {2}) + threadIdx.x;", raw(o, v), o, shared);
      shared += rounds * threads * v * ir::dtype_size(kernel_.operands[o].dtype);
      shared = (shared + 15) / 16 * 16;
    }
  }
  out_.shared_bytes = static_cast<uint32_t>(shared);

  std::vector<bool> held(kernel_.operands.size(), false);
  for (int pass = 0; pass <= passes_.last; ++pass) {
    const std::vector<bool> wanted = nodes_of(pass);
    const std::vector<size_t> found = passes_.reductions(pass), scanning = scans(wanted);
    declare_accumulators(found, v);
    declare_carries(scanning, pass, 1);
    if (!found.empty() || (pass == passes_.last && passes_.has_full_store)) {
      if (in_registers || held_values) open("_Pragma(\"unroll\") for (int it = 0; it < {}; ++it) {{", rounds);
      else open("_Pragma(\"unroll 4\") for (int it = 0; it < {}; ++it) {{", rounds_text);
      const string part = parts > 1 ? fmt::format("({})blockIdx.y * {} + ", index_type_, of_part_text) : "";
      line("const {} i = {}it * {} + lane;", index_type_, part, group);
      string condition = open_rows || of_part % group != 0 || parts > 1 ? fmt::format("i < {}", number(vectors)) : "";
      if (parts > 1) condition += fmt::format(" && it * {} + lane < {}", group, of_part_text);
      const bool writes = pass == passes_.last && passes_.has_full_store;
      if (per_block > 1 && writes) condition += condition.empty() ? "live" : " && live";
      const auto where_there = [&] {
        if (condition.empty()) open("{{");
        else open("if ({}) {{", condition);
        decompose(space_.reduced, "i", "r", v);
      };
      if (scanning.empty()) where_there();
      for (size_t o : loads(wanted))
        if (times[o] == 1 || in_shared || !in_registers) line("{} c{};", raw(o, v), o);
      declare_gathered(wanted, v, 0);
      if (!scanning.empty()) where_there();
      for (size_t o : loads(wanted)) {
        const bool kept = times[o] > 1 && (in_registers || in_shared), there = kept && held[o];
        if (there && in_shared) line("c{0} = h{0}[it * {1}];", o, threads);
        if (there) continue;
        load(loaded[o], o, inner, v);
        if (kept && in_shared) line("h{}[it * {}] = c{};", o, threads, o);
        held[o] = kept;
      }
      gather(wanted, inner, v, loaded, pass);
      // The group's threads go on together, whether they have elements or not.
      for (size_t n : scanning) {
        close();
        const char* const type = value_type(kernel_.nodes[n].dtype);
        const string neutral = identity(kernel_.nodes[n].op, kernel_.nodes[n].dtype);
        line("{} y{}[{}];", type, n, v);
        line("_Pragma(\"unroll\") for (int e = 0; e < {}; ++e) y{}[e] = {};", v, n, neutral);
        where_there();
        scanned(n, inner, v, loaded, pass);
        close();
        line("group_scan<{}, {}, {}>(y{}, {}[0], ({}){}, scratch);", combination(kernel_.nodes[n].op), group, v, n, carry(n, pass), type, neutral);
        where_there();
      }
      elements(wanted, inner, v, loaded, pass);
      close();
      close();
    }
    for (size_t n : found) {
      string total = fmt::format("a{}[0]", n);
      for (int e = 1; e < v; ++e) total = combine(n, total, fmt::format("a{}[{}]", n, e));
      line("{0} t{1}[1] = {{group_reduce<{2}, {3}>(({0})({4}), scratch)}};", accumulator_type(n), n, combination(kernel_.nodes[n].op), group, total);
    }
    if (parts > 1) {
      finish_parts(space_.kept_points, "row", "lane == 0", group, 1);
      for (size_t n : found) line("t{0}[0] = group_reduce<{1}, {2}>(t{0}[0], scratch);", n, combination(kernel_.nodes[n].op), group);
    }
    for (size_t n : found) line("const {} n{} = {};", value_type(kernel_.nodes[n].dtype), n, result_of(n, fmt::format("t{}[0]", n)));
    kept_nodes(pass + 1);
  }
  kept_stores(per_block > 1 ? "lane == 0 && live" : "lane == 0");
}

// ---------------------------------------------------------------------------------------------------------------------
// columns

// What the threads of a column have, `mine` and the node's number, together: t...
void Renderer::share_columns(size_t n, const string& mine, int down, int across, int v) {
  open("{{");
  line("{0}* const part = ({0}*)scratch;", accumulator_type(n));
  line("__syncthreads();");
  line("_Pragma(\"unroll\") for (int e = 0; e < {0}; ++e) part[threadIdx.x * {0} + e] = {1}{2}[e];", v, mine, n);
  line("__syncthreads();");
  open("_Pragma(\"unroll\") for (int e = 0; e < {}; ++e) {{", v);
  line("t{}[e] = part[across * {} + e];", n, v);
  line("for (int row = 1; row < {}; ++row) t{}[e] = {};", down, n, combine(n, fmt::format("t{}[e]", n), fmt::format("part[(row * {} + across) * {} + e]", across, v)));
  close();
  close();
}

void Renderer::columns() {
  form_ = kColumns;
  const Dim* inner = &space_.kept.back();
  int v = vector_for(*inner);
  if (asked_.vector == 0)
    while (v > 1 && space_.kept_points / (32 * v) < options_.multiprocessors / 4) v /= 2;
  else
    v = std::min(v, asked_.vector);
  vector_ = v;
  note_alignment(inner, v);
  const int64_t groups = space_.kept_points / v;  // of columns, one of a thread
  // A scan goes down a column by itself; there are as many blocks as there may be then.
  const bool scanning = ir::has_scan(kernel_);
  int threads = scanning && !symbolic(groups) && groups < int64_t{options_.multiprocessors} * limits_.cuda_column_threads ? 32 : limits_.cuda_column_threads;
  if (asked_.threads != 0) threads = std::clamp(asked_.threads, 32, kMostColumnThreads);
  const int across = scanning ? threads : 32, down = threads / across;
  const bool open_columns = symbolic(space_.reduced_points);
  int64_t parts = 1;
  if (can_split() && !symbolic(groups))
    parts = std::max<int64_t>(1, std::min<int64_t>({open_columns ? limits_.cuda_column_parts : space_.reduced_points / (down * limits_.cuda_column_rows), 4 * options_.multiprocessors / blocks_for(groups, across), limits_.cuda_column_parts}));
  if (asked_.parts != 0 && can_split() && !symbolic(groups))
    parts = std::clamp<int64_t>(asked_.parts, 1, open_columns ? limits_.cuda_column_parts : std::max<int64_t>(1, space_.reduced_points / down));
  out_.shape = {.vector = v, .threads = threads, .parts = static_cast<int>(parts)};
  const string of_part = open_columns && parts > 1 ? "of_part" : open_columns ? number(space_.reduced_points) : std::to_string(blocks_for(space_.reduced_points, parts));
  const string rounds = open_columns ? fmt::format("({} + {}) / {}", of_part, down - 1, down) : std::to_string(blocks_for(blocks_for(space_.reduced_points, parts), down));
  launch(groups, across, parts, threads);
  if (open_columns && parts > 1) line("const {} of_part = {};", index_type_, rounded_up(space_.reduced_points, parts));

  line("const int across = threadIdx.x % {0}, lane = threadIdx.x / {0};", across);
  line("const {0} at = ({0})blockIdx.x * {1} + across, column = at < {2} ? at : {2} - 1;", index_type_, across, number(groups));
  line("const bool live = at < {};", number(groups));
  decompose(space_.kept, "column", "k", v);
  kept_nodes(0);
  bool shared = false;
  for (int pass = 0; pass <= passes_.last; ++pass) {
    const std::vector<bool> wanted = full_nodes(pass);
    const std::vector<size_t> found = passes_.reductions(pass);
    declare_accumulators(found, v);
    declare_carries(scans(wanted), pass, v);
    // Several rows at a time, all of which are loaded before the first is used: a thread that waits for each would wait most of the time.
    const std::vector<size_t> operands = loads(wanted);
    std::vector<string> loaded(kernel_.operands.size());
    int bytes = 1;
    for (size_t o : operands) bytes += v * ir::dtype_size(kernel_.operands[o].dtype);
    for (size_t n = 0; n < wanted.size(); ++n)
      if (wanted[n] && in_loop(n) && kernel_.nodes[n].op == KOp::k_load_at) bytes += v * ir::dtype_size(kernel_.nodes[n].dtype);
    const int batch = std::clamp(kColumnBytes / bytes, 1, 8);
    open("for (int it = 0; it < {}; it += {}) {{", rounds, batch);
    for (size_t o : operands) {
      line("{} c{}[{}];", raw(o, v), o, batch);
      loaded[o] = fmt::format("c{}[u]", o);
    }
    const string first = parts > 1 ? fmt::format("({})blockIdx.y * {} + ", index_type_, of_part) : "", end = number(space_.reduced_points);
    const auto each = [&](const char* index) {
      open("_Pragma(\"unroll\") for (int u = 0; u < {}; ++u) {{", batch);
      line("const {} {} = {}(it + u) * {} + lane;", index_type_, index, first, down);
    };
    const bool gathers = declare_gathered(wanted, v, batch);
    if (!operands.empty() || gathers) {
      each("at_most");
      line("const {0} i = at_most < {1} ? at_most : {1} - 1;", index_type_, end);
      decompose(space_.reduced, "i", "r", 1);
      for (size_t o : operands) load(loaded[o], o, inner, v);
      gather(wanted, inner, v, loaded, pass);
      close();
    }
    each("i");
    open("if (i < {}{}{}) {{", end, parts > 1 ? fmt::format(" && (it + u) * {} + lane < {}", down, of_part) : "", pass == passes_.last && passes_.has_full_store ? " && live" : "");
    decompose(space_.reduced, "i", "r", 1);
    elements(wanted, inner, v, loaded, pass);
    close();
    close();
    close();
    // The threads that share the columns combine what they have.
    for (size_t n : found) {
      if (!std::exchange(shared, true)) line("__shared__ i64 scratch[{}];", threads * v * 2);
      line("{} t{}[{}];", accumulator_type(n), n, v);
      share_columns(n, "a", down, across, v);
    }
    if (parts > 1) {
      finish_parts(groups, "column", "live && lane == 0", down, v);
      for (size_t n : found) share_columns(n, "t", down, across, v);
    }
    for (size_t n : found) {
      line("{} n{}[{}];", value_type(kernel_.nodes[n].dtype), n, v);
      line("_Pragma(\"unroll\") for (int e = 0; e < {}; ++e) n{}[e] = {};", v, n, result_of(n, fmt::format("t{}[e]", n)));
    }
    kept_nodes(pass + 1);
  }
  kept_stores("lane == 0 && live");
}

base::Status render_kernel(const ir::Kernel& kernel, const string& name, const RenderOptions& options, Source* out) {
  return ir::attends(kernel) ? render_attention(kernel, name, options, out) : Renderer(kernel, options, out).run(name);
}

}  // namespace dynvm::codegen::cuda
