// Which kernels store for the host what is read next (runtime/exec/mirrors.h).
#include "runtime/exec/mirrors.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "runtime/exec/program.h"

namespace dynvm::runtime {
namespace {

// A trace on a GPU: x and its largest element m, or what body makes of them; the reads' mirrors, by their storages.
struct Made {
  ir::Trace trace;
  TracePrograms programs;
  MirrorPlan plan;
  std::vector<int32_t> reads() const {
    std::vector<int32_t> found;
    for (ir::Ref ref = 0; ref < trace.insts.size(); ++ref)
      if (trace.insts[ref].op == ir::Op::k_read_scalar) found.push_back(plan.of_read[ref]);
    return found;
  }
};

constexpr const char* kLargest = R"(kernel0: kernel "largest" sizes [64] reduce [0] {
  o0 = f32 strides [1] ptr 0
  o1 = f32 strides [0] ptr 1
  n0 = load.f32 o0
  n1 = reduce_max.f32 n0
  store o1 n1
}
)";

Made make(const std::string& body, const std::string& kernels) {
  Made made;
  const std::string text = "trace 1 \"t\" storages 4\n%o:o = slot #0\n%x:t = unbox_tensor %o !snap0 -> f32[64]{1} s0 device 1 0\n" + body + "leave !snap0\nsnap0: root unit 0 [=]\n" + kernels;
  base::Status status = ir::parse_trace(text, &made.trace);
  EXPECT_TRUE(status.ok()) << status.message() << text;
  const ir::Plan plan = ir::make_plan(made.trace, [](const ir::AtenCall&) { return true; });
  status = build_program(made.trace, plan, &made.programs);
  EXPECT_TRUE(status.ok()) << status.message();
  made.plan = plan_mirrors(made.trace, &made.programs);
  return made;
}

}  // namespace
}  // namespace dynvm::runtime
