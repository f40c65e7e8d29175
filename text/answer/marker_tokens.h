// The control tokens that answers are read by.
#pragma once

#include <cstdint>
#include <vector>

#include "text/answer/customs.h"
#include "text/answer/forms.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace weft::answer {

// Those that are a part of what calls and reasoning are marked with, in order;
// not those that end a text.
std::vector<int32_t> MarkerTokens(const Tokenizer& tokenizer,
                                  const AnswerForms& forms);

// FindCustoms with the tokens of this model.
TemplateCustoms CustomsOf(const ChatTemplate& chat_template,
                          const Tokenizer& tokenizer);

}  // namespace weft::answer
