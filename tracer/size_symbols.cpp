// See size_symbols.h.
#include "tracer/size_symbols.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "ir/kernel/symbols.h"
#include "ir/lower/lower.h"

namespace dynvm::tracer {

using ir::Inst;
using ir::TensorMeta;
using IrOp = ir::Op;

namespace {

// A number in both walks.
struct Pair {
  int64_t a, b;
  friend bool operator==(const Pair&, const Pair&) = default;
};

class Giver {
 public:
  Giver(const std::vector<TensorMeta>& other, const std::vector<CallFacts>& facts, ir::Trace* trace) : other_(other), facts_(facts), trace_(*trace), before_(trace->metas) {
    for (const TensorMeta& meta : trace_.metas)
      for (const auto& numbers : {meta.sizes, meta.strides, {meta.offset}})
        for (int64_t number : numbers) codes_.avoid(number);
  }

  void run() {
    for (const Inst& inst : trace_.insts) {
      if (inst.op == IrOp::k_unbox_tensor) input(static_cast<size_t>(inst.meta));
      if (inst.op == IrOp::k_aten) call(inst);
    }
  }

 private:
  using Symbols = std::vector<size_t>;  // indexes
  using Settled = std::vector<std::pair<size_t, TensorMeta>>;  // by index of the meta

  void input(size_t m) {
    if (before_[m].open == 0 || trace_.metas[m].symbolic || before_[m].offset != other_[m].offset) return;
    TensorMeta meta = before_[m];
    Symbols mine;
    for (size_t d = 0; d < meta.sizes.size(); ++d) {
      const Pair pair{before_[m].sizes[d], other_[m].sizes[d]};
      if (pair.a == pair.b) continue;
      const std::optional<size_t> symbol = symbol_of(pair);
      if (!symbol) return;
      add(&mine, *symbol);
      meta.sizes[d] = trace_.symbols[*symbol];
    }
    if (lay_out(m, {mine}, &meta)) trace_.metas[m] = std::move(meta);
  }

  void call(const Inst& inst) {
    ir::AtenCall& call = trace_.calls[static_cast<size_t>(inst.imm)];
    const CallFacts& facts = facts_[static_cast<size_t>(inst.imm)];
    const bool any = std::any_of(call.results.begin(), call.results.end(), [&](int32_t result) { return result >= 0 && before_[static_cast<size_t>(result)].open != 0; });
    if (!any || facts.by_steps || facts.moves) return;
    Symbols of_operands;
    bool unknown = false;  // what some operand looks like
    for (uint32_t k = 0; k < inst.count; ++k) {
      const Inst& operand = trace_.insts[trace_.arg(inst, k)];
      if (operand.type != ir::Type::kTensor) continue;
      const TensorMeta& meta = trace_.metas[static_cast<size_t>(operand.meta)];
      unknown = unknown || (meta.open != 0 && !meta.symbolic);
      if (meta.symbolic) add_all(&of_operands, meta.sizes);
    }
    const bool named = ir::names_sizes(call) && names_sizes(inst, facts, &of_operands);
    const bool in_place = !call.mutates.empty() && std::all_of(call.result_alias.begin(), call.result_alias.end(), [](int32_t alias) { return alias >= 0; });
    if (unknown && std::any_of(call.result_alias.begin(), call.result_alias.end(), [](int32_t alias) { return alias >= 0; })) {
      if (in_place) keep_places(inst, call);
      return;
    }
    if (!unknown && joined(inst, &call, of_operands)) return;
    Settled settled;
    const bool moves = ir::is_index(call) && ir::has_run_time_numbers(call);  // it is run to know where it looks
    call.follows = !unknown && !moves && (named || ir::sizes_follow(trace_, inst)) && results(call, of_operands, false, &settled);
    if (!call.follows) {
      settled.clear();
      if (in_place ? !results(call, of_operands, false, &settled) : facts.after_effect || !results(call, of_operands, true, &settled)) return;
    }
    for (auto& [m, meta] : settled) trace_.metas[m] = std::move(meta);
  }

