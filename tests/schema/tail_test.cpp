#include "ranklog/schema/tail.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "ranklog/schema/error.hpp"
#include "sample_rows.hpp"

namespace ranklog {
namespace {

std::string rows_of(std::uint64_t first, std::uint64_t last) {
  std::string out;
  append_key_record(out, 0, KeyPath::flat("loss"));
  for (std::uint64_t sequence = first; sequence <= last; ++sequence) {
    const TailField field{0, static_cast<double>(sequence)};
    append_row_record(out, sequence, static_cast<std::int64_t>(sequence), 1000, {&field, 1});
  }
  return out;
}

std::vector<std::uint64_t> sequences_in(std::string_view bytes) {
  std::vector<std::uint64_t> found;
  TailReader reader(bytes);
  for (;;) {
    const auto record = reader.next();
    if (!record) return found;
    if (const auto* row = std::get_if<TailRow>(&*record)) found.push_back(row->sequence);
  }
}

TEST(Tail, EveryValueComesBackBitForBit) {
  const std::vector<ValueView> values = test::awkward_values();
  std::vector<TailField> fields;
  fields.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) fields.push_back({static_cast<KeyId>(i * 1000), values[i]});
  std::string bytes;
  append_row_record(bytes, 7, -5, 123, fields);
  append_row_record(bytes, 8, 6, 124, {}, Stream::kConsole);

  TailReader reader(bytes);
  const auto record = reader.next();
  ASSERT_TRUE(record);
  const auto& row = std::get<TailRow>(*record);
  EXPECT_EQ(row.sequence, 7u);
  EXPECT_EQ(row.step, -5);
  EXPECT_EQ(row.time_ns, 123);
  ASSERT_EQ(row.fields.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(row.fields[i].key, fields[i].key);
    EXPECT_TRUE(same_value(row.fields[i].value, values[i])) << i;
  }
  const auto second = reader.next();
  ASSERT_TRUE(second);
  EXPECT_TRUE(std::get<TailRow>(*second).fields.empty());
  EXPECT_EQ(row.stream, Stream::kHistory);
  EXPECT_EQ(std::get<TailRow>(*second).stream, Stream::kConsole);
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.at_end());
}

TEST(Tail, KeysComeBackWhateverTheyHold) {
  const KeyPath paths[] = {{{"a", "b"}},
                           KeyPath::flat("a.b"),
                           KeyPath::flat(""),
                           KeyPath::flat(std::string(300, 'k')),
                           KeyPath::flat("new\nline \xF0\x9F\x9A\x80 '\"\\")};
  for (const KeyPath& path : paths) {
    std::string bytes;
    append_key_record(bytes, 42, path);
    const auto record = TailReader(bytes).next();
    ASSERT_TRUE(record);
    EXPECT_EQ(std::get<TailKey>(*record).key, 42u);
    EXPECT_EQ(std::get<TailKey>(*record).path, path);
  }
}

