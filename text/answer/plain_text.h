// Texts in which no call begins.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "text/answer/forms.h"
#include "text/grammar/string_language.h"

namespace weft::answer {

// Where it stands: without a marker, a call may begin an answer, or follow
// another one.
enum class TextPlace { kBegin, kBehindCall, kElsewhere };

// Of an answer in this form. `tools` are the names of all.
//
// Limits: ``` alone opens no call, as it opens other things, too; a call
// without a marker that is JSON is known by its first key.
absl::StatusOr<grammar::StringLanguage> PlainText(
    const CallForm& form, const std::vector<std::string>& tools,
    TextPlace place);

// A text in which none of `markers` stands.
absl::StatusOr<grammar::StringLanguage> TextWithout(
    const std::vector<std::string>& markers);

}  // namespace weft::answer
