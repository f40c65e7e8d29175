#include "loaders/convert/vocabulary_keys.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "loaders/convert/json_fields.h"
#include "loaders/convert/pretokenizer_name.h"
#include "loaders/convert/special_tokens.h"
#include "loaders/convert/token_table.h"
#include "loaders/gguf_value.h"

namespace weft {
namespace {

using nlohmann::json;

size_t CountCharacters(absl::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

class VocabularySetter {
 public:
  VocabularySetter(const VocabularySource& source,
                   const CheckpointConfig& config, const VocabularyRules& rules,
                   GgufWriter* writer, std::vector<std::string>* warnings)
      : source_(source),
        config_(config),
        rules_(rules),
        writer_(*writer),
        warnings_(*warnings),
        table_(rules.size) {}

  absl::Status Run() {
    if (source_.sentencepiece.has_value()) {
      WEFT_RETURN_IF_ERROR(TakeSentencePiece(*source_.sentencepiece));
    } else {
      WEFT_RETURN_IF_ERROR(TakeModel());
    }
    WEFT_RETURN_IF_ERROR(
        SetSpecialTokens(source_, config_, table_, &writer_, &warnings_));
    return SetChatTemplate();
  }

 private:
  // What tokenizer.json says.
  absl::Status TakeModel() {
    const json* model = Find(source_.tokenizer, "model");
    if (model == nullptr || !model->is_object()) {
      return Bad("it has no model");
    }
    model_ = model;
    const std::string type = TextOf(*model, "type");
    if (type == "BPE" || (type.empty() && Find(*model, "merges") != nullptr)) {
      WEFT_RETURN_IF_ERROR(FlagOf(*model, "byte_fallback") && !IsByteLevel()
                               ? SetSentencePiece()
                               : SetByteLevel());
    } else if (type == "WordPiece") {
      WEFT_RETURN_IF_ERROR(SetWordPiece());
    } else if (type == "Unigram") {
      WEFT_RETURN_IF_ERROR(SetUnigram());
    } else {
      return Bad(absl::StrCat("a model of the kind ", QuoteForMessage(type),
                              " is not supported"));
    }
    return absl::OkStatus();
  }

  absl::Status Bad(absl::string_view why) const { return source_.Bad(why); }
  void Warn(absl::string_view what) const {
    warnings_.push_back(source_.Warning(what));
  }

  // Texts become GPT-2's characters for bytes.
  bool IsByteLevel() const {
    const json* decoder = Find(source_.tokenizer, "decoder");
    if (decoder != nullptr && TextOf(*decoder, "type") == "ByteLevel") {
      return true;
    }
    const json* pre = Find(source_.tokenizer, "pre_tokenizer");
    if (pre == nullptr) return false;
    if (TextOf(*pre, "type") == "ByteLevel") return true;
    const json* steps = Find(*pre, "pretokenizers");
    return steps != nullptr && steps->is_array() &&
           std::any_of(steps->begin(), steps->end(), [](const json& step) {
             return TextOf(step, "type") == "ByteLevel";
           });
  }

  struct Pair {
    std::string left, right;
  };

  // Of merges in either form, "a b" and ["a", "b"].
  absl::StatusOr<std::vector<Pair>> Merges() const {
    const json* merges = Find(*model_, "merges");
    if (merges == nullptr || !merges->is_array()) {
      return Bad("its model has no merges");
    }
    std::vector<Pair> pairs;
    pairs.reserve(merges->size());
    for (const json& merge : *merges) {
      Pair pair;
      if (merge.is_string()) {
        const std::string& text = merge.get_ref<const std::string&>();
        // A piece may be a space only in the other form.
        const size_t space = text.find(' ');
        if (space != std::string::npos &&
            text.find(' ', space + 1) == std::string::npos) {
          pair = {text.substr(0, space), text.substr(space + 1)};
        }
      } else if (merge.is_array() && merge.size() == 2 &&
                 merge[0].is_string() && merge[1].is_string()) {
        pair = {merge[0].get<std::string>(), merge[1].get<std::string>()};
      }
      if (pair.left.empty() || pair.right.empty()) {
        return Bad(absl::StrCat("merge ", pairs.size(), " is no pair"));
      }
      if (!table_.ids.contains(pair.left) || !table_.ids.contains(pair.right) ||
          !table_.ids.contains(absl::StrCat(pair.left, pair.right))) {
        return Bad(absl::StrCat(
            "merge ", pairs.size(), " (", QuoteForMessage(pair.left), " and ",
            QuoteForMessage(pair.right), ") is of tokens that are not there"));
      }
      pairs.push_back(std::move(pair));
    }
    return pairs;
  }

  absl::Status SetByteLevel() {
    WEFT_RETURN_IF_ERROR(table_.PutVocabulary(*model_, source_));
    WEFT_ASSIGN_OR_RETURN(const std::vector<Pair> pairs, Merges());
    WEFT_RETURN_IF_ERROR(table_.PutAdded(source_, false));
    table_.FillHoles(source_, &warnings_);
    std::string pre = rules_.pre;
    if (pre.empty()) {
      WEFT_ASSIGN_OR_RETURN(
          PretokenizerChoice choice,
          NamePretokenizer(source_.tokenizer, rules_.preferred_pre,
                           source_.path));
      pre = std::move(choice.name);
      for (std::string& warning : choice.warnings) {
        warnings_.push_back(std::move(warning));
      }
    }
    table_.Write("gpt2", pre, &writer_);
    std::vector<std::string> merges;
    merges.reserve(pairs.size());
    for (const Pair& pair : pairs) {
      // GPT-2's character for a space, which parts the two.
      merges.push_back(
          absl::StrCat(absl::StrReplaceAll(pair.left, {{" ", "\xc4\xa0"}}), " ",
                       absl::StrReplaceAll(pair.right, {{" ", "\xc4\xa0"}})));
    }
    writer_.SetStrings("tokenizer.ggml.merges", merges);
    return absl::OkStatus();
  }

  // Which spaces are written as U+2581, and whether one stands before a text.
  struct Spaces {
    bool replaced = false, prefixed = false;
    std::string unknown;  // a step that does something else
  };

  void ReadNormalizer(Spaces* spaces) const {
    for (const json* step :
         StepsOf(Find(source_.tokenizer, "normalizer"), "normalizers")) {
      const std::string type = TextOf(*step, "type");
      if (type == "Prepend" && TextOf(*step, "prepend") == kSpace) {
        spaces->prefixed = true;
      } else if (type == "Replace" && Find(*step, "pattern") != nullptr &&
                 TextOf(*Find(*step, "pattern"), "String") == " " &&
                 TextOf(*step, "content") == kSpace) {
        spaces->replaced = true;
      } else {
        spaces->unknown = type.empty() ? "?" : type;
      }
    }
  }

  void ReadMetaspace(Spaces* spaces) const {
    for (const json* step :
         StepsOf(Find(source_.tokenizer, "pre_tokenizer"), "pretokenizers")) {
      const std::string type = TextOf(*step, "type");
      if (type == "Metaspace") {
        const json* replacement = Find(*step, "replacement");
        if (replacement != nullptr && *replacement != kSpace) {
          spaces->unknown = "Metaspace with another character";
        }
        spaces->replaced = true;
        // The older flag, and the newer word.
        const std::string scheme = TextOf(*step, "prepend_scheme");
        spaces->prefixed = scheme.empty()
                               ? Find(*step, "add_prefix_space") == nullptr ||
                                     FlagOf(*step, "add_prefix_space")
                               : scheme != "never";
      } else if (type == "WhitespaceSplit") {
        // Before Metaspace in Unigram: words.
      } else if (type == "Split" &&
                 TextOf(*step, "behavior") == "MergedWithPrevious") {
        // Gemma's, on spaces that its normaliser has replaced already.
      } else {
        spaces->unknown = type.empty() ? "?" : type;
      }
    }
  }

  absl::Status CheckNoPre() const {
    if (rules_.pre.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("no pre-tokeniser: ", source_.path,
                     ": a SentencePiece vocabulary has none: leave out --pre"));
  }

  // What tokenizer.model says: pieces with their scores.
  absl::Status TakeSentencePiece(const SentencePieceModel& model) {
    WEFT_RETURN_IF_ERROR(CheckNoPre());
    table_.scores.assign(table_.tokens.size(), 0.0f);
    int64_t id = 0;
    for (const SentencePieceModel::Piece& piece : model.pieces) {
      const TokenTable::Type type = static_cast<TokenTable::Type>(piece.type);
      if (type == TokenTable::kUnknown) table_.unknown = piece.text;
      table_.Put(id, piece.text, type);
      if (id < rules_.size)
        table_.scores[static_cast<size_t>(id)] = piece.score;
      ++id;
    }
    WEFT_RETURN_IF_ERROR(table_.PutAdded(source_, true));
    table_.FillHoles(source_, &warnings_);
    table_.Write("llama", "default", &writer_);
    const json* prefixed = Find(source_.tokenizer_config, "add_prefix_space");
    writer_.SetBool("tokenizer.ggml.add_space_prefix",
                    prefixed != nullptr && prefixed->is_boolean()
                        ? prefixed->get<bool>()
                        : model.prefixed);
    return absl::OkStatus();
  }

  absl::Status SetSentencePiece() {
    WEFT_RETURN_IF_ERROR(CheckNoPre());
    table_.unknown = TextOf(*model_, "unk_token");
    WEFT_RETURN_IF_ERROR(table_.PutVocabulary(*model_, source_));
    WEFT_ASSIGN_OR_RETURN(const std::vector<Pair> pairs, Merges());
    Spaces spaces;
    ReadNormalizer(&spaces);
    ReadMetaspace(&spaces);
    if (!spaces.unknown.empty() || !spaces.replaced) {
      return Bad(spaces.unknown.empty()
                     ? std::string("spaces are not written as U+2581, as in "
                                   "every SentencePiece vocabulary")
                     : absl::StrCat("it has a step ",
                                    QuoteForMessage(spaces.unknown),
                                    ", which SentencePiece has not"));
    }
    // Scores by the order of first merges; what is not merged comes behind.
    table_.scores.assign(table_.tokens.size(), 0.0f);
    std::vector<bool> scored(table_.tokens.size());
    int64_t next = 0, torn = 0;
    std::string last;
    for (const Pair& pair : pairs) {
      std::string whole = absl::StrCat(pair.left, pair.right);
      const int64_t id = table_.ids.find(whole)->second;
      if (whole != last && id < rules_.size && scored[id]) ++torn;
      last = std::move(whole);
      if (id >= rules_.size || scored[id]) continue;
      scored[id] = true;
      table_.scores[id] = -static_cast<float>(next++);
    }
    WEFT_RETURN_IF_ERROR(table_.PutAdded(source_, true));
    int64_t unreached = 0;
    for (size_t i = 0; i < table_.tokens.size(); ++i) {
      if (table_.types[i] != TokenTable::kNormal) {
        table_.scores[i] = 0.0f;
        continue;
      }
      if (IsByteToken(table_.tokens[i])) {
        table_.types[i] = TokenTable::kByte;
        table_.scores[i] = 0.0f;
      } else if (table_.tokens[i] == table_.unknown) {
        table_.types[i] = TokenTable::kUnknown;
        table_.scores[i] = 0.0f;
      } else if (!scored[i]) {
        table_.scores[i] = -static_cast<float>(next++);
        if (CountCharacters(table_.tokens[i]) > 1) ++unreached;
      }
    }
    if (torn > 0 || unreached > 0) {
      Warn(absl::StrCat("merges of ", torn + unreached,
                        " tokens are not in the order that scores of "
                        "SentencePiece give: some texts become other tokens"));
    }
    table_.FillHoles(source_, &warnings_);
    table_.Write("llama", "default", &writer_);
    writer_.SetBool("tokenizer.ggml.add_space_prefix", spaces.prefixed);
    return absl::OkStatus();
  }

  absl::Status SetWordPiece() {
    table_.unknown = TextOf(*model_, "unk_token");
    WEFT_RETURN_IF_ERROR(table_.PutVocabulary(*model_, source_));
    const json* prefix = Find(*model_, "continuing_subword_prefix");
    if (prefix != nullptr && *prefix != "##") {
      return Bad("its continuing_subword_prefix is not ##");
    }
    const json* longest = Find(*model_, "max_input_chars_per_word");
    if (longest != nullptr && *longest != 100) {
      return Bad("its max_input_chars_per_word is not 100");
    }
    const json* normalizer = Find(source_.tokenizer, "normalizer");
    const json* pre = Find(source_.tokenizer, "pre_tokenizer");
    if (normalizer == nullptr ||
        TextOf(*normalizer, "type") != "BertNormalizer" || pre == nullptr ||
        TextOf(*pre, "type") != "BertPreTokenizer") {
      return Bad("its normalizer and pre_tokenizer are not BERT's");
    }
    for (const char* flag : {"clean_text", "handle_chinese_chars"}) {
      const json* found = Find(*normalizer, flag);
      if (found != nullptr && *found != true) {
        return Bad(absl::StrCat(
            "its normalizer says ", flag, ": ",
            found->dump(-1, ' ', true, json::error_handler_t::replace),
            ", which no reader obeys"));
      }
    }
    const bool lowercase = Find(*normalizer, "lowercase") == nullptr ||
                           FlagOf(*normalizer, "lowercase");
    const bool strips = Find(*normalizer, "strip_accents") == nullptr
                            ? lowercase
                            : FlagOf(*normalizer, "strip_accents");
    // What begins a word is marked, not what goes on.
    for (size_t i = 0; i < table_.tokens.size(); ++i) {
      if (table_.types[i] != TokenTable::kNormal) continue;
      std::string& token = table_.tokens[i];
      token = absl::StartsWith(token, "##") ? token.substr(2)
                                            : absl::StrCat(kSpace, token);
    }
    WEFT_RETURN_IF_ERROR(table_.PutAdded(source_, false));
    table_.FillHoles(source_, &warnings_);
    table_.Write("bert", "default", &writer_);
    writer_.SetBool("tokenizer.ggml.normalizer.lowercase", lowercase);
    writer_.SetBool("tokenizer.ggml.normalizer.strip_accents", strips);
    return absl::OkStatus();
  }

  absl::Status SetUnigram() {
    const json* vocabulary = Find(*model_, "vocab");
    if (vocabulary == nullptr || !vocabulary->is_array()) {
      return Bad("its model has no vocab");
    }
    const json* unknown = Find(*model_, "unk_id");
    const bool bytes = FlagOf(*model_, "byte_fallback");
    std::vector<float> scores(table_.tokens.size());
    int64_t id = 0;
    for (const json& entry : *vocabulary) {
      if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() ||
          !entry[1].is_number() || !std::isfinite(entry[1].get<double>())) {
        return Bad(absl::StrCat("piece ", id, " has no text or score"));
      }
      const std::string text = entry[0].get<std::string>();
      const bool is_unknown = unknown != nullptr && *unknown == id;
      if (is_unknown) table_.unknown = text;
      table_.Put(id, text,
                 is_unknown                   ? TokenTable::kUnknown
                 : bytes && IsByteToken(text) ? TokenTable::kByte
                                              : TokenTable::kNormal);
      if (id < rules_.size) {
        scores[static_cast<size_t>(id)] =
            static_cast<float>(entry[1].get<double>());
      }
      ++id;
    }
    WEFT_RETURN_IF_ERROR(table_.PutAdded(source_, true));
    table_.FillHoles(source_, &warnings_);
    table_.scores = std::move(scores);
    Spaces spaces;
    ReadMetaspace(&spaces);
    if (!spaces.unknown.empty() || !spaces.replaced) {
      return Bad("its pre_tokenizer is not SentencePiece's (Metaspace)");
    }
    table_.Write("t5", "default", &writer_);
    writer_.SetBool("tokenizer.ggml.add_space_prefix", spaces.prefixed);
    bool one_space = false;
    std::string charsmap;
    WEFT_RETURN_IF_ERROR(ReadUnigramNormalizer(&one_space, &charsmap));
    writer_.SetBool("tokenizer.ggml.remove_extra_whitespaces", one_space);
    if (!charsmap.empty()) {
      writer_.SetUint8s(
          "tokenizer.ggml.precompiled_charsmap",
          absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(charsmap.data()),
                              charsmap.size()));
    }
    return absl::OkStatus();
  }

