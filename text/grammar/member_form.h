// How an object is written whose members are no JSON: the arguments of a call,
// as the families of models write them (text/answer/call_grammar.h).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "text/grammar/string_language.h"
#include "text/grammar/syntax.h"

namespace weft::grammar {

struct MemberForm {
  // What stands between two members.
  Term between;
  // Names that can be written: of members that a schema lists, and of others.
  StringLanguage listed_names, other_names;
  // One member. `name` is null where it may be any of `names`. `is_text`: the
  // value is a string as it is, without quotes; else it is JSON.
  std::function<Term(const std::string* name, const Term& names, Term value,
                     bool is_text)>
      member;
  // Strings are written as they are, up to this; nothing: they are JSON.
  std::optional<std::string> closing;
  // What is a text is told beside it. Else who reads it goes by the schema
  // (member_types.h).
  bool tells_texts = false;
  // Strings in JSON may have \/ for a slash.
  bool slash_escapes = true;
};

}  // namespace weft::grammar
