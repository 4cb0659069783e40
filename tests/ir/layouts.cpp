// Random traces of images and convolutions mean the same before and after channels_last: every observation sees the same memory, as the script sees it.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/eval.h"
#include "ir/passes/pass.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace dynvm::ir {
namespace {

// As text, one value after the other. All images have the same batch.
class RandomImages {
 public:
  explicit RandomImages(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 77) {}

  std::string make(int operations) {
    for (int64_t channels : {3, 4, 8}) input({channels, 4 + pick(3), 4 + pick(3)});
    for (int k = 0; k < operations; ++k) operation();
    std::string slots, snapshots = "snap0: root unit 0 [=]\n";
    for (size_t k = 0; k < seen_.size(); ++k) snapshots += "snap" + std::to_string(k + 1) + ": root unit " + std::to_string(2 * k + 2) + " [" + seen_[k] + "]\n";
    return "trace 1 \"images\" storages " + std::to_string(storages_) + "\n%o:o = slot #0\n" + text_ + "leave !snap" + std::to_string(seen_.size()) + "\n" + snapshots;
  }
  int pick(int n) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<int>((state_ >> 20) % static_cast<uint64_t>(n));
  }

 private:
  struct Image {
    int64_t channels, height, width;
    friend bool operator==(const Image&, const Image&) = default;
  };
  struct Value {
    std::string name;
    Image image;
    int storage;
  };
  static std::string meta(const Image& image, int storage) {
    const int64_t plane = image.height * image.width;
    return "f32[2," + std::to_string(image.channels) + "," + std::to_string(image.height) + "," + std::to_string(image.width) + "]{" + std::to_string(image.channels * plane) + "," +
           std::to_string(plane) + "," + std::to_string(image.width) + ",1} s" + std::to_string(storage);
  }
  void input(const Image& image) {
    values_.push_back({"%i" + std::to_string(values_.size()), image, storages_++});
    text_ += values_.back().name + ":t = unbox_tensor %o !snap0 -> " + meta(image, values_.back().storage) + "\n";
  }
  const Value& any() { return values_[values_.size() - 1 - static_cast<size_t>(pick(std::min<int>(5, static_cast<int>(values_.size()))))]; }

  void call(const std::string& name, const std::string& arguments, const Image& image, const Value* in_place = nullptr, const char* how = "") {
    const std::string number = std::to_string(values_.size());
    const int storage = in_place ? in_place->storage : storages_++;
    text_ += "%c" + number + " = aten \"aten::" + name + "\" (" + arguments + ") -> (" + meta(image, storage) + (in_place ? " alias 0)" : ")") + how + " !snap0\n";
    text_ += "%v" + number + ":t = result %c" + number + " #0 -> " + meta(image, storage) + "\n";
    values_.push_back({"%v" + number, image, storage});
  }

  void operation() {
    const Value a = any(), b = any();
    switch (pick(11)) {
      case 0:
      case 1:
      case 2: return convolution(a);
      case 3: return call("relu", a.name, a.image);
      case 4: return call("tanh_", a.name, a.image, &a, " mutates [0]");
      case 5:
        if (a.image == b.image) call("add.Tensor", a.name + ", " + b.name + ", 1", a.image);
        return;
      case 6:
        if (a.image == b.image) call("mul_.Tensor", a.name + ", " + b.name, a.image, &a, " mutates [0]");
        return;
      case 7:
        if (a.image.height == b.image.height && a.image.width == b.image.width)
          call("cat", "[" + a.name + ", " + b.name + "], 1", {a.image.channels + b.image.channels, a.image.height, a.image.width});
        return;
      case 8: return call("detach", a.name, a.image, &a);
      case 9: {  // a view that only row-major memory has
        const std::string number = std::to_string(seen_.size()) + "_" + std::to_string(values_.size());
        const std::string flat = "f32[" + std::to_string(2 * a.image.channels * a.image.height * a.image.width) + "]{1} s" + std::to_string(a.storage);
        if (pick(3) != 0) return;
        text_ += "%w" + number + " = aten \"aten::view\" (" + a.name + ", ints[-1]) -> (" + flat + " alias 0) !snap0\n%f" + number + ":t = result %w" + number + " #0 -> " + flat + "\n";
        text_ += "%n" + number + " = aten \"aten::neg\" (%f" + number + ") -> (" + flat.substr(0, flat.find(" s")) + " s" + std::to_string(storages_) + ") !snap0\n%g" + number + ":t = result %n" + number +
                 " #0 -> " + flat.substr(0, flat.find(" s")) + " s" + std::to_string(storages_) + "\n";
        ++storages_;
        return see("%g" + number);
      }
      default: return see(a.name);
    }
  }

