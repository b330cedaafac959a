#include "ranklog/trainer/checkpoint_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "checkpoint_manifest.hpp"
#include "support/temp_dir.hpp"
#include "support/tmpfs.hpp"

namespace ranklog::test {
namespace {

namespace fs = std::filesystem;

class CheckpointFolder : public testing::Test {
 protected:
  Checkpoint save(std::int64_t step, const std::string& content) {
    CheckpointWriter writer(checkpoints(), step);
    writer.write_file("model.pt", [&](const CheckpointWriter::Sink& sink) {
      for (const char& c : content) sink(&c, 1);
    });
    CheckpointManifest about;
    about.step = step;
    about.epoch = step / 100;
    about.world_size = 4;
    about.metrics["accuracy"] = 0.96875;
    about.ranks_without_durable_log = {2};
    return writer.publish(about);
  }
  [[nodiscard]] fs::path checkpoints() const { return dir_ / "checkpoints"; }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(checkpoints())) all.push_back(entry.path().filename());
    std::sort(all.begin(), all.end());
    return all;
  }

  TempDir dir_;
};

TEST_F(CheckpointFolder, APublishedCheckpointIsFoundAsItWasWritten) {
  save(400, "weights");
  const NewestCheckpoint newest = find_newest_checkpoint(checkpoints());
  ASSERT_TRUE(newest.found.has_value());
  EXPECT_EQ(newest.found->folder, checkpoints() / "step-00000400");
  const CheckpointManifest& manifest = newest.found->manifest;
  EXPECT_EQ(manifest.step, 400);
  EXPECT_EQ(manifest.epoch, 4);
  EXPECT_EQ(manifest.world_size, 4);
  EXPECT_EQ(manifest.metrics.at("accuracy"), 0.96875);
  EXPECT_EQ(manifest.ranks_without_durable_log, std::vector<int>{2});
  ASSERT_EQ(manifest.files.size(), 1U);
  EXPECT_EQ(manifest.files[0].digests.size, 7U);
  // printf weights | md5sum; sha256sum
  EXPECT_EQ(manifest.files[0].digests.md5, "63f4f1e9b725370f459720575cd5f953");
  EXPECT_EQ(manifest.files[0].digests.sha256,
            "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c");
}

TEST_F(CheckpointFolder, NothingTemporaryStays) {
  save(400, "weights");
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(checkpoints() / "step-00000400")) {
    files.push_back(entry.path().filename());
  }
  std::sort(files.begin(), files.end());
  EXPECT_EQ(files, (std::vector<std::string>{"manifest.json", "model.pt"}));
}

TEST_F(CheckpointFolder, TheHighestStepIsTheNewest) {
  save(1000, "later");
  save(200, "earlier");
  EXPECT_EQ(find_newest_checkpoint(checkpoints()).found->manifest.step, 1000);
}

TEST_F(CheckpointFolder, OfOneStepTheLatestPublishedIsTheNewest) {
  save(200, "first attempt");
  save(200, "second attempt");
  EXPECT_EQ(find_newest_checkpoint(checkpoints()).found->folder, checkpoints() / "step-00000200.1");
  EXPECT_EQ(read_file(checkpoints() / "step-00000200" / "model.pt"), "first attempt");
}

TEST_F(CheckpointFolder, ACutOffFileIsNamedAndTheOneBeforeIsUsed) {
  save(200, "whole");
  save(400, "weights");
  write_file(checkpoints() / "step-00000400" / "model.pt", "weig");
  const NewestCheckpoint newest = find_newest_checkpoint(checkpoints());
  EXPECT_EQ(newest.found->manifest.step, 200);
  ASSERT_EQ(newest.skipped.size(), 1U);
  EXPECT_EQ(newest.skipped[0],
            "'" + (checkpoints() / "step-00000400/model.pt").string() + "' has 4 bytes, its manifest says 7");
}

