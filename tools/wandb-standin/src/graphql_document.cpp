#include "graphql_document.hpp"

#include "graphql_lexer.hpp"

namespace ranklog::standin {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {}

  Document parse() {
    Document document;
    while (lexer_.current().kind != Token::Kind::kEnd) parse_definition(document);
    if (document.operations.empty()) throw ApiError(400, "Syntax Error: the request holds no operation");
    return document;
  }

 private:
  void parse_definition(Document& document) {
    if (lexer_.at("{")) {
      document.operations.push_back({"query", "", {}, parse_selections()});
      return;
    }
    const std::string word = lexer_.take_name();
    if (word == "fragment") {
      const std::string name = lexer_.take_name();
      if (lexer_.take_name() != "on") lexer_.fail("expected 'on'");
      const std::string type = lexer_.take_name();
      document.fragments[name] = {type, parse_selections()};
    } else if (word == "query" || word == "mutation") {
      document.operations.push_back(parse_operation(word));
    } else {
      lexer_.fail("expected query, mutation or fragment instead of '" + word + "'");
    }
  }

  Operation parse_operation(const std::string& kind) {
    Operation operation;
    operation.kind = kind;
    if (lexer_.current().kind == Token::Kind::kName) operation.name = lexer_.take_name();
    if (lexer_.accept("(")) {
      while (!lexer_.accept(")")) operation.variables.push_back(parse_variable());
    }
    operation.selections = parse_selections();
    return operation;
  }

  VariableDefinition parse_variable() {
    VariableDefinition variable;
    lexer_.expect("$");
    variable.name = lexer_.take_name();
    lexer_.expect(":");
    variable.type = parse_type();
    if (lexer_.accept("=")) variable.default_value = parse_value();
    return variable;
  }

  std::string parse_type() {
    std::string type;
    if (lexer_.accept("[")) {
      type = "[" + parse_type() + "]";
      lexer_.expect("]");
    } else {
      type = lexer_.take_name();
    }
    if (lexer_.accept("!")) type += "!";
    return type;
  }

  std::vector<Selection> parse_selections() {
    std::vector<Selection> selections;
    lexer_.expect("{");
    do {
      selections.push_back(parse_selection());
    } while (!lexer_.accept("}"));
    return selections;
  }

  Selection parse_selection() {
    Selection selection;
    if (lexer_.accept("...")) {
      parse_fragment_use(selection);
      return selection;
    }
    selection.name = selection.key = lexer_.take_name();
    if (lexer_.accept(":")) selection.name = lexer_.take_name();
    if (lexer_.accept("(")) selection.arguments = parse_pairs(")");
    selection.directives = parse_directives();
    if (lexer_.at("{")) selection.selections = parse_selections();
    return selection;
  }

  void parse_fragment_use(Selection& selection) {
    const Token& next = lexer_.current();
    if (next.kind == Token::Kind::kName && next.text != "on") {
      selection.kind = Selection::Kind::kSpread;
      selection.name = lexer_.take_name();
      selection.directives = parse_directives();
      return;
    }
    selection.kind = Selection::Kind::kInline;
    if (next.kind == Token::Kind::kName) {
      lexer_.take();
      selection.name = lexer_.take_name();
    }
    selection.directives = parse_directives();
    selection.selections = parse_selections();
  }

  std::vector<Directive> parse_directives() {
    std::vector<Directive> directives;
    while (lexer_.accept("@")) {
      const std::string name = lexer_.take_name();
      if (name != "include" && name != "skip") lexer_.fail("unknown directive '@" + name + "'");
      lexer_.expect("(");
      const Json arguments = parse_pairs(")");
      if (!arguments.contains("if")) lexer_.fail("'@" + name + "' needs 'if'");
      directives.push_back({name == "include", arguments["if"]});
    }
    return directives;
  }

  Json parse_pairs(std::string_view end) {
    Json pairs = Json::object();
    while (!lexer_.accept(end)) {
      const std::string name = lexer_.take_name();
      lexer_.expect(":");
      pairs[name] = parse_value();
    }
    return pairs;
  }

  Json parse_value() {
    if (lexer_.accept("$")) return {{kVariableMark, lexer_.take_name()}};
    if (lexer_.accept("{")) return parse_pairs("}");
    if (lexer_.accept("[")) {
      Json list = Json::array();
      while (!lexer_.accept("]")) list.push_back(parse_value());
      return list;
    }
    const Token token = lexer_.take();
    switch (token.kind) {
      case Token::Kind::kString:
        return token.text;
      case Token::Kind::kName:
        return name_value(token.text);
      case Token::Kind::kNumber:
        return number_value(token.text);
      default:
        lexer_.fail("expected a value");
    }
  }

  // true, false, null, or an enumerator, which goes on as text.
  static Json name_value(const std::string& name) {
    if (name == "true" || name == "false") return name == "true";
    return name == "null" ? Json(nullptr) : Json(name);
  }

  Json number_value(const std::string& text) {
    Json value = Json::parse(text, nullptr, false);
    if (!value.is_number()) lexer_.fail("a broken number '" + text + "'");
    return value;
  }

  Lexer lexer_;
};

}  // namespace

const Operation& Document::operation(const std::string& name) const {
  if (name.empty()) {
    if (operations.size() == 1) return operations.front();
    throw ApiError(400, "Must provide operation name if query contains multiple operations.");
  }
  for (const Operation& candidate : operations) {
    if (candidate.name == name) return candidate;
  }
  throw ApiError(400, "Unknown operation named \"" + name + "\".");
}

Document parse_document(std::string_view text) {
  return Parser(text).parse();
}

}  // namespace ranklog::standin
