#include "json_text.hpp"

#include <functional>

#include "ranklog/schema/value.hpp"

namespace ranklog::sync {
namespace {

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' ||
         c == '.';
}

// Copies everything but bare words (numbers, true, NaN ...), which go through `replace`.
std::string map_words(std::string_view text, const std::function<std::string(std::string_view)>& replace) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (text[at] == '"') {
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
      out.append(text.substr(at, end - at));
    } else if (is_word(text[at])) {
      while (end < text.size() && is_word(text[end])) ++end;
      out += replace(text.substr(at, end - at));
    } else {
      out.push_back(text[at]);
    }
    at = end;
  }
  return out;
}

std::string strict_word(std::string_view word) {
  if (word == "NaN" || word == "Infinity" || word == "-Infinity") return "null";
  return std::string(word);
}

std::string yaml_word(std::string_view word) {
  if (word == "NaN") return ".nan";
  if (word == "Infinity") return ".inf";
  if (word == "-Infinity") return "-.inf";
  std::string out(word);
  const bool number = (word[0] >= '0' && word[0] <= '9') || word[0] == '-';
  const std::size_t exponent = word.find_first_of("eE");
  if (!number || exponent == std::string_view::npos) return out;
  // YAML 1.1 wants a fraction and a signed exponent.
  const char after = exponent + 1 < out.size() ? out[exponent + 1] : '+';
  if (after != '+' && after != '-') out.insert(exponent + 1, "+");
  if (word.find('.') == std::string_view::npos) out.insert(exponent, ".0");
  return out;
}

}  // namespace

std::string strict_json(std::string_view text) {
  return map_words(text, strict_word);
}

std::string yaml_flow(std::string_view text) {
  return map_words(text, yaml_word);
}

void append_member_name(std::string& out, std::string_view name) {
  append_json_string(out, name);
  out.push_back(':');
}

void append_seconds(std::string& out, std::int64_t ns) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  constexpr int kDigits = 9;
  std::uint64_t magnitude = static_cast<std::uint64_t>(ns);
  if (ns < 0) {
    out.push_back('-');
    magnitude = 0 - magnitude;
  }
  out += std::to_string(magnitude / kSecond);
  std::uint64_t fraction = magnitude % kSecond;
  if (fraction == 0) return;
  char digits[kDigits];
  for (int i = kDigits - 1; i >= 0; --i, fraction /= 10) digits[i] = static_cast<char>('0' + fraction % 10);
  std::string_view shown(digits, kDigits);
  while (shown.ends_with('0')) shown.remove_suffix(1);
  out.push_back('.');
  out += shown;
}

void JsonTree::set(const KeyPath& path, std::string json) {
  Node* here = &root_;
  for (const std::string& name : path.names) {
    auto& child = here->members[name];
    const bool last = &name == &path.names.back();
    if (!child) child = std::make_unique<Node>();
    const bool blocked = last ? !child->members.empty() : !child->json.empty();
    if (blocked) return set(KeyPath::flat(path.display()), std::move(json));
    here = child.get();
  }
  here->json = std::move(json);
}

std::string JsonTree::text() const {
  std::string out;
  print(out, root_);
  return out;
}

void JsonTree::print(std::string& out, const Node& node) {
  if (node.members.empty() && !node.json.empty()) {
    out += node.json;
    return;
  }
  out.push_back('{');
  bool first = true;
  for (const auto& [name, child] : node.members) {
    if (!first) out.push_back(',');
    first = false;
    append_member_name(out, name);
    print(out, *child);
  }
  out.push_back('}');
}

}  // namespace ranklog::sync
