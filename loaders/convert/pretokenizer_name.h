// The name of the pre-tokeniser that a tokenizer.json describes.
//
// Public converters recognise tokenisers by hashing the ids of a sample text,
// which takes the tokeniser itself. Here what tokenizer.json says is brought
// into one spelling and compared with the expressions that weft has names for
// (text/pretokenizer_table.h).
//
// Format: the tokenizers library (huggingface/tokenizers), "pre_tokenizer",
// "normalizer" and the model's "ignore_merges".
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace weft {

struct PretokenizerChoice {
  std::string name;
  // What the name stands for differs so from what the tokenizer.json says.
  std::vector<std::string> warnings;
};

// `tokenizer`: of byte-level BPE. Of several names that cut alike `preferred`
// is taken, else the first of the table. Errors: steps or an expression that no
// name stands for, which are shown. `path` stands in them.
absl::StatusOr<PretokenizerChoice> NamePretokenizer(
    const nlohmann::json& tokenizer, absl::string_view preferred,
    absl::string_view path);

// One spelling of expressions that cut alike, of those that are published:
// (?i:'s|'t) is '[sS]|'[tT], a group around alternatives of the whole is none,
// and \s+ behind \s+(?!\S) at the end takes what is left anyway. For tests.
std::string PlainExpression(absl::string_view expression);

}  // namespace weft
