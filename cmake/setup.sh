# Setting-up for ./run and ./check (sourced by both; bash).
#
# Purpose: from a fresh clone on Debian 12 or Ubuntu 24.04 to a built and installed dynvm: system packages, .venv with
#   torch, build/release, installation into .venv. What is there already is kept.
# Inputs: PYTHON (interpreter for a new .venv; default: a supported one found in PATH). Outputs: .venv/bin/dynvm; for another
#   preset than release its build folder, not installed.
# Invariants: everything it says goes to standard error, nothing when nothing is to do. Stamps hold the hash of what a step
#   depends on: they are in build/ and .venv/, so that deleting either repeats its steps.
# Works as root, with sudo, or, where neither is possible, without system packages (libraries are then built from sources).

supported_pythons="3.11 3.12 3.13"  # vm/cpython/ has one file for each

say() { printf 'dynvm: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Runs a command quietly; shows its output when it fails.
quietly() {
  local log
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

hash_of() { sha256sum "$@" | sha256sum | cut -c1-32; }

version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

supported() {
  local version
  version=$(version_of "$1") || return 1
  case " $supported_pythons " in *" $version "*) return 0 ;; esac
  return 1
}

# The interpreter for a new environment.
find_python() {
  local candidate
  if [ -n "${PYTHON:-}" ]; then
    supported "$PYTHON" || fail "PYTHON=$PYTHON is not one of Python $supported_pythons"
    printf '%s\n' "$PYTHON"
    return
  fi
  for candidate in python3 $(printf 'python%s ' $supported_pythons); do
    if command -v "$candidate" >/dev/null && supported "$candidate"; then
      printf '%s\n' "$candidate"
      return
    fi
  done
}

# Names of the missing packages: "package:what shows that it is there" is a command, a header or a CMake file.
missing_packages() {
  local row package sign
  for row in g++:c++ cmake:cmake ninja-build:ninja binutils:objcopy \
             libasmjit-dev:asmjit/asmjit.h libxbyak-dev:xbyak/xbyak.h libxxhash-dev:xxhash.h libfmt-dev:fmt/core.h \
             nlohmann-json3-dev:nlohmann/json.hpp libtomlplusplus-dev:toml++/toml.h libgtest-dev:gtest/gtest.h libbenchmark-dev:benchmark/benchmark.h; do
    package=${row%%:*}
    sign=${row#*:}
    case $sign in
      */* | *.h) [ -e "/usr/include/$sign" ] || [ -e "/usr/local/include/$sign" ] || printf '%s ' "$package" ;;
      *) command -v "$sign" >/dev/null || printf '%s ' "$package" ;;
    esac
  done
  if [ ! -x .venv/bin/python ]; then
    local python
    python=$(find_python)
    if [ -z "$python" ]; then
      printf 'python3 python3-venv python3-dev '
    else
      # An interpreter of the system comes without these.
      "$python" -c 'import ensurepip' 2>/dev/null || printf 'python3-venv '
      "$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
        printf 'python3-dev '
    fi
  fi
}

setup_packages() {
  local packages
  packages=$(missing_packages)
  [ -z "$packages" ] && return
  if ! command -v apt-get >/dev/null; then
    say "not installed, and no apt-get to install them with: $packages"
  elif [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    say "not installed, and neither root nor sudo to install them with: $packages"
  else
    say "installing system packages: $packages"
    quietly as_root apt-get update || say "apt-get update failed; trying with the lists that are there"
    # shellcheck disable=SC2086  # a list of words
    quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages ||
      say "apt-get install failed; going on with what there is"
  fi
  local tool
  for tool in c++ cmake ninja; do
    command -v "$tool" >/dev/null || fail "$tool is needed to build dynvm"
  done
}

# Does .venv hold what requirements.txt asks for.
environment_satisfied() {
  .venv/bin/python - cmake/requirements.txt <<'PYTHON' 2>/dev/null
import importlib.metadata, re, sys

def numbers(version):
    return [int(part) for part in re.findall(r"\d+", version.split("+")[0])]

tests = {">=": lambda a, b: a >= b, "<": lambda a, b: a < b}
for line in open(sys.argv[1]):
    line = line.split("#")[0].strip()
    if line:
        name, bounds = re.fullmatch(r"([\w-]+)(.*)", line).groups()
        have = numbers(importlib.metadata.version(name))
        for operator, bound in re.findall(r"(>=|<)([\d.]+)", bounds):
            assert tests[operator](have, numbers(bound))
PYTHON
}

# Without an NVIDIA GPU the CPU build of torch is taken where its index can be reached: it is a tenth of the size.
torch_index() {
  [ -e /dev/nvidiactl ] || command -v nvidia-smi >/dev/null && return
  local index=https://download.pytorch.org/whl/cpu
  if .venv/bin/python -c "import urllib.request; urllib.request.urlopen('$index/torch/', timeout=8)" 2>/dev/null; then
    printf -- '--extra-index-url %s' "$index"
  fi
}

setup_environment() {
  if [ ! -x .venv/bin/python ]; then
    local python
    python=$(find_python)
    [ -n "$python" ] || fail "dynvm runs on Python $supported_pythons, and there is none in PATH (set PYTHON=...)"
    say "making .venv with $("$python" --version)"
    quietly "$python" -m venv .venv || fail "cannot make .venv"
  fi
  supported .venv/bin/python || fail ".venv has Python $(version_of .venv/bin/python); dynvm runs on Python $supported_pythons"
  local stamp=.venv/.dynvm-requirements key
  key=$(hash_of cmake/requirements.txt .venv/pyvenv.cfg)
  [ "$(cat "$stamp" 2>/dev/null)" = "$key" ] && return
  if ! environment_satisfied; then
    say "installing torch, numpy and scikit-learn into .venv"
    # shellcheck disable=SC2046  # two words or none
    quietly .venv/bin/python -m pip install $(torch_index) -r cmake/requirements.txt || fail "pip install failed"
  fi
  printf '%s' "$key" >"$stamp"
}

# The build of preset $1, in build/$1: Ninja's target $2.
setup_build() {
  local folder=build/$1 environment
  # A build folder belongs to one interpreter and one torch.
  local made_for=$folder/.made_for
  environment=$(.venv/bin/python -c 'import importlib.metadata, sys; print(sys.prefix, sys.version, importlib.metadata.version("torch"))')
  if [ ! -f "$folder/build.ninja" ] || [ "$(cat "$made_for" 2>/dev/null)" != "$environment" ]; then
    say "configuring $folder"
    rm -f "$folder/CMakeCache.txt"
    quietly cmake --preset "$1" || fail "cmake failed"
    printf '%s' "$environment" >"$made_for"
  fi
  # Always: Ninja knows best what is to do, and a build of nothing takes a tenth of a second.
  local log=$folder/build.log pid i
  ninja -C "$folder" "$2" >"$log" 2>&1 &
  pid=$!
  for i in 1 2 3 4 5 6 7 8 9 10; do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  kill -0 "$pid" 2>/dev/null && say "building in $folder"
  if ! wait "$pid"; then
    grep -A 12 -E "^FAILED|error:|CMake Error" "$log" | head -n 80 >&2
    fail "the build failed; all of its output is in $log"
  fi
}

# build/release into .venv.
setup_installation() {
  local stamp=.venv/.dynvm-installed key
  key=$(hash_of build/release/bin/dynvm build/release/lib/dynvm/*.so $(find python/dynvm -type f ! -name "*.pyc" | sort))
  [ "$(cat "$stamp" 2>/dev/null)" = "$key" ] && [ -x .venv/bin/dynvm ] && return
  say "installing into .venv"
  quietly cmake --install build/release --prefix "$PWD/.venv" || fail "the installation failed"
  printf '%s' "$key" >"$stamp"
}

# NVRTC, by which tests compile generated CUDA sources without a GPU; a torch for CUDA brings its own. Without it they are skipped.
setup_test_packages() {
  local stamp=.venv/.dynvm-tests
  [ -e "$stamp" ] && return
  if ! .venv/bin/python -c 'import importlib.metadata as m; assert any(d.metadata["Name"].startswith("nvidia-cuda-nvrtc") for d in m.distributions())' 2>/dev/null; then
    say "installing nvidia-cuda-nvrtc into .venv"
    quietly .venv/bin/python -m pip install nvidia-cuda-nvrtc || say "no nvidia-cuda-nvrtc: the tests that need it are skipped"
  fi
  : >"$stamp"
}

# In the repository's root $1, the build of preset $2 as far as $3 says: `product`, what is installed, or `all`, with tests.
setup() {
  cd "$1" || exit 1
  setup_packages
  setup_environment
  [ "$3" != all ] || setup_test_packages
  setup_build "$2" "$3"
  [ "$2" != release ] || setup_installation
}
