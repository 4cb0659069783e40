// See result_sizes.h.
#include "runtime/torch/result_sizes.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace dynvm::torch_bridge {
namespace {

using Results = std::optional<std::vector<Sizes>>;

// A call as the rules read it. Each throws Unknown where an argument is not what the rule can tell from.
struct Unknown {};

struct View {
  const ir::AtenCall& call;
  const std::vector<ir::TensorMeta>& operands;
  const std::vector<ir::TensorMeta>& before;

  bool has(int i) const { return i >= 0 && static_cast<size_t>(i) < call.args.size() && call.args[static_cast<size_t>(i)].kind != ir::AtenArg::kNone; }
  const ir::AtenArg& arg(int i) const {
    if (!has(i)) throw Unknown{};
    return call.args[static_cast<size_t>(i)];
  }
  const Sizes& operand(int32_t position) const {
    if (position < 0 || static_cast<size_t>(position) >= operands.size()) throw Unknown{};
    return operands[static_cast<size_t>(position)].sizes;
  }
  const Sizes& tensor(int i) const {
    if (arg(i).kind != ir::AtenArg::kTensor) throw Unknown{};
    return operand(arg(i).operands.at(0));
  }
  // Of a tensor whose strides an operation might keep: where a dimension is 1, that has to be the row-major one.
  const Sizes& kept(int i) const {
    const Sizes& sizes = tensor(i);
    const ir::TensorMeta& meta = operands[static_cast<size_t>(arg(i).operands[0])];
    int64_t expected = 1;
    for (size_t d = sizes.size(); d-- > 0; expected *= sizes[d])
      if (sizes[d] == 1 && meta.strides[d] != expected) throw Unknown{};
    return sizes;
  }
  int64_t integer(int i) const {
    const ir::AtenArg& value = arg(i);
    if (value.kind != ir::AtenArg::kInt && value.kind != ir::AtenArg::kBool) throw Unknown{};
    return value.i;
  }
  bool flag(int i) const { return has(i) && integer(i) != 0; }
  const Sizes& integers(int i) const {
    if (arg(i).kind != ir::AtenArg::kIntList) throw Unknown{};
    return arg(i).ints;
  }
  static size_t dim(int64_t d, size_t rank) {
    const int64_t limit = static_cast<int64_t>(rank);
    if (d < -limit || d >= limit) throw Unknown{};
    return static_cast<size_t>(d < 0 ? d + limit : d);
  }
};

int64_t elements_of(const Sizes& sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}

Sizes broadcast(const Sizes& a, const Sizes& b) {
  Sizes longer = a, shorter = b;
  if (longer.size() < shorter.size()) longer.swap(shorter);
  const size_t skip = longer.size() - shorter.size();
  for (size_t d = 0; d < shorter.size(); ++d) {
    int64_t& size = longer[skip + d];
    if (size != shorter[d] && size != 1 && shorter[d] != 1) throw std::invalid_argument("sizes that do not broadcast");  // torch's meta function would raise
    if (size == 1) size = shorter[d];
  }
  return longer;
}

// Rules. a, b, c: positions of arguments, as the table says for each; -1: there is none.
struct Rule {
  Results (*apply)(const View& v, const Rule& rule);
  int a = -1, b = -1, c = -1;
};

// What all operands broadcast to.
Results elementwise(const View& v, const Rule&) {
  if (v.operands.empty()) throw Unknown{};
  Sizes made;
  for (const ir::TensorMeta& operand : v.operands) made = broadcast(made, operand.sizes);
  return std::vector<Sizes>{made};
}

// Each result has the sizes of a tensor: the first those of argument a, the second of b, the third of c.
Results like(const View& v, const Rule& r) {
  std::vector<Sizes> made;
  const int from[] = {r.a, r.b, r.c};
  for (size_t i = 0; i < v.call.results.size() && i < 3; ++i) made.push_back(v.call.results[i] < 0 ? Sizes{} : v.kept(from[i]));
  return made;
}

// Reduced over the dims of argument b, all where it is absent or empty; argument c keeps them as 1.
Results reduced(const View& v, const Rule& r) {
  Sizes sizes = v.tensor(r.a);
  std::vector<bool> gone(sizes.size(), true);
  if (v.has(r.b)) {
    const ir::AtenArg& dims = v.arg(r.b);
    const Sizes list = dims.kind == ir::AtenArg::kIntList ? dims.ints : Sizes{v.integer(r.b)};
    if (!list.empty() && !sizes.empty()) {
      std::fill(gone.begin(), gone.end(), false);
      for (int64_t d : list) gone[View::dim(d, sizes.size())] = true;
    }
  }
  Sizes made;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!gone[d]) made.push_back(sizes[d]);
    else if (v.flag(r.c)) made.push_back(1);
  }
  return std::vector<Sizes>(v.call.results.size(), made);
}

