// The background thread beside a caller that takes long over its row.

#include "sealer.hpp"

#include <gtest/gtest.h>

#include <ctime>
#include <thread>

#include "support/temp_dir.hpp"
#include "tail_rows.hpp"

namespace ranklog::writer {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

class SealerTest : public ::testing::Test {
 protected:
  SealerTest() {
    Sealer::Settings settings;
    settings.rank_file = rank_file_;
    settings.chunk_rows = 10;
    settings.sync_interval = 1h;
    settings.seal_interval = 1h;
    Identity identity;
    identity.launch_token = "token";
    sealer_.emplace(settings, RankDatabase::create(rank_file_, identity, 0), recorder_);
    thread_ = std::thread([this] { sealer_->run(); });
  }
  ~SealerTest() override {
    sealer_->request_stop(EndRecord{}, steady_clock::now() + 10s);
    thread_.join();
  }

  void log(int rows) {
    const Field fields[] = {{"a", 1.0}};
    for (int i = 0; i < rows; ++i) EXPECT_EQ(recorder_.log(i, fields), LogStatus::kOk);
  }

  const test::TempDir dir_;
  const std::filesystem::path rank_file_ = dir_ / "rank-00000.db";
  Recorder recorder_{{}, 0, {rank_file_, encode_tail_header("token", 0), TailMode::kMapped}};
  std::optional<Sealer> sealer_;
  std::thread thread_;
};

TEST_F(SealerTest, FlushWaitsForTheRowsThatHaveTheirPlaces) {
  log(1);
  test::TailRowOnItsWay late(recorder_.queue());
  log(1);
  EXPECT_FALSE(sealer_->flush(3, steady_clock::now() + 100ms) && recorder_.is_durable(3));
  EXPECT_TRUE(recorder_.is_durable(1));
  EXPECT_FALSE(recorder_.is_durable(2));
  std::jthread caller([&] {
    std::this_thread::sleep_for(100ms);
    EXPECT_EQ(late.publish(), 0);
  });
  const auto start = steady_clock::now();
  EXPECT_TRUE(sealer_->flush(3, steady_clock::now() + 20s));
  EXPECT_LT(steady_clock::now() - start, 10s);
  EXPECT_TRUE(recorder_.is_durable(3));
}

TEST_F(SealerTest, RowThatIsLongInComingCostsNoTimeOfTheProcessor) {
  log(1);
  test::TailRowOnItsWay late(recorder_.queue());
  log(100);
  std::this_thread::sleep_for(100ms);
  const auto before = std::clock();
  std::this_thread::sleep_for(500ms);
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 10);
  EXPECT_EQ(late.publish(), 0);
  for (int i = 0; i < 1000 && !recorder_.is_durable(90); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(recorder_.is_durable(90)) << "sealing does not go on";
}

}  // namespace
}  // namespace ranklog::writer
