// The expressions of a template; parser.h has the whole.
//
// One function per level of precedence, weakest first. Errors are sticky: after
// the first one the functions return empty trees that nobody looks at.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace weft::jinja {

class ExpressionParser {
 public:
  // `tokens` ends with kEnd and outlives the parser.
  explicit ExpressionParser(const std::vector<Token>& tokens)
      : tokens_(tokens) {}

  const absl::Status& status() const { return status_; }
  bool failed() const { return !status_.ok(); }
  void Fail(absl::string_view why);

  const Token& Current() const { return tokens_[at_]; }
  void Advance() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool IsName(absl::string_view name) const;
  bool IsOperator(absl::string_view op) const;
  bool IsTag(Token::Kind kind) const { return Current().kind == kind; }
  // Step over it if it is there.
  bool SkipName(absl::string_view name);
  bool SkipOperator(absl::string_view op);
  // It must be there.
  void ExpectOperator(absl::string_view op);
  void ExpectTag(Token::Kind kind, absl::string_view what);
  std::string ExpectName();

  // With commas it is a tuple. `with_conditional`: whether `a if b else c` may
  // stand there (not in a loop's list, where `if` has another meaning).
  ExpressionPtr ParseTuple(bool with_conditional = true,
                           bool in_parentheses = false);
  ExpressionPtr ParseExpression(bool with_conditional = true);
  // What can be assigned to.
  ExpressionPtr ParseTarget(bool with_namespace);
  // | filter | filter ..., on nothing: null if there is none.
  ExpressionPtr ParseFilters(ExpressionPtr operand, bool after_bar);
  ArgumentExpressions ParseArguments();
  std::unique_ptr<Expression> New(Expression::Kind kind) const;
  // Adds an operand and counts depth.
  void Add(Expression& parent, ExpressionPtr operand);

  // Counts nested parsing; false beyond the limit.
  bool Enter();
  void Leave() { --depth_; }

 private:
  const Token& Look() const {
    return tokens_[std::min(at_ + 1, tokens_.size() - 1)];
  }
  bool AtTupleEnd() const;
  ExpressionPtr Binary(Expression::Kind kind, ExpressionPtr left,
                       ExpressionPtr right, absl::string_view name = "");
  ExpressionPtr ParseConditional();
  ExpressionPtr ParseOr();
  ExpressionPtr ParseAnd();
  ExpressionPtr ParseNot();
  ExpressionPtr ParseCompare();
  ExpressionPtr ParseSum();
  ExpressionPtr ParseConcat();
  ExpressionPtr ParseProduct();
  ExpressionPtr ParsePower();
  ExpressionPtr ParseUnary(bool with_filter = true);
  ExpressionPtr ParsePrimary();
  ExpressionPtr ParseConstantString();
  ExpressionPtr ParseNumber();
  ExpressionPtr ParseList();
  ExpressionPtr ParseMapping();
  ExpressionPtr ParsePostfix(ExpressionPtr operand);
  ExpressionPtr ParseSubscript(ExpressionPtr operand);
  ExpressionPtr ParseCall(ExpressionPtr operand);
  ExpressionPtr ParseTest(ExpressionPtr operand);
  ExpressionPtr ParseFilterOrTest(ExpressionPtr operand);

  const std::vector<Token>& tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  absl::Status status_;
};

}  // namespace weft::jinja