TEST_F(CheckpointFolder, AFlippedBitIsNoticed) {
  save(400, "weights");
  write_file(checkpoints() / "step-00000400" / "model.pt", "weighut");
  const NewestCheckpoint newest = find_newest_checkpoint(checkpoints());
  EXPECT_FALSE(newest.found.has_value());
  ASSERT_EQ(newest.skipped.size(), 1U);
  EXPECT_NE(newest.skipped[0].find("SHA-256"), std::string::npos);
}

TEST_F(CheckpointFolder, AMissingFileOrAManifestThatIsNoneIsNamed) {
  save(200, "whole");
  save(300, "weights");
  save(400, "weights");
  fs::remove(checkpoints() / "step-00000300" / "model.pt");
  write_file(checkpoints() / "step-00000400" / "manifest.json", "{\"format\": 1");
  const NewestCheckpoint newest = find_newest_checkpoint(checkpoints());
  EXPECT_EQ(newest.found->manifest.step, 200);
  EXPECT_EQ(newest.skipped.size(), 2U);
}

TEST_F(CheckpointFolder, WithoutAManifestThereIsNoCheckpoint) {
  save(200, "whole");
  save(400, "weights");
  fs::remove(checkpoints() / "step-00000400" / "manifest.json");
  EXPECT_EQ(find_newest_checkpoint(checkpoints()).found->manifest.step, 200);
  EXPECT_TRUE(find_newest_checkpoint(checkpoints()).skipped.empty());
  remove_unpublished_checkpoints(checkpoints());
  EXPECT_EQ(names(), std::vector<std::string>{"step-00000200"});
}

