// List scheduling of vector code. See schedule.h. Tests: tests/kernel/fuzz_test.cpp.
#include "codegen/x86/kernel/schedule.h"

#include <algorithm>
#include <cstddef>

#include "runtime/base/heuristics.h"

namespace dynvm::codegen {

namespace {

// Cycles until the result can be used, as on current x86 cores; only their proportions matter.
int latency(const VInst& i) {
  switch (i.op) {
    case VOp::k_load: return 6;
    case VOp::k_fma:
    case VOp::k_fnma: return 4;
    case VOp::k_add:
    case VOp::k_sub: return is_float_lane(i.lane) ? 3 : 1;
    case VOp::k_mul: return 3;
    case VOp::k_mul64: return 8;
    case VOp::k_div: return i.lane == Lane::kF32 ? 11 : 13;
    case VOp::k_sqrt: return i.lane == Lane::kF32 ? 14 : 20;
    case VOp::k_round: return 3;
    case VOp::k_cvt_f32_i32:
    case VOp::k_cvtt_f32_i32:
    case VOp::k_cvt_i32_f32:
    case VOp::k_cvt_f32_f64:
    case VOp::k_cvt_f64_f32:
    case VOp::k_cvt_i32_f64:
    case VOp::k_cvtt_f64_i32: return 4;
    case VOp::k_cvt_f32_f64_high:
    case VOp::k_join_f64_f32:
    case VOp::k_widen:
    case VOp::k_narrow:
    case VOp::k_round_f16: return 7;
    default: return 1;
  }
}

bool is_barrier(VOp op) { return op == VOp::k_loop || op == VOp::k_endloop || op == VOp::k_vbegin || op == VOp::k_call; }

class Scheduler {
 public:
  Scheduler(VCode* code, int num_registers)
      : code_(*code), num_registers_(num_registers), last_writer_(code->register_bytes.size(), -1),
        readers_(code->register_bytes.size()), uses_left_(code->register_bytes.size(), 0) {}

  void run() {
    for (const VInst& i : code_.insts)
      for (Value v : i.src)
        if (is_register(v)) ++uses_left_[v];
    size_t begin = 0;
    for (size_t i = 0; i <= code_.insts.size(); ++i) {
      if (i < code_.insts.size() && !is_barrier(code_.insts[i].op)) continue;
      // Shorter pieces are left as they are: the processor sees all of them anyway.
      if (i - begin >= static_cast<size_t>(base::heuristics().schedule_from)) block(begin, i);
      else retire(begin, i);
      if (i < code_.insts.size()) retire(i, i + 1);
      begin = i + 1;
    }
  }

 private:
  struct Node {
    std::vector<int> successors;
    int waiting = 0;   // predecessors not yet placed
    int height = 0;    // cycles from here to the end of the piece
    int ready_at = 0;
  };

  void retire(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      for (Value v : code_.insts[i].src)
        if (is_register(v)) --uses_left_[v];
  }

  void edge(int from, int to) {
    if (from == to) return;
    nodes_[from].successors.push_back(to);
    ++nodes_[to].waiting;
  }

  void build(size_t begin, size_t end) {
    nodes_.assign(end - begin, Node());
    std::vector<Value> touched;
    std::vector<int> loads;
    int last_store = -1;
    for (size_t k = 0; k < nodes_.size(); ++k) {
      const VInst& inst = code_.insts[begin + k];
      int at = static_cast<int>(k);
      for (Value v : inst.src) {
        if (!is_register(v)) continue;
        if (last_writer_[v] >= 0) edge(last_writer_[v], at);
        readers_[v].push_back(at);
        touched.push_back(v);
      }
      if (inst.dst != kNoValue) {
        // An accumulator's next value: after the readers of the one before.
        if (last_writer_[inst.dst] >= 0) edge(last_writer_[inst.dst], at);
        for (int reader : readers_[inst.dst]) edge(reader, at);
        readers_[inst.dst].clear();
        last_writer_[inst.dst] = at;
        touched.push_back(inst.dst);
      }
      if (inst.op == VOp::k_load) {
        if (last_store >= 0) edge(last_store, at);
        loads.push_back(at);
      } else if (inst.op == VOp::k_store || inst.op == VOp::k_store_lane) {
        if (last_store >= 0) edge(last_store, at);
        for (int load : loads) edge(load, at);
        loads.clear();
        last_store = at;
      }
    }
    for (Value v : touched) last_writer_[v] = -1, readers_[v].clear();
    for (size_t k = nodes_.size(); k-- > 0;) {
      int below = 0;
      for (int successor : nodes_[k].successors) below = std::max(below, nodes_[successor].height);
      nodes_[k].height = below + latency(code_.insts[begin + k]);
    }
  }

