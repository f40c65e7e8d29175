#include "loaders/vocabulary.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "loaders/utf8.h"

namespace weft {
namespace {

constexpr char kModel[] = "tokenizer.ggml.model";
constexpr char kPre[] = "tokenizer.ggml.pre";
constexpr char kTokens[] = "tokenizer.ggml.tokens";
constexpr char kScores[] = "tokenizer.ggml.scores";
constexpr char kTypes[] = "tokenizer.ggml.token_type";
constexpr char kMerges[] = "tokenizer.ggml.merges";
// The pre-tokeniser of an encoder with Gemma's vocabulary.
constexpr char kGraniteLikeGemma[] = "granite-embed-multi-311m";
constexpr char kChatTemplate[] = "tokenizer.chat_template";
constexpr char kPairTemplate[] = "tokenizer.chat_template.rerank";
// Ids are 32 bits wide, and no vocabulary comes near this.
constexpr uint64_t kMaxTokens = uint64_t{1} << 24;

// What files of a tokeniser model mean where they are silent, as public loaders
// take it (llama.cpp, src/llama-vocab.cpp).
struct Defaults {
  absl::string_view model;
  int32_t bos, eos, unknown, separator, padding, mask;
  bool add_bos, add_eos, add_space_prefix;
  int32_t none = -1;
};
constexpr Defaults kDefaults[] = {
    {"llama", 1, 2, 0, -1, -1, -1, true, false, true},
    // Falcon's; others that say nothing have none (Usable).
    {"gpt2", 11, 11, -1, -1, -1, -1, false, false, false},
    {"gemma4", -1, -1, -1, -1, -1, -1, true, false, false},
    // What ends a text is the separator.
    {"bert", 101, -1, 100, 102, 0, 103, true, true, true},
    {"t5", -1, 1, 2, -1, 0, -1, false, true, false},
    {"plamo2", 1, 2, 0, -1, 3, -1, false, false, false},
    {"", -1, -1, -1, -1, -1, -1, false, false, false},  // any other
};

const Defaults& DefaultsOf(absl::string_view model) {
  const Defaults* row = kDefaults;
  while (!row->model.empty() && row->model != model) ++row;
  return *row;
}

class VocabularyReader {
 public:
  VocabularyReader(const GgufMetadata& file, const VocabularyOptions& options)
      : file_(file), options_(options) {}

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
  bool wordpiece() const { return result_.model() == "bert"; }
  // The models whose text is cut by a pre-tokeniser.
  bool has_pre() const {
    return result_.model() == "gpt2" || result_.model() == "gemma4";
  }

  void Warn(const std::string& warning) const {
    if (options_.warn) {
      options_.warn(absl::StrCat(file_.path(), ": ", warning));
    }
  }

  absl::Status ReadModel() {
    auto model = file_.GetString(kModel);
    if (!model.ok()) return model.status();
    auto pre = file_.OptionalString(kPre);
    if (!pre.ok()) return pre.status();
    result_.set_model(*std::move(model));
    WEFT_RETURN_IF_ERROR(CheckName(kModel, result_.model()));
    result_.set_pre(pre->value_or(""));
    if (!result_.pre().empty()) {
      WEFT_RETURN_IF_ERROR(CheckName(kPre, result_.pre()));
    }
    // Its files call it "default", or anything.
    if (result_.model() == "gemma4") result_.set_pre("gemma4");
    if (!options_.pre.empty()) {
      if (!has_pre()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "no pre-tokeniser: ", file_.path(), ": a vocabulary of the model '",
            result_.model(), "' has none: leave out --pre"));
      }
      result_.set_pre(options_.pre);
    }
    if (result_.pre().empty()) {
      if (has_pre()) {
        Warn(absl::StrCat(kPre,
                          " is missing: text is cut as by 'default', "
                          "which few models were trained with: choose with "
                          "--pre NAME"));
      }
      result_.set_pre("default");
    }
    return absl::OkStatus();
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
    WarnOfDuplicates(*tokens);
    return absl::OkStatus();
  }

