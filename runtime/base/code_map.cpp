// Names of generated code for gdb and perf (code_map.h).
#include "runtime/base/code_map.h"

#include <elf.h>
#include <fmt/core.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <list>
#include <mutex>
#include <vector>

#include "runtime/base/options.h"

// gdb's part: it sets a breakpoint in the function and reads the descriptor, both found by name.
extern "C" {
struct jit_code_entry {
  jit_code_entry *next_entry, *prev_entry;
  const char* symfile_addr;
  uint64_t symfile_size;
};
struct jit_descriptor {
  uint32_t version, action_flag;
  jit_code_entry *relevant_entry, *first_entry;
};
__attribute__((used)) jit_descriptor __jit_debug_descriptor = {1, 0, nullptr, nullptr};
__attribute__((used, noinline)) void __jit_debug_register_code() { asm volatile("" ::: "memory"); }
}

namespace dynvm::base {

struct NamedCode {
  const void* code;
  size_t bytes;
  std::string name, file;
  int line;
  uint64_t number = 0;      // in the order of their making
  std::string image;        // for gdb
  jit_code_entry gdb = {};
};

namespace {

constexpr uint32_t kRegister = 1, kUnregister = 2;  // action_flag

template <class T>
void append(std::string* out, const T& value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// An object file without contents of its own: a section that lies where the code is, and a symbol for it.
std::string elf_image(const NamedCode& entry) {
  struct Image {
    Elf64_Ehdr header;
    Elf64_Shdr sections[5];  // none, .text, .symtab, .strtab, .shstrtab
    Elf64_Sym symbols[2];
  } image = {};
  const char names[] = "\0.text\0.symtab\0.strtab\0.shstrtab";
  const std::string strings = std::string(1, '\0') + entry.name + '\0';
  std::memcpy(image.header.e_ident, ELFMAG, SELFMAG);
  image.header.e_ident[EI_CLASS] = ELFCLASS64;
  image.header.e_ident[EI_DATA] = ELFDATA2LSB;
  image.header.e_ident[EI_VERSION] = EV_CURRENT;
  image.header.e_type = ET_REL;
  image.header.e_machine = EM_X86_64;
  image.header.e_version = EV_CURRENT;
  image.header.e_shoff = offsetof(Image, sections);
  image.header.e_ehsize = sizeof(Elf64_Ehdr);
  image.header.e_shentsize = sizeof(Elf64_Shdr);
  image.header.e_shnum = 5;
  image.header.e_shstrndx = 4;
  const auto section = [&](int index, Elf64_Word name, Elf64_Word type, Elf64_Off offset, Elf64_Xword size) -> Elf64_Shdr& {
    Elf64_Shdr& s = image.sections[index];
    s.sh_name = name;
    s.sh_type = type;
    s.sh_offset = offset;
    s.sh_size = size;
    s.sh_addralign = 1;
    return s;
  };
  Elf64_Shdr& text = section(1, 1, SHT_NOBITS, 0, entry.bytes);
  text.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
  text.sh_addr = reinterpret_cast<Elf64_Addr>(entry.code);
  Elf64_Shdr& symbols = section(2, 7, SHT_SYMTAB, offsetof(Image, symbols), sizeof image.symbols);
  symbols.sh_link = 3;
  symbols.sh_info = 1;
  symbols.sh_entsize = sizeof(Elf64_Sym);
  section(3, 15, SHT_STRTAB, sizeof image, strings.size());
  section(4, 23, SHT_STRTAB, sizeof image + strings.size(), sizeof names);
  image.symbols[1].st_name = 1;
  image.symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  image.symbols[1].st_shndx = 1;
  image.symbols[1].st_size = entry.bytes;
  return std::string(reinterpret_cast<const char*>(&image), sizeof image) + strings + std::string(names, sizeof names);
}

void tell_gdb(NamedCode* entry, uint32_t action) {
  jit_code_entry& mine = entry->gdb;
  if (action == kRegister) {
    entry->image = elf_image(*entry);
    mine = {__jit_debug_descriptor.first_entry, nullptr, entry->image.data(), entry->image.size()};
    if (mine.next_entry != nullptr) mine.next_entry->prev_entry = &mine;
    __jit_debug_descriptor.first_entry = &mine;
  } else {
    (mine.prev_entry != nullptr ? mine.prev_entry->next_entry : __jit_debug_descriptor.first_entry) = mine.next_entry;
    if (mine.next_entry != nullptr) mine.next_entry->prev_entry = mine.prev_entry;
  }
  __jit_debug_descriptor.relevant_entry = &mine;
  __jit_debug_descriptor.action_flag = action;
  __jit_debug_register_code();
}

uint64_t nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

std::string jitdump_header() {
  std::string out;
  append(&out, uint32_t{0x4A695444});                       // "JiTD"
  append(&out, uint32_t{1});                                // version
  append(&out, uint32_t{40});                               // size of this header
  append(&out, uint32_t{EM_X86_64});
  append(&out, uint32_t{0});
  append(&out, static_cast<uint32_t>(getpid()));
  append(&out, nanoseconds());
  append(&out, uint64_t{0});                                // flags
  return out;
}

std::string jitdump_record(uint32_t kind, const std::string& body) {
  std::string out;
  append(&out, kind);
  append(&out, static_cast<uint32_t>(16 + body.size()));
  append(&out, nanoseconds());
  return out + body;
}

std::string jitdump_records(const NamedCode& entry) {
  constexpr uint32_t kLoad = 0, kLines = 2;
  const auto address = reinterpret_cast<uint64_t>(entry.code);
  std::string out, body;
  if (!entry.file.empty()) {  // stands before the code that it is of
    append(&body, address);
    append(&body, uint64_t{1});
    append(&body, address);
    append(&body, static_cast<uint32_t>(entry.line));
    append(&body, uint32_t{0});
    out += jitdump_record(kLines, body + entry.file + '\0');
    body.clear();
  }
  append(&body, static_cast<uint32_t>(getpid()));
  append(&body, static_cast<uint32_t>(syscall(SYS_gettid)));
  append(&body, address);
  append(&body, address);
  append(&body, uint64_t{entry.bytes});
  append(&body, entry.number);
  body += entry.name + '\0';
  body.append(static_cast<const char*>(entry.code), entry.bytes);
  return out + jitdump_record(kLoad, body);
}

class CodeMap {
 public:
  CodeMap();

  NamedCode* add(NamedCode entry) {
    std::lock_guard lock(mutex_);
    NamedCode* added = &entries_.emplace_back(std::move(entry));
    added->number = count_++;
    if (pid_ != 0) write(*added);
    else open();
    if (options().gdb) tell_gdb(added, kRegister);
    return added;
  }

  void remove(NamedCode* entry) {
    std::lock_guard lock(mutex_);
    if (!entry->image.empty()) tell_gdb(entry, kUnregister);
    entries_.remove_if([entry](const NamedCode& each) { return &each == entry; });
  }

 private:
  // Files of this process, with all code that there is.
  void open() {
    pid_ = getpid();
    map_ = options().perf_map ? open_one(fmt::format("/tmp/perf-{}.map", pid_)) : nullptr;
    dump_ = options().perf_dump ? open_one(fmt::format("jit-{}.dump", pid_)) : nullptr;
    if (dump_ != nullptr) {
      put(dump_, jitdump_header());
      // perf record sees executable mappings: this one tells it where the file is. It stays to the process's end.
      if (mmap(nullptr, static_cast<size_t>(sysconf(_SC_PAGESIZE)), PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump_), 0) == MAP_FAILED) std::perror("dynvm: --perf-dump");
    }
    for (const NamedCode& entry : entries_) write(entry);
  }

  static FILE* open_one(const std::string& path) {
    FILE* file = std::fopen(path.c_str(), "w+e");
    if (file == nullptr) fmt::print(stderr, "dynvm: {}: {}\n", path, std::strerror(errno));
    return file;
  }

  static void put(FILE* file, const std::string& bytes) {
    std::fwrite(bytes.data(), 1, bytes.size(), file);
    std::fflush(file);
  }

  void write(const NamedCode& entry) {
    if (map_ != nullptr) put(map_, fmt::format("{:x} {:x} {}\n", reinterpret_cast<uintptr_t>(entry.code), entry.bytes, entry.name));
    if (dump_ != nullptr) put(dump_, jitdump_records(entry));
  }

  std::mutex mutex_;
  std::list<NamedCode> entries_;
  uint64_t count_ = 0;
  pid_t pid_ = 0;
  FILE *map_ = nullptr, *dump_ = nullptr;
};

CodeMap& code_map() {
  static auto* map = new CodeMap;  // outlives all code
  return *map;
}

CodeMap::CodeMap() {
  pthread_atfork([] { code_map().mutex_.lock(); }, [] { code_map().mutex_.unlock(); },
                 [] {
                   if (code_map().pid_ != 0) code_map().open();
                   code_map().mutex_.unlock();
                 });
}

}  // namespace

bool code_is_named() { return options().gdb || options().perf_map || options().perf_dump; }

CodeName::CodeName(const void* code, size_t bytes, const std::string& name, const std::string& file, int line) {
  if (code_is_named() && code != nullptr) code_ = code_map().add(NamedCode{code, bytes, "dynvm " + name, file, line});
}

CodeName::~CodeName() {
  if (code_ != nullptr) code_map().remove(code_);
}

}  // namespace dynvm::base
