// See cache_folder.h.
#include "runtime/base/cache_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <system_error>
#include <vector>

#include "runtime/base/options.h"

namespace dynvm::base {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "dynvm cache 2\n";
constexpr size_t kHead = kMagic.size() + 33;  // with the hash of what follows

Status failed(const std::string& what, const std::string& path) { return Status::failure(what + " " + path + ": " + std::strerror(errno)); }

// The user's own, and nobody else may change it?
Status trusted(const struct stat& status, const std::string& path) {
  if (status.st_uid != geteuid()) return Status::failure(path + " belongs to another user");
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return Status::failure(path + " may be written by others");
  return {};
}

// As many bytes as there are in *bytes.
bool read_all(int file, std::string* bytes) {
  for (size_t done = 0; done < bytes->size();) {
    const ssize_t got = ::read(file, bytes->data() + done, bytes->size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

bool write_all(int file, std::string_view bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t put = ::write(file, bytes.data() + done, bytes.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += static_cast<size_t>(put);
  }
  return true;
}

}  // namespace

std::string file_stamp(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) return {};
  return std::to_string(status.st_size) + "." + std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec);
}

std::string stable_hash(std::string_view bytes) {
  char text[33];
  const std::hash<std::string_view> hash;
  const std::string_view front = bytes.substr(0, bytes.size() / 2);  // the second half of the text is of both halves: no copy, and another chance to differ
  const size_t parts[] = {bytes.size(), hash(front), hash(bytes.substr(front.size()))};
  std::snprintf(text, sizeof text, "%016zx%016zx", hash(bytes), hash({reinterpret_cast<const char*>(parts), sizeof parts}));
  return text;
}

std::string cache_root() {
  const std::string& option = options().cache;
  if (!option.empty()) return option;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') return std::string(cache) + "/dynvm";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') return std::string(home) + "/.cache/dynvm";
  return {};
}

Status CacheFolder::open(const std::string& path) {
  std::error_code error;
  const fs::path folder(path);
  for (fs::path part; const fs::path& next : folder) {
    part /= next;
    if (!fs::exists(part, error) && mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) return failed("cannot make", part.string());
  }
  struct stat status{};
  if (lstat(path.c_str(), &status) != 0) return failed("cannot look at", path);
  if (!S_ISDIR(status.st_mode)) return Status::failure(path + " is no folder");
  if (Status trust = trusted(status, path); !trust.ok()) return trust;
  for (const auto& entry : fs::directory_iterator(folder, error)) names_.insert(entry.path().filename().string());
  if (error) return Status::failure("cannot read " + path + ": " + error.message());
  path_ = path;
  return {};
}

Status CacheFolder::read(const std::string& name, std::string* bytes) const {
  const std::string path = path_ + "/" + name;
  const int file = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  bytes->clear();
  if (file < 0) return errno == ENOENT ? Status() : failed("cannot open", path);
  struct stat status{};
  Status result = fstat(file, &status) == 0 ? trusted(status, path) : failed("cannot look at", path);
  if (result.ok()) {
    std::string head(kHead, '\0');
    bool whole = status.st_size >= static_cast<off_t>(kHead) && read_all(file, &head) && head.compare(0, kMagic.size(), kMagic) == 0;
    if (whole) bytes->resize(static_cast<size_t>(status.st_size) - kHead);
    whole = whole && read_all(file, bytes);
    if (!whole || head.compare(kMagic.size(), 32, stable_hash(*bytes)) != 0) result = Status::failure(path + " is damaged");
  }
  ::close(file);
  return result;
}

Status CacheFolder::write(const std::string& name, const std::string& bytes) {
  const std::string path = path_ + "/" + name;
  std::string temporary = path + ".XXXXXX";
  const int file = mkostemp(temporary.data(), O_CLOEXEC);  // readable and writable by its owner alone
  if (file < 0) return failed("cannot write", path);
  const bool whole = write_all(file, std::string(kMagic) + stable_hash(bytes) + "\n") && write_all(file, bytes);
  if (::close(file) != 0 || !whole || rename(temporary.c_str(), path.c_str()) != 0) {
    Status status = failed("cannot write", path);
    unlink(temporary.c_str());
    return status;
  }
  names_.insert(name);
  return {};
}

Status CacheFolder::remove(const std::string& name) {
  names_.erase(name);
  const std::string path = path_ + "/" + name;
  return unlink(path.c_str()) == 0 || errno == ENOENT ? Status() : failed("cannot remove", path);
}

CacheFolder* kept_folder(const std::string& name) {
  static std::mutex mutex;
  static auto* const folders = new std::map<std::string, CacheFolder>;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = folders->try_emplace(name);
  if (is_new && options().cache != "off")
    if (const std::string root = cache_root(); !root.empty()) (void)found->second.open(root + "/" + name);
  return found->second.is_open() ? &found->second : nullptr;
}

void limit_folder(const std::string& path, uint64_t bytes) {
  struct File {
    fs::file_time_type changed;
    uint64_t size;
    fs::path path;
  };
  std::vector<File> files;
  uint64_t total = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (!it->is_regular_file(gone) || gone) continue;
    const uint64_t size = it->file_size(gone);
    const auto changed = it->last_write_time(gone);
    if (gone) continue;
    files.push_back({changed, size, it->path()});
    total += size;
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.changed < b.changed; });
  for (size_t i = 0; i < files.size() && total > bytes; i++) {
    if (fs::remove(files[i].path, error)) total -= files[i].size;
  }
}

}  // namespace dynvm::base
