// What a way through a schema's choices (Alternative) says of single values:
// which goals an item or a property has, which names may be, whether a known
// value fits.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "nlohmann/json.hpp"
#include "text/grammar/schema_goals.h"
#include "text/grammar/string_language.h"

namespace weft::grammar {

class SchemaValues {
 public:
  // Both must outlive it.
  SchemaValues(SchemaGoals* goals, Budget* budget)
      : goals_(goals), budget_(budget) {}

  bool Fits(const Alternative& way, const nlohmann::ordered_json& value,
            int depth = 0);
  bool FitsAll(const Goals& goals, const nlohmann::ordered_json& value,
               int depth = 0);
  // All values of these goals, if they are listed; nothing if not.
  std::optional<std::vector<nlohmann::ordered_json>> AllOf(const Goals& goals);

  // Strings that the way allows, lengths and all.
  StringLanguage TextsOf(const Alternative& way);
  // Strings that these goals allow; `what` they are, where they are dropped.
  StringLanguage TextsOf(const Goals& goals, const std::string& place,
                         absl::string_view what);
  // Of which types a value of these goals may be.
  uint8_t TypesOf(const Goals& goals);

  // The places of a list that have goals of their own, and whether there are
  // none behind them (where the schema does not say so, and is not open, too).
  struct Shape {
    size_t known = 0;
    bool closed = false;
  };
  Shape ShapeOf(const Alternative& way) const;
  // Of the item at this place; of all behind the known ones, at `known`.
  Goals ItemGoals(const Alternative& way, size_t at) const;

  // Names that are not listed, of which the same goals hold.
  struct FreeNames {
    bool all = false;  // any string
    StringLanguage names;
    Goals goals;
  };
  struct Names {
    std::vector<std::string> declared;  // in order
    std::vector<FreeNames> free;
    std::string impossible;  // required and not allowed, if not empty
  };
  Names NamesOf(const Alternative& way);
  Goals ValueGoals(const Alternative& way, const std::string& name);
  // Of which types the member of this name may be in some of the ways in which
  // there may be an object; none where there may be none of this name.
  uint8_t MemberTypes(const std::vector<Alternative>& ways,
                      const std::string& name);
  bool MemberMayBe(const std::vector<Alternative>& ways,
                   const std::string& name,
                   const nlohmann::ordered_json& value);

 private:
  // `usual`: see FormatPattern.
  const StringLanguage* Pattern(const std::string& pattern, bool is_format,
                                const std::string& place, bool usual = false);
  // Goals of a name; `listed`, `matched`: whether some schema lists it, or has
  // a pattern for it. `matches`: whether it matches a pattern.
  template <typename Matches>
  Goals NameGoals(const Alternative& way, const std::string* name,
                  Matches matches, bool* known) const;
  // Goals of a member of this name; nothing where there may be none.
  std::optional<Goals> MemberGoals(const Alternative& way,
                                   const std::string& name);
  bool IsClosed(const Alternative& way) const;

  SchemaGoals* const goals_;
  Budget* const budget_;
  // Null where it could not be read.
  std::map<std::tuple<std::string, bool, bool>, std::optional<StringLanguage>>
      patterns_;
};

}  // namespace weft::grammar
