#include "media.hpp"

#include <nlohmann/json.hpp>

#include "ranklog/schema/error.hpp"
#include "ranklog/schema/value.hpp"

namespace ranklog::writer {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kDigitsInName = 20;
constexpr std::size_t kMostBins = 512;

// On the wire, fixed by W&B.
struct KindNames {
  const char* type;
  const char* list_type;  // null: it has no list form
  const char* files;      // the list's member for names; null: the list holds whole values
  const char* folder;
};

KindNames names_of(MediaKind kind) {
  switch (kind) {
    case MediaKind::kImage:
      return {"image-file", "images/separated", "filenames", "media/images"};
    case MediaKind::kAudio:
      return {"audio-file", "audio", nullptr, "media/audio"};
    case MediaKind::kVideo:
      return {"video-file", "videos", nullptr, "media/videos"};
    case MediaKind::kHtml:
      return {"html-file", "html", nullptr, "media/html"};
    case MediaKind::kTable:
      return {"table-file", nullptr, nullptr, "media/table"};
    case MediaKind::kObject3D:
      return {"object3D-file", "object3D", nullptr, "media/object3D"};
    case MediaKind::kMolecule:
      return {"molecule-file", "molecule", nullptr, "media/molecule"};
    case MediaKind::kPlotly:
      return {"plotly-file", nullptr, nullptr, "media/plotly"};
  }
  return {"image-file", nullptr, nullptr, "media/images"};
}

Json object_of(const std::string& text) {
  auto json = Json::parse(text.empty() ? "{}" : text, nullptr, false);
  if (!json.is_object()) throw Error(ErrorCode::kUsage, "the fields of a media value are no JSON object");
  return json;
}

Json single_value(const KindNames& kind, const StoredFile& file, const std::string& name) {
  return {{"_type", kind.type}, {"path", name}, {"sha256", file.digests.sha256}, {"size", file.digests.size}};
}

void add_captions(Json& value, const std::vector<MediaFile>& files) {
  Json captions = Json::array();
  bool any = false;
  for (const MediaFile& file : files) {
    captions.push_back(file.caption);
    any = any || !file.caption.empty();
  }
  if (any) value["captions"] = std::move(captions);
}

Json list_value(const KindNames& kind, const Media& media, const std::vector<StoredFile>& files,
                const std::vector<std::string>& names) {
  if (kind.list_type == nullptr) {
    throw Error(ErrorCode::kUsage, std::string("several files cannot be one ") + kind.type,
                "log each under a key of its own");
  }
  Json value{{"_type", kind.list_type}, {"count", files.size()}};
  if (kind.files != nullptr) {
    value[kind.files] = names;
  } else {
    Json items = Json::array();
    for (std::size_t i = 0; i < files.size(); ++i) items.push_back(single_value(kind, files[i], names[i]));
    value[kind.list_type] = std::move(items);
  }
  add_captions(value, media.files);
  return value;
}

}  // namespace

std::string media_name(MediaKind kind, std::string_view key, std::int64_t step, const std::string& sha256,
                       std::string_view extension) {
  std::string name = names_of(kind).folder;
  for (std::size_t start = 0; start <= key.size();) {
    const std::size_t end = std::min(key.find('/', start), key.size());
    const std::string_view part = key.substr(start, end - start);
    if (part == "." || part == "..") {
      name += "/" + std::string(part.size(), '_');
    } else if (!part.empty()) {
      name += "/" + std::string(part);
    }
    start = end + 1;
  }
  return name + "_" + std::to_string(step) + "_" + sha256.substr(0, kDigitsInName) + std::string(extension);
}

std::string media_value(const Media& media, const std::vector<StoredFile>& files,
                        const std::vector<std::string>& names) {
  const KindNames kind = names_of(media.kind);
  Json value;
  if (files.size() == 1) {
    value = single_value(kind, files.front(), names.front());
    if (!media.files.front().caption.empty()) value["caption"] = media.files.front().caption;
  } else {
    value = list_value(kind, media, files, names);
  }
  const Json fields = object_of(media.json);
  for (const auto& [name, field] : fields.items()) value[name] = field;
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string histogram_value(std::span<const double> edges, std::span<const double> counts) {
  if (counts.empty() || edges.size() != counts.size() + 1 || counts.size() > kMostBins) {
    throw Error(ErrorCode::kUsage,
                "a histogram of " + std::to_string(counts.size()) + " counts and " +
                    std::to_string(edges.size()) + " edges",
                "give 1 to 512 counts and one edge more");
  }
  const auto list = [](std::span<const double> numbers) {
    std::string text = "[";
    for (const double number : numbers) {
      if (text.size() > 1) text += ',';
      append_json(text, ValueView(number));
    }
    return text + "]";
  };
  return R"({"_type":"histogram","values":)" + list(counts) + R"(,"bins":)" + list(edges) + "}";
}

}  // namespace ranklog::writer
