// Makes tests/data/golden-v1: rank files that use everything that FORMAT.md describes, and expected.jsonl,
// which lists what they hold. Later versions of ranklog must read them for ever, so what is checked in is
// never made anew:
//   schema_write_golden FOLDER; gzip -9n FOLDER/expected.jsonl

#include <sqlite3.h>

#include <iostream>
#include <stdexcept>

#include "bytes.hpp"
#include "envelope.hpp"
#include "logged_file.hpp"
#include "number_codec.hpp"
#include "ranklog/schema/chunk_codec.hpp"
#include "ranklog/schema/digest.hpp"
#include "ranklog/schema/naming.hpp"
#include "sample_rows.hpp"
#include "support/temp_dir.hpp"
#include "text_codec.hpp"

namespace ranklog::test {
namespace {

namespace fs = std::filesystem;

const std::string kRocket = "\xF0\x9F\x9A\x80";
constexpr std::string_view kMediaPath = "media/images/sample_3_0a1b2c3d4e5f60718293.png";
constexpr std::string_view kPicture = "not really a picture";

// --- A chunk in which every way to write numbers occurs, whichever an encoder would choose for them.

constexpr unsigned kViews = 5;
constexpr unsigned kPredictions = 7;

// Few distinct values, each exactly a float32 and a short decimal, so that every view can hold them.
void log_rows_for_every_encoding(LoggedFile& file) {
  static const std::string long_text = [] {
    std::string text;
    while (text.size() < 150) text += "abc, ";
    return text;
  }();
  const double doubles[] = {0.5, -0.25, 1.5};
  const std::int64_t integers[] = {7, -3, std::int64_t{1} << 40};
  for (std::size_t row = 0; row < 13; ++row) {
    RankFileBuilder::Fields fields;
    for (unsigned code = 0; code < kViews * kPredictions; ++code) {
      const std::string name = "v" + std::to_string(code % kViews) + "p" + std::to_string(code / kViews);
      fields.emplace_back("float " + name, doubles[row * row % 3]);
      if (code % kViews == 0 || code % kViews == 3) fields.emplace_back("int " + name, integers[row % 3]);
    }
    fields.emplace_back("few texts", row % 2 == 0 ? "even" : "odd");
    fields.emplace_back("texts", std::string_view(long_text).substr(10 * row));
    file.row(static_cast<std::int64_t>(100 + row), fields);
  }
  file.builder().seal();
}

void append_index(std::string& head, std::string& body, std::vector<std::uint64_t> words) {
  const std::size_t before = body.size();
  NumberChoice choice;
  append_numbers(body, words, NumberKind::kInteger, Packing::kSeparate, choice);
  append_varint(head, body.size() - before);
}

void append_column(std::string& body, const Column& column, const std::string& name) {
  const ValueKind kind = column.at(0).kind();
  append_fixed(body, static_cast<std::uint8_t>(kind));
  if (kind == ValueKind::kString) {
    std::vector<std::string_view> texts;
    for (std::size_t row = 0; row < column.size(); ++row) texts.push_back(column.at(row).text());
    return append_texts(body, texts, Packing::kSeparate);
  }
  const bool is_float = kind == ValueKind::kFloat64;
  const auto digit = [&](char mark) { return static_cast<unsigned>(name[name.find(mark, 4) + 1] - '0'); };
  const auto parameter = static_cast<std::uint8_t>(digit('v') == 2 ? 2 : 40);  // decimals, or bits
  NumberChoice choice{static_cast<std::uint8_t>(digit('v') + 8 * digit('p')), parameter, true};
  append_numbers(body, column.bits(), is_float ? NumberKind::kFloat64 : NumberKind::kInteger,
                 Packing::kSeparate, choice);
}

std::string encode_in_every_way(const RowGroup& group, const std::vector<KeyPath>& keys) {
  std::string head, body;
  append_fixed(head, static_cast<std::uint8_t>(group.stream));
  append_varint(head, group.rows());
  append_varint(head, group.columns.size());
  append_index(head, body, group.sequence);
  append_index(head, body, {group.step.begin(), group.step.end()});
  append_index(head, body, {group.time_ns.begin(), group.time_ns.end()});
  for (const Column& column : group.columns) {
    const std::size_t before = body.size();
    append_column(body, column, keys.at(column.key()).names.front());
    append_varint(head, column.key());
    append_varint(head, body.size() - before);
  }
  return seal_plain_envelope(head + body);
}

void replace_chunk(const fs::path& path, std::int64_t id, const std::string& data) {
  sqlite3* connection = nullptr;
  sqlite3_stmt* update = nullptr;
  const bool done =
      sqlite3_open(path.c_str(), &connection) == SQLITE_OK &&
      sqlite3_prepare_v2(connection, "UPDATE chunk SET data = ?1 WHERE id = ?2", -1, &update, nullptr) ==
          SQLITE_OK &&
      sqlite3_bind_blob(update, 1, data.data(), static_cast<int>(data.size()), nullptr) == SQLITE_OK &&
      sqlite3_bind_int64(update, 2, id) == SQLITE_OK && sqlite3_step(update) == SQLITE_DONE;
  sqlite3_finalize(update);
  sqlite3_close(connection);
  if (!done) throw std::runtime_error("cannot change " + path.string());
}

void write_numbers_in_every_way(const fs::path& path) {
  const RankFile file = RankFile::open(path);
  for (std::size_t i = 0; i < file.row_groups().size(); ++i) {
    const RowGroup group = file.load(i);
    if (group.columns.size() < kViews * kPredictions) continue;
    const std::string data = encode_in_every_way(group, file.keys());
    if (!same_group(decode_chunk(data), group)) throw std::logic_error("the golden chunk does not read back");
    return replace_chunk(path, file.row_groups()[i].id, data);
  }
  throw std::logic_error("there is no chunk for every encoding");
}

// --- Everything else

std::vector<std::string> awkward_keys() {
  std::vector<std::string> keys;
  for (const std::string& name : {std::string(), std::string(300, 'k'), std::string("line\nbreak"), kRocket,
                                  std::string("a.b"), std::string("a/b"), std::string("'single' \"double\""),
                                  std::string("back\\slash"), std::string("\xE6\x90\x8D\xE5\xA4\xB1")}) {
    keys.push_back(KeyPath::flat(name).display());
  }
  keys.push_back(KeyPath{{"a", "b"}}.display());
  keys.push_back(KeyPath{{"optimizer", "", "x.y"}}.display());
  return keys;
}

std::vector<ValueView> media_values() {
  static const std::string image = R"({"_type":"image-file","format":"png","width":1,"height":1,"path":")" +
                                   std::string(kMediaPath) + R"(","size":20,"sha256":")" +
                                   sha256_hex(kPicture) + "\"}";
  return {ValueView::json(image), ValueView::json(R"({"_type":"histogram","values":[1,2],"bins":[0,0.5,1]})"),
          ValueView::json(R"([1,[2.5,null],{"a":{"b":"c"}},NaN])"), ValueView::json("{}")};
}

void log_values(LoggedFile& file, std::int64_t first_step) {
  std::int64_t step = first_step;
  for (const ValueView value : awkward_values()) {
    if (value.text().size() < 1000) file.row(step++, {{"value", value}});
  }
  for (const ValueView value : media_values()) file.row(step++, {{"value", value}, {"media", value}});
  RankFileBuilder::Fields fields;
  for (const std::string& key : awkward_keys()) fields.emplace_back(key, step);
  file.row(step, fields);
  file.row(step, {{"flag", true}, {"nothing", nullptr}});
  file.row(step + 1, {{"flag", false}, {"nothing", nullptr}});
  file.row(-7, {{"value", "a step that goes back, below zero"}});
  file.row(std::numeric_limits<std::int64_t>::max(), {{"value", 1}});
}

void log_streams(LoggedFile& file) {
  for (int i = 0; i < 3; ++i) {
    file.row(0, {{"cpu", 12.5 * i}, {"proc\\.memory\\.rssMB", 100 + i}}, Stream::kSystem);
    file.row(i, {{"text", "epoch " + std::to_string(i)}, {"stderr", false}}, Stream::kConsole);
  }
  file.row(0, {{"gpu\\.0\\.gpu", 99}}, Stream::kSystem);
  file.row(3, {{"text", " 10 %"}, {"stderr", true}}, Stream::kConsole);
  file.row(3, {{"text", "100 % " + kRocket}, {"stderr", true}}, Stream::kConsole);
}

void log_events(LoggedFile& file, std::int64_t step) {
  const auto add = [&](std::string_view kind, const char* json, std::optional<std::int64_t> at) {
    file.log(Event{0, 0, at, std::string(kind), json});
  };
  add(kBarrierEvent, R"({"label":"start","entered_ns":1,"left_ns":2})", step);
  add(kCheckpointEvent, R"({"path":"checkpoints/step-00000010/model.pt","step":10,"epoch":1})", step);
  add(kCheckpointRemovedEvent, R"({"path":"checkpoints/step-00000005","artifact":"e-model","reason":"keep"})",
      {});
  add(kDropEvent, R"({"rows":3})", {});
  add(kPreemptEvent, R"({"signal":"SIGUSR1","reason":"requeue"})", step);
  add(kArtifactUseEvent, R"({"artifact":"team/p/data:v3","type":"dataset"})", {});
  add(kArtifactLinkEvent,
      R"({"artifact":"e-model:best","target":"wandb-registry-model/m","aliases":["prod"]})", {});
  add("a caller's own", R"({"text":"\u00e9"})", step);
}

void log_artifacts(LoggedFile& file) {
  Artifact artifact;
  artifact.name = "e-model";
  artifact.type = "model";
  artifact.description = "weights, \"quoted\"\n" + kRocket;
  artifact.step = 10;
  artifact.ttl_seconds = 86'400;
  artifact.aliases = {"best", "step-10"};
  artifact.tags = {"t1", "t 2"};
  artifact.metadata_json = R"({"accuracy":0.9,"nested":{"list":[1,2]}})";
  artifact.files = {
      {"model.pt", "checkpoints/step-00000010/model.pt", 123'456'789'012, "d41d8cd98f00b204e9800998ecf8427e",
       std::string(64, 'a')},
      {"far.bin", "", 99, "", "", "s3://bucket/far.bin", R"({"etag":"\"abc\"","versionID":"v7"})"},
      {"page", "", 0, "", "", "https://example.org/page", "{}"}};
  file.log(artifact);
  Artifact forever;
  forever.name = "data";
  forever.type = "dataset";
  forever.ttl_seconds = 0;
  forever.metadata_json = "{}";
  file.log(forever);
  forever.ttl_seconds.reset();
  file.log(forever);
}

