// Nodes and local ranks of a job from what its ranks state about themselves.

#include <algorithm>
#include <map>

#include "ranklog/trainer/agreement.hpp"
#include "roster.hpp"

namespace ranklog {
namespace {

using Statements = std::span<const RankStatement>;
using Members = std::vector<int>;  // ranks of one node, ascending

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kUsage, what,
              "set GROUP_RANK to the number of the node, and LOCAL_RANK and LOCAL_WORLD_SIZE, for each rank");
}

const RankStatement& of(Statements statements, int rank) {
  return statements[static_cast<std::size_t>(rank)];
}

std::map<int, Members> group_as_told(Statements statements) {
  std::map<int, Members> nodes;
  for (std::size_t i = 0; i < statements.size(); ++i) {
    nodes[*statements[i].place.node].push_back(static_cast<int>(i));
  }
  return nodes;
}

// Whether the ranks lie node after node, as many on each, by everything that is known.
bool can_be_counted(Statements statements) {
  const auto size = statements.front().place.local_world_size;
  const auto world = static_cast<int>(statements.size());
  if (!size || *size < 1 || world % *size != 0) return false;
  for (int rank = 0; rank < world; ++rank) {
    const RankStatement& statement = of(statements, rank);
    if (statement.place.local_world_size != size) return false;
    if (statement.place.local_rank.value_or(rank % *size) != rank % *size) return false;
    if (statement.host != of(statements, rank - rank % *size).host) return false;
  }
  return true;
}

std::map<int, Members> group_by_counting(Statements statements) {
  std::map<int, Members> nodes;
  const int size = *statements.front().place.local_world_size;
  const auto world = static_cast<int>(statements.size());
  for (int rank = 0; rank < world; ++rank) nodes[rank / size].push_back(rank);
  return nodes;
}

// Numbered by their lowest rank.
std::map<int, Members> group_by_host(Statements statements) {
  std::map<int, Members> nodes;
  std::map<std::string, int> numbers;
  for (std::size_t i = 0; i < statements.size(); ++i) {
    const int number =
        numbers.try_emplace(statements[i].host, static_cast<int>(numbers.size())).first->second;
    nodes[number].push_back(static_cast<int>(i));
  }
  return nodes;
}

// The host names must bear out whatever else the ranks were told; and something they must have been told.
void require_plausible_hosts(Statements statements, const std::map<int, Members>& nodes) {
  for (const auto& [number, members] : nodes) {
    for (const int rank : members) {
      const RankStatement& statement = of(statements, rank);
      if (!statement.place.local_rank && !statement.place.local_world_size) {
        refuse("the node of rank " + std::to_string(rank) +
               " is not known: it was told neither LOCAL_RANK nor LOCAL_WORLD_SIZE");
      }
      const auto told = statement.place.local_world_size;
      if (!told || *told == static_cast<int>(members.size())) continue;
      refuse("the nodes cannot be told: rank " + std::to_string(rank) + " is one of " +
             std::to_string(*told) + " by its LOCAL_WORLD_SIZE, and " + name_ranks(members) +
             " have its host name '" + statement.host + "'");
    }
  }
}

std::map<int, Members> group(Statements statements) {
  if (statements.size() == 1) return {{statements.front().place.node.value_or(0), {0}}};
  const bool told = std::all_of(statements.begin(), statements.end(),
                                [](const RankStatement& s) { return s.place.node.has_value(); });
  if (told) return group_as_told(statements);
  if (can_be_counted(statements)) return group_by_counting(statements);
  auto nodes = group_by_host(statements);
  require_plausible_hosts(statements, nodes);
  return nodes;
}

// Those told stay; the others count up among the ranks of the node.
void settle_node(Statements statements, int number, const Members& members, std::vector<Place>& places) {
  std::map<int, int> rank_of_local;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const KnownPlace& known = of(statements, members[i]).place;
    Place place;
    place.rank = members[i];
    place.world_size = static_cast<int>(statements.size());
    place.node = number;
    place.local_rank = known.local_rank.value_or(static_cast<int>(i));
    place.local_world_size = known.local_world_size.value_or(static_cast<int>(members.size()));
    const auto [other, fresh] = rank_of_local.emplace(place.local_rank, place.rank);
    if (!fresh) {
      refuse("ranks " + std::to_string(other->second) + " and " + std::to_string(place.rank) +
             " both have the local rank " + std::to_string(place.local_rank) + " on node " +
             std::to_string(number));
    }
    if (place.local_rank >= place.local_world_size) {
      refuse("rank " + std::to_string(place.rank) + " cannot have the local rank " +
             std::to_string(place.local_rank) + " of " + std::to_string(place.local_world_size));
    }
    places[static_cast<std::size_t>(place.rank)] = place;
  }
}

}  // namespace

std::vector<Place> settle_places(Statements by_rank) {
  std::vector<Place> places(by_rank.size());
  for (const auto& [number, members] : group(by_rank)) settle_node(by_rank, number, members, places);
  return places;
}

}  // namespace ranklog
