#pragma once
// define_metric: which definition a key follows, what that does to its rows and summary, and how W&B is told.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ranklog/schema/key_path.hpp"
#include "ranklog/schema/records.hpp"

namespace ranklog::sync {

class MetricRules {
 public:
  // Of two definitions with one name the later one holds.
  MetricRules(const std::vector<MetricDefinition>& definitions, const std::vector<KeyPath>& keys);

  // The definition that names the key, else that of the longest matching glob; null: none.
  [[nodiscard]] const MetricDefinition* of(std::uint32_t key) const { return by_key_[key]; }
  // The key whose latest value is filled into rows that have `key` and lack it.
  [[nodiscard]] std::optional<std::uint32_t> filled_step_key(std::uint32_t key) const {
    return step_key_[key];
  }

  // The list that stands in config under _wandb.m (protocol page 5). Globs are spelled out key by key, which
  // every server understands.
  [[nodiscard]] std::string wandb_list() const;

 private:
  [[nodiscard]] const MetricDefinition* find(const std::string& key) const;

  std::vector<MetricDefinition> definitions_;
  std::vector<std::string> names_;  // of the keys, in display form
  std::vector<const MetricDefinition*> by_key_;
  std::vector<std::optional<std::uint32_t>> step_key_;
};

}  // namespace ranklog::sync
