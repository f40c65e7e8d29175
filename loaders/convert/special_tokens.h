// Which tokens begin, end, part and pad texts, and which of them readers put
// there themselves.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "loaders/convert/checkpoint_config.h"
#include "loaders/convert/token_table.h"
#include "loaders/convert/vocabulary_source.h"
#include "loaders/gguf_writer.h"

namespace weft {

// `table` has every token. A token that tokenizer_config.json names by its text
// goes before numbers of config.json, and these before
// generation_config.json's.
absl::Status SetSpecialTokens(const VocabularySource& source,
                              const CheckpointConfig& config,
                              const TokenTable& table, GgufWriter* writer,
                              std::vector<std::string>* warnings);

}  // namespace weft
