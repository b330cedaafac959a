#pragma once
// What this rank tells the others before they begin.

#include "ranklog/trainer/agreement.hpp"
#include "ranklog/trainer/digits.hpp"
#include "settings.hpp"

namespace ranklog {

[[nodiscard]] RankStatement make_statement(const Settings& settings, const KnownPlace& place,
                                           const DigitsSplit& data, const EnvLookup& environment);

}  // namespace ranklog