  void WarnOfDuplicates(const std::vector<absl::string_view>& tokens) const {
    if (!options_.warn) return;
    absl::flat_hash_map<absl::string_view, size_t> ids;
    ids.reserve(tokens.size());
    size_t count = 0, first = 0, second = 0;
    for (size_t id = 0; id < tokens.size(); ++id) {
      const auto [it, is_new] = ids.try_emplace(tokens[id], id);
      if (is_new) continue;
      if (count++ > 0) continue;
      first = it->second;
      second = id;
    }
    if (count == 0) return;
    Warn(absl::StrCat(
        kTokens, ": ", count, count == 1 ? " token has" : " tokens have",
        " the text of another (", QuoteForMessage(tokens[first]), " is ", first,
        " and ", second, "): text becomes one of them only"));
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
    const GgufValue* value = file_.FindValue(kScores);
    if (value != nullptr && value->is_array() &&
        value->element_type() == GgufType::kInt32) {
      // Zeros, in byte-level vocabularies that have no scores.
      WEFT_ASSIGN_OR_RETURN(std::vector<int64_t> numbers,
                            file_.GetInts(kScores));
      WEFT_RETURN_IF_ERROR(CheckCount(kScores, numbers.size()));
      for (int64_t number : numbers) {
        result_.add_scores(static_cast<float>(number));
      }
      return absl::OkStatus();
    }
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

  // A default id, where there can be such a token: of a byte-level vocabulary,
  // control tokens alone, since its defaults are those of one family.
  int32_t Usable(int32_t id) const {
    if (id >= result_.tokens_size()) return -1;
    const bool control = id >= 0 && id < result_.types_size() &&
                         result_.types(id) == Vocabulary::CONTROL;
    return result_.model() == "gpt2" && !control ? -1 : id;
  }

  absl::StatusOr<int32_t> SpecialId(absl::string_view name,
                                    int32_t default_id) const {
    const std::string key = absl::StrCat("tokenizer.ggml.", name);
    const int32_t size = result_.tokens_size();
    auto id = file_.OptionalInt(key);
    if (!id.ok()) return id.status();
    if (!id->has_value()) return default_id;
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
      int32_t Defaults::*otherwise;
      void (Vocabulary::*set)(int32_t);
    };
    constexpr Row kRows[] = {
        {"bos_token_id", &Defaults::bos, &Vocabulary::set_bos},
        {"eos_token_id", &Defaults::eos, &Vocabulary::set_eos},
        {"unknown_token_id", &Defaults::unknown, &Vocabulary::set_unknown},
        {"padding_token_id", &Defaults::padding, &Vocabulary::set_padding},
        {"mask_token_id", &Defaults::mask, &Vocabulary::set_mask},
        {"eot_token_id", &Defaults::none, &Vocabulary::set_end_of_turn},
    };
    const Defaults& defaults = DefaultsOf(result_.model());
    for (const Row& row : kRows) {
      WEFT_ASSIGN_OR_RETURN(
          int32_t id, SpecialId(row.name, Usable(defaults.*row.otherwise)));
      (result_.*row.set)(id);
    }
    // The newer key goes before.
    constexpr struct {
      absl::string_view name, older;
      void (Vocabulary::*set)(int32_t);
    } kFill[] = {
        {"fim_pre_token_id", "prefix_token_id", &Vocabulary::set_fill_prefix},
        {"fim_suf_token_id", "suffix_token_id", &Vocabulary::set_fill_suffix},
        {"fim_mid_token_id", "middle_token_id", &Vocabulary::set_fill_middle},
    };
    for (const auto& row : kFill) {
      WEFT_ASSIGN_OR_RETURN(int32_t id, SpecialId(row.older, -1));
      WEFT_ASSIGN_OR_RETURN(id, SpecialId(row.name, id));
      if (id >= 0) (result_.*row.set)(id);
    }
    // The key's spelling in most files has a mistake in it; some have none.
    WEFT_ASSIGN_OR_RETURN(
        int32_t separator,
        SpecialId("separator_token_id", Usable(defaults.separator)));
    WEFT_ASSIGN_OR_RETURN(separator,
                          SpecialId("seperator_token_id", separator));
    result_.set_separator(separator);
    if (wordpiece()) {
      // BERT's own names for what begins and ends a text.
      WEFT_ASSIGN_OR_RETURN(int32_t first,
                            SpecialId("cls_token_id", result_.bos()));
      result_.set_bos(first);
      if (separator >= 0) result_.set_eos(separator);
    }
    return ReadEnds();
  }

  // Ends beside EOS and the end of a turn.
  absl::Status ReadEnds() {
    for (absl::string_view name : {"eom_token_id", "fim_pad_token_id",
                                   "fim_rep_token_id", "fim_sep_token_id"}) {
      WEFT_ASSIGN_OR_RETURN(int32_t id, SpecialId(name, -1));
      if (id >= 0) result_.add_ends(id);
    }
    constexpr char kAll[] = "tokenizer.ggml.eos_token_ids";
    WEFT_ASSIGN_OR_RETURN(std::optional<std::vector<int64_t>> all,
                          file_.OptionalInts(kAll));
    if (!all.has_value()) return absl::OkStatus();
    for (int64_t id : *all) {
      if (id < 0 || id >= result_.tokens_size()) {
        return file_.BadValue(
            kAll, absl::StrCat(id),
            absl::StrCat("ids below the ", result_.tokens_size(),
                         " of the vocabulary"));
      }
      result_.add_ends(static_cast<int32_t>(id));
    }
    return absl::OkStatus();
  }

