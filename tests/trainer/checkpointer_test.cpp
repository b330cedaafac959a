#include "ranklog/trainer/checkpointer.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "rank_threads.hpp"
#include "ranklog/schema/naming.hpp"
#include "ranklog/schema/rank_file.hpp"
#include "support/temp_dir.hpp"

namespace ranklog::test {
namespace {

namespace fs = std::filesystem;

class CheckpointerTest : public testing::Test {
 protected:
  Writer open_log(const Communicator& communicator) {
    Options options;
    options.console = false;
    options.system_metrics_interval = std::chrono::milliseconds(0);
    options.log_dir = dir_.path();
    options.project = "p";
    options.experiment = "x";
    options.choice = LaunchChoice{"x", "one launch", false};
    options.rank = options.local_rank = communicator.rank();
    options.world_size = options.local_world_size = communicator.size();
    options.node = 0;
    return Writer::open(options);
  }
  [[nodiscard]] fs::path folder() const { return dir_ / "p" / "x"; }
  [[nodiscard]] CheckpointPolicy policy(int keep = 0) const {
    CheckpointPolicy policy;
    policy.folder = folder() / "checkpoints";
    policy.artifact = "x-model";
    policy.keep = keep;
    return policy;
  }
  static CheckpointManifest about(std::int64_t step) {
    CheckpointManifest about;
    about.step = step;
    return about;
  }

  TempDir dir_;
};

void write_weights(const CheckpointWriter::Sink& sink) {
  sink("weights", 7);
}

// What a rank had logged can be read from its file, in SQLite's own tables, when rank 0 begins to write.
TEST_F(CheckpointerTest, EveryLogIsDurableBeforeTheModelIsWrittenAndNobodyGoesOnBeforeItIs) {
  std::atomic<int> flushed = 0;
  std::atomic<bool> written = false;
  expect_all_well(run_in_process_ranks(3, 60s, [&](Communicator& communicator) {
    Writer log = open_log(communicator);
    log.log(0, {{"loss", 0.5 + communicator.rank()}});
    Checkpointer checkpointer(communicator, log, policy());
    checkpointer.save(about(1), [&](const CheckpointWriter::Sink& sink) {
      EXPECT_EQ(communicator.rank(), 0);
      for (int rank = 0; rank < 3; ++rank) {
        const RankFile file = RankFile::open(folder() / rank_file_name(rank, 0));
        flushed += file.info().last_step == 0 ? 1 : 0;
      }
      std::this_thread::sleep_for(100ms);
      EXPECT_FALSE(find_newest_checkpoint(folder() / "checkpoints").found) << "published before it is whole";
      write_weights(sink);
      written = true;
    });
    EXPECT_TRUE(written);
    EXPECT_TRUE(find_newest_checkpoint(folder() / "checkpoints").found);
    log.finish();
  }));
  EXPECT_EQ(flushed, 3);
}

// The others wait for the write as long as it takes, not as long as a rank may take to come.
TEST_F(CheckpointerTest, ASlowDiskIsNoFailure) {
  expect_all_well(run_in_process_ranks(2, 5s, [&](Communicator& communicator) {
    Writer log = open_log(communicator);
    Checkpointer checkpointer(communicator, log, policy());
    checkpointer.save(about(1), [](const CheckpointWriter::Sink& sink) {
      std::this_thread::sleep_for(8s);
      write_weights(sink);
    });
    log.finish();
  }));
}

TEST_F(CheckpointerTest, ARankZeroThatCannotWriteIsNoLongWait) {
  const Endings endings = run_in_process_ranks(2, 60s, [&](Communicator& communicator) {
    Writer log = open_log(communicator);
    Checkpointer checkpointer(communicator, log, policy());
    try {
      checkpointer.save(about(1), [](const CheckpointWriter::Sink&) {
        throw Error(ErrorCode::kIo, "cannot write: No space left on device");
      });
    } catch (const Error& e) {
      if (communicator.rank() == 0) communicator.report_failure(e.what());
      throw;
    }
  });
  EXPECT_EQ(endings[0], "cannot write: No space left on device");
  EXPECT_EQ(endings[1], "rank 0 failed: cannot write: No space left on device");
}

TEST_F(CheckpointerTest, WhatIsRemovedIsRecorded) {
  expect_all_well(run_in_process_ranks(1, 60s, [&](Communicator& communicator) {
    Writer log = open_log(communicator);
    Checkpointer checkpointer(communicator, log, policy(1));
    for (const std::int64_t step : {1, 2, 3}) checkpointer.save(about(step), write_weights);
    log.finish();
  }));
  std::vector<std::string> removed;
  for (const Event& event : RankFile::open(folder() / "rank-00000.db").events()) {
    if (event.kind == "checkpoint-removed") removed.push_back(event.json);
  }
  ASSERT_EQ(removed.size(), 2U);
  EXPECT_NE(removed[0].find("checkpoints/step-00000001"), std::string::npos) << removed[0];
  EXPECT_NE(removed[1].find("checkpoints/step-00000002"), std::string::npos) << removed[1];
  EXPECT_EQ(list_published_checkpoints(folder() / "checkpoints"), std::vector<std::string>{"step-00000003"});
}

}  // namespace
}  // namespace ranklog::test
