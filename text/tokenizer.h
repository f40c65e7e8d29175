// Text to token ids and back.
//
// A Tokenizer is made from a Vocabulary and never changes: all methods are
// thread-safe. It cuts special tokens out of the text, hands what lies between
// to the vocabulary's family (spm.h, bpe.h), and adds BOS and EOS.
//
// Round trip: for any bytes x without special tokens in them,
// DecodeBytes(Encode(x)) == x, and for well-formed UTF-8 Decode(Encode(x)) ==
// x, provided that the vocabulary has a token for every byte. With special
// tokens in x it holds when they are printed (skip_special = false); where the
// family normalises, for texts in NFC, or with normalize = false.
//
// The space that SentencePiece vocabularies want before a text (space prefix)
// is put at the start and again after each special token, as llama.cpp and
// HuggingFace's legacy mode do; decoding takes it away in just these places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "text/segment.h"
#include "text/special_tokens.h"
#include "text/tokenizer_family.h"
#include "text/vocabulary.pb.h"

namespace weft {

struct TokenizerOptions {
  // False: EncodeOptions::normalize is false for all texts.
  bool normalize = true;
};

struct EncodeOptions {
  // BOS and EOS as the vocabulary wants them. A text that itself begins with
  // BOS (or ends with EOS) gets no second one.
  bool add_special = true;
  // Control tokens written in the text ("</s>") are meant. When false they stay
  // plain text. User-defined tokens are matched either way.
  bool parse_special = true;
  // To NFC, where the family's published tokeniser does so. When false texts
  // are encoded as they are.
  bool normalize = true;
  // Asked now and then while a long text is encoded: once it is true, nobody
  // wants the ids any more, and encoding ends with kCancelled.
  std::function<bool()> unwanted = nullptr;
};

struct DecodeOptions {
  // Control tokens, BOS, EOS and the unknown token print nothing.
  bool skip_special = true;
  // The ids go on from a text decoded before: a leading space is no prefix.
  bool continues_text = false;
};

class Tokenizer {
 public:
  // Checks everything: family and pre-tokeniser by name, sizes of scores and
  // types, special ids in range, no score NaN, well-formed merges and byte
  // tokens. Errors read "vocabulary: <what>: <why>".
  static absl::StatusOr<std::unique_ptr<const Tokenizer>> Create(
      Vocabulary vocabulary, const TokenizerOptions& options = {});

  // The ids of `text` (any bytes, less than 2 GiB). `bos_in_text`, if given, is
  // set to whether BOS was left out because the text has it already: worth a
  // warning.
  absl::StatusOr<std::vector<int32_t>> Encode(
      absl::string_view text, const EncodeOptions& options,
      bool* bos_in_text = nullptr) const;

  // The ids of all segments as one text: words are joined and spaces prefixed
  // as if nothing divided them. Control tokens are taken only where they lie
  // wholly in text from the template; elsewhere they stay plain text, and so do
  // user-defined tokens that serve as control tokens: those that end a
  // generation, read <|...|>, or read <...> or [...] and stand in the
  // vocabulary's chat template. options.parse_special = false: nowhere at all.
  absl::StatusOr<std::vector<int32_t>> EncodeSegments(
      absl::Span<const TextSegment> segments, const EncodeOptions& options,
      bool* bos_in_text = nullptr) const;

  // Well-formed UTF-8: parts that are not become U+FFFD (utf8.h). An id out of
  // range is an error that names it.
  absl::StatusOr<std::string> Decode(absl::Span<const int32_t> ids,
                                     const DecodeOptions& options) const;

  // The same without repair: exactly the tokens' bytes.
  absl::StatusOr<std::string> DecodeBytes(absl::Span<const int32_t> ids,
                                          const DecodeOptions& options) const;

  // One step of DecodeBytes, for streams: appends what `id` prints. `at_start`
  // says whether a space prefix would be dropped, and is updated; it begins as
  // !options.continues_text.
  absl::Status AppendBytes(int32_t id, const DecodeOptions& options,
                           bool* at_start, std::string* bytes) const;

  // What a token stands for by itself, printed whatever it is, no space
  // dropped. `id` must be in range, as for the three below.
  absl::string_view TokenToBytes(int32_t id) const;
  // The token as the vocabulary writes it.
  absl::string_view Piece(int32_t id) const { return vocabulary_.tokens(id); }
  // Control tokens, BOS, EOS, end of turn and the unknown token.
  bool IsSpecial(int32_t id) const { return special_[id]; }
  // EOS, end of turn, the vocabulary's other ends, and the tokens that known
  // models end with, by their names.
  bool IsEndOfGeneration(int32_t id) const { return ends_generation_[id]; }

  int32_t vocabulary_size() const { return vocabulary_.tokens_size(); }
  bool InRange(int32_t id) const { return id >= 0 && id < vocabulary_size(); }

  // -1 when the model has none.
  int32_t bos() const { return vocabulary_.bos(); }
  int32_t eos() const { return vocabulary_.eos(); }
  // Known by its name where the file does not say.
  int32_t end_of_turn() const { return vocabulary_.end_of_turn(); }
  // Of fill-in-the-middle models; by their names where the file does not say.
  int32_t fill_prefix() const {
    return Fill(vocabulary_.has_fill_prefix(), vocabulary_.fill_prefix());
  }
  int32_t fill_suffix() const {
    return Fill(vocabulary_.has_fill_suffix(), vocabulary_.fill_suffix());
  }
  int32_t fill_middle() const {
    return Fill(vocabulary_.has_fill_middle(), vocabulary_.fill_middle());
  }
  // Whether Encode with add_special puts them: as the vocabulary says, else the
  // family's default; never where the model has no such token.
  bool add_bos() const { return vocabulary_.add_bos(); }
  bool add_eos() const { return vocabulary_.add_eos(); }

  // An estimate of the memory held, for the memory plan.
  size_t MemoryBytes() const;

 private:
  Tokenizer() = default;

  static int32_t Fill(bool is_set, int32_t id) { return is_set ? id : -1; }

  // `accepts` says which special tokens of the text are meant.
  absl::StatusOr<std::vector<int32_t>> EncodeIf(
      absl::string_view text, const EncodeOptions& options,
      absl::FunctionRef<bool(const SpecialTokens::Match&)> accepts,
      bool* bos_in_text) const;

  Vocabulary vocabulary_;  // without merges, scores and chat template
  std::unique_ptr<const TokenizerFamily> family_;
  SpecialTokens all_special_;  // and the user-defined ones
  bool normalizes_ = false;
  bool special_takes_space_ = false;  // behind it, and swallows it
  std::vector<bool> special_;
  // Special ones, and user-defined ones that serve as such.
  std::vector<bool> markup_;
  std::vector<bool> ends_generation_;
};

}  // namespace weft