TEST(Tail, OperationsComeBack) {
  Artifact artifact;
  artifact.name = "job-model";
  artifact.type = "model";
  artifact.description = "weights \xC3\xA9";
  artifact.step = 400;
  artifact.aliases = {"best"};
  artifact.tags = {"t1", "t2"};
  artifact.metadata_json = R"({"accuracy": 0.97})";
  artifact.files = {{"model.pt", "checkpoints/step-00000400/model.pt", std::uint64_t{1} << 40, "aa", "bb"}};
  const OperationBody bodies[] = {
      ConfigEntry{"lr", "1e-3"}, MetricDefinition{"val/*", "epoch", true, true, {"min", "last"}, "minimize"},
      SummaryOverride{"a\\.b", "NaN"}, Event{0, 0, 5, "barrier", R"({"seconds":0.5})"}, artifact};
  std::string bytes;
  std::uint64_t sequence = 10;
  for (const OperationBody& body : bodies) append_operation_record(bytes, {sequence++, 99, body});

  TailReader reader(bytes);
  std::vector<Operation> back;
  while (auto record = reader.next()) back.push_back(std::get<Operation>(*record));
  ASSERT_EQ(back.size(), 5u);
  EXPECT_EQ(back[4].sequence, 14u);
  EXPECT_EQ(back[4].time_ns, 99);
  EXPECT_EQ(std::get<ConfigEntry>(back[0].body).json, "1e-3");
  const auto& metric = std::get<MetricDefinition>(back[1].body);
  EXPECT_EQ(metric.name, "val/*");
  EXPECT_TRUE(metric.hidden && metric.step_sync);
  EXPECT_EQ(metric.summary, (std::vector<std::string>{"min", "last"}));
  EXPECT_EQ(metric.goal, "minimize");
  EXPECT_EQ(std::get<SummaryOverride>(back[2].body).json, "NaN");
  EXPECT_EQ(std::get<Event>(back[3].body).step, 5);
  EXPECT_EQ(std::get<Event>(back[3].body).json, R"({"seconds":0.5})");
  const auto& copy = std::get<Artifact>(back[4].body);
  EXPECT_EQ(copy.description, artifact.description);
  EXPECT_EQ(copy.step, 400);
  EXPECT_EQ(copy.tags, artifact.tags);
  EXPECT_EQ(copy.metadata_json, artifact.metadata_json);
  ASSERT_EQ(copy.files.size(), 1u);
  EXPECT_EQ(copy.files[0].size, std::uint64_t{1} << 40);
  EXPECT_EQ(copy.files[0].path, "checkpoints/step-00000400/model.pt");
}

TEST(Tail, RecordTooLongIsRefusedAndLeavesNothingBehind) {
  std::string out = "before";
  const std::string long_text(kMaxRecordBytes, 'x');
  const TailField field{0, std::string_view(long_text)};
  EXPECT_THROW(append_row_record(out, 1, 1, 1, {&field, 1}), Error);
  EXPECT_EQ(out, "before");
}

TEST(Tail, TornTailKeepsEarlierRows) {
  const std::string bytes = rows_of(1, 20);
  const std::string nineteen = rows_of(1, 19);
  const std::size_t whole = bytes.find_last_not_of('\0') + 1;
  for (std::size_t length = nineteen.size(); length < whole; ++length) {
    TailReader reader(std::string_view(bytes).substr(0, length));
    std::size_t records = 0;
    while (reader.next()) ++records;
    EXPECT_EQ(records, 20u);  // the key and 19 rows
    EXPECT_EQ(reader.position(), nineteen.size());
    EXPECT_EQ(reader.skip(), TailReader::Gap::kEnd) << "a torn end is no damage";
  }
}

TEST(Tail, ZerosAfterAPowerLossAreATornEnd) {
  const std::string bytes = rows_of(1, 3) + std::string(5000, '\0');
  TailReader reader(bytes);
  std::size_t records = 0;
  while (reader.next()) ++records;
  EXPECT_EQ(records, 4u);
  EXPECT_EQ(reader.skip(), TailReader::Gap::kEnd);
}

TEST(Tail, FlippedByteCostsOneRowAndIsNoticed) {
  const std::string bytes = rows_of(1, 5);
  const std::size_t begin = rows_of(1, 2).size();
  const std::size_t end = rows_of(1, 3).size();
  std::uint32_t payload = 0;
  std::memcpy(&payload, bytes.data() + begin, sizeof payload);
  for (std::size_t i = begin; i < begin + kFrameHeadBytes + payload; ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << i % 8));
    EXPECT_EQ(sequences_in(damaged), (std::vector<std::uint64_t>{1, 2}));
    TailReader reader(damaged);
    while (reader.next()) {
    }
    ASSERT_EQ(reader.skip(), TailReader::Gap::kDamage) << i;
    EXPECT_EQ(reader.position(), end);
    EXPECT_EQ(sequences_in(std::string_view(damaged).substr(reader.position())),
              (std::vector<std::uint64_t>{4, 5}));
  }
}

