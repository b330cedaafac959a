#pragma once
// The small files of a run: config.yaml, wandb-metadata.json, wandb-summary.json.

#include <map>
#include <string>
#include <vector>

#include "storage.hpp"
#include "upload_state.hpp"
#include "wandb_api.hpp"

namespace ranklog::sync {

struct RunFile {
  std::string name;
  std::string text;
};

struct RunFileTarget {
  WandbApi& api;
  Storage storage;
  UploadState& state;
  RunAddress run;
};

// Puts the files that differ from what the server has; returns their MD5 by name. The server is still to be
// told of them. Throws what the calls of WandbApi and Storage throw.
[[nodiscard]] std::map<std::string, std::string> put_run_files(const RunFileTarget& target,
                                                               const std::vector<RunFile>& files);

}  // namespace ranklog::sync
