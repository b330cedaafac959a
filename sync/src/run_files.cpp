#include "run_files.hpp"

#include "ranklog/schema/digest.hpp"

namespace ranklog::sync {
namespace {

void put_run_file(const RunFileTarget& target, const RunFile& file, const std::vector<UploadTarget>& places) {
  const auto place_in = [&](const std::vector<UploadTarget>& list) {
    for (const UploadTarget& place : list) {
      if (place.name == file.name) return place;
    }
    return UploadTarget{};
  };
  HttpRequest body;
  body.body = file.text;
  target.storage.put(place_in(places), body,
                     [&] { return place_in(target.api.create_run_files(target.run, {file.name})); });
}

}  // namespace

std::map<std::string, std::string> put_run_files(const RunFileTarget& target,
                                                 const std::vector<RunFile>& files) {
  std::vector<RunFile> changed;
  std::vector<std::string> names;
  std::map<std::string, std::string> md5_by_name;
  for (const RunFile& file : files) {
    const std::string md5 = md5_hex(file.text);
    if (target.state.file_md5(target.run.run_id, file.name) == md5) continue;
    md5_by_name[file.name] = md5;
    names.push_back(file.name);
    changed.push_back(file);
  }
  if (changed.empty()) return {};
  const auto places = target.api.create_run_files(target.run, names);
  for (const RunFile& file : changed) put_run_file(target, file, places);
  return md5_by_name;
}

}  // namespace ranklog::sync
