#include "loaders/vocabulary.h"

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "loaders/utf8.h"

namespace weft {
namespace {

constexpr char kModel[] = "tokenizer.ggml.model";
constexpr char kPre[] = "tokenizer.ggml.pre";
constexpr char kTokens[] = "tokenizer.ggml.tokens";
constexpr char kScores[] = "tokenizer.ggml.scores";
constexpr char kTypes[] = "tokenizer.ggml.token_type";
constexpr char kMerges[] = "tokenizer.ggml.merges";
constexpr char kChatTemplate[] = "tokenizer.chat_template";
// Ids are 32 bits wide, and no vocabulary comes near this.
constexpr uint64_t kMaxTokens = uint64_t{1} << 24;

class VocabularyReader {
 public:
  explicit VocabularyReader(const GgufMetadata& file) : file_(file) {}

  absl::StatusOr<Vocabulary> Run() {
    for (auto step :
         {&VocabularyReader::ReadModel, &VocabularyReader::ReadTokens,
          &VocabularyReader::ReadScores, &VocabularyReader::ReadTypes,
          &VocabularyReader::ReadMerges, &VocabularyReader::ReadSpecialIds,
          &VocabularyReader::ReadFlags, &VocabularyReader::ReadChatTemplate}) {
      const absl::Status status = (this->*step)();
      if (!status.ok()) return status;
    }
    return std::move(result_);
  }

 private:
  bool sentencepiece() const { return result_.model() == "llama"; }
  bool wordpiece() const { return result_.model() == "bert"; }

  absl::Status ReadModel() {
    auto model = file_.GetString(kModel);
    if (!model.ok()) return model.status();
    auto pre = file_.OptionalString(kPre);
    if (!pre.ok()) return pre.status();
    result_.set_model(*std::move(model));
    result_.set_pre(pre->value_or("default"));
    absl::Status status = CheckName(kModel, result_.model());
    if (status.ok()) status = CheckName(kPre, result_.pre());
    return status;
  }

  // Strings of a message must be UTF-8, those of a file may be anything.
  absl::Status CheckName(absl::string_view key, const std::string& name) const {
    if (!name.empty() && IsPrintableAscii(name)) return absl::OkStatus();
    return file_.BadValue(key, QuoteForMessage(name),
                          "a name of printable ASCII characters");
  }

  static bool IsPrintableAscii(absl::string_view text) {
    for (char c : text) {
      if (c <= ' ' || c > '~') return false;
    }
    return true;
  }

  absl::Status ReadTokens() {
    auto tokens = file_.GetStrings(kTokens);
    if (!tokens.ok()) return tokens.status();
    if (tokens->empty() || tokens->size() > kMaxTokens) {
      return file_.BadValue(kTokens,
                            absl::StrCat("an array of ", tokens->size()),
                            absl::StrCat("1 to ", kMaxTokens, " tokens"));
    }
    result_.mutable_tokens()->Reserve(static_cast<int>(tokens->size()));
    for (absl::string_view token : *tokens) {
      result_.add_tokens(token.data(), token.size());
    }
    return absl::OkStatus();
  }

  absl::Status CheckCount(absl::string_view key, size_t count) const {
    if (count == static_cast<size_t>(result_.tokens_size())) {
      return absl::OkStatus();
    }
    return file_.BadValue(
        key, absl::StrCat("an array of ", count),
        absl::StrCat("one element per token (", result_.tokens_size(), ")"));
  }

  absl::Status ReadScores() {
    auto scores = file_.OptionalFloats(kScores);
    if (!scores.ok()) return scores.status();
    if (!scores->has_value()) return absl::OkStatus();
    const absl::Status status = CheckCount(kScores, (*scores)->size());
    if (!status.ok()) return status;
    for (size_t i = 0; i < (*scores)->size(); ++i) {
      // Scores are compared and sorted by, which NaN would break.
      if (std::isnan((**scores)[i])) {
        return file_.BadValue(kScores, absl::StrCat("NaN for token ", i),
                              "a number");
      }
      result_.add_scores((**scores)[i]);
    }
    return absl::OkStatus();
  }

  absl::Status ReadTypes() {
    auto types = file_.OptionalInts(kTypes);
    if (!types.ok()) return types.status();
    if (!types->has_value()) return absl::OkStatus();
    const absl::Status status = CheckCount(kTypes, (*types)->size());
    if (!status.ok()) return status;
    for (size_t i = 0; i < (*types)->size(); ++i) {
      const int64_t type = (**types)[i];
      if (type < Vocabulary::UNDEFINED || type > Vocabulary::BYTE) {
        return file_.BadValue(kTypes, absl::StrCat(type, " for token ", i),
                              absl::StrCat(int{Vocabulary::UNDEFINED}, " to ",
                                           int{Vocabulary::BYTE}));
      }
      result_.add_types(static_cast<Vocabulary::TokenType>(type));
    }
    return absl::OkStatus();
  }

