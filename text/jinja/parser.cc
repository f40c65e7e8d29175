#include "text/jinja/parser.h"

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "text/jinja/expression_parser.h"

namespace weft::jinja {
namespace {

class Parser {
 public:
  explicit Parser(const std::vector<Token>& tokens) : in_(tokens) {}

  absl::StatusOr<Block> Run() {
    Block block = ParseBlock({});
    if (in_.failed()) return in_.status();
    return block;
  }

 private:
  // Up to a tag that begins with one of `ends`, which is left with its name as
  // the current token; without ends, up to the end of the template.
  Block ParseBlock(std::initializer_list<absl::string_view> ends) {
    Block block;
    if (!in_.Enter()) return block;
    while (!in_.failed() && !in_.IsTag(Token::kEnd)) {
      if (in_.IsTag(Token::kData)) {
        auto text = New(Statement::kText);
        text->text = in_.Current().characters;
        in_.Advance();
        block.push_back(std::move(text));
      } else if (in_.IsTag(Token::kPrintBegin)) {
        in_.Advance();
        auto print = New(Statement::kPrint);
        print->expression = in_.ParseTuple();
        in_.ExpectTag(Token::kPrintEnd, "}}");
        block.push_back(std::move(print));
      } else {
        in_.ExpectTag(Token::kBlockBegin, "{%");
        for (const absl::string_view end : ends) {
          if (!in_.IsName(end)) continue;
          in_.Leave();
          return block;
        }
        if (StatementPtr made = ParseStatement()) {
          block.push_back(std::move(made));
        }
      }
    }
    if (ends.size() > 0 && !in_.failed()) {
      in_.Fail(absl::StrCat("the template ends before {% ", *(ends.end() - 1),
                            " %}"));
    }
    in_.Leave();
    return block;
  }

  // The rest of the opening tag, the block, and the closing tag.
  Block ParseBody(absl::string_view end) {
    in_.ExpectTag(Token::kBlockEnd, "%}");
    Block body = ParseBlock({end});
    in_.Advance();
    in_.ExpectTag(Token::kBlockEnd, "%}");
    return body;
  }

  StatementPtr ParseStatement() {
    using Parse = StatementPtr (Parser::*)();
    static constexpr std::pair<absl::string_view, Parse> kStatements[] = {
        {"for", &Parser::ParseFor},
        {"if", &Parser::ParseIf},
        {"set", &Parser::ParseSet},
        {"macro", &Parser::ParseMacro},
        {"call", &Parser::ParseCallBlock},
        {"filter", &Parser::ParseFilterBlock},
        {"with", &Parser::ParseWith},
        {"generation", &Parser::ParseGeneration},
        {"break", &Parser::ParseBreak},
        {"continue", &Parser::ParseBreak},
    };
    for (const auto& [name, parse] : kStatements) {
      if (in_.IsName(name)) return (this->*parse)();
    }
    in_.Fail(absl::StrCat("the tag '", in_.Current().text,
                          "' is not known or does not belong here"));
    return nullptr;
  }

  std::unique_ptr<Statement> New(Statement::Kind kind) const {
    auto made = std::make_unique<Statement>();
    made->kind = kind;
    made->line = in_.Current().line;
    return made;
  }

  StatementPtr ParseFor() {
    auto made = New(Statement::kFor);
    in_.Advance();
    made->target = in_.ParseTarget(false);
    if (!in_.SkipName("in")) in_.Fail("'in' is wanted in this loop");
    made->expression = in_.ParseTuple(/*with_conditional=*/false);
    if (in_.SkipName("if")) made->condition = in_.ParseExpression();
    if (in_.IsName("recursive")) {
      in_.Fail("recursive loops are not supported: use a macro");
    }
    in_.ExpectTag(Token::kBlockEnd, "%}");
    ++loops_;
    made->body = ParseBlock({"else", "endfor"});
    --loops_;
    if (in_.SkipName("else")) {
      made->otherwise = ParseBody("endfor");
      return made;
    }
    in_.Advance();
    in_.ExpectTag(Token::kBlockEnd, "%}");
    return made;
  }

