#include "text/tokenizer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "text/bpe.h"
#include "text/normalize.h"
#include "text/spm.h"
#include "text/unigram.h"
#include "text/utf8.h"
#include "text/wordpiece.h"

namespace weft {
namespace {

struct FamilyRow {
  absl::string_view name;  // `Vocabulary.model`
  CreateTokenizerFamily create;
};
constexpr FamilyRow kFamilies[] = {
    {"llama", CreateSpm},      {"gpt2", CreateBpe},   {"gemma4", CreateBpe},
    {"bert", CreateWordpiece}, {"t5", CreateUnigram},
};

// Tokens that end an answer in known models, and those that stand between files
// where models fill in the middle; metadata seldom names them. The lists are
// those of public loaders (llama.cpp, src/llama-vocab.cpp), which take them for
// control tokens whatever type the file gives them (but for "</s>", which they
// took in for one model only). The end of turn of a vocabulary is the first of
// those that it has.
constexpr absl::string_view kEndOfTurn[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<turn|>",
    "<|END_OF_TURN_TOKEN|>",
    "<end_of_utterance>",
    "<EOT>",
    "<|EOT|>",
    "_<EOT>",
    "[EOT]",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
};
constexpr absl::string_view kOtherEnds[] = {
    "<|eom_id|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<eos>",
    "[EOS]",
    "<|tool_response>",
    "[e~[",
    // Padding, repository and file of fill-in-the-middle.
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
};

// A name that ends nothing where the vocabulary has all of the others.
struct Exception {
  absl::string_view name;
  absl::string_view others[2];
};
constexpr Exception kExceptions[] = {
    {"<|end|>", {"<|return|>", "<|call|>"}},
    {"<|end|>", {"<|calls|>", "<|flush|>"}},
};

// Phi-3's vocabulary, which files do not name: SentencePiece with this token.
// Its added tokens take the white space behind them, but for these.
constexpr absl::string_view kTokenOfPhi3 = "<|assistant|>";
constexpr absl::string_view kTakeNoSpace[] = {"<unk>", "<s>", "<|endoftext|>"};

bool TakesSpace(const Vocabulary& vocabulary, int32_t id) {
  return std::find(std::begin(kTakeNoSpace), std::end(kTakeNoSpace),
                   vocabulary.tokens(id)) == std::end(kTakeNoSpace);
}

size_t CountSpace(absl::string_view text) {
  size_t count = 0;
  while (count < text.size() && absl::ascii_isspace(text[count])) ++count;
  return count;
}

absl::Status Invalid(absl::string_view what, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("vocabulary: ", what, ": ", why));
}

absl::Status Check(const Vocabulary& vocabulary) {
  const int count = vocabulary.tokens_size();
  if (count == 0) return Invalid("tokens", "there are none");
  if (vocabulary.scores_size() != 0 && vocabulary.scores_size() != count) {
    return Invalid("scores",
                   absl::StrCat("there are ", vocabulary.scores_size(), " for ",
                                count, " tokens"));
  }
  for (int id = 0; id < vocabulary.scores_size(); ++id) {
    if (std::isnan(vocabulary.scores(id))) {
      return Invalid(absl::StrCat("score of token ", id), "is not a number");
    }
  }
  if (vocabulary.types_size() != 0 && vocabulary.types_size() != count) {
    return Invalid("types", absl::StrCat("there are ", vocabulary.types_size(),
                                         " for ", count, " tokens"));
  }
  for (int id = 0; id < vocabulary.types_size(); ++id) {
    if (!Vocabulary::TokenType_IsValid(vocabulary.types(id))) {
      return Invalid(absl::StrCat("type of token ", id),
                     absl::StrCat(vocabulary.types(id), " is not a type"));
    }
  }
  const std::pair<absl::string_view, int32_t> ids[] = {
      {"bos", vocabulary.bos()},
      {"eos", vocabulary.eos()},
      {"unknown", vocabulary.unknown()},
      {"separator", vocabulary.separator()},
      {"padding", vocabulary.padding()},
      {"end of turn", vocabulary.end_of_turn()},
      {"mask", vocabulary.has_mask() ? vocabulary.mask() : -1},
      {"prefix", vocabulary.has_fill_prefix() ? vocabulary.fill_prefix() : -1},
      {"suffix", vocabulary.has_fill_suffix() ? vocabulary.fill_suffix() : -1},
      {"middle", vocabulary.has_fill_middle() ? vocabulary.fill_middle() : -1},
  };
  for (const auto& [name, id] : ids) {
    if (id < -1 || id >= count) {
      return Invalid(absl::StrCat(name, " token"),
                     absl::StrCat("id ", id, " is not among the ", count,
                                  " tokens (-1 for none)"));
    }
  }
  for (const int32_t id : vocabulary.ends()) {
    if (id >= 0 && id < count) continue;
    return Invalid(
        "token that ends a text",
        absl::StrCat("id ", id, " is not among the ", count, " tokens"));
  }
  return absl::OkStatus();
}

// Types for a vocabulary that has none: all NORMAL but what can be told apart.
void FillTypes(Vocabulary& vocabulary) {
  if (vocabulary.types_size() != 0) return;
  vocabulary.mutable_types()->Resize(vocabulary.tokens_size(),
                                     Vocabulary::NORMAL);
  for (int id = 0;
       (vocabulary.model() == "llama" || vocabulary.model() == "t5") &&
       id < vocabulary.tokens_size();
       ++id) {
    const std::string& text = vocabulary.tokens(id);
    if (text.size() == 6 && text.substr(0, 3) == "<0x") {
      vocabulary.set_types(id, Vocabulary::BYTE);
    }
  }
  for (const int32_t id :
       {vocabulary.bos(), vocabulary.eos(), vocabulary.end_of_turn(),
        vocabulary.separator(), vocabulary.padding()}) {
    if (id >= 0) vocabulary.set_types(id, Vocabulary::CONTROL);
  }
  if (vocabulary.unknown() >= 0) {
    vocabulary.set_types(vocabulary.unknown(), Vocabulary::UNKNOWN);
  }
}

// The ids of known ends by their names; the first of equal texts.
using Ends = absl::flat_hash_map<absl::string_view, int32_t>;

Ends FindEnds(const Vocabulary& vocabulary) {
  Ends ends;
  for (absl::string_view name : kEndOfTurn) ends.emplace(name, -1);
  for (absl::string_view name : kOtherEnds) ends.emplace(name, -1);
  for (int id = 0; id < vocabulary.tokens_size(); ++id) {
    const auto it = ends.find(vocabulary.tokens(id));
    if (it != ends.end() && it->second < 0) it->second = id;
  }
  for (auto it = ends.begin(); it != ends.end();) {
    const auto next = std::next(it);
    if (it->second < 0) ends.erase(it);
    it = next;
  }
  return ends;
}

// Names the end of turn and all ends; what is known by its name is no ordinary
// text.
void SetEnds(Vocabulary& vocabulary) {
  const Ends found = FindEnds(vocabulary);
  const auto has = [&](absl::string_view name) { return found.contains(name); };
  for (absl::string_view name : kEndOfTurn) {
    if (vocabulary.end_of_turn() >= 0) break;
    if (has(name)) vocabulary.set_end_of_turn(found.at(name));
  }
  for (const auto& [name, id] : found) {
    const absl::string_view text = name;
    const bool excepted = std::any_of(
        std::begin(kExceptions), std::end(kExceptions),
        [&](const Exception& e) {
          return e.name == text && has(e.others[0]) && has(e.others[1]);
        });
    if (!excepted) vocabulary.add_ends(id);
    const Vocabulary::TokenType type = vocabulary.types(id);
    if (type == Vocabulary::NORMAL || type == Vocabulary::UNDEFINED) {
      vocabulary.set_types(id, Vocabulary::CONTROL);
    }
  }
}

// Names of fill-in-the-middle tokens: DeepSeek-Coder, Qwen-Coder, StarCoder,
// CodeGemma, Granite, GLM-4, CodeLlama, Codestral.
constexpr absl::string_view kFillPrefix[] = {"<|fim_prefix|>",
                                             "<fim-prefix>",
                                             "<fim_prefix>",
                                             "<|code_prefix|>",
                                             "<\uff5cfim\u2581begin\uff5c>",
                                             "<PRE>",
                                             "\u2581<PRE>",
                                             "[PREFIX]"};
constexpr absl::string_view kFillSuffix[] = {"<|fim_suffix|>",
                                             "<fim-suffix>",
                                             "<fim_suffix>",
                                             "<|code_suffix|>",
                                             "<\uff5cfim\u2581hole\uff5c>",
                                             "<SUF>",
                                             "\u2581<SUF>",
                                             "[SUFFIX]"};
constexpr absl::string_view kFillMiddle[] = {"<|fim_middle|>",
                                             "<fim-middle>",
                                             "<fim_middle>",
                                             "<|code_middle|>",
                                             "<\uff5cfim\u2581end\uff5c>",
                                             "<MID>",
                                             "\u2581<MID>",
                                             "[MIDDLE]"};

// Finds those that the file does not name.
void SetFills(Vocabulary& vocabulary) {
  const struct {
    absl::Span<const absl::string_view> names;
    bool set;
    void (Vocabulary::*take)(int32_t);
  } kinds[] = {
      {kFillPrefix, vocabulary.has_fill_prefix(), &Vocabulary::set_fill_prefix},
      {kFillSuffix, vocabulary.has_fill_suffix(), &Vocabulary::set_fill_suffix},
      {kFillMiddle, vocabulary.has_fill_middle(),
       &Vocabulary::set_fill_middle}};
  for (const auto& kind : kinds) {
    if (kind.set) continue;
    for (int id = 0; id < vocabulary.tokens_size(); ++id) {
      const absl::string_view text = vocabulary.tokens(id);
      if (text.size() > 24 || std::find(kind.names.begin(), kind.names.end(),
                                        text) == kind.names.end()) {
        continue;
      }
      (vocabulary.*kind.take)(id);
      break;
    }
  }
}

// Whether a user-defined token marks turns or roles: files call many such
// tokens so, though they are control tokens. Beyond these sizes nobody writes
// markup.
bool ServesAsControl(absl::string_view text, absl::string_view chat_template) {
  constexpr size_t kLongest = 64, kLongestTemplate = 1 << 20;
  if (text.size() < 3 || text.size() > kLongest) return false;
  if (absl::StartsWith(text, "<|") && absl::EndsWith(text, "|>")) return true;
  const bool in_brackets = (text.front() == '<' && text.back() == '>') ||
                           (text.front() == '[' && text.back() == ']');
  return in_brackets && chat_template.size() <= kLongestTemplate &&
         absl::StrContains(chat_template, text);
}

absl::Status OutOfRange(int32_t id, int32_t count) {
  return absl::InvalidArgumentError(absl::StrCat(
      "detokenise: id ", id, ": the vocabulary has ", count, " tokens"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Tokenizer>> Tokenizer::Create(
    Vocabulary vocabulary, const TokenizerOptions& options) {
  absl::Status status = Check(vocabulary);
  if (!status.ok()) return status;
  FillTypes(vocabulary);
  const int32_t named_end_of_turn = vocabulary.end_of_turn();
  SetEnds(vocabulary);
  SetFills(vocabulary);

  std::unique_ptr<Tokenizer> made(new Tokenizer);
  std::string known;
  for (const FamilyRow& row : kFamilies) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", row.name);
    if (row.name != vocabulary.model()) continue;
    auto family = row.create(vocabulary);
    if (!family.ok()) return family.status();
    made->family_ = *std::move(family);
  }
  if (made->family_ == nullptr) {
    return Invalid(absl::StrCat("tokeniser model '",
                                absl::CEscape(vocabulary.model()), "'"),
                   absl::StrCat("is not known: use one of ", known));
  }

  const TokenizerFamily& family = *made->family_;
  made->normalizes_ = options.normalize && family.normalizes();
  const bool add_bos = vocabulary.has_add_bos() ? vocabulary.add_bos()
                                                : family.default_add_bos();
  vocabulary.set_add_bos(add_bos && vocabulary.bos() >= 0);
  const bool add_eos = vocabulary.has_add_eos() ? vocabulary.add_eos()
                                                : family.default_add_eos();
  vocabulary.set_add_eos(add_eos && vocabulary.eos() >= 0);
  if (!vocabulary.has_add_space_prefix()) {
    vocabulary.set_add_space_prefix(family.default_add_space_prefix());
  }

  const int count = vocabulary.tokens_size();
  made->special_.resize(count);
  made->ends_generation_.resize(count);
  made->markup_.resize(count);
  for (const int32_t id : vocabulary.ends()) made->ends_generation_[id] = true;
  for (const int32_t id : {vocabulary.eos(), named_end_of_turn}) {
    if (id >= 0) made->ends_generation_[id] = true;
  }
  for (int id = 0; id < count; ++id) {
    const std::string& text = vocabulary.tokens(id);
    const Vocabulary::TokenType type = vocabulary.types(id);
    const bool special = type == Vocabulary::CONTROL ||
                         type == Vocabulary::UNKNOWN ||
                         id == vocabulary.eos() || id == named_end_of_turn ||
                         id == vocabulary.bos();
    const bool user_defined = type == Vocabulary::USER_DEFINED;
    made->special_[id] = special;
    made->special_takes_space_ |=
        vocabulary.model() == "llama" && text == kTokenOfPhi3;
    made->markup_[id] =
        special ||
        (user_defined && (made->ends_generation_[id] ||
                          ServesAsControl(text, vocabulary.chat_template())));
    // Of equal texts a control token is the one that is meant.
    if (special) made->all_special_.Add(text, id);
  }
  for (int id = 0; !family.takes_user_defined() && id < count; ++id) {
    if (vocabulary.types(id) == Vocabulary::USER_DEFINED) {
      made->all_special_.Add(vocabulary.tokens(id), id);
    }
  }
  vocabulary.clear_merges();
  vocabulary.clear_scores();
  vocabulary.clear_charsmap();
  vocabulary.clear_chat_template();
  vocabulary.clear_pair_template();
  made->vocabulary_ = std::move(vocabulary);
  return made;
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(
    absl::string_view text, const EncodeOptions& options,
    bool* bos_in_text) const {
  return EncodeIf(
      text, options,
      [&](const SpecialTokens::Match& match) {
        return options.parse_special || !special_[match.id];
      },
      bos_in_text);
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::EncodeSegments(
    absl::Span<const TextSegment> segments, const EncodeOptions& options,
    bool* bos_in_text) const {
  std::string text;
  std::vector<size_t> ends;  // of stretches by one author
  std::vector<bool> from_template;
  for (const TextSegment& segment : segments) {
    if (segment.text.empty()) continue;
    text += segment.text;
    if (from_template.empty() ||
        from_template.back() != segment.from_template) {
      ends.push_back(0);
      from_template.push_back(segment.from_template);
    }
    ends.back() = text.size();
  }
  return EncodeIf(
      text, options,
      [&](const SpecialTokens::Match& match) {
        if (!markup_[match.id]) return true;
        const size_t stretch =
            std::upper_bound(ends.begin(), ends.end(), match.begin) -
            ends.begin();
        return options.parse_special && from_template[stretch] &&
               match.begin + match.size <= ends[stretch];
      },
      bos_in_text);
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::EncodeIf(
    absl::string_view text, const EncodeOptions& options,
    absl::FunctionRef<bool(const SpecialTokens::Match&)> accepts,
    bool* bos_in_text) const {
  if (text.size() >= std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokeniser: text: ", text.size(),
                     " bytes are too many: pass less than "
                     "2 GiB at a time"));
  }
  std::vector<int32_t> ids;
  StopCheck stop(options.unwanted);
  size_t at = 0;
  while (at < text.size()) {
    const SpecialTokens::Match match = all_special_.FindIf(text, at, accepts);
    const size_t end = match.size > 0 ? match.begin : text.size();
    if (end > at) {
      absl::string_view part = text.substr(at, end - at);
      std::string normalized;
      if (options.normalize && normalizes_) {
        normalized = ToNfc(part);
        part = normalized;
      }
      const absl::Status status =
          family_->Encode(part, vocabulary_.add_space_prefix(), stop, ids);
      if (!status.ok()) return status;
    }
    if (stop.Stopped()) {
      return absl::CancelledError("tokeniser: nobody wants the ids any more");
    }
    if (match.size > 0) ids.push_back(match.id);
    at = end + match.size;
    if (match.size > 0 && special_takes_space_ &&
        TakesSpace(vocabulary_, match.id)) {
      at += CountSpace(text.substr(at));
    }
  }

  const bool has_bos = !ids.empty() && ids.front() == bos();
  const bool has_eos = !ids.empty() && ids.back() == eos();
  if (bos_in_text != nullptr) {
    *bos_in_text = options.add_special && add_bos() && has_bos;
  }
  if (options.add_special && add_bos() && !has_bos) {
    ids.insert(ids.begin(), bos());
  }
  if (options.add_special && add_eos() && !has_eos) ids.push_back(eos());
  return ids;
}

absl::Status Tokenizer::AppendBytes(int32_t id, const DecodeOptions& options,
                                    bool* at_start, std::string* bytes) const {
  if (!InRange(id)) return OutOfRange(id, vocabulary_size());
  absl::string_view text = TokenToBytes(id);
  const bool user_defined = vocabulary_.types(id) == Vocabulary::USER_DEFINED;
  if (special_[id] || user_defined) {
    if (!special_[id] || !options.skip_special) absl::StrAppend(bytes, text);
    *at_start = true;
    return absl::OkStatus();
  }
  if (text.empty()) return absl::OkStatus();
  if (*at_start && vocabulary_.add_space_prefix() && text.front() == ' ') {
    text.remove_prefix(1);
  }
  *at_start = false;
  absl::StrAppend(bytes, text);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Tokenizer::DecodeBytes(
    absl::Span<const int32_t> ids, const DecodeOptions& options) const {
  std::string bytes;
  bool at_start = !options.continues_text;
  for (const int32_t id : ids) {
    const absl::Status status = AppendBytes(id, options, &at_start, &bytes);
    if (!status.ok()) return status;
  }
  return bytes;
}

absl::StatusOr<std::string> Tokenizer::Decode(
    absl::Span<const int32_t> ids, const DecodeOptions& options) const {
  const auto bytes = DecodeBytes(ids, options);
  if (!bytes.ok()) return bytes.status();
  return RepairUtf8(*bytes);
}

absl::string_view Tokenizer::TokenToBytes(int32_t id) const {
  const bool own_text =
      special_[id] || vocabulary_.types(id) == Vocabulary::USER_DEFINED;
  return own_text ? Piece(id) : family_->Bytes(id);
}

size_t Tokenizer::MemoryBytes() const {
  return sizeof(*this) + vocabulary_.SpaceUsedLong() + family_->MemoryBytes() +
         all_special_.MemoryBytes() +
         (special_.capacity() + markup_.capacity() +
          ends_generation_.capacity()) /
             8;
}

}  // namespace weft
