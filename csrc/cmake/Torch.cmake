# Finds torch through its Python. find_package(Torch) would require the CUDA toolkit for a CUDA build.
#
#   torch_headers   for compiling against torch
#   torch_cpu       for linking with torch; torch_rpath() sets the run path to its libraries
set(python "${ACLNN_PYTHON}")
if(NOT python)
  find_program(python NAMES python3 python HINTS "${CMAKE_SOURCE_DIR}/.venv/bin" NO_CACHE REQUIRED)
endif()
execute_process(COMMAND "${python}" "${CMAKE_CURRENT_LIST_DIR}/find_torch.py"
                OUTPUT_VARIABLE commands COMMAND_ERROR_IS_FATAL ANY)
cmake_language(EVAL CODE "${commands}")
if(ACLNN_TORCH_DIR)
  set(TORCH_DIR "${ACLNN_TORCH_DIR}")
endif()
if(NOT EXISTS "${TORCH_DIR}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "no torch: ${python} has none, and ACLNN_TORCH_DIR is \"${ACLNN_TORCH_DIR}\"; set ACLNN_PYTHON")
endif()
set(TORCH_LIB "${TORCH_DIR}/lib")
if(ACLNN_PYTHON_INCLUDE)
  set(PYTHON_INCLUDE "${ACLNN_PYTHON_INCLUDE}")
endif()
if(CMAKE_CROSSCOMPILING)  # ACLNN_PYTHON's suffix is that of the build machine
  list(GET PYTHON_INCLUDE 0 folder)
  if(NOT EXISTS "${folder}/patchlevel.h")
    message(FATAL_ERROR "no headers of Python in \"${folder}\"; set ACLNN_PYTHON_INCLUDE to the folder that has Python.h")
  endif()
  file(STRINGS "${folder}/patchlevel.h" lines REGEX "define PY_(MAJOR|MINOR)_VERSION")
  string(REGEX REPLACE "[^0-9]" "" version "${lines}")
  set(PYTHON_MODULE_SUFFIX ".cpython-${version}-${CMAKE_SYSTEM_PROCESSOR}-linux-gnu.so")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/find_torch.py"
             "${TORCH_DIR}/version.py" "${CMAKE_SOURCE_DIR}/pyproject.toml")

# torch's version, and the versions that the package supports, each read from where it is defined.
file(STRINGS "${TORCH_DIR}/version.py" line REGEX "^__version__ = ")
string(REGEX MATCH "([0-9]+[.][0-9]+)[^'\"]*" TORCH_VERSION "${line}")
set(TORCH_SERIES "${CMAKE_MATCH_1}")
file(STRINGS "${CMAKE_SOURCE_DIR}/pyproject.toml" line REGEX "^requires = ")
string(REGEX MATCH "torch>=([0-9.]+),<([0-9.]+)" range "${line}")
if(TORCH_SERIES VERSION_LESS CMAKE_MATCH_1)
  message(FATAL_ERROR "torch in ${TORCH_DIR} is ${TORCH_VERSION}, expected ${range}; pip install '${range}'")
elseif(TORCH_SERIES VERSION_GREATER_EQUAL CMAKE_MATCH_2)
  message(WARNING "torch in ${TORCH_DIR} is ${TORCH_VERSION}, which aclnn_torch was never built with; if this fails, or "
                  "`make test`, pip install '${range}'")
endif()
# What older versions lack is left out, and said once for a version; docs/compatibility.md has the consequences.
set(missing "")
foreach(since_and_name "2.9;torch.backends.mkldnn.conv.fp32_precision" "2.11;torch.nn.functional.linear_cross_entropy"
                       "2.13;tags of operators in place")
  list(GET since_and_name 0 since)
  list(GET since_and_name 1 name)
  if(TORCH_SERIES VERSION_LESS since)
    list(APPEND missing "${name} (since ${since})")
  endif()
endforeach()
if(missing AND NOT TORCH_VERSION STREQUAL "${ACLNN_OLDER_TORCH}")
  list(JOIN missing ", " missing)
  message(NOTICE "torch ${TORCH_VERSION} lacks ${missing}; docs/compatibility.md says what aclnn_torch does without")
endif()
set(ACLNN_OLDER_TORCH "${TORCH_VERSION}" CACHE INTERNAL "the version of torch of which this was said")
# torch's binary interface changes with every series: at import, the package compares this version with torch's.
file(CONFIGURE OUTPUT package/aclnn_torch/lib/torch_version.txt CONTENT "${TORCH_VERSION}\n")
install(FILES "${CMAKE_BINARY_DIR}/package/aclnn_torch/lib/torch_version.txt" DESTINATION lib
        COMPONENT core)

add_library(torch_headers INTERFACE)
target_include_directories(torch_headers SYSTEM INTERFACE
  "${TORCH_DIR}/include" "${TORCH_DIR}/include/torch/csrc/api/include")
target_compile_definitions(torch_headers INTERFACE _GLIBCXX_USE_CXX11_ABI=1)
target_compile_options(torch_headers INTERFACE -fopenmp)

add_library(torch_cpu INTERFACE)
target_link_directories(torch_cpu INTERFACE "${TORCH_LIB}")
target_link_options(torch_cpu INTERFACE -fopenmp)
target_link_libraries(torch_cpu INTERFACE -ltorch_cpu -lc10)

add_library(python_headers INTERFACE)
target_include_directories(python_headers SYSTEM INTERFACE "${PYBIND11_INCLUDE}" "${PYTHON_INCLUDE}")

# Appends torch's libraries to a library's run path; `beside` is the relative path to them in a wheel.
function(torch_rpath target beside)
  if(ACLNN_RELOCATABLE)
    set(folder "$ORIGIN/${beside}")
  else()
    set(folder "${TORCH_LIB}")
  endif()
  set_property(TARGET ${target} APPEND PROPERTY INSTALL_RPATH "${folder}")
endfunction()
