# Functions that the folders' CMakeLists.txt use.
#
#   dynvm_library(ir SOURCES a.cpp LIBS fmt::fmt)     the static library dynvm_ir
#   dynvm_shared_library(dynvm_torch ...)             a shared library in lib/dynvm, installed, its archives' symbols hidden
#   dynvm_gtest(ir_parse SOURCES t.cpp LIBS ... [PYTHON])   a GoogleTest program; PYTHON: it embeds the interpreter
#   dynvm_python_suite(launcher [FULL])               tests/<name>/test_*.py, run by tests/lib/suite.py
#   dynvm_test(name COMMAND ...)                      anything else: exit status 0 passed, 77 skipped; a last line
#                                                     "N passed, N failed, N skipped" gives counts
# FULL: only `./check --full` runs it. A library or Python that a test needs and that is absent: the test is registered as
# skipped, with the reason.
set(DYNVM_LIB_DIR ${CMAKE_BINARY_DIR}/lib/dynvm)
set(DYNVM_BIN_DIR ${CMAKE_BINARY_DIR}/bin)

# What a process that loads sanitized libraries later must have from its start: the sanitizer's runtime, first of all, and
# C++'s library, without which the runtime cannot follow exceptions.
set(DYNVM_SANITIZER_PRELOAD)
if(DYNVM_SANITIZE MATCHES "address")
  foreach(library libasan.so libstdc++.so)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${library} OUTPUT_VARIABLE file OUTPUT_STRIP_TRAILING_WHITESPACE)
    get_filename_component(file "${file}" REALPATH)
    list(APPEND DYNVM_SANITIZER_PRELOAD ${file})
  endforeach()
  list(JOIN DYNVM_SANITIZER_PRELOAD ":" DYNVM_SANITIZER_PRELOAD)
endif()

function(dynvm_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS" ${ARGN})
  add_library(dynvm_${name} STATIC ${arg_SOURCES})
  target_link_libraries(dynvm_${name} PUBLIC ${arg_LIBS})
endfunction()

function(dynvm_shared_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} SHARED ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBS})
  target_link_options(${name} PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${DYNVM_LIB_DIR})
  install(TARGETS ${name} LIBRARY DESTINATION lib/dynvm)
endfunction()

function(dynvm_test name)
  cmake_parse_arguments(arg "FULL" "" "COMMAND" ${ARGN})
  if(NOT DYNVM_TESTS)
    return()
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT "DYNVM=${DYNVM_BIN_DIR}/dynvm;DYNVM_TEST_PYTHON=${DYNVM_PYTHON}" SKIP_RETURN_CODE 77)
  if(DYNVM_SANITIZE)  # CPython leaves memory behind; all takes longer
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1;DYNVM_TEST_PATIENCE=4")
  endif()
  if(arg_FULL)
    set_tests_properties(${name} PROPERTIES LABELS full)
  endif()
endfunction()

# A test whose Python loads a module of this build.
function(dynvm_loads_module name)
  if(DYNVM_SANITIZER_PRELOAD)
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "LD_PRELOAD=${DYNVM_SANITIZER_PRELOAD};ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1")
  endif()
endfunction()

function(dynvm_gtest name)
  cmake_parse_arguments(arg "PYTHON;FULL" "" "SOURCES;LIBS" ${ARGN})
  if(NOT DYNVM_TESTS)
    return()
  endif()
  set(full)
  if(arg_FULL)
    set(full FULL)
  endif()
  if(arg_PYTHON AND NOT TARGET Python::Python)
    dynvm_test(${name} ${full} COMMAND ${CMAKE_COMMAND} -E echo "0 passed, 0 failed, 1 skipped: no libpython to link with")
    return()
  endif()
  add_executable(test_${name} ${arg_SOURCES})
  target_link_libraries(test_${name} PRIVATE ${arg_LIBS} GTest::gtest GTest::gtest_main)
  if(arg_PYTHON)
    target_link_libraries(test_${name} PRIVATE Python::Python)
  endif()
  set_target_properties(test_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  dynvm_test(${name} ${full} COMMAND test_${name})
  set_property(TEST ${name} APPEND PROPERTY LABELS gtest)
endfunction()

function(dynvm_python_suite name)
  dynvm_test(${name} ${ARGN} COMMAND ${DYNVM_PYTHON} ${CMAKE_SOURCE_DIR}/tests/lib/suite.py ${CMAKE_CURRENT_SOURCE_DIR})
endfunction()