  absl::Status ReadUnigramNormalizer(bool* one_space,
                                     std::string* charsmap) const {
    for (const json* step :
         StepsOf(Find(source_.tokenizer, "normalizer"), "normalizers")) {
      const std::string type = TextOf(*step, "type");
      if (type == "Precompiled") {
        if (!absl::Base64Unescape(TextOf(*step, "precompiled_charsmap"),
                                  charsmap)) {
          return Bad("its precompiled_charsmap is no base64");
        }
      } else if (type == "Strip" ||
                 (type == "Replace" && Find(*step, "pattern") != nullptr &&
                  TextOf(*Find(*step, "pattern"), "Regex") == " {2,}")) {
        *one_space = true;
      } else {
        return Bad(absl::StrCat("its normalizer has a step ",
                                QuoteForMessage(type),
                                ", which SentencePiece has not"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status SetChatTemplate() {
    constexpr char kKey[] = "tokenizer.chat_template";
    if (!source_.chat_template.empty()) {
      writer_.SetString(kKey, source_.chat_template);
      return absl::OkStatus();
    }
    const json* found = Find(source_.tokenizer_config, "chat_template");
    if (found == nullptr) return absl::OkStatus();
    if (found->is_string()) {
      writer_.SetString(kKey, found->get<std::string>());
      return absl::OkStatus();
    }
    if (!found->is_array()) return Bad("its chat_template is no text or list");
    for (const json& each : *found) {
      const std::string name = TextOf(each, "name");
      const json* source = Find(each, "template");
      const bool plain =
          !name.empty() && name.size() <= 64 &&
          std::all_of(name.begin(), name.end(), [](char c) {
            return absl::ascii_isalnum(c) || c == '_' || c == '-';
          });
      if (!plain || source == nullptr || !source->is_string()) {
        return Bad("one of its chat templates has no name or template");
      }
      writer_.SetString(
          name == "default" ? std::string(kKey) : absl::StrCat(kKey, ".", name),
          source->get<std::string>());
    }
    return absl::OkStatus();
  }

  const VocabularySource& source_;
  const CheckpointConfig& config_;
  const VocabularyRules& rules_;
  GgufWriter& writer_;
  std::vector<std::string>& warnings_;
  const json* model_ = nullptr;
  TokenTable table_;
};

}  // namespace

absl::Status SetVocabulary(const VocabularySource& source,
                           const CheckpointConfig& config,
                           const VocabularyRules& rules, GgufWriter* writer,
                           std::vector<std::string>* warnings) {
  return VocabularySetter(source, config, rules, writer, warnings).Run();
}

}  // namespace weft
