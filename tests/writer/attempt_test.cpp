// Which experiment a launch writes to: new, continued, or a sibling.

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <map>
#include <mutex>
#include <thread>

#include "helpers.hpp"

namespace ranklog {
namespace {

using test::list_folder;
using test::ScopedEnvironment;
using Variables = std::map<std::string, std::string>;

class AttemptTest : public ::testing::Test {
 protected:
  // One process that logs a row and ends; its variables are all that it knows.
  Identity run(const Variables& variables, Options options = {}) {
    const ScopedEnvironment environment(variables);
    options.log_dir = dir_.path();
    options.project = "p";
    auto log = Writer::open(options);
    EXPECT_EQ(log.log({{"i", 1}}), LogStatus::kOk);
    EXPECT_TRUE(log.finish().durable);
    return log.identity();
  }

  // The message of the Error that this launch gets; empty if it gets none.
  std::string refusal(const Variables& variables, Options options = {}) {
    try {
      run(variables, std::move(options));
      return "";
    } catch (const Error& error) {
      code_ = error.code();
      return error.what();
    }
  }

  [[nodiscard]] std::filesystem::path folder(const std::string& experiment) const {
    return dir_.path() / "p" / experiment;
  }

  // `size` ranks as threads, which agree through rank 0.
  std::vector<Identity> run_agreed(int size, Options options = {});

  const test::TempDir dir_;
  ErrorCode code_ = ErrorCode::kIo;
};

Variables rank_of_job(int rank, const std::string& job, const std::string& launch) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", "2"},
          {"LOCAL_WORLD_SIZE", "2"},
          {"RANKLOG_RUN_ID", job},
          {"RANKLOG_LAUNCH_ID", launch}};
}

Variables torchrun(int rank, const std::string& job, int restarts) {
  return {{"RANK", std::to_string(rank)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"WORLD_SIZE", "2"},
          {"LOCAL_WORLD_SIZE", "2"},
          {"MASTER_PORT", "29500"},
          {"TORCHELASTIC_RUN_ID", job},
          {"TORCHELASTIC_RESTART_COUNT", std::to_string(restarts)}};
}

TEST_F(AttemptTest, LoneProcessMakesAnIdOfEightCharacters) {
  const auto first = run({});
  const auto second = run({});
  EXPECT_EQ(first.experiment.size(), 8U);
  EXPECT_EQ(first.experiment.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789"), std::string::npos);
  EXPECT_NE(first.experiment, second.experiment);
  EXPECT_NE(first.launch_token, second.launch_token);
}

TEST_F(AttemptTest, SeveralRanksWithoutAnIdAreToldWhatToSet) {
  const auto message = refusal({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}});
  EXPECT_EQ(code_, ErrorCode::kUsage);
  EXPECT_NE(message.find("RANKLOG_RUN_ID"), std::string::npos) << message;
  EXPECT_NE(message.find("agree"), std::string::npos) << message;
}

TEST_F(AttemptTest, IdThatIsSeenAgainIsASibling) {
  EXPECT_EQ(run({{"WANDB_RUN_ID", "x"}}).experiment, "x");
  const auto second = run({{"WANDB_RUN_ID", "x"}});
  EXPECT_EQ(second.experiment, "x~2");
  EXPECT_EQ(second.wandb_run_id, "") << "it would be uploaded over the first";
  EXPECT_EQ(run({{"WANDB_RUN_ID", "x"}}).experiment, "x~3");
  EXPECT_EQ(list_folder(dir_.path() / "p"), (std::vector<std::string>{"x", "x~2", "x~3"}));
}

TEST_F(AttemptTest, AnIdThatOnlyLooksLikeASiblingKeepsItsRunId) {
  EXPECT_EQ(run({{"RANKLOG_RUN_ID", "x~2"}, {"WANDB_RUN_ID", "theirs"}}).wandb_run_id, "theirs");
  EXPECT_EQ(run({{"RANKLOG_RUN_ID", "x~2"}, {"WANDB_RUN_ID", "theirs"}}).wandb_run_id, "") << "x~2~2";
}

TEST_F(AttemptTest, SiblingContinuedByItsNameIsStillNotTheFirst) {
  run({{"WANDB_RUN_ID", "x"}});
  run({{"WANDB_RUN_ID", "x"}});
  const auto continued = run({{"RANKLOG_RUN_ID", "x~2"}, {"WANDB_RUN_ID", "x"}, {"RANKLOG_RESUME", "1"}});
  EXPECT_EQ(continued.experiment, "x~2");
  EXPECT_EQ(continued.wandb_run_id, "");
}

