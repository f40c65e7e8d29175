// A parsed template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/text.h"
#include "text/jinja/value.h"

namespace weft::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;

// Of a call, a filter or a test.
struct ArgumentExpressions {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> keywords;
  ExpressionPtr more_positional;  // *list, or null
  ExpressionPtr more_keywords;    // **mapping, or null
};

struct Expression {
  enum Kind {
    kConstant,
    kName,
    kList,
    kTuple,
    kMapping,    // operands: key, value, key, value, ...
    kAttribute,  // operand.name
    kItem,       // operand[operand]
    kSlice,      // operand[operand:operand:operand], null where left out
    kCall,       // operand(arguments)
    kFilter,     // operand | name(arguments); no operand: of a filter block
    kTest,       // operand is name(arguments)
    kNot,
    kNegative,
    kPositive,
    kAnd,
    kOr,
    kConditional,  // value, condition, otherwise (may be null)
    kCompare,      // operands and `operators` between them
    kBinary,       // name is the operator
    kConcat,       // ~
  };
  Kind kind;
  int line;
  int depth = 1;  // of the tree below
  std::string name;
  Value constant;
  std::vector<ExpressionPtr> operands;
  std::vector<std::string> operators;
  ArgumentExpressions arguments;
};

struct Statement;
using StatementPtr = std::unique_ptr<const Statement>;
using Block = std::vector<StatementPtr>;

// Also the body of a {% call %}, without a name.
struct MacroDefinition {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExpressionPtr> defaults;  // of the last parameters
  Block body;
};

struct Statement {
  enum Kind {
    kText,
    kPrint,        // expression
    kFor,          // target, expression, condition or null, body, otherwise
    kIf,           // branches, otherwise
    kSet,          // target, expression
    kSetBlock,     // target, expression: filters or null, body
    kMacro,        // macro
    kCallBlock,    // expression: the call; macro: the body
    kFilterBlock,  // expression: the filters; body
    kWith,         // assignments, body
    kScope,        // body, in a scope of its own (generation)
    kBreak,
    kContinue,
  };
  Kind kind;
  int line;
  Text text;
  // kName, kTuple of targets, or kAttribute of a namespace's name.
  ExpressionPtr target;
  ExpressionPtr expression;
  ExpressionPtr condition;
  std::vector<std::pair<ExpressionPtr, Block>> branches;
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> assignments;
  Block body;
  Block otherwise;
  std::unique_ptr<const MacroDefinition> macro;
};

}  // namespace weft::jinja
