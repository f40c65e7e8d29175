#include "runtime/generation/choice_output.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace weft {

ChoiceOutput::ChoiceOutput(const Tokenizer& tokenizer, const Request& request)
    : tokenizer_(tokenizer),
      shown_special_(request.skip_special ? request.shown_special
                                          : std::vector<int32_t>()),
      decoder_(tokenizer, {request.skip_special, /*continues_text=*/true}),
      stops_(request.stop_strings) {}

absl::StatusOr<int> ChoiceOutput::Push(GeneratedToken token, bool look,
                                       Event* event) {
  WEFT_ASSIGN_OR_RETURN(std::string text, decoder_.Push(token.id));
  if (std::binary_search(shown_special_.begin(), shown_special_.end(),
                         token.id)) {
    absl::StrAppend(&text, tokenizer_.TokenToBytes(token.id));
  }
  held_.push_back({std::move(token), decoded_});
  decoded_ += static_cast<int64_t>(text.size());
  if (!look) {
    event->text += text;
    TellTokens(decoded_, /*inclusive=*/true, event);
    return -1;
  }
  const int64_t held_before = stops_.held_bytes();
  const size_t told_before = event->text.size();
  const int found = stops_.Push(text, &event->text);
  const int64_t told = decoded_ - static_cast<int64_t>(text.size()) -
                       held_before +
                       static_cast<int64_t>(event->text.size() - told_before);
  if (found >= 0) {
    TellTokens(told, /*inclusive=*/false, event);
    held_.clear();
  } else {
    // With nothing held back, a token that prints nothing is not waited for.
    TellTokens(told, /*inclusive=*/told == decoded_, event);
  }
  return found;
}

void ChoiceOutput::Finish(Event* event) {
  stops_.Flush(&event->text);
  event->text += decoder_.Finish();
  TellTokens(decoded_, /*inclusive=*/true, event);
}

void ChoiceOutput::TellTokens(int64_t end, bool inclusive, Event* event) {
  size_t count = 0;
  for (; count < held_.size(); ++count) {
    Held& held = held_[count];
    if (held.begin > end || (held.begin == end && !inclusive)) break;
    event->tokens.push_back(std::move(held.token));
  }
  held_.erase(held_.begin(), held_.begin() + count);
}

}  // namespace weft
