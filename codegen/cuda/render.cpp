// See render.h.
#include "codegen/cuda/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "codegen/cuda/attention.h"
#include "codegen/cuda/draws.h"
#include "codegen/cuda/expressions.h"
#include "codegen/cuda/parameter.h"
#include "codegen/cuda/passes.h"
#include "codegen/cuda/rounding.h"
#include "codegen/cuda/space.h"
#include "ir/kernel/symbols.h"
#include "runtime/base/heuristics.h"

namespace dynvm::codegen::cuda {
namespace {

using ir::KernelNode;
using ir::KernelOperand;
using ir::KernelStore;
using ir::KOp;
using std::string;

constexpr int kWorkspaceSlot = 16;           // bytes of one reduction's part
constexpr int kColumnBytes = 128;            // that a thread loads of several rows at a time

bool is_arg(KOp op) { return op == KOp::k_reduce_argmax || op == KOp::k_reduce_argmin; }

class Renderer {
 public:
  Renderer(const ir::Kernel& kernel, const RenderOptions& options, Source* out) : kernel_(kernel), options_(options), out_(*out), space_(make_space(kernel)), rounded_(seen_rounded(kernel)) {}

  base::Status run(const string& name) {
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

 private:
  // --- text
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text_.append(static_cast<size_t>(indent_) * 2 + 2, ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  template <class... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    line(format, std::forward<Args>(args)...);
    ++indent_;
  }
  void close() {
    --indent_;
    line("}}");
  }

  // --- numbers
  bool symbolic(int64_t n) const { return parameter_.symbolic(n); }
  string number(int64_t n) const { return parameter_.number(n); }

  // How often `each` go into n, rounded up.
  string rounded_up(int64_t n, int64_t each) const { return symbolic(n) ? fmt::format("({} + {}) / {}", number(n), each - 1, each) : std::to_string(blocks_for(n, each)); }

  // --- facts
  // The full nodes that a pass computes.
  std::vector<bool> full_nodes(int pass) const {
    std::vector<bool> wanted = passes_.goals(pass);
    for (size_t n = kernel_.nodes.size(); n-- > 0;) {
      wanted[n] = wanted[n] && in_loop(n);
      if (!wanted[n]) continue;
      for (int32_t operand : {kernel_.nodes[n].a, kernel_.nodes[n].b, kernel_.nodes[n].c})
        if (operand >= 0) wanted[static_cast<size_t>(operand)] = true;
    }
    return wanted;
  }

  bool in_loop(size_t n) const { return form_ == kPoints || space_.full[n]; }

  int64_t stride(const Dim& dim, size_t operand) const { return dim.strides[operand]; }

  // May this operand be loaded and stored in vectors of v along `inner`?
  bool is_vector(size_t o, const Dim& inner, int v) const { return kernel_.operands[o].offset % v == 0 && walks_in_vectors(o, inner, v); }
  bool walks_in_vectors(size_t o, const Dim& inner, int v) const {
    if (v == 1 || stride(inner, o) != 1) return false;
    for (const auto* dims : {&space_.kept, &space_.reduced})
      for (const Dim& dim : *dims)
        if (&dim != &inner && stride(dim, o) % v != 0) return false;
    return true;
  }

  // The longest vector that pays: of 16 bytes in the widest operand along the inner dim.
  int vector_for(const Dim& inner) const {
    int bytes = 1;
    bool any = false;
    for (size_t o = 0; o < kernel_.operands.size(); ++o)
      if (space_.used[o] && std::abs(stride(inner, o)) == 1) bytes = std::max(bytes, ir::dtype_size(kernel_.operands[o].dtype)), any = true;
    if (!any) return 1;
    int v = std::max(1, options_.vector_bytes / bytes);
    v = std::min(v, 8);
    const auto fits = [&](int n) {
      if (inner.size % n != 0) return false;
      return std::any_of(kernel_.stores.begin(), kernel_.stores.end(), [&](const KernelStore& store) { return is_vector(static_cast<size_t>(store.operand), inner, n); }) ||
             any_load_is_vector(inner, n);
    };
    while (v > 1 && !fits(v)) v /= 2;
    return v;
  }

  bool any_load_is_vector(const Dim& inner, int v) const {
    for (size_t n = 0; n < kernel_.nodes.size(); ++n)
      if (space_.needed[n] && kernel_.nodes[n].op == KOp::k_load && is_vector(static_cast<size_t>(kernel_.nodes[n].operand), inner, v)) return true;
    return false;
  }

  // --- addresses
  // Declares the index along each dim of a flat position; the innermost one, in vectors of v, is that of the first element.
  void decompose(const std::vector<Dim>& dims, const string& flat, const string& tag, int v) {
    string rest = flat;
    for (size_t k = dims.size(); k-- > 0;) {
      const string size = number(k + 1 == dims.size() ? dims[k].size / v : dims[k].size);
      const string index = k == 0 ? rest : fmt::format("{} % {}", rest, size);
      line("const {} {}{} = {};", index_type_, tag, k, k + 1 == dims.size() && v > 1 ? fmt::format("({}) * {}", index, v) : index);
      if (k > 0) rest = fmt::format("({} / {})", rest, size);
    }
  }

  string walk(size_t o, const std::vector<Dim>& dims, const string& tag) const {
    string text;
    for (size_t k = 0; k < dims.size(); ++k) {
      const int64_t s = stride(dims[k], o);
      if (s != 0) text += s == 1 ? fmt::format(" + {}{}", tag, k) : fmt::format(" + {}{} * ({}){}", tag, k, index_type_, number(s));
    }
    return text;
  }

  string base_pointer(size_t o) const {
    const KernelOperand& operand = kernel_.operands[o];
    const auto at = std::find(out_.pointers.begin(), out_.pointers.end(), operand.pointer) - out_.pointers.begin();
    return fmt::format("(({}*)p.pointer[{}])", memory_type(operand.dtype), at);
  }

  // Where an operand's element is: the indexes of the dims that it moves along are declared.
  string place(size_t o) const {
    const int64_t offset = kernel_.operands[o].offset;
    return base_pointer(o) + (offset != 0 ? fmt::format(" + {}", number(offset)) : "") + walk(o);
  }
  string walk(size_t o) const { return walk(o, space_.kept, "k") + walk(o, space_.reduced, "r"); }

  // Random numbers of v neighbours are drawn together, four a time, in front of the loop over them.
  bool draws_together(size_t n, const Dim* inner, int v) const {
    const KernelNode& node = kernel_.nodes[n];
    return node.op == KOp::k_draw && inner != nullptr && is_given(kernel_, node.a) && is_given(kernel_, node.b) && walks_in_vectors(static_cast<size_t>(node.operand), *inner, v);
  }
  string drawn(size_t n, const Dim* inner, int v) const {
    const KernelNode& node = kernel_.nodes[n];
    if (draws_together(n, inner, v)) return fmt::format("d{}[e]", n);
    const auto o = static_cast<size_t>(node.operand);
    const int64_t step = v > 1 ? stride(*inner, o) : 0;
    return draw_one(kernel_, node, value(node.a), value(node.b), walk(o) + (step != 0 ? fmt::format(" + e * ({}){}", index_type_, number(step)) : ""));
  }

  // The index along a dim of the kernel, of the index type.
  string position_of(int64_t dim, const Dim* inner, const string& lane) const {
    for (const auto& [dims, tag] : {std::pair<const std::vector<Dim>*, const char*>{&space_.kept, "k"}, {&space_.reduced, "r"}})
      for (size_t k = 0; k < dims->size(); ++k) {
        const Dim& merged = (*dims)[k];
        const auto source = std::find(merged.sources.begin(), merged.sources.end(), static_cast<int32_t>(dim));
        if (source == merged.sources.end()) continue;
        string at = fmt::format("{}{}", tag, k);
        if (&merged == inner && !lane.empty()) at = "(" + at + " + " + lane + ")";
        int64_t below = 1;
        for (auto after = source + 1; after != merged.sources.end(); ++after) below *= kernel_.sizes[static_cast<size_t>(*after)];
        if (below != 1) at = fmt::format("({} / {})", at, number(below));
        if (source != merged.sources.begin()) at = fmt::format("({} % {})", at, number(kernel_.sizes[static_cast<size_t>(*source)]));
        return at;
      }
    return "0";
  }
  string index_of(int64_t dim, const Dim* inner, const string& lane) const { return "(i64)" + position_of(dim, inner, lane); }

  // --- loads and stores of v neighbours along `inner`
  string raw(size_t o, int v) const { return fmt::format("Vec<{}, {}>", memory_type(kernel_.operands[o].dtype), v); }

  void load(const string& to, size_t o, const Dim* inner, int v) {
    const string at = place(o);
    const int64_t step = inner == nullptr ? 0 : stride(*inner, o);
    if (v > 1 && is_vector(o, *inner, v)) {
      line("{} = *(const {}*)({});", to, raw(o, v), at);
    } else if (v == 1 || step == 0) {
      line("{}.v[0] = *({});", to, at);
    } else {
      line("_Pragma(\"unroll\") for (int e = 0; e < {}; ++e) {}.v[e] = ({})[e * ({}){}];", v, to, at, index_type_, number(step));
    }
  }

  // How an element of what load() has loaded is read.
  string element(const string& loaded, size_t o, const Dim* inner, int v) const {
    const bool one = v == 1 || inner == nullptr || stride(*inner, o) == 0;
    return one ? from_memory(kernel_.operands[o].dtype, loaded + ".v[0]") : vector_element(kernel_.operands[o].dtype, loaded);
  }

  void store(const string& from, size_t o, const Dim* inner, int v) {
    const string at = place(o);
    if (v > 1 && is_vector(o, *inner, v)) line("*({}*)({}) = {};", raw(o, v), at, from);
    else if (v == 1) line("*({}) = {}.v[0];", at, from);
    else line("_Pragma(\"unroll\") for (int e = 0; e < {}; ++e) ({})[e * ({}){}] = {}.v[e];", v, at, index_type_, number(stride(*inner, o)), from);
  }

  // --- nodes
  // The name of a value where it is used. In the columns form kept values are arrays over the thread's columns.
  string value(int32_t n) const { return fmt::format("n{}{}", n, form_ == kColumns && !in_loop(static_cast<size_t>(n)) ? "[e]" : ""); }

  string node_text(size_t n, const Dim* inner, int v, const std::vector<string>& loaded) const {
    const KernelNode& node = kernel_.nodes[n];
    switch (node.op) {
      case KOp::k_load: return element(loaded[static_cast<size_t>(node.operand)], static_cast<size_t>(node.operand), inner, v);
      case KOp::k_const: return constant(node);
      case KOp::k_scalar: return scalar(kernel_, node, fmt::format("p.scalar[{}]", node.i));
      case KOp::k_index: return index_of(node.i, inner, v > 1 ? "e" : "");
      case KOp::k_draw: return drawn(n, inner, v);
      default: break;
    }
    if (is_position(node)) return fmt::format("({} == w{})", position_of(kernel_.nodes[static_cast<size_t>(node.a)].i, inner, v > 1 ? "e" : ""), node.b);
    const auto name = [&](int32_t operand) { return operand < 0 ? string() : value(operand); };
    if (rounded_[n])
      if (const string text = rounded_expression(kernel_, n, name, [&](int32_t operand) { return !is_held(static_cast<size_t>(operand)); }); !text.empty()) return text;
    return expression(node, kernel_.nodes[static_cast<size_t>(node.a)].dtype, name(node.a), name(node.b), name(node.c));
  }

  // Asks whether an index is a number that all of a row have: 32 bits tell.
  bool is_position(const KernelNode& node) const {
    return form_ == kRows && node.op == KOp::k_eq && kernel_.nodes[static_cast<size_t>(node.a)].op == KOp::k_index && !in_loop(static_cast<size_t>(node.b)) &&
           std::string_view(index_type_) == "int";
  }

  void declare(size_t n, const Dim* inner, int v, const std::vector<string>& loaded) {
    line("const {} n{} = {};", value_type(kernel_.nodes[n].dtype), n, node_text(n, inner, v, loaded));
    if (form_ == kRows && !in_loop(n) && std::any_of(kernel_.nodes.begin(), kernel_.nodes.end(), [&](const KernelNode& node) { return node.b == static_cast<int32_t>(n) && is_position(node); }))
      line("const int w{0} = n{0} == (int)n{0} ? (int)n{0} : -1;", n);
  }

  // What is stored of a node: memory's dtype rounds, so that of a value that was rounded for nothing else the value before it does.
  string stored_value(const KernelStore& store) const {
    const KernelNode& node = kernel_.nodes[static_cast<size_t>(store.node)];
    const bool rounds = node.op == KOp::k_cast && is_half(store) && kernel_.nodes[static_cast<size_t>(node.a)].dtype == ir::DType::kF32;
    return value(rounds && !is_held(static_cast<size_t>(store.node)) ? node.a : store.node);
  }
  bool is_half(const KernelStore& store) const { return ir::is_reduced_floating(kernel_.operands[static_cast<size_t>(store.operand)].dtype); }

  string accumulator_type(size_t n) const {
    const char* type = value_type(kernel_.nodes[static_cast<size_t>(kernel_.nodes[n].a)].dtype);
    return is_arg(kernel_.nodes[n].op) ? fmt::format("Best<{}>", type) : type;
  }
  string start_of(size_t n) const { return identity(kernel_.nodes[n].op, kernel_.nodes[static_cast<size_t>(kernel_.nodes[n].a)].dtype); }

  // What an element adds to a reduction; argmax: with its position in the order of the kernel's reduced dims.
  string contribution(size_t n, const Dim* inner, const string& lane) const {
    const KernelNode& node = kernel_.nodes[n];
    if (!is_arg(node.op)) return value(node.a);
    string position;
    int64_t below = 1;
    for (size_t d = kernel_.sizes.size(); d-- > 0;) {
      if (!(kernel_.reduce_dims >> d & 1) || kernel_.sizes[d] == 1) continue;
      position += fmt::format("{}{} * (i64){}", position.empty() ? "" : " + ", index_of(static_cast<int64_t>(d), inner, lane), number(below));
      below *= kernel_.sizes[d];
    }
    return fmt::format("{}{{{}, {}}}", accumulator_type(n), value(node.a), position.empty() ? "0LL" : position);
  }

  // A sum of what a condition lets through.
  bool is_picked(size_t n) const {
    const KernelNode &node = kernel_.nodes[n], &term = kernel_.nodes[static_cast<size_t>(node.a)];
    if (node.op != KOp::k_reduce_sum || !ir::is_floating(node.dtype) || term.op != KOp::k_where) return false;
    const KernelNode& other = kernel_.nodes[static_cast<size_t>(term.c)];
    return other.op == KOp::k_const && other.f == 0;
  }

  string combine(size_t n, const string& a, const string& b) const {
    return fmt::format("{}<{}>::apply({}, {})", combination(kernel_.nodes[n].op), accumulator_type(n), a, b);
  }
  string result_of(size_t n, const string& total) const {
    return is_arg(kernel_.nodes[n].op) ? fmt::format("({0}.at < 0 ? 0LL : {0}.at)", total) : total;
  }

  // A row's values that a pass has computed and later ones need stay in registers, so that none is computed twice. elements: of one thread. False where
  // they are too many: then nothing is held.
  bool hold(int64_t elements) {
    std::vector<int> first(kernel_.nodes.size(), -1), last(kernel_.nodes.size(), -1);
    for (int pass = 0; pass <= passes_.last; ++pass) {
      std::vector<bool> wanted = passes_.goals(pass);
      for (size_t n = kernel_.nodes.size(); n-- > 0;) {
        if (!wanted[n] || !in_loop(n)) continue;
        if (first[n] < 0) first[n] = pass;
        last[n] = pass;
        if (first[n] < pass) continue;
        for (int32_t operand : {kernel_.nodes[n].a, kernel_.nodes[n].b, kernel_.nodes[n].c})
          if (operand >= 0) wanted[static_cast<size_t>(operand)] = true;
      }
    }
    int64_t most = 0;
    for (int pass = 0; pass < passes_.last; ++pass) {
      int64_t bytes = 0;
      for (size_t n = 0; n < first.size(); ++n)
        if (first[n] >= 0 && first[n] <= pass && last[n] > pass) bytes += std::max(4, ir::dtype_size(kernel_.nodes[n].dtype));
      most = std::max(most, bytes);
    }
    if (most == 0 || most * elements > limits_.cuda_held) return false;
    first_use_ = std::move(first);
    last_use_ = std::move(last);
    return true;
  }
  bool is_held(size_t n) const { return !first_use_.empty() && last_use_[n] > first_use_[n]; }
  // The full nodes that a pass computes, where values are held.
  std::vector<bool> first_computed(int pass) const {
    std::vector<bool> found;
    for (int first : first_use_) found.push_back(first == pass);
    return found;
  }

  // Computes the wanted nodes of one element or vector, and hands the stores on.
  void elements(const std::vector<bool>& wanted, const Dim* inner, int v, const std::vector<string>& loaded, int pass) {
    const bool stores = pass == passes_.last;
    std::vector<size_t> stored;
    for (size_t s = 0; stores && s < kernel_.stores.size(); ++s)
      if (form_ == kPoints || passes_.is_full_store(kernel_.stores[s])) stored.push_back(s);
    const auto packed = [&](size_t s) { return v > 1 && is_half(kernel_.stores[s]); };  // converted in pairs, behind the loop
    for (size_t s : stored) line("{} s{}{};", packed(s) ? "float" : raw(static_cast<size_t>(kernel_.stores[s].operand), v), s, packed(s) ? fmt::format("[{}]", v) : "");
    for (size_t n = 0; n < kernel_.nodes.size(); ++n)
      if (wanted[n] && in_loop(n) && draws_together(n, inner, v)) line("{}", draw_all(kernel_, n, v, walk(static_cast<size_t>(kernel_.nodes[n].operand))));
    if (v > 1) open("_Pragma(\"unroll\") for (int e = 0; e < {}; ++e) {{", v);
    else open("{{");
    if (v == 1) line("const int e = 0; (void)e;");
    for (size_t n = 0; n < kernel_.nodes.size(); ++n) {
      const bool held = is_held(n);
      if (held && first_use_[n] < pass && last_use_[n] >= pass) line("const {} n{} = h{}[it][e];", value_type(kernel_.nodes[n].dtype), n, n);
      if (!wanted[n] || !in_loop(n) || (ir::is_reduce(kernel_.nodes[n].op) && form_ != kPoints)) continue;
      declare(n, inner, v, loaded);
      if (held) line("h{}[it][e] = n{};", n, n);
    }
    for (size_t n : passes_.reductions(pass)) {
      const string acc = fmt::format("a{}[e]", n);
      const KernelNode& term = kernel_.nodes[static_cast<size_t>(kernel_.nodes[n].a)];
      if (is_picked(n) && !is_held(static_cast<size_t>(kernel_.nodes[n].a))) line("if ({}) {} = {};", value(term.a), acc, combine(n, acc, value(term.b)));
      else line("{} = {};", acc, combine(n, acc, contribution(n, inner, v > 1 ? "e" : "")));
    }
    for (size_t s : stored) {
      if (packed(s)) line("s{}[e] = {};", s, stored_value(kernel_.stores[s]));
      else line("s{}.v[e] = {};", s, to_memory(kernel_.operands[static_cast<size_t>(kernel_.stores[s].operand)].dtype, stored_value(kernel_.stores[s])));
    }
    close();
    for (size_t s : stored) {
      const size_t o = static_cast<size_t>(kernel_.stores[s].operand);
      if (packed(s)) line("const {} v{} = {};", raw(o, v), s, vector_to_memory(kernel_.operands[o].dtype, fmt::format("s{}", s)));
      store(fmt::format("{}{}", packed(s) ? "v" : "s", s), o, inner, v);
    }
    if (form_ == kPoints)
      for (const MirroredStore& each : options_.mirrors) line("{}", parameter_.mirror(each, fmt::format("s{}.v[0]", each.store)));
  }

  // The operands that the wanted nodes load, each once.
  std::vector<size_t> loads(const std::vector<bool>& wanted) const {
    std::vector<size_t> found;
    for (size_t n = 0; n < kernel_.nodes.size(); ++n)
      if (wanted[n] && in_loop(n) && kernel_.nodes[n].op == KOp::k_load && std::find(found.begin(), found.end(), static_cast<size_t>(kernel_.nodes[n].operand)) == found.end())
        found.push_back(static_cast<size_t>(kernel_.nodes[n].operand));
    return found;
  }

  // One accumulator for each of v neighbours.
  void declare_accumulators(const std::vector<size_t>& found, int v) {
    for (size_t n : found) {
      line("{} a{}[{}];", accumulator_type(n), n, v);
      line("_Pragma(\"unroll\") for (int e = 0; e < {}; ++e) a{}[e] = {};", v, n, start_of(n));
    }
  }

  // May blocks share the reduced points of one kept point? One pass, nothing stored of each element.
  bool can_split() const {
    const std::vector<size_t> found = passes_.reductions(0);
    return passes_.last == 0 && !passes_.has_full_store && std::none_of(found.begin(), found.end(), [&](size_t n) { return is_arg(kernel_.nodes[n].op); });
  }

  int64_t blocks_for(int64_t items, int64_t each) const { return (items + each - 1) / each; }

  // points: kept ones, or vectors of them.
  void launch(int64_t points, int64_t per_block, int64_t parts, int threads) {
    out_.grid_x = symbolic(points) ? 1 : static_cast<uint32_t>(blocks_for(points, per_block));
    out_.points = symbolic(points) ? points : 0;
    out_.per_block = per_block;
    out_.grid_y = static_cast<uint32_t>(parts);
    out_.block = static_cast<uint32_t>(threads);
  }

  void note_alignment(const Dim* inner, int v) {
    for (size_t o = 0; o < kernel_.operands.size(); ++o)
      if (inner != nullptr && space_.used[o] && is_vector(o, *inner, v)) out_.alignment = std::max(out_.alignment, v * ir::dtype_size(kernel_.operands[o].dtype));
  }

  void points();
  void rows();
  void columns();
  void kept_nodes(int after_passes);
  void kept_stores(const string& condition);
  void finish_parts(int64_t groups, const string& group, const string& writes, int64_t helpers, int columns_of_thread);
  void share_columns(size_t n, const string& mine, int down, int across, int v);

  enum Form { kPoints, kRows, kColumns } form_ = kPoints;
  const ir::Kernel& kernel_;
  const RenderOptions& options_;
  const base::Heuristics& limits_ = base::heuristics();
  Source& out_;
  Parameter parameter_{kernel_, options_, &out_};
  Space space_;
  const Passes passes_{kernel_, space_};
  std::vector<bool> rounded_;
  const char* const index_type_ = parameter_.index_type();
  string text_;
  int indent_ = 0;
  int vector_ = 1;              // columns: neighbours that a thread has
  std::vector<int> first_use_, last_use_;  // rows, by node: the passes that compute it and that need it last, -1: none; empty: no values are held
  std::vector<string> kept_loaded_;
  std::vector<bool> kept_done_;
};

// ---------------------------------------------------------------------------------------------------------------------
// points

void Renderer::points() {
  form_ = kPoints;
  const int64_t total = space_.kept_points;
  const Dim* inner = space_.kept.empty() ? nullptr : &space_.kept.back();
  int v = inner == nullptr ? 1 : vector_for(*inner);
  const int64_t fill = static_cast<int64_t>(options_.multiprocessors) * limits_.cuda_point_threads;
  while (v > 1 && total / v < fill) v /= 2;
  const int unroll = total / v >= fill * 8 ? 2 : 1;
  note_alignment(inner, v);
  const int64_t vectors = total / v;
  launch(vectors, static_cast<int64_t>(limits_.cuda_point_threads) * unroll, 1, limits_.cuda_point_threads);
  const std::vector<bool>& wanted = space_.needed;
  const std::vector<size_t> operands = loads(wanted);
  std::vector<string> loaded(kernel_.operands.size());
  for (size_t o : operands) {
    line("{} c{}[{}];", raw(o, v), o, unroll);
    loaded[o] = fmt::format("c{}[u]", o);
  }
  line("const {} first = ({}){} * {} + threadIdx.x;", index_type_, index_type_, options_.instances > 0 ? "block" : "blockIdx.x", limits_.cuda_point_threads * unroll);
  const auto each = [&](auto&& body) {
    open("_Pragma(\"unroll\") for (int u = 0; u < {}; ++u) {{", unroll);
    line("const {} i = first + u * {};", index_type_, limits_.cuda_point_threads);
    open("if (i < {}) {{", number(vectors));
    decompose(space_.kept, "i", "k", v);
    body();
    close();
    close();
  };
  if (!operands.empty())
    each([&] {
      for (size_t o : operands) load(loaded[o], o, inner, v);
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
  if (passes_.has_full_store && !options_.mirrors.empty()) line("__syncthreads();");  // what the block's other threads store is there too
  open("if ({}) {{", condition);
  for (const KernelStore& each : kernel_.stores) {
    if (passes_.is_full_store(each)) continue;
    const size_t o = static_cast<size_t>(each.operand);
    const int64_t step = inner == nullptr ? 0 : stride(*inner, o);
    line("_Pragma(\"unroll\") for (int e = 0; e < {}; ++e) ({})[e * ({}){}] = {};", vector_, place(o), index_type_, number(step), to_memory(kernel_.operands[o].dtype, value(each.node)));
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
  const int v = inner == nullptr || space_.reduced_points == 0 ? 1 : vector_for(*inner);
  note_alignment(inner, v);
  const int64_t vectors = space_.reduced_points / v;
  int64_t group = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, (vectors + 3) / 4))));
  group = std::min<int64_t>(group, vectors > 16 * limits_.cuda_usual_group ? limits_.cuda_largest_group : limits_.cuda_usual_group);
  const int64_t fill = static_cast<int64_t>(options_.multiprocessors) * limits_.cuda_row_fill;
  while (group < limits_.cuda_largest_group && group < vectors && space_.kept_points * group < fill) group *= 2;
  if (group > 32 && group < 128) group = 128;
  const int threads = group > 32 ? static_cast<int>(group) : 128;
  const int64_t per_block = threads / group;

