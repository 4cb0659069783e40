# Makes a packaged static asmjit fit for a shared library.
#
# Debian's libasmjit.a is compiled as position-independent code for executables (-fPIE). The one thing that keeps it out
# of a shared library is its direct use of libc's variable `stderr`; asmjit's own symbols are no obstacle once they are
# hidden with --exclude-libs (dynvm_shared_library does). So, where a trial link fails, asmjit::asmjit gets a copy of the
# archive with that symbol renamed to one that dynvm defines next to it.
# Test: the trial is linked again with the copy.
function(dynvm_asmjit_links result)
  set(trial ${CMAKE_BINARY_DIR}/cmake/asmjit_trial)
  file(WRITE ${trial}.cpp [[
#include <asmjit/asmjit.h>
extern "C" int trial() {
  asmjit::FileLogger logger(nullptr);
  asmjit::JitRuntime runtime;
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  code.setLogger(&logger);
  asmjit::x86::Compiler compiler(&code);
  compiler.addFunc(asmjit::FuncSignatureT<void>());
  compiler.endFunc();
  return int(compiler.finalize());
}
]])
  execute_process(
    COMMAND ${CMAKE_CXX_COMPILER} -std=c++17 -DASMJIT_STATIC -shared -fPIC -Wl,--exclude-libs,ALL ${trial}.cpp ${ARGN}
            -lpthread -lrt -o ${trial}.so
    RESULT_VARIABLE code OUTPUT_VARIABLE log ERROR_VARIABLE log)
  if(code EQUAL 0)
    set(${result} TRUE PARENT_SCOPE)
  else()
    set(${result} FALSE PARENT_SCOPE)
    set(trial_log "${log}" PARENT_SCOPE)
  endif()
endfunction()

set(asmjit_archive)
foreach(property IMPORTED_LOCATION IMPORTED_LOCATION_RELEASE IMPORTED_LOCATION_NONE IMPORTED_LOCATION_NOCONFIG)
  get_target_property(location asmjit::asmjit ${property})
  if(location)
    set(asmjit_archive ${location})
  endif()
endforeach()

if(asmjit_archive MATCHES "\\.a$")
  if(NOT DEFINED CACHE{DYNVM_ASMJIT_LINKS})
    dynvm_asmjit_links(links ${asmjit_archive})
    set(DYNVM_ASMJIT_LINKS ${links} CACHE INTERNAL "The packaged asmjit can be linked into shared libraries as it is")
  endif()
  if(NOT DYNVM_ASMJIT_LINKS)
    set(asmjit_copy ${CMAKE_BINARY_DIR}/cmake/libasmjit_pic.a)
    set(asmjit_stderr ${CMAKE_BINARY_DIR}/cmake/asmjit_stderr.c)
    if(NOT EXISTS ${asmjit_copy})
      execute_process(COMMAND ${CMAKE_OBJCOPY} --redefine-sym stderr=dynvm_asmjit_stderr ${asmjit_archive} ${asmjit_copy}
                      COMMAND_ERROR_IS_FATAL ANY)
      file(WRITE ${asmjit_stderr} [[
// asmjit's `stderr`: see cmake/asmjit_pic.cmake.
#include <stdio.h>
__attribute__((visibility("hidden"))) FILE* dynvm_asmjit_stderr;
__attribute__((constructor)) static void set_stderr(void) { dynvm_asmjit_stderr = stderr; }
]])
      dynvm_asmjit_links(links -xc ${asmjit_stderr} -x none ${asmjit_copy})
      if(NOT links)
        file(REMOVE ${asmjit_copy})
        message(FATAL_ERROR "cannot make ${asmjit_archive} fit for a shared library:\n${trial_log}")
      endif()
    endif()
    add_library(dynvm_asmjit_stderr STATIC ${asmjit_stderr})
    foreach(property IMPORTED_LOCATION IMPORTED_LOCATION_RELEASE IMPORTED_LOCATION_NONE)
      set_target_properties(asmjit::asmjit PROPERTIES ${property} ${asmjit_copy})
    endforeach()
    set_property(TARGET asmjit::asmjit APPEND PROPERTY INTERFACE_LINK_LIBRARIES dynvm_asmjit_stderr)
  endif()
endif()
