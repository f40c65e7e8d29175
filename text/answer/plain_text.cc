#include "text/answer/plain_text.h"

#include <utility>

#include "absl/strings/match.h"
#include "base/status.h"
#include "text/grammar/pattern.h"
#include "text/grammar/syntax.h"

namespace weft::answer {
namespace {

using grammar::Budget;
using grammar::StringLanguage;
using grammar::Term;

// Texts that the reader takes for calls without a marker.
absl::StatusOr<StringLanguage> BareCalls(const CallForm& form,
                                         const std::vector<std::string>& tools,
                                         TextPlace place, Budget* budget) {
  if (form.body != CallBody::kPython) {
    return grammar::ParsePattern(
        "^[\\s,;\\]]*\\[?\\s*\\{\\s*\"(?:name|tool_name|function|parameters|"
        "arguments|type|id)\"",
        budget);
  }
  std::vector<Term> names;
  for (const std::string& tool : tools) {
    names.push_back(grammar::Literal(tool));
  }
  const Term space = grammar::Repeat(
      grammar::Class({{'\t', '\t'}, {'\n', '\n'}, {'\r', '\r'}, {' ', ' '}}),
      0);
  Term before = grammar::Sequence({space, grammar::Literal("["), space});
  if (place == TextPlace::kBehindCall) {
    before = grammar::Repeat(grammar::Class({{'\t', '\t'},
                                             {'\n', '\n'},
                                             {'\r', '\r'},
                                             {' ', ' '},
                                             {',', ','},
                                             {';', ';'},
                                             {'[', '['},
                                             {']', ']'}}),
                             0);
  }
  return StringLanguage::Of(
      grammar::Sequence({std::move(before), grammar::Choice(std::move(names)),
                         grammar::Literal("("),
                         grammar::Repeat(grammar::Class({}, true), 0)}),
      budget);
}

}  // namespace

absl::StatusOr<StringLanguage> TextWithout(
    const std::vector<std::string>& markers) {
  Budget budget;
  StringLanguage made = StringLanguage::All();
  for (const std::string& marker : markers) {
    if (marker.empty()) continue;
    WEFT_ASSIGN_OR_RETURN(made,
                          made.And(StringLanguage::Without(marker), &budget));
  }
  return made;
}

absl::StatusOr<StringLanguage> PlainText(const CallForm& form,
                                         const std::vector<std::string>& tools,
                                         TextPlace place) {
  std::vector<std::string> markers = {form.section_open};
  if (!absl::StartsWith(form.call_open, "```")) {
    markers.push_back(form.call_open);
  }
  WEFT_ASSIGN_OR_RETURN(StringLanguage made, TextWithout(markers));
  const bool listed =
      form.body == CallBody::kJson || form.body == CallBody::kPython;
  const bool bare = place == TextPlace::kBegin ? form.call_open.empty()
                    : place == TextPlace::kBehindCall
                        ? listed && form.call_close.empty()
                        : false;
  if (!bare) return made;
  Budget budget;
  WEFT_ASSIGN_OR_RETURN(const StringLanguage calls,
                        BareCalls(form, tools, place, &budget));
  return made.ButNot(calls, &budget);
}

}  // namespace weft::answer
