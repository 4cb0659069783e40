// What the forms of a kernel (render.cpp) are written with: text, addresses, loads and stores of neighbours, nodes, what an element of the loop computes.
//
// Input: a kernel, how it is rendered. Output: a Source. Invariants: render.h. For render.cpp alone. Tests: tests/cuda/source_test.cpp.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "codegen/cuda/draws.h"
#include "codegen/cuda/expressions.h"
#include "codegen/cuda/gathers.h"
#include "codegen/cuda/parameter.h"
#include "codegen/cuda/passes.h"
#include "codegen/cuda/render.h"
#include "codegen/cuda/rounding.h"
#include "codegen/cuda/space.h"
#include "ir/kernel/symbols.h"
#include "runtime/base/heuristics.h"

namespace dynvm::codegen::cuda {

class Renderer {
 public:
  using KernelNode = ir::KernelNode;
  using KernelOperand = ir::KernelOperand;
  using KernelStore = ir::KernelStore;
  using KOp = ir::KOp;
  using string = std::string;

  Renderer(const ir::Kernel& kernel, const RenderOptions& options, Source* out) : kernel_(kernel), options_(options), out_(*out), space_(make_space(kernel)), rounded_(seen_rounded(kernel)) {}

  base::Status run(const string& name);

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
      return std::any_of(kernel_.stores.begin(), kernel_.stores.end(), [&](const KernelStore& store) { return stores_vector(store, &inner, n); }) ||
             any_load_is_vector(inner, n);
    };
    while (v > 1 && !fits(v)) v /= 2;
    return v;
  }

  bool is_loaded(int32_t pointer) const {
    for (size_t n = 0; n < kernel_.nodes.size(); ++n)
      if (space_.needed[n] && kernel_.nodes[n].op == KOp::k_load && kernel_.operands[static_cast<size_t>(kernel_.nodes[n].operand)].pointer == pointer) return true;
    return false;
  }

  bool any_load_is_vector(const Dim& inner, int v) const {
    for (size_t n = 0; n < kernel_.nodes.size(); ++n) {
      const KernelNode& node = kernel_.nodes[n];
      if (!space_.needed[n]) continue;
      if (node.op == KOp::k_load && is_vector(static_cast<size_t>(node.operand), inner, v)) return true;
      if (node.op == KOp::k_load_at && gathered(node, &inner, v) == Gathered::kVector) return true;
    }
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

  // --- loads and stores at computed places (gathers.h)
  Gathered gathered(size_t o, int32_t at, int32_t holds, const Dim* inner, int v) const {
    if (v == 1 || inner == nullptr) return Gathered::kOne;
    for (int32_t dim : inner->sources)
      if ((space_.dims[static_cast<size_t>(at)] | space_.dims[static_cast<size_t>(holds)]) >> dim & 1) return Gathered::kEach;
    if (stride(*inner, o) == 0) return Gathered::kOne;
    return is_vector(o, *inner, v) && is_multiple(kernel_, at, v) ? Gathered::kVector : Gathered::kEach;
  }
  Gathered gathered(const KernelNode& node, const Dim* inner, int v) const { return gathered(static_cast<size_t>(node.operand), node.a, node.b, inner, v); }
  // Are v neighbours stored as one?
  bool stores_vector(const KernelStore& store, const Dim* inner, int v) const {
    const auto o = static_cast<size_t>(store.operand);
    return !store.has_place() ? is_vector(o, *inner, v) : !store.adds && gathered(o, store.at, store.holds, inner, v) == Gathered::kVector;
  }

  // The address: of neighbour e where each has one of its own.
  string place_at(size_t o, int32_t at, const Dim* inner, int v, bool each) const {
    const int64_t step = inner == nullptr || v == 1 || !each ? 0 : stride(*inner, o);
    return place(o) + (step != 0 ? fmt::format(" + e * ({}){}", index_type_, number(step)) : "") + " + " + value(at);
  }
  bool always(int32_t holds) const {
    const KernelNode& node = kernel_.nodes[static_cast<size_t>(holds)];
    return node.op == KOp::k_const && node.i != 0;
  }

  // What is there, as memory has it, or 0.
  string read_at(const KernelNode& node, const Dim* inner, int v, Gathered how) const {
    const auto o = static_cast<size_t>(node.operand);
    const string type = how == Gathered::kVector ? raw(o, v) : memory_type(node.dtype);
    const string read = fmt::format("*(const {}*)({})", type, place_at(o, node.a, inner, v, how == Gathered::kEach));
    return always(node.b) ? read : fmt::format("({} ? {} : {})", value(node.b), read, how == Gathered::kVector ? type + "{}" : "(" + type + ")0");
  }
  // Stores what memory has of one neighbour, or adds it.
  void write_at(const KernelStore& store, const Dim* inner, int v, const string& x) {
    const string condition = always(store.holds) ? "" : "if (" + value(store.holds) + ") ", at = place_at(static_cast<size_t>(store.operand), store.at, inner, v, true);
    if (store.adds) line("{}add_at({}, {});", condition, at, x);
    else line("{}*({}) = {};", condition, at, x);
  }

  string gathered_element(size_t n, const Dim* inner, int v) const {
    const ir::DType dtype = kernel_.nodes[n].dtype;
    return gathered(kernel_.nodes[n], inner, v) == Gathered::kOne ? from_memory(dtype, gathered_[n] + ".v[0]") : vector_element(dtype, gathered_[n]);
  }

  // --- nodes
  // The name of a value where it is used. In the columns form kept values are arrays over the thread's columns.
  string value(int32_t n) const { return fmt::format("n{}{}", n, form_ == kColumns && !in_loop(static_cast<size_t>(n)) ? "[e]" : ""); }

  string node_text(size_t n, const Dim* inner, int v, const std::vector<string>& loaded) const {
    const KernelNode& node = kernel_.nodes[n];
    switch (node.op) {
      case KOp::k_load: return element(loaded[static_cast<size_t>(node.operand)], static_cast<size_t>(node.operand), inner, v);
      case KOp::k_load_at: return in_loop(n) ? gathered_element(n, inner, v) : from_memory(node.dtype, read_at(node, inner, v, Gathered::kEach));
      case KOp::k_const: return constant(node);
      case KOp::k_scalar: return scalar(kernel_, node, fmt::format("p.scalar[{}]", node.i));
      case KOp::k_index: return index_of(node.i, inner, v > 1 ? "e" : "");
      case KOp::k_draw: return drawn(n, inner, v);
      default: break;
    }
    if (ir::is_scan(node.op)) return !in_loop(n) ? value(node.a) : fmt::format("y{}{}", n, form_ == kRows ? "[e]" : "");
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
    return ir::is_arg_reduce(kernel_.nodes[n].op) ? fmt::format("Best<{}>", type) : type;
  }
  string start_of(size_t n) const { return identity(kernel_.nodes[n].op, kernel_.nodes[static_cast<size_t>(kernel_.nodes[n].a)].dtype); }

  // What an element adds to a reduction; argmax: with its position in the order of the kernel's reduced dims.
  string contribution(size_t n, const Dim* inner, const string& lane) const {
    const KernelNode& node = kernel_.nodes[n];
    if (!ir::is_arg_reduce(node.op)) return value(node.a);
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
    return ir::is_arg_reduce(kernel_.nodes[n].op) ? fmt::format("({0}.at < 0 ? 0LL : {0}.at)", total) : total;
  }

  // A row's values that a pass has computed and later ones need stay in registers, so that none is computed twice. elements: of one thread. False where
  // they are too many: then nothing is held.
  bool hold(int64_t elements) {
    Passes::Uses uses = passes_.uses();
    const int64_t bytes = passes_.held_bytes(uses);
    if (bytes == 0 || bytes * elements > limits_.cuda_held) return false;
    uses_ = std::move(uses);
    return true;
  }
  bool is_held(size_t n) const { return !uses_.first.empty() && uses_.last[n] > uses_.first[n]; }
  // Has an earlier pass computed it?
  bool is_held_before(size_t n, int pass) const { return is_held(n) && uses_.first[n] < pass && uses_.last[n] >= pass; }
  // The full nodes that a pass computes, where values are held.
  std::vector<bool> first_computed(int pass) const {
    std::vector<bool> found;
    for (int first : uses_.first) found.push_back(first == pass);
    return found;
  }

  // Loads what the wanted load_at nodes give, for v neighbours along inner: each behind those that its place is computed from.
  void gather(const std::vector<bool>& wanted, const Dim* inner, int v, const std::vector<string>& loaded, int pass) {
    for (size_t n = 0; n < kernel_.nodes.size(); ++n) {
      if (kernel_.nodes[n].op != KOp::k_load_at || !wanted[n] || !in_loop(n)) continue;
      const KernelNode& node = kernel_.nodes[n];
      const Gathered how = gathered(node, inner, v);
      open_place(node.a, node.b, how == Gathered::kEach, inner, v, loaded, pass);
      line("{}{} = {};", gathered_[n], how == Gathered::kEach ? ".v[e]" : how == Gathered::kOne ? ".v[0]" : "", read_at(node, inner, v, how));
      close();
      close();
    }
  }
  // Opens two blocks, where a place and its condition are there: for each neighbour, or for all of them.
  void open_place(int32_t at, int32_t holds, bool each, const Dim* inner, int v, const std::vector<string>& loaded, int pass) {
    const std::vector<bool> nodes = nodes_of_place(kernel_, at, holds, [&](size_t n) { return !in_loop(n) || kernel_.nodes[n].op == KOp::k_load_at || is_held_before(n, pass); });
    open("{{");
    for (size_t n = 0; n < nodes.size(); ++n)
      if (nodes[n] && in_loop(n) && draws_together(n, inner, v)) line("{}", draw_all(kernel_, n, v, walk(static_cast<size_t>(kernel_.nodes[n].operand))));
    if (each) open("_Pragma(\"unroll\") for (int e = 0; e < {}; ++e) {{", v);
    else open("{{"), line("const int e = 0; (void)e;");
    for (size_t n = 0; n < nodes.size(); ++n) {
      if (!nodes[n] || !in_loop(n)) continue;
      if (is_held_before(n, pass)) declare_held(n);
      else declare(n, inner, v, loaded);
    }
  }
  // Declares what gather() fills: of one vector, or of `count` of them, of which gather() and elements() have number u. False where there is nothing.
  bool declare_gathered(const std::vector<bool>& wanted, int v, int count) {
    bool any = false;
    gathered_.assign(kernel_.nodes.size(), "");
    for (size_t n = 0; n < kernel_.nodes.size(); ++n) {
      if (kernel_.nodes[n].op != KOp::k_load_at || !wanted[n] || !in_loop(n)) continue;
      line("{} g{}{};", raw(static_cast<size_t>(kernel_.nodes[n].operand), v), n, count > 0 ? fmt::format("[{}]", count) : "");
      gathered_[n] = fmt::format("g{}{}", n, count > 0 ? "[u]" : "");
      any = true;
    }
    return any;
  }
  void declare_held(size_t n) { line("const {} n{} = h{}[it][e];", value_type(kernel_.nodes[n].dtype), n, n); }

  // --- scans: y5 is what one has come to at an element, carry5_0 (of pass 0) what it has come to so far
  std::vector<size_t> scans(const std::vector<bool>& wanted) const {
    std::vector<size_t> found;
    for (size_t n = 0; n < kernel_.nodes.size(); ++n)
      if (wanted[n] && in_loop(n) && ir::is_scan(kernel_.nodes[n].op)) found.push_back(n);
    return found;
  }
  string carry(size_t n, int pass) const { return fmt::format("carry{}_{}", n, pass); }
  void declare_carries(const std::vector<size_t>& found, int pass, int v) {
    for (size_t n : found) {
      line("{} {}[{}];", value_type(kernel_.nodes[n].dtype), carry(n, pass), v);
      line("_Pragma(\"unroll\") for (int e = 0; e < {}; ++e) {}[e] = {};", v, carry(n, pass), identity(kernel_.nodes[n].op, kernel_.nodes[n].dtype));
    }
  }
  // Rows: fills y... with the operand of a scan; the scans that this is computed from are there.
  void scanned(size_t scan, const Dim* inner, int v, const std::vector<string>& loaded, int pass) {
    const auto is_there = [&](size_t n) { return kernel_.nodes[n].op == KOp::k_load_at || ir::is_scan(kernel_.nodes[n].op) || is_held_before(n, pass); };
    std::vector<bool> found(kernel_.nodes.size(), false);
    found[static_cast<size_t>(kernel_.nodes[scan].a)] = true;
    for (size_t n = scan; n-- > 0;) {
      found[n] = found[n] && in_loop(n);
      if (!found[n] || is_there(n)) continue;
      for (int32_t operand : {kernel_.nodes[n].a, kernel_.nodes[n].b, kernel_.nodes[n].c})
        if (operand >= 0) found[static_cast<size_t>(operand)] = true;
    }
    for (size_t n = 0; n < scan; ++n)
      if (found[n] && draws_together(n, inner, v)) line("{}", draw_all(kernel_, n, v, walk(static_cast<size_t>(kernel_.nodes[n].operand))));
    open("_Pragma(\"unroll\") for (int e = 0; e < {}; ++e) {{", v);
    for (size_t n = 0; n < scan; ++n) {
      if (!found[n]) continue;
      if (is_held_before(n, pass)) declare_held(n);
      else declare(n, inner, v, loaded);
    }
    line("y{}[e] = {};", scan, value(kernel_.nodes[scan].a));
    close();
  }

  // The nodes that the loop over neighbours computes: of the wanted ones not those that only say where something is read.
  std::vector<bool> nodes_of_element(const std::vector<bool>& wanted, int pass) const {
    std::vector<bool> found = form_ == kPoints ? std::vector<bool>(kernel_.nodes.size(), false) : passes_.goals(pass);
    if (form_ == kPoints)
      for (const KernelStore& store : kernel_.stores)
        for (int32_t n : {store.node, store.at, store.holds})
          if (n >= 0) found[static_cast<size_t>(n)] = true;
    for (size_t n = kernel_.nodes.size(); n-- > 0;) {
      const KernelNode& node = kernel_.nodes[n];
      found[n] = wanted[n] && in_loop(n) && (found[n] || is_held(n));
      if (!found[n] || node.op == KOp::k_load_at || (form_ == kRows && ir::is_scan(node.op))) continue;
      for (int32_t operand : {node.a, node.b, node.c})
        if (operand >= 0) found[static_cast<size_t>(operand)] = true;
    }
    return found;
  }

  // Computes the wanted nodes of one element or vector, and hands the stores on.
  void elements(const std::vector<bool>& wanted, const Dim* inner, int v, const std::vector<string>& loaded, int pass) {
    const bool stores = pass == passes_.last;
    std::vector<size_t> stored;
    for (size_t s = 0; stores && s < kernel_.stores.size(); ++s)
      if (form_ == kPoints || passes_.is_full_store(kernel_.stores[s])) stored.push_back(s);
    const auto at_once = [&](size_t s) { return kernel_.stores[s].has_place() && !stores_vector(kernel_.stores[s], inner, v); };  // where the loop is
    const auto packed = [&](size_t s) { return v > 1 && is_half(kernel_.stores[s]) && !at_once(s); };  // converted in pairs, behind the loop
    for (size_t s : stored)
      if (!at_once(s)) line("{} s{}{};", packed(s) ? "float" : raw(static_cast<size_t>(kernel_.stores[s].operand), v), s, packed(s) ? fmt::format("[{}]", v) : "");
    const std::vector<bool> in_element = nodes_of_element(wanted, pass);
    for (size_t n = 0; n < kernel_.nodes.size(); ++n)
      if (in_element[n] && draws_together(n, inner, v)) line("{}", draw_all(kernel_, n, v, walk(static_cast<size_t>(kernel_.nodes[n].operand))));
    if (v > 1) open("_Pragma(\"unroll\") for (int e = 0; e < {}; ++e) {{", v);
    else open("{{");
    if (v == 1) line("const int e = 0; (void)e;");
    for (size_t n = 0; n < kernel_.nodes.size(); ++n) {
      if (is_held_before(n, pass)) declare_held(n);
      if (!in_element[n] || (ir::is_reduce(kernel_.nodes[n].op) && form_ != kPoints)) continue;
      if (form_ == kColumns && ir::is_scan(kernel_.nodes[n].op)) line("const {0} y{1} = {2}[e] = {3};", value_type(kernel_.nodes[n].dtype), n, carry(n, pass), combine(n, carry(n, pass) + "[e]", value(kernel_.nodes[n].a)));
      declare(n, inner, v, loaded);
      if (is_held(n)) line("h{}[it][e] = n{};", n, n);
    }
    for (size_t n : passes_.reductions(pass)) {
      const string acc = fmt::format("a{}[e]", n);
      const KernelNode& term = kernel_.nodes[static_cast<size_t>(kernel_.nodes[n].a)];
      if (is_picked(n) && !is_held(static_cast<size_t>(kernel_.nodes[n].a))) line("if ({}) {} = {};", value(term.a), acc, combine(n, acc, value(term.b)));
      else line("{} = {};", acc, combine(n, acc, contribution(n, inner, v > 1 ? "e" : "")));
    }
    for (size_t s : stored) {
      const string in_memory = to_memory(kernel_.operands[static_cast<size_t>(kernel_.stores[s].operand)].dtype, stored_value(kernel_.stores[s]));
      if (at_once(s)) write_at(kernel_.stores[s], inner, v, in_memory);
      else if (packed(s)) line("s{}[e] = {};", s, stored_value(kernel_.stores[s]));
      else line("s{}.v[e] = {};", s, in_memory);
    }
    close();
    for (size_t s : stored) {
      const KernelStore& each = kernel_.stores[s];
      const size_t o = static_cast<size_t>(each.operand);
      if (at_once(s)) continue;
      if (packed(s)) line("const {} v{} = {};", raw(o, v), s, vector_to_memory(kernel_.operands[o].dtype, fmt::format("s{}", s)));
      const string vector = fmt::format("{}{}", packed(s) ? "v" : "s", s);
      if (!each.has_place()) {
        store(vector, o, inner, v);
        continue;
      }
      open_place(each.at, each.holds, false, inner, v, loaded, pass);
      line("{}*({}*)({}) = {};", always(each.holds) ? "" : "if (" + value(each.holds) + ") ", raw(o, v), place_at(o, each.at, inner, v, false), vector);
      close();
      close();
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

  // May blocks share the reduced points of one kept point? One pass, so nothing that is stored of an element needs a reduction, and nothing that needs what comes before.
  bool can_split() const {
    const std::vector<size_t> found = passes_.reductions(0);
    return passes_.last == 0 && !found.empty() && !ir::has_scan(kernel_) && std::none_of(found.begin(), found.end(), [&](size_t n) { return ir::is_arg_reduce(kernel_.nodes[n].op); });
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
  const Shape& asked_ = options_.shape;
  Source& out_;
  Parameter parameter_{kernel_, options_, &out_};
  Space space_;
  const Passes passes_{kernel_, space_};
  std::vector<bool> rounded_;
  const char* const index_type_ = parameter_.index_type();
  string text_;
  int indent_ = 0;
  int vector_ = 1;              // columns: neighbours that a thread has
  Passes::Uses uses_;           // rows; empty: no values are held
  std::vector<string> gathered_;  // by node: the name of what gather() loads
  std::vector<string> kept_loaded_;
  std::vector<bool> kept_done_;
};

}  // namespace dynvm::codegen::cuda
