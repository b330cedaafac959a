#include "ranklog/sync/server_settings.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "ranklog/schema/error.hpp"
#include "ranklog/sync/url.hpp"

namespace ranklog::sync {
namespace {

namespace fs = std::filesystem;

struct SettingsFile {
  std::string path;
  std::string text;
};

std::optional<std::string> read_small_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

fs::path expand_home(const std::string& path, const Environment& environment) {
  if (!path.starts_with("~")) return path;
  return environment("HOME").value_or("") + path.substr(1);
}

// Strongest first: the folder of this project, then the user's.
std::vector<SettingsFile> settings_files(const Environment& environment) {
  const fs::path root = environment("WANDB_DIR").value_or(".");
  std::error_code ignored;
  const fs::path local = fs::is_directory(root / ".wandb", ignored) ? root / ".wandb" : root / "wandb";
  const auto config = environment("WANDB_CONFIG_DIR");
  const fs::path global = config ? expand_home(*config, environment)
                                 : fs::path(environment("HOME").value_or("")) / ".config" / "wandb";
  std::vector<SettingsFile> files;
  for (const fs::path& folder : {local, global}) {
    const fs::path path = folder / "settings";
    if (auto text = read_small_file(path)) files.push_back({path.string(), *std::move(text)});
  }
  return files;
}

struct Found {
  std::string value;
  std::string source;
};

class Lookup {
 public:
  explicit Lookup(const Environment& environment)
      : environment_(environment), files_(settings_files(environment)) {}

  [[nodiscard]] std::optional<Found> find(std::string_view variable, std::string_view key) const {
    if (auto value = environment_(variable)) return Found{*value, std::string(variable)};
    for (const SettingsFile& file : files_) {
      if (auto value = settings_value(file.text, key)) {
        return Found{*value, std::string(key) + " in " + file.path};
      }
    }
    return std::nullopt;
  }
  [[nodiscard]] std::string text(std::string_view variable, std::string_view key) const {
    const auto found = find(variable, key);
    return found ? found->value : "";
  }

 private:
  const Environment& environment_;
  std::vector<SettingsFile> files_;
};

std::string checked_base_url(const Found& found) {
  Url url = parse_url(found.value, found.source);
  while (url.path.ends_with('/')) url.path.pop_back();
  const std::string host = url.host();
  const bool wandb_cloud = host == "wandb.ai" || host.ends_with(".wandb.ai");
  if (wandb_cloud && (!host.starts_with("api.") || url.scheme != "https")) {
    throw Error(ErrorCode::kUsage, found.source + " is " + found.value + ", which is not W&B's API",
                "use https://api.wandb.ai");
  }
  return url.text();
}

std::chrono::seconds parse_seconds(const Found& found) {
  double value = 0;
  const char* end = found.value.data() + found.value.size();
  const auto [stop, fault] = std::from_chars(found.value.data(), end, value);
  if (fault != std::errc() || stop != end || !(value >= 1) || value > 86400) {
    throw Error(ErrorCode::kUsage,
                found.source + " is \"" + found.value + "\" and must be a number of seconds from 1 to 86400");
  }
  return std::chrono::seconds(static_cast<std::int64_t>(value));
}

fs::path netrc_path(const Environment& environment) {
  if (const auto given = environment("NETRC")) return expand_home(*given, environment);
  const fs::path home = environment("HOME").value_or("");
  std::error_code ignored;
  const fs::path underscore = home / "_netrc";
  if (!fs::exists(home / ".netrc", ignored) && fs::exists(underscore, ignored)) return underscore;
  return home / ".netrc";
}

Credentials checked(Credentials credentials) {
  const std::string fault = api_key_fault(credentials.api_key);
  if (!fault.empty()) {
    throw Error(ErrorCode::kUnauthorized, "the API key in " + credentials.source + " " + fault,
                "copy the whole key again from the server's authorize page");
  }
  return credentials;
}

bool is_key_text(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

// Three words joined by dots: an identity token, which is accepted in the key's place.
bool is_token_shape(std::string_view key) {
  const std::size_t first = key.find('.');
  if (first == std::string_view::npos) return false;
  const std::size_t second = key.find('.', first + 1);
  if (second == std::string_view::npos) return false;
  return is_key_text(key.substr(0, first)) && is_key_text(key.substr(first + 1, second - first - 1)) &&
         is_key_text(key.substr(second + 1));
}

}  // namespace

ServerSettings find_server(const Environment& environment) {
  const Lookup lookup(environment);
  ServerSettings out;
  const auto base = lookup.find("WANDB_BASE_URL", "base_url");
  out.base_url = base ? checked_base_url(*base) : "https://api.wandb.ai";
  if (const auto app = lookup.find("WANDB_APP_URL", "app_url")) {
    out.app_url = parse_url(app->value, app->source).text();
    while (out.app_url.ends_with('/')) out.app_url.pop_back();
  } else {
    out.app_url = app_url_of(out.base_url);
  }
  out.entity = lookup.text("WANDB_ENTITY", "entity");
  out.username = lookup.text("WANDB_USERNAME", "username");
  out.email = lookup.text("WANDB_USER_EMAIL", "email");
  if (const auto timeout = lookup.find("WANDB_HTTP_TIMEOUT", "http_timeout")) {
    out.graphql_timeout = parse_seconds(*timeout);
  }
  out.verify_tls = !is_true(lookup.text("WANDB_INSECURE_DISABLE_SSL", "insecure_disable_ssl"));
  for (const char* name : {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}) {
    if (out.ca_file.empty()) out.ca_file = environment(name).value_or("");
  }
  return out;
}

std::string app_url_of(std::string_view base_url) {
  constexpr struct {
    std::string_view from, to;
  } kRules[] = {
      {"://api.wandb.test", "://app.wandb.test"}, {"://api.wandb.", "://wandb."}, {"://api.", "://app."}};
  std::string out(base_url);
  for (const auto& rule : kRules) {
    const std::size_t at = out.find(rule.from);
    if (at != std::string::npos) return out.replace(at, rule.from.size(), rule.to);
  }
  return out;
}

Credentials find_credentials(const ServerSettings& server, const Environment& environment) {
  if (environment("WANDB_IDENTITY_TOKEN_FILE")) {
    throw Error(ErrorCode::kUnauthorized,
                "WANDB_IDENTITY_TOKEN_FILE is set, and identity tokens are not read",
                "unset it and give an API key in WANDB_API_KEY");
  }
  if (const auto key = environment("WANDB_API_KEY")) return checked({*key, "WANDB_API_KEY"});
  const std::string host = parse_url(server.base_url, "the server's address").netloc;
  const fs::path path = netrc_path(environment);
  if (const auto text = read_small_file(path)) {
    if (auto password = netrc_password(*text, host)) return checked({*std::move(password), path.string()});
  }
  throw Error(
      ErrorCode::kUnauthorized, "no API key for " + host,
      "set WANDB_API_KEY, or put \"machine " + host + " login user password <key>\" into " + path.string());
}

std::string api_key_fault(std::string_view key) {
  constexpr std::size_t kShortest = 40;
  if (key.empty()) return "is empty";
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  if (blank(key.front()) || blank(key.back())) return "begins or ends with white space";
  if (is_token_shape(key)) return "";
  const std::size_t dash = key.find('-');
  const std::string_view secret = dash == std::string_view::npos ? key : key.substr(dash + 1);
  if (!is_key_text(secret)) return "holds characters that no key has";
  if (secret.size() < kShortest) {
    return "has " + std::to_string(secret.size()) + " characters and must have at least 40";
  }
  return "";
}

}  // namespace ranklog::sync
