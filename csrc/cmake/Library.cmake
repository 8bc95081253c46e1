# The build's folder has the layout of the installed package, so that its libraries find one another there, too.
set(PACKAGE "${CMAKE_BINARY_DIR}/package/aclnn_torch")

# There are two components for installation. `core`, also a target, is for CPU tensors; `cann` is the prefix, laid out
# as an installed CANN, and the library that needs torch_npu.
add_custom_target(core)

# Adds a library of the package, installed in `folder`.
function(package_library target folder component)
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PACKAGE}/${folder}")
  install(TARGETS ${target} LIBRARY DESTINATION ${folder} COMPONENT ${component})
  if(component STREQUAL "core")
    add_dependencies(core ${target})
  endif()
endfunction()

# Compiles `count` files of a target together, because most of the time to compile one is spent on headers. Their
# unnamed namespaces are merged, so names must differ, or each file has its own namespace.
function(compile_together target count)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${ACLNN_UNITY} UNITY_BUILD_BATCH_SIZE ${count})
  # GCC treats included files as headers, and warns about unnamed namespaces there.
  if(ACLNN_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# Adds a library whose exports a version script lists. It is never unloaded, because it has threads and process-wide
# state.
function(export_by target script)
  target_link_options(${target} PRIVATE "LINKER:--version-script=${script}" LINKER:-z,nodelete)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${script}")
endfunction()