void log_records(LoggedFile& file, std::string_view lr) {
  file.log(ConfigEntry{"lr", std::string(lr)});
  file.log(ConfigEntry{"model." + kRocket, R"({"layers":[1,2],"name":"x","nothing":null,"nan":NaN})"});
  file.log(
      MetricDefinition{"val/*", "epoch", true, false, {"min", "max", "mean", "last", "first"}, "minimize"});
  file.log(MetricDefinition{"acc", "", false, true, {"none"}, "maximize"});
  file.log(SummaryOverride{"best\\.loss", std::string(lr)});
  log_artifacts(file);
  file.log(RunFile{0, 0, std::string(kMediaPath), "files/picture", kPicture.size(), md5_hex(kPicture),
                   sha256_hex(kPicture), "media"});
  file.log(RunFile{0, 0, "notes.txt", "files/notes", 0, md5_hex(""), sha256_hex(""), "file"});
}

Identity full_identity() {
  Identity identity = identity_of_rank(0, 4);
  identity.entity = "team";
  identity.group = "g";
  identity.job_type = "train";
  identity.name = "a name " + kRocket;
  identity.notes = "two\nlines";
  identity.tags = {"one", "two \"quoted\""};
  identity.wandb_run_id = "abc";
  identity.log_strategy = Strategy::kNode;
  identity.local_world_size = 2;
  identity.node = 1;
  identity.pid_start_ticks = std::uint64_t{1} << 63;
  identity.program = "train.py";
  identity.arguments = {"--lr", "1e-3", ""};
  identity.git_commit = "0123456789abcdef0123456789abcdef01234567";
  identity.git_remote = "git@host:x.git";
  identity.libraries = R"({"ranklog":"0.1.0","sqlite":"3.40.1","zstd":"1.5.4"})";
  identity.host_facts = R"({"cpu_count":2,"kernel":"Linux 6.1"})";
  return identity;
}