  StatementPtr ParseIf() {
    auto made = New(Statement::kIf);
    do {
      in_.Advance();  // if, elif
      ExpressionPtr condition = in_.ParseTuple(/*with_conditional=*/false);
      in_.ExpectTag(Token::kBlockEnd, "%}");
      Block body = ParseBlock({"elif", "else", "endif"});
      made->branches.emplace_back(std::move(condition), std::move(body));
    } while (!in_.failed() && in_.IsName("elif"));
    if (in_.SkipName("else")) {
      made->otherwise = ParseBody("endif");
      return made;
    }
    in_.Advance();
    in_.ExpectTag(Token::kBlockEnd, "%}");
    return made;
  }

  StatementPtr ParseSet() {
    auto made = New(Statement::kSet);
    in_.Advance();
    made->target = in_.ParseTarget(true);
    if (in_.SkipOperator("=")) {
      made->expression = in_.ParseTuple();
      in_.ExpectTag(Token::kBlockEnd, "%}");
      return made;
    }
    made->kind = Statement::kSetBlock;
    made->expression = in_.ParseFilters(nullptr, false);
    made->body = ParseBody("endset");
    return made;
  }

  void ParseParameters(MacroDefinition& macro) {
    in_.ExpectOperator("(");
    while (!in_.failed() && !in_.IsOperator(")")) {
      macro.parameters.push_back(in_.ExpectName());
      if (in_.SkipOperator("=")) {
        macro.defaults.push_back(in_.ParseExpression());
      } else if (!macro.defaults.empty()) {
        in_.Fail("a parameter without a default follows one that has one");
      }
      if (!in_.SkipOperator(",")) break;
    }
    in_.ExpectOperator(")");
  }

  // `break` cannot leave a macro for a loop around it.
  Block ParseMacroBody(absl::string_view end) {
    const int loops = std::exchange(loops_, 0);
    Block body = ParseBody(end);
    loops_ = loops;
    return body;
  }

  StatementPtr ParseMacro() {
    auto made = New(Statement::kMacro);
    in_.Advance();
    auto macro = std::make_unique<MacroDefinition>();
    macro->name = in_.ExpectName();
    ParseParameters(*macro);
    macro->body = ParseMacroBody("endmacro");
    made->macro = std::move(macro);
    return made;
  }

  StatementPtr ParseCallBlock() {
    auto made = New(Statement::kCallBlock);
    in_.Advance();
    auto macro = std::make_unique<MacroDefinition>();
    if (in_.IsOperator("(")) ParseParameters(*macro);
    made->expression = in_.ParseExpression();
    if (!in_.failed() && made->expression->kind != Expression::kCall) {
      in_.Fail("the tag 'call' wants a call");
    }
    macro->body = ParseMacroBody("endcall");
    made->macro = std::move(macro);
    return made;
  }

  StatementPtr ParseFilterBlock() {
    auto made = New(Statement::kFilterBlock);
    in_.Advance();
    made->expression = in_.ParseFilters(nullptr, /*after_bar=*/true);
    made->body = ParseBody("endfilter");
    return made;
  }

  StatementPtr ParseWith() {
    auto made = New(Statement::kWith);
    in_.Advance();
    while (!in_.failed() && !in_.IsTag(Token::kBlockEnd)) {
      ExpressionPtr target = in_.ParseTarget(false);
      in_.ExpectOperator("=");
      made->assignments.emplace_back(std::move(target), in_.ParseExpression());
      if (!in_.SkipOperator(",")) break;
    }
    made->body = ParseBody("endwith");
    return made;
  }

  StatementPtr ParseGeneration() {
    auto made = New(Statement::kScope);
    in_.Advance();
    made->body = ParseBody("endgeneration");
    return made;
  }

  StatementPtr ParseBreak() {
    auto made =
        New(in_.IsName("break") ? Statement::kBreak : Statement::kContinue);
    if (loops_ == 0) {
      in_.Fail(absl::StrCat("'", in_.Current().text, "' outside of a loop"));
    }
    in_.Advance();
    in_.ExpectTag(Token::kBlockEnd, "%}");
    return made;
  }

  ExpressionParser in_;
  int loops_ = 0;  // around the current place
};

}  // namespace

absl::StatusOr<Block> ParseTemplate(absl::string_view source) {
  WEFT_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(source));
  return Parser(tokens).Run();
}

}  // namespace weft::jinja