TEST_F(AttemptTest, ProgramsOfOneBatchScriptAreSiblings) {
  const Variables batch{
      {"ENVIRONMENT", "BATCH"}, {"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}};
  EXPECT_EQ(run(batch).experiment, "slurm-7");
  EXPECT_EQ(run(batch).experiment, "slurm-7~2");
}

TEST_F(AttemptTest, RanksOfOneLaunchShareTheSibling) {
  for (const std::string launch : {"a", "b", "c"}) {
    const auto one = run(rank_of_job(1, "x", launch));
    const auto zero = run(rank_of_job(0, "x", launch));
    EXPECT_EQ(zero.experiment, one.experiment);
    EXPECT_EQ(zero.launch_token, launch);
  }
  EXPECT_EQ(list_folder(dir_.path() / "p"), (std::vector<std::string>{"x", "x~2", "x~3"}));
  EXPECT_EQ(list_folder(folder("x~3")),
            (std::vector<std::string>{"experiment.json", "rank-00000.db", "rank-00001.db"}));
}

TEST_F(AttemptTest, SameRankOfTheSameLaunchTwiceIsRefusedWithTheRemedy) {
  run(rank_of_job(0, "x", "a"));
  run(rank_of_job(1, "x", "a"));
  const auto message = refusal(rank_of_job(0, "x", "a"));
  EXPECT_EQ(code_, ErrorCode::kUsage);
  EXPECT_NE(message.find("RANKLOG_LAUNCH_ID"), std::string::npos) << message;
  EXPECT_NE(message.find("RANKLOG_RESUME"), std::string::npos) << message;
  EXPECT_EQ(list_folder(dir_.path() / "p"), (std::vector<std::string>{"x"}));
}

TEST_F(AttemptTest, RestartByTheLauncherContinuesTheExperiment) {
  for (int restarts = 0; restarts < 3; ++restarts) {
    for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(run(torchrun(rank, "job", restarts)).experiment, "job");
  }
  EXPECT_EQ(
      list_folder(folder("job")),
      (std::vector<std::string>{"experiment.json", "rank-00000.1.db", "rank-00000.2.db", "rank-00000.db",
                                "rank-00001.1.db", "rank-00001.2.db", "rank-00001.db"}));
  EXPECT_EQ(RankFile::open(folder("job") / "rank-00000.2.db").info().identity.launch_token,
            RankFile::open(folder("job") / "rank-00001.2.db").info().identity.launch_token);
}

TEST_F(AttemptTest, RestartOfASiblingContinuesTheSibling) {
  run({{"TORCHELASTIC_RUN_ID", "job"}, {"MASTER_PORT", "1"}});
  EXPECT_EQ(run({{"TORCHELASTIC_RUN_ID", "job"}, {"MASTER_PORT", "2"}}).experiment, "job~2");
  EXPECT_EQ(run({{"TORCHELASTIC_RUN_ID", "job"}, {"MASTER_PORT", "3"}, {"TORCHELASTIC_RESTART_COUNT", "1"}})
                .experiment,
            "job~2");
}

TEST_F(AttemptTest, RequeuedSlurmJobContinuesTheExperiment) {
  const Variables job{{"SLURM_JOB_ID", "7"},
                      {"SLURM_STEP_ID", "0"},
                      {"SLURM_PROCID", "0"},
                      {"SLURM_STEP_NUM_TASKS", "1"},
                      {"SLURM_LOCALID", "0"}};
  EXPECT_EQ(run(job).experiment, "slurm-7.0");
  auto requeued = job;
  requeued["SLURM_RESTART_COUNT"] = "1";
  EXPECT_EQ(run(requeued).experiment, "slurm-7.0");
}

TEST_F(AttemptTest, SecondLaunchMakesANewFileAndNeverTouchesTheFirst) {
  Options options;
  options.experiment = "x";
  run({}, options);
  const auto first = folder("x") / "rank-00000.db";
  const auto bytes = test::read_file(first);
  const auto written = std::filesystem::last_write_time(first);
  options.resume = true;
  options.resume_step = 1;
  run({}, options);
  EXPECT_EQ(list_folder(folder("x")),
            (std::vector<std::string>{"experiment.json", "rank-00000.1.db", "rank-00000.db"}));
  EXPECT_EQ(test::read_file(first), bytes);
  EXPECT_EQ(std::filesystem::last_write_time(first), written);
}

TEST_F(AttemptTest, ResumeHasATokenOfItsOwnAndRecordsItsStep) {
  const auto launch = [&](int rank, const char* resume, const std::string& token) {
    auto variables = torchrun(rank, "job", 0);
    variables["RANKLOG_LAUNCH_ID"] = token;
    Options options;
    if (resume != nullptr) {
      variables["RANKLOG_RESUME"] = resume;
      options.resume_step = 5;
    }
    return run(variables, options);
  };
  const auto first = launch(0, nullptr, "a");
  launch(1, nullptr, "a");
  const auto second = launch(0, "1", "b");
  const auto other_rank = launch(1, "1", "b");
  const auto third = launch(0, "auto", "c");
  EXPECT_EQ(second.experiment, "job");
  EXPECT_EQ(third.experiment, "job");
  EXPECT_FALSE(first.resume_step);
  EXPECT_EQ(second.resume_step, 5);
  EXPECT_NE(second.launch_token, first.launch_token);
  EXPECT_EQ(second.launch_token, other_rank.launch_token);
  EXPECT_NE(third.launch_token, second.launch_token);
  const auto rows = test::read_rows(folder("job") / "rank-00000.1.db");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].step, 5) << "counting goes on from the resume step";
}

