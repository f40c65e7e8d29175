#include "text/unigram.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "text/charsmap.h"
#include "text/piece.h"
#include "text/utf8.h"

namespace weft {
namespace {

constexpr size_t kLongestPiece = 1024;
// What an unknown character scores below the worst piece, and a piece that
// users defined below the best pieces of its bytes.
constexpr double kUnknownPenalty = 10;
constexpr double kDefinedPenalty = 0.1;

// Pieces in the order of their bytes. Those that a text begins with are found
// by narrowing the stretch of the list that agrees with it, a byte at a time.
class PieceList {
 public:
  struct Piece {
    absl::string_view text;
    double score;
    int32_t id;
  };

  void Add(const Piece& piece) { pieces_.push_back(piece); }
  // Of equal texts the first id stays.
  void Finish() {
    std::sort(pieces_.begin(), pieces_.end(),
              [](const Piece& a, const Piece& b) {
                return a.text != b.text ? a.text < b.text : a.id < b.id;
              });
    pieces_.erase(std::unique(pieces_.begin(), pieces_.end(),
                              [](const Piece& a, const Piece& b) {
                                return a.text == b.text;
                              }),
                  pieces_.end());
  }
  bool empty() const { return pieces_.empty(); }

  // Calls `found` with each piece that `text` begins with, shorter ones first.
  template <typename Found>
  void ForEachPrefix(absl::string_view text, Found found) const {
    auto begin = pieces_.begin(), end = pieces_.end();
    for (size_t i = 0; i < text.size() && begin != end; ++i) {
      const unsigned char byte = static_cast<unsigned char>(text[i]);
      // What ends here stands first.
      if (begin->text.size() == i) ++begin;
      begin = std::partition_point(begin, end, [&](const Piece& piece) {
        return static_cast<unsigned char>(piece.text[i]) < byte;
      });
      end = std::partition_point(begin, end, [&](const Piece& piece) {
        return static_cast<unsigned char>(piece.text[i]) == byte;
      });
      if (begin != end && begin->text.size() == i + 1) found(*begin);
    }
  }

  size_t MemoryBytes() const { return pieces_.capacity() * sizeof(Piece); }

 private:
  std::vector<Piece> pieces_;
};

class Unigram : public TokenizerFamily {
 public:
  static absl::StatusOr<std::unique_ptr<const TokenizerFamily>> Create(
      const Vocabulary& vocabulary) {
    std::unique_ptr<Unigram> made(new Unigram);
    const absl::Status status = made->Fill(vocabulary);
    if (!status.ok()) return status;
    return made;
  }

  absl::Status Encode(absl::string_view text, bool space_prefix,
                      StopCheck& stop,
                      std::vector<int32_t>& ids) const override {
    const std::string normalized = Normalize(text, space_prefix, stop);
    return Segment(normalized, stop, ids);
  }

  absl::string_view Bytes(int32_t id) const override { return bytes_[id]; }
  bool default_add_bos() const override { return false; }
  bool default_add_eos() const override { return true; }
  bool default_add_space_prefix() const override { return false; }
  bool takes_user_defined() const override { return true; }

  size_t MemoryBytes() const override {
    return sizeof(*this) + charsmap_.MemoryBytes() + pieces_.MemoryBytes() +
           defined_.MemoryBytes() + BytesOfTexts(bytes_) + BytesOfTexts(texts_);
  }

 private:
  absl::Status Fill(const Vocabulary& vocabulary) {
    absl::StatusOr<Charsmap> charsmap = Charsmap::Create(vocabulary.charsmap());
    if (!charsmap.ok()) return charsmap.status();
    charsmap_ = *std::move(charsmap);
    one_space_ = vocabulary.remove_extra_whitespaces();
    unknown_ = vocabulary.unknown();
    byte_ids_.fill(-1);
    const int count = vocabulary.tokens_size();
    bytes_.resize(count);
    texts_.resize(count);
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (int id = 0; id < count; ++id) {
      if (vocabulary.types(id) != Vocabulary::NORMAL) continue;
      least = std::min(least, ScoreOf(vocabulary, id));
      most = std::max(most, ScoreOf(vocabulary, id));
    }
    if (least > most) least = most = 0;
    unknown_score_ = least - kUnknownPenalty;
    for (int id = 0; id < count; ++id) {
      const std::string& text = vocabulary.tokens(id);
      const Vocabulary::TokenType type = vocabulary.types(id);
      bytes_[id] = PieceText(text);
      if (type == Vocabulary::BYTE) {
        const int value = ByteTokenValue(text);
        if (value < 0) {
          return absl::InvalidArgumentError(
              absl::StrCat("vocabulary: token ", id,
                           ": a byte token must read <0x00> to <0xFF>"));
        }
        if (byte_ids_[value] < 0) byte_ids_[value] = id;
        has_bytes_ = true;
        bytes_[id] = std::string(1, static_cast<char>(value));
        continue;
      }
      const bool defined = type == Vocabulary::USER_DEFINED;
      if ((type != Vocabulary::NORMAL && !defined) || text.empty()) continue;
      if (text.size() > kLongestPiece) {
        return absl::InvalidArgumentError(absl::StrCat(
            "vocabulary: token ", id, ": ", text.size(),
            " bytes are too many: pieces have at most ", kLongestPiece));
      }
      texts_[id] = text;
      const double score =
          defined ? static_cast<double>(text.size()) * most - kDefinedPenalty
                  : ScoreOf(vocabulary, id);
      pieces_.Add({texts_[id], score, id});
      if (defined) defined_.Add({texts_[id], score, id});
    }
    pieces_.Finish();
    defined_.Finish();
    return absl::OkStatus();
  }

