// The commit and the remote of a working copy, from the files in .git.

#include <algorithm>
#include <cctype>
#include <fstream>

#include "process_facts.hpp"
#include "secrets.hpp"

namespace ranklog::writer {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
  return line;
}

bool is_commit(const std::string& text) {
  return (text.size() == 40 || text.size() == 64) &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c); });
}

// .git is a folder, or, in a linked work tree or a submodule, a file that names it.
fs::path git_folder(const fs::path& work_tree) {
  const fs::path entry = work_tree / ".git";
  std::error_code error;
  if (fs::is_directory(entry, error)) return entry;
  constexpr std::string_view kPointer = "gitdir: ";
  const std::string line = first_line(entry);
  return line.starts_with(kPointer) ? work_tree / line.substr(kPointer.size()) : fs::path{};
}

fs::path find_git_folder(fs::path folder) {
  for (; !folder.empty(); folder = folder.parent_path()) {
    auto found = git_folder(folder);
    if (!found.empty()) return found;
    if (folder == folder.parent_path()) break;
  }
  return {};
}

// A linked work tree keeps branches and settings in the main one's folder.
fs::path common_folder(const fs::path& git) {
  const std::string line = first_line(git / "commondir");
  return line.empty() ? git : git / line;
}

std::string packed_commit(const fs::path& common, const std::string& reference) {
  std::ifstream file(common / "packed-refs");
  for (std::string line; std::getline(file, line);) {
    const auto space = line.find(' ');
    if (space != std::string::npos && line.substr(space + 1) == reference) return line.substr(0, space);
  }
  return "";
}

std::string head_commit(const fs::path& git, const fs::path& common) {
  const std::string head = first_line(git / "HEAD");
  constexpr std::string_view kReference = "ref: ";
  if (!head.starts_with(kReference)) return head;
  const std::string reference = head.substr(kReference.size());
  for (const auto& folder : {git, common}) {
    const std::string commit = first_line(folder / reference);
    if (is_commit(commit)) return commit;
  }
  return packed_commit(common, reference);
}

std::string origin_url(const fs::path& common) {
  std::ifstream file(common / "config");
  bool in_origin = false;
  for (std::string line; std::getline(file, line);) {
    const auto start = std::min(line.find_first_not_of(" \t"), line.size());
    if (line[start] == '[') in_origin = line.find("[remote \"origin\"]") != std::string::npos;
    const auto equals = line.find('=');
    if (!in_origin || equals == std::string::npos || line.compare(start, 3, "url") != 0) continue;
    const auto value = line.find_first_not_of(" \t", equals + 1);
    return value == std::string::npos ? "" : strip_credentials(line.substr(value));
  }
  return "";
}

}  // namespace

GitFacts read_git_facts(const fs::path& folder) {
  const auto git = find_git_folder(folder);
  if (git.empty()) return {};
  const auto common = common_folder(git);
  GitFacts facts;
  facts.commit = head_commit(git, common);
  if (!is_commit(facts.commit)) facts.commit.clear();
  facts.remote = origin_url(common);
  return facts;
}

}  // namespace ranklog::writer