// A loss of what a and b broadcast to: each element, or one number where argument c reduces.
Results loss(const View& v, const Rule& r) {
  return std::vector<Sizes>{v.integer(r.c) == 0 ? broadcast(v.tensor(r.a), v.tensor(r.b)) : Sizes{}};
}

Results nll_loss(const View& v, const Rule& r) { return std::vector<Sizes>{v.integer(r.b) == 0 ? v.tensor(r.a) : Sizes{}, {}}; }

// Matrix products, of batches too; the factors are arguments a and a + 1.
Results product(const View& v, const Rule& r) {
  const Sizes &a = v.tensor(r.a), &b = v.tensor(r.a + 1);
  const size_t rank = a.size();
  if (rank < 2 || b.size() != rank || a[rank - 1] != b[rank - 2] || (rank == 3 && a[0] != b[0])) return std::nullopt;
  Sizes made = a;
  made[rank - 1] = b[rank - 1];
  return std::vector<Sizes>{made};
}

Results matrix_vector(const View& v, const Rule& r) { return std::vector<Sizes>{{v.tensor(r.a).at(0)}}; }

Results dot(const View&, const Rule&) { return std::vector<Sizes>{{}}; }

Results layer_norm(const View& v, const Rule& r) {
  Sizes rows = v.tensor(r.a);
  const Sizes& shape = v.integers(r.b);
  for (size_t k = 0; k < shape.size() && k < rows.size(); ++k) rows[rows.size() - 1 - k] = 1;
  return std::vector<Sizes>{v.tensor(r.a), rows, rows};
}

Results group_norm(const View& v, const Rule& r) {
  const Sizes groups{v.integer(r.b), v.integer(r.c)};
  return std::vector<Sizes>{v.tensor(r.a), groups, groups};
}

// The statistics of a batch, and cuDNN's memory for the backward pass, are there in training only.
Results batch_norm(const View& v, const Rule& r) {
  const Sizes& sizes = v.tensor(r.a);
  if (sizes.size() < 2 || v.before.size() < 3) return std::nullopt;
  if (v.before.size() > 3 && ir::elements(v.before[3]) != 0) return std::nullopt;
  std::vector<Sizes> made{sizes};
  for (size_t i = 1; i < v.before.size(); ++i) made.push_back(ir::elements(v.before[i]) == 0 ? v.before[i].sizes : Sizes{sizes[1]});
  return made;
}

Results cat(const View& v, const Rule& r) {
  const ir::AtenArg& list = v.arg(r.a);
  Sizes made = v.operand(list.operands.at(0));
  const size_t along = View::dim(v.integer(r.b), made.size());
  for (size_t k = 1; k < list.operands.size(); ++k) {
    const Sizes& next = v.operand(list.operands[k]);
    if (next.size() != made.size()) return std::nullopt;
    for (size_t d = 0; d < made.size(); ++d) {
      if (d == along) made[d] += next[d];
      else if (made[d] != next[d]) return std::nullopt;
    }
  }
  return std::vector<Sizes>{made};
}

