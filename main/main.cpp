// The VM library's entry points: `python`'s main with dynvm in it.
//
// Purpose: dynvm_main is what the launcher's shim calls in place of Python's own main. It takes dynvm's options out of the
//   command line and does with the rest exactly what `python` does: the same configuration, the same exit.
//   dynvm_install installs dynvm into an interpreter that already runs (python/dynvm).
// Inputs: argc, argv, DYNVM_OPTIONS. Outputs: the exit status.
// Invariants: Python sees only its own part of the command line (sys.argv, sys.orig_argv) and no variable of the launcher.
// Tests: tests/launcher/.
#include <Python.h>
#include <fmt/core.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "main/install.h"
#include "main/policy.h"
#include "runtime/base/heuristics.h"
#include "main/profile.h"
#include "main/switches.h"
#include "main/torch_compile.h"
#include "runtime/base/options.h"
#include "runtime/base/profile.h"
#include "runtime/base/report.h"
#include "runtime/base/stress.h"

#define DYNVM_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

namespace base = dynvm::base;

std::string version_line() {
  std::string_view torch = DYNVM_TORCH_VERSION;
  return fmt::format("dynvm {} (Python {}, {})\n", DYNVM_VERSION, PY_VERSION,
                     torch.empty() ? "no torch" : fmt::format("torch {}", torch));
}

struct Command {
  std::string_view word;
  const char* module;
  std::string_view arguments, text;
};

constexpr Command kCommands[] = {
#define X(word, module, arguments, text) {word, module, arguments, text},
#include "main/commands.def"
#undef X
};

std::string commands_help() {
  std::string help;
  for (const Command& command : kCommands) help += fmt::format("  {} {}\n      {}\n", command.word, command.arguments, command.text);
  return help;
}

// The command line that carries out a command: `python -P -m MODULE arguments...`; empty where the first word is none. -P: a folder `dynvm` in the
// present one is not the package.
std::vector<char*> command_line_of(int argc, char** argv) {
  std::vector<char*> words;
  for (const Command& command : kCommands) {
    if (argc < 2 || command.word != argv[1]) continue;
    static char safe_path[] = "-P", module[] = "-m";
    words = {argv[0], safe_path, module, const_cast<char*>(command.module)};
    words.insert(words.end(), argv + 2, argv + argc);
  }
  return words;
}

std::string help_text() {
  return "usage: dynvm [dynvm's options] [Python's options] [-c command | -m module | script | -] [arguments]\n"
         "       dynvm command [arguments]\n"
         "\n"
         "Runs a Python program as `python` does, faster where it uses PyTorch.\n"
         "\n" +
         base::options_help() +
         "\n"
         "Commands:\n" +
         commands_help() +
         "\n"
         "Python's own options (`dynvm -h` lists them) may stand anywhere before the script. The variable DYNVM_OPTIONS\n"
         "may hold options of dynvm too; those of the command line come after it.\n\n" +
         version_line();
}

// Reads DYNVM_OPTIONS and DYNVM_STRESS.
base::Status read_environment() {
  if (const char* cache = std::getenv("DYNVM_CACHE"); cache != nullptr && *cache != 0 && base::options().cache.empty()) base::options().cache = cache;
  if (const char* stress = std::getenv("DYNVM_STRESS"); stress != nullptr && *stress != 0) base::options().stress = stress;
  const char* words = std::getenv("DYNVM_OPTIONS");
  return words == nullptr ? base::Status() : base::parse_option_words(words, base::options()).in("DYNVM_OPTIONS");
}

base::Status check_options() {
  if (base::Status status = dynvm::main::check_torch_compile(); !status.ok()) return status;
  return base::check_stress(base::options().stress);
}

// The numbers that steer the JIT: those of a policy, then those of the environment, then those of the options.
base::Status read_heuristics(std::string_view of_policy = {}) {
  base::Heuristics numbers = base::heuristics();
  if (base::Status status = base::parse_heuristics(of_policy, &numbers); !status) return status.in("--policy");
  if (const char* words = std::getenv("DYNVM_HEURISTICS"); words != nullptr) {
    if (base::Status status = base::parse_heuristics(words, &numbers); !status) return status.in("DYNVM_HEURISTICS");
  }
  if (base::Status status = base::parse_heuristics(base::options().heuristics, &numbers); !status) return status.in("--heuristics");
  base::set_heuristics(numbers);
  return {};
}

int refuse(const base::Status& status) {
  fmt::print(stderr, "dynvm: {}\n", status.message());
  return 2;
}

