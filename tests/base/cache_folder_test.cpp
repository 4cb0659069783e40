// The trace cache's folder: what is written is read back whole, and nothing that was changed, cut or is open to others is.
#include "runtime/base/cache_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/options.h"

namespace dynvm::base {
namespace {

namespace fs = std::filesystem;

class CacheFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "dynvm-cache-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string path() const { return root_ + "/a/b"; }

  static std::string bytes_of(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }

  std::string root_;
};

TEST_F(CacheFolderTest, KeptFoldersAreWhereOptionsSay) {
  options().cache = "off";
  EXPECT_EQ(kept_folder("never"), nullptr);
  options().cache = root_ + "/kept";
  CacheFolder* folder = kept_folder("some");
  ASSERT_NE(folder, nullptr);
  EXPECT_EQ(folder->path(), root_ + "/kept/some");
  EXPECT_EQ(kept_folder("some"), folder);
  EXPECT_NE(kept_folder("other"), folder);
  options().cache.clear();
}

TEST_F(CacheFolderTest, ReadsWhatWasWritten) {
  CacheFolder folder;
  ASSERT_TRUE(folder.open(path()).ok());
  EXPECT_FALSE(folder.has("x"));
  const std::string bytes("a\0b\nc", 5);
  ASSERT_TRUE(folder.write("x", bytes).ok());
  EXPECT_TRUE(folder.has("x"));
  std::string got;
  ASSERT_TRUE(folder.read("x", &got).ok());
  EXPECT_EQ(got, bytes);
  CacheFolder again;  // another process
  ASSERT_TRUE(again.open(path()).ok());
  EXPECT_TRUE(again.has("x"));
  ASSERT_TRUE(again.write("x", "").ok());
  ASSERT_TRUE(folder.read("x", &got).ok());
  EXPECT_EQ(got, "");
  ASSERT_TRUE(folder.remove("x").ok());
  EXPECT_TRUE(folder.remove("x").ok());
  got = "before";
  EXPECT_TRUE(again.has("x"));
  EXPECT_TRUE(again.read("x", &got).ok());  // it has not heard of that
  EXPECT_EQ(got, "");
  EXPECT_EQ(std::distance(fs::directory_iterator(path()), fs::directory_iterator()), 0) << "nothing is left behind";
}

TEST_F(CacheFolderTest, RefusesDamage) {
  CacheFolder folder;
  ASSERT_TRUE(folder.open(path()).ok());
  const std::string bytes(1000, 'x');
  ASSERT_TRUE(folder.write("x", bytes).ok());
  const std::string file = path() + "/x", whole = bytes_of(file);
  for (size_t position : {size_t{0}, size_t{20}, whole.size() - 1, whole.size() / 2}) {
    std::string changed = whole;
    changed[position] ^= 1;
    std::ofstream(file, std::ios::binary) << changed;
    std::string got;
    const Status status = folder.read("x", &got);
    EXPECT_FALSE(status.ok()) << position;
    EXPECT_NE(status.message().find("is damaged"), std::string::npos) << status.message();
  }
  for (size_t size : {size_t{0}, size_t{5}, size_t{46}, size_t{47}, whole.size() - 1}) {
    std::ofstream(file, std::ios::binary) << whole.substr(0, size);
    std::string got;
    EXPECT_FALSE(folder.read("x", &got).ok()) << size;
  }
}

TEST_F(CacheFolderTest, RefusesWhatOthersCanWrite) {
  CacheFolder folder;
  ASSERT_TRUE(folder.open(path()).ok());
  struct stat status{};
  ASSERT_EQ(stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_TRUE(folder.write("x", "bytes").ok());
  std::string got;
  for (mode_t mode : {0620, 0602, 0666}) {
    ASSERT_EQ(chmod((path() + "/x").c_str(), mode), 0);
    EXPECT_FALSE(folder.read("x", &got).ok());
  }
  ASSERT_EQ(chmod((path() + "/x").c_str(), 0644), 0);
  EXPECT_TRUE(folder.read("x", &got).ok());
  fs::rename(path() + "/x", root_ + "/elsewhere");
  fs::create_symlink(root_ + "/elsewhere", path() + "/x");
  EXPECT_FALSE(folder.read("x", &got).ok()) << "a link may lead anywhere";
  ASSERT_EQ(chmod(path().c_str(), 0770), 0);
  CacheFolder again;
  const Status refused = again.open(path());
  EXPECT_FALSE(refused.ok());
  EXPECT_NE(refused.message().find("may be written by others"), std::string::npos) << refused.message();
  EXPECT_FALSE(again.is_open());
  std::ofstream(root_ + "/file") << "no folder";
  EXPECT_FALSE(again.open(root_ + "/file").ok());
}

TEST_F(CacheFolderTest, ReadersSeeWholeFilesWhileOthersWrite) {
  CacheFolder folder;
  ASSERT_TRUE(folder.open(path()).ok());
  ASSERT_TRUE(folder.write("x", std::string(100000, 'a')).ok());
  std::vector<std::thread> writers;
  for (char letter : {'a', 'b', 'c'})
    writers.emplace_back([&, letter] {
      CacheFolder mine;
      ASSERT_TRUE(mine.open(path()).ok());
      for (int i = 0; i < 50; i++) ASSERT_TRUE(mine.write("x", std::string(100000 + i, letter)).ok());
    });
  for (int i = 0; i < 200; i++) {
    std::string got;
    const Status status = folder.read("x", &got);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_GE(got.size(), 100000u);
    ASSERT_EQ(got.find_first_not_of(got[0]), std::string::npos);
  }
  for (std::thread& writer : writers) writer.join();
}

TEST_F(CacheFolderTest, LimitsWhatIsKept) {
  CacheFolder folder;
  ASSERT_TRUE(folder.open(path()).ok());
  for (int i = 0; i < 5; i++) {
    const std::string name = std::to_string(i);
    ASSERT_TRUE(folder.write(name, std::string(1000, 'x')).ok());
    fs::last_write_time(path() + "/" + name, fs::file_time_type::clock::now() - std::chrono::hours(10 - i));
  }
  limit_folder(root_, 2500);
  EXPECT_FALSE(fs::exists(path() + "/2"));
  EXPECT_TRUE(fs::exists(path() + "/3"));
  EXPECT_TRUE(fs::exists(path() + "/4"));
}

}  // namespace
}  // namespace dynvm::base
