// Runs a parsed template.
//
// Scopes are as in Jinja: loops, macros, `with`, block set, filter and call
// blocks have their own, `if` has none; what is set inside is not seen outside,
// but for attributes of namespaces. A macro sees the names around its
// definition, with the values they have when it is called.
//
// The evaluation recurses over the tree, at most kMaxEvaluationDepth deep.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "text/jinja/ast.h"
#include "text/jinja/context.h"
#include "text/jinja/value.h"

namespace weft::jinja {

struct Scope {
  absl::flat_hash_map<std::string, Value> names;
  std::shared_ptr<Scope> around;  // null outermost
  int depth = 0;                  // number of scopes around
};

class Interpreter {
 public:
  // `context` outlives the interpreter and all its values.
  explicit Interpreter(Context& context)
      : context_(context), scope_(std::make_shared<Scope>()) {}

  void SetVariable(absl::string_view name, Value value) {
    scope_->names[std::string(name)] = std::move(value);
  }
  // What the template prints; worthless if the context has failed.
  Text Run(const Block& block);

 private:
  enum class Flow { kNormal, kBreak, kContinue };

  // Makes a scope the current one for as long as it lives.
  class InScope {
   public:
    InScope(Interpreter& interpreter, const std::shared_ptr<Scope>& around);
    ~InScope() { interpreter_.scope_ = std::move(before_); }
    InScope(const InScope&) = delete;
    InScope& operator=(const InScope&) = delete;

   private:
    Interpreter& interpreter_;
    std::shared_ptr<Scope> before_;
  };

  // statements.cc
  Flow Execute(const Block& block, Text& out);
  Flow Execute(const Statement& statement, Text& out);
  Flow ExecuteFor(const Statement& statement, Text& out);
  Flow ExecuteIf(const Statement& statement, Text& out);
  Flow ExecuteWith(const Statement& statement, Text& out);
  // What it prints, in a scope of its own.
  Text Capture(const Block& block);
  void Assign(const Expression& target, Value value);

  // expressions.cc
  Value Evaluate(const Expression& expression);
  Value EvaluateKind(const Expression& expression);
  // None where the source has nothing.
  Value EvaluateOptional(const ExpressionPtr& expression);
  Value EvaluateConditional(const Expression& expression);
  Value EvaluateCompare(const Expression& expression);
  Value EvaluateConcat(const Expression& expression);
  Value EvaluateMapping(const Expression& expression);
  // `caller`: the body of a call block, or null.
  Value EvaluateCall(const Expression& expression, const Value* caller);
  // A filter applied to `input`, through the chain of filters below it.
  Value ApplyFilters(const Expression& filter, const Value& input);
  std::vector<Value> EvaluateAll(const std::vector<ExpressionPtr>& list);
  Arguments EvaluateArguments(const ArgumentExpressions& arguments);
  Value LookUp(const std::string& name);
  Value CallMacro(const Macro& macro, const Arguments& arguments,
                  const Value* caller);

  Value MakeMacro(const MacroDefinition& definition);

  // Counts nested evaluations; false if there is an error, of depth or before.
  bool Enter();

  Context& context_;
  std::shared_ptr<Scope> scope_;  // the current one
  std::vector<std::unique_ptr<const Macro>> macros_;
  int depth_ = 0;
};

}  // namespace weft::jinja
