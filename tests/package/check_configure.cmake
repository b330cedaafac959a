# cmake -DSOURCE= -DWORK= -DCASE=no_gloo_headers|no_torch|no_heavy_packages [-DTARGET=] -P check_configure.cmake
# Configures the project afresh in WORK, as somebody whose machine lacks a package would.
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})

function(configure status errors)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G Ninja -DBUILD_TESTING=OFF ${ARGN}
    RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE text)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  set(${status} ${result} PARENT_SCOPE)
  set(${errors} "${text}" PARENT_SCOPE)
endfunction()

# One error, and it is this one.
function(expect_refusal status errors sentence)
  string(REGEX MATCHALL "CMake Error" all "${errors}")
  list(LENGTH all count)
  if(status EQUAL 0 OR NOT count EQUAL 1 OR NOT errors MATCHES "${sentence}")
    message(FATAL_ERROR "expected one error that says \"${sentence}\", but status ${status}:\n${errors}")
  endif()
endfunction()

if(CASE STREQUAL no_gloo_headers)
  # As PyTorch's wheels are: a package file and headers, but not Gloo's.
  set(torch ${WORK}/torch)
  file(MAKE_DIRECTORY ${torch}/include/torch)
  file(WRITE ${torch}/share/cmake/Torch/TorchConfig.cmake
    "set(TORCH_INCLUDE_DIRS ${torch}/include)\nadd_library(torch INTERFACE IMPORTED)\nset(TORCH_LIBRARIES torch)\n"
    "set_target_properties(torch PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${torch}/include)\nset(Torch_FOUND TRUE)\n")
  configure(status errors -DTorch_DIR=${torch}/share/cmake/Torch)
  expect_refusal(${status} "${errors}" "needs Gloo's headers, which the LibTorch in ${torch}/include does not bring along")
elseif(CASE STREQUAL no_torch)
  configure(status errors -DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON)
  expect_refusal(${status} "${errors}" "needs LibTorch 1.13 or later: install Debian's libtorch-dev")
elseif(CASE STREQUAL no_heavy_packages)
  configure(status errors -DRANKLOG_TRAINER=OFF -DRANKLOG_SYNC=OFF -DRANKLOG_STANDIN=OFF -DCMAKE_BUILD_TYPE=Debug
    -DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON -DCMAKE_DISABLE_FIND_PACKAGE_CURL=ON -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "should configure without LibTorch, libcurl and cpp-httplib:\n${errors}")
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build RESULT_VARIABLE status OUTPUT_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "should build without LibTorch, libcurl and cpp-httplib:\n${output}")
  endif()
  foreach(program ranklog wandb-sync ranklog-train wandb-standin)
    set(exists NO)
    if(EXISTS ${WORK}/build/bin/${program})
      set(exists YES)
    endif()
    if((program STREQUAL ranklog) AND NOT exists OR NOT (program STREQUAL ranklog) AND exists)
      message(FATAL_ERROR "${program}: built is ${exists}")
    endif()
  endforeach()
else()
  message(FATAL_ERROR "unknown CASE '${CASE}'")
endif()
file(REMOVE_RECURSE ${WORK})
