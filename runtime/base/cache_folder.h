// A folder of files that later processes of the same user read back: owned by the user, writable by nobody else, each file whole or not there.
//
// Inputs: the folder's path, names, bytes. Outputs: the bytes, or why they are refused.
// Invariants: a file is written under another name and moved to its place, so that concurrent processes see the old one or the new one; what is
// read is bytes that were written here (length and hash are checked: against damage, not against those who may write as this user).
// Tests: tests/base/cache_folder_test.cpp.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace dynvm::base {

// Another one for each version of a file: its size and time of change; "" where there is no such file.
std::string file_stamp(const std::string& path);

// The same in each process of one build of dynvm.
std::string stable_hash(std::string_view bytes);

// Where the options and the environment say that this user's files are kept; "" where they name no place. Not for --cache=off.
std::string cache_root();

class CacheFolder {
 public:
  // Makes the folder where it is missing. A failure says what is wrong with it.
  Status open(const std::string& path);
  [[nodiscard]] bool is_open() const { return !path_.empty(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  // Was the file there when the folder was opened, or written since?
  [[nodiscard]] bool has(const std::string& name) const { return names_.count(name) != 0; }
  // Nothing where another process has removed it since.
  Status read(const std::string& name, std::string* bytes) const;
  Status write(const std::string& name, const std::string& bytes);
  Status remove(const std::string& name);

 private:
  std::string path_;
  std::set<std::string> names_;
};

// The folder of that name in cache_root(), opened once; null where the options say that nothing is kept, or where it cannot be.
CacheFolder* kept_folder(const std::string& name);

// Removes the files below `path` that were not changed for longest until the rest has at most `bytes`.
void limit_folder(const std::string& path, uint64_t bytes);

}  // namespace dynvm::base
