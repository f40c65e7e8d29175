// SentencePiece's precompiled rules of normalisation: what a text's bytes begin
// with is replaced by other bytes, the longest rule first.
//
// The form (sentencepiece, src/normalizer.cc): the size of a trie in bytes
// (u32, little-endian), the trie, and the replacements, each ended by a zero
// byte. The trie is a double array of u32 units as darts-clone writes them
// (Yata 2008): bits 0 to 7 and 31 are the label of the byte that leads to a
// unit, bit 8 says that a rule ends there, bits 10 to 30, shifted by 8 where
// bit 9 is set, are the offset to what follows; the unit of a rule's end has
// its replacement's place in bits 0 to 30.
//
// The rules come from a file: every index is checked, and rules are at most
// kLongest bytes long on either side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

class Charsmap {
 public:
  static constexpr size_t kLongest = 256;

  // No rules.
  Charsmap() = default;
  // Errors: sizes that do not fit each other, a replacement that is too long or
  // not ended.
  static absl::StatusOr<Charsmap> Create(absl::string_view bytes);

  struct Match {
    size_t size = 0;  // bytes of the text; 0: no rule fits
    absl::string_view replacement;
  };
  // The longest rule for what `text` begins with. Valid while this is.
  Match Find(absl::string_view text) const;

  size_t MemoryBytes() const {
    return units_.capacity() * sizeof(uint32_t) + replacements_.capacity();
  }

 private:
  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace weft
