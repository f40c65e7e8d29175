#include "text/answer/marker_tokens.h"

#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"

namespace weft::answer {

std::vector<int32_t> MarkerTokens(const Tokenizer& tokenizer,
                                  const AnswerForms& forms) {
  std::vector<int32_t> tokens;
  const std::vector<std::string> markers = forms.Markers();
  for (int32_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (!tokenizer.IsSpecial(id) || tokenizer.IsEndOfGeneration(id)) continue;
    const absl::string_view text = tokenizer.TokenToBytes(id);
    if (text.size() > 1 &&
        absl::c_any_of(markers, [&](const std::string& marker) {
          return absl::StrContains(marker, text);
        })) {
      tokens.push_back(id);
    }
  }
  return tokens;
}

TemplateCustoms CustomsOf(const ChatTemplate& chat_template,
                          const Tokenizer& tokenizer) {
  return FindCustoms(chat_template, [&](absl::string_view text) {
    for (int32_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
      if (tokenizer.Piece(id) == text) return true;
    }
    return false;
  });
}

}  // namespace weft::answer
