# The host CANN's libraries as imported targets:
#
#   AclnnTorch::ascendcl   AscendCL: devices, memory, streams, events
#   AclnnTorch::nnopbase   descriptors and executors; brings ascendcl
#   AclnnTorch::opapi      the aclnn operators; brings both, so it is the one to link
#
# And for programs that use libtorch:
#
#   AclnnTorch::torch      the operators of torch.ops.aclnn, registered when the program starts; brings torch, without
#                          the CUDA toolkit, which the CMake package of torch's CUDA build requires
#
# AclnnTorch_INCLUDE_DIR and AclnnTorch_LIBRARY_DIR hold the directories. AclnnTorch_TORCH_DIR is torch's folder: the
# one that the package was built with, or the torch beside it; set it if torch is elsewhere.

cmake_policy(PUSH)
cmake_policy(VERSION 3.13)

get_filename_component(AclnnTorch_INCLUDE_DIR "${CMAKE_CURRENT_LIST_DIR}/../../../include" ABSOLUTE)
get_filename_component(AclnnTorch_LIBRARY_DIR "${CMAKE_CURRENT_LIST_DIR}/../../../lib64" ABSOLUTE)

function(_aclnn_torch_library name)
  if(TARGET AclnnTorch::${name})
    return()
  endif()
  set(location "${AclnnTorch_LIBRARY_DIR}/lib${name}.so")
  if(NOT EXISTS "${location}")
    set(AclnnTorch_FOUND FALSE PARENT_SCOPE)
    set(AclnnTorch_NOT_FOUND_MESSAGE "${location} is missing: build aclnn_torch first" PARENT_SCOPE)
    return()
  endif()
  set(needed ${ARGN})
  list(TRANSFORM needed PREPEND "AclnnTorch::")
  add_library(AclnnTorch::${name} SHARED IMPORTED)
  set_target_properties(AclnnTorch::${name} PROPERTIES
    IMPORTED_LOCATION "${location}"
    IMPORTED_SONAME "lib${name}.so"
    INTERFACE_INCLUDE_DIRECTORIES "${AclnnTorch_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${needed}")
endfunction()

_aclnn_torch_library(ascendcl)
_aclnn_torch_library(nnopbase ascendcl)
_aclnn_torch_library(opapi nnopbase ascendcl)

# The linker keeps the library of AclnnTorch::torch although the program calls nothing in it: loading it is enough.
get_filename_component(_aclnn_torch_package "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)
if(NOT AclnnTorch_TORCH_DIR)
  set(AclnnTorch_TORCH_DIR "@TORCH_OF_PACKAGE@")
  if(NOT AclnnTorch_TORCH_DIR)
    get_filename_component(AclnnTorch_TORCH_DIR "${_aclnn_torch_package}/../torch" ABSOLUTE)
  endif()
endif()
if(EXISTS "${_aclnn_torch_package}/libaclnn_torch.so" AND EXISTS "${AclnnTorch_TORCH_DIR}/lib/libtorch_cpu.so"
   AND NOT TARGET AclnnTorch::torch)
  add_library(AclnnTorch::torch INTERFACE IMPORTED)
  set(_aclnn_torch_lib "${AclnnTorch_TORCH_DIR}/lib")
  set(_aclnn_torch_include "${AclnnTorch_TORCH_DIR}/include")
  # Link options, because CMake quotes only paths of libraries for the shell; options precede the libraries that use
  # them. torch's libraries find their own dependencies.
  set_target_properties(AclnnTorch::torch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_aclnn_torch_include};${_aclnn_torch_include}/torch/csrc/api/include"
    INTERFACE_LINK_OPTIONS
    "-Wl,--push-state,--no-as-needed,${_aclnn_torch_package}/libaclnn_torch.so,${_aclnn_torch_lib}/libtorch_cpu.so;\
-Wl,${_aclnn_torch_lib}/libc10.so,--pop-state,--unresolved-symbols=ignore-in-shared-libs;\
-Wl,-rpath,${_aclnn_torch_package},-rpath,${_aclnn_torch_lib}")
  unset(_aclnn_torch_lib)
  unset(_aclnn_torch_include)
endif()
unset(_aclnn_torch_package)

cmake_policy(POP)
