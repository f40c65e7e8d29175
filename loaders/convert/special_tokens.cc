#include "loaders/convert/special_tokens.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "loaders/convert/json_fields.h"
#include "loaders/gguf_value.h"

namespace weft {
namespace {

using nlohmann::json;

// What stands before and behind a text, by the post_processor; empty: nothing.
struct Ends {
  std::string first, last;
};

absl::Status ReadTemplate(const json& single, const VocabularySource& source,
                          Ends* ends) {
  bool behind = false;
  for (const json& piece : single) {
    const json* special = Find(piece, "SpecialToken");
    if (special == nullptr) {
      if (Find(piece, "Sequence") == nullptr || behind) {
        return source.Bad("its post_processor has no single text");
      }
      behind = true;
      continue;
    }
    std::string& end = behind ? ends->last : ends->first;
    // Several are no token.
    absl::StrAppend(&end, end.empty() ? "" : " and ", TextOf(*special, "id"));
  }
  return absl::OkStatus();
}

absl::Status ReadEnds(const VocabularySource& source, Ends* ends) {
  for (const json* step :
       StepsOf(Find(source.tokenizer, "post_processor"), "processors")) {
    const std::string type = TextOf(*step, "type");
    const json* single = Find(*step, "single");
    if (type == "ByteLevel") continue;
    if (type == "RobertaProcessing" || type == "BertProcessing") {
      const json* first = Find(*step, "cls");
      const json* last = Find(*step, "sep");
      for (const json* each : {first, last}) {
        if (each == nullptr || !each->is_array() || each->empty() ||
            !(*each)[0].is_string()) {
          return source.Bad("its post_processor has no cls or sep");
        }
      }
      *ends = {(*first)[0].get<std::string>(), (*last)[0].get<std::string>()};
    } else if (type == "TemplateProcessing" && single != nullptr &&
               single->is_array()) {
      WEFT_RETURN_IF_ERROR(ReadTemplate(*single, source, ends));
    } else {
      return source.Bad(absl::StrCat("its post_processor has a step ",
                                     QuoteForMessage(type),
                                     ", which is not supported"));
    }
  }
  return absl::OkStatus();
}

// What begins and ends texts is a token, or several: models that end at no
// token never stop.
absl::Status CheckEnds(const VocabularySource& source,
                       const CheckpointConfig& config, int64_t size) {
  const auto is_token = [size](const json& value) {
    return value.is_number_unsigned() &&
           value.get<uint64_t>() < static_cast<uint64_t>(size);
  };
  const std::string wanted =
      absl::StrCat("the number of a token, below ", size);
  for (const char* key : {"bos_token_id", "eos_token_id"}) {
    for (const json* found :
         {config.Find(key), Find(source.generation_config, key)}) {
      if (found == nullptr || is_token(*found)) continue;
      if (found->is_array() &&
          std::all_of(found->begin(), found->end(), is_token)) {
        continue;
      }
      if (found == config.Find(key)) return config.BadKey(key, wanted);
      return absl::InvalidArgumentError(absl::StrCat(
          "cannot convert: ", source.generation_path, ": ", key, " is ",
          QuoteForMessage(
              found->dump(-1, ' ', true, json::error_handler_t::replace)),
          ": want ", wanted));
    }
  }
  return absl::OkStatus();
}

// A number of config.json or generation_config.json, or the first of a list.
std::optional<int64_t> NumberIn(const json& config, const char* key,
                                int64_t size) {
  const json* found = Find(config, key);
  if (found != nullptr && found->is_array() && !found->empty()) {
    found = &(*found)[0];
  }
  if (found == nullptr || !found->is_number_unsigned() ||
      found->get<uint64_t>() >= static_cast<uint64_t>(size)) {
    return std::nullopt;
  }
  return found->get<int64_t>();
}

absl::Status SetEnds(const Ends& ends,
                     const absl::flat_hash_map<std::string, int64_t>& found,
                     const VocabularySource& source, const TokenTable& table,
                     GgufWriter* writer, std::vector<std::string>* warnings) {
  // Whether what stands at an end is the token that files name for it.
  const auto is = [&](const std::string& text, const char* name,
                      const char* other) {
    const std::optional<int64_t> id = table.TokenId(text);
    const auto a = found.find(name), b = found.find(other);
    return id && ((a != found.end() && a->second == *id) ||
                  (b != found.end() && b->second == *id));
  };
  // Files name one token for an end. What published chat templates write
  // themselves (GLM) is no loss.
  bool first = is(ends.first, "bos", "cls");
  bool last = is(ends.last, "eos", "sep");
  if (first != !ends.first.empty() || last != !ends.last.empty()) {
    warnings->push_back(source.Warning(
        absl::StrCat("its post_processor puts ",
                     QuoteForMessage(first ? ends.last : ends.first),
                     " at an end of texts, which no file can say: it is "
                     "left out")));
  }
  // The configuration goes before: transformers makes the processor of it.
  for (const auto& [key, flag] :
       {std::pair<const char*, bool*>{"add_bos_token", &first},
        {"add_eos_token", &last}}) {
    const json* said = Find(source.tokenizer_config, key);
    if (said != nullptr && said->is_boolean()) *flag = said->get<bool>();
  }
  const json* model = Find(source.tokenizer, "model");
  if (model != nullptr && TextOf(*model, "type") == "WordPiece") {
    // Readers of BERT's vocabularies put both, always.
    if (first && last) return absl::OkStatus();
    return source.Bad(
        "its post_processor does not put [CLS] and [SEP] at the ends "
        "of texts");
  }
  writer->SetBool("tokenizer.ggml.add_bos_token",
                  first && found.count("bos") > 0);
  writer->SetBool("tokenizer.ggml.add_eos_token",
                  last && found.count("eos") > 0);
  return absl::OkStatus();
}

// Models may end with several tokens; generation_config.json knows best.
void SetAllEos(const VocabularySource& source, const json& numbers,
               GgufWriter* writer) {
  const json* all = Find(source.generation_config, "eos_token_id");
  if (all == nullptr) all = Find(numbers, "eos_token_id");
  if (all == nullptr || !all->is_array() || all->size() < 2) return;
  writer->SetInt32s("tokenizer.ggml.eos_token_ids",
                    all->get<std::vector<int32_t>>());
}

}  // namespace

absl::Status SetSpecialTokens(const VocabularySource& source,
                              const CheckpointConfig& config,
                              const TokenTable& table, GgufWriter* writer,
                              std::vector<std::string>* warnings) {
  WEFT_RETURN_IF_ERROR(CheckEnds(source, config, table.size()));
  Ends ends;
  if (source.sentencepiece.has_value()) {
    // Transformers puts BOS before texts unless it is told otherwise.
    ends.first = TokenText(source.tokenizer_config, "bos_token");
    if (ends.first.empty() && table.ids.contains("<s>")) ends.first = "<s>";
  }
  WEFT_RETURN_IF_ERROR(ReadEnds(source, &ends));
  struct Row {
    const char* name;
    const char* text_key;
    const char* id_key;
    const char* gguf;
  };
  constexpr Row kRows[] = {
      {"bos", "bos_token", "bos_token_id", "bos_token_id"},
      {"eos", "eos_token", "eos_token_id", "eos_token_id"},
      {"unk", "unk_token", "unk_token_id", "unknown_token_id"},
      {"sep", "sep_token", "sep_token_id", "seperator_token_id"},
      {"pad", "pad_token", "pad_token_id", "padding_token_id"},
      {"cls", "cls_token", "cls_token_id", "cls_token_id"},
      {"mask", "mask_token", "mask_token_id", "mask_token_id"},
  };
  json numbers = json::object();  // of config.json
  for (const Row& row : kRows) {
    if (const json* value = config.Find(row.id_key)) {
      numbers[row.id_key] = *value;
    }
  }
  absl::flat_hash_map<std::string, int64_t> found;
  for (const Row& row : kRows) {
    std::optional<int64_t> id =
        table.TokenId(TokenText(source.tokenizer_config, row.text_key));
    if (!id) id = NumberIn(numbers, row.id_key, table.size());
    if (!id) id = NumberIn(source.generation_config, row.id_key, table.size());
    if (!id && row.name == absl::string_view("unk")) {
      id = table.TokenId(table.unknown);
    }
    if (id) found[row.name] = *id;
  }
  // Where two names are one token (BERT).
  const auto share = [&](const char* name, const char* other) {
    if (found.count(name) == 0 && found.count(other) > 0) {
      found[name] = found[other];
    }
  };
  share("bos", "cls");
  share("eos", "sep");
  const std::optional<int64_t> first = table.TokenId(ends.first);
  if (first && found.count("bos") == 0) found["bos"] = *first;
  const std::optional<int64_t> last = table.TokenId(ends.last);
  if (last && found.count("eos") == 0) found["eos"] = *last;
  if (last && found["eos"] != *last && found.count("sep") == 0) {
    // Embedding models end texts otherwise than their decoders ended turns.
    writer->SetUint32("tokenizer.ggml.eot_token_id",
                      static_cast<uint32_t>(found["eos"]));
    found["eos"] = *last;
  }
  for (const Row& row : kRows) {
    const auto at = found.find(row.name);
    if (at == found.end()) continue;
    writer->SetUint32(absl::StrCat("tokenizer.ggml.", row.gguf),
                      static_cast<uint32_t>(at->second));
  }
  WEFT_RETURN_IF_ERROR(SetEnds(ends, found, source, table, writer, warnings));
  SetAllEos(source, numbers, writer);
  return absl::OkStatus();
}

}  // namespace weft
