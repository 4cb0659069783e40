// See check_isolation.h.
#include "tracer/check_isolation.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "tracer/check_system_calls.def"

namespace dynvm::tracer::check {

namespace {

constexpr off_t kMostCopied = off_t{64} << 20;  // bytes of one file
Forbidden on_forbidden = nullptr;

// A regular file as it is before any process of a check goes on: they share its place, and what one writes is there for all.
struct OpenFile {
  off_t at = 0, size = 0;
};
auto& noted = *new std::map<int, OpenFile>;

std::vector<int> open_files() {
  std::vector<int> files;
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return {};
  while (const dirent* entry = readdir(folder))
    if (const int file = std::atoi(entry->d_name); entry->d_name[0] != '.' && file != dirfd(folder))
      files.push_back(file);
  closedir(folder);
  return files;
}

void put_in_place(int of, int by) {
  const int flags = fcntl(of, F_GETFD);
  dup2(by, of);
  if (flags >= 0) fcntl(of, F_SETFD, flags);
  close(by);
}

// A copy that nobody else sees, at the same place; of one that is only read another opening, which has a place of its
// own.
bool copy_file(int file, int mode, const OpenFile& was) {
  const auto [at, size] = was;
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (mode == O_RDONLY) {
    const int again = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (again < 0) return false;
    lseek(again, at, SEEK_SET);
    put_in_place(file, again);
    return true;
  }
  if (size > kMostCopied) return false;
  const int copy = memfd_create("check", MFD_CLOEXEC);
  if (copy < 0) return false;
  if (const int in = open(path.c_str(), O_RDONLY | O_CLOEXEC); in >= 0) {
    off_t from = 0;
    while (from < size && sendfile(copy, in, &from, static_cast<size_t>(size - from)) > 0) {
    }
    close(in);
  }
  if (ftruncate(copy, size) < 0) return false;
  lseek(copy, at, SEEK_SET);
  if (fcntl(file, F_GETFL) & O_APPEND) fcntl(copy, F_SETFL, O_APPEND);
  put_in_place(file, copy);
  return true;
}

const char* reason_of(int number) {
#define X(name, why) \
  if (number == SYS_##name) return why;
  FORBIDDEN_CALLS(X)
#undef X
  return number == SYS_read || number == SYS_readv || number == SYS_write || number == SYS_writev
             ? "uses a pipe or socket"
             : "makes or changes a file";
}

void handle(int, siginfo_t* info, void*) { on_forbidden(reason_of(info->si_syscall)); }

// Jumps reach 255 instructions, and there may be more files than that: each rule has its own trap.
class Filter {
 public:
  void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<uint32_t>(offset)); }
  void number() { load(offsetof(seccomp_data, nr)); }
  void argument(int index) { load(offsetof(seccomp_data, args) + 8 * static_cast<size_t>(index)); }
  void trap_if_equal(int value) {
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<uint32_t>(value));
    add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_TRAP);
  }
  // For this call, if one of the flags is in the argument.
  void trap_if_any(int call, int index, int flags) {
    number();
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, static_cast<uint32_t>(call));
    argument(index);
    add(BPF_JMP | BPF_JSET | BPF_K, 0, 1, static_cast<uint32_t>(flags));
    add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_TRAP);
    number();
  }
  // For this call on this file.
  void trap_on(int call, int file) {
    number();
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 3, static_cast<uint32_t>(call));
    argument(0);
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<uint32_t>(file));
    add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_TRAP);
  }
  void allow() { add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW); }
  bool install() {
    sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  }

 private:
  void add(int code, int yes, int no, uint32_t value) {
    code_.push_back({static_cast<uint16_t>(code), static_cast<uint8_t>(yes), static_cast<uint8_t>(no), value});
  }
  std::vector<sock_filter> code_;
};

// Where the system does not allow filters the files' copies have to do.
void forbid(const std::vector<int>& talking, Forbidden forbidden) {
  on_forbidden = forbidden;
  struct sigaction action{};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGSYS);
  sigprocmask(SIG_UNBLOCK, &mask, nullptr);
  Filter filter;
  filter.number();
#define X(name, why) filter.trap_if_equal(SYS_##name);
  FORBIDDEN_CALLS(X)
#undef X
  filter.trap_if_any(SYS_open, 1, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC);
  filter.trap_if_any(SYS_openat, 2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC);
  for (const int file : talking)
    for (const int call : {SYS_read, SYS_readv, SYS_write, SYS_writev}) filter.trap_on(call, file);
  filter.allow();
  (void)filter.install();
}

}  // namespace

void note_files() {
  noted.clear();
  for (const int file : open_files()) {
    struct stat about{};
    if (fstat(file, &about) == 0 && S_ISREG(about.st_mode)) noted[file] = {lseek(file, 0, SEEK_CUR), about.st_size};
  }
}

void isolate(Forbidden forbidden) {
  std::vector<int> talking;
  for (const int file : open_files()) {
    const int flags = fcntl(file, F_GETFL);
    struct stat about{};
    if (flags < 0 || (flags & O_PATH) || fstat(file, &about) < 0) continue;
    const int mode = flags & O_ACCMODE;
    if (S_ISDIR(about.st_mode)) continue;
    OpenFile was{lseek(file, 0, SEEK_CUR), about.st_size};
    if (const auto found = noted.find(file); forbidden != nullptr && found != noted.end()) was = found->second;
    if (S_ISREG(about.st_mode) && copy_file(file, mode, was)) continue;
    if (mode == O_WRONLY || isatty(file)) {
      const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
      if (nowhere >= 0) put_in_place(file, nowhere);
    } else if (S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode)) {
      talking.push_back(file);
    }
  }
  if (forbidden != nullptr) forbid(talking, forbidden);
}

}  // namespace dynvm::tracer::check
