#include "text/grammar/token_trie.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace weft::grammar {

TokenTrie::TokenTrie(const Tokenizer& tokenizer,
                     absl::Span<const int32_t> control) {
  bytes_.resize(tokenizer.vocabulary_size());
  for (int32_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (tokenizer.IsEndOfGeneration(id)) {
      ends_of_text_.push_back(id);
      continue;
    }
    const absl::string_view bytes = tokenizer.TokenToBytes(id);
    const bool meant = absl::c_linear_search(control, id);
    if ((tokenizer.IsSpecial(id) && !meant) || bytes.empty() ||
        bytes.size() > kMaxTokenBytes || absl::StrContains(bytes, kControl)) {
      continue;
    }
    bytes_[id] = absl::StrCat(meant ? std::string(1, kControl) : "", bytes);
    order_.push_back(id);
  }
  std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
    return bytes_[a] != bytes_[b] ? bytes_[a] < bytes_[b] : a < b;
  });
  // The nodes from the root to the last token.
  std::vector<int32_t> path;
  absl::string_view last;
  const auto close_to = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) {
      nodes_[path.back()].end = static_cast<int32_t>(nodes_.size());
    }
  };
  for (size_t i = 0; i < order_.size(); ++i) {
    const absl::string_view bytes = bytes_[order_[i]];
    size_t common = 0;
    while (common < std::min(bytes.size(), last.size()) &&
           bytes[common] == last[common]) {
      ++common;
    }
    close_to(common);
    for (size_t depth = common; depth < bytes.size(); ++depth) {
      path.push_back(static_cast<int32_t>(nodes_.size()));
      nodes_.push_back({static_cast<uint8_t>(bytes[depth]),
                        static_cast<uint16_t>(depth + 1), 0,
                        static_cast<int32_t>(i), 0});
    }
    ++nodes_[path.back()].count;
    last = bytes;
  }
  close_to(0);
}

}  // namespace weft::grammar
