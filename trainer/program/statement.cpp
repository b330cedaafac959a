#include "statement.hpp"

#include <array>
#include <charconv>

#include "ranklog/schema/digest.hpp"

namespace ranklog {
namespace {

// The shortest text that is the same number.
std::string number_text(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

// Of the images, not of the file: it may lie elsewhere, or be packed, on another host.
std::string digest_of(const DigitsSplit& data) {
  DigestStream digest;
  for (const Digits* part : {&data.train, &data.test}) {
    digest.update(part->pixels.data(), part->pixels.size() * sizeof(part->pixels[0]));
    digest.update(part->labels.data(), part->labels.size() * sizeof(part->labels[0]));
  }
  return digest.finish().sha256.substr(0, 16);
}

// As somebody named it; launchers' job ids may be named by each rank in its own way.
std::string given_run_id(const Settings& settings, const EnvLookup& environment) {
  if (!settings.run_id.empty()) return settings.run_id;
  const std::string ours = environment("RANKLOG_RUN_ID").value_or("");
  return ours.empty() ? environment("WANDB_RUN_ID").value_or("") : ours;
}

// Without the launcher's count of restarts, which may differ from node to node.
std::string wish_to_resume(const Settings& settings, const EnvLookup& environment) {
  switch (resolve_resume(settings.resume_wish(), false, environment)) {
    case Resume::kNo:
      return "";
    case Resume::kIfThere:
      return "auto";
    case Resume::kMust:
      return "1";
  }
  return "";
}

}  // namespace

RankStatement make_statement(const Settings& settings, const KnownPlace& place, const DigitsSplit& data,
                             const EnvLookup& environment) {
  const TrainingOptions& t = settings.training;
  RankStatement statement;
  statement.place = place;
  statement.restarts = resolve_launch(environment).restart_count;
  statement.settings = {{"--epochs", std::to_string(t.epochs)},
                        {"--batch_size", std::to_string(t.batch_size)},
                        {"--lr", number_text(t.learning_rate)},
                        {"--momentum", number_text(t.momentum)},
                        {"--seed", std::to_string(t.seed)},
                        {"--checkpoint_interval", std::to_string(t.checkpoint_interval)},
                        {"--keep", std::to_string(t.keep)},
                        {"--data of digest", digest_of(data)},
                        {"--project", settings.project},
                        {"--run_id", given_run_id(settings, environment)},
                        {"--resume or RANKLOG_RESUME", wish_to_resume(settings, environment)}};
  return statement;
}

}  // namespace ranklog
