// The half of the interpreter that computes values.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/limits.h"
#include "text/jinja/methods.h"
#include "text/jinja/operations.h"
#include "text/jinja/print.h"

namespace weft::jinja {

bool Interpreter::Enter() {
  if (depth_ > kMaxEvaluationDepth) {
    context_.Fail("macros call each other too deeply");
  }
  return context_.Spend(kWorkPerNode);
}

Value Interpreter::Evaluate(const Expression& expression) {
  if (!Enter()) return Value();
  ++depth_;
  context_.set_line(expression.line);
  Value value = EvaluateKind(expression);
  --depth_;
  if (context_.failed()) return Value();
  return value;
}

Value Interpreter::EvaluateOptional(const ExpressionPtr& expression) {
  return expression == nullptr ? Value::MakeNone() : Evaluate(*expression);
}

Value Interpreter::EvaluateKind(const Expression& expression) {
  const auto operand = [&](size_t i) -> Value {
    return Evaluate(*expression.operands[i]);
  };
  switch (expression.kind) {
    case Expression::kConstant:
      return expression.constant;
    case Expression::kName:
      return LookUp(expression.name);
    case Expression::kList:
      return Value::MakeList(context_, EvaluateAll(expression.operands));
    case Expression::kTuple:
      return Value::MakeList(context_, EvaluateAll(expression.operands),
                             /*tuple=*/true);
    case Expression::kMapping:
      return EvaluateMapping(expression);
    case Expression::kAttribute:
      return GetAttribute(context_, operand(0), expression.name);
    case Expression::kItem: {
      const Value value = operand(0);
      return GetItem(context_, value, operand(1));
    }
    case Expression::kSlice: {
      const Value value = operand(0);
      const Value begin = EvaluateOptional(expression.operands[1]);
      const Value end = EvaluateOptional(expression.operands[2]);
      return GetSlice(context_, value, begin, end,
                      EvaluateOptional(expression.operands[3]));
    }
    case Expression::kCall:
      return EvaluateCall(expression, nullptr);
    case Expression::kFilter: {
      const Value input = operand(0);
      return CallFilter(context_, expression.name, input,
                        EvaluateArguments(expression.arguments));
    }
    case Expression::kTest: {
      const Value input = operand(0);
      return Value(CallTest(context_, expression.name, input,
                            EvaluateArguments(expression.arguments)));
    }
    case Expression::kNot:
      return Value(!operand(0).Truth());
    case Expression::kNegative:
      return Negate(context_, operand(0));
    case Expression::kPositive:
      return Negate(context_, Negate(context_, operand(0)));
    case Expression::kAnd: {
      Value left = operand(0);
      return left.Truth() ? operand(1) : left;
    }
    case Expression::kOr: {
      Value left = operand(0);
      return left.Truth() ? left : operand(1);
    }
    case Expression::kConditional:
      return EvaluateConditional(expression);
    case Expression::kCompare:
      return EvaluateCompare(expression);
    case Expression::kBinary: {
      const Value left = operand(0);
      return Arithmetic(context_, expression.name, left, operand(1));
    }
    case Expression::kConcat:
      return EvaluateConcat(expression);
  }
  return Value();
}

Value Interpreter::EvaluateConditional(const Expression& expression) {
  if (Evaluate(*expression.operands[1]).Truth()) {
    return Evaluate(*expression.operands[0]);
  }
  if (expression.operands[2] == nullptr) {
    return Value::MakeUndefined(
        "an inline if without an else was false, and its value is used");
  }
  return Evaluate(*expression.operands[2]);
}

// a < b < c is a < b and b < c, with b evaluated once.
Value Interpreter::EvaluateCompare(const Expression& expression) {
  Value left = Evaluate(*expression.operands[0]);
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    Value right = Evaluate(*expression.operands[i + 1]);
    if (context_.failed()) return Value();
    if (!CompareBy(context_, expression.operators[i], left, right)) {
      return Value(false);
    }
    left = std::move(right);
  }
  return Value(true);
}

Value Interpreter::EvaluateConcat(const Expression& expression) {
  Text text;
  for (const ExpressionPtr& operand : expression.operands) {
    AppendPrinted(context_, Evaluate(*operand), text);
    if (context_.failed()) return Value();
  }
  return Value(std::move(text));
}

Value Interpreter::EvaluateMapping(const Expression& expression) {
  Entries entries;
  for (size_t i = 0; i < expression.operands.size(); i += 2) {
    Value key = Evaluate(*expression.operands[i]);
    Value value = Evaluate(*expression.operands[i + 1]);
    if (context_.failed() ||
        !SetEntry(context_, entries, std::move(key), std::move(value))) {
      return Value();
    }
  }
  return Value::MakeMapping(context_, std::move(entries));
}

