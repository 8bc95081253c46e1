# The host CANN's libraries as imported targets:
#
#   AclnnTorch::ascendcl   AscendCL: devices, memory, streams, events
#   AclnnTorch::nnopbase   descriptors and executors; brings ascendcl
#   AclnnTorch::opapi      the aclnn operators; brings both, so it is the one to link
#
# And for programs that use libtorch:
#
#   AclnnTorch::torch      the operators of torch.ops.aclnn, registered when the program starts
#
# AclnnTorch_INCLUDE_DIR and AclnnTorch_LIBRARY_DIR hold the directories.

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

# Kept though the program calls nothing in it: it is there to be loaded.
get_filename_component(_aclnn_torch_package "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)
if(EXISTS "${_aclnn_torch_package}/libaclnn_torch.so" AND NOT TARGET AclnnTorch::torch)
  add_library(AclnnTorch::torch INTERFACE IMPORTED)
  # Options, since of libraries only paths are quoted for the shell.
  set_target_properties(AclnnTorch::torch PROPERTIES INTERFACE_LINK_OPTIONS
    "-Wl,--push-state,--no-as-needed,${_aclnn_torch_package}/libaclnn_torch.so,--pop-state;-Wl,-rpath,${_aclnn_torch_package}")
endif()
unset(_aclnn_torch_package)

cmake_policy(POP)
