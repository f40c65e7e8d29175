#include "text/wordpiece.h"

#include <utf8proc.h>

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "text/utf8.h"

namespace weft {
namespace {

constexpr absl::string_view kWordMark = "\u2581";
constexpr absl::string_view kRestMark = "##";
// Longer words are unknown (BERT's max_input_chars_per_word).
constexpr int kLongestWord = 100;  // characters

// CJK ideographs, which stand for words; not syllables and kana, which are
// written in words.
bool IsIdeograph(int32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
         (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

bool IsSpace(int32_t c, utf8proc_category_t category) {
  return c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f' ||
         category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

bool IsControl(utf8proc_category_t category) {
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_CS || category == UTF8PROC_CATEGORY_CO ||
         category == UTF8PROC_CATEGORY_CN;
}

// Also ASCII's symbols, which Unicode does not count as punctuation.
bool IsPunctuation(int32_t c, utf8proc_category_t category) {
  if (c < 0x80) {
    return c > ' ' && c < 0x7f && category != UTF8PROC_CATEGORY_ND &&
           category != UTF8PROC_CATEGORY_LU && category != UTF8PROC_CATEGORY_LL;
  }
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

// Collects words of normalised characters.
class Words {
 public:
  // Appends the character to the word that is open, as UTF-8.
  void Append(int32_t c) {
    utf8proc_uint8_t bytes[4];
    const utf8proc_ssize_t n = utf8proc_encode_char(c, bytes);
    if (n > 0) word_.append(reinterpret_cast<const char*>(bytes), n);
  }
  void End() {
    if (!word_.empty()) words_.push_back(std::move(word_));
    word_.clear();
  }
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::string word_;
  std::vector<std::string> words_;
};

// What is done to characters before words are looked up.
struct Normalizer {
  bool lowercase = true;
  bool strip_accents = true;

  int32_t Case(int32_t c) const { return lowercase ? utf8proc_tolower(c) : c; }
};

void AddCharacter(int32_t c, const Normalizer& normalizer, Words* words) {
  const utf8proc_category_t category = utf8proc_category(c);
  if (IsSpace(c, category)) {
    words->End();
  } else if (c == 0xfffd || IsControl(category) ||
             (normalizer.strip_accents && category == UTF8PROC_CATEGORY_MN)) {
    // Dropped: accents, and what cannot be seen.
  } else if (IsPunctuation(c, category) || IsIdeograph(c)) {
    words->End();
    words->Append(normalizer.Case(c));
    words->End();
  } else {
    words->Append(normalizer.Case(c));
  }
}

std::vector<std::string> WordsOf(absl::string_view text,
                                 const Normalizer& normalizer) {
  Words words;
  for (size_t at = 0; at < text.size();) {
    const Utf8Unit unit = Utf8UnitAt(text, at);
    if (unit.kind == Utf8Unit::kCharacter) {
      utf8proc_int32_t c;
      utf8proc_iterate(
          reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
          static_cast<utf8proc_ssize_t>(unit.bytes), &c);
      // No character has a longer decomposition.
      utf8proc_int32_t parts[8] = {c};
      int boundary = 0;
      const utf8proc_ssize_t n =
          normalizer.strip_accents
              ? utf8proc_decompose_char(c, parts, 8, UTF8PROC_DECOMPOSE,
                                        &boundary)
              : 1;
      for (utf8proc_ssize_t i = 0; i < std::min<utf8proc_ssize_t>(n, 8); ++i) {
        AddCharacter(parts[i], normalizer, &words);
      }
    }
    at += unit.bytes;
  }
  words.End();
  return words.words();
}

class Wordpiece : public TokenizerFamily {
 public:
  static absl::StatusOr<std::unique_ptr<const TokenizerFamily>> Create(
      const Vocabulary& vocabulary) {
    std::unique_ptr<Wordpiece> made(new Wordpiece);
    made->Fill(vocabulary);
    return made;
  }

  absl::Status Encode(absl::string_view text, bool, StopCheck& stop,
                      std::vector<int32_t>& ids) const override {
    for (const std::string& word : WordsOf(text, normalizer_)) {
      if (stop.Stopped()) break;
      const size_t before = ids.size();
      const auto characters = std::count_if(
          word.begin(), word.end(),
          [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; });
      if (characters <= kLongestWord && EncodeWord(word, ids)) continue;
      ids.resize(before);
      if (unknown_ < 0) {
        return absl::InvalidArgumentError(
            "tokeniser: a word of the text is not made of known pieces: the "
            "vocabulary has no unknown token");
      }
      ids.push_back(unknown_);
    }
    return absl::OkStatus();
  }

  absl::string_view Bytes(int32_t id) const override { return bytes_[id]; }
  bool default_add_bos() const override { return true; }
  bool default_add_space_prefix() const override { return true; }

  size_t MemoryBytes() const override {
    return sizeof(*this) + BytesOfTexts(bytes_) +
           (first_.capacity() + rest_.capacity()) *
               (sizeof(absl::string_view) + sizeof(int32_t) + 1);
  }

 private:
  void Fill(const Vocabulary& vocabulary) {
    const int count = vocabulary.tokens_size();
    unknown_ = vocabulary.unknown();
    if (vocabulary.has_lowercase()) {
      normalizer_.lowercase = vocabulary.lowercase();
      normalizer_.strip_accents = vocabulary.lowercase();
    }
    if (vocabulary.has_strip_accents()) {
      normalizer_.strip_accents = vocabulary.strip_accents();
    }
    bool marks_words = false;
    for (const std::string& token : vocabulary.tokens()) {
      marks_words = marks_words || absl::StartsWith(token, kWordMark);
    }
    bytes_.resize(count);
    for (int id = 0; id < count; ++id) {
      absl::string_view piece = vocabulary.tokens(id);
      const bool begins = marks_words ? absl::ConsumePrefix(&piece, kWordMark)
                                      : !absl::ConsumePrefix(&piece, kRestMark);
      bytes_[id] = absl::StrCat(begins ? " " : "", piece);
      const Vocabulary::TokenType type = vocabulary.types(id);
      if (type == Vocabulary::CONTROL || type == Vocabulary::UNKNOWN ||
          type == Vocabulary::USER_DEFINED || piece.empty()) {
        continue;
      }
      longest_ = std::max(longest_, piece.size());
      const absl::string_view key =
          absl::string_view(bytes_[id]).substr(begins ? 1 : 0);
      (begins ? first_ : rest_).try_emplace(key, id);
    }
  }

  // False when the word is not made of pieces; then ids have some of them.
  bool EncodeWord(absl::string_view word, std::vector<int32_t>& ids) const {
    const auto* pieces = &first_;
    while (!word.empty()) {
      size_t size = std::min(word.size(), longest_);
      auto it = pieces->end();
      while (size > 0 && it == pieces->end()) {
        it = pieces->find(word.substr(0, size--));
      }
      if (it == pieces->end()) return false;
      ids.push_back(it->second);
      word.remove_prefix(it->first.size());
      pieces = &rest_;
    }
    return true;
  }

  std::vector<std::string> bytes_;  // by id
  // By text, which lies in bytes_: pieces that begin a word, and the others.
  absl::flat_hash_map<absl::string_view, int32_t> first_, rest_;
  size_t longest_ = 0;
  int32_t unknown_ = -1;
  Normalizer normalizer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const TokenizerFamily>> CreateWordpiece(
    const Vocabulary& vocabulary) {
  return Wordpiece::Create(vocabulary);
}

}  // namespace weft
