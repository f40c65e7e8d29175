#include "runtime/generation/stop_strings.h"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

// How much is matched after `byte`, where `matched` (less than all) was before.
int32_t Advance(const std::string& text, const std::vector<int32_t>& borders,
                int32_t matched, char byte) {
  while (matched > 0 && text[matched] != byte) matched = borders[matched - 1];
  return text[matched] == byte ? matched + 1 : 0;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> strings) {
  for (std::string& text : strings) {
    Pattern pattern;
    pattern.borders.push_back(0);
    for (size_t i = 1; i < text.size(); ++i) {
      pattern.borders.push_back(
          Advance(text, pattern.borders, pattern.borders.back(), text[i]));
    }
    pattern.text = std::move(text);
    patterns_.push_back(std::move(pattern));
  }
}

int StopStrings::Push(absl::string_view text, std::string* out) {
  if (patterns_.empty()) {
    out->append(text.data(), text.size());
    return -1;
  }
  int32_t longest = 0;
  for (const char byte : text) {
    held_.push_back(byte);
    int found = -1;
    longest = 0;
    for (size_t i = 0; i < patterns_.size(); ++i) {
      Pattern& pattern = patterns_[i];
      pattern.matched =
          Advance(pattern.text, pattern.borders, pattern.matched, byte);
      const bool whole =
          pattern.matched == static_cast<int32_t>(pattern.text.size());
      if (whole &&
          (found < 0 || pattern.text.size() > patterns_[found].text.size())) {
        found = static_cast<int>(i);
      }
      longest = std::max(longest, pattern.matched);
    }
    if (found >= 0) {
      held_.resize(held_.size() - patterns_[found].text.size());
      Flush(out);
      return found;
    }
  }
  if (!text.empty()) {
    out->append(held_, 0, held_.size() - longest);
    held_.erase(0, held_.size() - longest);
  }
  return -1;
}

void StopStrings::Flush(std::string* out) {
  out->append(held_);
  held_.clear();
  for (Pattern& pattern : patterns_) pattern.matched = 0;
}

}  // namespace weft
