# cmake -DCOMPILER= -DINCLUDES= -DHEADER= -DEXPECTATION=allowed|forbidden -P check_include.cmake
list(TRANSFORM INCLUDES PREPEND "-I")
execute_process(
  COMMAND sh -c "echo '#include \"${HEADER}\"' | \"$@\"" sh ${COMPILER} -std=c++20 -x c++ -fsyntax-only ${INCLUDES} -
  RESULT_VARIABLE status ERROR_VARIABLE errors)
if(EXPECTATION STREQUAL allowed)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${HEADER} should compile here:\n${errors}")
  endif()
elseif(status EQUAL 0 OR NOT errors MATCHES "${HEADER}: No such file or directory")
  message(FATAL_ERROR "${HEADER} must not be found here, but: ${errors}")
endif()
