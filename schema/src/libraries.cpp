#include "ranklog/schema/libraries.hpp"

#include <sqlite3.h>
#include <zstd.h>

#include <nlohmann/json.hpp>

namespace ranklog {

std::string library_versions_json() {
  return nlohmann::json{
      {"ranklog", RANKLOG_VERSION}, {"sqlite", sqlite3_libversion()}, {"zstd", ZSTD_versionString()}}
      .dump();
}

}  // namespace ranklog
