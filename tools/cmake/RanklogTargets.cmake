# One way to declare a component library, so that every folder has the same shape:
# public headers under include/, private ones beside the sources in src/.

# Warnings of our own targets only; they never travel to users. -Werror comes from the presets.
function(ranklog_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
endfunction()

# ranklog_library(<component> SOURCES ... [LINK_PUBLIC ...] [LINK_PRIVATE ...])
# makes the static library ranklog_<component> with the alias ranklog::<component>.
function(ranklog_library component)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK_PUBLIC;LINK_PRIVATE" ${ARGN})
  set(target ranklog_${component})
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(ranklog::${component} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${component})
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS include/*.hpp include/*.h)
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS include FILES ${headers})
  target_include_directories(${target} PRIVATE src)
  target_link_libraries(${target} PUBLIC ${arg_LINK_PUBLIC} PRIVATE ${arg_LINK_PRIVATE})
  ranklog_warnings(${target})
endfunction()

# ranklog_program(<name> SOURCES ... LINK ...) makes build/<preset>/bin/<name>.
function(ranklog_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK})
  ranklog_warnings(${name})
endfunction()

# Seconds that a test may take: with sanitizers many times what it takes without.
function(ranklog_timeout variable seconds)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    math(EXPR seconds "10 * ${seconds}")
  endif()
  set(${variable} ${seconds} PARENT_SCOPE)
endfunction()

# ranklog_test(<name> SOURCES ... LINK ... [LABELS ...] [TIMEOUT s]) makes a GoogleTest binary, one ctest entry a test.
function(ranklog_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  ranklog_timeout(timeout ${arg_TIMEOUT})
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${arg_LINK} GTest::gtest GTest::gtest_main)
  ranklog_warnings(${name})
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${timeout})
endfunction()