  absl::Status ReadFlags() {
    struct Row {
      const char* key;
      bool default_value;
      void (Vocabulary::*set)(bool);
    };
    const Defaults& defaults = DefaultsOf(result_.model());
    const Row rows[] = {
        {"tokenizer.ggml.add_bos_token", defaults.add_bos,
         &Vocabulary::set_add_bos},
        {"tokenizer.ggml.add_eos_token", defaults.add_eos,
         &Vocabulary::set_add_eos},
        {"tokenizer.ggml.add_space_prefix", defaults.add_space_prefix,
         &Vocabulary::set_add_space_prefix},
    };
    for (const Row& row : rows) {
      auto flag = file_.OptionalBool(row.key);
      if (!flag.ok()) return flag.status();
      // Byte-level vocabularies differ by their pre-tokenisers (text/).
      if (!flag->has_value() && result_.model() == "gpt2") continue;
      (result_.*row.set)(flag->value_or(row.default_value));
    }
    // Published files of Gemma 4 say false, and the model goes astray without.
    if (result_.pre() == "gemma4" || result_.pre() == kGraniteLikeGemma) {
      result_.set_add_bos(true);
    }
    if (wordpiece()) return ReadWordpieceFlags();
    WEFT_ASSIGN_OR_RETURN(std::optional<bool> separates,
                          file_.OptionalBool("tokenizer.ggml.add_sep_token"));
    result_.set_add_separator(separates.value_or(false));
    return result_.model() == "t5" ? ReadNormalization() : absl::OkStatus();
  }

  absl::Status ReadNormalization() {
    WEFT_ASSIGN_OR_RETURN(
        std::optional<bool> one_space,
        file_.OptionalBool("tokenizer.ggml.remove_extra_whitespaces"));
    result_.set_remove_extra_whitespaces(one_space.value_or(false));
    constexpr char kCharsmap[] = "tokenizer.ggml.precompiled_charsmap";
    const GgufValue* rules = file_.FindValue(kCharsmap);
    if (rules == nullptr) return absl::OkStatus();
    if (!rules->is_array() || (rules->element_type() != GgufType::kUint8 &&
                               rules->element_type() != GgufType::kInt8)) {
      return file_.BadValue(kCharsmap, rules->TypeText(), "an array of bytes");
    }
    // Behind the type of the elements and their count.
    const absl::Span<const uint8_t> bytes =
        rules->encoded().last(rules->count());
    result_.set_charsmap(bytes.data(), bytes.size());
    return absl::OkStatus();
  }

  absl::Status ReadWordpieceFlags() {
    // What ends a text is the separator, so this flag is the one that counts.
    WEFT_ASSIGN_OR_RETURN(std::optional<bool> separates,
                          file_.OptionalBool("tokenizer.ggml.add_sep_token"));
    if (separates.has_value()) result_.set_add_eos(*separates);
    WEFT_ASSIGN_OR_RETURN(
        std::optional<bool> lowercase,
        file_.OptionalBool("tokenizer.ggml.normalizer.lowercase"));
    if (lowercase.has_value()) result_.set_lowercase(*lowercase);
    WEFT_ASSIGN_OR_RETURN(
        std::optional<bool> strips,
        file_.OptionalBool("tokenizer.ggml.normalizer.strip_accents"));
    if (strips.has_value()) result_.set_strip_accents(*strips);
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> OneTemplate(const std::string& key) {
    auto source = file_.OptionalString(key);
    if (!source.ok()) return source.status();
    if (!IsValidUtf8(source->value_or(""))) {
      return file_.BadValue(key, "not UTF-8", "a Jinja template");
    }
    return std::string(source->value_or(""));
  }

  // A file may have templates of its own for conversations with tools or
  // documents. They become one, which looks whether there are any.
  absl::Status ReadChatTemplate() {
    WEFT_ASSIGN_OR_RETURN(std::string whole, OneTemplate(kChatTemplate));
    // The later one is asked for first.
    for (const auto& [name, variable] :
         {std::pair<const char*, const char*>{"rag", "documents"},
          {"tool_use", "tools"}}) {
      WEFT_ASSIGN_OR_RETURN(
          const std::string source,
          OneTemplate(absl::StrCat(kChatTemplate, ".", name)));
      if (source.empty()) continue;
      whole = whole.empty()
                  ? source
                  : absl::StrCat("{%+ if ", variable, " +%}",
                                 WithoutLastBreak(source), "{%+ else +%}",
                                 WithoutLastBreak(whole), "{%+ endif +%}");
    }
    result_.set_chat_template(whole);
    auto pair = file_.OptionalString(kPairTemplate);
    if (!pair.ok()) return pair.status();
    if (!IsValidUtf8(pair->value_or(""))) {
      return file_.BadValue(kPairTemplate, "not UTF-8", "a text");
    }
    result_.set_pair_template(pair->value_or(""));
    return absl::OkStatus();
  }

  // As Jinja takes the end of a template.
  static absl::string_view WithoutLastBreak(absl::string_view source) {
    absl::ConsumeSuffix(&source, "\n");
    return source;
  }

  const GgufMetadata& file_;
  const VocabularyOptions& options_;
  Vocabulary result_;
};

}  // namespace

absl::StatusOr<Vocabulary> ReadVocabulary(const GgufMetadata& file,
                                          const VocabularyOptions& options) {
  return VocabularyReader(file, options).Run();
}

}  // namespace weft
