#include <gtest/gtest.h>

#include <map>

#include "ranklog/trainer/c10d_communicator.hpp"

namespace ranklog::test {
namespace {

using Variables = std::map<std::string, std::string>;

Rendezvous read(const Variables& variables, int world_size = 4) {
  Place place;
  place.rank = 2;
  place.world_size = world_size;
  return read_rendezvous(place, [&](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(std::string(name));
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string refusal(const Variables& variables) {
  try {
    (void)read(variables);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    return e.what();
  }
  return "nothing was refused";
}

TEST(Rendezvous, TheGuidesVariablesAreEnough) {
  const Rendezvous r = read({{"MASTER_ADDR", "node-0"}, {"MASTER_PORT", "29500"}});
  EXPECT_EQ(r.rank, 2);
  EXPECT_EQ(r.size, 4);
  EXPECT_EQ(r.master_addr, "node-0");
  EXPECT_EQ(r.master_port, 29500);
  EXPECT_FALSE(r.agent_serves_store);
}

TEST(Rendezvous, TorchrunsAgentIsNoticed) {
  const Rendezvous r =
      read({{"MASTER_ADDR", "node-0"}, {"MASTER_PORT", "29500"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_TRUE(r.agent_serves_store);
}

TEST(Rendezvous, AnAgentThatDoesNotServeTheStoreIsNoticed) {
  EXPECT_FALSE(
      read({{"MASTER_ADDR", "node-0"}, {"MASTER_PORT", "29500"}, {"TORCHELASTIC_USE_AGENT_STORE", "False"}})
          .agent_serves_store);
}

TEST(Rendezvous, AMissingAddressIsNamed) {
  EXPECT_NE(refusal({{"MASTER_PORT", "29500"}}).find("MASTER_ADDR is not set"), std::string::npos);
  EXPECT_NE(refusal({{"MASTER_ADDR", "node-0"}}).find("MASTER_PORT is not set"), std::string::npos);
  EXPECT_NE(refusal({{"MASTER_ADDR", ""}, {"MASTER_PORT", "29500"}}).find("MASTER_ADDR is not set"),
            std::string::npos);
}

TEST(Rendezvous, APortThatIsNoneIsNamedWithItsValue) {
  for (const std::string port : {"0", "65536", "http", "29500x", "-1", " 29500"}) {
    EXPECT_EQ(refusal({{"MASTER_ADDR", "node-0"}, {"MASTER_PORT", port}}),
              "MASTER_PORT='" + port + "' is not a port (1 to 65535)");
  }
}

TEST(Rendezvous, OneRankNeedsNoAddress) {
  EXPECT_EQ(read({}, 1).size, 1);
}

}  // namespace
}  // namespace ranklog::test
