# The build's folder has the package as it is installed, so that its libraries find one another there, too.
set(PACKAGE "${CMAKE_BINARY_DIR}/package/aclnn_torch")

# What is installed is of one of two components. `core` is what CPU tensors need, and a target that builds no more; `cann`
# is the folder that looks like an installed CANN, with what needs torch_npu.
add_custom_target(core)

# A library of the package in `folder`, which is installed there.
function(package_library target folder component)
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PACKAGE}/${folder}")
  install(TARGETS ${target} LIBRARY DESTINATION ${folder} COMPONENT ${component})
  if(component STREQUAL "core")
    add_dependencies(core ${target})
  endif()
endfunction()

# Compiles the files of a target as one for each `count` of them: most of the time to compile one goes into the headers.
# Names in unnamed namespaces meet, so that they differ, or each file has a namespace of its own.
function(compile_together target count)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${ACLNN_UNITY} UNITY_BUILD_BATCH_SIZE ${count})
  # GCC takes what is included for a header, and an unnamed namespace there for a mistake.
  if(ACLNN_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# A library that exports what a version script says. Never unloaded: it has threads, and state that lasts as long as
# the process.
function(export_by target script)
  target_link_options(${target} PRIVATE "LINKER:--version-script=${script}" LINKER:-z,nodelete)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${script}")
endfunction()
