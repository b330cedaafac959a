#pragma once
// Experiments on disk, opened as the tools open them.

#include <filesystem>
#include <memory>
#include <vector>

#include "ranklog/schema/experiment.hpp"
#include "ranklog/schema/naming.hpp"
#include "ranklog/sql/catalog.hpp"
#include "support/rank_file_builder.hpp"

namespace ranklog::test {

inline std::filesystem::path rank_path(const std::filesystem::path& log_dir, const Identity& identity,
                                       int number = 0) {
  return experiment_folder(log_dir, identity.project, identity.experiment) /
         rank_file_name(identity.rank, number);
}

inline std::shared_ptr<sql::Catalog> open_logs(const std::filesystem::path& log_dir) {
  return std::make_shared<sql::Catalog>(scan(std::vector{log_dir}).experiments);
}

}  // namespace ranklog::test
