# The Python that dynvm is built for, and its torch.
#
# Input: DYNVM_PYTHON. Outputs: DYNVM_PYTHON_VERSION ("3.11.7"), DYNVM_PYTHON_TAG ("cp311"), DYNVM_PYTHON_NUMBER ("311"), DYNVM_PYTHON_PREFIX (of the
#   environment), DYNVM_TORCH_VERSION ("" without torch), DYNVM_TORCH_DIR; targets Python::Module (headers only: the VM
#   library takes its symbols from the process) and, where there is a libpython to link, Python::Python for tests.
# find_package(Torch) itself is left to runtime/torch, so that its variables stay there.
if(NOT EXISTS "${DYNVM_PYTHON}")
  message(FATAL_ERROR "no interpreter at ${DYNVM_PYTHON}: ./run and ./check make the environment, or set -DDYNVM_PYTHON")
endif()
set(Python_EXECUTABLE "${DYNVM_PYTHON}")
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.Embed)
set(DYNVM_PYTHON_VERSION ${Python_VERSION})
set(DYNVM_PYTHON_TAG cp${Python_VERSION_MAJOR}${Python_VERSION_MINOR})
set(DYNVM_PYTHON_NUMBER ${Python_VERSION_MAJOR}${Python_VERSION_MINOR})

execute_process(
  COMMAND "${DYNVM_PYTHON}" -c [[
import importlib.util, os, re, sys, sysconfig
print(sys.prefix)
print(sysconfig.get_path("purelib"))
spec = importlib.util.find_spec("torch")
if spec:
    folder = list(spec.submodule_search_locations)[0]
    with open(os.path.join(folder, "version.py")) as file:
        print(re.search(r"__version__ = '([^']+)'", file.read()).group(1))
    print(folder)
]]
  OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" answer "${answer}")
list(LENGTH answer answer_length)
list(GET answer 0 DYNVM_PYTHON_PREFIX)
list(GET answer 1 DYNVM_PYTHON_PACKAGES)
set(DYNVM_TORCH_VERSION "")
if(answer_length GREATER 3)
  list(GET answer 2 DYNVM_TORCH_VERSION)
  list(GET answer 3 DYNVM_TORCH_DIR)
  list(APPEND CMAKE_PREFIX_PATH "${DYNVM_TORCH_DIR}")
endif()
message(STATUS "dynvm for Python ${DYNVM_PYTHON_VERSION}, torch ${DYNVM_TORCH_VERSION} in ${DYNVM_PYTHON_PREFIX}")
