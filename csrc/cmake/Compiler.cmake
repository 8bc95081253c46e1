# Supported compilers: they need C++20, and vectors of any size for the kernels.
set(oldest_GNU 11)
set(oldest_Clang 16)
if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS "${oldest_${CMAKE_CXX_COMPILER_ID}}")
  message(FATAL_ERROR "the compiler is ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, expected GCC 11 or Clang 16, "
                      "or newer; install one, and set CXX if it is not the default")
endif()

# ATen uses OpenMP for its threads. GCC includes it, clang does not.
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_FLAGS -fopenmp)
check_cxx_source_compiles("#include <omp.h>\nint main() { return omp_get_max_threads() == 0; }" ACLNN_HAS_OPENMP)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT ACLNN_HAS_OPENMP)
  message(FATAL_ERROR "${CMAKE_CXX_COMPILER} cannot build with -fopenmp; install its OpenMP, for clang 16 on Debian "
                      "libomp-16-dev, and remove the folder ${CMAKE_BINARY_DIR}")
endif()

# Objects from another build of the same sources, in this tree or another, are taken from ccache. clang is excluded,
# because its precompiled headers belong to one tree; so is a ccache that does not work, e.g. if HOME is not writable.
if(ACLNN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  find_program(CCACHE ccache)
  set(launcher "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime "${CCACHE}")
  file(WRITE "${CMAKE_BINARY_DIR}/CMakeFiles/empty.cpp" "")
  execute_process(COMMAND ${launcher} "${CMAKE_CXX_COMPILER}" -c empty.cpp -o empty.o RESULT_VARIABLE status
                  WORKING_DIRECTORY "${CMAKE_BINARY_DIR}/CMakeFiles" OUTPUT_QUIET ERROR_QUIET)
  if(status EQUAL 0)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
    add_compile_options(-fpch-preprocess)  # needed for ccache to handle precompiled headers
  endif()
endif()

# Flags for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# The build produces exactly the files that are installed.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_MESSAGE NEVER)
if(CMAKE_INSTALL_PREFIX_INITIALIZED_TO_DEFAULT)
  set(CMAKE_INSTALL_PREFIX "${CMAKE_BINARY_DIR}/package/aclnn_torch" CACHE PATH "The Python package's folder" FORCE)
endif()

add_compile_options(-ffp-contract=off -Wall -Wextra -Wno-unused-parameter -Wno-psabi -fstack-protector-strong)
add_link_options(LINKER:-z,relro,-z,now,-z,noexecstack)
link_libraries(${CMAKE_DL_LIBS})  # before glibc 2.34, dlopen is in a separate library

# Optimising instrumented code takes minutes for a single kernel.
set(address_flags -O0 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
if(ACLNN_SANITIZER STREQUAL "")
  add_compile_options(-O3 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  add_link_options(LINKER:-z,defs)
else()
  set(address ${address_flags})
  set(thread -O1 -fsanitize=thread)
  set(fuzz ${address_flags} -fsanitize-coverage=trace-pc,trace-cmp)
  if(NOT DEFINED ${ACLNN_SANITIZER})
    message(FATAL_ERROR "ACLNN_SANITIZER is ${ACLNN_SANITIZER}, expected address, thread, fuzz or nothing")
  endif()
  # Without optimisation, GCC does not recognise that a switch over all enumerators always returns.
  add_compile_options(${${ACLNN_SANITIZER}} -g1 -Wno-return-type)
  add_link_options(${${ACLNN_SANITIZER}})
endif()