  // Do its arguments name sizes of tensors that are made of symbols, which become known with its operands', and can its operand be expanded to what it gives?
  bool names_sizes(const Inst& inst, const CallFacts& facts, Symbols* known) const {
    const auto closed = [this](int32_t meta) { return trace_.metas[static_cast<size_t>(meta)].open == 0 || trace_.metas[static_cast<size_t>(meta)].symbolic; };
    if (facts.named.empty() || !std::all_of(facts.named.begin(), facts.named.end(), closed)) return false;
    const ir::AtenCall& call = trace_.calls[static_cast<size_t>(inst.imm)];
    if (call.result_alias[0] >= 0) {
      const auto of = static_cast<size_t>(trace_.insts[trace_.arg(inst, 0)].meta), to = static_cast<size_t>(call.results[0]);
      const size_t more = before_[to].sizes.size() - before_[of].sizes.size();
      for (size_t d = 0; d < before_[of].sizes.size(); ++d) {
        const Pair from{before_[of].sizes[d], other_[of].sizes[d]}, wanted{before_[to].sizes[d + more], other_[to].sizes[d + more]};
        if (from != wanted && from != Pair{1, 1}) return false;
      }
    }
    for (int32_t meta : facts.named)
      if (trace_.metas[static_cast<size_t>(meta)].symbolic) add_all(known, trace_.metas[static_cast<size_t>(meta)].sizes);
    return true;
  }

  // What is written is what it was, whatever else the operation reads.
  void keep_places(const Inst& inst, const ir::AtenCall& call) {
    for (size_t i = 0; i < call.results.size(); ++i) {
      const ir::AtenArg& argument = call.args[static_cast<size_t>(call.result_alias[i])];
      if (call.results[i] < 0 || argument.kind != ir::AtenArg::kTensor) continue;
      const auto m = static_cast<size_t>(call.results[i]), of = static_cast<size_t>(trace_.insts[trace_.arg(inst, static_cast<uint32_t>(argument.operands[0]))].meta);
      const TensorMeta &before = before_[m], &written = before_[of];
      if (!trace_.metas[of].symbolic || before.sizes != written.sizes || before.strides != written.strides || before.offset != written.offset) continue;
      trace_.metas[m].sizes = trace_.metas[of].sizes;
      trace_.metas[m].strides = trace_.metas[of].strides;
      trace_.metas[m].offset = trace_.metas[of].offset;
      trace_.metas[m].symbolic = true;
    }
  }

  // Operands one behind the other: the result's size there is their sum, which is a symbol of its own where it is no product.
  bool joined(const Inst& inst, ir::AtenCall* call, const Symbols& of_operands) {
    size_t dim;
    std::vector<int64_t> terms;
    if (!ir::adds_sizes(trace_, inst, &dim, &terms)) return false;
    const auto m = static_cast<size_t>(call->results[0]);
    if (before_[m].open == 0 || trace_.metas[m].symbolic) return false;
    const TensorMeta& first = trace_.metas[static_cast<size_t>(trace_.insts[trace_.arg(inst, static_cast<uint32_t>(call->args[0].operands[0]))].meta)];
    TensorMeta meta = before_[m];
    for (size_t d = 0; d < meta.sizes.size(); ++d) {
      const Pair pair{before_[m].sizes[d], other_[m].sizes[d]};
      const std::optional<int64_t> size = d == dim ? sum(terms, pair) : number(pair, of_operands);
      if (!size || (d != dim && *size != first.sizes[d])) return false;
      meta.sizes[d] = *size;
    }
    Symbols mine;
    add_all(&mine, meta.sizes);
    if (!lay_out(m, {mine}, &meta)) return false;
    trace_.metas[m] = std::move(meta);
    return call->follows = true;
  }

  // What the terms come to, `pair` in the walks.
  std::optional<int64_t> sum(const std::vector<int64_t>& terms, Pair pair) {
    std::map<int64_t, int64_t> factors;  // by product of codes: like terms are one
    for (int64_t term : terms) {
      ir::Product product;
      if (!ir::Product::of(term, trace_.symbols, &product)) return std::nullopt;
      factors[term / product.factor] += product.factor;
    }
    ir::SymbolSum sum;
    for (const auto& [codes, factor] : factors) sum.terms.push_back(factor * codes);
    if (sum.terms.size() == 1) return sum.terms[0];
    const std::optional<size_t> symbol = symbol_of(pair);
    if (!symbol) return std::nullopt;
    sum.symbol = static_cast<int32_t>(*symbol);
    const auto known = std::find_if(trace_.sums.begin(), trace_.sums.end(), [&](const ir::SymbolSum& other) { return other.symbol == sum.symbol; });
    if (known != trace_.sums.end() ? known->terms != sum.terms : is_made_of(sum.terms, *symbol)) return std::nullopt;
    if (known == trace_.sums.end()) trace_.sums.push_back(std::move(sum));
    return trace_.symbols[*symbol];
  }

