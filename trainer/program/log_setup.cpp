#include "log_setup.hpp"

namespace ranklog {

Options log_options(const Settings& settings, const Place& place) {
  Options options;
  options.log_dir = settings.log_dir;
  options.project = settings.project;
  options.experiment = settings.run_id;
  options.group = settings.group;
  options.log_strategy = settings.log_strategy;
  options.rank = place.rank;
  options.local_rank = place.local_rank;
  options.world_size = place.world_size;
  options.local_world_size = place.local_world_size;
  options.node = place.node;
  return options;
}

void describe_run(Writer& log, const Settings& settings, const Place& place, const DigitsSplit& data) {
  const TrainingOptions& t = settings.training;
  log.config({{"world_size", place.world_size},
              {"rank", place.rank},
              {"local_rank", place.local_rank},
              {"local_world_size", place.local_world_size},
              {"node", place.node},
              {"learning_rate", t.learning_rate},
              {"momentum", t.momentum},
              {"epochs", t.epochs},
              {"batch_size", t.batch_size},
              {"global_batch_size", t.batch_size * place.world_size},
              {"seed", static_cast<std::int64_t>(t.seed)},
              {"architecture", "CNN"},
              {"dataset", "digits"},
              {"train_images", static_cast<std::int64_t>(data.train.size())},
              {"test_images", static_cast<std::int64_t>(data.test.size())},
              {"library", libtorch_version()}});
  log.define_metric({"loss", "", false, false, {"min", "last"}, "minimize"});
  log.define_metric({"accuracy", "", false, false, {"max", "last"}, "maximize"});
  if (place.rank != 0) return;
  log.define_metric({"loss_all_reduced", "", false, false, {"min", "last"}, "minimize"});
  log.define_metric({"test_accuracy", "", false, false, {"max", "last"}, "maximize"});
}

}  // namespace ranklog
