#pragma once
// Tokens of a GraphQL document.

#include <cstddef>
#include <string>
#include <string_view>

namespace ranklog::standin {

struct Token {
  enum class Kind { kEnd, kName, kNumber, kString, kPunctuation };

  Kind kind = Kind::kEnd;
  std::string text;  // decoded for strings
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { advance(); }

  [[nodiscard]] const Token& current() const noexcept { return token_; }
  [[nodiscard]] bool at(std::string_view punctuation) const noexcept;
  // Moves past `punctuation` if it comes next.
  bool accept(std::string_view punctuation);
  void expect(std::string_view punctuation);
  [[nodiscard]] std::string take_name();
  Token take();
  [[noreturn]] void fail(const std::string& problem) const;

 private:
  void advance();
  void skip_ignored();
  [[nodiscard]] char peek(std::size_t ahead = 0) const noexcept;
  Token read_name();
  Token read_number();
  Token read_string();
  Token read_block_string();
  void read_escape(std::string& out);

  std::string_view text_;
  std::size_t position_ = 0;
  Token token_;
};

}  // namespace ranklog::standin
