# LibTorch with c10d and Gloo, as the target ranklog_torch. Included only with RANKLOG_TRAINER=ON. Everything
# that Torch's own package file sets stays inside the function below; only imported targets come out of it.

function(ranklog_find_torch)
  set(CMAKE_MESSAGE_LOG_LEVEL ERROR) # Torch's file reports what it looked for even if it is told to be quiet
  find_package(Torch CONFIG QUIET)
  unset(CMAKE_MESSAGE_LOG_LEVEL)
  if(NOT Torch_FOUND)
    message(FATAL_ERROR "ranklog's trainer needs LibTorch 1.13 or later: install Debian's libtorch-dev and "
                        "libgloo-dev, or point CMAKE_PREFIX_PATH at it, or build without the trainer by "
                        "-DRANKLOG_TRAINER=OFF.")
  endif()
  if(Torch_VERSION AND Torch_VERSION VERSION_LESS 1.13)
    message(FATAL_ERROR "ranklog's trainer needs LibTorch 1.13 or later, but found ${Torch_VERSION} in ${Torch_DIR}: "
                        "point CMAKE_PREFIX_PATH at a newer one, or build without the trainer by "
                        "-DRANKLOG_TRAINER=OFF.")
  endif()

  # ProcessGroupGloo.hpp includes Gloo's headers, and they must be those that this LibTorch was built with:
  # so they are looked for beside it, never elsewhere on the machine.
  get_target_property(torch_includes torch INTERFACE_INCLUDE_DIRECTORIES)
  find_path(RANKLOG_GLOO_INCLUDE_DIR gloo/rendezvous/store.h
            HINTS ${TORCH_INCLUDE_DIRS} ${torch_includes} NO_DEFAULT_PATH
            DOC "Folder that holds gloo/, as LibTorch was built with")
  if(NOT RANKLOG_GLOO_INCLUDE_DIR)
    list(GET TORCH_INCLUDE_DIRS 0 place)
    message(FATAL_ERROR "ranklog's trainer needs Gloo's headers, which the LibTorch in ${place} does not bring along "
                        "(PyTorch's wheels leave them out): use Debian's libtorch-dev with libgloo-dev, give the "
                        "matching headers by -DRANKLOG_GLOO_INCLUDE_DIR=DIR, or build without the trainer by "
                        "-DRANKLOG_TRAINER=OFF.")
  endif()

  add_library(ranklog_torch INTERFACE)
  target_link_libraries(ranklog_torch INTERFACE ${TORCH_LIBRARIES})
  target_include_directories(ranklog_torch SYSTEM INTERFACE ${RANKLOG_GLOO_INCLUDE_DIR} ${TORCH_INCLUDE_DIRS})
  target_compile_definitions(ranklog_torch INTERFACE USE_C10D_GLOO)

  # 1.13's package leaves out one header that its own reducer.hpp includes; trainer/ brings a substitute.
  find_path(RANKLOG_TORCH_CONTEXT_HEADER torch/csrc/distributed/autograd/context/context.h
            HINTS ${TORCH_INCLUDE_DIRS} ${torch_includes} NO_DEFAULT_PATH)
  mark_as_advanced(RANKLOG_GLOO_INCLUDE_DIR RANKLOG_TORCH_CONTEXT_HEADER)
  if(NOT RANKLOG_TORCH_CONTEXT_HEADER)
    set(RANKLOG_TORCH_LACKS_CONTEXT_HEADER ON PARENT_SCOPE)
  endif()
  message(STATUS "LibTorch ${Torch_VERSION}: ${TORCH_LIBRARY}")
endfunction()

ranklog_find_torch()
