#include "artifact_plan.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "ranklog/schema/captured_file.hpp"
#include "ranklog/schema/digest.hpp"

namespace ranklog::sync {
namespace {

namespace fs = std::filesystem;

struct Record {
  int attempt = 0;
  int rank = 0;
  fs::path folder;
  Artifact artifact;
  std::string digest;
};

std::string digest_of(const Artifact& artifact) {
  std::map<std::string, std::string> entries;
  for (const ArtifactFile& file : artifact.files) entries[file.name] = base64_of_hex(file.md5);
  return manifest_digest(entries);
}

struct Records {
  std::vector<Record> artifacts;
  Removals removals;
};

Records read_records(const Experiment& experiment) {
  Records records;
  for (const Attempt& attempt : experiment.attempts) {
    for (const RankSegment& segment : attempt.segments) {
      const RankFile file = RankFile::open(segment.path);
      for (Artifact& artifact : file.artifacts()) {
        std::string digest = digest_of(artifact);
        records.artifacts.push_back({attempt.number, segment.info.identity.rank, segment.path.parent_path(),
                                     std::move(artifact), std::move(digest)});
      }
      records.removals.add(file);
    }
  }
  return records;
}

// What is logged again: its aliases come on top, its metadata, if it is the same rank's, instead.
void merge_repeat(Artifact& into, const Artifact& from, bool same_rank) {
  for (const std::string& alias : from.aliases) {
    if (std::ranges::find(into.aliases, alias) == into.aliases.end()) into.aliases.push_back(alias);
  }
  if (same_rank && !from.metadata_json.empty()) into.metadata_json = from.metadata_json;
}

// An alias names one version of an artifact: the one that was given it last.
void settle_aliases(std::vector<PlannedArtifact>& planned,
                    const std::map<std::pair<std::string, std::string>, std::size_t>& owners) {
  for (std::size_t i = 0; i < planned.size(); ++i) {
    Artifact& artifact = planned[i].artifact;
    std::erase_if(artifact.aliases,
                  [&](const std::string& alias) { return owners.at({artifact.name, alias}) != i; });
  }
}

std::string short_name(const PlannedArtifact& artifact) {
  return "artifact " + artifact.artifact.name + " (" + artifact.digest.substr(0, 8) + ")";
}

PlannedArtifact make_planned(const Experiment& experiment, const Record& record, int ordinal) {
  PlannedArtifact planned;
  planned.artifact = record.artifact;
  planned.digest = record.digest;
  const std::string sequence = experiment.project + '\n' + experiment.id + '\n' + record.artifact.name;
  planned.sequence_client_id = deterministic_client_id("sequence\n" + sequence);
  planned.client_id =
      deterministic_client_id("version\n" + sequence + '\n' + record.digest + '\n' + std::to_string(ordinal));
  for (const ArtifactFile& file : record.artifact.files) {
    planned.files.push_back({file, record.folder / file.path});
    planned.bytes += file.size;
  }
  std::ranges::sort(planned.files, {}, [](const PlannedArtifactFile& entry) { return entry.file.name; });
  return planned;
}

// Numbers each rank's versions of one content, so that the k-th of one rank meets the k-th of another.
class Occurrences {
 public:
  int of(const Record& record) {
    std::string& last = last_digest_[{record.rank, record.artifact.name}];
    int& count = counts_[{record.rank, record.artifact.name, record.digest}];
    if (last != record.digest) ++count;
    last = record.digest;
    return count - 1;
  }

 private:
  std::map<std::pair<int, std::string>, std::string> last_digest_;
  std::map<std::tuple<int, std::string, std::string>, int> counts_;
};

bool is_removed(const Record& record, const Removals& removals) {
  return std::ranges::any_of(record.artifact.files, [&](const ArtifactFile& file) {
    return removals.took(record.folder, {file.path, file.size, file.md5, file.sha256});
  });
}

}  // namespace

std::vector<PlannedArtifact> plan_artifacts(const Experiment& experiment) {
  // Of one attempt the lowest rank's records come first: clocks of several nodes do not decide the order.
  std::vector<PlannedArtifact> planned;
  std::map<std::tuple<std::string, std::string, int>, std::size_t> known;
  std::map<std::pair<std::string, std::string>, std::size_t> alias_owners;  // by name and alias
  std::vector<int> ranks;  // that recorded each version first
  Occurrences occurrences;
  const Records records = read_records(experiment);
  for (const Record& record : records.artifacts) {
    const int ordinal = occurrences.of(record);
    const auto [entry, is_new] =
        known.try_emplace({record.artifact.name, record.digest, ordinal}, planned.size());
    if (is_new) {
      planned.push_back(make_planned(experiment, record, ordinal));
      planned.back().removed = is_removed(record, records.removals);
      ranks.push_back(record.rank);
    } else {
      merge_repeat(planned[entry->second].artifact, record.artifact, ranks[entry->second] == record.rank);
    }
    for (const std::string& alias : record.artifact.aliases) {
      alias_owners[{record.artifact.name, alias}] = entry->second;
    }
  }
  settle_aliases(planned, alias_owners);
  return planned;
}

void check_files(const PlannedArtifact& artifact) {
  constexpr std::uint64_t kLargestPut = std::uint64_t{5} << 30;
  for (const PlannedArtifactFile& entry : artifact.files) {
    if (!entry.file.reference.empty()) {
      throw Error(ErrorCode::kServer, short_name(artifact) + " refers to " + entry.file.reference +
                                          ", and wandb-sync does not upload references yet");
    }
    const std::string what = short_name(artifact) + ": " + entry.path.string();
    std::error_code failed;
    const std::uint64_t size = fs::file_size(entry.path, failed);
    if (failed) throw Error(ErrorCode::kDamaged, what + ": " + failed.message());
    if (size != entry.file.size) {
      throw Error(ErrorCode::kDamaged, what + " has changed since it was logged: " + std::to_string(size) +
                                           " bytes instead of " + std::to_string(entry.file.size));
    }
    if (size > kLargestPut) {
      throw Error(ErrorCode::kServer,
                  what + " has " + std::to_string(size) +
                      " bytes, and a storage takes at most 5 GiB (5368709120 bytes) in one piece",
                  "split it into several files: wandb-sync does not upload in parts yet");
    }
  }
}

std::string manifest_digest(const std::map<std::string, std::string>& md5_base64_by_path) {
  std::string text = "wandb-artifact-manifest-v1\n";
  for (const auto& [path, digest] : md5_base64_by_path) text += path + ':' + digest + '\n';
  return md5_hex(text);
}

std::string deterministic_client_id(const std::string& seed) {
  return sha256_hex(seed + "\n0") + sha256_hex(seed + "\n1");
}

}  // namespace ranklog::sync
