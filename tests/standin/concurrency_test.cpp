// Many clients at once.

#include <gtest/gtest.h>

#include "harness.hpp"

namespace ranklog::standin {
namespace {

TEST(StandinConcurrency, ClientsOfDifferentRunsDoNotDisturbEachOther) {
  constexpr int kClients = 8;
  constexpr int kBatches = 10;
  StandinTest server;
  std::vector<std::thread> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&server, c] {
      const std::string run = "r" + std::to_string(c);
      server.upsert(run);
      for (int b = 0; b < kBatches; ++b) {
        server.stream(
            run, history_chunk(static_cast<std::uint64_t>(b), {"{\"_step\":" + std::to_string(b) + "}"}));
      }
      server.stream(run, {{"complete", true}, {"exitcode", 0}});
    });
  }
  for (std::thread& client : clients) client.join();
  const Json runs = server.get("http://x/standin/state").body["projects"][0]["runs"];
  ASSERT_EQ(runs.size(), static_cast<std::size_t>(kClients));
  for (const Json& run : runs) {
    EXPECT_EQ(run["history_rows"], kBatches);
    EXPECT_EQ(run["state"], "finished");
    EXPECT_TRUE(run["anomalies"].empty());
  }
}

TEST(StandinConcurrency, ManyIdleConnectionsLeaveTheServerAnswering) {
  StandinTest server;
  std::vector<std::shared_ptr<void>> idle;
  for (int i = 0; i < 40; ++i) idle.push_back(server.idle_connection());
  EXPECT_EQ(server.upsert("r1").status, 200);
}

}  // namespace
}  // namespace ranklog::standin