Results stack(const View& v, const Rule& r) {
  const ir::AtenArg& list = v.arg(r.a);
  Sizes made = v.operand(list.operands.at(0));
  for (int32_t position : list.operands)
    if (v.operand(position) != made) return std::nullopt;
  made.insert(made.begin() + static_cast<std::ptrdiff_t>(View::dim(v.integer(r.b), made.size() + 1)), static_cast<int64_t>(list.operands.size()));
  return std::vector<Sizes>{made};
}

// Rows of argument a at the indexes of b.
Results embedding(const View& v, const Rule& r) {
  Sizes made = v.tensor(r.b);
  const Sizes& rows = v.tensor(r.a);
  if (rows.size() != 2) return std::nullopt;
  made.push_back(rows[1]);
  return std::vector<Sizes>{made};
}

Results embedding_backward(const View& v, const Rule& r) { return std::vector<Sizes>{{v.integer(r.b), v.tensor(r.a).back()}}; }

// Dimension b of argument a becomes as long as the indexes of argument c, or as the number there.
Results selected(const View& v, const Rule& r) {
  Sizes made = v.tensor(r.a);
  const ir::AtenArg& chosen = v.arg(r.c);
  made.at(View::dim(v.integer(r.b), made.size())) = chosen.kind == ir::AtenArg::kTensor ? elements_of(v.tensor(r.c)) : v.integer(r.c);
  return std::vector<Sizes>(v.call.results.size(), made);
}

Results last_replaced(const View& v, const Rule& r) {
  Sizes made = v.tensor(r.a);
  if (made.empty()) return std::nullopt;
  made.back() = v.integer(r.b);
  return std::vector<Sizes>{made};
}

// The sizes are an argument.
Results given(const View& v, const Rule& r) { return std::vector<Sizes>{v.integers(r.a)}; }

// As a, unless argument b is a format of memory other than row-major (0) or the operand's own (1).
Results copied(const View& v, const Rule& r) {
  if (v.has(r.b) && v.integer(r.b) > 1) return std::nullopt;
  return std::vector<Sizes>{v.kept(r.a)};
}

Results eye(const View& v, const Rule& r) { return std::vector<Sizes>{{v.integer(r.a), r.b < 0 ? v.integer(r.a) : v.integer(r.b)}}; }

Results padded(const View& v, const Rule& r) {
  Sizes made = v.tensor(r.a);
  const Sizes& borders = v.integers(r.b);
  for (size_t k = 0; k + 1 < borders.size(); k += 2) made.at(made.size() - 1 - k / 2) += borders[k] + borders[k + 1];
  if (elements_of(made) <= 0) return std::nullopt;
  return std::vector<Sizes>{made};
}

Results repeated(const View& v, const Rule& r) {
  const Sizes &sizes = v.tensor(r.a), &times = v.integers(r.b);
  if (times.size() < sizes.size()) return std::nullopt;
  Sizes made = times;
  for (size_t d = 0; d < sizes.size(); ++d) made[made.size() - 1 - d] *= sizes[sizes.size() - 1 - d];
  return std::vector<Sizes>{made};
}

struct Entry {
  const char* name;  // with the overload
  Rule rule;
};

