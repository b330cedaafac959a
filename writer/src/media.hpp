#pragma once
// Media values in W&B's own JSON (its documentation and wandb-core's behaviour): the value in the row, and
// the file behind it under the name that it has at W&B.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "capture.hpp"
#include "ranklog/writer/writer.hpp"

namespace ranklog::writer {

// media/images/<key>_<step>_<first 20 digits of sha256>.<ext>; '/' in the key makes folders, and no part
// leads out of the folder.
[[nodiscard]] std::string media_name(MediaKind kind, std::string_view key, std::int64_t step,
                                     const std::string& sha256, std::string_view extension);

// JSON text of the value for these files, stored under these names. One file: W&B's single form; several: its
// list form. Throws Error (kUsage): `json` is no object, a kind without a list form.
[[nodiscard]] std::string media_value(const Media& media, const std::vector<StoredFile>& files,
                                      const std::vector<std::string>& names);

// {"_type": "histogram", ...}. Throws Error (kUsage): edges are not one more than counts, or more than 512
// bins.
[[nodiscard]] std::string histogram_value(std::span<const double> edges, std::span<const double> counts);

}  // namespace ranklog::writer
