// The preloaded shim: takes over `main` of a Python program and lets the VM library run it.
//
// Purpose: whatever interpreter an environment has (static or with libpython.so, any vendor's), its process becomes
//   dynvm's, with its own executable, prefix, encodings and modules. The shim finds Python's version, loads the VM
//   library made for it, and calls its dynvm_main in place of main.
// Inputs: the process's symbols; DYNVM_LAUNCH, DYNVM_USER_PRELOAD, LD_PRELOAD, as launcher.c sets them.
// Outputs: main's exit status; where the VM library of this Python is missing, 127 and which ones there are; the environment as it was before the launcher.
// Invariants: no Python symbol at link time. A process other than the one that the launcher became is left alone; its
//   environment keeps the variables, so that Python may come later in a chain of exec (a wrapper script as `python`).
// Tests: tests/launcher/.
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int (*MainFunction)(int, char**, char**);
typedef int (*StartFunction)(MainFunction, int, char**, void (*)(void), void (*)(void), void (*)(void), void*);
typedef const char* (*VersionFunction)(void);
typedef int (*DynvmMain)(int, char**);

static void restore_environment(void) {
  const char* user = getenv("DYNVM_USER_PRELOAD");
  if (user != NULL) {
    setenv("LD_PRELOAD", user, 1);
  } else {
    unsetenv("LD_PRELOAD");
  }
  unsetenv("DYNVM_USER_PRELOAD");
  unsetenv("DYNVM_LAUNCH");
}

// The VM library for Python `version` ("3.11.7 (main, ..."): libdynvm-cp311.so next to this shim. 0: not to be found out.
static int library_path(char* path, size_t size, const char* version) {
  Dl_info self;
  int major, minor;
  if (dladdr((void*)restore_environment, &self) == 0 || sscanf(version, "%d.%d", &major, &minor) != 2) return 0;
  const char* slash = strrchr(self.dli_fname, '/');
  int folder = slash == NULL ? 0 : (int)(slash - self.dli_fname) + 1;
  int length = snprintf(path, size, "%.*slibdynvm-cp%d%d.so", folder, self.dli_fname, major, minor);
  return length > 0 && (size_t)length < size;
}

// Says which Python versions the folder of `path` has VM libraries for.
static void print_versions(const char* path) {
  char folder[PATH_MAX];
  snprintf(folder, sizeof folder, "%s", path);
  char* slash = strrchr(folder, '/');
  if (slash != NULL) *slash = 0;
  DIR* entries = opendir(slash == NULL ? "." : folder);
  int found = 0, digits, end;
  for (struct dirent* entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
    end = 0;
    if (sscanf(entry->d_name, "libdynvm-cp3%d.so%n", &digits, &end) != 1 || end == 0 || entry->d_name[end] != 0) continue;
    fprintf(stderr, "%s3.%d", found++ ? ", " : "dynvm: this installation serves Python ", digits);
  }
  fprintf(stderr, found ? "\n" : "dynvm: there is no VM library in %s\n", folder);
  if (entries != NULL) closedir(entries);
}

static int dynvm_entry(int argc, char** argv, char** environment) {
  (void)environment;
  restore_environment();
  VersionFunction version = (VersionFunction)dlsym(RTLD_DEFAULT, "Py_GetVersion");
  char path[PATH_MAX];
  if (!library_path(path, sizeof path, version())) {
    fprintf(stderr, "dynvm: no VM library can be named for Python %s\n", version());
    return 127;
  }
  if (access(path, R_OK) != 0) {
    fprintf(stderr, "dynvm: Python %s has no VM library\n", version());
    print_versions(path);
    return 127;
  }
  void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  DynvmMain run = library == NULL ? NULL : (DynvmMain)dlsym(library, "dynvm_main");
  if (run == NULL) {
    fprintf(stderr, "dynvm: cannot load the VM library for Python %s: %s\n", version(), dlerror());
    return 127;
  }
  return run(argc, argv);
}

static int is_launched(void) {
  const char* launched = getenv("DYNVM_LAUNCH");
  return launched != NULL && strtol(launched, NULL, 10) == (long)getpid() && dlsym(RTLD_DEFAULT, "Py_GetVersion") != NULL &&
         dlsym(RTLD_DEFAULT, "Py_RunMain") != NULL;
}

// libc's start function, which a program's first code calls with the address of its main.
__attribute__((visibility("default"))) int __libc_start_main(MainFunction real_main, int argc, char** argv, void (*init)(void),
                                                             void (*fini)(void), void (*rtld_fini)(void), void* stack_end) {
  StartFunction real = (StartFunction)dlsym(RTLD_NEXT, "__libc_start_main");
  if (real == NULL) {
    fprintf(stderr, "dynvm: %s\n", dlerror());
    _exit(127);
  }
  return real(is_launched() ? dynvm_entry : real_main, argc, argv, init, fini, rtld_fini, stack_end);
}
