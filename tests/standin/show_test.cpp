// What the server tells people about what it holds.

#include <gtest/gtest.h>

#include "show.hpp"
#include "table.hpp"
#include "text.hpp"

namespace ranklog::standin {
namespace {

Json run(const std::string& id, int rank) {
  return {{"id", id},
          {"name", "rank-" + std::to_string(rank)},
          {"group", "a-group-with-a-rather-long-name-as-people-choose-them"},
          {"job_type", "train"},
          {"state", "finished"},
          {"history_rows", 1200},
          {"event_rows", 3},
          {"console_lines", 0},
          {"last_step", 1199},
          {"config", {{"world_size", 4}, {"rank", rank}, {"local_rank", rank % 2}, {"lr", 0.1}}},
          {"summary", {{"loss", 0.03125}, {"eval", {{"acc", 0.975}}}, {"_step", 1199}, {"nan", "NaN"}}},
          {"files", Json::array()},
          {"anomalies", rank == 3 ? Json::array({"history line 7 came after a gap"}) : Json::array()},
          {"more_anomalies", 0}};
}

Json sample_state() {
  const Json artifact = {{"name", "digits-model"},
                         {"type", "model"},
                         {"version", "v1"},
                         {"state", "COMMITTED"},
                         {"aliases", {"best", "latest"}},
                         {"digest", "e2c67e5f6fe46d434b500e7c2a821011"},
                         {"size", 1258291},
                         {"files", {{{"path", "model.pt"}, {"size", 1258291}}}},
                         {"run", "digits-20260131-all-r0-1a2b3c4d"}};
  Json project = {{"entity", "me"}, {"project", "distributed-wandb"}, {"artifacts", {artifact}}};
  for (int rank = 0; rank < 4; ++rank) {
    project["runs"].push_back(run("digits-20260131-all-r" + std::to_string(rank) + "-1a2b3c4d", rank));
  }
  return {{"projects", {project}}};
}

TEST(StandinShow, FitsAHundredColumnsAndNamesWhatMatters) {
  const std::string text = state_text(sample_state(), 100, false);
  for (const std::string& line : split(text, '\n')) EXPECT_LE(display_width(line), 100U) << line;
  for (const char* part : {"me/distributed-wandb · 4 runs · 1 artifact version", "rank-3", "finished", "1200",
                           "loss 0.03125", "eval.acc 0.975", "nan NaN", "digits-model", "best, latest",
                           "e2c67e5f6fe4", "1.2 MiB", "model.pt", "history line 7 came after a gap"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(text.find("_step"), std::string::npos) << "internal keys are not shown";
}

TEST(StandinShow, UsesColorOnlyWhenAsked) {
  EXPECT_EQ(state_text(sample_state(), 100, false).find('\033'), std::string::npos);
  EXPECT_NE(state_text(sample_state(), 100, true).find('\033'), std::string::npos);
}

TEST(StandinShow, SaysSoWhenThereIsNothing) {
  EXPECT_EQ(state_text({{"projects", Json::array()}}, 100, false), "The server holds nothing yet.\n");
}

TEST(StandinTable, CutsOnlyColumnsThatMayShrinkAndCountsCodePoints) {
  Table table({{"name", Table::Align::kLeft, true}, {"n", Table::Align::kRight, false}});
  table.add_row({"größer-als-erlaubt", "12345"});
  EXPECT_EQ(table.render(16), "  name         n\n  größer…  12345\n");
  EXPECT_EQ(table.render(80), "  name                    n\n  größer-als-erlaubt  12345\n");
}

}  // namespace
}  // namespace ranklog::standin
