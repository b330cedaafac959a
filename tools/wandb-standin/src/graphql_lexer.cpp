#include "graphql_lexer.hpp"

#include <algorithm>
#include <cctype>

#include "api_error.hpp"
#include "utf8.hpp"

namespace ranklog::standin {
namespace {

bool is_name_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool is_name_part(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool is_number_part(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '+' || c == '.' || c == 'e' ||
         c == 'E';
}

}  // namespace

bool Lexer::at(std::string_view punctuation) const noexcept {
  return token_.kind == Token::Kind::kPunctuation && token_.text == punctuation;
}

bool Lexer::accept(std::string_view punctuation) {
  if (!at(punctuation)) return false;
  advance();
  return true;
}

void Lexer::expect(std::string_view punctuation) {
  if (!accept(punctuation)) fail("expected '" + std::string(punctuation) + "'");
}

std::string Lexer::take_name() {
  if (token_.kind != Token::Kind::kName) fail("expected a name");
  return take().text;
}

Token Lexer::take() {
  Token taken = token_;
  advance();
  return taken;
}

void Lexer::fail(const std::string& problem) const {
  const auto line =
      1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(position_), '\n');
  throw ApiError(400, "Syntax Error: " + problem + " before line " + std::to_string(line) + ", found '" +
                          token_.text + "'");
}

char Lexer::peek(std::size_t ahead) const noexcept {
  return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
}

void Lexer::skip_ignored() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '#') {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else if (c == ',' || std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++position_;
    } else {
      return;
    }
  }
}

void Lexer::advance() {
  skip_ignored();
  if (position_ >= text_.size()) {
    token_ = {};
    return;
  }
  const char c = peek();
  if (is_name_start(c)) {
    token_ = read_name();
  } else if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-') {
    token_ = read_number();
  } else if (c == '"') {
    token_ = text_.substr(position_, 3) == "\"\"\"" ? read_block_string() : read_string();
  } else {
    const std::size_t length = text_.substr(position_, 3) == "..." ? 3 : 1;
    token_ = {Token::Kind::kPunctuation, std::string(text_.substr(position_, length))};
    position_ += length;
  }
}

Token Lexer::read_name() {
  const std::size_t start = position_;
  while (is_name_part(peek())) ++position_;
  return {Token::Kind::kName, std::string(text_.substr(start, position_ - start))};
}

Token Lexer::read_number() {
  const std::size_t start = position_;
  while (is_number_part(peek())) ++position_;
  return {Token::Kind::kNumber, std::string(text_.substr(start, position_ - start))};
}

Token Lexer::read_string() {
  ++position_;
  std::string out;
  while (peek() != '"') {
    if (position_ >= text_.size() || peek() == '\n') fail("a string without end");
    if (peek() == '\\') {
      read_escape(out);
    } else {
      out += text_[position_++];
    }
  }
  ++position_;
  return {Token::Kind::kString, out};
}

Token Lexer::read_block_string() {
  const std::size_t start = position_ + 3;
  const std::size_t end = text_.find("\"\"\"", start);
  if (end == std::string_view::npos) fail("a block string without end");
  position_ = end + 3;
  return {Token::Kind::kString, std::string(text_.substr(start, end - start))};
}

void Lexer::read_escape(std::string& out) {
  static constexpr std::string_view kLetters = "\"\\/bfnrt";
  static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  const char letter = peek(1);
  if (letter == 'u') {
    unsigned code = 0;
    for (std::size_t i = 2; i < 6; ++i) {
      if (std::isxdigit(static_cast<unsigned char>(peek(i))) == 0) fail("a broken \\u escape");
      code = code * 16 + static_cast<unsigned>(std::stoi(std::string(1, peek(i)), nullptr, 16));
    }
    append_utf8(out, code);
    position_ += 6;
    return;
  }
  const auto index = kLetters.find(letter);
  if (letter == '\0' || index == std::string_view::npos) fail("an unknown escape");
  out += kMeanings[index];
  position_ += 2;
}

}  // namespace ranklog::standin
