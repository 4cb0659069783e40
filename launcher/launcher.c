// The program `dynvm`: starts the environment's own Python with the shim preloaded.
//
// Purpose: find the interpreter and the shim, exec the interpreter with all arguments as they are (the VM library takes
//   dynvm's own options out again, main/main.cpp).
// Inputs: the place of this program (PREFIX/bin/dynvm), VIRTUAL_ENV. The interpreter is the first that there is of
//   PREFIX/bin/python, $VIRTUAL_ENV/bin/python and the one dynvm was built for (which serves a build folder); the shim is
//   PREFIX/lib/dynvm/libdynvm_shim.so.
// Outputs: exec. For the shim, which removes them again: LD_PRELOAD, DYNVM_LAUNCH (the process that it shall take over,
//   so that a program started on the way to Python is left alone) and DYNVM_USER_PRELOAD (LD_PRELOAD's earlier value).
// Tests: tests/launcher/.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fail(const char* what, const char* which) {
  fprintf(stderr, "dynvm: %s: %s: %s\n", what, which, strerror(errno));
  exit(127);
}

// "folder/name" in a buffer of PATH_MAX; ends the program when it is too long.
static const char* join(char* buffer, const char* folder, const char* name) {
  if (snprintf(buffer, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX) {
    errno = ENAMETOOLONG;
    fail("path", folder);
  }
  return buffer;
}

static void parent_folder(char* path) {
  char* slash = strrchr(path, '/');
  if (slash != NULL) *slash = 0;
}

static const char* find_python(char* buffer, const char* prefix) {
  if (access(join(buffer, prefix, "bin/python"), X_OK) == 0) return buffer;
  const char* environment = getenv("VIRTUAL_ENV");
  if (environment != NULL && access(join(buffer, environment, "bin/python"), X_OK) == 0) return buffer;
  return DYNVM_BUILT_FOR_PYTHON;
}

static void set_preload(const char* shim) {
  const char* user = getenv("LD_PRELOAD");
  if (user != NULL) setenv("DYNVM_USER_PRELOAD", user, 1);
#ifdef DYNVM_PRELOAD_FIRST
  const char* first = DYNVM_PRELOAD_FIRST ":";
  setenv("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1", 0);  // CPython leaves memory behind, and its tests ask for more than there is
#else
  const char* first = "";
#endif
  size_t size = strlen(first) + strlen(shim) + (user != NULL ? strlen(user) : 0) + 2;
  char* value = malloc(size);
  if (value == NULL) fail("memory", "LD_PRELOAD");
  snprintf(value, size, "%s%s%s%s", first, shim, user != NULL && *user ? ":" : "", user != NULL ? user : "");
  setenv("LD_PRELOAD", value, 1);
  free(value);
}

int main(int argc, char** argv) {
  char prefix[PATH_MAX], shim[PATH_MAX], python[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", prefix, sizeof prefix - 1);
  if (length < 0) fail("cannot read", "/proc/self/exe");
  prefix[length] = 0;
  parent_folder(prefix);
  parent_folder(prefix);

  if (access(join(shim, prefix, "lib/dynvm/libdynvm_shim.so"), R_OK) != 0) fail("cannot read", shim);
  if (strpbrk(shim, " :") != NULL) {
    // The dynamic linker has no way to write these in LD_PRELOAD.
    fprintf(stderr, "dynvm: %s: a path with a blank or a colon cannot be preloaded\n", shim);
    return 127;
  }
  char pid[32];
  snprintf(pid, sizeof pid, "%ld", (long)getpid());
  setenv("DYNVM_LAUNCH", pid, 1);
  set_preload(shim);

  char** arguments = malloc((size_t)(argc + 2) * sizeof *arguments);
  if (arguments == NULL) fail("memory", "arguments");
  arguments[0] = (char*)find_python(python, prefix);
  for (int i = 1; i < argc; ++i) arguments[i] = argv[i];
  arguments[argc > 0 ? argc : 1] = NULL;
  execv(arguments[0], arguments);
  fail("cannot run", arguments[0]);
  return 127;
}
