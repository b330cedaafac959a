#include "ranklog/schema/durability.hpp"

#include <nlohmann/json.hpp>

namespace ranklog {
namespace {

constexpr JournalMode kModes[] = {JournalMode::kWal, JournalMode::kPersist, JournalMode::kTruncate,
                                  JournalMode::kDelete};

std::string text_in(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

std::string_view to_string(JournalMode mode) noexcept {
  switch (mode) {
    case JournalMode::kWal:
      return "wal";
    case JournalMode::kPersist:
      return "persist";
    case JournalMode::kTruncate:
      return "truncate";
    case JournalMode::kDelete:
      return "delete";
  }
  return "";
}

std::optional<JournalMode> parse_journal_mode(std::string_view text) noexcept {
  for (const JournalMode mode : kModes) {
    if (text == to_string(mode)) return mode;
  }
  return std::nullopt;
}

std::string to_json(const Durability& durability) {
  const nlohmann::ordered_json object{{"journal_mode", to_string(durability.journal)},
                                      {"synchronous", "extra"},
                                      {"locks", durability.locks},
                                      {"tail", durability.tail},
                                      {"file_system", durability.file_system},
                                      {"reason", durability.reason}};
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<Durability> parse_durability(std::string_view json) {
  const auto object = nlohmann::json::parse(json, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  const auto journal = parse_journal_mode(text_in(object, "journal_mode"));
  if (!journal) return std::nullopt;
  const auto locks = object.find("locks");
  Durability durability;
  durability.journal = *journal;
  durability.locks = locks == object.end() || *locks != false;
  durability.tail = text_in(object, "tail");
  durability.file_system = text_in(object, "file_system");
  durability.reason = text_in(object, "reason");
  return durability;
}

}  // namespace ranklog