  // Few rows of many elements: over several blocks.
  const bool open_rows = symbolic(vectors);  // as long as each run says
  int64_t parts = 1;
  if (can_split() && group == threads && !symbolic(space_.kept_points)) {
    parts = std::min<int64_t>({open_rows ? limits_.cuda_row_parts : vectors / (group * 2), 2 * options_.multiprocessors / std::max<int64_t>(1, space_.kept_points), limits_.cuda_row_parts});
    parts = std::max<int64_t>(parts, 1);
  }
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
    const std::vector<size_t> found = passes_.reductions(pass);
    declare_accumulators(found, v);
    if (!found.empty() || (pass == passes_.last && passes_.has_full_store)) {
      if (in_registers || held_values) open("_Pragma(\"unroll\") for (int it = 0; it < {}; ++it) {{", rounds);
      else open("_Pragma(\"unroll 4\") for (int it = 0; it < {}; ++it) {{", rounds_text);
      const string part = parts > 1 ? fmt::format("({})blockIdx.y * {} + ", index_type_, of_part_text) : "";
      line("const {} i = {}it * {} + lane;", index_type_, part, group);
      string condition = open_rows || of_part % group != 0 || parts > 1 ? fmt::format("i < {}", number(vectors)) : "";
      if (parts > 1) condition += fmt::format(" && it * {} + lane < {}", group, of_part_text);
      const bool writes = pass == passes_.last && passes_.has_full_store;
      if (per_block > 1 && writes) condition += condition.empty() ? "live" : " && live";
      if (condition.empty()) open("{{");
      else open("if ({}) {{", condition);
      decompose(space_.reduced, "i", "r", v);
      for (size_t o : loads(wanted)) {
        const bool kept = times[o] > 1 && (in_registers || in_shared), there = kept && held[o];
        if (!kept || in_shared) line("{} c{}{};", raw(o, v), o, there ? fmt::format(" = h{}[it * {}]", o, threads) : "");
        if (there) continue;
        load(loaded[o], o, inner, v);
        if (kept && in_shared) line("h{}[it * {}] = c{};", o, threads, o);
        held[o] = kept;
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
  while (v > 1 && space_.kept_points / (32 * v) < options_.multiprocessors / 4) v /= 2;
  vector_ = v;
  note_alignment(inner, v);
  const int64_t groups = space_.kept_points / v;  // of columns, one of a thread
  const int across = 32, down = limits_.cuda_column_threads / across;
  const bool open_columns = symbolic(space_.reduced_points);
  int64_t parts = 1;
  if (can_split() && !symbolic(groups))
    parts = std::max<int64_t>(1, std::min<int64_t>({open_columns ? limits_.cuda_column_parts : space_.reduced_points / (down * limits_.cuda_column_rows), 4 * options_.multiprocessors / blocks_for(groups, across), limits_.cuda_column_parts}));
  const string of_part = open_columns && parts > 1 ? "of_part" : open_columns ? number(space_.reduced_points) : std::to_string(blocks_for(space_.reduced_points, parts));
  const string rounds = open_columns ? fmt::format("({} + {}) / {}", of_part, down - 1, down) : std::to_string(blocks_for(blocks_for(space_.reduced_points, parts), down));
  launch(groups, across, parts, limits_.cuda_column_threads);
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
    // Several rows at a time, all of which are loaded before the first is used: a thread that waits for each would wait most of the time.
    const std::vector<size_t> operands = loads(wanted);
    std::vector<string> loaded(kernel_.operands.size());
    int bytes = 1;
    for (size_t o : operands) bytes += v * ir::dtype_size(kernel_.operands[o].dtype);
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
    if (!operands.empty()) {
      each("at_most");
      line("const {0} i = at_most < {1} ? at_most : {1} - 1;", index_type_, end);
      decompose(space_.reduced, "i", "r", 1);
      for (size_t o : operands) load(loaded[o], o, inner, v);
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
      if (!std::exchange(shared, true)) line("__shared__ i64 scratch[{}];", limits_.cuda_column_threads * v * 2);
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

}  // namespace

base::Status render_kernel(const ir::Kernel& kernel, const string& name, const RenderOptions& options, Source* out) {
  return ir::attends(kernel) ? render_attention(kernel, name, options, out) : Renderer(kernel, options, out).run(name);
}

}  // namespace dynvm::codegen::cuda
