// What a template computes with: Python's values, as far as templates see them.
//
// Idea: values are small handles; strings, lists and mappings are shared and
// never change once they are made (Jinja's sandbox forbids changing them, too).
// So copying is cheap, and no value can contain itself. Namespaces, the one
// thing that can be assigned to, belong to the run (context.h), and values only
// point to them.
//
// Nesting is bounded when a value is made (kMaxValueDepth), so that recursion
// over values, their destruction too, is bounded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "text/jinja/text.h"
#include "text/jinja/whole.h"

namespace weft::jinja {

class Value;
class Context;
struct Macro;
struct MacroDefinition;
struct LoopState;
struct Scope;

// In order of insertion; found by a walk. Keys are strings, numbers, true,
// false or none.
using Entries = std::vector<std::pair<Value, Value>>;

struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
};

class Value {
 public:
  enum class Kind {
    kUndefined,
    kNone,
    kBool,
    kInt,
    kFloat,
    kString,
    kList,
    kTuple,
    kMapping,
    kNamespace,
    kFunction,  // a global function, or a method with what it is called on
    kMacro,
    kLoop,  // the variable `loop`
  };

  struct Undefined {
    std::shared_ptr<const std::string> why;  // may be null
  };
  struct None {};
  struct List {
    std::vector<Value> items;
    bool tuple;
    // What Python makes item by item when asked: true even if it is empty.
    bool generator;
    int depth;
  };
  struct Mapping {
    Entries entries;
    int depth;
  };
  // A number that is written as it came, not as its value would be.
  struct Spelled {
    double value;
    std::string text;
  };
  struct Function {
    std::string name;
    std::shared_ptr<const Value> self;  // null for a global function
    int depth;
  };

  Value() = default;  // undefined
  explicit Value(bool value) : data_(value) {}
  explicit Value(int64_t value) : data_(Whole{value}) {}
  explicit Value(Whole value) : data_(value) {}
  explicit Value(double value) : data_(value) {}
  // By its text, in JSON: a whole number if it is one that Whole holds.
  static Value Number(absl::string_view spelling);
  explicit Value(Text text)
      : data_(std::make_shared<const Text>(std::move(text))) {}
  explicit Value(Namespace* space) : data_(space) {}
  explicit Value(const Macro* macro) : data_(macro) {}
  explicit Value(std::shared_ptr<LoopState> loop) : data_(std::move(loop)) {}
  static Value MakeNone();
  // `why` is what an error says when the value is used, "'x' is undefined".
  static Value MakeUndefined(std::string why);
  static Value Global(absl::string_view name);
  // The checked makers: a value nested too deeply is an error of `context`.
  static Value MakeList(Context& context, std::vector<Value> items,
                        bool tuple = false);
  static Value MakeGenerator(Context& context, std::vector<Value> items);
  static Value MakeMapping(Context& context, Entries entries);
  static Value Method(Context& context, absl::string_view name, Value self);

  Kind kind() const;
  bool is(Kind kind) const { return this->kind() == kind; }
  bool is_undefined() const { return is(Kind::kUndefined); }
  bool is_none() const { return is(Kind::kNone); }
  bool is_string() const { return is(Kind::kString); }
  bool is_sequence() const { return is(Kind::kList) || is(Kind::kTuple); }
  bool is_mapping() const { return is(Kind::kMapping); }
  // Python's int: true and false are numbers.
  bool is_integer() const { return is(Kind::kInt) || is(Kind::kBool); }
  bool is_number() const { return is_integer() || is(Kind::kFloat); }

  // What is asked for must be there.
  Whole whole() const;
  // The same, or the nearest that 64 bits hold: for places and lengths.
  int64_t integer() const;
  double number() const;
  // Of a number that is written as it came: how; else empty.
  absl::string_view spelling() const;
  const Text& text() const;
  const std::vector<Value>& items() const;
  const Entries& entries() const;
  const Function& function() const;
  Namespace* name_space() const { return std::get<Namespace*>(data_); }
  const Macro* macro() const { return std::get<const Macro*>(data_); }
  LoopState& loop() const {
    return *std::get<std::shared_ptr<LoopState>>(data_);
  }
  // Of an undefined value; a general text if nothing was said.
  std::string why_undefined() const;

  bool Truth() const;
  // 0 for what holds nothing, 1 for a flat list, ...
  int depth() const;
  // What Python calls the type: "str", "dict", ...
  absl::string_view TypeName() const;

 private:
  using TextPtr = std::shared_ptr<const Text>;
  using ListPtr = std::shared_ptr<const List>;
  using MappingPtr = std::shared_ptr<const Mapping>;
  using FunctionPtr = std::shared_ptr<const Function>;
  using SpelledPtr = std::shared_ptr<const Spelled>;

  std::variant<Undefined, None, bool, Whole, double, TextPtr, ListPtr,
               MappingPtr, Namespace*, FunctionPtr, const Macro*,
               std::shared_ptr<LoopState>, SpelledPtr>
      data_;
};

// What the variable `loop` tells.
struct LoopState {
  std::vector<Value> items;
  int items_depth = 0;  // nesting of the list that they come from
  size_t index = 0;     // from 0
  bool has_changed = false;
  Text changed;  // what loop.changed was last called with, written out
};

// A macro where it was defined. Belongs to the interpreter.
struct Macro {
  std::string name;
  const MacroDefinition* definition;
  std::shared_ptr<Scope> scope;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;
};

}  // namespace weft::jinja
