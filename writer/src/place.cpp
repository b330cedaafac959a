// Rank, local rank, world sizes and node, from explicit options and the launchers' variables.
//
// Launchers nest: torchrun inside srun, mpirun inside sbatch. The innermost one that speaks started this
// process; an outer one describes this process too only where it agrees on rank and world size (srun with
// PMIx, or RANK exported from SLURM_PROCID), and then fills what the inner one left out.

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <string>
#include <vector>

#include "environment.hpp"
#include "ranklog/schema/error.hpp"
#include "ranklog/writer/launch.hpp"

namespace ranklog {
namespace {

using writer::lookup;
using writer::lookup_any;
using writer::parse_count;

// A number and where it came from, as messages show it: "WORLD_SIZE=4".
struct Fact {
  int value = 0;
  std::string origin;
};

struct Facts {
  std::string launcher;
  std::optional<Fact> rank, local_rank, world_size, local_world_size, node;
  bool if_nodes_are_even = false;

  [[nodiscard]] bool any() const { return rank || local_rank || world_size; }
};

[[noreturn]] void refuse(const std::string& message, const std::string& hint) {
  throw Error(ErrorCode::kUsage, message, hint);
}

std::optional<Fact> read_number(const EnvLookup& environment, std::initializer_list<std::string_view> names) {
  const auto found = lookup_any(environment, names);
  if (!found) return std::nullopt;
  const auto value = parse_count(found->text);
  if (!value) {
    refuse("cannot tell this process's place in the job: " + found->name + "=" + found->text +
               " is not a whole number from 0 on",
           "correct or unset " + found->name);
  }
  return Fact{*value, found->name + "=" + found->text};
}

std::optional<Fact> read_option(const std::optional<int>& given, const char* name) {
  if (!given) return std::nullopt;
  std::string origin = std::string("option ") + name + "=" + std::to_string(*given);
  if (*given < 0)
    refuse("cannot tell this process's place in the job: " + origin + " is negative", "correct it");
  return Fact{*given, std::move(origin)};
}

Facts read_options(const ExplicitPlace& given) {
  return {"the explicit options",
          read_option(given.rank, "rank"),
          read_option(given.local_rank, "local_rank"),
          read_option(given.world_size, "world_size"),
          read_option(given.local_world_size, "local_world_size"),
          read_option(given.node, "node"),
          false};
}

Facts read_torchrun(const EnvLookup& environment) {
  return {"torchrun",
          read_number(environment, {"RANK"}),
          read_number(environment, {"LOCAL_RANK"}),
          read_number(environment, {"WORLD_SIZE"}),
          read_number(environment, {"LOCAL_WORLD_SIZE"}),
          read_number(environment, {"GROUP_RANK"}),
          false};
}

// OMPI_COMM_WORLD_NODE_RANK is the rank within the node once more, not a node number.
Facts read_openmpi(const EnvLookup& environment) {
  return {"OpenMPI",
          read_number(environment, {"OMPI_COMM_WORLD_RANK"}),
          read_number(environment, {"OMPI_COMM_WORLD_LOCAL_RANK"}),
          read_number(environment, {"OMPI_COMM_WORLD_SIZE"}),
          read_number(environment, {"OMPI_COMM_WORLD_LOCAL_SIZE"}),
          std::nullopt,
          false};
}

// MPICH and Intel MPI (Hydra) say MPI_LOCAL*; Cray and newer PMI say PMI_LOCAL_*. PMIx tells no sizes.
Facts read_pmi(const EnvLookup& environment) {
  return {"PMI",
          read_number(environment, {"PMI_RANK", "PMIX_RANK"}),
          read_number(environment, {"MPI_LOCALRANKID", "PMI_LOCAL_RANK"}),
          read_number(environment, {"PMI_SIZE"}),
          read_number(environment, {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"}),
          std::nullopt,
          false};
}

// "2(x3),1" is three nodes of two tasks and one of one. Empty for anything else.
std::vector<int> expand_tasks_per_node(std::string_view text) {
  std::vector<int> tasks;
  while (!text.empty()) {
    const auto entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    const auto open = entry.find("(x");
    const auto count = parse_count(entry.substr(0, open));
    auto repeat = std::optional<int>(1);
    if (open != std::string_view::npos) {
      if (entry.back() != ')') return {};
      repeat = parse_count(entry.substr(open + 2, entry.size() - open - 3));
    }
    constexpr int kMostNodes = 1 << 20;
    if (!count || !repeat || *repeat > kMostNodes) return {};
    tasks.insert(tasks.end(), static_cast<std::size_t>(*repeat), *count);
  }
  return tasks;
}

// The layout counts only if it adds up to the world size: in a step it may be the whole job's.
std::optional<Fact> slurm_tasks_on_node(const EnvLookup& environment, const Facts& facts) {
  const auto layout = lookup_any(environment, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  if (!layout || !facts.node || !facts.world_size) return std::nullopt;
  const auto tasks = expand_tasks_per_node(layout->text);
  const auto index = static_cast<std::size_t>(facts.node->value);
  const auto sum = std::accumulate(tasks.begin(), tasks.end(), std::int64_t{0});
  if (index >= tasks.size() || sum != facts.world_size->value) return std::nullopt;
  return Fact{tasks[index], layout->name + "=" + layout->text};
}

// A batch script's own process is one process, whatever SLURM_NTASKS says: only srun starts tasks.
bool is_batch_script(const EnvLookup& environment) {
  return lookup(environment, "ENVIRONMENT") == "BATCH" && !lookup(environment, "SLURM_STEP_ID") &&
         !lookup(environment, "SLURM_STEP_NUM_TASKS");
}

Facts read_slurm(const EnvLookup& environment) {
  Facts facts;
  facts.launcher = "Slurm";
  if (!lookup(environment, "SLURM_PROCID") || is_batch_script(environment)) return facts;
  facts.rank = read_number(environment, {"SLURM_PROCID"});
  facts.local_rank = read_number(environment, {"SLURM_LOCALID"});
  facts.world_size = read_number(environment, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  facts.node = read_number(environment, {"SLURM_NODEID"});
  facts.local_world_size = slurm_tasks_on_node(environment, facts);
  return facts;
}

bool agree(const std::optional<Fact>& a, const std::optional<Fact>& b) {
  return !a || !b || a->value == b->value;
}

// An outer launcher speaks of this very process if nothing that both tell differs, and both tell something.
bool same_process(const Facts& known, const Facts& outer) {
  const bool comparable = (known.rank && outer.rank) || (known.world_size && outer.world_size) ||
                          (!known.rank && !known.world_size);
  return comparable && agree(known.rank, outer.rank) && agree(known.world_size, outer.world_size);
}

void fill(std::optional<Fact>& fact, const std::optional<Fact>& from) {
  if (!fact) fact = from;
}

void fill(Facts& known, const Facts& from) {
  if (known.launcher.empty()) known.launcher = from.launcher;
  fill(known.rank, from.rank);
  fill(known.local_rank, from.local_rank);
  fill(known.world_size, from.world_size);
  fill(known.local_world_size, from.local_world_size);
  fill(known.node, from.node);
}

std::string list_origins(const Facts& facts) {
  std::string list;
  for (const auto* fact :
       {&facts.rank, &facts.local_rank, &facts.world_size, &facts.local_world_size, &facts.node}) {
    if (*fact) list += (list.empty() ? "" : ", ") + (*fact)->origin;
  }
  return list;
}

constexpr const char* kSetAll = "set RANK, LOCAL_RANK, WORLD_SIZE and LOCAL_WORLD_SIZE";

void require_rank_and_size(const Facts& facts, const std::string& set_aside) {
  const std::string also = set_aside.empty() ? "" : " (which does not agree with " + set_aside + ")";
  if (!facts.rank) refuse("the rank is not known: there is only " + list_origins(facts) + also, kSetAll);
  if (!facts.world_size) {
    refuse("the world size is not known: there is only " + list_origins(facts) + also, kSetAll);
  }
}

void require_below(const Fact& index, const Fact& size, const char* what) {
  if (index.value < size.value) return;
  refuse(std::string("the ") + what + " must be below its size, but the variables say " + index.origin +
             " and " + size.origin,
         "correct the variables that contradict each other");
}

bool spread_evenly(int world_size, int local_world_size) {
  return local_world_size > 0 && world_size % local_world_size == 0;
}

void derive_local_rank(Facts& facts) {
  if (facts.local_rank) return;
  const std::string asked = "the local rank is not known: there is only " + list_origins(facts);
  if (facts.world_size->value == 1) {
    facts.local_rank = Fact{0, "one process"};
    return;
  }
  if (!facts.local_world_size)
    refuse(asked, "set LOCAL_RANK (or LOCAL_WORLD_SIZE, if every node has as many)");
  const int size = facts.local_world_size->value;
  if (!spread_evenly(facts.world_size->value, size)) {
    refuse(asked + ", and the nodes cannot all have as many processes", "set LOCAL_RANK");
  }
  if (facts.node && facts.node->value != facts.rank->value / size) {
    refuse(asked + ", and the ranks are not placed node after node", "set LOCAL_RANK");
  }
  facts.local_rank = Fact{facts.rank->value % size, facts.local_world_size->origin};
  facts.if_nodes_are_even = size < facts.world_size->value;
}

void derive_node(Facts& facts) {
  if (facts.node) return;
  const int world = facts.world_size->value;
  if (world == 1) {
    facts.node = Fact{0, "one process"};
    return;
  }
  if (facts.local_world_size && spread_evenly(world, facts.local_world_size->value) &&
      facts.rank->value % facts.local_world_size->value == facts.local_rank->value) {
    facts.node = Fact{facts.rank->value / facts.local_world_size->value, facts.local_world_size->origin};
    facts.if_nodes_are_even = facts.local_world_size->value < world;
    return;
  }
  refuse("the node is not known: there is only " + list_origins(facts),
         facts.local_world_size ? "set GROUP_RANK to the number of the node"
                                : "set LOCAL_WORLD_SIZE, or GROUP_RANK to the number of the node");
}

// With node and local rank told but not how many share the node: exact where the ranks lie node after node,
// else the most that is possible.
void derive_local_world_size(Facts& facts) {
  if (facts.local_world_size) return;
  const int world = facts.world_size->value;
  const int before = facts.rank->value - facts.local_rank->value;
  const int node = facts.node->value;
  const bool in_order = node > 0 && before > 0 && before % node == 0 &&
                        before / node > facts.local_rank->value && spread_evenly(world, before / node);
  facts.local_world_size = Fact{in_order ? before / node : world, facts.world_size->origin};
}

Facts gather_facts(const ExplicitPlace& given, const EnvLookup& environment) {
  Facts known;
  std::string set_aside;
  const std::array launchers{read_options(given), read_torchrun(environment), read_openmpi(environment),
                             read_pmi(environment), read_slurm(environment)};
  for (const auto& launcher : launchers) {
    if (!launcher.any()) {
      if (&launcher == launchers.data()) fill(known, launcher);  // a node or local size alone
      continue;
    }
    if (same_process(known, launcher)) {
      fill(known, launcher);
    } else if (set_aside.empty()) {
      set_aside = list_origins(launcher);
    }
  }
  if (!known.any()) return known;
  require_rank_and_size(known, set_aside);
  require_below(*known.rank, *known.world_size, "rank");
  if (known.local_world_size && known.local_world_size->value > known.world_size->value) {
    refuse("a node cannot have more processes than the job, but the variables say " +
               known.local_world_size->origin + " and " + known.world_size->origin,
           "correct the variables that contradict each other");
  }
  if (known.local_rank && known.local_world_size) {
    require_below(*known.local_rank, *known.local_world_size, "local rank");
  }
  return known;
}

std::optional<int> value_of(const std::optional<Fact>& fact) {
  return fact ? std::optional(fact->value) : std::nullopt;
}

}  // namespace

KnownPlace read_place(const ExplicitPlace& given, const EnvLookup& environment) {
  const Facts known = gather_facts(given, environment);
  if (!known.any()) return {0, 1, 0, 1, 0};
  return {known.rank->value, known.world_size->value, value_of(known.local_rank),
          value_of(known.local_world_size), value_of(known.node)};
}

Place resolve_place(const ExplicitPlace& given, const EnvLookup& environment) {
  Facts known = gather_facts(given, environment);
  if (!known.any()) return Place{};
  derive_local_rank(known);
  derive_node(known);
  derive_local_world_size(known);
  require_below(*known.local_rank, *known.local_world_size, "local rank");
  return {known.rank->value, known.local_rank->value, known.world_size->value, known.local_world_size->value,
          known.node->value, known.if_nodes_are_even};
}

}  // namespace ranklog