TEST_F(CheckpointFolder, AWriterThatGivesUpLeavesNothing) {
  save(200, "whole");
  try {
    CheckpointWriter writer(checkpoints(), 400);
    writer.write_file("model.pt", [](const CheckpointWriter::Sink& sink) {
      sink("half", 4);
      throw std::runtime_error("out of memory");
    });
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(names(), std::vector<std::string>{"step-00000200"});
}

// Publishes a checkpoint for each step, and removes what is surplus after each.
class Retention : public CheckpointFolder {
 protected:
  void save_and_retain(CheckpointRetention& retention, std::initializer_list<std::int64_t> steps) {
    for (const std::int64_t step : steps) {
      retention.published(save(step, "weights"));
      for (const fs::path& folder : retention.surplus()) EXPECT_TRUE(remove_checkpoint(folder));
    }
  }
  using Names = std::vector<std::string>;
};

// LibTorch's archive writer takes an exception for its own trouble, and fails with "unexpected pos".
TEST_F(CheckpointFolder, AFullDiskIsNamedAndNotWhatFollowsFromIt) {
  const Tmpfs disk(64);
  if (!disk.is_mounted()) GTEST_SKIP() << "this process may not mount a tmpfs";
  CheckpointWriter writer(disk.path(), 400);
  try {
    writer.write_file("model.pt", [](const CheckpointWriter::Sink& sink) {
      const std::string block(16 << 10, 'x');
      for (int i = 0; i < 10; ++i) {
        try {
          sink(block.data(), block.size());
        } catch (...) {
        }
      }
      throw std::runtime_error("unexpected pos 174976");
    });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_NE(std::string(error.what()).find("model.pt"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("No space left"), std::string::npos) << error.what();
  }
}

TEST_F(Retention, KeepsTheNewest) {
  CheckpointRetention retention(checkpoints(), 2, {});
  save_and_retain(retention, {100, 200, 300, 400});
  EXPECT_EQ(names(), (Names{"step-00000300", "step-00000400"}));
}

TEST_F(Retention, OfZeroKeepsAll) {
  CheckpointRetention retention(checkpoints(), 0, {});
  save_and_retain(retention, {100, 200});
  EXPECT_EQ(names().size(), 2U);
}

TEST_F(Retention, NeverRemovesWhatWasJustPublishedThoughALaterStepIsThere) {
  save(178, "of an attempt before");
  write_file(checkpoints() / "step-00000178" / "model.pt", "cut");
  CheckpointRetention retention(checkpoints(), 1, {});
  save_and_retain(retention, {100});
  EXPECT_EQ(find_newest_checkpoint(checkpoints()).found->manifest.step, 100);
}

TEST_F(Retention, CountsTheOneThatItWentOnFromAndOlderOnesOnlyIfTheyAreWhole) {
  save(50, "whole");
  save(60, "weights");
  write_file(checkpoints() / "step-00000060" / "model.pt", "cut");
  const Checkpoint base = save(100, "base");
  CheckpointRetention retention(checkpoints(), 3, base.folder);
  save_and_retain(retention, {110});
  EXPECT_EQ(names(), (Names{"step-00000050", "step-00000060", "step-00000100", "step-00000110"}));
  save_and_retain(retention, {120});
  EXPECT_EQ(names(), (Names{"step-00000100", "step-00000110", "step-00000120"}));
}

TEST_F(CheckpointFolder, ADamagedOneThatIsRetiredIsNoCheckpointAnyMore) {
  save(200, "whole");
  for (int i = 0; i < 2; ++i) {
    save(400, "weights");
    write_file(checkpoints() / "step-00000400" / "model.pt", "cut");
    const NewestCheckpoint newest = find_newest_checkpoint(checkpoints());
    ASSERT_EQ(newest.damaged.size(), 1U);
    retire_damaged_checkpoint(newest.damaged[0]);
  }
  EXPECT_TRUE(find_newest_checkpoint(checkpoints()).skipped.empty());
  remove_unpublished_checkpoints(checkpoints());
  EXPECT_EQ(names(),
            (std::vector<std::string>{"damaged-step-00000400", "damaged-step-00000400.2", "step-00000200"}));
}

TEST_F(CheckpointFolder, OneOfAnotherVersionIsSkippedAndNotTakenForDamaged) {
  save(400, "weights");
  const fs::path manifest = checkpoints() / "step-00000400" / "manifest.json";
  std::string text = read_file(manifest);
  text.replace(text.find("\"format\": 1"), 11, "\"format\": 9");
  write_file(manifest, text);
  EXPECT_EQ(find_newest_checkpoint(checkpoints()).skipped.size(), 1U);
  EXPECT_TRUE(find_newest_checkpoint(checkpoints()).damaged.empty());
}

TEST_F(CheckpointFolder, AFileWithTheNameOfACheckpointIsLeftAlone) {
  fs::create_directories(checkpoints());
  write_file(checkpoints() / "step-123", "somebody's notes");
  remove_unpublished_checkpoints(checkpoints());
  EXPECT_EQ(read_file(checkpoints() / "step-123"), "somebody's notes");
}

TEST_F(CheckpointFolder, AFolderThatDoesNotExistHoldsNone) {
  EXPECT_FALSE(find_newest_checkpoint(dir_ / "absent").found.has_value());
  remove_unpublished_checkpoints(dir_ / "absent");
}

TEST_F(CheckpointFolder, AnotherFormatIsRefusedByNumber) {
  save(400, "weights");
  const fs::path manifest = checkpoints() / "step-00000400" / "manifest.json";
  std::string text = read_file(manifest);
  text.replace(text.find("\"format\": 1"), 11, "\"format\": 9");
  write_file(manifest, text);
  try {
    (void)open_checkpoint(checkpoints() / "step-00000400");
    FAIL() << "read";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kVersion);
    EXPECT_NE(std::string(e.what()).find("format 9"), std::string::npos) << e.what();
  }
}

TEST_F(CheckpointFolder, AFolderThatCannotBeMadeIsNamed) {
  write_file(checkpoints(), "a file where a folder should be");
  try {
    save(400, "weights");
    FAIL() << "saved";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kIo);
    EXPECT_NE(std::string(e.what()).find(checkpoints().string()), std::string::npos) << e.what();
  }
}

TEST(CheckpointManifestText, NumbersThatJsonCannotHoldAreLeftOut) {
  CheckpointManifest manifest;
  manifest.metrics["loss"] = std::numeric_limits<double>::quiet_NaN();
  manifest.metrics["accuracy"] = 0.5;
  EXPECT_EQ(parse_manifest(write_manifest(manifest)).metrics,
            (std::map<std::string, double>{{"accuracy", 0.5}}));
}

}  // namespace
}  // namespace ranklog::test