// Beside the elementwise ones of ir/lower/pointwise.def.
const Entry kEntries[] = {
    {"xlogy.Tensor", {elementwise}},
    {"lgamma", {elementwise}},
    {"digamma", {elementwise}},
    {"nextafter", {elementwise}},
    {"bucketize.Tensor", {like, 0}},
    {"sum", {reduced, 0}},
    {"sum.dim_IntList", {reduced, 0, 1, 2}},
    {"mean", {reduced, 0}},
    {"mean.dim", {reduced, 0, 1, 2}},
    {"prod", {reduced, 0}},
    {"prod.dim_int", {reduced, 0, 1, 2}},
    {"amax", {reduced, 0, 1, 2}},
    {"amin", {reduced, 0, 1, 2}},
    {"max", {reduced, 0}},
    {"max.dim", {reduced, 0, 1, 2}},
    {"min", {reduced, 0}},
    {"min.dim", {reduced, 0, 1, 2}},
    {"median", {reduced, 0}},
    {"median.dim", {reduced, 0, 1, 2}},
    {"argmax", {reduced, 0, 1, 2}},
    {"argmin", {reduced, 0, 1, 2}},
    {"any", {reduced, 0}},
    {"any.dim", {reduced, 0, 1, 2}},
    {"any.dims", {reduced, 0, 1, 2}},
    {"all", {reduced, 0}},
    {"all.dim", {reduced, 0, 1, 2}},
    {"all.dims", {reduced, 0, 1, 2}},
    {"count_nonzero", {reduced, 0, 1}},
    {"count_nonzero.dim_IntList", {reduced, 0, 1}},
    {"var.correction", {reduced, 0, 1, 3}},
    {"std.correction", {reduced, 0, 1, 3}},
    {"var_mean.correction", {reduced, 0, 1, 3}},
    {"std_mean.correction", {reduced, 0, 1, 3}},
    {"logsumexp", {reduced, 0, 1, 2}},
    {"linalg_vector_norm", {reduced, 0, 2, 3}},
    {"norm.Scalar", {reduced, 0}},
    {"norm.ScalarOpt_dim", {reduced, 0, 2, 3}},
    {"_softmax", {like, 0}},
    {"_log_softmax", {like, 0}},
    {"_softmax_backward_data", {like, 0}},
    {"_log_softmax_backward_data", {like, 0}},
    {"cumsum", {like, 0}},
    {"cumprod", {like, 0}},
    {"flip", {like, 0}},
    {"roll", {like, 0}},
    {"tril", {like, 0}},
    {"triu", {like, 0}},
    {"sort", {like, 0, 0}},
    {"sort.stable", {like, 0, 0}},
    {"native_dropout", {like, 0, 0}},
    {"bernoulli", {like, 0}},
    {"index_add", {like, 0}},
    {"scatter.src", {like, 0}},
    {"scatter.value", {like, 0}},
    {"scatter_add", {like, 0}},
    {"gather", {like, 2}},
    {"mse_loss_backward", {like, 1}},
    {"smooth_l1_loss_backward", {like, 1}},
    {"huber_loss_backward", {like, 1}},
    {"nll_loss_backward", {like, 1}},
    {"native_layer_norm_backward", {like, 1, 5, 6}},
    {"native_group_norm_backward", {like, 1, 4, 4}},
    {"native_batch_norm_backward", {like, 1, 2, 2}},
    {"mse_loss", {loss, 0, 1, 2}},
    {"smooth_l1_loss", {loss, 0, 1, 2}},
    {"huber_loss", {loss, 0, 1, 2}},
    {"binary_cross_entropy", {loss, 0, 1, 3}},
    {"binary_cross_entropy_with_logits", {loss, 0, 1, 4}},
    {"nll_loss_forward", {nll_loss, 1, 3}},
    {"mm", {product, 0}},
    {"bmm", {product, 0}},
    {"addmm", {product, 1}},
    {"baddbmm", {product, 1}},
    {"mv", {matrix_vector, 0}},
    {"addmv", {matrix_vector, 1}},
    {"dot", {dot}},
    {"vdot", {dot}},
    {"native_layer_norm", {layer_norm, 0, 1}},
    {"native_group_norm", {group_norm, 0, 3, 6}},
    {"native_batch_norm", {batch_norm, 0}},
    {"cudnn_batch_norm", {batch_norm, 0}},
    {"_native_batch_norm_legit", {batch_norm, 0}},
    {"_native_batch_norm_legit.no_stats", {batch_norm, 0}},
    {"cat", {cat, 0, 1}},
    {"stack", {stack, 0, 1}},
    {"embedding", {embedding, 0, 1}},
    {"embedding_dense_backward", {embedding_backward, 0, 2}},
    {"index_select", {selected, 0, 1, 2}},
    {"topk", {selected, 0, 2, 1}},
    {"multinomial", {last_replaced, 0, 1}},
    {"select_backward", {given, 1}},
    {"slice_backward", {given, 1}},
    {"rand", {given, 0}},
    {"randn", {given, 0}},
    {"randint", {given, 1}},
    {"randint.low", {given, 2}},
    {"zeros", {given, 0}},
    {"ones", {given, 0}},
    {"full", {given, 0}},
    {"new_zeros", {given, 1}},
    {"new_ones", {given, 1}},
    {"new_full", {given, 1}},
    {"clone", {copied, 0, 1}},
    {"empty_like", {copied, 0, 5}},
    {"zeros_like", {copied, 0, 5}},
    {"ones_like", {copied, 0, 5}},
    {"rand_like", {copied, 0, 5}},
    {"randn_like", {copied, 0, 5}},
    {"full_like", {copied, 0, 6}},
    {"_to_copy", {copied, 0, 6}},
    {"eye", {eye, 0}},
    {"eye.m", {eye, 0, 1}},
    {"constant_pad_nd", {padded, 0, 1}},
    {"repeat", {repeated, 0, 1}},
};