TEST_F(AttemptTest, WorldThatGrowsOnResumeNeverJoinsTheOldAttempt) {
  for (int rank = 0; rank < 2; ++rank) run(torchrun(rank, "job", 0));
  for (int rank = 0; rank < 3; ++rank) {
    auto variables = torchrun(rank, "job", 0);
    variables["WORLD_SIZE"] = variables["LOCAL_WORLD_SIZE"] = "3";
    variables["RANKLOG_RESUME"] = "1";
    const auto message = refusal(variables);
    EXPECT_EQ(code_, ErrorCode::kUsage);
    EXPECT_NE(message.find("RANKLOG_LAUNCH_ID"), std::string::npos) << rank << ": " << message;
    EXPECT_NE(message.find("agree"), std::string::npos) << rank << ": " << message;
  }
  EXPECT_EQ(list_folder(folder("job")),
            (std::vector<std::string>{"experiment.json", "rank-00000.db", "rank-00001.db"}));
  for (int rank = 0; rank < 3; ++rank) {
    auto variables = torchrun(rank, "job", 0);
    variables["WORLD_SIZE"] = variables["LOCAL_WORLD_SIZE"] = "3";
    variables["RANKLOG_RESUME"] = "1";
    variables["RANKLOG_LAUNCH_ID"] = "second";
    const auto identity = run(variables);
    EXPECT_EQ(identity.experiment, "job");
    EXPECT_EQ(identity.launch_token, "second");
  }
}

TEST_F(AttemptTest, RestartContinuesTheSiblingOfItsOwnJob) {
  const auto launch = [&](const char* port, int restarts) {
    std::string experiment;
    for (int rank = 0; rank < 2; ++rank) {
      auto variables = torchrun(rank, "job", restarts);
      variables["MASTER_PORT"] = port;
      experiment = run(variables).experiment;
    }
    return experiment;
  };
  EXPECT_EQ(launch("1", 0), "job");
  EXPECT_EQ(launch("2", 0), "job~2");
  EXPECT_EQ(launch("1", 1), "job");
  EXPECT_EQ(launch("2", 1), "job~2");
  EXPECT_EQ(launch("3", 1), "job~2") << "a job that is not there: the newest";
}

TEST_F(AttemptTest, ResumeWithoutAStepCountsOnBehindWhatThisRankLogged) {
  Options options;
  options.experiment = "x";
  run({}, options);
  options.resume = true;
  run({}, options);
  run({}, options);
  EXPECT_EQ(test::read_rows(folder("x") / "rank-00000.2.db").at(0).step, 2);
}

TEST_F(AttemptTest, ResumeStepsAreNotNegativeAndCountingEndsAtTheLastStep) {
  Options options;
  options.experiment = "x";
  options.resume_step = -1;
  EXPECT_FALSE(refusal({}, options).empty());
  EXPECT_EQ(code_, ErrorCode::kUsage);
  constexpr auto kLastStep = std::numeric_limits<std::int64_t>::max();
  {
    const ScopedEnvironment environment({});
    options.resume_step.reset();
    options.log_dir = dir_.path();
    options.project = "p";
    auto log = Writer::open(options);
    EXPECT_EQ(log.log(kLastStep, {{"i", 1}}), LogStatus::kOk);
  }
  options.resume = true;
  run({}, options);
  EXPECT_EQ(test::read_rows(folder("x") / "rank-00000.1.db").at(0).step, kLastStep);
}

