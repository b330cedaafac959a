#pragma once
// A rank file at one moment: what RankFile and scan() both begin with.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "database_copy.hpp"
#include "rank_schema.hpp"
#include "ranklog/schema/rank_file.hpp"
#include "sqlite.hpp"
#include "tail_files.hpp"

namespace ranklog {

// How a database had to be opened.
struct ReadMode {
  bool immutable = false;  // in WAL mode, but without a WAL and in a folder that cannot be written
  bool salvage = false;    // cut short, or with pages that contradict each other
  std::shared_ptr<const DatabaseCopy> copy;  // read instead
};

// A read-only connection that trusts nothing in the file's schema. Throws Error as RankFile::open() does,
// except for what shows only when something is read.
[[nodiscard]] Connection connect(const std::filesystem::path& path, const ReadMode& mode);

struct Snapshot {
  Connection connection;  // inside a read transaction
  ReadMode mode;
  Meta meta;  // info complete, the tail included
  Tail tail;
  std::vector<Damage> damage;
};

// The tail is opened before the database's state is fixed: what is sealed meanwhile is found in one of them.
// A file with an end record has no tail. Throws Error as RankFile::open() does. `folder_names`, if given, are
// the names in the file's folder as they were a moment ago.
[[nodiscard]] Snapshot take_snapshot(const std::filesystem::path& path,
                                     const std::vector<std::string>* folder_names = nullptr);

}  // namespace ranklog
