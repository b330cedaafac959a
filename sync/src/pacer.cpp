#include "pacer.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace ranklog::sync {
namespace {

std::optional<double> number(std::optional<std::string_view> text) {
  double value = 0;
  if (!text) return std::nullopt;
  const auto [stop, fault] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (fault != std::errc() || !std::isfinite(value) || value < 0) return std::nullopt;
  return value;
}

}  // namespace

std::chrono::milliseconds Pacer::take(TimePoint now) {
  const std::chrono::duration<double> passed = now - last_;
  last_ = now;
  tokens_ = std::min(kBurst, tokens_ + std::max(0.0, passed.count()) * rate_) - 1;
  if (tokens_ >= 0) return std::chrono::milliseconds(0);
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(-tokens_ / rate_ * 1000)));
}

void Pacer::observe(const HttpResponse& response) {
  constexpr double kSlowest = 0.1;  // requests a second
  const auto remaining = number(response.header("ratelimit-remaining"));
  const auto reset = number(response.header("ratelimit-reset"));
  if (!remaining || !reset || *reset <= 1) return;
  rate_ = std::clamp(*remaining / *reset, kSlowest, kRequestsPerSecond);
  if (rate_ < kRequestsPerSecond) tokens_ = std::min(tokens_, 0.0);
}

}  // namespace ranklog::sync
