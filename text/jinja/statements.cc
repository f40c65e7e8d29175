// The half of the interpreter that executes statements.
#include <utility>

#include "absl/strings/str_cat.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/limits.h"
#include "text/jinja/operations.h"
#include "text/jinja/print.h"

namespace weft::jinja {

Interpreter::InScope::InScope(Interpreter& interpreter,
                              const std::shared_ptr<Scope>& around)
    : interpreter_(interpreter), before_(interpreter.scope_) {
  auto scope = std::make_shared<Scope>();
  scope->around = around;
  scope->depth = around->depth + 1;
  // Macros that keep scopes can chain them without calling each other.
  if (scope->depth > kMaxEvaluationDepth) {
    interpreter.context_.Fail("scopes are nested too deeply");
  }
  interpreter.scope_ = std::move(scope);
}

Text Interpreter::Run(const Block& block) {
  Text out;
  Execute(block, out);
  return out;
}

Interpreter::Flow Interpreter::Execute(const Block& block, Text& out) {
  for (const StatementPtr& statement : block) {
    if (!Enter()) break;
    ++depth_;
    context_.set_line(statement->line);
    const Flow flow = Execute(*statement, out);
    --depth_;
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::Execute(const Statement& statement, Text& out) {
  switch (statement.kind) {
    case Statement::kText:
      if (context_.Spend(static_cast<int64_t>(statement.text.size()))) {
        out += statement.text;
      }
      break;
    case Statement::kPrint:
      AppendPrinted(context_, Evaluate(*statement.expression), out);
      break;
    case Statement::kFor:
      return ExecuteFor(statement, out);
    case Statement::kIf:
      return ExecuteIf(statement, out);
    case Statement::kSet:
      Assign(*statement.target, Evaluate(*statement.expression));
      break;
    case Statement::kSetBlock:
    case Statement::kFilterBlock: {
      Value value(Capture(statement.body));
      if (statement.expression != nullptr) {
        value = ApplyFilters(*statement.expression, value);
      }
      if (statement.kind == Statement::kSetBlock) {
        Assign(*statement.target, std::move(value));
      } else {
        AppendPrinted(context_, value, out);
      }
      break;
    }
    case Statement::kMacro:
      scope_->names[statement.macro->name] = MakeMacro(*statement.macro);
      break;
    case Statement::kCallBlock: {
      const Value caller = MakeMacro(*statement.macro);
      AppendPrinted(context_, EvaluateCall(*statement.expression, &caller),
                    out);
      break;
    }
    case Statement::kWith:
      return ExecuteWith(statement, out);
    case Statement::kScope: {
      const InScope scope(*this, scope_);
      return Execute(statement.body, out);
    }
    case Statement::kBreak:
      return Flow::kBreak;
    case Statement::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::ExecuteFor(const Statement& statement,
                                          Text& out) {
  const Value list = Evaluate(*statement.expression);
  std::vector<Value> items = Iterate(context_, list);
  if (statement.condition != nullptr) {
    std::vector<Value> chosen;
    for (Value& item : items) {
      if (!Enter()) return Flow::kNormal;
      const InScope scope(*this, scope_);
      Assign(*statement.target, item);
      if (Evaluate(*statement.condition).Truth()) {
        chosen.push_back(std::move(item));
      }
    }
    items = std::move(chosen);
  }
  if (context_.failed()) return Flow::kNormal;
  if (items.empty()) {
    const InScope scope(*this, scope_);
    return Execute(statement.otherwise, out);
  }
  const auto loop = std::make_shared<LoopState>();
  loop->items_depth = list.depth();
  loop->items = std::move(items);
  for (; loop->index < loop->items.size(); ++loop->index) {
    if (!Enter()) return Flow::kNormal;
    const InScope scope(*this, scope_);
    scope_->names["loop"] = Value(loop);
    Assign(*statement.target, loop->items[loop->index]);
    if (Execute(statement.body, out) == Flow::kBreak) break;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::ExecuteIf(const Statement& statement,
                                         Text& out) {
  for (const auto& [condition, body] : statement.branches) {
    if (Evaluate(*condition).Truth()) return Execute(body, out);
    if (context_.failed()) return Flow::kNormal;
  }
  return Execute(statement.otherwise, out);
}

Interpreter::Flow Interpreter::ExecuteWith(const Statement& statement,
                                           Text& out) {
  std::vector<Value> values;
  for (const auto& [target, expression] : statement.assignments) {
    values.push_back(Evaluate(*expression));
  }
  const InScope scope(*this, scope_);
  for (size_t i = 0; i < values.size(); ++i) {
    Assign(*statement.assignments[i].first, std::move(values[i]));
  }
  return Execute(statement.body, out);
}

Text Interpreter::Capture(const Block& block) {
  const InScope scope(*this, scope_);
  Text text;
  Execute(block, text);
  return text;
}

Value Interpreter::MakeMacro(const MacroDefinition& definition) {
  macros_.push_back(std::make_unique<const Macro>(
      Macro{definition.name, &definition, scope_}));
  return Value(macros_.back().get());
}

void Interpreter::Assign(const Expression& target, Value value) {
  if (context_.failed()) return;
  if (target.kind == Expression::kName) {
    scope_->names[target.name] = std::move(value);
    return;
  }
  if (target.kind == Expression::kAttribute) {
    const Value space = LookUp(target.operands[0]->name);
    if (!space.is(Value::Kind::kNamespace)) {
      context_.Fail(absl::StrCat("'", target.operands[0]->name,
                                 "' is no namespace: only namespaces have "
                                 "attributes that can be set"));
      return;
    }
    for (auto& [name, attribute] : space.name_space()->attributes) {
      if (!context_.Spend(1)) return;
      if (name == target.name) {
        attribute = std::move(value);
        return;
      }
    }
    space.name_space()->attributes.emplace_back(target.name, std::move(value));
    return;
  }
  const std::vector<Value> parts = Iterate(context_, value);
  if (context_.failed()) return;
  if (parts.size() != target.operands.size()) {
    context_.Fail(absl::StrCat("there are ", parts.size(), " values for ",
                               target.operands.size(), " names"));
    return;
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    Assign(*target.operands[i], parts[i]);
  }
}

}  // namespace weft::jinja