  static double ScoreOf(const Vocabulary& vocabulary, int id) {
    return id < vocabulary.scores_size() ? vocabulary.scores(id) : 0;
  }

  // What `text` (not empty) begins with, normalised; `size` are its bytes.
  absl::string_view NextNormal(absl::string_view text, size_t* size) const {
    *size = 0;
    if (!defined_.empty()) {
      defined_.ForEachPrefix(text, [&](const PieceList::Piece& piece) {
        *size = piece.text.size();
      });
      if (*size > 0) return text.substr(0, *size);
    }
    const Charsmap::Match match = charsmap_.Find(text);
    if (match.size > 0) {
      *size = match.size;
      return match.replacement;
    }
    const Utf8Unit unit = Utf8UnitAt(text, 0);
    if (unit.kind == Utf8Unit::kCharacter) {
      *size = unit.bytes;
      return text.substr(0, unit.bytes);
    }
    *size = 1;
    return kReplacementCharacter;
  }

  std::string Normalize(absl::string_view text, bool space_prefix,
                        StopCheck& stop) const {
    std::string out;
    size_t size = 0;
    while (one_space_ && !text.empty() && !stop.Stopped() &&
           NextNormal(text, &size) == " ") {
      text.remove_prefix(size);
    }
    if (text.empty()) return out;
    out.reserve(text.size() + text.size() / 2 + kSpaceMark.size());
    if (space_prefix) absl::StrAppend(&out, kSpaceMark);
    bool after_space = one_space_;
    while (!text.empty() && !stop.Stopped()) {
      absl::string_view part = NextNormal(text, &size);
      text.remove_prefix(size);
      while (after_space && absl::ConsumePrefix(&part, " ")) {
      }
      if (part.empty()) continue;
      for (const char c : part) {
        if (c == ' ') {
          absl::StrAppend(&out, kSpaceMark);
        } else {
          out.push_back(c);
        }
      }
      after_space = one_space_ && part.back() == ' ';
    }
    while (one_space_ && absl::EndsWith(out, kSpaceMark)) {
      out.resize(out.size() - kSpaceMark.size());
    }
    return out;
  }

  // The best way to the place behind some character.
  struct Best {
    double score = 0;
    int32_t id = kUnreached;  // of the last piece; kNoPiece: unknown
    uint32_t size = 0;        // its bytes
  };
  static constexpr int32_t kNoPiece = -1, kUnreached = -2;

  absl::Status Segment(absl::string_view text, StopCheck& stop,
                       std::vector<int32_t>& ids) const {
    std::vector<Best> best(text.size() + 1);
    const auto offer = [&](size_t begin, size_t size, double score,
                           int32_t id) {
      Best& there = best[begin + size];
      const double sum = best[begin].score + score;
      if (there.id != kUnreached && !(sum > there.score)) return;
      there = {sum, id, static_cast<uint32_t>(size)};
    };
    for (size_t at = 0; at < text.size();) {
      if (stop.Stopped()) return absl::OkStatus();
      const size_t character = Utf8UnitAt(text, at).bytes;
      bool covered = false;
      pieces_.ForEachPrefix(text.substr(at), [&](const PieceList::Piece& p) {
        covered |= p.text.size() == character;
        offer(at, p.text.size(), p.score, p.id);
      });
      if (!covered) offer(at, character, unknown_score_, kNoPiece);
      at += character;
    }
    // From the end on; then the other way round.
    const size_t first = ids.size();
    bool in_unknown = false;
    for (size_t at = text.size(); at > 0; at -= best[at].size) {
      if (best[at].id != kNoPiece) {
        ids.push_back(best[at].id);
        in_unknown = false;
        continue;
      }
      const size_t begin = at - best[at].size;
      const absl::Status status =
          AddUnknown(text.substr(begin, best[at].size), &in_unknown, ids);
      if (!status.ok()) return status;
    }
    std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end());
    return absl::OkStatus();
  }

  // Last byte first.
  absl::Status AddUnknown(absl::string_view character, bool* in_unknown,
                          std::vector<int32_t>& ids) const {
    if (has_bytes_ && HasBytesOf(character)) {
      for (size_t i = character.size(); i > 0; --i) {
        ids.push_back(byte_ids_[static_cast<uint8_t>(character[i - 1])]);
      }
      *in_unknown = false;
      return absl::OkStatus();
    }
    if (*in_unknown) return absl::OkStatus();
    if (unknown_ < 0) {
      return absl::InvalidArgumentError(
          "tokeniser: the text has a character that is in no piece, and the "
          "vocabulary has no unknown token");
    }
    ids.push_back(unknown_);
    *in_unknown = true;
    return absl::OkStatus();
  }

  bool HasBytesOf(absl::string_view character) const {
    return std::all_of(character.begin(), character.end(), [&](char c) {
      return byte_ids_[static_cast<uint8_t>(c)] >= 0;
    });
  }

  std::vector<std::string> bytes_;  // by id
  std::vector<std::string> texts_;  // by id, of those that match text
  PieceList pieces_, defined_;      // of texts_
  Charsmap charsmap_;
  std::array<int32_t, 256> byte_ids_;
  double unknown_score_ = 0;
  int32_t unknown_ = -1;
  bool one_space_ = false;
  bool has_bytes_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const TokenizerFamily>> CreateUnigram(
    const Vocabulary& vocabulary) {
  return Unigram::Create(vocabulary);
}

}  // namespace weft