  // Is the symbol among what they are made of, also by sums?
  bool is_made_of(const std::vector<int64_t>& terms, size_t symbol) const {
    if (ir::has_symbol(terms, trace_.symbols[symbol])) return true;
    return std::any_of(trace_.sums.begin(), trace_.sums.end(), [&](const ir::SymbolSum& sum) {
      return ir::has_symbol(terms, trace_.symbols[static_cast<size_t>(sum.symbol)]) && is_made_of(sum.terms, symbol);
    });
  }

  // The results' geometries. more: also of symbols that its operands do not have, and of new ones.
  bool results(const ir::AtenCall& call, const Symbols& of_operands, bool more, Settled* settled) {
    for (int32_t result : call.results) {
      const size_t m = static_cast<size_t>(result);
      if (result < 0 || before_[m].open == 0 || trace_.metas[m].symbolic) continue;
      TensorMeta meta = before_[m];
      Symbols mine;
      for (size_t d = 0; d < meta.sizes.size(); ++d) {
        const Pair pair{before_[m].sizes[d], other_[m].sizes[d]};
        std::optional<int64_t> size = number(pair, of_operands);
        if (!size && more) size = number(pair, all());
        if (!size && more)
          if (const std::optional<size_t> symbol = symbol_of(pair)) size = trace_.symbols[*symbol];
        if (!size) return false;
        meta.sizes[d] = *size;
        add_all(&mine, {*size});
      }
      if (!lay_out(m, more ? std::vector<Symbols>{mine, of_operands, all()} : std::vector<Symbols>{mine, of_operands}, &meta)) return false;
      settled->emplace_back(m, std::move(meta));
    }
    return true;
  }

  // Strides and offset, if they are made of these symbols, the nearest first.
  bool lay_out(size_t m, const std::vector<Symbols>& nearest, TensorMeta* meta) const {
    const auto express = [&](int64_t a, int64_t b, int64_t* to) {
      for (const Symbols& symbols : nearest)
        if (const std::optional<int64_t> found = number({a, b}, symbols)) return *to = *found, true;
      return false;
    };
    for (size_t d = 0; d < meta->strides.size(); ++d)
      if (!express(before_[m].strides[d], other_[m].strides[d], &meta->strides[d])) return false;
    return meta->symbolic = express(before_[m].offset, other_[m].offset, &meta->offset);
  }

  std::optional<int64_t> number(Pair pair, const Symbols& of, int depth = 0) const {
    if (pair.a == pair.b) return pair.a;
    for (size_t k : of)
      if (pairs_[k] == pair) return trace_.symbols[k];
    if (depth == 3 || pair.a == 0 || pair.b == 0) return std::nullopt;
    for (size_t k : of) {
      if (pair.a % pairs_[k].a != 0 || pair.b % pairs_[k].b != 0) continue;
      if (const std::optional<int64_t> rest = number({pair.a / pairs_[k].a, pair.b / pairs_[k].b}, of, depth + 1)) return *rest * trace_.symbols[k];
    }
    return std::nullopt;
  }

  // The symbol of a size, a new one where there is none; nothing where there are too many.
  std::optional<size_t> symbol_of(Pair pair) {
    const auto found = std::find(pairs_.begin(), pairs_.end(), pair);
    if (found != pairs_.end()) return static_cast<size_t>(found - pairs_.begin());
    if (pairs_.size() == ir::kMaxSymbols || pair.a < 2 || pair.b < 2) return std::nullopt;
    pairs_.push_back(pair);
    trace_.symbols.push_back(codes_.next());
    return pairs_.size() - 1;
  }

  Symbols all() const {
    Symbols indexes;
    for (size_t k = 0; k < pairs_.size(); ++k) indexes.push_back(k);
    return indexes;
  }
  // Those that the numbers are made of.
  void add_all(Symbols* symbols, const std::vector<int64_t>& numbers) const {
    for (size_t k = 0; k < trace_.symbols.size(); ++k)
      if (ir::has_symbol(numbers, trace_.symbols[k])) add(symbols, k);
  }
  static void add(Symbols* symbols, size_t symbol) {
    if (std::find(symbols->begin(), symbols->end(), symbol) == symbols->end()) symbols->push_back(symbol);
  }

  const std::vector<TensorMeta>& other_;
  const std::vector<CallFacts>& facts_;
  ir::Trace& trace_;
  const std::vector<TensorMeta> before_;  // the first walk
  ir::SymbolCodes codes_;
  std::vector<Pair> pairs_;               // of each symbol
};

}  // namespace

void give_symbols(const std::vector<TensorMeta>& other, const std::vector<CallFacts>& facts, ir::Trace* trace) { Giver(other, facts, trace).run(); }

}  // namespace dynvm::tracer