std::vector<Value> Interpreter::EvaluateAll(
    const std::vector<ExpressionPtr>& list) {
  std::vector<Value> values;
  values.reserve(list.size());
  for (const ExpressionPtr& expression : list) {
    values.push_back(Evaluate(*expression));
  }
  return values;
}

Arguments Interpreter::EvaluateArguments(const ArgumentExpressions& arguments) {
  Arguments made;
  made.positional = EvaluateAll(arguments.positional);
  for (const auto& [name, expression] : arguments.keywords) {
    made.keywords.emplace_back(name, Evaluate(*expression));
  }
  if (arguments.more_positional != nullptr) {
    for (Value& value :
         Iterate(context_, Evaluate(*arguments.more_positional))) {
      made.positional.push_back(std::move(value));
    }
  }
  if (arguments.more_keywords != nullptr) {
    const Value more = Evaluate(*arguments.more_keywords);
    if (!more.is_mapping()) {
      context_.Fail("** wants a mapping");
      return made;
    }
    for (const auto& [key, value] : more.entries()) {
      if (!context_.Spend(kWorkPerNode)) break;
      made.keywords.emplace_back(ToUtf8(Printed(context_, key)), value);
    }
  }
  return made;
}

Value Interpreter::LookUp(const std::string& name) {
  for (const Scope* scope = scope_.get(); scope != nullptr;
       scope = scope->around.get()) {
    if (!context_.Spend(1)) return Value();
    const auto found = scope->names.find(name);
    if (found != scope->names.end()) return found->second;
  }
  if (HasFunction(name)) return Value::Global(name);
  return Value::MakeUndefined(absl::StrCat("'", name, "' is undefined"));
}

Value Interpreter::EvaluateCall(const Expression& expression,
                                const Value* caller) {
  const Value callee = Evaluate(*expression.operands[0]);
  const Arguments arguments = EvaluateArguments(expression.arguments);
  if (context_.failed()) return Value();
  context_.set_line(expression.line);
  switch (callee.kind()) {
    case Value::Kind::kMacro:
      return CallMacro(*callee.macro(), arguments, caller);
    case Value::Kind::kFunction:
      if (callee.function().self != nullptr) {
        return CallMethod(context_, callee.function(), arguments);
      }
      return CallFunction(context_, callee.function().name, arguments);
    case Value::Kind::kUndefined:
      return context_.Fail(callee.why_undefined());
    default:
      return context_.Fail(absl::StrCat("a value of type ", callee.TypeName(),
                                        " cannot be called"));
  }
}

Value Interpreter::CallMacro(const Macro& macro, const Arguments& arguments,
                             const Value* caller) {
  const MacroDefinition& definition = *macro.definition;
  const InScope scope(*this, macro.scope);
  const auto set = [&](absl::string_view name, Value value) {
    scope_->names[std::string(name)] = std::move(value);
  };
  const size_t parameters = definition.parameters.size();
  const size_t required = parameters - definition.defaults.size();
  std::vector<Value> more;
  for (size_t i = parameters; i < arguments.positional.size(); ++i) {
    more.push_back(arguments.positional[i]);
  }
  set("varargs", Value::MakeList(context_, std::move(more), /*tuple=*/true));
  if (caller != nullptr) set("caller", *caller);
  Entries others;
  for (const auto& [name, value] : arguments.keywords) {
    const auto& names = definition.parameters;
    if (std::find(names.begin(), names.end(), name) == names.end() &&
        !SetEntry(context_, others, Value(FromUtf8(name)), value)) {
      return Value();
    }
  }
  set("kwargs", Value::MakeMapping(context_, std::move(others)));
  for (size_t i = 0; i < parameters; ++i) {
    const std::string& name = definition.parameters[i];
    const Value* given = nullptr;
    if (i < arguments.positional.size()) given = &arguments.positional[i];
    for (const auto& [keyword, value] : arguments.keywords) {
      if (keyword == name) given = &value;
    }
    if (given != nullptr) {
      set(name, *given);
    } else if (i >= required) {
      set(name, Evaluate(*definition.defaults[i - required]));
    } else {
      set(name, Value::MakeUndefined(
                    absl::StrCat("parameter '", name, "' was not given")));
    }
  }
  Text out;
  if (!context_.failed()) Execute(definition.body, out);
  return Value(std::move(out));
}

Value Interpreter::ApplyFilters(const Expression& filter, const Value& input) {
  const ExpressionPtr& below = filter.operands[0];
  const Value first = below == nullptr ? input : ApplyFilters(*below, input);
  context_.set_line(filter.line);
  return CallFilter(context_, filter.name, first,
                    EvaluateArguments(filter.arguments));
}

}  // namespace weft::jinja
