#include "text/special_tokens.h"

namespace weft {

void SpecialTokens::Add(absl::string_view text, int32_t id) {
  if (text.empty()) return;
  starts_[static_cast<uint8_t>(text[0])] = true;
  uint32_t node = 0;
  for (const char c : text) {
    const uint64_t edge =
        static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(c);
    const auto [it, is_new] = edges_.try_emplace(edge, nodes_);
    if (is_new) ++nodes_;
    node = it->second;
  }
  ids_.try_emplace(node, id);
}

SpecialTokens::Match SpecialTokens::Find(absl::string_view text,
                                         size_t from) const {
  return FindIf(text, from, [](const Match&) { return true; });
}

SpecialTokens::Match SpecialTokens::FindIf(
    absl::string_view text, size_t from,
    absl::FunctionRef<bool(const Match&)> accepts) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!starts_[static_cast<uint8_t>(text[begin])]) continue;
    Match best;
    uint32_t node = 0;
    for (size_t i = begin; i < text.size(); ++i) {
      const auto edge = edges_.find(static_cast<uint64_t>(node) << 8 |
                                    static_cast<uint8_t>(text[i]));
      if (edge == edges_.end()) break;
      node = edge->second;
      const auto id = ids_.find(node);
      if (id == ids_.end()) continue;
      const Match match = {begin, i + 1 - begin, id->second};
      if (accepts(match)) best = match;
    }
    if (best.size > 0) return best;
  }
  return {};
}

size_t SpecialTokens::MemoryBytes() const {
  return edges_.capacity() * (sizeof(uint64_t) + sizeof(uint32_t) * 2) +
         ids_.capacity() * (sizeof(uint32_t) + sizeof(int32_t) + 1);
}

}  // namespace weft
