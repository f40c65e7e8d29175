// Cuts a text into the pieces within which byte-level BPE may merge.
//
// Idea: one table, a row per name (`tokenizer.ggml.pre` in GGUF): regular
// expressions run by PCRE2 with Unicode classes. Each expression cuts every
// piece that the one before left, into its matches and what lies between them;
// each sees one piece as if there were nothing around it.
//
// Limits: no expression may repeat a group without bound (but possessively), so
// that matching needs no stack by the length of the text, nor search a run
// again from each of its places.
//
// Classes are those of Unicode 16, whatever PCRE2's own (unicode_additions.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weft {

// What a row says besides its expressions.
struct PretokenizerTraits {
  // A piece that is a token as it stands is taken before any merging.
  bool whole_pieces_first = false;
  // Whether BOS, and EOS as a separator, are put where the model's file does
  // not say.
  bool add_bos = false;
  bool add_separator = false;
  // The published tokeniser normalises texts to NFC before it cuts them.
  bool nfc = false;
  // Tokens are UTF-8 as SentencePiece writes it, not GPT-2's bytes: spaces are
  // U+2581, and there are byte tokens (<0x0A>) for what no token has.
  bool raw = false;
  // As whole_pieces_first, for pieces of line ends alone.
  bool whole_line_ends_first = false;
};

// Thread-safe.
class Pretokenizer {
 public:
  struct Piece {
    uint32_t begin;
    uint32_t size;  // bytes, at least one
  };

  // NotFound, naming `name` and the known ones, when the table has no such row.
  static absl::StatusOr<std::unique_ptr<const Pretokenizer>> Create(
      absl::string_view name);

  ~Pretokenizer();
  Pretokenizer(const Pretokenizer&) = delete;
  Pretokenizer& operator=(const Pretokenizer&) = delete;

  // The pieces of `text`, in order; together they are the whole text. `text` is
  // well-formed UTF-8 of less than 4 GiB.
  absl::StatusOr<std::vector<Piece>> Split(absl::string_view text) const;

  PretokenizerTraits traits() const { return traits_; }
  size_t MemoryBytes() const;

 private:
  class Expression;

  explicit Pretokenizer(PretokenizerTraits traits);

  PretokenizerTraits traits_;
  std::vector<std::unique_ptr<const Expression>> expressions_;
};

// The names in the table, in its order.
std::vector<absl::string_view> PretokenizerNames();

}  // namespace weft
