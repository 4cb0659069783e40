// Marks against std::set.
#include "ir/marks.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace dynvm::ir {
namespace {

TEST(Marks, IsASet) {
  std::mt19937 random(7);
  Marks marks(4);
  for (int filling = 0; filling < 50; ++filling) {
    std::set<size_t> expected;
    marks.clear();
    for (int k = 0; k < 100; ++k) {
      const size_t number = random() % (k < 50 ? 20 : 400);
      EXPECT_EQ(marks.contains(number), expected.count(number) != 0);
      EXPECT_EQ(marks.insert(number), expected.insert(number).second);
    }
    for (size_t number = 0; number < 1000; ++number) EXPECT_EQ(marks.contains(number), expected.count(number) != 0);
  }
}

}  // namespace
}  // namespace dynvm::ir