  absl::Status ReadMerges() {
    auto merges = file_.OptionalStrings(kMerges);
    if (!merges.ok()) return merges.status();
    if (!merges->has_value()) return absl::OkStatus();
    result_.mutable_merges()->Reserve(static_cast<int>((*merges)->size()));
    for (absl::string_view merge : **merges) {
      result_.add_merges(merge.data(), merge.size());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int32_t> SpecialId(absl::string_view name,
                                    int32_t default_id) const {
    const std::string key = absl::StrCat("tokenizer.ggml.", name);
    const int32_t size = result_.tokens_size();
    auto id = file_.OptionalInt(key);
    if (!id.ok()) return id.status();
    if (!id->has_value()) return default_id < size ? default_id : -1;
    // -1 and the u32 of it: writers' ways to say "none".
    if (**id == -1 || **id == 0xffffffff) return -1;
    if (**id < 0 || **id >= size) {
      // Files converted with a padding token that was added to no vocabulary
      // are common, and nothing depends on it.
      if (name == "padding_token_id") return -1;
      return file_.BadValue(
          key, absl::StrCat(**id),
          absl::StrCat("an id below the ", size, " of the vocabulary, or -1"));
    }
    return static_cast<int32_t>(**id);
  }

  absl::Status ReadSpecialIds() {
    struct Row {
      absl::string_view name;
      int32_t default_of_sentencepiece;
      void (Vocabulary::*set)(int32_t);
    };
    constexpr Row kRows[] = {
        {"bos_token_id", 1, &Vocabulary::set_bos},
        {"eos_token_id", 2, &Vocabulary::set_eos},
        {"unknown_token_id", 0, &Vocabulary::set_unknown},
        {"seperator_token_id", -1, &Vocabulary::set_separator},
        {"padding_token_id", -1, &Vocabulary::set_padding},
        {"eot_token_id", -1, &Vocabulary::set_end_of_turn},
    };
    for (const Row& row : kRows) {
      auto id = SpecialId(row.name,
                          sentencepiece() ? row.default_of_sentencepiece : -1);
      if (!id.ok()) return id.status();
      (result_.*row.set)(*id);
    }
    if (wordpiece()) {
      // BERT's own names for what begins and ends a text.
      auto first = SpecialId("cls_token_id", result_.bos());
      if (!first.ok()) return first.status();
      result_.set_bos(*first);
    }
    if (result_.separator() < 0) {
      // The key's spelling in most files has a mistake in it; some have none.
      auto id = SpecialId("separator_token_id", -1);
      if (!id.ok()) return id.status();
      result_.set_separator(*id);
    }
    if (wordpiece() && result_.eos() < 0) {
      result_.set_eos(result_.separator());
    }
    return absl::OkStatus();
  }

  absl::Status ReadFlags() {
    const std::string& pre = result_.pre();
    const bool llama3 =
        pre == "llama-bpe" || pre == "llama3" || pre == "llama-v3";
    struct Row {
      const char* key;
      bool default_value;
      void (Vocabulary::*set)(bool);
    };
    const Row rows[] = {
        {"tokenizer.ggml.add_bos_token",
         sentencepiece() || wordpiece() ||
             (result_.model() == "gpt2" && llama3),
         &Vocabulary::set_add_bos},
        {"tokenizer.ggml.add_eos_token", wordpiece(), &Vocabulary::set_add_eos},
        {"tokenizer.ggml.add_space_prefix", sentencepiece() || wordpiece(),
         &Vocabulary::set_add_space_prefix},
    };
    for (const Row& row : rows) {
      auto flag = file_.OptionalBool(row.key);
      if (!flag.ok()) return flag.status();
      (result_.*row.set)(flag->value_or(row.default_value));
    }
    return absl::OkStatus();
  }

  absl::Status ReadChatTemplate() {
    auto source = file_.OptionalString(kChatTemplate);
    if (!source.ok()) return source.status();
    if (!IsValidUtf8(source->value_or(""))) {
      return file_.BadValue(kChatTemplate, "not UTF-8", "a Jinja template");
    }
    result_.set_chat_template(source->value_or(""));
    return absl::OkStatus();
  }

  const GgufMetadata& file_;
  Vocabulary result_;
};

}  // namespace

absl::StatusOr<Vocabulary> ReadVocabulary(const GgufMetadata& file) {
  return VocabularyReader(file).Run();
}

}  // namespace weft