// Loads --policy, where there is one. False: it said on standard error why it cannot.
bool use_policy() {
  const std::string& file = base::options().policy;
  std::string numbers;
  if (file.empty()) return true;
  if (!dynvm::main::load_policy(file, &numbers)) {
    PyErr_Print();
    (void)refuse(base::Status::failure("--policy: cannot use " + file));
    return false;
  }
  const base::Status status = read_heuristics(numbers);
  if (!status) (void)refuse(status);
  return status.ok();
}

// What `python`'s main does up to running the script. False: `exit_status` says how to end.
bool initialise(const std::vector<char*>& arguments, int& exit_status) {
  PyConfig config;
  PyConfig_InitPythonConfig(&config);
  PyStatus status = PyConfig_SetBytesArgv(&config, static_cast<Py_ssize_t>(arguments.size()), arguments.data());
  if (!PyStatus_Exception(status)) status = Py_InitializeFromConfig(&config);
  PyConfig_Clear(&config);
  if (!PyStatus_Exception(status)) return true;
  if (!PyStatus_IsExit(status)) Py_ExitStatusException(status);  // prints, does not return
  exit_status = status.exitcode;
  return false;
}

}  // namespace

// Runs a command line. Returns the exit status of the process.
DYNVM_EXPORT int dynvm_main(int argc, char** argv) {
  std::vector<char*> arguments = command_line_of(argc, argv);
  if (!arguments.empty()) {
    int exit_status = 0;
    return initialise(arguments, exit_status) ? Py_RunMain() : exit_status;
  }
  base::Status status = read_environment();
  if (status) status = base::parse_command_line(argc, argv, base::options(), arguments);
  if (status) status = check_options();
  if (status) status = read_heuristics();
  if (status) status = dynvm::main::read_switches();
  if (!status) return refuse(status);
  const base::Options& options = base::options();
  if (options.help || options.version) {
    std::fputs((options.help ? help_text() : version_line()).c_str(), stdout);
    return 0;
  }

  dynvm::main::start_report();
  base::profile::begin();
  int exit_status = 0;
  if (!initialise(arguments, exit_status)) return exit_status;
  if (!use_policy()) return 2;
  if (!dynvm::main::install() || !dynvm::main::start_profile()) {
    PyErr_Print();
    return 1;
  }
  dynvm::main::script_begins();
  return Py_RunMain();
}

// Installs dynvm into the running interpreter; the GIL is held (ctypes.PyDLL). `options` is in the form of DYNVM_OPTIONS.
// Returns 0, or -1 with a Python exception.
DYNVM_EXPORT int dynvm_install(const char* options) {
  base::Status status = read_environment();
  if (status) status = base::parse_option_words(options, base::options());
  if (status) status = check_options();
  if (status) status = read_heuristics();
  if (status) status = dynvm::main::read_switches();
  if (!status) {
    PyErr_SetString(PyExc_ValueError, status.message().c_str());
    return -1;
  }
  std::string numbers;
  const std::string& policy = base::options().policy;
  if (!policy.empty() && !dynvm::main::load_policy(policy, &numbers)) return -1;
  if (status = read_heuristics(numbers); !status) {
    PyErr_SetString(PyExc_ValueError, status.message().c_str());
    return -1;
  }
  dynvm::main::start_report();
  base::profile::begin();
  if (!dynvm::main::install() || !dynvm::main::start_profile()) return -1;
  dynvm::main::script_begins();
  return 0;
}

// The numbers that steer the JIT with their rows of the table, as JSON; the GIL is held. The text lives until the next call.
DYNVM_EXPORT const char* dynvm_heuristics() {
  static std::string text;
  text = base::heuristics_json();
  return text.c_str();
}

// Sets numbers as --heuristics does; the GIL is held (ctypes.PyDLL). Returns 0, or -1 with a Python exception, and nothing is set then.
DYNVM_EXPORT int dynvm_set_heuristics(const char* words) {
  base::Heuristics numbers = base::heuristics();
  if (base::Status status = base::parse_heuristics(words, &numbers); !status) {
    PyErr_SetString(PyExc_ValueError, status.message().c_str());
    return -1;
  }
  base::set_heuristics(numbers);
  return 0;
}

// The report as JSON, as it is now; the GIL is held. The text lives until the next call.
DYNVM_EXPORT const char* dynvm_report() {
  static std::string text;
  text = base::report_now().json();
  return text.c_str();
}

// The line that `dynvm --version` prints, without its newline.
DYNVM_EXPORT const char* dynvm_version() {
  static const std::string line = version_line().substr(0, version_line().size() - 1);
  return line.c_str();
}