// The thread that was writing it died with the process; the threads beside it had got further.
TEST(Tail, UnfinishedRecordIsPassedAndIsNoDamage) {
  const std::string bytes = rows_of(1, 5);
  const std::size_t begin = rows_of(1, 2).size();
  const std::size_t end = rows_of(1, 3).size();
  const auto rest_after_gap = [&](std::size_t first_zero) {
    std::string unfinished = bytes;
    unfinished.replace(begin + first_zero, 4, 4, '\0');
    TailReader reader(unfinished);
    while (reader.next()) {
    }
    EXPECT_EQ(reader.skip(), TailReader::Gap::kUnfinished);
    EXPECT_EQ(reader.position(), end);
    return sequences_in(std::string_view(unfinished).substr(reader.position()));
  };
  EXPECT_EQ(rest_after_gap(4), (std::vector<std::uint64_t>{4, 5})) << "no checksum yet";
  std::string reserved = bytes;
  reserved.replace(begin, end - begin, end - begin, '\0');
  TailReader reader(reserved);
  while (reader.next()) {
  }
  EXPECT_EQ(reader.skip(), TailReader::Gap::kUnfinished) << "not even its length";
  EXPECT_EQ(reader.position(), end);
}

TEST(Tail, RandomBytesAreReadInBoundedTime) {
  std::mt19937 random(2);
  std::string bytes(200'000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random() % 4);
  TailReader reader(bytes);
  for (;;) {
    while (reader.next()) {
    }
    const auto gap = reader.skip();
    if (gap != TailReader::Gap::kUnfinished && gap != TailReader::Gap::kDamage) break;
  }
  EXPECT_LT(reader.position(), bytes.size());
}

using Kind = TailStart::Kind;

TEST(Tail, HeaderTellsWhoseItIs) {
  const std::string token = "token-\xF0\x9F\x9A\x80";
  const std::string bytes = encode_tail_header(token, 12);
  const TailStart start = find_tail_start(bytes + rows_of(1, 2), token, 12);
  EXPECT_EQ(start.kind, Kind::kOwn);
  EXPECT_EQ(start.bytes, bytes.size());
  EXPECT_EQ(find_tail_start(bytes + rows_of(1, 2), "token", 12).kind, Kind::kOther);
  EXPECT_EQ(find_tail_start(bytes + rows_of(1, 2), token, 13).kind, Kind::kOther);
  const std::size_t whole = bytes.find_last_not_of('\0') + 1;
  for (std::size_t length = 0; length < whole; ++length) {
    const std::string cut = bytes.substr(0, length);
    EXPECT_EQ(find_tail_start(cut, token, 12).kind, Kind::kUnfinished) << length;
    EXPECT_EQ(find_tail_start(cut + std::string(4096, '\0'), token, 12).kind, Kind::kUnfinished) << length;
  }
}

TEST(Tail, FlippedBitInAHeaderIsToldAndHidesNoRecord) {
  const std::string header = encode_tail_header("token", 0);
  const std::string bytes = header + rows_of(1, 2);
  for (std::size_t bit = 0; bit < header.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const bool is_in_version = bit / 8 >= 8 && bit / 8 < 12;
    try {
      const TailStart start = find_tail_start(damaged, "token", 0);
      const bool is_unused = (bit / 8 >= 12 && bit / 8 < 16) || bit / 8 >= 33;
      EXPECT_EQ(start.kind, is_unused ? Kind::kOwn : Kind::kDamaged) << bit;
      EXPECT_EQ(start.bytes, header.size()) << bit;
    } catch (const Error& error) {
      EXPECT_TRUE(is_in_version && error.code() == ErrorCode::kVersion) << bit << error.what();
    }
  }
}

TEST(Tail, ForeignNewerAndDamagedHeadersAreRefusedByName) {
  const std::string bytes = encode_tail_header("token", 0) + rows_of(1, 2);
  const auto code_of = [](std::string_view segment) {
    try {
      (void)find_tail_start(segment, "token", 0);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kUsage;
  };
  EXPECT_EQ(code_of("something else"), ErrorCode::kNotOurs);
  std::string newer = bytes;
  for (const char* version : {"\2", "\0"}) {
    newer[8] = *version;
    EXPECT_EQ(code_of(newer), ErrorCode::kVersion);
  }
  std::string damaged = bytes;
  damaged.replace(damaged.find("token"), 5, "TOKEN");
  EXPECT_EQ(code_of(damaged), ErrorCode::kDamaged) << "nobody knows whose it is";
}

// Its checksum was written last: a record that has one was whole.
TEST(Tail, DamagedLastRecordIsNoTornEnd) {
  std::string bytes = rows_of(1, 3);
  const std::size_t begin = rows_of(1, 2).size();
  bytes[begin + kFrameHeadBytes + 3] = 'x';
  bytes += std::string(4096, '\0');
  TailReader reader(bytes);
  while (reader.next()) {
  }
  EXPECT_EQ(reader.position(), begin);
  EXPECT_EQ(reader.skip(), TailReader::Gap::kDamagedEnd);
}

// Each gap claims all that follows, so that its checksum costs the whole segment.
TEST(Tail, ManyGapsAreReadInBoundedTimeAndTold) {
  std::string bytes;
  constexpr std::size_t kGaps = 20'000;
  for (std::size_t i = 0; i < kGaps; ++i) {
    const auto claimed = static_cast<std::uint32_t>(std::size_t{48} * (kGaps - i) - 8);
    bytes.append(reinterpret_cast<const char*>(&claimed), sizeof(claimed));
    bytes.append(4, '\1');
    append_key_record(bytes, 0, KeyPath::flat(std::string(27, 'k')));
  }
  TailReader reader(bytes);
  TailReader::Gap gap = TailReader::Gap::kDamage;
  while (gap == TailReader::Gap::kDamage) {
    while (reader.next()) {
    }
    gap = reader.skip();
  }
  EXPECT_EQ(gap, TailReader::Gap::kGivenUp);
}

TEST(RowGroupBuilder, RowsWithOneSetOfKeysShareAGroup) {
  RowGroupBuilder builder;
  const auto add = [&](std::uint64_t sequence, std::vector<TailField> fields) {
    builder.add({sequence, static_cast<std::int64_t>(sequence), 0, std::move(fields)});
  };
  add(1, {{0, 1.0}, {1, 2.0}});
  add(2, {{2, "epoch"}});
  add(3, {{1, 4.0}, {0, 3.0}});            // the same set in another order
  add(4, {{0, 5.0}, {1, 9.0}, {0, 7.0}});  // a key twice
  EXPECT_EQ(builder.rows(), 4u);
  const std::vector<RowGroup> groups = builder.take();
  EXPECT_EQ(builder.rows(), 0u);
  EXPECT_TRUE(builder.take().empty());
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].sequence, (std::vector<std::uint64_t>{1, 3, 4}));
  ASSERT_EQ(groups[0].columns.size(), 2u);
  EXPECT_EQ(groups[0].columns[0].key(), 0u);
  EXPECT_EQ(groups[0].columns[0].at(1).as_double(), 3.0);
  EXPECT_EQ(groups[0].columns[1].at(1).as_double(), 4.0);
  EXPECT_EQ(groups[0].columns[0].at(2).as_double(), 7.0);
  EXPECT_EQ(groups[1].columns[0].at(0).text(), "epoch");
}

TEST(RowGroupBuilder, LargeGroupsAreSplit) {
  RowGroupBuilder builder;
  const std::uint64_t count = 10'000;
  for (std::uint64_t i = 1; i <= count; ++i) builder.add({i, 0, 0, {{0, 1.0}}});
  const std::vector<RowGroup> groups = builder.take();
  ASSERT_EQ(groups.size(), 3u);
  std::uint64_t next = 1;
  for (const RowGroup& group : groups) {
    for (const std::uint64_t sequence : group.sequence) EXPECT_EQ(sequence, next++);
  }
  EXPECT_EQ(next, count + 1);
}

}  // namespace
}  // namespace ranklog