TEST_F(AttemptTest, ResumeOfWhatIsNotThereSaysSo) {
  Options options;
  options.resume = true;
  auto message = refusal({{"RANKLOG_RUN_ID", "x"}}, options);
  EXPECT_EQ(code_, ErrorCode::kNotFound);
  EXPECT_NE(message.find(folder("x").string()), std::string::npos) << message;
  EXPECT_FALSE(refusal({{"RANKLOG_RUN_ID", "x"}, {"RANKLOG_RESUME", "1"}}).empty());
  message = refusal({}, options);
  EXPECT_NE(message.find("RANKLOG_RUN_ID"), std::string::npos) << message;
  EXPECT_FALSE(refusal({{"RANKLOG_RUN_ID", "x"}, {"RANKLOG_RESUME", "perhaps"}}).empty());
}

TEST_F(AttemptTest, ResumeAutoStartsWhatIsNotThere) {
  const Variables variables{{"RANKLOG_RUN_ID", "x"}, {"RANKLOG_RESUME", "auto"}};
  Options options;
  options.resume_step = 3;
  const auto first = run(variables, options);
  EXPECT_EQ(first.experiment, "x");
  EXPECT_FALSE(first.resume_step);
  const auto second = run(variables, options);
  EXPECT_EQ(second.experiment, "x");
  EXPECT_EQ(second.resume_step, 3);
}

// A broadcast among threads, as c10d or MPI would do it among processes.
class Broadcast {
 public:
  std::string operator()(int rank, const std::string& text) {
    std::unique_lock lock(mutex_);
    if (rank == 0) {
      told_ = text;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return told_.has_value(); });
    return *told_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::string> told_;
};

std::vector<Identity> AttemptTest::run_agreed(int size, Options options) {
  const ScopedEnvironment environment({});
  Broadcast broadcast;
  std::vector<Identity> identities(static_cast<std::size_t>(size));
  std::vector<std::string> errors(identities.size());
  options.log_dir = dir_.path();
  options.project = "p";
  options.world_size = size;
  options.local_world_size = size;
  {
    std::vector<std::jthread> ranks;
    ranks.reserve(identities.size());
    for (int rank = 0; rank < size; ++rank) {
      ranks.emplace_back([&, rank, mine = options]() mutable {
        const auto index = static_cast<std::size_t>(rank);
        mine.rank = rank;
        mine.agree = [&, rank](const std::string& text) { return broadcast(rank, text); };
        try {
          auto log = Writer::open(mine);
          log.log({{"i", rank}});
          log.finish();
          identities[index] = log.identity();
        } catch (const Error& error) {
          errors[index] = error.what();
        }
      });
    }
  }
  if (!errors[0].empty()) {
    for (const auto& error : errors) EXPECT_EQ(error, errors[0]);
    throw Error(ErrorCode::kUsage, errors[0]);
  }
  for (const auto& identity : identities) {
    EXPECT_EQ(identity.experiment, identities[0].experiment);
    EXPECT_EQ(identity.launch_token, identities[0].launch_token);
  }
  return identities;
}

TEST_F(AttemptTest, RankZeroDecidesAndTellsWhereRanksCanAgree) {
  const auto made = run_agreed(3);
  EXPECT_EQ(made[0].experiment.size(), 8U);

  Options options;
  options.experiment = "x";
  const auto first = run_agreed(3, options);
  const auto second = run_agreed(3, options);
  EXPECT_EQ(first[0].experiment, "x");
  EXPECT_EQ(second[0].experiment, "x~2");
  EXPECT_NE(first[0].launch_token, second[0].launch_token);

  options.resume = true;
  options.resume_step = 9;
  const auto resumed = run_agreed(3, options);
  EXPECT_EQ(resumed[2].experiment, "x");
  EXPECT_EQ(resumed[2].resume_step, 9);
  EXPECT_NE(resumed[2].launch_token, first[0].launch_token);
}

