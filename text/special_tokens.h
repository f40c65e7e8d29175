// Finds the tokens that stand in a text as themselves (control and user-defined
// ones), so that everything between them goes to the tokeniser's own method.
//
// Idea: a trie over bytes, searched from left to right; where several tokens
// begin at one place the longest wins (as HuggingFace's added tokens do;
// llama.cpp looks for the longest token of all first, which differs only where
// tokens overlap).
//
// Thread-safe once filled.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace weft {

class SpecialTokens {
 public:
  struct Match {
    size_t begin = 0;
    size_t size = 0;  // 0: none found
    int32_t id = -1;
  };

  // An empty text is ignored; of two equal texts the first added stays.
  void Add(absl::string_view text, int32_t id);

  // The first match at or after `from`.
  Match Find(absl::string_view text, size_t from) const;
  // The same, as if there were only the matches that `accepts` allows.
  Match FindIf(absl::string_view text, size_t from,
               absl::FunctionRef<bool(const Match&)> accepts) const;

  size_t MemoryBytes() const;

 private:
  // Trie edges: (node << 8 | byte) to node. The root is node 0.
  absl::flat_hash_map<uint64_t, uint32_t> edges_;
  absl::flat_hash_map<uint32_t, int32_t> ids_;  // nodes at which a token ends
  uint32_t nodes_ = 1;
  std::array<bool, 256> starts_ = {};  // bytes that begin some token
};

}  // namespace weft
