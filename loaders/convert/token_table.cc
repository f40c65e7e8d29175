#include "loaders/convert/token_table.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "loaders/convert/json_fields.h"
#include "loaders/gguf_value.h"

namespace weft {
namespace {

using nlohmann::json;

// Tokens that some models forgot to call special (llama.cpp,
// conversion/base.py).
bool LooksSpecial(absl::string_view text) {
  for (absl::string_view known : {"<pad>", "<mask>", "<2mass>", "[@BOS@]"}) {
    if (text == known) return true;
  }
  constexpr absl::string_view kWideOpen = "<\xef\xbd\x9c";
  constexpr absl::string_view kWideClose = "\xef\xbd\x9c>";
  return (absl::StartsWith(text, "<|") && absl::EndsWith(text, "|>")) ||
         (absl::StartsWith(text, kWideOpen) &&
          absl::EndsWith(text, kWideClose)) ||
         (absl::StartsWith(text, "<unused") && absl::EndsWith(text, ">"));
}

absl::StatusOr<int64_t> IdOf(const json& value, absl::string_view text,
                             const VocabularySource& source) {
  if (!value.is_number_unsigned() ||
      value.get<uint64_t>() > uint64_t{INT32_MAX}) {
    return source.Bad(
        absl::StrCat("token ", QuoteForMessage(text), " has no number"));
  }
  return value.get<int64_t>();
}

}  // namespace

bool IsByteToken(absl::string_view text) {
  return text.size() == 6 && absl::StartsWith(text, "<0x") && text[5] == '>' &&
         absl::ascii_isxdigit(text[3]) && absl::ascii_isxdigit(text[4]);
}

TokenTable::TokenTable(int64_t size)
    : tokens(static_cast<size_t>(size)), types(tokens.size(), kUnused) {}

void TokenTable::Put(int64_t id, std::string text, Type type) {
  ids.try_emplace(text, id);
  if (id >= size()) {
    beyond.insert(id);
    return;
  }
  tokens[static_cast<size_t>(id)] = std::move(text);
  types[static_cast<size_t>(id)] = type;
}

absl::Status TokenTable::PutVocabulary(const json& model,
                                       const VocabularySource& source) {
  const json* vocabulary = Find(model, "vocab");
  if (vocabulary == nullptr || !vocabulary->is_object()) {
    return source.Bad("its model has no vocab");
  }
  for (const auto& [text, value] : vocabulary->items()) {
    WEFT_ASSIGN_OR_RETURN(const int64_t id, IdOf(value, text, source));
    if (id < size() && types[static_cast<size_t>(id)] != kUnused) {
      return source.Bad(
          absl::StrCat("tokens ", QuoteForMessage(text), " and ",
                       QuoteForMessage(tokens[static_cast<size_t>(id)]),
                       " have the same number"));
    }
    Put(id, text, kNormal);
  }
  return absl::OkStatus();
}

absl::Status TokenTable::PutAdded(const VocabularySource& source,
                                  bool sentencepiece) {
  const json* added = Find(source.tokenizer, "added_tokens");
  if (added == nullptr) return absl::OkStatus();
  if (!added->is_array()) return source.Bad("added_tokens is no list");
  for (const json& entry : *added) {
    const std::string content = TextOf(entry, "content");
    const json* number = Find(entry, "id");
    if (content.empty() || number == nullptr) {
      return source.Bad("an added token has no content or id");
    }
    WEFT_ASSIGN_OR_RETURN(const int64_t id, IdOf(*number, content, source));
    Type type = kUserDefined;
    std::string text = content;
    if (sentencepiece && content == unknown) {
      type = kUnknown;
    } else if (FlagOf(entry, "special") || LooksSpecial(content)) {
      type = kControl;
    } else {
      text = absl::StrReplaceAll(content, {{kSpace, " "}});
    }
    ids[content] = id;
    Put(id, std::move(text), type);
  }
  return absl::OkStatus();
}

void TokenTable::FillHoles(const VocabularySource& source,
                           std::vector<std::string>* warnings) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (types[i] == kUnused && tokens[i].empty()) {
      tokens[i] = absl::StrCat("[PAD", i, "]");
    }
  }
  if (beyond.empty()) return;
  const bool one = beyond.size() == 1;
  warnings->push_back(source.Warning(absl::StrCat(
      beyond.size(), one ? " token is" : " tokens are",
      " left out, since the embedding has no row for ", one ? "it" : "them")));
}

void TokenTable::Write(absl::string_view model, absl::string_view pre,
                       GgufWriter* writer) const {
  writer->SetString("tokenizer.ggml.model", model);
  writer->SetString("tokenizer.ggml.pre", pre);
  writer->SetStrings("tokenizer.ggml.tokens", tokens);
  if (!scores.empty()) {
    writer->SetFloat32s("tokenizer.ggml.scores", scores);
  }
  writer->SetInt32s("tokenizer.ggml.token_type", types);
}

std::optional<int64_t> TokenTable::TokenId(const std::string& text) const {
  const auto found = ids.find(text);
  if (text.empty() || found == ids.end() || found->second >= size()) {
    return std::nullopt;
  }
  return found->second;
}

}  // namespace weft