// One rank asks, all are told: what a program does that must know the folder before it opens a log.
TEST_F(AttemptTest, ChoiceMadeBeforeIsTheOneThatOpenFollows) {
  EXPECT_EQ(run({{"RANKLOG_RUN_ID", "x"}}).experiment, "x");
  EXPECT_EQ(run({{"RANKLOG_RUN_ID", "x"}, {"SLURM_JOB_ID", "7"}}).experiment, "x~2");
  const ScopedEnvironment environment({{"RANKLOG_RUN_ID", "x"}, {"SLURM_JOB_ID", "7"}});
  Options options;
  options.log_dir = dir_.path();
  options.project = "p";
  const LaunchChoice fresh = choose_launch(options);
  EXPECT_EQ(fresh.experiment, "x~3");
  EXPECT_FALSE(fresh.resumed);
  EXPECT_FALSE(std::filesystem::exists(folder("x~3"))) << "asking makes nothing";

  const LaunchChoice restarted = choose_launch(options, {{}, true});
  EXPECT_EQ(restarted.experiment, "x~2");
  EXPECT_TRUE(restarted.resumed);
  EXPECT_EQ(choose_launch(options, {Resume::kMust, false}).experiment, "x");

  options.choice = restarted;
  options.resume_step = 5;
  auto log = Writer::open(options);
  EXPECT_EQ(log.folder(), folder("x~2"));
  EXPECT_EQ(log.identity().launch_token, restarted.token);
  EXPECT_EQ(log.identity().resume_step, 5);
}

TEST_F(AttemptTest, RestartOfOneProcessGoesOnWithItsOwnSiblingThoughThereIsANewerOne) {
  for (const char* job : {"6", "7", "8"}) run({{"RANKLOG_RUN_ID", "x"}, {"SLURM_JOB_ID", job}});
  const Variables restart{{"RANKLOG_RUN_ID", "x"}, {"SLURM_JOB_ID", "7"}, {"SLURM_RESTART_COUNT", "1"}};
  EXPECT_EQ(run(restart).experiment, "x~2");
}

TEST_F(AttemptTest, CheckpointsOfARunWithoutLogsAreContinuedOrLeftAlone) {
  std::filesystem::create_directories(folder("x") / "checkpoints" / "step-00000001");
  EXPECT_EQ(run({{"RANKLOG_RUN_ID", "x"}}).experiment, "x~2");
  EXPECT_EQ(run({{"RANKLOG_RUN_ID", "x"}, {"RANKLOG_RESUME", "1"}}).experiment, "x");
}

// Ranks 0 and 1 have a node each, 2 and 3 share one: each sees a job that could be even.
TEST_F(AttemptTest, UnevenNodesThatNobodyNumbersEndTheLaunch) {
  const auto launch_of = [&](int rank, int local_size) {
    const ScopedEnvironment environment({{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
                                         {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                         {"OMPI_COMM_WORLD_SIZE", "4"},
                                         {"OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(local_size)}});
    Options options;
    options.log_dir = dir_.path();
    options.project = "p";
    options.agree = [](const std::string&) {
      return R"({"experiment": "x", "token": "t", "resumed": false, "local_world_size": 1})";
    };
    return Writer::open(options).identity().node;
  };
  EXPECT_EQ(launch_of(1, 1), 1);
  try {
    launch_of(2, 2);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("the node of rank 2 is not known"), std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("GROUP_RANK"), std::string::npos) << error.what();
  }
}

TEST_F(AttemptTest, ErrorOfRankZeroReachesEveryRank) {
  Options options;
  options.experiment = "nowhere";
  options.resume = true;
  try {
    run_agreed(3, options);
    ADD_FAILURE() << "opened";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("nowhere"), std::string::npos) << error.what();
  }
}

TEST_F(AttemptTest, SixtyFourProcessesStartAtOnceInAnEmptyFolder) {
  constexpr int kRanks = 64;
  for (int round = 0; round < 20; ++round) {
    const std::string job = "round-" + std::to_string(round);
    std::vector<std::unique_ptr<test::Child>> ranks;
    ranks.reserve(kRanks);
    test::Pipe start;
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks.push_back(std::make_unique<test::Child>([&, rank] {
        start.close_writer();
        char go = 0;
        static_cast<void>(start.read(&go, 1));  // until the parent closes it
        auto variables = rank_of_job(rank, job, "launch");
        variables["WORLD_SIZE"] = variables["LOCAL_WORLD_SIZE"] = std::to_string(kRanks);
        run(variables);
        return ::testing::Test::HasFailure() ? 1 : 0;
      }));
    }
    start.close_writer();
    for (auto& rank : ranks) EXPECT_EQ(rank->wait(), 0);
    const auto names = list_folder(folder(job));
    ASSERT_EQ(names.size(), kRanks + 1U);
    EXPECT_EQ(names.front(), "experiment.json");
    for (int rank = 0; rank < kRanks; ++rank) {
      char name[32];
      std::snprintf(name, sizeof name, "rank-%05d.db", rank);
      EXPECT_EQ(names[static_cast<std::size_t>(rank) + 1], name);
    }
  }
  EXPECT_EQ(list_folder(dir_.path() / "p").size(), 20U) << "no sibling was made";
}

}  // namespace
}  // namespace ranklog
