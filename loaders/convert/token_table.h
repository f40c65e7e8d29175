// The tokens of a vocabulary by their numbers, as a file lists them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "loaders/convert/vocabulary_source.h"
#include "loaders/gguf_writer.h"
#include "nlohmann/json.hpp"

namespace weft {

// U+2581, SentencePiece's space.
inline constexpr char kSpace[] = "\xe2\x96\x81";

struct TokenTable {
  // Values of `tokenizer.ggml.token_type`.
  enum Type : int32_t {
    kNormal = 1,
    kUnknown = 2,
    kControl = 3,
    kUserDefined = 4,
    kUnused = 5,
    kByte = 6,
  };

  // As many tokens as the embedding has rows, none of them known yet.
  explicit TokenTable(int64_t size);
  int64_t size() const { return static_cast<int64_t>(tokens.size()); }

  void Put(int64_t id, std::string text, Type type);
  // The vocabulary of BPE and WordPiece: an object of numbers.
  absl::Status PutVocabulary(const nlohmann::json& model,
                             const VocabularySource& source);
  // What was added to the vocabulary goes before it.
  absl::Status PutAdded(const VocabularySource& source, bool sentencepiece);
  // Rows of the embedding that no token has get names; tokens that have no row
  // are a warning.
  void FillHoles(const VocabularySource& source,
                 std::vector<std::string>* warnings);
  void Write(absl::string_view model, absl::string_view pre,
             GgufWriter* writer) const;

  // Of a token that has a row.
  std::optional<int64_t> TokenId(const std::string& text) const;

  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<float> scores;  // empty: the model has none
  // By their texts in the model, those without a row too.
  absl::flat_hash_map<std::string, int64_t> ids;
  absl::flat_hash_set<int64_t> beyond;  // without a row
  std::string unknown;  // stands for what no other token does; empty: none
};

// "<0x0A>"
bool IsByteToken(absl::string_view text);

}  // namespace weft
