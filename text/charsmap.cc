#include "text/charsmap.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace weft {
namespace {

absl::Status Bad(absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("vocabulary: normalisation rules: ", why));
}

uint32_t UnitAt(absl::string_view bytes, size_t at) {
  uint32_t unit = 0;
  for (int i = 3; i >= 0; --i) {
    unit = unit << 8 | static_cast<uint8_t>(bytes[at + i]);
  }
  return unit;
}

uint32_t LabelOf(uint32_t unit) { return unit & 0x800000ffu; }
bool EndsRule(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t OffsetOf(uint32_t unit) {
  return unit >> 10 << ((unit & 0x200u) >> 6);
}

}  // namespace

absl::StatusOr<Charsmap> Charsmap::Create(absl::string_view bytes) {
  Charsmap made;
  if (bytes.empty()) return made;
  if (bytes.size() < sizeof(uint32_t)) return Bad("they are cut off");
  const size_t trie = UnitAt(bytes, 0);
  bytes.remove_prefix(sizeof(uint32_t));
  if (trie > bytes.size() || trie % sizeof(uint32_t) != 0 || trie == 0) {
    return Bad(absl::StrCat("a trie of ", trie, " bytes in ", bytes.size()));
  }
  made.units_.resize(trie / sizeof(uint32_t));
  for (size_t i = 0; i < made.units_.size(); ++i) {
    made.units_[i] = UnitAt(bytes, i * sizeof(uint32_t));
  }
  made.replacements_ = std::string(bytes.substr(trie));
  size_t begin = 0;
  for (size_t i = 0; i < made.replacements_.size(); ++i) {
    if (made.replacements_[i] == '\0') begin = i + 1;
    if (i - begin + 1 > kLongest && begin <= i) {
      return Bad(
          absl::StrCat("a replacement of more than ", kLongest, " bytes"));
    }
  }
  if (begin != made.replacements_.size()) {
    return Bad("the last replacement has no end");
  }
  return made;
}

Charsmap::Match Charsmap::Find(absl::string_view text) const {
  Match match;
  if (units_.empty()) return match;
  const size_t most = std::min(text.size(), kLongest);
  uint32_t node = OffsetOf(units_[0]);
  for (size_t i = 0; i < most; ++i) {
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (node >= units_.size()) break;
    const uint32_t unit = units_[node];
    if (LabelOf(unit) != byte) break;
    node ^= OffsetOf(unit);
    if (!EndsRule(unit)) continue;
    if (node >= units_.size()) break;
    const size_t place = units_[node] & 0x7fffffffu;
    if (place >= replacements_.size()) break;
    match.size = i + 1;
    match.replacement = absl::string_view(
        replacements_.data() + place, replacements_.find('\0', place) - place);
  }
  return match;
}

}  // namespace weft
