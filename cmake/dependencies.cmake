# Libraries from the system, or built from their sources where the system has none.
#
# Outputs: targets fmt::fmt, asmjit::asmjit (fit for shared libraries), xbyak::xbyak, nlohmann_json::nlohmann_json, tomlplusplus::tomlplusplus; with
#   tests GTest::gtest and GTest::gtest_main; with benchmarks benchmark::benchmark.
include(FetchContent)
set(FETCHCONTENT_QUIET OFF)
set(BUILD_SHARED_LIBS OFF)

function(dynvm_fetch name url)
  message(STATUS "${name} is not installed: building it from ${url}")
  FetchContent_Declare(${name} URL ${url} DOWNLOAD_EXTRACT_TIMESTAMP ON)
  FetchContent_MakeAvailable(${name})
endfunction()

find_package(fmt 9 QUIET)
if(NOT TARGET fmt::fmt)
  dynvm_fetch(fmt https://github.com/fmtlib/fmt/archive/refs/tags/9.1.0.tar.gz)
endif()

find_package(nlohmann_json 3.10 QUIET)
if(NOT TARGET nlohmann_json::nlohmann_json)
  set(JSON_BuildTests OFF)
  dynvm_fetch(json https://github.com/nlohmann/json/archive/refs/tags/v3.11.2.tar.gz)
endif()

# Its headers alone: what a distribution builds from them is for programs that use exceptions.
find_path(DYNVM_TOML_HEADERS toml++/toml.h)
if(DYNVM_TOML_HEADERS)
  add_library(tomlplusplus::tomlplusplus INTERFACE IMPORTED)
  target_include_directories(tomlplusplus::tomlplusplus SYSTEM INTERFACE ${DYNVM_TOML_HEADERS})
else()
  dynvm_fetch(tomlplusplus https://github.com/marzer/tomlplusplus/archive/refs/tags/v3.3.0.tar.gz)
endif()

find_package(xbyak QUIET)
if(NOT TARGET xbyak::xbyak)
  dynvm_fetch(xbyak https://github.com/herumi/xbyak/archive/refs/tags/v6.68.tar.gz)
endif()

find_package(asmjit QUIET)
if(TARGET asmjit::asmjit)
  include(asmjit_pic)
else()
  set(ASMJIT_STATIC ON)
  # The state that Debian 12 and Ubuntu 24.04 package.
  dynvm_fetch(asmjit https://github.com/asmjit/asmjit/archive/5b5b0b38775938df4d3779604ff1db60b9a9dcbf.tar.gz)
  if(NOT TARGET asmjit::asmjit)
    add_library(asmjit::asmjit ALIAS asmjit)
  endif()
endif()

if(DYNVM_TESTS)
  find_package(GTest QUIET)
  if(NOT TARGET GTest::gtest)
    dynvm_fetch(googletest https://github.com/google/googletest/archive/refs/tags/release-1.12.1.tar.gz)
  endif()
endif()

if(DYNVM_BENCHMARKS)
  find_package(benchmark QUIET)
  if(NOT TARGET benchmark::benchmark)
    set(BENCHMARK_ENABLE_TESTING OFF)
    dynvm_fetch(benchmark https://github.com/google/benchmark/archive/refs/tags/v1.7.1.tar.gz)
  endif()
endif()
