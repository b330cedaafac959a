# Every third-party package, found in one place. What is missing is named with its Debian package.

function(ranklog_missing what package)
  message(FATAL_ERROR "ranklog needs ${what}: install Debian's ${package}, or point CMAKE_PREFIX_PATH at it.")
endfunction()

find_package(Threads REQUIRED)

find_package(SQLite3 QUIET)
if(NOT SQLite3_FOUND)
  ranklog_missing("SQLite 3.31 or later" libsqlite3-dev)
endif()

find_package(zstd CONFIG QUIET)
if(NOT zstd_FOUND)
  ranklog_missing("zstd" libzstd-dev)
endif()
add_library(ranklog_zstd INTERFACE)
target_link_libraries(ranklog_zstd INTERFACE $<IF:$<TARGET_EXISTS:zstd::libzstd_shared>,zstd::libzstd_shared,zstd::libzstd_static>)

find_package(ZLIB QUIET)
if(NOT ZLIB_FOUND)
  ranklog_missing("zlib" zlib1g-dev)
endif()

find_package(OpenSSL QUIET COMPONENTS Crypto)
if(NOT OpenSSL_FOUND)
  ranklog_missing("OpenSSL's libcrypto (MD5 and SHA-256 of files)" libssl-dev)
endif()

find_package(nlohmann_json 3.10 CONFIG QUIET)
if(NOT nlohmann_json_FOUND)
  ranklog_missing("nlohmann_json 3.10 or later" nlohmann-json3-dev)
endif()

find_package(CLI11 CONFIG QUIET)
if(NOT CLI11_FOUND)
  ranklog_missing("CLI11" libcli11-dev)
endif()

if(RANKLOG_SYNC)
  find_package(CURL QUIET)
  if(NOT CURL_FOUND)
    ranklog_missing("libcurl (or -DRANKLOG_SYNC=OFF)" libcurl4-openssl-dev)
  endif()
endif()

if(RANKLOG_STANDIN)
  find_package(PkgConfig QUIET)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(cpphttplib QUIET IMPORTED_TARGET cpp-httplib)
  endif()
  if(NOT TARGET PkgConfig::cpphttplib)
    ranklog_missing("cpp-httplib (or -DRANKLOG_STANDIN=OFF)" "libcpp-httplib-dev and pkg-config")
  endif()
endif()

if(RANKLOG_TRAINER)
  include(RanklogTorch)
endif()

if(BUILD_TESTING)
  find_package(GTest CONFIG QUIET)
  if(NOT GTest_FOUND)
    ranklog_missing("GoogleTest (or -DBUILD_TESTING=OFF)" libgtest-dev)
  endif()
  include(GoogleTest)
endif()
