// A vocabulary's tokens by their bytes, for walking all of them at once.
//
// Idea: the tokens in order of their bytes are a trie in preorder, kept as one
// array; each node knows where its subtree ends, so a walk is a loop and a dead
// subtree is skipped by one jump.
//
// Special tokens are not in it, nor those that print nothing. Immutable,
// thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "text/tokenizer.h"

namespace weft::grammar {

class TokenTrie {
 public:
  struct Node {
    uint8_t byte;
    uint16_t depth;  // 1 for the first byte
    int32_t end;     // the index behind the subtree
    int32_t tokens;  // the first in the order of tokens
    int32_t count;   // of tokens that end here
  };

  // Tokens longer than this many bytes are left out: no text needs them.
  static constexpr size_t kMaxTokenBytes = 1024;

  // Stands before the text of a control token that is in the trie: no text has
  // this byte, so only a literal that is meant for the token matches it. Other
  // tokens that have it (of vocabularies with all bytes) are left out.
  static constexpr char kControl = '\xff';

  // Control tokens are left out but for those of `control`.
  explicit TokenTrie(const Tokenizer& tokenizer,
                     absl::Span<const int32_t> control = {});

  absl::Span<const Node> nodes() const { return nodes_; }
  absl::Span<const int32_t> TokensAt(const Node& node) const {
    return absl::MakeConstSpan(order_).subspan(node.tokens, node.count);
  }
  // Those that go on from where this node stands.
  absl::Span<const int32_t> TokensBelow(const Node& node) const {
    const size_t end = node.end < static_cast<int32_t>(nodes_.size())
                           ? nodes_[node.end].tokens
                           : order_.size();
    const size_t begin = node.tokens + node.count;
    return absl::MakeConstSpan(order_).subspan(begin, end - begin);
  }
  // The bytes of a token that is in the trie; else empty.
  absl::string_view Bytes(int32_t id) const { return bytes_[id]; }

  absl::Span<const int32_t> ends_of_text() const { return ends_of_text_; }
  int32_t vocabulary_size() const {
    return static_cast<int32_t>(bytes_.size());
  }

 private:
  std::vector<std::string> bytes_;  // by id
  std::vector<int32_t> order_;      // ids in order of their bytes
  std::vector<Node> nodes_;
  std::vector<int32_t> ends_of_text_;
};

}  // namespace weft::grammar
