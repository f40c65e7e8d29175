#include "text/jinja/expression_parser.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "text/jinja/limits.h"

namespace weft::jinja {
namespace {

constexpr absl::string_view kComparisons[] = {"==", "!=", ">", ">=", "<", "<="};

void CountDepth(Expression& parent, const ExpressionPtr& child) {
  if (child != nullptr) parent.depth = std::max(parent.depth, child->depth + 1);
}

}  // namespace

void ExpressionParser::Fail(absl::string_view why) {
  if (failed()) return;
  status_ = absl::InvalidArgumentError(
      absl::StrCat("line ", Current().line, ": ", why));
  at_ = tokens_.size() - 1;  // so that loops over tokens end
}

bool ExpressionParser::IsName(absl::string_view name) const {
  return Current().kind == Token::kName && Current().text == name;
}

bool ExpressionParser::IsOperator(absl::string_view op) const {
  return Current().kind == Token::kOperator && Current().text == op;
}

bool ExpressionParser::SkipName(absl::string_view name) {
  const bool found = IsName(name);
  if (found) Advance();
  return found;
}

bool ExpressionParser::SkipOperator(absl::string_view op) {
  const bool found = IsOperator(op);
  if (found) Advance();
  return found;
}

void ExpressionParser::ExpectOperator(absl::string_view op) {
  if (!SkipOperator(op)) {
    Fail(absl::StrCat("'", op, "' is wanted before '", Current().text, "'"));
  }
}

void ExpressionParser::ExpectTag(Token::Kind kind, absl::string_view what) {
  if (!IsTag(kind)) {
    return Fail(
        absl::StrCat("'", what, "' is wanted before '", Current().text, "'"));
  }
  Advance();
}

std::string ExpressionParser::ExpectName() {
  if (Current().kind != Token::kName) {
    Fail(absl::StrCat("a name is wanted instead of '", Current().text, "'"));
    return "";
  }
  std::string name = Current().text;
  Advance();
  return name;
}

bool ExpressionParser::Enter() {
  if (++depth_ > kMaxParseDepth) Fail("this is nested too deeply");
  return !failed();
}

std::unique_ptr<Expression> ExpressionParser::New(Expression::Kind kind) const {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->line = Current().line;
  return made;
}

void ExpressionParser::Add(Expression& parent, ExpressionPtr operand) {
  CountDepth(parent, operand);
  if (parent.depth > kMaxParseDepth) {
    Fail("this expression is too long or nested too deeply");
  }
  parent.operands.push_back(std::move(operand));
}

ExpressionPtr ExpressionParser::Binary(Expression::Kind kind,
                                       ExpressionPtr left, ExpressionPtr right,
                                       absl::string_view name) {
  auto made = New(kind);
  made->name = std::string(name);
  if (left != nullptr) made->line = left->line;
  Add(*made, std::move(left));
  Add(*made, std::move(right));
  return made;
}

bool ExpressionParser::AtTupleEnd() const {
  return IsTag(Token::kPrintEnd) || IsTag(Token::kBlockEnd) ||
         IsTag(Token::kEnd) || IsOperator(")") || IsName("in");
}

ExpressionPtr ExpressionParser::ParseTuple(bool with_conditional,
                                           bool in_parentheses) {
  auto tuple = New(Expression::kTuple);
  bool has_comma = false;
  while (!failed() && !AtTupleEnd()) {
    Add(*tuple, ParseExpression(with_conditional));
    if (!SkipOperator(",")) break;
    has_comma = true;
  }
  if (has_comma) return tuple;
  if (!tuple->operands.empty()) return std::move(tuple->operands[0]);
  if (!in_parentheses) {
    Fail(absl::StrCat("an expression is wanted before '", Current().text, "'"));
  }
  return tuple;
}

ExpressionPtr ExpressionParser::ParseTarget(bool with_namespace) {
  auto tuple = New(Expression::kTuple);
  bool has_comma = false;
  while (!failed() && !AtTupleEnd() && !IsOperator("=")) {
    auto target = New(Expression::kName);
    if (SkipOperator("(")) {
      if (!Enter()) return nullptr;
      Add(*tuple, ParseTarget(false));
      Leave();
      ExpectOperator(")");
    } else {
      target->name = ExpectName();
      if (with_namespace && SkipOperator(".")) {
        auto attribute = New(Expression::kAttribute);
        attribute->name = ExpectName();
        Add(*attribute, std::move(target));
        Add(*tuple, std::move(attribute));
      } else {
        Add(*tuple, std::move(target));
      }
    }
    if (!SkipOperator(",")) break;
    has_comma = true;
  }
  if (has_comma) return tuple;
  if (tuple->operands.empty()) {
    Fail(absl::StrCat("a name is wanted before '", Current().text, "'"));
    return nullptr;
  }
  return std::move(tuple->operands[0]);
}

ExpressionPtr ExpressionParser::ParseExpression(bool with_conditional) {
  if (!Enter()) return nullptr;
  ExpressionPtr made = with_conditional ? ParseConditional() : ParseOr();
  Leave();
  return made;
}

ExpressionPtr ExpressionParser::ParseConditional() {
  ExpressionPtr value = ParseOr();
  while (!failed() && SkipName("if")) {
    auto made = New(Expression::kConditional);
    Add(*made, std::move(value));
    Add(*made, ParseOr());
    Add(*made, SkipName("else") ? ParseExpression() : nullptr);
    value = std::move(made);
  }
  return value;
}

ExpressionPtr ExpressionParser::ParseOr() {
  ExpressionPtr left = ParseAnd();
  while (SkipName("or")) {
    left = Binary(Expression::kOr, std::move(left), ParseAnd());
  }
  return left;
}

ExpressionPtr ExpressionParser::ParseAnd() {
  ExpressionPtr left = ParseNot();
  while (SkipName("and")) {
    left = Binary(Expression::kAnd, std::move(left), ParseNot());
  }
  return left;
}

ExpressionPtr ExpressionParser::ParseNot() {
  if (!IsName("not")) return ParseCompare();
  auto made = New(Expression::kNot);
  Advance();
  if (!Enter()) return nullptr;
  Add(*made, ParseNot());
  Leave();
  return made;
}

ExpressionPtr ExpressionParser::ParseCompare() {
  ExpressionPtr first = ParseSum();
  auto made = New(Expression::kCompare);
  while (!failed()) {
    std::string op;
    if (Current().kind == Token::kOperator &&
        std::find(std::begin(kComparisons), std::end(kComparisons),
                  Current().text) != std::end(kComparisons)) {
      op = Current().text;
      Advance();
    } else if (SkipName("in")) {
      op = "in";
    } else if (IsName("not") && Look().kind == Token::kName &&
               Look().text == "in") {
      Advance();
      Advance();
      op = "not in";
    } else {
      break;
    }
    if (made->operands.empty()) Add(*made, std::move(first));
    made->operators.push_back(op);
    Add(*made, ParseSum());
  }
  return made->operands.empty() ? std::move(first) : std::move(made);
}

ExpressionPtr ExpressionParser::ParseSum() {
  ExpressionPtr left = ParseConcat();
  while (IsOperator("+") || IsOperator("-")) {
    const std::string op = Current().text;
    Advance();
    left = Binary(Expression::kBinary, std::move(left), ParseConcat(), op);
  }
  return left;
}

ExpressionPtr ExpressionParser::ParseConcat() {
  ExpressionPtr first = ParseProduct();
  if (!IsOperator("~")) return first;
  auto made = New(Expression::kConcat);
  Add(*made, std::move(first));
  while (SkipOperator("~")) Add(*made, ParseProduct());
  return made;
}

ExpressionPtr ExpressionParser::ParseProduct() {
  ExpressionPtr left = ParsePower();
  while (IsOperator("*") || IsOperator("/") || IsOperator("//") ||
         IsOperator("%")) {
    const std::string op = Current().text;
    Advance();
    left = Binary(Expression::kBinary, std::move(left), ParsePower(), op);
  }
  return left;
}

ExpressionPtr ExpressionParser::ParsePower() {
  ExpressionPtr left = ParseUnary();
  while (SkipOperator("**")) {
    left = Binary(Expression::kBinary, std::move(left), ParseUnary(), "**");
  }
  return left;
}

ExpressionPtr ExpressionParser::ParseUnary(bool with_filter) {
  if (!Enter()) return nullptr;
  ExpressionPtr made;
  if (IsOperator("-") || IsOperator("+")) {
    auto sign =
        New(IsOperator("-") ? Expression::kNegative : Expression::kPositive);
    Advance();
    Add(*sign, ParseUnary(false));
    made = std::move(sign);
  } else {
    made = ParsePrimary();
  }
  made = ParsePostfix(std::move(made));
  if (with_filter) made = ParseFilterOrTest(std::move(made));
  Leave();
  return made;
}

ExpressionPtr ExpressionParser::ParsePrimary() {
  const Token& token = Current();
  if (token.kind == Token::kName) {
    auto made = New(Expression::kConstant);
    if (token.text == "true" || token.text == "True") {
      made->constant = Value(true);
    } else if (token.text == "false" || token.text == "False") {
      made->constant = Value(false);
    } else if (token.text == "none" || token.text == "None") {
      made->constant = Value::MakeNone();
    } else {
      made->kind = Expression::kName;
      made->name = token.text;
    }
    Advance();
    return made;
  }
  if (token.kind == Token::kString) return ParseConstantString();
  if (token.kind == Token::kInteger || token.kind == Token::kFloat) {
    return ParseNumber();
  }
  if (SkipOperator("(")) {
    ExpressionPtr made = ParseTuple(true, /*in_parentheses=*/true);
    ExpectOperator(")");
    return made;
  }
  if (IsOperator("[")) return ParseList();
  if (IsOperator("{")) return ParseMapping();
  Fail(absl::StrCat("'", token.text, "' is not expected here"));
  return nullptr;
}

ExpressionPtr ExpressionParser::ParseConstantString() {
  auto made = New(Expression::kConstant);
  Text text;
  while (Current().kind == Token::kString) {
    text += Current().characters;
    Advance();
  }
  made->constant = Value(std::move(text));
  return made;
}

ExpressionPtr ExpressionParser::ParseNumber() {
  auto made = New(Expression::kConstant);
  double number = 0;
  if (Current().kind == Token::kInteger) {
    const std::optional<Whole> whole = ParseWhole(Current().text);
    if (!whole.has_value()) Fail("this number is too large");
    made->constant = Value(whole.value_or(0));
  } else if (absl::SimpleAtod(Current().text, &number)) {
    made->constant = Value(number);
  }
  Advance();
  return made;
}

ExpressionPtr ExpressionParser::ParseList() {
  auto made = New(Expression::kList);
  ExpectOperator("[");
  while (!failed() && !IsOperator("]")) {
    Add(*made, ParseExpression());
    if (!SkipOperator(",")) break;
  }
  ExpectOperator("]");
  return made;
}

ExpressionPtr ExpressionParser::ParseMapping() {
  auto made = New(Expression::kMapping);
  ExpectOperator("{");
  while (!failed() && !IsOperator("}")) {
    Add(*made, ParseExpression());
    ExpectOperator(":");
    Add(*made, ParseExpression());
    if (!SkipOperator(",")) break;
  }
  ExpectOperator("}");
  return made;
}

ExpressionPtr ExpressionParser::ParsePostfix(ExpressionPtr operand) {
  while (!failed()) {
    if (IsOperator(".") || IsOperator("[")) {
      operand = ParseSubscript(std::move(operand));
    } else if (IsOperator("(")) {
      operand = ParseCall(std::move(operand));
    } else {
      break;
    }
  }
  return operand;
}

ExpressionPtr ExpressionParser::ParseSubscript(ExpressionPtr operand) {
  auto made = New(Expression::kItem);
  Add(*made, std::move(operand));
  if (SkipOperator(".")) {
    if (Current().kind == Token::kInteger) {
      Add(*made, ParseNumber());
    } else {
      made->kind = Expression::kAttribute;
      made->name = ExpectName();
    }
    return made;
  }
  ExpectOperator("[");
  const auto part = [&]() -> ExpressionPtr {
    if (IsOperator(":") || IsOperator("]")) return nullptr;
    return ParseExpression();
  };
  Add(*made, IsOperator(":") ? nullptr : ParseExpression());
  if (SkipOperator(":")) {
    made->kind = Expression::kSlice;
    Add(*made, part());
    Add(*made, SkipOperator(":") ? part() : nullptr);
  }
  ExpectOperator("]");
  return made;
}

ArgumentExpressions ExpressionParser::ParseArguments() {
  ArgumentExpressions made;
  ExpectOperator("(");
  while (!failed() && !IsOperator(")")) {
    if (SkipOperator("**")) {
      if (made.more_keywords != nullptr) Fail("** is there twice");
      made.more_keywords = ParseExpression();
    } else if (SkipOperator("*")) {
      if (made.more_positional != nullptr) Fail("* is there twice");
      made.more_positional = ParseExpression();
    } else if (Current().kind == Token::kName &&
               Look().kind == Token::kOperator && Look().text == "=") {
      std::string name = ExpectName();
      Advance();
      made.keywords.emplace_back(std::move(name), ParseExpression());
    } else {
      if (!made.keywords.empty() || made.more_positional != nullptr ||
          made.more_keywords != nullptr) {
        Fail("arguments without a name come first");
      }
      made.positional.push_back(ParseExpression());
    }
    if (!SkipOperator(",")) break;
  }
  ExpectOperator(")");
  return made;
}

// Counts the depth of what is in `arguments`.
static void CountArguments(Expression& parent) {
  for (const auto& argument : parent.arguments.positional) {
    CountDepth(parent, argument);
  }
  for (const auto& [name, argument] : parent.arguments.keywords) {
    CountDepth(parent, argument);
  }
  CountDepth(parent, parent.arguments.more_positional);
  CountDepth(parent, parent.arguments.more_keywords);
}

ExpressionPtr ExpressionParser::ParseCall(ExpressionPtr operand) {
  auto made = New(Expression::kCall);
  made->arguments = ParseArguments();
  CountArguments(*made);
  Add(*made, std::move(operand));
  return made;
}

ExpressionPtr ExpressionParser::ParseFilterOrTest(ExpressionPtr operand) {
  while (!failed()) {
    if (IsOperator("|")) {
      operand = ParseFilters(std::move(operand), false);
    } else if (IsName("is")) {
      operand = ParseTest(std::move(operand));
    } else if (IsOperator("(")) {
      operand = ParseCall(std::move(operand));
    } else {
      break;
    }
  }
  return operand;
}

ExpressionPtr ExpressionParser::ParseFilters(ExpressionPtr operand,
                                             bool after_bar) {
  while (!failed() && (after_bar || SkipOperator("|"))) {
    after_bar = false;
    auto made = New(Expression::kFilter);
    made->name = ExpectName();
    if (IsOperator("(")) made->arguments = ParseArguments();
    CountArguments(*made);
    Add(*made, std::move(operand));
    operand = std::move(made);
  }
  return operand;
}

ExpressionPtr ExpressionParser::ParseTest(ExpressionPtr operand) {
  Advance();  // is
  auto made = New(Expression::kTest);
  const bool negated = SkipName("not");
  made->name = ExpectName();
  const Token& next = Current();
  if (IsOperator("(")) {
    made->arguments = ParseArguments();
  } else if (next.kind == Token::kString || next.kind == Token::kInteger ||
             next.kind == Token::kFloat || IsOperator("[") || IsOperator("{") ||
             (next.kind == Token::kName && !IsName("else") && !IsName("or") &&
              !IsName("and") && !IsName("if"))) {
    if (IsName("is")) {
      Fail("tests cannot be chained");
    } else {
      made->arguments.positional.push_back(ParsePostfix(ParsePrimary()));
    }
  }
  CountArguments(*made);
  Add(*made, std::move(operand));
  if (!negated) return made;
  auto inverted = New(Expression::kNot);
  Add(*inverted, std::move(made));
  return inverted;
}

}  // namespace weft::jinja
