# Writes a source file that defines the functions of LIBRARY as stubs with the same names.
execute_process(COMMAND "${NM}" -D --defined-only "${LIBRARY}" OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^ \n]+\n" names "${lines}")
set(text "")
foreach(name IN LISTS names)
  string(STRIP "${name}" name)
  if(NOT name MATCHES "^_Z")  # C++
    string(APPEND text "asm(\".globl ${name}; .type ${name}, %function; ${name}:\");\n")
  endif()
endforeach()
file(WRITE "${OUTPUT}" "${text}asm(\".long 0\");\n")
