// Traces and plans as bytes: what is read back is equal, and no bytes make the reader go beyond them.
#include "ir/archive.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "ir/text.h"
#include "random_trace.h"

namespace dynvm::ir {
namespace {

Plan plan_of(const Trace& trace) {
  return make_plan(trace, [](const AtenCall&) { return true; });
}

std::string bytes_of(const Trace& trace, const Plan& plan) {
  ArchiveWriter writer;
  writer.number_of = [](const void* pointer) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(pointer)) / 16; };
  writer.opaque_text = [](int64_t handle, std::string* text) {
    *text = "handle " + std::to_string(handle);
    return true;
  };
  write_trace(writer, trace, plan);
  EXPECT_TRUE(writer.ok);
  return writer.bytes;
}

bool read(const std::string& bytes, Trace* trace, Plan* plan) {
  ArchiveReader reader(bytes);
  reader.at = [](int64_t number) { return reinterpret_cast<void*>(static_cast<uintptr_t>(number * 16)); };
  reader.opaque_of = [](const std::string& text, int64_t* handle) {
    if (text.rfind("handle ", 0) != 0) return false;
    *handle = std::strtoll(text.c_str() + 7, nullptr, 10);
    return true;
  };
  read_trace(reader, trace, plan);
  return reader.ok && reader.at_end();
}

constexpr char kTrace[] = R"ir(
trace 7 "name" storages 3
guard_torch_state {grad : f32 15 5 1} !snap0
%0:o = slot #0
%d:o = const_obj @0 "dict"
guard_dict_version %d #12345678901 !snap0
%x:t = unbox_tensor %0 !snap0 -> f32[100,3]{3,1} s0 grad param
%c1 = aten "aten::to.device" (%x, opaque 5, none, ints[1,-2], 0.5, "text") -> (f32[100,3]{3,1} s1) grad !snap0
%a:t = result %c1 #0 -> f32[100,3]{3,1} s1
%c2 = aten "aten::clone" (%a, 2) -> (f32[100,3]{1,100} s2 shown {3,1}) count 0 !snap0
%b:t = result %c2 #0 -> f32[100,3]{1,100} s2 shown {3,1}
%out:o = wrap %a sunk
%f:f = read_scalar %a !snap1
loop !snap2
snap0: root unit 0 [=]
snap1: root unit 4 [%out]
snap2: root unit 0 [=]
)ir";

TEST(Archive, ReadsWhatWasWritten) {
  Trace trace;
  const base::Status status = parse_trace(kTrace, &trace);
  ASSERT_TRUE(status.ok()) << status.message();
  trace.objects[0].pointer = reinterpret_cast<void*>(uintptr_t{0x7000});
  trace.frames[trace.snapshots[1].frames[0]].code = reinterpret_cast<void*>(uintptr_t{0x8000});
  const Plan plan = plan_of(trace);
  Trace again;
  Plan plan_again;
  ASSERT_TRUE(read(bytes_of(trace, plan), &again, &plan_again));
  EXPECT_EQ(print_trace(again), print_trace(trace));
  EXPECT_EQ(again.objects[0].pointer, trace.objects[0].pointer);
  EXPECT_EQ(again.frames[again.snapshots[1].frames[0]].code, trace.frames[trace.snapshots[1].frames[0]].code);
  EXPECT_EQ(bytes_of(again, plan_again), bytes_of(trace, plan));
}

TEST(Archive, RandomTraces) {
  for (uint64_t seed = 0; seed < 200; seed++) {
    const Trace trace = RandomTrace(seed).make(12);
    const Plan plan = plan_of(trace);
    const std::string bytes = bytes_of(trace, plan);
    Trace again;
    Plan plan_again;
    ASSERT_TRUE(read(bytes, &again, &plan_again)) << seed;
    ASSERT_EQ(print_trace(again), print_trace(trace)) << seed;
    ASSERT_EQ(bytes_of(again, plan_again), bytes) << seed;
  }
}

TEST(Archive, EachBeginningIsRefused) {
  Trace trace;
  ASSERT_TRUE(parse_trace(kTrace, &trace).ok());
  const std::string bytes = bytes_of(trace, plan_of(trace));
  for (size_t size = 0; size < bytes.size(); size++) {
    Trace again;
    Plan plan;
    ASSERT_FALSE(read(bytes.substr(0, size), &again, &plan)) << size;
  }
  Trace again;
  Plan plan;
  EXPECT_FALSE(read(bytes + "x", &again, &plan));
}

TEST(Archive, ChangedBytesAreReadWithinTheirBounds) {
  Trace trace;
  ASSERT_TRUE(parse_trace(kTrace, &trace).ok());
  const std::string bytes = bytes_of(trace, plan_of(trace));
  std::mt19937_64 random(1);
  for (int round = 0; round < 3000; round++) {
    std::string changed = bytes;
    for (int k = 0; k < 3; k++) changed[random() % changed.size()] = static_cast<char>(random());
    Trace again;
    Plan plan;
    read(changed, &again, &plan);  // either way; sanitizers look on
  }
}

}  // namespace
}  // namespace dynvm::ir
