// The files of a published folder that say what its tokens are.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "loaders/convert/sentencepiece_model.h"
#include "nlohmann/json.hpp"

namespace weft {

struct VocabularySource {
  // tokenizer.json; of a folder with tokenizer.model, what was added to it.
  nlohmann::json tokenizer;
  std::string path;  // of one of the two, for messages
  // tokenizer_config.json and generation_config.json; empty objects: none.
  nlohmann::json tokenizer_config, generation_config;
  // chat_template.jinja; empty: none.
  std::string chat_template;
  std::string generation_path;  // of generation_config.json, for messages
  absl::optional<SentencePieceModel> sentencepiece;  // tokenizer.model

  // Reads the files of a folder. Errors: neither tokenizer.json nor
  // tokenizer.model, and those of ReadJsonFile and ReadSentencePieceModel.
  static absl::StatusOr<VocabularySource> Read(const std::string& folder);

  // What is wrong in `path`, and what is not taken over as it stands there.
  absl::Status Bad(absl::string_view why) const;
  std::string Warning(absl::string_view what) const;
};

}  // namespace weft