  // How many registers placing the instruction takes, less those that it frees.
  int pressure_of(const VInst& inst) const {
    int change = inst.dst != kNoValue && !live_[inst.dst] ? 1 : 0;
    for (int k = 0; k < 3; ++k) {
      Value v = inst.src[k];
      if (!is_register(v) || v == inst.dst) continue;
      int here = 0;
      bool repeated = false;
      for (int j = 0; j < 3; ++j) {
        if (inst.src[j] == v) ++here, repeated |= j < k;
      }
      if (!repeated && uses_left_[v] == here && local_[v]) --change;
    }
    return change;
  }

  void block(size_t begin, size_t end) {
    build(begin, end);
    live_.assign(code_.register_bytes.size(), false);
    local_.assign(code_.register_bytes.size(), false);
    for (size_t i = begin; i < end; ++i)
      if (code_.insts[i].dst != kNoValue) local_[code_.insts[i].dst] = true;
    std::vector<int> ready;
    for (size_t k = 0; k < nodes_.size(); ++k)
      if (nodes_[k].waiting == 0) ready.push_back(static_cast<int>(k));
    std::vector<VInst> placed;
    placed.reserve(nodes_.size());
    int live = 0, cycle = 0, issued = 0;
    while (!ready.empty()) {
      size_t best = 0;
      bool best_fits = false, best_now = false;
      for (size_t r = 0; r < ready.size(); ++r) {
        const Node& node = nodes_[ready[r]];
        bool fits = live + pressure_of(code_.insts[begin + ready[r]]) <= num_registers_ - 1 || pressure_of(code_.insts[begin + ready[r]]) <= 0;
        bool now = node.ready_at <= cycle;
        const Node& chosen = nodes_[ready[best]];
        bool better;
        if (r == 0) better = true;
        else if (fits != best_fits) better = fits;
        else if (now != best_now) better = now;
        else if (!now && node.ready_at != chosen.ready_at) better = node.ready_at < chosen.ready_at;
        else if (node.height != chosen.height) better = node.height > chosen.height;
        else better = ready[r] < ready[best];
        if (better) best = r, best_fits = fits, best_now = now;
      }
      int k = ready[best];
      ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(best));
      const VInst& inst = code_.insts[begin + k];
      live += pressure_of(inst);
      for (Value v : inst.src)
        if (is_register(v)) --uses_left_[v];
      if (inst.dst != kNoValue) live_[inst.dst] = true;
      cycle = std::max(cycle, nodes_[k].ready_at);
      if (++issued % 2 == 0) ++cycle;  // about two a cycle
      for (int successor : nodes_[k].successors) {
        Node& next = nodes_[successor];
        next.ready_at = std::max(next.ready_at, cycle + latency(inst));
        if (--next.waiting == 0) ready.push_back(successor);
      }
      placed.push_back(inst);
    }
    std::copy(placed.begin(), placed.end(), code_.insts.begin() + static_cast<std::ptrdiff_t>(begin));
  }

  VCode& code_;
  int num_registers_;
  std::vector<int> last_writer_;
  std::vector<std::vector<int>> readers_;
  std::vector<int> uses_left_;
  std::vector<bool> live_, local_;
  std::vector<Node> nodes_;
};

}  // namespace

void schedule(VCode* code, int num_registers) { Scheduler(code, num_registers).run(); }

}  // namespace dynvm::codegen