Listing write_finished(const fs::path& path) {
  LoggedFile file(path, full_identity(), kStartTimeNs);
  log_values(file, 0);
  log_streams(file);
  log_records(file, "0.1");
  file.builder().seal();
  log_rows_for_every_encoding(file);
  log_events(file, 10);
  file.log(Event{0, 0, 108, std::string(kRewindEvent), "{}"});
  file.row(108, {{"value", "after the rewind"}});
  log_records(file, "0.01");
  file.finish(EndState::kFailed, 3);
  write_numbers_in_every_way(path);
  return file.listing();
}

// As a killed writer leaves it: some of it sealed, the rest in two segments of the tail.
Listing write_unfinished(const fs::path& path) {
  Identity identity = full_identity();
  identity.launch_token = "t1";
  identity.resume_step = 105;
  identity.log_strategy.reset();
  LoggedFile file(path, identity, kStartTimeNs + 3'600'000'000'000);
  for (int step = 105; step < 125; ++step) file.row(step, {{"loss", 1.0 / step}, {"lr", 1e-3}});
  log_records(file, "0.001");
  file.builder().seal();
  log_values(file, 200);
  log_streams(file);
  file.builder().next_segment();
  log_events(file, 300);
  log_records(file, "0.0001");
  file.log(Event{0, 0, 205, std::string(kRewindEvent), "{}"});
  file.row(205, {{"loss", 0.25}, {"a new key", -0.0}});
  return file.listing();
}

void write(const fs::path& folder) {
  fs::create_directories(folder / kFilesFolderName);
  const Listing finished = write_finished(folder / rank_file_name(0, 0));
  const Listing unfinished = write_unfinished(folder / rank_file_name(0, 1));
  write_file(folder / kFilesFolderName / "picture", kPicture);
  write_file(folder / kFilesFolderName / "notes", "");
  const TempDir copy;  // SQLite writes beside a file that has not ended
  fs::copy(folder, copy.path(), fs::copy_options::recursive);
  write_file(folder / "expected.jsonl",
             to_lines(finished) + to_lines(unfinished) + to_lines(list_history(copy.path())));
}

}  // namespace
}  // namespace ranklog::test

int main(int argc, char** argv) {
  if (argc != 2 || std::filesystem::exists(argv[1])) {
    std::cerr << "usage: schema_write_golden NEW_FOLDER\n";
    return 2;
  }
  ranklog::test::write(argv[1]);
}
