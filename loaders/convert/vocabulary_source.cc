#include "loaders/convert/vocabulary_source.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/mapped_file.h"
#include "base/status.h"
#include "loaders/convert/json_fields.h"
#include "loaders/safetensors/json_text.h"
#include "loaders/utf8.h"

namespace weft {
namespace {

using nlohmann::json;

// The largest published ones have 35 MB, and two million values.
constexpr JsonLimits kTokenizerLimits = {int64_t{1} << 28, int64_t{1} << 24,
                                         32};
constexpr JsonLimits kConfigLimits = {int64_t{1} << 24, int64_t{1} << 20, 32};
constexpr int64_t kMaxTemplate = int64_t{1} << 20;

absl::StatusOr<json> OptionalJson(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return json::object();
  return ReadJsonFile(path, kConfigLimits);
}

// Beside tokenizer.model: {"text": number}, and in tokenizer_config.json
// {"number": {"content", "special"}}, which knows more. In the form of
// tokenizer.json.
json AddedTokens(const json& added, const json& tokenizer_config) {
  json list = json::array();
  for (const auto& [text, id] : added.items()) {
    list.push_back({{"id", id}, {"content", text}, {"special", false}});
  }
  const json* decoder = Find(tokenizer_config, "added_tokens_decoder");
  if (decoder == nullptr || !decoder->is_object()) return list;
  for (const auto& [number, token] : decoder->items()) {
    uint64_t id;
    list.push_back(
        {{"id", absl::SimpleAtoi(number, &id) ? json(id) : json(number)},
         {"content", TextOf(token, "content")},
         {"special", FlagOf(token, "special")}});
  }
  return list;
}

}  // namespace

absl::StatusOr<VocabularySource> VocabularySource::Read(
    const std::string& folder) {
  VocabularySource source;
  WEFT_ASSIGN_OR_RETURN(
      source.tokenizer_config,
      OptionalJson(absl::StrCat(folder, "/tokenizer_config.json")));
  source.path = absl::StrCat(folder, "/tokenizer.json");
  const std::string older = absl::StrCat(folder, "/tokenizer.model");
  std::error_code error;
  if (std::filesystem::exists(source.path, error)) {
    WEFT_ASSIGN_OR_RETURN(source.tokenizer,
                          ReadJsonFile(source.path, kTokenizerLimits));
  } else if (std::filesystem::exists(older, error)) {
    source.path = older;
    WEFT_ASSIGN_OR_RETURN(source.sentencepiece, ReadSentencePieceModel(older));
    WEFT_ASSIGN_OR_RETURN(const json added, OptionalJson(absl::StrCat(
                                                folder, "/added_tokens.json")));
    source.tokenizer["added_tokens"] =
        AddedTokens(added, source.tokenizer_config);
  } else {
    return absl::NotFoundError(
        absl::StrCat("no vocabulary: ", source.path,
                     ": there is no such file, nor a tokenizer.model: convert "
                     "the folder's tokeniser with transformers "
                     "(save_pretrained)"));
  }
  source.generation_path = absl::StrCat(folder, "/generation_config.json");
  WEFT_ASSIGN_OR_RETURN(source.generation_config,
                        OptionalJson(source.generation_path));
  const std::string path = absl::StrCat(folder, "/chat_template.jinja");
  if (std::filesystem::exists(path, error)) {
    WEFT_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
    const absl::Span<const uint8_t> bytes = file->bytes();
    const absl::string_view text(reinterpret_cast<const char*>(bytes.data()),
                                 bytes.size());
    if (static_cast<int64_t>(text.size()) > kMaxTemplate ||
        !IsValidUtf8(text)) {
      return absl::InvalidArgumentError(
          absl::StrCat("bad chat template: ", path,
                       ": it is too large or no UTF-8: remove it"));
    }
    source.chat_template = std::string(text);
  }
  return source;
}

absl::Status VocabularySource::Bad(absl::string_view why) const {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot convert: ", path, ": ", why,
                   ": use the folder as it was published"));
}

std::string VocabularySource::Warning(absl::string_view what) const {
  return absl::StrCat(path, ": ", what);
}

}  // namespace weft