  void see(const std::string& tensor) {
    const std::string number = std::to_string(seen_.size() + 1);
    text_ += "%o" + number + ":o = wrap " + tensor + (pick(4) != 0 ? " sunk" : "") + "\nguard_bound %o !snap" + number + "\n";
    seen_.push_back("%o" + number);
  }

  void convolution(const Value& a) {
    const int64_t side = 1 + 2 * pick(2), groups = a.image.channels % 4 == 0 && pick(4) == 0 ? a.image.channels / 4 : 1, channels = 4 * groups;
    const std::string weight = "%k" + std::to_string(values_.size());
    const int64_t inside = a.image.channels / groups;
    text_ += weight + ":t = unbox_tensor %o !snap0 -> f32[" + std::to_string(channels) + "," + std::to_string(inside) + "," + std::to_string(side) + "," + std::to_string(side) + "]{" +
             std::to_string(inside * side * side) + "," + std::to_string(side * side) + "," + std::to_string(side) + ",1} s" + std::to_string(storages_++) + "\n";
    const std::string pad = std::to_string(side / 2);
    call("convolution", a.name + ", " + weight + ", none, ints[1,1], ints[" + pad + "," + pad + "], ints[1,1], false, ints[0,0], " + std::to_string(groups), {channels, a.image.height, a.image.width});
  }

  uint64_t state_;
  int storages_ = 0;
  std::string text_;
  std::vector<Value> values_;
  std::vector<std::string> seen_;
};

void check(uint64_t seed, const PassOptions& options, int* changed, int* copies) {
  RandomImages random(seed);
  const std::string text = random.make(8 + random.pick(30));
  Trace trace;
  base::Status status = parse_trace(text, &trace);
  ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.message() << "\n" << text;
  status = verify_trace(trace);
  ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.message() << "\n" << text;
  Evaluation before, after;
  const std::vector<int64_t> bytes = storage_bytes(trace);
  before.memory.resize(static_cast<size_t>(trace.num_storages));
  for (size_t s = 0; s < before.memory.size(); ++s) {
    before.memory[s].resize(static_cast<size_t>(bytes[s]));
    for (int64_t at = 0; at + 4 <= bytes[s]; at += 4) store_number(before.memory[s].data() + at, DType::kF32, (random.pick(2001) - 1000) / 2000.0);
  }
  after.memory = before.memory;
  status = evaluate(trace, &before);
  ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.message();
  status = run_passes(trace, options);
  ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.message() << "\n" << text << "\nbecame\n" << print_trace(trace);
  Trace again;
  ASSERT_TRUE(parse_trace(print_trace(trace), &again).ok());
  EXPECT_EQ(print_trace(again), print_trace(trace));
  for (const Inst& inst : trace.insts) {
    *changed += inst.op == Op::k_result && !trace.metas[static_cast<size_t>(inst.meta)].shown.empty();
    *copies += inst.op == Op::k_aten && is_relayout(trace.calls[static_cast<size_t>(inst.imm)]);
  }
  status = evaluate(trace, &after);
  ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.message();
  ASSERT_EQ(before.seen.size(), after.seen.size());
  for (size_t k = 0; k < before.seen.size(); ++k) {
    for (const auto& [storage, memory] : before.seen[k].memory) {
      const auto other = after.seen[k].memory.find(storage);
      ASSERT_TRUE(other != after.seen[k].memory.end()) << "seed " << seed << ", observation " << k << ", storage " << storage << "\n" << text << "\nbecame\n" << print_trace(trace);
      for (size_t at = 0; at + 4 <= memory.size(); at += 4) {
        const double x = load_number(memory.data() + at, DType::kF32), y = load_number(other->second.data() + at, DType::kF32);
        ASSERT_TRUE(x == y || std::fabs(x - y) <= 1e-4 * std::max(1.0, std::fabs(x)) || (std::isnan(x) && std::isnan(y)))
            << "seed " << seed << ", observation " << k << ", storage " << storage << ", byte " << at << ": " << x << " became " << y << "\n" << text << "\nbecame\n" << print_trace(trace);
      }
    }
  }
}

TEST(Layouts, MeanTheSame) {
  PassOptions options;
  options.only = {"channels_last"};
  options.verify = true;
  options.channels_last = 2;
  int changed = 0, copies = 0;
  for (uint64_t seed = 1; seed <= 300 && !HasFatalFailure(); ++seed) check(seed, options, &changed, &copies);
  EXPECT_GT(changed, 600);
  EXPECT_GT(copies, 300);
}

TEST(Layouts, MeanTheSameInKernels) {
  PassOptions options;
  options.only = {"channels_last", "fuse", "clean", "early"};
  options.verify = true;
  options.channels_last = 2;
  int changed = 0, copies = 0;
  for (uint64_t seed = 3001; seed <= 3250 && !HasFatalFailure(); ++seed) check(seed, options, &changed, &copies);
  EXPECT_GT(changed, 500);
}

}  // namespace
}  // namespace dynvm::ir