const Rule* rule_of(const ir::AtenCall& call) {
  static const auto* rules = [] {
    auto* found = new std::unordered_map<std::string, Rule>;
    for (const Entry& entry : kEntries) found->emplace(std::string("aten::") + entry.name, entry.rule);
    return found;
  }();
  const auto found = rules->find(call.overload.empty() ? call.name : call.name + "." + call.overload);
  return found == rules->end() ? nullptr : &found->second;
}

// Operations whose result has the sizes that their operands broadcast to. Those of mode Result make or copy tensors, in layouts of their own.
bool is_elementwise(const ir::AtenCall& call) {
  static const auto* names = new std::unordered_set<std::string_view>{
#define X(name, arguments, mode, formula, sentence) std::string_view(#mode) != "Result" ? std::string_view("aten::" #name) : std::string_view(),
#include "ir/lower/pointwise.def"
#undef X
  };
  return names->count(call.name) != 0 && !call.name.empty();
}

// Does what is computed from it, element by element, lie in row-major order? torch keeps the order of strides, and those of dimensions that are 1 or
// repeated say nothing.
bool is_in_order(const ir::TensorMeta& meta) {
  int64_t outer = INT64_MAX;
  for (size_t d = 0; d < meta.sizes.size(); ++d) {
    if (meta.sizes[d] == 0) return false;
    if (meta.sizes[d] == 1 || meta.strides[d] == 0) continue;
    if (meta.strides[d] >= outer) return false;
    outer = meta.strides[d];
  }
  return true;
}

}  // namespace

Results result_sizes(const ir::AtenCall& call, const std::vector<ir::TensorMeta>& operands, const std::vector<ir::TensorMeta>& before) {
  if (std::any_of(call.result_alias.begin(), call.result_alias.end(), [](int32_t alias) { return alias >= 0; })) return std::nullopt;
  const Rule* rule = rule_of(call);
  if (rule == nullptr && (!call.mutates.empty() || call.results.size() != 1 || !is_elementwise(call))) return std::nullopt;
  const bool any_order = rule != nullptr && rule->apply == product;  // what a matrix product makes is row-major, whatever its operands are
  if (!any_order && !std::all_of(operands.begin(), operands.end(), is_in_order)) return std::nullopt;
  try {
    const View view{call, operands, before};
    const Results made = rule != nullptr ? rule->apply(view, *rule) : elementwise(view, {});
    return made && made->size() == call.results.size() ? made : std::nullopt;
  } catch (const Unknown&) {
    return std::nullopt;
  }
}

}  // namespace dynvm::torch_bridge
